"""R-MAT graphs on a GPU: a range of edges, or the arcs out of a range of vertices.

    drawing = Drawing(scale=20, edges=16 << 20, seed=0, limits=(...), scramble=(...), ...)
    tails, heads, weights = rmat_edges(drawing, 0, 1000)
    indptr, indices, weights = rmat_rows(drawing, first, last)

An edge is a function of the seed and its number, so every GPU can generate the edges it needs, and all GPUs generate
the same edges. There is no CPU half here: the graph generator that creates a `Drawing` also runs on a CPU, with the
same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.rmat import rmat_cuda


@dataclass(frozen=True)
class Drawing:
    """The parameters by which the edges of an R-MAT graph are drawn.

    Attributes
    ----------
    scale : int
        The graph has 2^scale vertices; 0 to 31.
    edges : int
        The number of edges.
    seed : int
        0 to 2^64 - 1.
    limits : tuple of 3 int
        Cumulative probabilities of the quadrants, a, a + b and a + b + c, times 2^32.
    scramble : tuple of 8 int
        Alternating factors and summands, of 64 bits, of the permutation of vertices; empty: no permutation.
    symmetric : bool
        Whether an edge is an arc in each direction.
    integers : bool
        True: weights are integers from 1 to 255. False: weights are floats from (0, 1].
    dtype : numpy.dtype
        Dtype of the weights: int32, int64, float32 or float64.
    """

    scale: int
    edges: int
    seed: int
    limits: tuple[int, int, int]
    scramble: tuple[int, ...]
    symmetric: bool
    integers: bool
    dtype: np.dtype


def rmat_edges(drawing: Drawing, start: int, stop: int) -> tuple[Any, Any, Any]:
    """Return the edges numbered `start` to `stop` - 1, in order.

    Returns
    -------
    tails, heads, weights : (stop - start,) cupy arrays
        int32, int32 and the dtype of the drawing, on the current device.

    Raises
    ------
    ValueError
        There are no such edges, or the vertices do not fit int32.
    """
    _check(drawing, "edges", start, stop, drawing.edges)
    return rmat_cuda.edges(drawing, start, stop)


def rmat_rows(drawing: Drawing, first: int, last: int) -> tuple[Any, Any, Any]:
    """Return the arcs out of the vertices `first` to `last` - 1, in compressed sparse rows.

    All edges are drawn twice, to count the arcs of each row, then to place them. So only the result takes memory.

    Returns
    -------
    indptr : (last - first + 1,) cupy array of int64
    indices, weights : (m,) cupy arrays
        int32, and the dtype of the drawing. The order of arcs in a row may differ from call to call.

    Raises
    ------
    ValueError
        There are no such vertices, or the vertices do not fit int32.
    """
    _check(drawing, "vertices", first, last, 1 << drawing.scale)
    return rmat_cuda.rows(drawing, first, last)


def _check(drawing: Drawing, what: str, first: int, last: int, count: int) -> None:
    if not 0 <= drawing.scale <= 31:
        raise ValueError(f"scale {drawing.scale}: a GPU draws graphs of scale 0 to 31")
    if not 0 <= first <= last <= count:
        raise ValueError(f"{what} {first} to {last} were asked for; there are 0 to {count}")
