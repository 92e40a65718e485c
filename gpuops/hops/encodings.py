"""Shortest paths as input of graph transformers: numbers of arcs, and the arcs along a path, of each graph of a batch.

A graph transformer, such as Graphormer, has a bias for each pair of vertices: a learned number for the length of the
shortest path between them, and a mean of features of the edges along one such path. Both are padded to the largest
graph of a batch.

C. Ying et al., "Do transformers really perform badly for graph representation?", NeurIPS 2021.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops.arrays import contiguous, is_cupy
from gpuops.csr import check_csr, check_starts
from gpuops.hops import encodings_numba

LARGEST = 2**15 - 1  # vertices of a graph, whose numbers of arcs are int16


class PathEncodings(NamedTuple):
    """Shortest paths between all vertices of each graph of a batch; see `path_encodings`."""

    hops: np.ndarray
    arcs: np.ndarray


def path_encodings(
    indptr: Any, indices: Any, starts: Any, *, longest: int | None = None, size: int | None = None
) -> PathEncodings:
    """Return the number of arcs of a shortest path between any two vertices of a graph, and the arcs of one such path.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) NumPy arrays
        All graphs as one graph in compressed sparse rows, int32 or int64: the vertices of one graph follow those of
        another, and no arc leads from graph to graph. Heads may stand in any order; loops and parallel arcs are
        allowed.
    starts : (B + 1,) sequence of int
        Graph b has the vertices ``starts[b]`` to ``starts[b + 1] - 1``; `starts` begins with 0 and ends with n.
    longest : int, optional
        How many arcs of a path to return, the first ones; by default, all arcs of the longest path.
    size : int, optional
        Rows and columns of each graph; by default the number of vertices of the largest graph.

    Returns
    -------
    hops : (B, size, size) int16
        Entry (b, i, j) is the number of arcs of a shortest path from vertex ``starts[b] + i`` to ``starts[b] + j``; -1
        where there is no path or no vertex.
    arcs : (B, size, size, longest) int32
        The numbers of the arcs of this path, from the first arc on; -1 after the last one. Of several shortest paths,
        it is the path by arcs of the lowest numbers in a breadth-first search, so the same in every run.

    Raises
    ------
    TypeError, ValueError
        CuPy arrays, arrays that do not form graphs, an arc that leads from one graph to another, `starts` that does not
        rise from 0 to n, or a graph that is larger than `size` or has more than 32,767 vertices.

    Examples
    --------
    A path of three vertices, and a single edge; each edge is two arcs.

    >>> import numpy as np
    >>> indptr, indices = np.array([0, 1, 3, 4, 5, 6]), np.array([1, 0, 2, 1, 4, 3])
    >>> found = path_encodings(indptr, indices, [0, 3, 5])
    >>> found.hops[0].tolist(), found.hops[1].tolist()
    ([[0, 1, 2], [1, 0, 1], [2, 1, 0]], [[0, 1, -1], [1, 0, -1], [-1, -1, -1]])
    >>> found.arcs[0, 0, 2].tolist(), found.arcs[1, 1, 0].tolist()
    ([0, 2], [5, -1])
    """
    if is_cupy(indptr) or is_cupy(indices):
        raise TypeError("these searches run on a CPU; pass NumPy arrays")
    check_csr(indptr, indices)
    bounds = check_starts(starts, len(indptr) - 1)
    widest = int(np.diff(bounds).max(initial=0))
    size = widest if size is None else size
    if widest > min(size, LARGEST):
        raise ValueError(f"a graph has {widest} vertices, more than " + ("size" if size < widest else f"{LARGEST:,}"))
    if longest is not None and longest < 0:
        raise ValueError(f"longest is {longest}; give a number of arcs")
    graph = contiguous(indptr.astype(np.int64, copy=False)), contiguous(indices.astype(np.int64, copy=False))
    hops, arcs, wrong = encodings_numba.encodings(*graph, bounds, size, longest)
    if wrong >= 0:
        tail = int(np.searchsorted(graph[0], wrong, side="right")) - 1
        raise ValueError(f"the arc from {tail} to {indices[wrong]} leads to another graph of the batch")
    return PathEncodings(hops, arcs)
