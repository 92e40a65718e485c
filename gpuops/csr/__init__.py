"""Graphs in compressed sparse rows: checks and basic operations.

The arcs out of vertex v have the numbers ``indptr[v]`` to ``indptr[v + 1] - 1``; arc i leads to ``indices[i]``. Arrays
of vertices have the dtype of `indices`, arrays of arc numbers the dtype of `indptr`; each is int32 or int64. Parallel
arcs and loops are treated like any other arc.

The public operations call `check_csr` and `check_vertices` first. The functions of this module do not check again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gpuops._halves import half_of, half_on
from gpuops.arrays import check_vectors, is_cupy, library_of, on_host
from gpuops.arrays import contiguous as contiguous


def check_csr(indptr: Any, indices: Any, **of_arcs: Any) -> None:
    """Refuse arrays that do not form a graph.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        Integers, NumPy or CuPy.
    **of_arcs : (m,) arrays
        Attributes of the arcs, such as weights; the names are for errors.

    Raises
    ------
    TypeError
        The arrays are not of one library, or `indptr` or `indices` are not integers.
    ValueError
        The wrong number of dimensions or elements, an `indptr` that does not rise from 0 to m, or heads that are not
        vertices.
    """
    check_vectors({"indptr": indptr, "indices": indices, **of_arcs})
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name} is {array.dtype}; convert it to integers")
    n, m = len(indptr) - 1, len(indices)
    bounds = half_on("csr.csr", gpu=True).bounds(indptr, indices) if is_cupy(indptr) and n >= 0 else None
    if bounds is not None:
        rises, least, largest = bounds
    else:
        rises = n >= 0 and int(indptr[0]) == 0 and int(indptr[-1]) == m and bool((indptr[1:] >= indptr[:-1]).all())
        least, largest = half_of("csr.csr", indices).bounds(indices) if m else (0, -1)
    if not rises:
        raise ValueError(f"indptr must rise from 0 to the number of arcs, {m}")
    for name, array in of_arcs.items():
        if len(array) != m:
            raise ValueError(
                f"there are {m} indices and {len(array)} {name}; give one {name.removesuffix('s')} for each"
            )
    if least < 0 or largest >= n:
        least, largest = int(indices.min()), int(indices.max())  # the GPU kernel finds `least` only below 0
        raise ValueError(f"indices run from {least} to {largest}; they must be vertices, 0 to {n - 1}")


def check_vertices(vertices: Any, n: int, name: str = "source") -> np.ndarray:
    """Return an argument that names vertices of a graph of n vertices, as (k,) int64 in NumPy; `name` is for errors.

    Raises
    ------
    ValueError
        The argument is not a sequence of vertices.
    """
    found = np.asarray(on_host(vertices))
    if found.size == 0:
        found = found.astype(np.int64)
    found = np.atleast_1d(found)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"{name}s are {found.dtype} of shape {found.shape}; pass a sequence of vertices")
    wrong = found[(found < 0) | (found >= n)]
    if wrong.size:
        raise ValueError(f"{name} {wrong[0]} is not a vertex; vertices are 0 to {n - 1}")
    return found.astype(np.int64)


def check_through(through: Any, indptr: Any) -> None:
    """Refuse a mask of the vertices that a path may pass through, unless it is None or has a bool for each vertex.

    Raises
    ------
    TypeError
        The mask is not an array of the library of `indptr`.
    ValueError
        It has another dtype or length.
    """
    if through is None:
        return
    check_vectors({"indptr": indptr, "through": through})
    n = len(indptr) - 1
    if through.dtype != bool or len(through) != n:
        raise ValueError(f"through is {through.dtype} of length {len(through)}; give a bool for each of {n} vertices")


def check_count(indptr: Any) -> None:
    """Raise ValueError for a graph whose vertices int32 cannot number."""
    if len(indptr) > 2**31:
        raise ValueError(f"there are {len(indptr) - 1} vertices; at most 2^31 - 1 are supported")


def check_starts(starts: Any, n: int) -> np.ndarray:
    """Return the first vertices of the graphs of a batch, followed by n, as (B + 1,) int64 in NumPy.

    Raises
    ------
    ValueError
        `starts` is not a sequence of integers that rises from 0 to n.
    """
    found = np.asarray(on_host(starts))
    whole = found.ndim == 1 and found.dtype.kind in "iu" and len(found) > 0
    if not whole or found[0] != 0 or found[-1] != n or not bool((found[1:] >= found[:-1]).all()):
        raise ValueError(f"starts must rise from 0 to the number of vertices, {n}")
    return found.astype(np.int64)


def tails(indptr: Any, arcs: int, dtype: Any) -> Any:
    """Return the tail of every arc.

    Parameters
    ----------
    indptr : (n + 1,) array
        NumPy or CuPy, int32 or int64.
    arcs : int
        The number of arcs, ``indptr[n]``. It is an argument because reading it from a GPU would have to wait.
    dtype : {int32, int64}

    Returns
    -------
    (arcs,) array of `dtype`
    """
    return half_of("csr.csr", indptr).tails(contiguous(indptr), arcs, np.dtype(dtype))


def transpose(indptr: Any, indices: Any) -> tuple[Any, Any, Any]:
    """Return the compressed sparse rows of the reverse graph: the same arcs, ordered by their heads.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.

    Returns
    -------
    indptr, indices : (n + 1,), (m,) arrays
        The reverse graph; its indices are the tails. Arcs of a row keep the order they have in the given graph.
    arcs : (m,) array
        The number of each arc in the given graph: ``indices[arcs]`` rises.
    """
    return half_of("csr.csr", indptr).transpose(contiguous(indptr), contiguous(indices))


def both_directions(indptr: Any, indices: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Return a graph with every arc in both directions, in compressed sparse rows.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) arrays
        NumPy.

    Returns
    -------
    indptr, indices, weights : (n + 1,), (2 m,), (2 m,) arrays
        With the dtypes of the arguments. Arcs of a row are in the order of their numbers in the given graph.
    """
    return half_of("csr.csr", indptr).both_directions(contiguous(indptr), contiguous(indices), contiguous(weights))


def occurrences(vertices: Any, n: int) -> Any:
    """Count how often each of n vertices occurs in an array of any length: (n,) int64."""
    xp = library_of(vertices)
    return xp.bincount(vertices, minlength=n) if len(vertices) else xp.zeros(n, np.int64)


def row_starts(vertices: Any, n: int) -> Any:
    """Return the `indptr` (n + 1,), int64, of arcs sorted by vertex, given the vertex of each arc in any order."""
    xp = library_of(vertices)
    indptr = xp.zeros(n + 1, np.int64)
    xp.cumsum(occurrences(vertices, n), out=indptr[1:])
    return indptr


def equal_ranges(indptr: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Cut the rows into `count` ranges, with numbers of arcs as equal as whole rows allow; a range may be empty.

    Returns
    -------
    list of pairs
        The first row, and the last row + 1.
    """
    n, m = len(indptr) - 1, int(indptr[-1])
    cuts = np.searchsorted(indptr, np.arange(1, count) * m // count).clip(0, n)
    return list(pairwise([0, *cuts.tolist(), n]))


def in_ranges(first: np.ndarray | int, last: np.ndarray) -> np.ndarray:
    """Return the numbers from `first` to `last` (excluded), one range after another, int64.

    >>> in_ranges(np.array([5, 0, 2]), np.array([7, 0, 3])).tolist()
    [5, 6, 2]
    """
    counts = last - first
    return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
