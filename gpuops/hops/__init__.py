"""Breadth-first searches from many vertices at once: distances as numbers of arcs, without weights.

64 searches share a machine word: bit i of a vertex's word says whether search i has reached the vertex. In each level,
an arc is read once for all searches that pass along it, and one "or" moves all of them. On graphs where all vertices
are a few arcs apart, most searches pass along the same arcs in the same level, so 64 searches take about as long as a
few.

M. Then, M. Kaufmann, F. Chirigati, T.-A. Hoang-Vu, K. Pham, A. Kemper, T. Neumann, H. T. Vo, "The more the merrier:
efficient multi-source graph traversal", PVLDB 8, 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.csr import check_csr, check_vertices, contiguous
from gpuops.hops import hops_numba

HOP_DTYPES = tuple(map(np.dtype, ("int32", "float64")))


def hop_distances(indptr: Any, indices: Any, sources: Any, *, dtype: Any = "int32", check: bool = True) -> Any:
    """Return the least number of arcs on a path from each source to each vertex.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) NumPy arrays
        The graph in compressed sparse rows, int32 or int64. Heads may stand in any order; loops and parallel arcs are
        allowed.
    sources : (k,) sequence of int
    dtype : {"int32", "float64"}
        Dtype of the distances.
    check : bool
        Check that the arrays form a graph. Pass False to skip the check if you know it.

    Returns
    -------
    (k, n) array of `dtype`
        A row for each source; unreachable is 2^31 - 1, or +inf for float64.

    Raises
    ------
    TypeError, ValueError
        Another dtype, CuPy arrays, arrays that do not form a graph, or a source that is not a vertex.
    """
    dtype = np.dtype(dtype)
    if dtype not in HOP_DTYPES:
        raise TypeError(f"dtype is {dtype}; numbers of arcs are {' or '.join(map(str, HOP_DTYPES))}")
    if is_cupy(indptr) or is_cupy(indices):
        raise TypeError(
            "these searches run on a CPU; pass NumPy arrays, or use batched_shortest_distances with weights of 1"
        )
    if check:
        check_csr(indptr, indices)
        if len(indptr) > 2**31:
            raise ValueError(f"there are {len(indptr) - 1} vertices; at most 2^31 - 1 are supported")
    vertices = check_vertices(sources, len(indptr) - 1)
    return hops_numba.distances(
        contiguous(indptr.astype(np.int64, copy=False)),
        contiguous(indices.astype(np.int32, copy=False)),
        vertices,
        dtype,
    )
