"""Near vertices: all vertices within a limit of each source, and the k nearest of some places for every vertex.

Both searches take memory for their results, never for all pairs of vertices.

`k_nearest` is one search of the reversed graph from all places at once. A label is a distance, a place and a vertex.
Labels are taken in the order of distance, then of place, and a vertex keeps its first k labels of different places.
Suppose that a place is not among the k nearest of a vertex v, and that the shortest path from a vertex u to the place
leads through v. Then the place is not among the k nearest of u either. So v does not pass the place on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops import csr
from gpuops.arrays import is_cupy
from gpuops.label_setting import check_graph, farthest_within, near_numba
from gpuops.options import whole


def distances_within(
    indptr: Any, indices: Any, weights: Any, sources: Any, limit: float, *, through: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find all vertices within a distance of each source.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) NumPy arrays
        As for `gpuops.dijkstra`.
    sources : (k,) sequence of int
    limit : float
        The greatest distance.
    through : (n,) array of bool, optional
        Whether a path may pass through a vertex; by default, through every vertex.

    Returns
    -------
    starts : (k + 1,) array of int64
        The results of source i are at ``starts[i]`` to ``starts[i + 1] - 1`` in the other arrays.
    vertices : (p,) array of int32
        For each source the vertices within the limit, ascending, the source included.
    distances : (p,) array
        Of the dtype of `weights`, with the bits of `gpuops.shortest_distances`.

    Raises
    ------
    OverflowError
        An int32 distance would reach 2^31 - 1, and `limit` does not exclude it.
    TypeError, ValueError
        As for `gpuops.dijkstra`; or `limit` is negative or NaN. CuPy arrays raise TypeError.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")  # of the arcs 0-1, 0-2, 1-2, 2-0
    >>> starts, vertices, distances = gpuops.distances_within(indptr, indices, weights, [0, 1], 3)
    >>> vertices[starts[0] : starts[1]], distances[starts[0] : starts[1]]
    (array([0, 1], dtype=int32), array([0, 3], dtype=int32))
    """
    vertices = _checked(indptr, indices, weights, sources, "source")
    if not limit >= 0:
        raise ValueError(f"limit is {limit:g}; give a distance of 0 or more")
    graph = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False), weights, _mask(through, indptr)
    return near_numba.within_rows(graph, vertices, farthest_within(limit, weights.dtype))


def k_nearest(
    indptr: Any,
    indices: Any,
    weights: Any,
    places: Any,
    k: int,
    *,
    limit: float = math.inf,
    through: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k nearest places of every vertex, by one search from all places against the arcs.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) NumPy arrays
        As for `gpuops.dijkstra`.
    places : (l,) sequence of int
        The vertex of each place. Several places may be at one vertex.
    k : int
    limit : float
        Places farther than this do not count.
    through : (n,) array of bool, optional
        Whether a path may pass through a vertex; by default, through every vertex.

    Returns
    -------
    found : (n, k) array of int32
        For each vertex the numbers of its nearest places, the nearest first; -1 where there is no further place. Of
        equal distances, the first place counts as nearer.
    distances : (n, k) array of int64 or float64
        The distance from the vertex to each place: +inf, or 2^63 - 1, where there is none. The length of a path is
        added up arc by arc from the place back to the vertex, in int64 or float64, and the distance is the least
        length. If rounding makes different lengths equal, places at these distances may come in either order.

    Raises
    ------
    TypeError, ValueError
        As for `gpuops.dijkstra`; or `k` is not positive. CuPy arrays raise TypeError.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")  # of the arcs 0-1, 0-2, 1-2, 2-0
    >>> found, distances = gpuops.k_nearest(indptr, indices, weights, places=[2, 0], k=1)
    >>> found.ravel(), distances.ravel()  # place 0 is at vertex 2, place 1 at vertex 0
    (array([1, 0, 0], dtype=int32), array([0, 1, 0]))
    """
    vertices = _checked(indptr, indices, weights, places, "place")
    whole("k", k, 1)
    wide = weights.astype(np.int64 if weights.dtype.kind == "i" else np.float64)
    starts, tails, arcs = csr.transpose(indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False))
    infinity = np.iinfo(np.int64).max if wide.dtype.kind == "i" else np.inf
    most = infinity if limit == math.inf else farthest_within(limit, wide.dtype)
    graph = starts, tails, wide[arcs], _mask(through, indptr)
    return near_numba.k_nearest(graph, vertices, min(k, len(vertices)), wide.dtype.type(most), infinity)


def _checked(indptr: Any, indices: Any, weights: Any, vertices: Any, what: str) -> np.ndarray:
    if is_cupy(weights):
        raise TypeError("searches by heaps run on a CPU; pass NumPy arrays")
    check_graph(indptr, indices, weights)
    return csr.check_vertices(vertices, len(indptr) - 1, what)


def _mask(through: Any, indptr: Any) -> np.ndarray:
    """Return `through`, checked, or an empty array if paths may pass through every vertex."""
    if through is None:
        return np.empty(0, bool)
    csr.check_through(through, indptr)
    return np.empty(0, bool) if through.all() else np.ascontiguousarray(through)
