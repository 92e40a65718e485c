"""Vertices that are due, in rings from which other threads may take some; and the end of a search of several threads.

Every thread has a ring. Only its owner appends vertices; the owner and other threads take vertices from the other end.
Positions only rise: whoever takes vertices first copies them and then moves the end on, which fails if another thread
was faster. A search ends when no thread is active. A thread is active while its ring or its wheel holds vertices, and
it becomes active before it takes vertices from another thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuops._atomics import exchange, load, rolled, store
from gpuops._compiled_numba import inner

RING = 1024  # places in a ring, a power of two
_PUBLIC = 8  # numbers between the positions of two rings, so that each ring has a cache line of its own
_FEW = 8  # as few vertices are left to their owner


class Rings(NamedTuple):
    """The rings of all threads. Compiled functions take pointers to the arrays, which takes less time to compile."""

    vertices: np.ndarray  # int32: the places of all rings, one after the other
    ends: np.ndarray  # int64: of each ring the position of its first vertex, and after its last vertex
    levels: np.ndarray  # (threads,) float64: no vertex of the thread is nearer; inf: the thread has none
    active: np.ndarray  # (1,) int64: the number of active threads


def rings_of(threads: int) -> Rings:
    """Return empty rings. The first thread is active."""
    ends, active = np.zeros(threads * _PUBLIC, np.int64), np.ones(1, np.int64)
    return Rings(np.empty(threads * RING, np.int32), ends, np.full(threads, np.inf), active)


@inner
def offer(vertices, ends, me, due, count):
    """Append vertices to the own ring, which is empty."""
    last = ends[me * _PUBLIC + 1]
    for i in range(count):
        rolled()
        vertices[me * RING + ((last + np.int64(i)) & (RING - 1))] = due[i]
    store(ends, me * _PUBLIC + 1, last + np.int64(count))


@inner
def take_out(vertices, ends, ring, me, queue, most):
    """Take at most `most` vertices out of the own ring, or up to half of another; return their number.

    Only the owner tries again if another thread was faster.
    """
    place = ring * _PUBLIC
    while True:
        first = load(ends, place)
        count = load(ends, place + 1) - first
        if ring != me:
            count //= 2
        if count > most:
            count = most
        for i in range(count):
            rolled()
            queue[i] = vertices[ring * RING + ((first + i) & (RING - 1))]
        if count > 0 and exchange(ends, place, first, first + count):
            return count
        if count <= 0 or ring != me:
            return 0


@inner
def richest(ends, levels, threads, me, level):
    """Return the ring with the least level of those with more than a few vertices, or -1 if none is below `level`."""
    victim = -1
    for other in range(threads):
        rolled()
        theirs = levels[other]
        if theirs < level and other != me:
            place = other * _PUBLIC
            if load(ends, place + 1) - load(ends, place) > _FEW:
                victim, level = other, theirs
    return victim
