"""Columns of products are shared out to threads, each of which has columns of one part (boundary.cu)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

_SHARES = (15, 10, 7, 5, 4, 3, 2)  # sixteenths of a strip: how wide a window of columns is, the first that fits


class Slots(NamedTuple):
    """Which columns a thread computes; NumPy, or int32 on the device.

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


class Columns:
    """Columns of these parts, of so many parts in all, in windows of `window` columns."""

    def __init__(self, part: np.ndarray, parts: int, window: int):
        self.part, self.window, self.windows = part, window, math.ceil(len(part) / window)
        self.key = part
        if self.windows > 1:
            first = np.arange(self.windows, dtype=np.int32) * np.int32(parts)
            self.key = part + np.repeat(first, window)[: len(part)]
        self.counts = np.bincount(self.key, minlength=self.windows * parts).reshape(self.windows, parts)

    def threads(self, of_thread: int, across: int) -> int:
        """Of each window: `across`, or a multiple of it."""
        most = (-(-self.counts // of_thread)).sum(axis=1).max(initial=1)
        return max(1, math.ceil(most / across)) * across

    def share_out(self, place: np.ndarray, of_thread: int, across: int) -> Slots:
        """Their slots, and places: those of a window in threads of its own.

        Neighbouring columns of a part go to neighbouring threads, which so store to different banks of shared memory.
        """
        by_window = -(-self.counts // of_thread)
        threads = self.threads(of_thread, across)
        firsts = np.cumsum(by_window, axis=1) - by_window + np.arange(self.windows)[:, None] * threads
        shares, counts, firsts = by_window.ravel(), self.counts.ravel(), firsts.ravel()
        order = stable_order(self.key)
        rank, share = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts), np.repeat(shares, counts)
        turn = rank // share
        thread = np.repeat(firsts, counts) + rank - turn * share
        slot = thread * of_thread + turn
        thread_part = np.full(self.windows * threads, -1, np.int32)
        thread_part[thread] = self.part[order]
        columns, places = np.full((2, len(thread_part) * of_thread), -1, np.int32)
        columns[slot] = order if self.windows == 1 else order % self.window
        places[slot] = place[order]
        return Slots(thread_part, columns, places)


def in_windows(part: np.ndarray, parts: int, of_thread: int, across: int) -> Columns:
    """Columns in the widest windows of which each needs no more than `across` threads."""
    for share in _SHARES:
        columns = Columns(part, parts, across * of_thread * share // 16)
        if columns.threads(of_thread, across) == across:
            break  # the last one does: as few columns as threads
    return columns


def stable_order(numbers: np.ndarray) -> np.ndarray:
    """A stable sort; of 16-bit numbers it is one by digits, many times as fast."""
    narrow = numbers.astype(np.uint16) if len(numbers) and numbers.max() < 2**16 else numbers
    return np.argsort(narrow, kind="stable")
