"""Atomic operations of compiled functions: many threads change the same numbers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from families import usual
from numba import njit
from numba.core.errors import TypingError

from gpuops._atomics import add, elements, exchange, load, lower, prefetch, rolled, store

THREADS = 4


@njit(nogil=True)
def _add_often(numbers, times):
    for i in range(times):
        add(numbers, i % numbers.size, 1)


@njit(nogil=True)
def _exchange_often(numbers, times):
    for _ in range(times):
        while True:
            before = load(numbers, 0)
            if exchange(numbers, 0, before, before + 3):
                break


@njit(nogil=True)
def _lower_often(numbers, values):
    """Lower number i to each value of column i, round by round; count the values that came too late."""
    late = 0
    for row in values:
        for i in range(numbers.size):
            late += lower(numbers, i, row[i]) <= row[i]
    return late


@njit(nogil=True)
def _hand_over(box, me, rounds):
    """Two threads take turns: each waits for the number of the other, and reads what the other wrote before it."""
    wrong = 0
    for turn in range(me, 2 * rounds, 2):
        while load(box, 0) != turn:
            pass
        wrong += box[8] != turn
        box[8] = turn + 1
        store(box, 0, turn + 1)
    return wrong


@njit
def _by_pointers(numbers, floats):
    """Do every operation once by pointers; return the values before, and whether numbers were exchanged."""
    pointer, others = elements(numbers), elements(floats)
    prefetch(pointer, 1)
    before = add(pointer, 0, 10), lower(pointer, 1, -5), load(pointer, 2)
    exchanged = exchange(pointer, 3, 4, 40), exchange(pointer, 4, 6, 60)
    store(pointer, 5, 50)
    pointer[6], others[1] = 2.75, others[0] * 2
    return before, exchanged


def by_threads(work, count=THREADS):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.mark.parametrize("dtype", usual(["int32", "int64"]))
def test_no_addition_is_lost(dtype):
    numbers = np.zeros(2, dtype)
    _add_often(numbers, 0)
    by_threads(lambda _: _add_often(numbers, 200_000))
    assert numbers.tolist() == [THREADS * 100_000] * 2


def test_no_exchange_is_lost():
    numbers = np.zeros(1, np.int64)
    _exchange_often(numbers, 0)
    by_threads(lambda _: _exchange_often(numbers, 50_000))
    assert numbers[0] == 3 * 50_000 * THREADS


@pytest.mark.parametrize("dtype", usual(["int32", "int64"]))
def test_pointers_reach_the_elements_of_arrays(dtype):
    numbers, floats = np.arange(1, 9, dtype=dtype), np.array([1.5, 0, 7])
    assert _by_pointers(numbers, floats) == ((1, 2, 3), (True, False))
    assert numbers.tolist() == [11, -5, 3, 40, 5, 50, 2, 8]
    assert floats.tolist() == [1.5, 3, 7]
    with pytest.raises(TypingError, match="a contiguous array is needed"):
        _by_pointers(numbers[::2], floats)


@pytest.mark.parametrize("dtype", usual(["int32", "int64"]))
def test_the_least_value_stays(dtype):
    values = np.random.default_rng(1).integers(-(10**9), 10**9, (THREADS, 300, 64)).astype(dtype)
    numbers = np.full(64, 2 * 10**9, dtype)
    assert _lower_often(numbers.copy(), values[0]) == 300 * 64 - rises(values[0])
    by_threads(lambda thread: _lower_often(numbers, values[thread]))
    np.testing.assert_array_equal(numbers, values.min((0, 1)))


def rises(values):
    """Return how many values are below all values before them, in all columns."""
    least = np.minimum.accumulate(values, axis=0)
    return values.shape[1] + int((values[1:] < least[:-1]).sum())


def test_a_number_that_is_stored_publishes_what_was_written_before():
    box = np.zeros(16, np.int64)
    assert by_threads(lambda me: _hand_over(box, me, 300), 2) == [0, 0]


def test_prefetches_change_nothing():
    @njit
    def work(numbers):
        prefetch(numbers, 2)
        prefetch(numbers, 10**6)

    numbers = np.arange(4.0)
    work(numbers)
    assert numbers.tolist() == [0, 1, 2, 3]


def test_a_rolled_loop_is_compiled_once_and_any_other_unrolled():
    def set_all(numbers, values, with_call):
        for i in range(numbers.size):
            if with_call is not None:
                rolled()
            if values[i] > numbers[i]:
                store(numbers, i, values[i])

    stores = []
    for with_call in (True, None):
        compiled = njit(set_all)
        numbers = np.zeros(37, np.int64)
        compiled(numbers, np.arange(37), with_call)
        np.testing.assert_array_equal(numbers, np.arange(37))
        code = compiled.inspect_llvm(compiled.signatures[0]).splitlines()
        stores.append(sum(" store atomic " in line for line in code))
    assert stores[0] == 1 < stores[1]
