"""The k shortest paths from one vertex to another that visit no vertex twice.

1. A search against the arcs gives the distance of every vertex to the target.
2. The shortest path is found. All other paths differ from it: they leave it at some vertex, the *spur*. So for each
   vertex of the path, a search finds the shortest path that is the same up to this vertex and then takes another arc.
   These paths are the first candidates.
3. The shortest candidate is the next path. In the same way, it is replaced by candidates that leave it at its own spur
   or later. At its own spur, the arcs that were excluded before stay excluded, so no path is found twice.

The searches of a step do not depend on each other, and threads share them. A search is goal-directed: it takes vertices
in the order of their distance from the source plus the distance to the target (step 1), so it visits little more than
its path if the rest of the shortest path stays free. A search ends where its path would be longer than all candidates
that are still needed.

J. Y. Yen, "Finding the k shortest loopless paths in a network", Management Science 17, 1971; the division of step 3 is
by E. L. Lawler, "A procedure for computing the k best solutions to discrete optimization problems", Management Science
18, 1972.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import contiguous, is_cupy
from gpuops.csr import check_csr, check_through, check_vertices
from gpuops.label_setting import k_paths_numba
from gpuops.options import whole

EXACT = 2**53  # integers below this are exact in float64


def k_shortest_paths(
    indptr: Any, indices: Any, weights: Any, source: int, target: int, k: int, *, through: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the k shortest of all paths from `source` to `target` that visit no vertex twice.

    A path is a sequence of vertices. Of parallel arcs, it takes the lightest.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) NumPy arrays
        The graph in compressed sparse rows. Heads may stand in any order; loops and parallel arcs are allowed. Weights
        are integers or floats, and not negative. An arc of weight +inf counts as missing.
    source, target : int
    k : int
    through : (n,) array of bool, optional
        Whether a path may pass through each vertex; by default, through every vertex.

    Returns
    -------
    lengths : (p,) float64 or int64
        Lengths of the paths, ascending; p is k, or the number of paths if there are fewer. int64 if the weights are
        integers. Floats are added up from the source on. Paths of equal length are sorted by their vertices; which of
        equally long paths come last of k is not defined.
    starts : (p + 1,) int64
        Path i has the vertices ``starts[i]`` to ``starts[i + 1] - 1`` of `vertices`.
    vertices : (q,) int64

    Raises
    ------
    OverflowError
        The weights are integers, and a path could be 2^53 or longer.
    TypeError, ValueError
        CuPy arrays, arrays that do not form a graph, a negative weight or NaN, a vertex that is not in the graph, or
        `k` is not positive.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> gpuops.k_shortest_paths(indptr, indices, weights, 0, 2, 3)
    (array([4, 5]), array([0, 3, 5]), array([0, 1, 2, 0, 2]))
    """
    if any(map(is_cupy, (indptr, indices, weights))):
        raise TypeError("searches by heaps run on a CPU; pass NumPy arrays")
    check_csr(indptr, indices, weights=weights)
    n = len(indptr) - 1
    (start,), (end,) = check_vertices([source], n), check_vertices([target], n, "target")
    whole("k", k, 1)
    if not bool((weights >= 0).all()):
        raise ValueError("a weight is negative or NaN; the k shortest paths need weights of 0 or more")
    integers = weights.dtype.kind in "iu"
    if integers and len(weights) and int(weights.max()) * n >= EXACT:
        raise OverflowError("a path could be 2^53 or longer; pass weights of float64")
    check_through(through, indptr)
    through = np.ones(n, bool) if through is None else through
    graph = (
        contiguous(indptr.astype(np.int64, copy=False)),
        contiguous(indices.astype(np.int32, copy=False)),
        contiguous(weights.astype(np.float64, copy=False)),
        contiguous(through),
    )
    # The lengths of both parts of a path are sums of fewer than n floats, each rounded by a relative 2^-53 at most.
    found = k_paths_numba.k_shortest(graph, int(start), int(end), k, 0.0 if integers else 4 * n * 2.0**-53)
    lengths = np.array([length for length, _ in found], np.int64 if integers else np.float64)
    starts = np.cumsum([0, *(len(path) for _, path in found)])
    return lengths, starts, np.array([vertex for _, path in found for vertex in path], np.int64)
