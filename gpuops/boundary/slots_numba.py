"""Counting and dealing out columns by part, in one pass over them: what `slots` does in loops."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def most_threads(part, parts, window, of_thread, enough=2**31):
    """The most threads that a window needs; more than `enough` may be less than that."""
    counts = np.zeros(parts, np.int64)
    most = 0
    for first in range(0, part.size, window):
        last = min(first + window, part.size)
        threads = 0
        for column in range(first, last):
            if counts[part[column]] % of_thread == 0:
                threads += 1
            counts[part[column]] += 1
        most = max(most, threads)
        if most > enough:
            break
        for column in range(first, last):
            counts[part[column]] = 0
    return most


@njit(nogil=True, cache=True)
def share_out(part, place, parts, window, of_thread, threads, thread_part, columns, places):
    """Fill the slots of `threads` threads of each window, where -1 stands before."""
    counts, seen, firsts = np.zeros(parts, np.int64), np.empty(parts, np.int64), np.empty(parts, np.int64)
    for w in range(thread_part.size // threads):
        first, last = w * window, min((w + 1) * window, part.size)
        for column in range(first, last):
            counts[part[column]] += 1
        thread = w * threads
        for p in range(parts):
            firsts[p] = thread
            counts[p] = (counts[p] + of_thread - 1) // of_thread  # of threads, from here on
            seen[p] = 0
            thread += counts[p]
        for column in range(first, last):
            p = part[column]
            turn = seen[p] // counts[p]
            thread = firsts[p] + seen[p] - turn * counts[p]
            seen[p] += 1
            thread_part[thread] = p
            columns[thread * of_thread + turn] = column - first
            places[thread * of_thread + turn] = place[column]
        counts[:] = 0


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
