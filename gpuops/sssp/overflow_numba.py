"""Distances that int32 cannot hold, found after a search on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpuops.numbers import outside_infinity
from gpuops.sssp.sources_numba import Begins


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
