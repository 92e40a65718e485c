"""Constants of a graph that windows and pulls use on a CPU; see `gpuops.sssp.search_numba`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops._compiled_numba import inner
from gpuops.numbers import outside_infinity
from gpuops.sssp.kept import kept_with_graph

# Width of the first window, in units of the mean weight divided by the mean degree. The width doubles if a window
# relaxed fewer than two arcs for each waiting vertex, and halves if most relaxed arcs have to be relaxed again.
_WIDTH = 0.5
_LEAST = 2.0**-40  # least mean of reduced weights, relative to the terms that are added: a smaller mean is rounding

_RANGES, _RANGE = 256, 2**13  # most ranges of a pull; arcs of a range if there are fewer ranges
_ROW, _READ = 2, 4  # cost of visiting a row, in arcs; most arcs of a row that count as read


class Profile(NamedTuple):
    """Constants of a graph. With potentials p, first weights are w - p[head], in the transpose w + p[tail]."""

    lightest: np.ndarray  # first weight of a row; infinity if the row is empty or the vertex is closed
    in_lightest: np.ndarray  # first weight of a row of the transpose
    entering: np.ndarray  # number of arcs that lead to a vertex
    cuts: np.ndarray  # first vertices of ranges of about equal cost to pull, and n; empty without the transpose
    width: float  # width of the first window
    magnitude: float  # an upper bound of potentials, and of a weight plus potentials; 0 without potentials


@kept_with_graph
def profile(graph: Any) -> Profile:
    """Return the constants of a graph."""
    potentials = graph.potentials
    lightest = _lightest(graph.indptr, graph.indices, graph.weights, potentials)
    in_lightest, entering, cuts = lightest, np.zeros(graph.n, np.int32), np.zeros(0, np.int64)
    if graph.in_indptr is not None:
        shifts = None if potentials is None else -potentials
        in_lightest = _lightest(graph.in_indptr, graph.in_indices, graph.in_weights, shifts)
        entering = np.diff(graph.in_indptr).astype(np.int32)
        costs = np.zeros(graph.n + 1, np.int64)
        np.cumsum(_ROW + np.minimum(entering, _READ), out=costs[1:])
        ranges = min(_RANGES, 1 + int(costs[-1]) // _RANGE)
        inside = np.searchsorted(costs, np.arange(1, ranges) * (costs[-1] / ranges))
        cuts = np.unique([0, *inside, graph.n])
    if graph.through is not None:
        lightest = np.where(graph.through, lightest, never(graph))
    mean, magnitude = float(graph.weights.mean(dtype=np.float64)) if graph.m else 0.0, 0.0
    if potentials is not None:
        heaviest = float(graph.weights.max())
        magnitude = 2 * float(np.abs(potentials).max()) + max(heaviest, -float(graph.weights.min()))
        mean = max(_mean_reduced(graph), _LEAST * magnitude)
    active = np.count_nonzero(graph.indptr[1:] > graph.indptr[:-1])
    width = _WIDTH * mean * active / max(graph.m, 1)
    return Profile(lightest, in_lightest, entering, cuts, width, magnitude)


def _mean_reduced(graph: Any) -> float:
    """Return the mean of the reduced weights of arcs out of open vertices; other reduced weights may be negative."""
    degrees, heads, weights = np.diff(graph.indptr), graph.indices, graph.weights
    if graph.through is not None:
        counts = np.repeat(graph.through, degrees)
        degrees, heads, weights = degrees * graph.through, heads[counts], weights[counts]
    total = weights.sum(dtype=np.float64) + degrees @ graph.potentials - graph.potentials[heads].sum()
    return float(total) / max(len(heads), 1)


def _lightest(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, potentials: Any) -> np.ndarray:
    rows = np.flatnonzero(indptr[1:] > indptr[:-1])
    first = weights[indptr[rows]]
    if potentials is not None:
        first = first - potentials[indices[indptr[rows]]]
    result = np.full(len(indptr) - 1, outside_infinity(first.dtype), first.dtype)
    result[rows] = first
    return result


def never(graph: Any) -> Any:
    """Return the key of unreachable vertices, greater than the key of any reached vertex."""
    return outside_infinity(graph.dtype if graph.potentials is None else np.dtype(np.float64))


@inner
def less(length, vertex, potentials):
    """Return `length` less the potential of `vertex`: the key of a distance, or the part of a key that an arc adds."""
    return length if potentials is None else np.float64(length) - potentials[vertex]
