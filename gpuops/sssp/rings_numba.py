"""Vertices that are due, in rings from which other threads may take some; and the end of a search of several threads.

Every thread has a ring. Only its owner appends vertices; the owner and other threads take vertices from the other end.
Positions only rise: whoever takes vertices first copies them and then moves the end on, which fails if another thread
was faster. A search ends when no thread is active. A thread is active while its ring or its wheel holds vertices, and
it becomes active before it takes vertices from another thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuops._atomics import add, exchange, load, store
from gpuops._inner_numba import inner

RING = 1024  # places in a ring, a power of two
_PUBLIC = 8  # numbers between the positions of two rings, so that each ring has a cache line of its own
_FEW = 8  # as few vertices are left to their owner


class Rings(NamedTuple):
    """The rings of all threads."""

    vertices: np.ndarray  # (threads, RING) int32
    ends: np.ndarray  # int64: of each ring the position of its first vertex, and after its last vertex
    levels: np.ndarray  # (threads,) float64: no vertex of the thread is nearer; inf: the thread has none
    active: np.ndarray  # (1,) int64: the number of active threads


def rings_of(threads: int) -> Rings:
    """Return empty rings. The first thread is active."""
    ends, active = np.zeros(threads * _PUBLIC, np.int64), np.ones(1, np.int64)
    return Rings(np.empty((threads, RING), np.int32), ends, np.full(threads, np.inf), active)


@inner
def offer(rings, me, due, count):
    """Append vertices to the own ring, which is empty."""
    last = rings.ends[me * _PUBLIC + 1]
    for i in range(count):
        rings.vertices[me, (last + np.int64(i)) & (RING - 1)] = due[i]
    store(rings.ends, me * _PUBLIC + 1, last + np.int64(count))


@inner
def take_own(rings, me, most, queue):
    """Take up to `most` vertices out of the own ring into `queue`, and return their number."""
    place = me * _PUBLIC
    while True:
        first = load(rings.ends, place)
        count = min(rings.ends[place + 1] - first, most)
        for i in range(count):
            queue[i] = rings.vertices[me, (first + i) & (RING - 1)]
        if count == 0 or exchange(rings.ends, place, first, first + count):
            return count


@inner
def steal(rings, me, active, level, most, queue):
    """Take up to `most` vertices out of the ring with the least level, if that is below `level`; return their number.

    If the thread is not active and finds vertices, it becomes active.
    """
    victim, least = -1, level
    for other in range(rings.levels.size):
        theirs = rings.levels[other]
        if theirs < least and other != me:
            place = other * _PUBLIC
            if load(rings.ends, place + 1) - load(rings.ends, place) > _FEW:
                victim, least = other, theirs
    if victim < 0:
        return 0
    if not active:
        add(rings.active, 0, 1)
    place = victim * _PUBLIC
    first = load(rings.ends, place)
    count = min((load(rings.ends, place + 1) - first) // 2, most)
    for i in range(count):
        queue[i] = rings.vertices[victim, (first + i) & (RING - 1)]
    if count > 0 and exchange(rings.ends, place, first, first + count):
        return count
    if not active:
        add(rings.active, 0, -1)
    return 0


@inner
def rest(rings):
    """Become inactive."""
    add(rings.active, 0, -1)


@inner
def all_rest(rings):
    """Return whether no thread is active."""
    return load(rings.active, 0) == 0


@inner
def least_level(rings):
    """Return the least level of all rings."""
    least = np.inf
    for level in rings.levels:
        least = min(least, level)
    return least
