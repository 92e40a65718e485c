"""Buckets on a wheel: shortest distances on a CPU in graphs of few arcs a vertex, such as grids and roads.

Every vertex that has to relax its arcs waits in the bucket of its distance, buckets being equally wide and the wheel
having room for the next `_BUCKETS` of them; what is due later waits in the last one, and is put in again when that
opens. A bucket is emptied in turns: take all that wait in it, relax their arcs, put the heads that came nearer into
their buckets, until none is left in this one.

Such graphs fit the caches, and what takes time is the processor's guesses: whether an arc improves its head, how long
a row is, whether a vertex waits already. So there is nothing to guess. A row is relaxed by fours, its last arc standing
in for those that are missing; what is found is written down every time, and counts if it is nearer; and a vertex that
came nearer again is put in again: `relaxed`, the distance at which it last relaxed its arcs, tells what is out of date.

From those two rows of distances the wheel can be filled anew at any time: that is how a search begins, and what is done
when the list of entries is full or the width of the buckets does not suit.

R. Dial, "Algorithm 360: shortest-path forest with topological ordering", Communications of the ACM 12, 1969;
U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gpuops.numbers import outside_infinity
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

# The wheel is faster than windows and pulls up to so many arcs a vertex, if no row is so many times as long as most.
_DEGREE, _HUB = 8, 32
_BUCKETS = 1024  # a power of two
_WIDTH = 0.5  # of a bucket at first, in median weights
_FOUR = np.uint64(4)
_LATEST = 4e18  # buckets that an int64 can count
_AGAIN = 1 / 4  # of the vertices that relax their arcs: if more do so again, buckets are halved


class _Profile(NamedTuple):
    stops: np.ndarray  # where rows end; where they begin if the vertex is closed
    per_distance: float  # buckets a unit of distance


_profiles: weakref.WeakKeyDictionary[Any, _Profile] = weakref.WeakKeyDictionary()


def suits(graph: Any) -> bool:
    """Are rows so short that reading them by parts, or from the other end, gains nothing?"""
    return are_short(graph.n, graph.m, int(graph.indptr[1]) if graph.n else 0)


def are_short(n: int, m: int, longest: int) -> bool:
    """The same of n rows of m arcs in all."""
    return m <= _DEGREE * n and longest * n <= _HUB * max(m, n)


def turn_wheel(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None, limit: Any = None) -> int:
    """`improve` of `gpuops.sssp.sssp_numba`; returns how often vertices relaxed their arcs."""
    infinity = outside_infinity(graph.dtype)
    profile = _profile(graph)
    vertices, closed = starting_vertices(graph, distances, pending)
    nearer = relax_closed(graph, distances, closed)
    relaxed = distances.copy()
    relaxed[vertices] = relaxed[nearer] = infinity
    farthest = infinity if limit is None else limit
    taken = _turn(
        graph.indptr, profile.stops, graph.indices, graph.weights, distances, relaxed, profile.per_distance, farthest,
        infinity,
    )  # fmt: skip
    if limit is None:
        refuse_overflow(graph, distances, closed)
    return taken


def _profile(graph: Any) -> _Profile:
    if graph not in _profiles:
        stops = graph.indptr[1:]
        if graph.through is not None:
            stops = np.where(graph.through, stops, graph.indptr[:-1])
        positive = graph.weights[graph.weights > 0]
        middle = len(positive) // 2
        width = _WIDTH * float(np.partition(positive, middle)[middle]) if len(positive) else 1.0
        _profiles[graph] = _Profile(stops, 1 / max(width, 1e-300))
    return _profiles[graph]


@njit(nogil=True, cache=True)
def _turn(indptr, stops, indices, weights, distances, relaxed, per_distance, farthest, infinity):
    n, mask = distances.size, np.int64(_BUCKETS - 1)
    first = np.empty(_BUCKETS, np.int32)  # entry of each bucket; the entry after each, and its vertex:
    after, vertex = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
    queue, found = np.empty(n + 1, np.int32), np.empty(indices.size + n + 4, np.int32)
    used, base = 0, np.int64(0)
    total, taken, again, empty = 0, 0, 0, 0
    idle = 0  # buckets that were empty one after the other
    full = True  # the wheel has to be filled anew
    while True:
        if full:
            used, base = _fill(distances, relaxed, per_distance, mask, first, after, vertex)
            idle = 0
        if full or 8 * taken > n:
            total += taken
            taken, again, empty = 0, 0, 0
        if idle > mask or base > _bucket(farthest, per_distance):
            return total + taken
        slot = np.uint64(base & mask)
        idle += 1
        empty += 1
        full = False
        while first[slot] >= 0 and not full:
            idle = 0
            entry = first[slot]
            first[slot] = -1
            size, count, repeated = _take(
                entry, base, per_distance, after, vertex, distances, relaxed, infinity, queue, found
            )
            taken += size
            again += repeated
            count = _relax(indptr, stops, indices, weights, distances, queue, size, found, count)
            full = used + count > 2 * n
            if not full:
                used = _put(found, count, distances, per_distance, base, mask, first, after, vertex, used)
        # Filling takes n steps, so there is time for it after as many others.
        if 8 * taken > n and again > _AGAIN * taken and per_distance < 1e300:
            per_distance, full = 2 * per_distance, True
        elif empty > n + mask:
            per_distance, full = per_distance / 2, True
        base += 1


@njit(nogil=True, cache=True)
def _bucket(distance, per_distance):
    return np.int64(min(distance * per_distance, _LATEST))


@njit(nogil=True, cache=True)
def _fill(distances, relaxed, per_distance, mask, first, after, vertex):
    """Put in all vertices that have to relax their arcs; returns the entries in use and the first bucket."""
    used, base = 0, np.int64(2**62)
    for v in range(distances.size):
        if distances[v] < relaxed[v]:
            vertex[used] = v
            used += 1
            base = min(base, _bucket(distances[v], per_distance))
    first[:] = -1
    for entry in range(used):
        slot = min(_bucket(distances[vertex[entry]], per_distance), base + mask) & mask
        after[entry] = first[slot]
        first[slot] = entry
    return used, base


@njit(nogil=True, cache=True)
def _take(entry, base, per_distance, after, vertex, distances, relaxed, infinity, queue, found):
    """Take the vertices of a bucket out: into `queue` what is due, into `found` what has to wait for longer.

    Returns how many, and how many of the former have been here before.
    """
    size, count, repeated = np.uint64(0), np.uint64(0), np.uint64(0)
    while entry >= 0:
        v = np.uint64(vertex[np.uint64(entry)])
        entry = after[np.uint64(entry)]
        distance, before = distances[v], relaxed[v]
        waits, due = distance < before, _bucket(distance, per_distance) <= base
        queue[size] = v
        size += np.uint64(waits & due)
        repeated += np.uint64(waits & due & (before != infinity))
        found[count] = v
        count += np.uint64(waits & (not due))
        relaxed[v] = distance if due else before
    return size, count, repeated


@njit(nogil=True, cache=True)
def _relax(indptr, stops, indices, weights, distances, queue, size, found, count):
    """Relax the arcs of vertices in `queue`, and append the heads that come nearer to `found`."""
    kind, one = distances.dtype.type, np.uint64(1)
    for i in range(size):
        tail = np.uint64(queue[i])
        distance = distances[tail]
        begin, end = np.uint64(indptr[tail]), np.uint64(stops[tail])
        for start in range(begin, end, _FOUR):
            for k in range(4):
                arc = min(start + np.uint64(k), end - one)
                head = np.uint64(indices[arc])
                nearer, known = distance + weights[arc], distances[head]  # int32 sums are int64 here
                distances[head] = kind(min(nearer, known))
                found[count] = head
                count += np.uint64(nearer < known)
    return count


@njit(nogil=True, cache=True)
def _put(found, count, distances, per_distance, base, mask, first, after, vertex, used):
    for i in range(count):
        v = np.uint64(found[i])
        slot = np.uint64(min(_bucket(distances[v], per_distance), base + mask) & mask)
        vertex[np.uint64(used)] = v
        after[np.uint64(used)] = first[slot]
        first[slot] = used
        used += 1
    return used
