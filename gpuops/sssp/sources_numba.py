"""Where searches begin, and where int32 ends, on a CPU: what the kinds of search have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpuops.numbers import outside_infinity

Begins = tuple[np.ndarray, np.ndarray]  # closed vertices, and the distance at which paths begin at each


def starting_vertices(graph: Any, distances: np.ndarray, pending: np.ndarray | None) -> tuple[np.ndarray, Begins]:
    """The vertices whose arcs are to be relaxed: the open ones, and apart from them the closed ones.

    What a closed vertex passes on is the distance that it has now, whatever a search finds later.
    """
    begins = distances != outside_infinity(graph.dtype)
    if pending is not None:
        begins &= pending
    vertices = np.flatnonzero(begins)
    if graph.through is None:
        return vertices, (vertices[:0], distances[:0])
    closed = vertices[~graph.through[vertices]]
    return vertices[graph.through[vertices]], (closed, distances[closed])


def relax_closed(graph: Any, distances: np.ndarray, begins: Begins) -> np.ndarray:
    """Relax the arcs that leave closed vertices, in place; returns the heads that came nearer."""
    nearer = np.zeros(graph.n, bool)
    _relax(graph.indptr, graph.indices, graph.weights, distances, *begins, nearer)
    return np.flatnonzero(nearer)


@njit(nogil=True, cache=True)
def _relax(indptr, indices, weights, distances, closed, starts, nearer):
    for i in range(closed.size):
        for arc in range(indptr[closed[i]], indptr[closed[i] + 1]):
            distance, head = starts[i] + weights[arc], indices[arc]
            if distance < distances[head]:
                distances[head] = distance
                nearer[head] = True


def refuse_overflow(graph: Any, distances: np.ndarray, begins: Begins) -> None:
    """Raise OverflowError if only sums of 2^31 - 1 and more lead to some vertex, after a search in int32.

    Searches add in 64 bits and keep what is less than unreachable, so such a vertex seems unreachable.
    """
    if graph.dtype.kind == "f":
        return
    passed_on = distances if graph.through is None else np.where(graph.through, distances, outside_infinity(np.int32))
    rows = np.arange(graph.n)
    for vertices, starts in ((rows, passed_on), begins):
        if _lost(graph.indptr, graph.indices, graph.weights, distances, vertices, starts, outside_infinity(np.int32)):
            raise OverflowError("distances exceed int32; use float64")


@njit(nogil=True, cache=True)
def _lost(indptr, indices, weights, distances, vertices, starts, infinity):
    for i in range(vertices.size):
        if starts[i] == infinity:
            continue
        arc, begin = indptr[vertices[i] + 1] - 1, indptr[vertices[i]]
        while arc >= begin and starts[i] + weights[arc] >= infinity:  # the heaviest come last
            if distances[indices[arc]] == infinity:
                return True
            arc -= 1
    return False
