"""Counting and dealing out columns by part, in one pass over them: what `slots` does in loops."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def most_threads(part, parts, window, of_thread, enough):
    """The most threads that a window needs; more than `enough` may be less than that."""
    left = np.zeros(parts, np.int64)  # columns that the last thread of a part can take
    most = 0
    for first in range(0, part.size, window):
        last = min(first + window, part.size)
        threads = 0
        for column in range(first, last):
            p = part[column]
            if left[p] == 0:
                threads += 1
                left[p] = of_thread
            left[p] -= 1
        most = max(most, threads)
        if most > enough:
            break
        for column in range(first, last):
            left[part[column]] = 0
    return most


@njit(nogil=True, cache=True)
def share_out(part, place, order, window, of_thread, threads, thread_part, columns, places):
    """Fill the slots of `threads` threads of each window, where -1 stands before."""
    parts = order.size
    shares, firsts = np.zeros(parts, np.int64), np.empty(parts, np.int64)  # threads of a part: how many, the first
    ranks, turns = np.empty(parts, np.int64), np.empty(parts, np.int64)  # where the next column of a part goes
    for w in range(thread_part.size // threads):
        first, last = w * window, min((w + 1) * window, part.size)
        for column in range(first, last):
            shares[part[column]] += 1
        thread = w * threads
        for p in order:
            shares[p] = (shares[p] + of_thread - 1) // of_thread
            firsts[p], ranks[p], turns[p] = thread, 0, 0
            for _ in range(shares[p]):
                thread_part[thread] = p
                thread += 1
        for column in range(first, last):
            p = part[column]
            slot = (firsts[p] + ranks[p]) * of_thread + turns[p]
            columns[slot], places[slot] = column - first, place[column]
            ranks[p] += 1
            if ranks[p] == shares[p]:
                ranks[p] = 0
                turns[p] += 1
        shares[:] = 0


@njit(nogil=True, cache=True)
def sort_by_part(part, place, starts, columns, places):
    """A stable sort; `starts` is 0 before."""
    for column in range(part.size):
        starts[part[column] + 1] += 1
    for p in range(1, starts.size):
        starts[p] += starts[p - 1]
    ends = starts[:-1].copy()
    for column in range(part.size):
        p = part[column]
        columns[ends[p]] = column
        places[ends[p]] = place[column]
        ends[p] += 1
