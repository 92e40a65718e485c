"""Columns of products are shared out to threads, each of which has columns of one part (boundary.cu)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops.boundary import slots_numba

_ALIGNED = 32  # columns, of which a window has a multiple


class Slots(NamedTuple):
    """Which columns a thread computes; int32, NumPy or on the device.

    Attributes
    ----------
    thread_part : (threads,) array
        The part of a thread's columns, -1 if it has none.
    columns : (threads * columns of a thread,) array
        Which column of its window each is, -1 where there is none.
    places : array of that shape
        Its place in its part, or -1.
    """

    thread_part: Any
    columns: Any
    places: Any


class ByPart(NamedTuple):
    """Columns in the order of their parts; int32, NumPy or on the device.

    Attributes
    ----------
    starts : (parts + 1,) array
        Where those of each part begin, and the end.
    columns, places : (columns,) arrays
        Which column each is, and its place in its part.
    """

    starts: Any
    columns: Any
    places: Any


def share_out(part: np.ndarray, place: np.ndarray, parts: int, window: int, of_thread: int, threads: int) -> Slots:
    """Slots for columns of these parts and places, in windows of so many columns, each shared out to so many threads.

    Neighbouring columns of a part go to neighbouring threads, which then store to different banks of shared memory.
    """
    windows = math.ceil(len(part) / max(1, window))
    thread_part = np.full(windows * threads, -1, np.int32)
    columns, places = np.full((2, len(thread_part) * of_thread), -1, np.int32)
    slots_numba.share_out(part, place, parts, window, of_thread, threads, thread_part, columns, places)
    return Slots(thread_part, columns, places)


def threads_of(part: np.ndarray, parts: int, of_thread: int) -> int:
    """How many threads all columns take together."""
    return int(slots_numba.most_threads(part, parts, max(1, len(part)), of_thread, len(part)))


def window_of(part: np.ndarray, parts: int, of_thread: int, across: int) -> int:
    """How wide windows may be so that none needs more than `across` threads; about the widest."""
    count = math.ceil(len(part) / (across * of_thread))
    while True:
        window = math.ceil(len(part) / max(1, count) / _ALIGNED) * _ALIGNED
        if window <= across or slots_numba.most_threads(part, parts, window, of_thread, across) <= across:
            return window
        count += max(1, count // 32)


def by_part(part: np.ndarray, place: np.ndarray, parts: int) -> ByPart:
    """Columns of these parts and places, sorted by part; the sort is stable."""
    starts, columns, places = (np.zeros(size, np.int32) for size in (parts + 1, len(part), len(part)))
    slots_numba.sort_by_part(part, place, starts, columns, places)
    return ByPart(starts, columns, places)


def stable_order(numbers: np.ndarray) -> np.ndarray:
    """A stable sort; of 16-bit numbers it is one by digits, many times as fast."""
    narrow = numbers.astype(np.uint16) if len(numbers) and numbers.max() < 2**16 else numbers
    return np.argsort(narrow, kind="stable")
