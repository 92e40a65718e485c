"""The sources of a search on a CPU: open vertices, and closed vertices, which relax their arcs once at the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._compiled_numba import entry
from gpuops.numbers import outside_infinity

Begins = tuple[np.ndarray, np.ndarray]  # closed vertices, and the distances at which paths begin there


def starting_vertices(graph: Any, distances: np.ndarray, pending: np.ndarray | None) -> tuple[np.ndarray, Begins]:
    """Return the vertices whose arcs are to be relaxed: the open vertices, and separately the closed vertices.

    These are all reached vertices, the vertices in the mask `pending`, or the vertices that `pending` lists. A closed
    vertex relaxes its arcs at the distance that it has now, whatever a search finds later.
    """
    if pending is not None and pending.dtype != bool:
        vertices = pending
    else:
        begins = distances != outside_infinity(graph.dtype)
        if pending is not None:
            begins &= pending
        vertices = np.flatnonzero(begins)
    if graph.through is None:
        return vertices, (vertices[:0], distances[:0])
    closed = vertices[~graph.through[vertices]]
    return vertices[graph.through[vertices]], (closed, distances[closed])


def relax_closed(graph: Any, distances: np.ndarray, begins: Begins) -> np.ndarray:
    """Relax the arcs that leave closed vertices, in place, and return the heads that came nearer."""
    if not len(begins[0]):
        return np.zeros(0, np.int64)
    nearer = np.zeros(graph.n, bool)
    _relax(graph.indptr, graph.indices, graph.weights, distances, *begins, nearer)
    return np.flatnonzero(nearer)


@entry
def _relax(indptr, indices, weights, distances, closed, starts, nearer):
    for i in range(closed.size):
        for arc in range(indptr[closed[i]], indptr[closed[i] + 1]):
            distance, head = starts[i] + weights[arc], indices[arc]
            if distance < distances[head]:
                distances[head] = distance
                nearer[head] = True
