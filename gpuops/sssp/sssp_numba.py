"""Shortest paths from a set of vertices on a CPU: the Numba half of `gpuops.sssp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuops._threads import for_all
from gpuops.numbers import outside_infinity
from gpuops.sssp import bellman_ford_numba
from gpuops.sssp.batched_numba import batched as batched
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.search_numba import Search, pull, pull_rows
from gpuops.sssp.tree_numba import tree as tree
from gpuops.sssp.wheel_numba import suits, turn_wheel


def improve(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None, limit: Any = None) -> int:
    """Relax arcs until no arc improves a distance (`gpuops.sssp.improve_distances`).

    Weights must not be negative, unless the graph has potentials.

    Parameters
    ----------
    graph : SearchGraph
        In NumPy arrays.
    distances : (n,) array
        Upper bounds, in the internal numbering and the dtype of the graph, contiguous; changed in place. Without
        potentials they must not be negative.
    pending : (n,) array of bool, optional
        The vertices whose arcs are to be relaxed; None: all vertices that are reached. A closed vertex relaxes its arcs
        once, at the distance that it has on entry.
    limit : distance, optional
        Distances beyond the limit need not be final. A vertex beyond it may stay unreachable if its distance exceeds
        the dtype.

    Returns
    -------
    int
        Number of windows and passes of pulls, or of relaxed rows if the graph suits a wheel of buckets.

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    NegativeCycleError
        Rounded sums fall forever around a cycle; only with potentials.
    """
    distances += distances.dtype.type(0)  # +0.0 for -0.0
    if suits(graph):
        return turn_wheel(graph, distances, pending, limit)
    search = Search(graph, distances, pending, limit)
    if search.push():
        search.go_on_from(*pull(graph, pull_rows, distances, search.floor, search.last, search.late))
        search.push()
    if search.gave_up:
        return search.rounds + bellman_ford_numba.bellman_ford(graph, distances, graph.through)
    if limit is None:
        refuse_overflow(graph, distances, search.begins)
    return search.rounds


def bellman_ford(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None) -> int:
    """Relax arcs like `improve`, for weights and distances of any sign; calls `improve` if the graph has potentials.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached; its vertices are in the internal numbering.
    """
    if graph.potentials is None or not _stay_in_range(graph, distances):
        return bellman_ford_numba.bellman_ford(graph, distances, pending)
    return improve(graph, distances, pending)


def _stay_in_range(graph: Any, distances: np.ndarray) -> bool:
    """Return whether no sum along a walk can fall below the range of the dtype, by a bound from the potentials."""
    reached = np.flatnonzero(distances != outside_infinity(graph.dtype))
    if graph.dtype.kind == "f" or not len(reached):
        return True
    least = float((distances[reached] - graph.potentials[reached]).min())
    return least + float(graph.potentials.min()) > np.iinfo(graph.dtype).min


def shares_reads(graph: Any) -> bool:
    """Return whether searches gain from reading arcs together; otherwise each thread runs one search at a time."""
    return not (graph.negative or suits(graph))


def one_by_one(search: Callable[[int], Any], count: int) -> None:
    """Call `search` with every number below `count`, in threads."""
    for_all(search, range(count), 2**40)
