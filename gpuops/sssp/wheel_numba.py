"""Buckets on a wheel: shortest distances on a CPU in graphs with few arcs a vertex, such as grids and roads.

Every vertex that has to relax its arcs waits in the bucket of its distance (`gpuops.sssp.buckets_numba`). The vertices
of a bucket are taken out, their arcs are relaxed, and heads that came nearer are put into their buckets, until no
vertex is left in this bucket. Then the next bucket opens.

Each thread has its own wheel, and there are no barriers. The vertices that a thread has taken out lie in a ring
(`gpuops.sssp.rings_numba`). A thread whose next bucket is some buckets farther than the vertices in another ring takes
some of these, and puts the heads that came nearer into its own wheel. Threads do not take vertices for the lead of a
bucket or two: a thread that works next to vertices of another thread has to fetch their distances from its caches.
Distances only fall, by atomic minima, and a thread that lowers a distance puts the vertex into its wheel. So at the end
no arc improves a distance, whatever the threads did.

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

from gpuops._atomics import add, elements, load, lower, prefetch, rolled, sleep
from gpuops._compiled_numba import entry, inner
from gpuops._threads import for_all, threads_for
from gpuops.numbers import outside_infinity
from gpuops.sssp.buckets_numba import (
    BASE,
    SPARE,
    WAITING,
    chunks_of,
    empty_wheel,
    open_next,
    put,
    take,
    waiting_vertices,
    with_room,
)
from gpuops.sssp.kept import kept_with_graph
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.rings_numba import RING, offer, richest, rings_of, take_out
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

# The wheel is faster than windows and pulls if a vertex has at most _DEGREE arcs on average, and no row is more than
# _HUB times as long as the average.
_DEGREE, _HUB = 8, 32
_WIDTH = 0.5  # first width of a bucket, in median weights
_REPEATED = 1 / 4  # buckets are halved if a greater share of the vertices that relax their arcs does so again
_SAMPLED = 16  # one of so many vertices is counted when it repeats: all of their marks would not stay in the caches
_IDLE = 16  # buckets are doubled if a greater number is empty for each vertex that relaxes its arcs
_PASSED = 1024  # fewer empty buckets do not count
_LEAD = 3  # a thread takes vertices from another thread if its next bucket is more buckets ahead of them
_AHEAD = 8  # a thread waits if its next bucket is more buckets ahead of another thread
_CHUNKS = 4096  # chunks of a new wheel
_SOME = 32  # vertices that are relaxed together
# Cost of relaxing the arcs of a vertex, in relaxations of a dense matrix. It takes longer, but more threads did not
# make a search of 115,600 vertices faster.
_WORK = 32
_PATIENCE, _NAP = 64, np.uint32(20)  # looks for vertices in vain before a thread sleeps; microseconds of sleep
_ACTIVE, _TAKEN, _AGAIN, _EMPTY = range(4)  # numbers of a thread: 1 if active; vertices, repeated ones; empty buckets


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
    if not graph.m:
        vertices = vertices[:0]  # compiled code reads at least one arc for each vertex
    farthest = infinity if limit is None else limit
    threads = threads_for(_WORK * graph.n)
    rings, relaxed = rings_of(threads), np.zeros(graph.n // _SAMPLED + 1, np.uint8)
    vertices = vertices.astype(np.int32)
    period, taken = max(1, graph.n // (8 * threads)), []

    def work(me: int) -> None:
        some = RING + _SOME * (profile.longest + 4)  # most vertices that are put in at once
        room = chunks_of(some)
        found, per_distance = np.empty(some, distances.dtype), profile.per_distance
        scratch = np.empty(some, np.int32), found, np.empty(RING, np.int32)
        queue, counts = np.empty(_SOME, np.int32), np.zeros(4, np.int64)
        starts = vertices if me == 0 else vertices[:0]
        counts[_ACTIVE] = me == 0
        wheel = empty_wheel(max(_CHUNKS, room + chunks_of(len(starts))))
        while not _turn(
            graph.indptr, profile.stops, graph.indices, graph.weights, distances, relaxed, starts,
            distances[starts], per_distance, farthest, profile.leaves, period, *wheel, *rings, me, *scratch, queue,
            counts, room,
        ):  # fmt: skip
            starts, before = vertices[:0], per_distance
            if wheel.numbers[SPARE] < room:
                wheel = with_room(wheel, room)
                continue
            if counts[_TAKEN] > period and counts[_AGAIN] > _REPEATED * counts[_TAKEN] and before < 1e300:
                per_distance *= 2
            elif counts[_EMPTY] > _IDLE * counts[_TAKEN] + _PASSED and before > 1e-300:
                per_distance /= 2
            if per_distance != before:
                starts = waiting_vertices(wheel, distances, before)
                wheel = empty_wheel(max(_CHUNKS, room + chunks_of(len(starts))))
            taken.append(int(counts[_TAKEN]))
            counts[[_TAKEN, _AGAIN, _EMPTY]] = 0
        taken.append(int(counts[_TAKEN]))

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


@entry
def _turn(
    indptr, stops, indices, weights, distances, relaxed, starts, begins, per_distance, farthest, leaves, period,
    held, following, places, numbers, ring_vertices, ends, levels, active, me, heads, found, due, queue,
    counts, room,
):  # fmt: skip
    """Do the work of one thread, and return whether all threads are done; `starts` are put in first.

    Otherwise the wheel needs room, or `period` vertices have relaxed their arcs, or many buckets are empty. The caller
    sees to that, and calls again.
    """
    threads, waited, last = levels.size, 0, indices.size - 1
    vertices, given, count = elements(starts), elements(begins), starts.size
    indptr, stops, indices, weights = elements(indptr), elements(stops), elements(indices), elements(weights)
    distances, relaxed = elements(distances), elements(relaxed)
    held, following, places, numbers = elements(held), elements(following), elements(places), elements(numbers)
    ring_vertices, ends, levels, active = elements(ring_vertices), elements(ends), elements(levels), elements(active)
    heads, found, due = elements(heads), elements(found), elements(due)
    queue, counts = elements(queue), elements(counts)
    while True:
        put(held, following, places, numbers, vertices, given, count, per_distance, indptr)
        if numbers[SPARE] < room:
            return False
        vertices, given, count = heads, found, 0
        size = take_out(ring_vertices, ends, me, me, queue, _SOME)
        if size == 0:
            if counts[_TAKEN] > period or counts[_EMPTY] > _IDLE * counts[_TAKEN] + _PASSED:
                return False
            level, waiting = np.inf, numbers[WAITING] > 0
            if waiting:
                counts[_EMPTY] += open_next(places, numbers)
                level = numbers[BASE] / per_distance
            levels[me] = level
            if threads > 1:
                victim = richest(ends, levels, threads, me, level - _LEAD / per_distance)
                if victim >= 0:
                    change = 0 if counts[_ACTIVE] else 1
                    add(active, 0, change)
                    size = take_out(ring_vertices, ends, victim, me, queue, _SOME)
                    if size == 0:
                        add(active, 0, -change)
        if size == 0:
            if not waiting:
                add(active, 0, -counts[_ACTIVE])
                counts[_ACTIVE] = 0
                if load(active, 0) == 0:
                    return True
            ahead = not waiting
            for other in range(threads):
                rolled()
                ahead |= level - _AHEAD / per_distance > levels[other]
            if ahead:
                waited += 1
                if waited > _PATIENCE:
                    sleep(_NAP)
                continue
            dues, count = take(held, following, places, numbers, distances, per_distance, due, heads, found, RING)
            for i in range(dues):
                rolled()
                row = indptr[due[i]]
                prefetch(indices, row)
                prefetch(weights, row)
            offer(ring_vertices, ends, me, due, dues)
            continue
        counts[_ACTIVE], waited = 1, 0
        count, repeated = _relax(indptr, stops, indices, weights, last, distances, relaxed, queue, size, heads, found)
        count = _lower(distances, threads > 1, farthest, leaves, heads, found, count)
        counts[_TAKEN] += size
        counts[_AGAIN] += repeated


@inner
def _relax(indptr, stops, indices, weights, last, distances, relaxed, queue, size, heads, found):
    """Find the heads that come nearer, and their new distances; return their number.

    Returns also the number of repeated vertices, estimated from a sample.
    """
    count, repeated = 0, 0
    for i in range(size):
        rolled()
        begin = indptr[queue[i]]
        for k in range(3):
            arc = begin + k
            prefetch(distances, indices[arc if arc < last else last])
    for i in range(size):
        rolled()
        tail = queue[i]
        if tail & (_SAMPLED - 1) == 0:
            repeated += _SAMPLED * relaxed[tail // _SAMPLED]
            relaxed[tail // _SAMPLED] = 1
        distance, start, end = distances[tail], indptr[tail], stops[tail]
        while start < end:
            for k in range(4):
                arc = start + k
                arc = arc if arc < end else end - 1
                head = indices[arc]
                nearer = distance + weights[arc]  # int32 sums are int64 here
                heads[count], found[count] = head, nearer  # a sum beyond int32 does not count
                count += nearer < distances[head]
            start += 4
    return count, repeated


@inner
def _lower(distances, shared, farthest, leaves, heads, found, count):
    """Lower the distances of the heads. Keep the heads that have to relax their arcs, and return their number."""
    kept = 0
    for i in range(count):
        rolled()
        head, distance = heads[i], found[i]
        if distance >= distances[head]:
            continue
        if not shared:
            distances[head] = distance
        elif lower(distances, head, distance) <= distance:
            continue
        heads[kept], found[kept] = head, distance
        kept += (head < leaves) & (distance <= farthest)
    return kept
