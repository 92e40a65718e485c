"""Breadth-first searches from many vertices at once, where arcs have no weights, or all have the same weight.

64 searches share a machine word: bit i of a vertex's word says whether search i has reached the vertex. In each level,
an arc is read once for all searches that pass along it, and one "or" moves all these searches. If all vertices are a
few arcs apart, most searches pass along the same arcs in the same level, so 64 searches take about as long as a few. On
deep graphs, such as roads, searches would share few reads: there each search runs alone.

M. Then, M. Kaufmann, F. Chirigati, T.-A. Hoang-Vu, K. Pham, A. Kemper, T. Neumann, H. T. Vo, "The more the merrier:
efficient multi-source graph traversal", PVLDB 8, 2014.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops.arrays import check_vectors, is_cupy
from gpuops.csr import check_csr, check_vertices, contiguous
from gpuops.hops import hops_numba
from gpuops.numbers import outside_infinity

HOP_DTYPES = tuple(map(np.dtype, ("int32", "float32", "float64")))


def hop_distances(
    indptr: Any,
    indices: Any,
    sources: Any,
    *,
    length: float = 1,
    dtype: Any = "int32",
    through: Any = None,
    limit: float = math.inf,
    predecessors: bool = False,
    check: bool = True,
) -> Any:
    """Return the least number of arcs on a path from each source to each vertex, or the distance if arcs are equal.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) NumPy arrays
        The graph in compressed sparse rows, int32 or int64. Heads may stand in any order; loops and parallel arcs are
        allowed.
    sources : (k,) sequence of int
    length : number
        The length of every arc, not negative. The distance over h arcs has the bits of `shortest_distances`: a sum of h
        lengths, rounded after every addition.
    dtype : {"int32", "float32", "float64"}
        Dtype of the distances.
    through : (n,) NumPy array of bool, optional
        Whether a path may pass through each vertex; None: through every vertex. Paths may begin and end at any vertex.
    limit : float
        Vertices farther than this are unreachable; with NaN, all vertices except the sources.
    predecessors : bool
        Return predecessors, too.
    check : bool
        Check that the arrays form a graph. Pass False to skip the check if you know it.

    Returns
    -------
    distances : (k, n) array of `dtype`
        A row for each source; unreachable is 2^31 - 1, or +inf for floats.
    predecessors : (k, n) array of int32
        Only with `predecessors`: for each vertex, the lowest-numbered tail of an arc that ends a path of the fewest
        arcs; -1 at sources and unreachable vertices.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1, and there is no lower `limit`.
    TypeError, ValueError
        Another dtype, CuPy arrays, arrays that do not form a graph, a source that is not a vertex, or a length that is
        negative, not finite, or a fraction for int32.
    """
    dtype = np.dtype(dtype)
    if dtype not in HOP_DTYPES:
        raise TypeError(f"dtype is {dtype}; numbers of arcs are {', '.join(map(str, HOP_DTYPES))}")
    if is_cupy(indptr) or is_cupy(indices):
        raise TypeError(
            "these searches run on a CPU; pass NumPy arrays, or use batched_shortest_distances with equal weights"
        )
    if check:
        check_csr(indptr, indices)
        if len(indptr) > 2**31:
            raise ValueError(f"there are {len(indptr) - 1} vertices; at most 2^31 - 1 are supported")
    n = len(indptr) - 1
    vertices = check_vertices(sources, n)
    indptr = contiguous(indptr.astype(np.int64, copy=False))
    stops = indptr[1:]
    if through is not None:
        check_vectors({"indptr": indptr, "through": through})
        if through.dtype != bool or len(through) != n:
            raise ValueError(
                f"through is {through.dtype} of length {len(through)}; give a bool for each of {n} vertices"
            )
        stops = np.where(through, stops, indptr[:-1])
    values = _sums(length, n, dtype)
    unreachable = outside_infinity(dtype)
    fitting = int(np.searchsorted(values, unreachable))  # levels whose distance fits the dtype
    if dtype.kind == "f":
        limit = dtype.type(limit)
    within = 1 if math.isnan(limit) else max(1, int(np.searchsorted(values, limit, side="right")))
    bounded = dtype.kind == "f" or not limit >= unreachable
    levels = min(within, fitting) if bounded else fitting + 1  # a level of integers that do not fit is an error
    graph = indptr, stops, contiguous(indices.astype(np.int32, copy=False))
    values = values[:levels].astype(dtype, copy=False)
    levels = len(values)
    # Predecessors are told by distances, which must differ from level to level.
    by_levels = predecessors and not bool((values[1:] > values[:-1]).all())
    distances, deepest = hops_numba.rows(graph, vertices, np.arange(levels, dtype=np.int32) if by_levels else values)
    if deepest > fitting:
        raise OverflowError("distances exceed int32; use float64")
    if not predecessors:
        return distances
    trees = hops_numba.trees(
        graph, vertices, distances, distances.dtype.type(1) if by_levels or levels == 1 else values[1]
    )
    if by_levels:
        distances = np.append(values, unreachable)[np.minimum(distances, levels)].astype(dtype, copy=False)
    return distances, trees


def _sums(length: float, n: int, dtype: np.dtype) -> np.ndarray:
    """Return the sums of 0 to n - 1 lengths, float of `dtype` or int64 for integers."""
    if not (0 <= length < math.inf):
        raise ValueError(f"length is {length}; give a finite length of 0 or more")
    if dtype.kind != "f":
        if length != int(length):
            raise ValueError(f"length is {length}, a fraction, which int32 distances cannot have; use float64")
        most = int(outside_infinity(dtype))
        return np.minimum(np.arange(max(1, n)) * min(int(length), most), most)
    with np.errstate(over="ignore"):  # beyond the range of the dtype, vertices are unreachable
        sums = np.full(max(1, n), length, dtype)
        sums[0] = 0
        return np.add.accumulate(sums)
