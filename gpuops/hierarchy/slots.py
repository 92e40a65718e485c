"""Deal the columns of products to the threads of a GPU. All columns of a thread belong to one part (blocks.cu)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops.hierarchy import slots_numba

_ALIGNED = 32  # the columns of a window are a multiple of this number


class Slots(NamedTuple):
    """The columns of each thread, which has a *slot* for each column that it may take; int32.

    Attributes
    ----------
    thread_part : (threads,) array
        The part of a thread's columns, -1 if it has none.
    numbers : (threads * columns of a thread,) array
        The number of each column in its window, -1 where there is none.
    columns : array of that shape
        The number of each column among all columns, -1 where there is none.
    """

    thread_part: Any
    numbers: Any
    columns: Any


def share_out(part: np.ndarray, parts: int, window: int, of_thread: int, threads: int) -> Slots:
    """Return slots for columns of these parts, in windows of `window` columns, each dealt to `threads` threads.

    Neighbouring columns of a part go to neighbouring threads, which then store to different banks of shared memory.
    """
    windows = math.ceil(len(part) / max(1, window))
    thread_part = np.full(windows * threads, -1, np.int32)
    numbers, columns = np.full((2, len(thread_part) * of_thread), -1, np.int32)
    slots_numba.share_out(part, parts, window, of_thread, threads, thread_part, numbers, columns)
    return Slots(thread_part, numbers, columns)


def threads_of(part: np.ndarray, parts: int, of_thread: int) -> int:
    """Return how many threads all columns take if they are one window."""
    return int(slots_numba.most_threads(part, parts, max(1, len(part)), of_thread, len(part)))


def fits_windows(part: np.ndarray, parts: int, window: int, of_thread: int, across: int) -> bool:
    """Return whether no window of this width needs more than `across` threads."""
    return bool(slots_numba.most_threads(part, parts, max(1, window), of_thread, across) <= across)


def window_of(part: np.ndarray, parts: int, of_thread: int, across: int) -> int:
    """Return a width, about the largest, at which no window needs more than `across` threads, which are 32 or more."""
    count = math.ceil(threads_of(part, parts, of_thread) / across)
    while True:
        window = math.ceil(len(part) / max(1, count) / _ALIGNED) * _ALIGNED
        if window <= across or fits_windows(part, parts, window, of_thread, across):
            return window
        count += max(1, count // 32)


def sort_by_part(part: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the columns of each part begin, (parts + 1), and the columns sorted by part, stably."""
    starts, columns = np.zeros(parts + 1, np.int32), np.empty(len(part), np.int32)
    slots_numba.sort_by_part(part, starts, columns)
    return starts, columns


def on_device(*arrays: np.ndarray) -> list[Any]:
    """Copy integers to the device as int32, by one copy."""
    import cupy

    ends = np.cumsum([len(array) for array in arrays])
    together = cupy.asarray(np.concatenate(arrays, dtype=np.int32, casting="same_kind"))
    return [together[end - len(array) : end] for array, end in zip(arrays, ends.tolist(), strict=True)]
