"""Detection of distances that int32 cannot hold, after a search on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import by_parts
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
    if max(_farthest(passed_on), int(begins[1].max(initial=0))) + _heaviest(graph) < infinity:
        return  # no sum can be that large; most searches end here and compile no further check
    rising = graph.potentials is None  # rows are sorted by weight
    for vertices, starts in ((np.arange(graph.n), passed_on), begins):
        arrays = graph.indptr, graph.indices, graph.weights, rising, distances, vertices, starts
        if _lost(*arrays, infinity):
            raise OverflowError("distances exceed int32; use float64")


def _farthest(distances: np.ndarray) -> int:
    """Return the greatest distance of a reached vertex, at least 0."""
    n, one = len(distances), np.int32(1)  # infinity plus one wraps around to the least number
    return max([0, *by_parts(lambda part: int((distances[part] + one).max()) - 1, n, n)])


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
