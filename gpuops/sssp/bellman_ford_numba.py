"""Shortest paths with weights of any sign on a CPU: Bellman, Ford and Moore's queue, with Tarjan's disassembly.

The arcs that improved distances last form trees. When a vertex comes nearer, its descendants will come nearer, too. So
its subtree is taken apart: the vertices of the subtree need not relax their arcs until they are reached again. If the
subtree contains the tail of the arc that improves its root, the arc closes a cycle, which is negative. So a negative
cycle is found with the first arc that closes it, not after n rounds.

In floating point a decrease can be lost by rounding on the way down the subtree. So an arc whose sum equals the
distance of a vertex that was taken out of its tree puts the vertex back, and the vertex relaxes its arcs: no arc is
left out. Rounding can also lower the distances around a cycle whose exact weight is not negative. The arc that closes
such a cycle is taken like any other arc; if that happens again and again, distances fall forever.

B. V. Cherkassky, A. V. Goldberg, "Negative-cycle detection algorithms", Mathematical Programming 85, 1999 (BFCT).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._compiled_numba import entry, reverse
from gpuops.errors import NegativeCycleError
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

_SPARE_CYCLES = 64  # cycles that may fall by rounding, in addition to one for each vertex


def bellman_ford(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None) -> int:
    """Relax arcs like `improve` of `gpuops.sssp.sssp_numba`, for weights and distances of any sign.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached; its vertices are in the internal numbering.
    OverflowError
        int32 distances that would leave the range of the dtype.
    """
    n = graph.n
    distances += distances.dtype.type(0)  # +0.0 for -0.0
    begin, closed = starting_vertices(graph, distances, pending)
    begin = np.union1d(begin, relax_closed(graph, distances, closed))
    active = (graph.indptr[1:] > graph.indptr[:-1]) & (True if graph.through is None else graph.through)
    trees = _no_trees(n)
    queue, queued = np.empty(n + 1, np.int32), np.zeros(n, bool)
    cycle = np.empty(n, np.int32)
    begin = begin[active[begin]]
    queue[: len(begin)] = begin
    queued[begin] = True
    _plant(begin, *trees)
    first, size, rounds = 0, len(begin), 0
    for _ in range(n + _SPARE_CYCLES):
        first, size, passed, length = _scan(
            graph.indptr, graph.indices, graph.weights, active, distances, queue, queued, first, size, *trees, cycle,
        )  # fmt: skip
        rounds += passed
        if length < 0:
            raise OverflowError("distances exceed int32; use float64")
        if length == 0:
            refuse_overflow(graph, distances, closed)
            return rounds
        vertices = cycle[:length].tolist()
        weight = _weight(graph, vertices)
        if weight < 0:
            raise NegativeCycleError(f"negative cycle of {length} vertices and weight {weight:g}", vertices, weight)
    raise NegativeCycleError(
        "distances keep falling around a cycle whose weight rounds to less than 0; use int32 weights or float64"
    )


def _weight(graph: Any, cycle: list[int]) -> float:
    """Return the exact weight of a cycle; there are no parallel arcs."""
    weights = []
    for tail, head in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        row = slice(graph.indptr[tail], graph.indptr[tail + 1])
        weights.append(graph.weights[row][graph.indices[row] == head][0].item())
    return math.fsum(weights) if graph.dtype.kind == "f" else sum(weights)


# The vertices of all trees, in preorder, form one ring with the links `after` and `before`. The ring begins at n, the
# parent of all roots, which has depth -1. The state of a vertex is 0 until it is first put into a tree.

_IN_TREE, _TAKEN_OUT = 1, 2


def _no_trees(n: int) -> tuple[np.ndarray, ...]:
    parents, depths = np.full(n, -1, np.int32), np.full(n + 1, -1, np.int32)
    after, before, states = np.full(n + 1, n, np.int32), np.full(n + 1, n, np.int32), np.zeros(n, np.uint8)
    return parents, depths, after, before, states


@entry
def _plant(roots, parents, depths, after, before, states):
    for root in roots:
        _insert(root, parents.size, depths, after, before, states)


@entry
def _insert(vertex, parent, depths, after, before, states):
    depths[vertex] = depths[parent] + 1
    following = after[parent]
    after[parent], before[vertex] = vertex, parent
    after[vertex], before[following] = following, vertex
    states[vertex] = _IN_TREE


@entry
def _take_apart(root, tail, depths, after, before, states):
    """Take the subtree of `root` out of the ring; return whether `tail` was in it."""
    found = False
    vertex, depth = root, depths[root]
    while True:
        found |= vertex == tail
        states[vertex] = _TAKEN_OUT
        vertex = after[vertex]
        if depths[vertex] <= depth:
            break
    after[before[root]], before[vertex] = vertex, before[root]
    return found


@entry
def _scan(
    indptr, indices, weights, active, distances, queue, queued, first, size, parents, depths, after, before, states,
    cycle,
):  # fmt: skip
    """Relax arcs until the queue is empty, or an arc closes a cycle.

    Returns the beginning and the size of the queue, the number of rounds, and the length of the cycle: 0 for no cycle,
    -1 for a sum that does not fit the dtype.
    """
    n, room = distances.size, queue.size
    lowest = -(2**31)
    exact = distances.dtype.type(0.5) == 0  # integers
    rounds, left = 0, size  # left: vertices left in this round
    while size > 0:
        tail = queue[first]
        first = first + 1 if first + 1 < room else 0
        size -= 1
        queued[tail] = False
        if states[tail] == _IN_TREE:
            distance = distances[tail]
            for arc in range(indptr[tail], indptr[tail + 1]):
                head = indices[arc]
                nearer = distance + weights[arc]
                if nearer > distances[head] or (nearer == distances[head] and states[head] != _TAKEN_OUT):
                    continue
                if exact and nearer < lowest:
                    return first, size, rounds, -1
                closes = states[head] == _IN_TREE and _take_apart(head, tail, depths, after, before, states)
                distances[head] = nearer
                length, parent = 0, tail
                if closes:
                    # Collect the cycle from the tail up to the head, then reverse it. The head becomes a root.
                    vertex = tail
                    while vertex != head:
                        cycle[length] = vertex
                        length += 1
                        vertex = parents[vertex]
                    cycle[length] = head
                    length += 1
                    reverse(cycle[:length])
                    parent = n
                parents[head] = parent
                _insert(head, parent, depths, after, before, states)
                if active[head] and not queued[head]:
                    queued[head] = True
                    at = first + size
                    queue[at if at < room else at - room] = head
                    size += 1
                if closes:
                    return first, size, rounds, length
        left -= 1
        if left == 0:
            rounds += 1
            left = size
    return first, size, rounds, 0
