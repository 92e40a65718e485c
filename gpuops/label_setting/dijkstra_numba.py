"""Dijkstra's algorithm on a CPU: the Numba half of `gpuops.label_setting`.

Each method uses one thread for a source. "heap" has four children to a node and moves a vertex up when its distance
falls. "rounds" does the rounds of the CUDA half, with the same results bit for bit.
"""

from __future__ import annotations

import numba
import numpy as np

from gpuops._compiled_numba import entry, inner
from gpuops._heap_numba import settle
from gpuops._threads import for_all
from gpuops.numbers import outside_infinity

Found = tuple[np.ndarray, np.ndarray, int]

_VISIT, _ARC = 128, 16  # cost of settling a vertex and of relaxing an arc, in relaxations of a dense matrix
_TASKS_A_THREAD = 16  # tasks for each thread: enough that all threads end at about the same time


def heap(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, source: int) -> Found:
    """Return distances and predecessors from `source`, and the number of vertices settled."""
    return _finish(weights, _by_heap(indptr, indices, weights, source, outside_infinity(weights.dtype)))


def heap_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    sources: np.ndarray,
    together: bool,
    limit: float,
    predecessors: bool,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return `gpuops.dijkstra_rows` of checked arguments; threads share the rows."""
    n, infinity = len(indptr) - 1, outside_infinity(weights.dtype)
    ends = np.array([len(sources)]) if together else np.arange(1, len(sources) + 1)
    distances = np.empty((len(ends), n), weights.dtype)
    trees = np.empty((len(ends) if predecessors else 0, n), np.int32)
    work = len(ends) * (_VISIT * n + _ARC * len(indices))
    size = -(-len(ends) // (_TASKS_A_THREAD * numba.config.NUMBA_NUM_THREADS))
    lost: list[bool] = []

    def fill(first: int) -> None:
        rows = first, min(first + size, len(ends))
        arrays = indptr, indices, weights, sources, ends
        lost.append(_settle_rows(*arrays, limit, infinity, distances, trees, *rows))

    for_all(fill, range(0, len(ends), max(size, 1)), work)
    if any(lost) and weights.dtype.kind == "i":
        raise OverflowError("distances exceed int32; use float64")
    return distances, trees if predecessors else None


def rounds(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, source: int) -> Found:
    """Return distances and predecessors from `source`, and the number of rounds."""
    return _finish(weights, _by_rounds(indptr, indices, weights, source, outside_infinity(weights.dtype)))


def _finish(weights: np.ndarray, found: tuple[np.ndarray, np.ndarray, int, bool]) -> Found:
    distances, predecessors, count, unfit = found
    if unfit and weights.dtype.kind == "i":
        raise OverflowError("distances exceed int32; use float64")
    return distances, predecessors, count


@entry
def _by_heap(indptr, indices, weights, source, infinity):
    n = len(indptr) - 1
    distances, predecessors = np.empty(n, weights.dtype), np.empty(n, np.int32)
    queue, place = np.empty(n, np.int32), np.empty(n, np.int32)
    distances[:], predecessors[:] = infinity, -1
    graph = indptr, indices, weights, np.empty(0, np.bool_)
    settled, unfit = settle(graph, np.array([source]), infinity, infinity, distances, predecessors, queue, place)
    if unfit:
        unfit = _leads_nowhere(indptr, indices, distances, infinity)
    return distances, predecessors, settled, unfit


@entry
def _settle_rows(indptr, indices, weights, sources, ends, limit, infinity, distances, predecessors, first, last):
    """Fill the rows `first` to `last` - 1; row i has the sources ends[i - 1] to ends[i] - 1.

    Returns whether a distance exceeded the range of its dtype.
    """
    n = len(indptr) - 1
    queue, place, unwanted = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    graph = indptr, indices, weights, np.empty(0, np.bool_)
    lost = False
    for i in range(first, last):
        tree = predecessors[i] if len(predecessors) else unwanted
        begin = ends[i - 1] if i > 0 else 0
        distances[i][:], tree[:] = infinity, -1
        group = sources[begin : ends[i]]
        _, unfit = settle(graph, group, limit, infinity, distances[i], tree, queue, place)
        if unfit and limit == infinity:
            lost |= _leads_nowhere(indptr, indices, distances[i], infinity)
    return lost


@entry
def _by_rounds(indptr, indices, weights, source, infinity):
    n, kind = len(indptr) - 1, weights.dtype.type
    distances, predecessors = np.full(n, infinity, weights.dtype), np.full(n, -1, np.int32)
    leaving, entering = _lightest_arcs(indptr, indices, weights, infinity)
    settled = np.full(n, n, np.int32)  # the round in which a vertex is settled
    fringe, queue, size, rounds = np.empty(n, np.int32), np.empty(n, np.int32), 1, 0
    distances[source], fringe[0] = 0, source
    while size > 0:
        nearest, least_to_leave = infinity, infinity
        for i in range(size):
            distance = distances[fringe[i]]
            nearest = kind(min(nearest, distance))
            least_to_leave = kind(min(least_to_leave, distance + leaving[fringe[i]]))
        kept, due = 0, n
        for i in range(size):
            vertex, distance = fringe[i], distances[fringe[i]]
            if distance <= least_to_leave or distance <= nearest + entering[vertex]:
                settled[vertex] = rounds
                due -= 1
                queue[due] = vertex
            else:
                fringe[kept] = vertex
                kept += 1
        size = kept
        for i in range(due, n):
            tail = queue[i]
            for arc in range(indptr[tail], indptr[tail + 1]):
                head, length = indices[arc], distances[tail] + weights[arc]  # int32 sums are int64 here
                if length < distances[head]:
                    if distances[head] == infinity:
                        fringe[size] = head
                        size += 1
                    distances[head] = kind(length)
        rounds += 1
    for tail in range(n):
        if distances[tail] < infinity:
            for arc in range(indptr[tail], indptr[tail + 1]):
                head = indices[arc]
                if settled[tail] < settled[head] < n and distances[tail] + weights[arc] == distances[head]:
                    if predecessors[head] < 0:  # tails rise, so the first one is the lowest
                        predecessors[head] = tail
    return distances, predecessors, rounds, _leads_nowhere(indptr, indices, distances, infinity)


@inner
def _lightest_arcs(indptr, indices, weights, infinity):
    """Return the weight of the lightest arc out of each vertex, and of the lightest arc into it."""
    n = len(indptr) - 1
    leaving, entering = np.full(n, infinity, weights.dtype), np.full(n, infinity, weights.dtype)
    for tail in range(n):
        for arc in range(indptr[tail], indptr[tail + 1]):
            leaving[tail] = min(leaving[tail], weights[arc])
            entering[indices[arc]] = min(entering[indices[arc]], weights[arc])
    return leaving, entering


@inner
def _leads_nowhere(indptr, indices, distances, infinity):
    """Return whether an arc leads from a reached vertex to a vertex that is not reached."""
    for tail in range(len(indptr) - 1):
        if distances[tail] < infinity:
            for arc in range(indptr[tail], indptr[tail + 1]):
                if distances[indices[arc]] == infinity:
                    return True
    return False
