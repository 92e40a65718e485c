"""Shortest paths on a CPU: the Numba half of `gpuops.sssp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuops._threads import by_parts, for_all
from gpuops.csr.csr_numba import gather
from gpuops.numbers import outside_infinity
from gpuops.sssp import bellman_ford_numba
from gpuops.sssp.batched_numba import batch as batch
from gpuops.sssp.finish_numba import finish
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.pulls_numba import pull, pull_rows
from gpuops.sssp.search_numba import Search
from gpuops.sssp.tree_numba import tree as tree
from gpuops.sssp.wheel_numba import suits, turn_wheel

_STREAM = 4  # cost of storing a distance, in relaxations of a dense matrix


def search(graph: Any, sources: np.ndarray, starts: np.ndarray, limit: Any = None, targets: Any = None) -> np.ndarray:
    """Return the shortest distances from the nearest of some sources, in the original numbering.

    Parameters
    ----------
    graph : SearchGraph
        In NumPy arrays.
    sources : (k,) array of int
    starts : (k,) array
        The distances at which paths begin.
    limit : distance, optional
        Vertices farther than this are unreachable.
    targets : array of int, optional
        Vertices farther than the farthest target that can be reached are unreachable.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached; its vertices are in the internal numbering.
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    distances, infinity = np.empty(graph.n, graph.dtype), outside_infinity(graph.dtype)
    # By threads, because the system takes time to hand out new memory.
    by_parts(lambda part: distances[part].fill(infinity), graph.n, _STREAM * graph.n)
    begin = graph.rank[sources]
    distances[begin] = starts
    signed = graph.negative or bool((starts < 0).any())
    outside = np.empty_like(distances)
    _, gathered = _relax(graph, distances, None if signed else np.unique(begin), limit, signed, outside)
    distances = outside if gathered else gather(distances, graph.rank)
    if targets is not None:
        reached = distances[targets]
        reached = reached[(reached != infinity) if limit is None else (reached <= limit)]
        limit = reached.max() if reached.size else limit
    if limit is not None:
        distances[distances > limit] = infinity
    return distances


def improve(graph: Any, distances: np.ndarray, pending: np.ndarray | None = None) -> int:
    """Relax arcs until no arc improves a distance (`gpuops.sssp.improve_distances`); raises the errors of `search`.

    Returns
    -------
    int
        Number of windows and passes of pulls, or of relaxed rows if the graph suits a wheel of buckets.
    """
    distances += distances.dtype.type(0)  # +0.0 for -0.0
    signed = graph.negative or bool((distances < 0).any())
    return _relax(graph, distances, pending, None, signed, distances[:0])[0]


def _relax(
    graph: Any, distances: np.ndarray, pending: np.ndarray | None, limit: Any, signed: bool, outside: np.ndarray
) -> tuple[int, bool]:
    """Relax arcs like `improve`. Distances beyond the limit need not be final; some may stay unreachable.

    `signed`: weights or distances may be negative. Returns also whether `outside`, of n elements or none, now has the
    distances in the original numbering.
    """
    if signed and (graph.potentials is None or not _stay_in_range(graph, distances)):
        return bellman_ford_numba.bellman_ford(graph, distances, pending), False
    if suits(graph):
        return turn_wheel(graph, distances, pending, limit), False
    search = Search(graph, distances, pending, limit)
    pulls = search.push()
    finished = pulls and graph.potentials is None
    if finished:
        search.rounds += finish(graph, distances, search.floor, search.last, outside)
    elif pulls:
        search.go_on_from(*pull(graph, pull_rows, distances, search.floor, search.last, search.late))
        search.push()
    if search.gave_up:
        return search.rounds + bellman_ford_numba.bellman_ford(graph, distances, graph.through), False
    if limit is None:
        refuse_overflow(graph, distances, search.begins)
    return search.rounds, finished


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
