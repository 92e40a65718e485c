"""Detection of distances that int32 cannot hold, after a search on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._compiled_numba import entry
from gpuops.numbers import outside_infinity
from gpuops.sssp.kept import kept_with_graph
from gpuops.sssp.sources_numba import Begins


def refuse_overflow(graph: Any, distances: np.ndarray, begins: Begins) -> None:
    """Raise OverflowError if some vertex is reached by sums of 2^31 - 1 and more only, after a search in int32.

    Searches add in 64 bits and store only sums below the value for unreachable, so such a vertex seems unreachable.
    """
    if graph.dtype.kind == "f":
        return
    infinity = outside_infinity(np.int32)
    passed_on = distances if graph.through is None else np.where(graph.through, distances, infinity)
    reached = passed_on[passed_on != infinity].max(initial=0)
    if max(int(reached), int(begins[1].max(initial=0))) + _heaviest(graph) < infinity:
        return  # no sum can be that large; most searches end here and compile no further check
    rising = graph.potentials is None  # rows are sorted by weight
    for vertices, starts in ((np.arange(graph.n), passed_on), begins):
        arrays = graph.indptr, graph.indices, graph.weights, rising, distances, vertices, starts
        if _lost(*arrays, infinity):
            raise OverflowError("distances exceed int32; use float64")


@kept_with_graph
def _heaviest(graph: Any) -> int:
    return int(graph.weights.max(initial=0))


@entry
def _lost(indptr, indices, weights, rising, distances, vertices, starts, infinity):
    for i in range(vertices.size):
        if starts[i] == infinity:
            continue
        arc, begin = indptr[vertices[i] + 1] - 1, indptr[vertices[i]]
        while arc >= begin:
            if starts[i] + weights[arc] < infinity:
                if rising:  # earlier arcs are lighter
                    break
            elif distances[indices[arc]] == infinity:
                return True
            arc -= 1
    return False
