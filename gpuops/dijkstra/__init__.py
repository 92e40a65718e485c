"""Dijkstra's algorithm for graphs of moderate size, with a minimum that is found in parallel.

Of the vertices that are reached and not settled, the *open* ones, Dijkstra settles the nearest. Finding it is the step
that takes long, and a minimum by butterfly (`gpuops.reduction`) is what parallelizes it. More than the nearest may be
settled at once: whatever path is still to come leaves an open vertex. In a round

1. find the least distance M of an open vertex, and the least length L of an open vertex's distance and its lightest
   arc out, both by butterfly;
2. settle every open vertex v with d(v) <= L (OUT), or with d(v) <= M plus the lightest arc into v (IN): every path
   that is still to come is as long;
3. relax the arcs of what has been settled.

Sums are rounded, which is monotone, and weights are not negative: so the criteria hold for the rounded lengths too,
distances have the bits of `shortest_distances`, and every arc is relaxed once. A random graph of n vertices with
uniform weights takes some n^(1/3) rounds, a road network many more.

A. Crauser, K. Mehlhorn, U. Meyer, P. Sanders, "A parallelization of Dijkstra's shortest path algorithm", MFCS 1998.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.csr import check_csr, check_vertices
from gpuops.dijkstra import dijkstra_cuda, dijkstra_numba
from gpuops.numbers import outside_infinity

METHODS = ("heap", "rounds")
DIJKSTRA_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32")))


def dijkstra(indptr: Any, indices: Any, weights: Any, source: int, *, method: str | None = None) -> tuple[Any, Any]:
    """Shortest paths from one vertex.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) arrays
        The graph in compressed sparse rows, NumPy or CuPy. Heads may stand in any order; loops and parallel arcs may be
        among them. Weights are float32, float64 or int32, the dtype of the distances, and not negative. An arc of
        weight +inf is none.
    source : int
    method : {"heap", "rounds"}, optional
        "heap" settles one vertex at a time, the nearest, which a heap gives; only on NumPy, and the default there.
        "rounds" settles all vertices that are provably final at once; the default on CuPy.

    Returns
    -------
    distances : (n,) array
        Of the library and dtype of `weights`; unreachable is +inf, or 2^31 - 1 for int32.
    predecessors : (n,) array of int32
        -1 at the source and where unreachable; a tree also where weights are zero. By rounds it is the vertex of the
        lowest number from which a shortest path arrives, of those that were settled in an earlier round.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1.
    TypeError, ValueError
        The arrays do not make up a graph, a weight is negative or NaN, the source is not a vertex, or CuPy with "heap".
    """
    _check_graph(indptr, indices, weights)
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
    """Shortest paths from many vertices, one heap a row, on the graph as it is given: nothing is laid out.

    For a graph that is searched once, or is small. `batched_shortest_distances` is faster on large ones.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) NumPy arrays
        As for `dijkstra`.
    sources : (k,) sequence of int
    together : bool
        All sources count as one, and there is one row: distances from the nearest.
    limit : float
        Vertices farther than this are unreachable; with NaN, all but the sources are.
    predecessors : bool
        Whether they are wanted.
    check : bool
        False: the caller's word that the arrays make up a graph and no weight is negative or NaN.

    Returns
    -------
    distances : (k, n) array, or (1, n) if `together`
        Of the dtype of `weights`; unreachable is +inf, or 2^31 - 1 for int32.
    predecessors : array of int32 of the same shape, or None
        -1 at sources and where unreachable; a forest also where weights are zero.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1, and there is no `limit`.
    TypeError, ValueError
        As for `dijkstra`; CuPy arrays among them.
    """
    if check:
        _check_graph(indptr, indices, weights)
    if is_cupy(weights):
        raise TypeError("a heap runs on a CPU; pass NumPy arrays, or use batched_shortest_distances")
    vertices = check_vertices(sources, len(indptr) - 1)
    indptr, indices = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
    kind = weights.dtype.type
    if kind is np.int32:
        most = outside_infinity(np.int32)
        farthest = -1 if math.isnan(limit) else most if limit >= most else math.floor(max(limit, -1))
    else:
        farthest = limit
    found = dijkstra_numba.heap_rows(indptr, indices, weights, vertices, together, kind(farthest), predecessors)
    return found


def solve(indptr: Any, indices: Any, weights: Any, source: int, method: str) -> tuple[Any, Any, int]:
    """`dijkstra` for arguments already checked, of int64, int32 and a distance dtype.

    Returns the distances, the predecessors, and how many vertices the heap settled or how many rounds there were.
    """
    half: Any = dijkstra_cuda if is_cupy(weights) else dijkstra_numba
    return getattr(half, method)(indptr, indices, weights, source)


def _check_graph(indptr: Any, indices: Any, weights: Any) -> None:
    check_csr(indptr, indices, weights=weights)
    for name, array in {"indptr": indptr, "indices": indices, "weights": weights}.items():
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not contiguous; pass a copy that is")
    if weights.dtype not in DIJKSTRA_DTYPES:
        raise TypeError(f"weights are {weights.dtype}; convert them to {', '.join(map(str, DIJKSTRA_DTYPES))}")
    if len(indptr) > 2**31:
        raise ValueError(f"there are {len(indptr) - 1} vertices; at most 2^31 - 1 are supported")
    if not bool((weights >= 0).all()):
        raise ValueError(
            "a weight is negative or NaN, which Dijkstra's algorithm does not allow; use shortest_distances"
        )
