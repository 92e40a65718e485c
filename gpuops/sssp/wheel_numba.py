"""Buckets on a wheel: shortest distances on a CPU in graphs with few arcs a vertex, such as grids and roads.

Every vertex that has to relax its arcs waits in the bucket of its distance (`gpuops.sssp.buckets_numba`). The vertices
of a bucket are taken out, their arcs are relaxed, and heads that came nearer are put into their buckets, until no
vertex is left in this bucket. Then the next bucket opens.

Each thread has its own wheel, and there are no barriers. The vertices that a thread has taken out lie in a ring
(`gpuops.sssp.rings_numba`). A thread whose next bucket is farther than the vertices in another ring takes some of
these, and puts the heads that came nearer into its own wheel. Distances only fall, by atomic minima, and a thread that
lowers a distance puts the vertex into its wheel. So at the end no arc improves a distance, whatever the threads did.

The time goes into branches that the processor predicts badly, and into waiting for memory. So loops avoid branches: a
row is relaxed four arcs at a time, and the last arc is repeated to complete four. Every head is written to the list of
found vertices, and the list grows only if the head came nearer. And rows and distances are prefetched: the row of a
vertex when the vertex is put in and when it is taken out, and the distances of heads before arcs are relaxed.

A *leaf* relaxes no arcs: it has none, or only the one opposite to the arc by which it is reached. Leaves are numbered
last.

R. Dial, "Algorithm 360: shortest-path forest with topological ordering", Communications of the ACM 12, 1969;
U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003;
M. D'Antonio, T. S. Mai, H. Vandierendonck, "Wasp: Efficient Asynchronous Single-Source Shortest Path on Multicore
Systems via Work Stealing", SC 2025 (threads that take nearer vertices from each other).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gpuops._atomics import lower, prefetch, sleep
from gpuops._inner_numba import inner
from gpuops._threads import for_all, threads_for
from gpuops.numbers import outside_infinity
from gpuops.sssp.buckets_numba import (
    BASE,
    CHUNK,
    WAITING,
    empty_wheel,
    is_open,
    open_next,
    put,
    take_all,
    take_chunk,
    with_room,
)
from gpuops.sssp.kept import kept_with_graph
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.rings_numba import RING, all_rest, least_level, offer, rest, rings_of, steal, take_own
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

# The wheel is faster than windows and pulls if a vertex has at most _DEGREE arcs on average, and no row is more than
# _HUB times as long as the average.
_DEGREE, _HUB = 8, 32
_WIDTH = 0.5  # first width of a bucket, in median weights
_AGAIN = 1 / 4  # buckets are halved if a greater share of the vertices that relax their arcs does so again
_IDLE = 16  # buckets are doubled if a greater number is empty for each vertex that relaxes its arcs
_PASSED = 1024  # fewer empty buckets do not count
_FOUR = np.uint64(4)
_AHEAD = 8  # a thread waits if its next bucket is more buckets ahead of another thread
_CHUNKS = 4096  # chunks of a new wheel
_SOME = 32  # vertices that are relaxed together
# Cost of relaxing the arcs of a vertex, in relaxations of a dense matrix. It takes longer, but more threads did not
# make a search of 115,600 vertices faster.
_WORK = 32
_PATIENCE, _NAP = 64, np.uint32(20)  # looks for vertices in vain before a thread sleeps; microseconds of sleep


class _Profile(NamedTuple):
    stops: np.ndarray  # the end of each row; its beginning if the vertex is closed
    per_distance: float  # buckets per unit of distance
    longest: int  # arcs of the longest row
    leaves: int  # the first leaf


def suits(graph: Any) -> bool:
    """Return whether rows are so short that searches need neither read them in parts nor pull."""
    return are_short(graph.n, graph.m, _longest(graph))


def are_short(n: int, m: int, longest: int) -> bool:
    """Return whether n rows of m arcs in all are short, like `suits`; `longest` is the length of the longest row."""
    return m <= _DEGREE * n and longest * n <= _HUB * max(m, n)


def turn_wheel(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None, limit: Any = None) -> int:
    """Relax arcs like `improve` of `gpuops.sssp.sssp_numba`; return how often vertices relaxed their arcs."""
    infinity = outside_infinity(graph.dtype)
    profile = _profile(graph)
    vertices, closed = starting_vertices(graph, distances, pending)
    nearer = relax_closed(graph, distances, closed)
    if len(nearer):
        vertices = np.union1d(vertices, nearer)
    farthest = infinity if limit is None else limit
    threads = threads_for(_WORK * graph.n)
    rings, relaxed = rings_of(threads), np.zeros(graph.n, bool)
    bits = distances.view(f"i{distances.itemsize}")  # distances are not negative: their bits have the same order
    vertices = vertices.astype(np.int32)
    starts = (vertices, distances[vertices]), (vertices[:0], distances[:0])
    taken = []

    def work(me: int) -> None:
        found = np.empty(RING + _SOME * (profile.longest + 4), distances.dtype)
        taken.append(
            _turn(
                graph.indptr, profile.stops, graph.indices, graph.weights, distances, bits, relaxed,
                *starts[me > 0], profile.per_distance, farthest, profile.leaves,
                max(1, graph.n // (8 * threads)), empty_wheel(_CHUNKS), rings, me, found, found.view(bits.dtype),
            )
        )  # fmt: skip

    for_all(work, range(threads), _WORK * graph.n)
    if limit is None:
        refuse_overflow(graph, distances, closed)
    return sum(taken)


@kept_with_graph
def _longest(graph: Any) -> int:
    return int(np.diff(graph.indptr).max(initial=0))


@kept_with_graph
def _profile(graph: Any) -> _Profile:
    stops = graph.indptr[1:]
    if graph.through is not None:
        stops = np.where(graph.through, stops, graph.indptr[:-1])
    positive = graph.weights[graph.weights > 0]
    middle = len(positive) // 2
    width = _WIDTH * float(np.partition(positive, middle)[middle]) if len(positive) else 1.0
    inner = np.flatnonzero(np.diff(graph.indptr) > (1 if graph.symmetric else 0))
    return _Profile(stops, 1 / max(width, 1e-300), _longest(graph), int(inner[-1]) + 1 if len(inner) else 0)


@njit(nogil=True, cache=True)
def _turn(
    indptr, stops, indices, weights, distances, bits, relaxed, starts, begins, per_distance, farthest, leaves, period,
    wheel, rings, me, found, found_bits,
):  # fmt: skip
    """Do the work of one thread. The width of the buckets is looked at after every `period` vertices."""
    alone, active, waited = rings.levels.size == 1, me == 0, 0
    heads, due, queue = np.empty(found.size, np.int32), np.empty(RING, np.int32), np.empty(_SOME, np.int32)
    total, taken, again, empty = 0, 0, 0, 0
    if active:
        wheel = with_room(wheel, np.uint64(starts.size))
        put(wheel, starts, begins, np.uint64(starts.size), per_distance, indptr)
    while True:
        size = take_own(rings, me, _SOME, queue)
        if size == 0:
            before = per_distance
            if taken > period and again > _AGAIN * taken and per_distance < 1e300:
                per_distance = 2 * per_distance
            elif empty > _IDLE * taken + _PASSED and per_distance > 1e-300:
                per_distance = per_distance / 2
            if per_distance != before:
                vertices, kept, again = take_all(wheel, distances, before)
                wheel = with_room(wheel, again)
                put(wheel, vertices, kept, again, per_distance, indptr)
            if per_distance != before or taken > period:
                total += taken
                taken, again, empty = 0, 0, 0
            level, waiting = np.inf, wheel.numbers[WAITING] > 0
            if waiting:
                empty += open_next(wheel)
                level = wheel.numbers[BASE] / per_distance
            rings.levels[me] = level
            if not alone:
                size = steal(rings, me, active, level, _SOME, queue)
            if size == 0 and not waiting and active:
                rest(rings)
                active = False
            if size == 0 and not waiting and all_rest(rings):
                return total + taken
            if size == 0 and (not waiting or level - _AHEAD / per_distance > least_level(rings)):
                waited += 1
                if waited > _PATIENCE:
                    sleep(_NAP)
                continue
            if size == 0:
                wheel = _open(wheel, indptr, indices, weights, distances, per_distance, due, heads, found, rings, me)
                continue
        active, waited = True, 0
        count, repeated = _relax(indptr, stops, indices, weights, distances, relaxed, queue, size, heads, found)
        count = _lower(distances, bits, alone, farthest, leaves, heads, found, found_bits, count)
        wheel = with_room(wheel, count)
        put(wheel, heads, found, count, per_distance, indptr)
        taken += size
        again += repeated


@inner
def _open(wheel, indptr, indices, weights, distances, per_distance, due, later, found, rings, me):
    """Take vertices out of the first bucket into the own ring, and put vertices that have to wait in again."""
    dues, count, most = np.uint64(0), np.uint64(0), np.uint64(RING - CHUNK)
    while is_open(wheel) and dues <= most and count <= most:
        begin = dues
        dues, count = take_chunk(wheel, distances, per_distance, due, dues, later, found, count)
        for i in range(begin, dues):
            row = indptr[np.uint64(due[i])]
            prefetch(indices, row)
            prefetch(weights, row)
    offer(rings, me, due, dues)
    wheel = with_room(wheel, count)
    put(wheel, later, found, count, per_distance, indptr)
    return wheel


@inner
def _relax(indptr, stops, indices, weights, distances, relaxed, queue, size, heads, found):
    """Find the heads that come nearer, and their new distances; return their number, and that of repeated vertices."""
    kind, one, last = distances.dtype.type, np.uint64(1), np.uint64(indices.size - 1)
    count, repeated = np.uint64(0), 0
    for i in range(size):
        begin = np.uint64(indptr[np.uint64(queue[i])])
        for k in range(3):
            prefetch(distances, indices[min(begin + np.uint64(k), last)])
    for i in range(size):
        tail = np.uint64(queue[i])
        repeated += relaxed[tail]
        relaxed[tail] = True
        distance = distances[tail]
        begin, end = np.uint64(indptr[tail]), np.uint64(stops[tail])
        for start in range(begin, end, _FOUR):
            for k in range(4):
                arc = min(start + np.uint64(k), end - one)
                head = np.uint64(indices[arc])
                nearer = distance + weights[arc]  # int32 sums are int64 here
                heads[count], found[count] = head, kind(nearer)  # a sum beyond int32 does not count
                count += np.uint64(nearer < distances[head])
    return count, repeated


@inner
def _lower(distances, bits, alone, farthest, leaves, heads, found, found_bits, count):
    """Lower the distances of the heads. Keep the heads that have to relax their arcs, and return their number."""
    kept = np.uint64(0)
    for i in range(count):
        head, distance = np.uint64(heads[i]), found[i]
        if distance >= distances[head]:
            continue
        if alone:
            distances[head] = distance
        elif lower(bits, head, found_bits[i]) <= found_bits[i]:
            continue
        heads[kept], found[kept] = head, distance
        kept += np.uint64((head < leaves) & (distance <= farthest))
    return kept
