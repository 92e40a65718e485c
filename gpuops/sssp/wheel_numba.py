"""Buckets on a wheel: shortest distances on a CPU in graphs with few arcs a vertex, such as grids and roads.

Every vertex that has to relax its arcs waits in the bucket of its distance. Buckets are equally wide, and the wheel
holds the next `_BUCKETS` buckets. A vertex that is due later waits in the last bucket, and is put in again when that
bucket opens. A bucket is emptied in turns: take out all vertices, relax their arcs, and put the heads that came nearer
into their buckets, until no vertex is left in this bucket.

Such graphs fit into the caches, and the time goes into branches that the processor predicts badly: whether an arc
improves its head, how long a row is, whether a vertex waits already. So the loops avoid these branches. A row is
relaxed four arcs at a time, and the last arc is repeated to complete four. Every head is written to the list of found
vertices, and the list grows only if the head came nearer. A vertex that came nearer again is put in again: `relaxed`,
the distance at which it last relaxed its arcs, shows which entries are out of date.

The wheel can be refilled from the distances and `relaxed` at any time. A search begins with it, and repeats it when the
list of entries is full or the width of the buckets does not suit.

R. Dial, "Algorithm 360: shortest-path forest with topological ordering", Communications of the ACM 12, 1969;
U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gpuops._inner_numba import inner
from gpuops.numbers import outside_infinity
from gpuops.sssp.kept import kept_with_graph
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

# The wheel is faster than windows and pulls if a vertex has at most _DEGREE arcs on average, and no row is more than
# _HUB times as long as the average.
_DEGREE, _HUB = 8, 32
_BUCKETS = 1024  # buckets on the wheel, a power of two
_WIDTH = 0.5  # first width of a bucket, in median weights
_FOUR = np.uint64(4)
_LATEST = 4e18  # greatest number of a bucket, within int64
_AGAIN = 1 / 4  # buckets are halved if a greater share of the vertices that relax their arcs does so again


class _Profile(NamedTuple):
    stops: np.ndarray  # the end of each row; its beginning if the vertex is closed
    per_distance: float  # buckets per unit of distance


def suits(graph: Any) -> bool:
    """Return whether rows are so short that searches need neither read them in parts nor pull."""
    return are_short(graph.n, graph.m, int(graph.indptr[1]) if graph.n else 0)


def are_short(n: int, m: int, longest: int) -> bool:
    """Return whether n rows of m arcs in all are short, like `suits`; `longest` is the length of the longest row."""
    return m <= _DEGREE * n and longest * n <= _HUB * max(m, n)


def turn_wheel(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None, limit: Any = None) -> int:
    """Relax arcs like `improve` of `gpuops.sssp.sssp_numba`; return how often vertices relaxed their arcs."""
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


@kept_with_graph
def _profile(graph: Any) -> _Profile:
    stops = graph.indptr[1:]
    if graph.through is not None:
        stops = np.where(graph.through, stops, graph.indptr[:-1])
    positive = graph.weights[graph.weights > 0]
    middle = len(positive) // 2
    width = _WIDTH * float(np.partition(positive, middle)[middle]) if len(positive) else 1.0
    return _Profile(stops, 1 / max(width, 1e-300))


@njit(nogil=True, cache=True)
def _turn(indptr, stops, indices, weights, distances, relaxed, per_distance, farthest, infinity):
    n, mask = distances.size, np.int64(_BUCKETS - 1)
    first = np.empty(_BUCKETS, np.int32)  # the first entry of each bucket
    after, vertex = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)  # the next entry, the vertex
    queue, found = np.empty(n + 1, np.int32), np.empty(indices.size + n + 4, np.int32)
    used, base = 0, np.int64(0)
    total, taken, again, empty = 0, 0, 0, 0
    idle = 0  # successive empty buckets
    full = True  # whether the wheel has to be refilled
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
        # Refilling takes n steps, so the width changes only after about as many other steps.
        if 8 * taken > n and again > _AGAIN * taken and per_distance < 1e300:
            per_distance, full = 2 * per_distance, True
        elif empty > n + mask:
            per_distance, full = per_distance / 2, True
        base += 1


@inner
def _bucket(distance, per_distance):
    return np.int64(min(distance * per_distance, _LATEST))


@inner
def _fill(distances, relaxed, per_distance, mask, first, after, vertex):
    """Put in all vertices that have to relax their arcs; return the number of entries and the first bucket."""
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


@inner
def _take(entry, base, per_distance, after, vertex, distances, relaxed, infinity, queue, found):
    """Take the vertices out of a bucket: due vertices into `queue`, vertices that have to wait longer into `found`.

    Returns both numbers, and the number of due vertices that relaxed their arcs before.
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


@inner
def _relax(indptr, stops, indices, weights, distances, queue, size, found, count):
    """Relax the arcs of the vertices in `queue`, and append the heads that come nearer to `found`."""
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


@inner
def _put(found, count, distances, per_distance, base, mask, first, after, vertex, used):
    for i in range(count):
        v = np.uint64(found[i])
        slot = np.uint64(min(_bucket(distances[v], per_distance), base + mask) & mask)
        vertex[np.uint64(used)] = v
        after[np.uint64(used)] = first[slot]
        first[slot] = used
        used += 1
    return used
