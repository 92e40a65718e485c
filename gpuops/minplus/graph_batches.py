"""All-pairs distances of each graph of a batch of small graphs of different sizes, in one array.

The graphs are given as one graph in compressed sparse rows: the vertices of one graph follow those of another, and no
arc leads from graph to graph. The matrix of each graph is a corner of an (N, N) matrix, N being the size of the largest
graph, and all matrices are closed in a few launches (`floyd_warshall` with `sizes`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import library_of
from gpuops.csr import check_csr, check_starts, tails
from gpuops.minplus.floyd_warshall import floyd_warshall
from gpuops.numbers import DISTANCE_DTYPES, distance_limit, infinity, outside_infinity, to_outside


def batch_closures(indptr: Any, indices: Any, weights: Any, starts: Any, *, size: int | None = None) -> Any:
    """Return the distances between all vertices of each graph of a batch.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        All graphs as one graph in compressed sparse rows, NumPy or CuPy, int32 or int64. Heads may stand in any order;
        loops and parallel arcs are allowed.
    weights : (m,) array or None
        Lengths of the arcs, float32, float64 or int32; without weights, arcs are counted. Weights may be negative. An
        arc of weight +inf is missing.
    starts : (B + 1,) sequence of int
        Graph b has the vertices ``starts[b]`` to ``starts[b + 1] - 1``; `starts` begins with 0 and ends with n.
    size : int, optional
        Rows and columns of each matrix; by default the number of vertices of the largest graph.

    Returns
    -------
    (B, size, size) array
        Of the library of the arguments, and of the dtype of `weights`, or int16 without weights. Entry (b, i, j) is the
        distance from vertex ``starts[b] + i`` to vertex ``starts[b] + j``. Where there is no path or no vertex, it is
        +inf, or the maximum of an integer dtype.

    Raises
    ------
    NegativeCycleError
        A graph has a negative cycle; the message names a vertex, its graph as `matrix`.
    OverflowError
        A distance could be 2^28 or more in int32, or a graph has 2^13 or more vertices to count arcs between.
    TypeError, ValueError
        The arrays do not form graphs, an arc leads from one graph to another, `starts` does not rise from 0 to n, a
        graph is larger than `size`, or the weights have another dtype, NaN or -inf.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2])
    >>> weights = np.array([5, 6, 7, 8], "int32")
    >>> gpuops.batch_closures(indptr, indices, weights, [0, 2, 4]).tolist()  # vertices 0 and 1; 2 and 3
    [[[0, 5], [6, 0]], [[0, 7], [8, 0]]]
    """
    check_csr(indptr, indices, **({} if weights is None else {"weights": weights}))
    xp = library_of(indices)
    bounds = check_starts(starts, len(indptr) - 1)
    sizes = np.diff(bounds)
    widest = int(sizes.max(initial=0))
    size = widest if size is None else size
    if widest > size:
        raise ValueError(f"size is {size}, but a graph has {widest} vertices")
    dtype = np.dtype(np.int16) if weights is None else weights.dtype
    if dtype not in DISTANCE_DTYPES or (weights is not None and dtype == np.int16):
        raise TypeError(f"weights are {dtype}; convert them to float32, float64 or int32")
    longest = 1 if weights is None or not len(weights) else max(-int(weights.min()), int(weights.max()))
    if dtype.kind == "i" and widest * longest >= distance_limit(dtype) / (1 if weights is None else 2):
        raise OverflowError(f"distances may exceed {dtype}; pass weights of float64")
    d = xp.full((len(sizes), size, size), infinity(dtype), dtype)
    graphs, rows, columns = _places(xp, indptr, indices, bounds)
    if weights is None:
        d[graphs, rows, columns] = 1
    elif len(indices):
        place = (graphs * size + rows) * size + columns
        order = weights.argsort(kind="stable")
        order = order[place[order].argsort(kind="stable")]  # of parallel arcs, the lightest comes first
        first = xp.ones(len(order), bool)
        first[1:] = place[order[1:]] != place[order[:-1]]
        d.reshape(-1)[place[order[first]]] = weights[order[first]]
    floyd_warshall(d, out=d, nonnegative=True if weights is None else None, sizes=sizes)
    inside = xp.arange(size) < xp.asarray(sizes)[:, None]
    d[~(inside[:, :, None] & inside[:, None, :])] = outside_infinity(dtype)
    return to_outside(d)


def _places(xp: Any, indptr: Any, indices: Any, bounds: np.ndarray) -> tuple[Any, Any, Any]:
    """Return for each arc its graph, and the positions of its tail and head in this graph."""
    starts, own = xp.asarray(bounds), tails(indptr, len(indices), np.int64)
    graphs = xp.searchsorted(starts, own, side="right") - 1
    heads = indices.astype(np.int64)
    wrong = (heads < starts[graphs]) | (heads >= starts[graphs + 1])
    if bool(wrong.any()):
        arc = int(wrong.argmax())
        raise ValueError(f"the arc from {int(own[arc])} to {int(heads[arc])} leads to another graph of the batch")
    return graphs, own - starts[graphs], heads - starts[graphs]
