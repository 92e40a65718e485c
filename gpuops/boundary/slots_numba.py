"""Counting and dealing out columns by part, in one pass over them: the loops of `slots`.

Numba tests whether a signed index counts from the end; unsigned ones take half of the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def look_up(vertices, part, place):
    """The part and the place of some vertices, int32."""
    own_part, own_place = np.empty(vertices.size, np.int32), np.empty(vertices.size, np.int32)
    for i in range(vertices.size):
        own_part[i], own_place[i] = part[vertices[i]], place[vertices[i]]
    return own_part, own_place


@njit(nogil=True, cache=True)
def most_threads(part, parts, window, of_thread, enough):
    """The most threads that a window needs; or, once that is more than `enough`, a lower bound of it."""
    counts = np.zeros(parts, np.int64)
    most = 0
    for first in range(0, part.size, window):
        for column in range(first, min(first + window, part.size)):
            counts[part[column]] += 1
        slots = 0
        for p in range(parts):
            slots += (counts[p] + of_thread - 1) & -of_thread
            counts[p] = 0
        most = max(most, slots // of_thread)
        if most > enough:
            break
    return most


@njit(nogil=True, cache=True)
def share_out(part, place, parts, window, of_thread, threads, thread_part, columns, places):
    """Fill the slots of `threads` threads of each window; all hold -1 before. No branch depends on a column."""
    shares, firsts = np.zeros(parts, np.int64), np.empty(parts, np.int64)  # threads of a part: how many, the first
    seen, reciprocals = np.empty(parts, np.int64), np.empty(parts, np.float64)
    for w in range(thread_part.size // threads):
        first, last = w * window, min((w + 1) * window, part.size)
        for column in range(first, last):
            shares[part[column]] += 1
        thread = w * threads
        for p in range(parts):
            shares[p] = (shares[p] + of_thread - 1) // of_thread
            firsts[p], seen[p], reciprocals[p] = thread, 0, 1 / max(1, shares[p])
            for _ in range(shares[p]):
                thread_part[thread] = p
                thread += 1
        for column in range(first, last):
            own = np.uint64(part[column])
            rank = seen[own]
            seen[own] = rank + 1
            turn = np.int64((rank + 0.5) * reciprocals[own])  # rank / shares[own], rounded down
            slot = np.uint64((firsts[own] + rank - turn * shares[own]) * of_thread + turn)
            columns[slot], places[slot] = column - first, place[column]
        shares[:] = 0


@njit(nogil=True, cache=True)
def number_absent(columns, of_window, window, count):
    """Number the slots of each window that have no column, -1, on from its last column."""
    for w in range(columns.size // of_window):
        number = min(window, count - w * window)
        for slot in range(w * of_window, (w + 1) * of_window):
            absent = columns[slot] < 0
            columns[slot] = number if absent else columns[slot]
            number += absent


@njit(nogil=True, cache=True)
def sort_by_part(part, place, starts, columns, places):
    """A stable sort; `starts` is 0 before."""
    for column in range(part.size):
        starts[part[column] + 1] += 1
    for p in range(1, starts.size):
        starts[p] += starts[p - 1]
    ends = starts[:-1].copy()
    for column in range(part.size):
        own = np.uint64(part[column])
        end = np.uint64(ends[own])
        ends[own] += 1
        columns[end], places[end] = column, place[column]
