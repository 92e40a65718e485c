"""The windows of columns, on which the kernels of answers rely."""

import numpy as np
import pytest

from gpuops.hierarchy.windows import share_out, window_of
from gpuops.hierarchy.windows_numba import number_absent


@pytest.mark.parametrize(("of_thread", "threads"), [(4, 32), (8, 64), (4, 256)])
@pytest.mark.parametrize(("parts", "count"), [(1, 100), (7, 333), (500, 2000), (3, 0), (5, 1)])
def test_each_column_has_a_slot_of_a_thread_of_its_part(parts, count, of_thread, threads):
    part = np.random.default_rng(parts).integers(0, parts, count).astype(np.int32)
    window = window_of(part, parts, of_thread, threads)
    thread_part, slot_numbers, columns = share_out(part, parts, window, of_thread, threads)
    there = columns >= 0
    np.testing.assert_array_equal(np.sort(columns[there]), np.arange(count))
    np.testing.assert_array_equal(np.repeat(thread_part, of_thread)[there], part[columns[there]])
    of_slot = np.arange(len(there)) // (threads * of_thread)
    np.testing.assert_array_equal(columns[there], (slot_numbers + of_slot * window)[there])
    assert (thread_part[~there.reshape(-1, of_thread).any(axis=1)] == -1).all()
    for w, own in enumerate(thread_part.reshape(-1, threads)):
        counts = np.bincount(part[w * window : (w + 1) * window], minlength=parts)
        np.testing.assert_array_equal(np.bincount(own[own >= 0], minlength=parts), -(-counts // of_thread))
    number_absent(slot_numbers, threads * of_thread, window, count)
    for numbers in slot_numbers.reshape(-1, threads * of_thread):
        np.testing.assert_array_equal(np.sort(numbers), np.arange(threads * of_thread))


def test_windows_are_as_wide_as_threads_allow():
    """With one part, every thread is full; with a part for each column, every thread has one column."""
    assert window_of(np.zeros(10_000, np.int32), 1, 4, 64) == 256
    assert window_of(np.arange(10_000, dtype=np.int32), 10_000, 4, 64) == 64
