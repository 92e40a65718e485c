"""Predecessors on a CPU: one pass over tight arcs, then a breadth-first search. See `shortest_path_tree`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import by_parts, for_all
from gpuops.csr import equal_ranges
from gpuops.numbers import outside_infinity
from gpuops.sssp.wheel_numba import suits

_TASKS = 64
_GATHER = 256  # cost of a random access, in relaxations of a dense matrix
_FOUR_ARCS = 48  # cost of four arcs of a road network, in relaxations of a dense matrix
_UNRESOLVED = np.int32(2**31 - 1)


def tree(graph: Any, distances: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Return a predecessor for each vertex that is reached.

    Parameters
    ----------
    graph : SearchGraph
        In NumPy arrays.
    distances : (n,) array
        In the internal numbering, as a search leaves them.
    roots : (n,) array of bool
        Vertices whose distance is a start. They have no predecessor, and may be predecessors even if closed.

    Returns
    -------
    (n,) array of int32
        -1 at roots and unreachable vertices.
    """
    n, infinity = graph.n, outside_infinity(graph.dtype)
    signed = graph.negative or bool((distances < 0).any())  # then smaller distances do not exclude cycles
    predecessors = np.full(n, -1, np.int32)
    passes_on = distances != infinity
    if graph.through is not None:
        passes_on &= graph.through | roots
    if not signed and graph.in_indptr is not None:
        arrays = (graph.in_indptr, graph.in_indices, graph.in_weights, distances, roots, passes_on, predecessors)
        look_back, work = (_look_back_by_fours, _FOUR_ARCS * n) if suits(graph) else (_look_back, _GATHER * n)
        by_parts(lambda part: look_back(*arrays, infinity, part.start, part.stop), n, work)
    elif not signed:
        _look_forth(graph.indptr, graph.indices, graph.weights, distances, roots, passes_on, predecessors, infinity)
    reached = distances != infinity
    resolved = reached & (roots | (predecessors >= 0))
    if not np.array_equal(resolved, reached):
        levels = np.where(resolved, 0, np.where(reached, _UNRESOLVED, -1)).astype(np.int32)
        stops, heads = graph.indptr[1:], graph.indices
        if signed:  # only the roots are resolved: read all arcs, in threads
            stops, heads = stops.copy(), np.empty_like(heads)
            arcs = graph.indptr, graph.indices, graph.weights, distances, passes_on, stops, heads
            for_all(lambda rows: _tight(*arcs, *rows), equal_ranges(graph.indptr, _TASKS), _GATHER * graph.m)
        _go_by_levels(graph.indptr, stops, heads, graph.weights, distances, passes_on, levels, predecessors, signed)
    return predecessors


@entry
def _look_back(in_indptr, in_indices, in_weights, distances, roots, passes_on, predecessors, infinity, first, last):
    """Take the first tight arc of each row that comes from a nearer tail."""
    for head in range(first, last):
        distance = distances[head]
        if distance == infinity or roots[head]:
            continue
        for arc in range(in_indptr[head], in_indptr[head + 1]):
            weight = in_weights[arc]
            if weight > distance:
                break
            tail = in_indices[arc]
            if distances[tail] < distance and distances[tail] + weight == distance and passes_on[tail]:
                predecessors[head] = tail
                break


@entry
def _look_back_by_fours(
    in_indptr, in_indices, in_weights, distances, roots, passes_on, predecessors, infinity, first, last
):  # fmt: skip
    """Do the same for short rows, four arcs at a time, to avoid branches (see `gpuops.sssp.wheel_numba`)."""
    one = np.uint64(1)
    for head in range(first, last):
        distance = distances[head]
        begin, end = np.uint64(in_indptr[head]), np.uint64(in_indptr[head + 1])
        found = np.int32(-1)
        for start in range(begin, end, np.uint64(4)):
            for k in range(3, -1, -1):
                arc = start + np.uint64(k)
                arc = arc if arc < end else end - one
                tail = np.uint64(in_indices[arc])
                nearer = (distances[tail] < distance) & passes_on[tail]
                found = np.int32(tail) if nearer & (distances[tail] + in_weights[arc] == distance) else found
            if found >= 0:
                break
        predecessors[head] = np.int32(-1) if (distance == infinity) | roots[head] else found


@entry
def _look_forth(indptr, indices, weights, distances, roots, passes_on, predecessors, infinity):
    """Do the same without the transpose: take the smallest tail that is nearer."""
    for tail in range(distances.size):
        distance = distances[tail]
        if not passes_on[tail]:
            continue
        for arc in range(indptr[tail], indptr[tail + 1]):
            head = indices[arc]
            known = distances[head]
            if known == infinity or roots[head] or predecessors[head] >= 0:
                continue
            if distance < known and distance + weights[arc] == known:
                predecessors[head] = tail


@entry
def _tight(indptr, indices, weights, distances, passes_on, stops, heads, first, last):
    """Write the heads of the tight arcs of each row to the beginning of the row in `heads`, and its end to `stops`."""
    for tail in range(first, last):
        at, distance = indptr[tail], distances[tail]
        if passes_on[tail]:
            for arc in range(indptr[tail], indptr[tail + 1]):
                head = indices[arc]
                heads[at] = head
                at += distance + weights[arc] == distances[head]
        stops[tail] = at


@entry
def _go_by_levels(indptr, stops, heads, weights, distances, passes_on, levels, predecessors, all_tight):
    """Search over tight arcs, breadth first, from the resolved vertices, which are level 0.

    A vertex takes the smallest tail of the level before.
    """
    n = distances.size
    queue = np.empty(n, np.int32)
    size = 0
    for vertex in range(n):
        if levels[vertex] == 0 and passes_on[vertex]:
            # If no weight is negative, an unresolved vertex is as far as its tail: only such arcs matter.
            arc = indptr[vertex]
            distance = distances[vertex]
            if arc < stops[vertex] and (all_tight or distance + weights[arc] == distance):
                queue[size] = vertex
                size += 1
    i = 0
    while i < size:
        tail = queue[i]
        i += 1
        distance, level = distances[tail], levels[tail] + 1
        for arc in range(indptr[tail], stops[tail]):
            head = heads[arc]
            if levels[head] < level or not (all_tight or distance + weights[arc] == distances[head]):
                continue
            if levels[head] == _UNRESOLVED:
                levels[head] = level
                predecessors[head] = tail
                if passes_on[head]:
                    queue[size] = head
                    size += 1
            else:
                predecessors[head] = min(predecessors[head], tail)
