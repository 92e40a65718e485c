"""The Numba kernels of `gpuops.label_setting.near`."""

from __future__ import annotations

from itertools import pairwise

import numba
import numpy as np

from gpuops._compiled_numba import copy, entry, inner
from gpuops._heap_numba import settle
from gpuops._threads import for_all
from gpuops.numbers import outside_infinity

Graph = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, weights, through (or empty)

_TASKS_A_THREAD = 16  # tasks for each thread: enough that all threads end at about the same time
_WORK = 1 << 16  # assumed work of a search, in relaxations of a dense matrix; the true work is not known beforehand


def within_rows(graph: Graph, sources: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `gpuops.distances_within` of checked arguments; threads share the sources."""
    tasks = max(1, min(len(sources), _TASKS_A_THREAD * numba.config.NUMBA_NUM_THREADS))
    cuts = [len(sources) * i // tasks for i in range(tasks + 1)]
    infinity = outside_infinity(graph[2].dtype)
    found: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, bool]] = {}

    def search(rows: tuple[int, int]) -> None:
        counts, vertices, lengths, lost = _within(graph, sources[rows[0] : rows[1]], limit, infinity)
        order = np.lexsort((vertices, np.repeat(np.arange(len(counts)), counts)))  # Numba compiles np.sort for seconds
        found[rows[0]] = counts, vertices[order], lengths[order], lost

    for_all(search, list(pairwise(cuts)), len(sources) * _WORK)
    parts = [found[first] for first in cuts[:-1]]
    if graph[2].dtype.kind == "i" and any(part[3] for part in parts):
        raise OverflowError("distances exceed int32; use float64, or a smaller limit")
    starts = np.zeros(len(sources) + 1, np.int64)
    np.cumsum(np.concatenate([part[0] for part in parts]), out=starts[1:])
    return starts, np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])


@entry
def _within(graph, sources, limit, infinity):
    """Search from each source. Returns counts, vertices as found, distances, and whether a distance was lost."""
    n, kind = len(graph[0]) - 1, graph[2].dtype
    distances, before = np.full(n, infinity, kind), np.full(n, -1, np.int32)
    queue, place = np.empty(n, np.int32), np.empty(n, np.int32)
    counts, used, lost = np.empty(len(sources), np.int64), 0, False
    vertices, lengths = np.empty(64, np.int32), np.empty(64, kind)
    for i in range(len(sources)):
        count, unfit = settle(graph, sources[i : i + 1], limit, infinity, distances, before, queue, place)
        near = queue[n - count :]
        if used + count > len(vertices):
            room = max(used + count, 2 * len(vertices))
            more, longer = np.empty(room, np.int32), np.empty(room, kind)
            copy(vertices[:used], more)
            copy(lengths[:used], longer)
            vertices, lengths = more, longer
        if unfit and limit == infinity:
            for tail in near:
                for arc in range(graph[0][tail], graph[0][tail + 1]):
                    lost |= distances[graph[1][arc]] == infinity
        for vertex in near:
            vertices[used], lengths[used] = vertex, distances[vertex]
            distances[vertex], before[vertex] = infinity, -1
            used += 1
        counts[i] = count
    return counts, vertices[:used].copy(), lengths[:used].copy(), lost


@entry
def k_nearest(graph, places, k, limit, infinity):
    """Return `gpuops.k_nearest` of checked arguments; `graph` has the arcs reversed.

    The heap orders labels by distance, then by place. The vertex of the label that begins at a place is stored as its
    complement, as paths may begin at a closed vertex.
    """
    indptr, tails, weights, through = graph
    n = len(indptr) - 1
    found, lengths = np.full((n, k), -1, np.int32), np.full((n, k), infinity, weights.dtype)
    counts = np.zeros(n, np.int32)
    heap = np.empty(4 * len(places) + 64, weights.dtype), np.empty(4 * len(places) + 64, np.int32)
    at, size = np.empty(len(heap[0]), np.int32), 0
    for number in range(len(places)):
        _push(heap[0], heap[1], at, size, weights.dtype.type(0), number, ~places[number])
        size += 1
    while size > 0:
        length, number, vertex = heap[0][0], heap[1][0], at[0]
        size -= 1
        _sink(heap[0], heap[1], at, size)
        begins = vertex < 0
        vertex = ~vertex if begins else vertex
        if _has(found, counts, vertex, number):
            continue
        if counts[vertex] < k:
            found[vertex, counts[vertex]], lengths[vertex, counts[vertex]] = number, length
            counts[vertex] += 1
        elif not (begins and len(through) > 0):
            continue
        if len(through) > 0 and not through[vertex] and not begins:
            continue
        for arc in range(indptr[vertex], indptr[vertex + 1]):
            tail, farther = tails[arc], length + weights[arc]
            if not (farther <= limit and farther < infinity) or counts[tail] == k or _has(found, counts, tail, number):
                continue
            if size == len(at):
                heap = _longer(heap[0]), _longer(heap[1])
                at = _longer(at)
            _push(heap[0], heap[1], at, size, farther, number, tail)
            size += 1
    return found, lengths


@inner
def _has(found, counts, vertex, number):
    """Return whether a vertex has a label of a place."""
    for i in range(counts[vertex]):  # noqa: SIM110  (Numba compiles no generator expression here)
        if found[vertex, i] == number:
            return True
    return False


@inner
def _longer(array):
    more = np.empty(2 * len(array), array.dtype)
    copy(array, more)
    return more


@inner
def _before(length, number, other_length, other_number):
    return length < other_length or (length == other_length and number < other_number)


@inner
def _push(lengths, numbers, at, size, length, number, vertex):
    """Let a label rise from the end of the heap, whose nodes have four children."""
    hole = size
    while hole > 0:
        above = (hole - 1) // 4
        if not _before(length, number, lengths[above], numbers[above]):
            break
        lengths[hole], numbers[hole], at[hole] = lengths[above], numbers[above], at[above]
        hole = above
    lengths[hole], numbers[hole], at[hole] = length, number, vertex


@inner
def _sink(lengths, numbers, at, size):
    """Remove the first label: the last label of the heap, at the position `size`, sinks from the top."""
    length, number, vertex, hole = lengths[size], numbers[size], at[size], 0
    while 4 * hole + 1 < size:
        least = 4 * hole + 1
        for other in range(least + 1, min(4 * hole + 5, size)):
            if _before(lengths[other], numbers[other], lengths[least], numbers[least]):
                least = other
        if not _before(lengths[least], numbers[least], length, number):
            break
        lengths[hole], numbers[hole], at[hole] = lengths[least], numbers[least], at[least]
        hole = least
    lengths[hole], numbers[hole], at[hole] = length, number, vertex
