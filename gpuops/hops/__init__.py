"""Breadth-first searches from many vertices at once, where arcs have no weights, or all have the same weight.

64 searches share a machine word: bit i of a vertex's word says whether search i has reached the vertex. In each level,
an arc is read once for all searches that pass along it, and one "or" moves all these searches. If all vertices are a
few arcs apart, most searches pass along the same arcs in the same level, so 64 searches take about as long as a few. On
deep graphs, such as roads, searches would share few reads: there each search runs alone on a CPU.

On a GPU up to 1,024 searches share 32 words of a vertex, a word for each lane of a warp. If most vertices are reached
in a level, arcs are read against their direction, until all searches have seen a vertex.

M. Then, M. Kaufmann, F. Chirigati, T.-A. Hoang-Vu, K. Pham, A. Kemper, T. Neumann, H. T. Vo, "The more the merrier:
efficient multi-source graph traversal", PVLDB 8, 2014; S. Beamer, K. Asanovic, D. Patterson, "Direction-optimizing
breadth-first search", SC 2012.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._halves import half_on
from gpuops.arrays import is_cupy, library_of, like
from gpuops.csr import check_count, check_csr, check_through, check_vertices
from gpuops.numbers import multiples, outside_infinity

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
    transposed: tuple[Any, Any] | None = None,
    check: bool = True,
) -> Any:
    """Return the least number of arcs on a path from each source to each vertex, or the distance if arcs are equal.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        The graph in compressed sparse rows, int32 or int64, NumPy or CuPy. Heads may stand in any order; loops and
        parallel arcs are allowed.
    sources : (k,) sequence of int
    length : number
        The length of every arc, not negative. The distance over h arcs has the bits of `shortest_distances`: a sum of h
        lengths, rounded after every addition.
    dtype : {"int32", "float32", "float64"}
        Dtype of the distances.
    through : (n,) array of bool, optional
        Whether a path may pass through each vertex; None: through every vertex. Paths may begin and end at any vertex.
    limit : float
        Vertices farther than this are unreachable; with NaN, all vertices except the sources.
    predecessors : bool
        Return predecessors, too.
    transposed : (indptr, indices), optional
        The graph with all arcs reversed, which a GPU reads too; by default every call on a GPU computes it. Pass the
        graph itself if it is symmetric. It is not checked.
    check : bool
        Check that the arrays form a graph. Pass False to skip the check if you know it.

    Returns
    -------
    distances : (k, n) array of `dtype`
        Of the library of `indptr`. A row for each source; unreachable is 2^31 - 1, or +inf for floats.
    predecessors : (k, n) array of int32
        Only with `predecessors`: for each vertex, the lowest-numbered tail of an arc that ends a path of the fewest
        arcs; -1 at sources and unreachable vertices.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1, and there is no lower `limit`.
    TypeError, ValueError
        Another dtype, arrays of different libraries, arrays that do not form a graph, a source that is not a vertex, or
        a length that is negative, not finite, or a fraction for int32.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> gpuops.hop_distances(indptr, indices, [0, 1])
    array([[0, 1, 1],
           [2, 0, 1]], dtype=int32)
    """
    dtype = np.dtype(dtype)
    if dtype not in HOP_DTYPES:
        raise TypeError(f"dtype is {dtype}; numbers of arcs are {', '.join(map(str, HOP_DTYPES))}")
    if check:
        check_csr(indptr, indices)
        check_count(indptr)
    n = len(indptr) - 1
    vertices = check_vertices(sources, n)
    check_through(through, indptr)
    step = _step(length, dtype)
    fitting, levels = _levels(step, max(1, n), limit)
    gpu = is_cupy(indptr)
    half = half_on("hops.hops", gpu)
    graph = half.prepared(indptr, indices, through, transposed)
    # Predecessors are told by distances, which must differ from level to level, or by numbers of arcs.
    by_levels = predecessors and (gpu or not step or not bool((np.diff(multiples(step, levels)) > 0).all()))
    own = np.int32(1) if by_levels else step
    distances, deepest = half.rows(graph, vertices, own, levels)
    if deepest > fitting:
        raise OverflowError("distances exceed int32; use float64")
    if not predecessors:
        return distances
    trees = half.trees(graph, vertices, distances, own)
    if own.dtype != dtype or own != step:
        table = np.append(multiples(step, deepest), outside_infinity(dtype)).astype(dtype, copy=False)
        distances = like(distances, table)[library_of(distances).minimum(distances, len(table) - 1)]
    return distances, trees


def _step(length: float, dtype: np.dtype) -> Any:
    """Return the length of an arc in the dtype of distances; integers beyond it become the largest."""
    if not (0 <= length < math.inf):
        raise ValueError(f"length is {length}; give a finite length of 0 or more")
    if dtype.kind == "f":
        return dtype.type(length)
    if length != int(length):
        raise ValueError(f"length is {length}, a fraction, which int32 distances cannot have; use float64")
    return dtype.type(min(int(length), int(outside_infinity(dtype))))


def _levels(step: Any, n: int, limit: float) -> tuple[int, int]:
    """Return how many of n levels have distances that fit the dtype of `step`, and how many levels are searched."""
    most: Any = outside_infinity(step.dtype)
    if step.dtype.kind != "f":
        fitting = min(n, -(-int(most) // int(step))) if step else n
        if limit >= most:
            return fitting, min(n, fitting + 1)  # a level that does not fit is an error
        within = 1 if math.isnan(limit) or limit < 0 else min(n, int(limit // int(step)) + 1) if step else n
        return fitting, min(fitting, within)
    limit = step.dtype.type(limit)
    if limit == math.inf and n * float(step) < float(np.finfo(step.dtype).max) / 2:
        return n, n
    values = multiples(step, n)
    fitting = int(np.searchsorted(values, most))
    within = 1 if math.isnan(limit) else max(1, int(np.searchsorted(values, limit, side="right")))
    return fitting, min(fitting, within)
