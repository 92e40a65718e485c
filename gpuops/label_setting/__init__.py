"""Dijkstra's algorithm for graphs of moderate size, with a minimum that is found in parallel.

A vertex is *open* if it is reached and not settled. Dijkstra's algorithm settles the nearest open vertex. Finding this
vertex takes most of the time, and a minimum by butterfly (`gpuops.reduction`) parallelizes it. Further open vertices
can be settled in the same round, because any path found later leaves an open vertex. A round has three steps:

1. find the least distance M of an open vertex, and the least sum L of an open vertex's distance and its lightest arc
   out, both by butterfly;
2. settle every open vertex v with d(v) <= L (OUT), or with d(v) <= M plus the lightest arc into v (IN): any path to v
   found later is at least as long;
3. relax the arcs out of the vertices that were settled.

Rounding of sums is monotone and weights are not negative. So the criteria hold for the rounded lengths too, distances
have the bits of `shortest_distances`, and every arc is relaxed once. A random graph of n vertices with uniform weights
takes about n^(1/3) rounds, a road network many more.

A. Crauser, K. Mehlhorn, U. Meyer, P. Sanders, "A parallelization of Dijkstra's shortest path algorithm", MFCS 1998.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._halves import half_of, half_on
from gpuops.arrays import is_cupy
from gpuops.csr import check_count, check_csr, check_vertices

METHODS = ("heap", "rounds")
DIJKSTRA_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32")))


def dijkstra(indptr: Any, indices: Any, weights: Any, source: int, *, method: str | None = None) -> tuple[Any, Any]:
    """Find shortest paths from one vertex to all vertices.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) arrays
        The graph in compressed sparse rows, NumPy or CuPy. Heads may stand in any order; loops and parallel arcs are
        allowed. Weights are float32, float64 or int32, the dtype of the distances, and not negative. An arc of weight
        +inf is ignored.
    source : int
    method : {"heap", "rounds"}, optional
        "heap" settles one vertex at a time, the nearest, found by a heap; for NumPy arrays only, and their default.
        "rounds" settles at once all vertices that are provably final; the default for CuPy arrays.

    Returns
    -------
    distances : (n,) array
        Of the library and dtype of `weights`; unreachable is +inf, or 2^31 - 1 for int32.
    predecessors : (n,) array of int32
        -1 at the source and at unreachable vertices. The predecessors form a tree, also with weights of zero. With
        "rounds", the predecessor is the lowest-numbered tail of a tight arc that was settled in an earlier round.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1.
    TypeError, ValueError
        The arrays do not form a graph, a weight is negative or NaN, the source is not a vertex, or CuPy with "heap".

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> gpuops.dijkstra(indptr, indices, weights, 0)
    (array([0, 3, 4], dtype=int32), array([-1,  0,  1], dtype=int32))
    """
    check_graph(indptr, indices, weights)
    n = len(indptr) - 1
    if not 0 <= source < n:
        raise ValueError(f"source {source} is not a vertex; vertices are 0 to {n - 1}")
    on_gpu = is_cupy(weights)
    if method is None:
        method = "rounds" if on_gpu else "heap"
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose {' or '.join(METHODS)}")
    if on_gpu and method == "heap":
        raise ValueError("a heap runs on one thread of a CPU; pass NumPy arrays, or method='rounds'")

    indptr, indices = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
    distances, predecessors, _ = solve(indptr, indices, weights, int(source), method)
    return distances, predecessors


def dijkstra_rows(
    indptr: Any,
    indices: Any,
    weights: Any,
    sources: Any,
    *,
    together: bool = False,
    limit: float = math.inf,
    predecessors: bool = False,
    check: bool = True,
) -> tuple[Any, Any]:
    """Find shortest paths from many vertices, one heap for each row, on the graph in its given layout.

    Use it for a graph that is searched once, or is small. `batched_shortest_distances` is faster on large graphs.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) NumPy arrays
        As for `dijkstra`.
    sources : (k,) sequence of int
    together : bool
        True: return one row, the distances from the nearest source.
    limit : float
        Vertices farther than this are unreachable; with NaN, all vertices except the sources.
    predecessors : bool
        Whether to return predecessors.
    check : bool
        Check that the arrays form a graph and that no weight is negative or NaN. Pass False to skip the check if you
        know it.

    Returns
    -------
    distances : (k, n) array, or (1, n) if `together`
        Of the dtype of `weights`; unreachable is +inf, or 2^31 - 1 for int32.
    predecessors : array of int32 of the same shape, or None
        -1 at sources and at unreachable vertices. The predecessors form a forest, also with weights of zero.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1, and there is no `limit`.
    TypeError, ValueError
        As for `dijkstra`. CuPy arrays raise TypeError.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")  # of the arcs 0-1, 0-2, 1-2, 2-0
    >>> distances, before = gpuops.dijkstra_rows(indptr, indices, weights, [0, 1], predecessors=True)
    >>> distances.tolist(), before.tolist()
    ([[0, 3, 4], [3, 0, 1]], [[-1, 0, 1], [2, -1, 1]])
    """
    if check:
        check_graph(indptr, indices, weights)
    if is_cupy(weights):
        raise TypeError("a heap runs on a CPU; pass NumPy arrays, or use batched_shortest_distances")
    vertices = check_vertices(sources, len(indptr) - 1)
    indptr, indices = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
    farthest = farthest_within(limit, weights.dtype)
    heap_rows = half_on("label_setting.dijkstra", gpu=False).heap_rows
    return heap_rows(indptr, indices, weights, vertices, together, farthest, predecessors)


def farthest_within(limit: float, dtype: np.dtype) -> Any:
    """Return the greatest distance of `dtype` that is within a limit; no distance is within NaN."""
    if dtype.kind == "f":
        return dtype.type(limit)
    most = np.iinfo(dtype).max
    return dtype.type(-1 if math.isnan(limit) else most if limit >= most else math.floor(max(limit, -1)))


def solve(indptr: Any, indices: Any, weights: Any, source: int, method: str) -> tuple[Any, Any, int]:
    """Run `dijkstra` on arguments that are already checked, of int64, int32 and a distance dtype.

    Returns the distances, the predecessors, and the number of vertices settled ("heap") or of rounds ("rounds").
    """
    half = half_of("label_setting.dijkstra", weights)
    return getattr(half, method)(indptr, indices, weights, source)


def check_graph(indptr: Any, indices: Any, weights: Any) -> None:
    """Refuse arrays that are not a graph that Dijkstra's algorithm can search."""
    check_csr(indptr, indices, weights=weights)
    for name, array in {"indptr": indptr, "indices": indices, "weights": weights}.items():
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not contiguous; pass a copy that is")
    if weights.dtype not in DIJKSTRA_DTYPES:
        raise TypeError(f"weights are {weights.dtype}; convert them to {', '.join(map(str, DIJKSTRA_DTYPES))}")
    check_count(indptr)
    if not bool((weights >= 0).all()):
        raise ValueError(
            "a weight is negative or NaN, which Dijkstra's algorithm does not allow; use shortest_distances"
        )
