"""A graph laid out for searches: rows of arcs sorted by ascending weight, vertices with many arcs first.

1. Loops are dropped, and all parallel arcs except the lightest: no shortest path needs them.
2. Vertices are numbered by descending out-degree. Most arcs lead to hubs, so the distances that are read most often are
   neighbours in memory, and vertices without arcs come last. Where rows are short, on a CPU, vertices keep their order,
   in which neighbours are often near each other; only vertices of at most one arc come last.
3. The arcs of a row are sorted by weight: a search relaxes the first few arcs of a row, and continues with the next arc
   once longer paths are due.
4. The transpose is laid out the same way, for searches that look back along arcs.
5. On a CPU, if weights are negative and rows are long, rows are sorted by the reduced weights w + p(u) - p(v), which
   potentials p make non-negative, if potentials are found. Searches then proceed by d(v) - p(v) instead of d(v).

U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003
(light arcs first); P. Faldu, J. Diamond, B. Grot, "A closer look at lightweight graph reordering", IISWC 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuops import csr
from gpuops._threads import by_parts
from gpuops.arrays import contiguous, is_cupy
from gpuops.errors import NegativeCycleError
from gpuops.numbers import SEARCH_DTYPES
from gpuops.sssp import graph_layout_cuda
from gpuops.sssp.kept import Kept

SORTED_TOGETHER = graph_layout_cuda.WHOLE  # a GPU sorts at least this many arcs at once, or all arcs of a smaller graph
_INNER = 2  # arcs of a vertex of a road network or grid that is not at the end of a street
_STREAM = 4  # cost of reading a weight, in relaxations of a dense matrix

_Rows = tuple[Any, Any, Any]
_LaidOut = tuple[_Rows, _Rows, Any, Any, Any]  # rows, rows of the transpose, order, rank, potentials


@dataclass(frozen=True, eq=False)
class SearchGraph:
    """A graph as `search_graph` lays it out; NumPy or CuPy arrays, on one device.

    Attributes
    ----------
    indptr : (n + 1,) int64
    indices : (m,) int32
        Heads, in the *internal* numbering of this graph. A row is sorted by ascending weight, then by the other end.
        With `potentials` p it is sorted by w - p[head], in the transpose by w + p[tail].
    weights : (m,) float32, float64 or int32
        The dtype of the distances.
    in_indptr, in_indices, in_weights : arrays or None
        The transpose: `in_indices` are tails. If the graph is symmetric, the arrays `indptr`, `indices` and `weights`
        themselves; None if the transpose was not requested.
    through : (n,) bool or None
        Whether a path may pass through the vertex; None: through every vertex.
    order : (n,) int32
        The original number of each internal vertex: ``x[order]`` converts x to the internal numbering.
    rank : (n,) int32
        The internal number of each original vertex: ``x[rank]`` converts x back to the original numbering.
    negative : bool
        Whether a weight is below 0.
    potentials : (n,) float64 or None
        p, with w + p[tail] - p[head] >= 0 for all arcs out of open vertices (`through`). None if no weight is negative,
        on a GPU, if rows are short, and if no potentials were found.
    """

    indptr: Any
    indices: Any
    weights: Any
    in_indptr: Any
    in_indices: Any
    in_weights: Any
    through: Any
    order: Any
    rank: Any
    negative: bool
    potentials: Any = None

    @cached_property
    def kept(self) -> Kept:
        """What searches have computed for this graph."""
        return Kept()

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @property
    def m(self) -> int:
        return len(self.indices)

    @property
    def dtype(self) -> np.dtype:
        return self.weights.dtype

    @property
    def symmetric(self) -> bool:
        return self.in_indices is self.indices


def search_graph(
    indptr: Any,
    indices: Any,
    weights: Any,
    *,
    dtype: Any = None,
    through: Any = None,
    symmetric: bool = False,
    reverse: bool = True,
) -> SearchGraph:
    """Lay out a graph for searches.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) arrays
        The graph in compressed sparse rows, NumPy or CuPy. Heads may be in any order; loops and parallel arcs are
        allowed. An arc of weight +inf counts as missing.
    dtype : {"float32", "float64", "int32"}, optional
        Dtype of the distances, to which weights are converted; by default int32 for integer weights, else the dtype of
        `weights`.
    through : (n,) array of bool, optional
        Whether a path may pass through each vertex; None: through every vertex. Paths may begin and end at any vertex.
    symmetric : bool
        Pass True if you know that every arc has an opposite arc of the same weight; only the degrees are checked. It
        saves the transpose.
    reverse : bool
        Whether to lay out the transpose, too. Without it searches cannot look back along arcs, and many are slower.

    Returns
    -------
    SearchGraph

    Raises
    ------
    NegativeCycleError
        A loop has a weight below 0.
    OverflowError
        A weight does not fit int32.
    TypeError, ValueError
        The arrays are not a graph in compressed sparse rows, or weights are NaN or -inf.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> graph = gpuops.search_graph(indptr, indices, weights)
    >>> graph.n, graph.m
    (3, 4)
    """
    _check_arrays(indptr, indices, weights, through)
    if is_cupy(indptr):
        dtype = _distance_dtype(weights, dtype)
        return SearchGraph(*graph_layout_cuda.lay_out(indptr, indices, weights, dtype, through, symmetric, reverse))
    indptr = indptr.astype(np.int64, copy=False)
    weights = _convert(weights, dtype)
    heads = indices.astype(np.int32, copy=False)
    if through is not None and bool(through.all()):
        through = None
    negative = not _all(weights, lambda x: (x >= 0).all())
    outgoing, incoming, order, rank, potentials = _lay_out(
        indptr, heads, weights, through, reverse, symmetric, negative
    )
    if through is not None:
        through = through[order]
    return SearchGraph(*outgoing, *incoming, through, order, rank, negative, potentials)


def _check_arrays(indptr: Any, indices: Any, weights: Any, through: Any) -> None:
    csr.check_csr(indptr, indices, weights=weights)
    csr.check_count(indptr)
    csr.check_through(through, indptr)


def _distance_dtype(weights: Any, dtype: Any) -> np.dtype:
    if dtype is None:
        dtype = weights.dtype if weights.dtype.kind == "f" else np.int32
    dtype = np.dtype(dtype)
    if dtype not in SEARCH_DTYPES or weights.dtype.kind not in "fiub":
        raise TypeError(f"distances must be float32, float64 or int32, not {dtype} from {weights.dtype} weights")
    return dtype


def _convert(weights: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the weights in the dtype of the distances, with +0.0 for -0.0."""
    dtype = _distance_dtype(weights, dtype)
    if weights.dtype.kind == "f" and not _all(weights, lambda x: (x > -math.inf).all()):
        raise ValueError("weights contain NaN or -inf; weights below 0 must be finite")
    converted = np.empty(len(weights), dtype)
    if dtype.kind != "f":
        if weights.dtype.kind == "f" and not _all(weights, lambda x: (x == np.floor(x)).all()):
            raise ValueError("weights have fractions, which int32 distances cannot have; use float64")
        limits = np.iinfo(dtype)
        if not _all(weights, lambda x: limits.min <= x.min().item() and x.max().item() <= limits.max):
            raise OverflowError("weights exceed int32; use float64")

    def convert(part: slice) -> None:
        with np.errstate(over="ignore"):  # a weight too large for the dtype becomes +inf: no path uses the arc
            converted[part] = weights[part].astype(dtype) + dtype.type(0)

    by_parts(convert, len(weights), _STREAM * len(weights))
    return converted


def _all(values: np.ndarray, holds: Callable[[np.ndarray], Any]) -> bool:
    return all(by_parts(lambda part: bool(holds(values[part])), len(values), _STREAM * len(values)))


def _lay_out(
    indptr: Any, heads: Any, weights: Any, through: Any, reverse: bool, symmetric: bool, negative: bool
) -> _LaidOut:
    """Return the rows, the rows of the transpose, `order`, `rank` and `potentials`."""
    from gpuops.sssp import graph_layout_numba, potentials_numba, wheel_numba  # not on a GPU: it need not import Numba

    n = len(indptr) - 1
    rows, degrees, loop = graph_layout_numba.simplified(*map(contiguous, (indptr, heads, weights)))
    if loop < len(heads):
        _refuse_loop(int(heads[loop]), weights[loop].item())
    longest = int(degrees.max(initial=0))
    short = wheel_numba.are_short(n, int(degrees.sum()), longest)
    order, rank = graph_layout_numba.numbered(degrees, _INNER if short else longest)
    potentials = shifts = None
    if negative and not short:
        potentials = potentials_numba.potentials(rows[0], degrees, *rows[1:], through)
    if potentials is not None:
        potentials = potentials[order]
        shifts = -potentials
    outgoing = graph_layout_numba.sorted_rows(rows, degrees, order, rank, shifts)
    del rows  # they take as much memory as the result
    if symmetric:
        _check_symmetry(np.diff(outgoing[0]), graph_layout_numba.in_degrees(outgoing[1], n))
        return outgoing, outgoing, order, rank, potentials
    incoming = graph_layout_numba.sorted_transpose(outgoing, potentials) if reverse else (None, None, None)
    return outgoing, incoming, order, rank, potentials


def _refuse_loop(vertex: int, weight: float) -> None:
    raise NegativeCycleError(f"a loop of weight {weight:g} at vertex {vertex}", (vertex,), weight)


def _check_symmetry(out_degrees: Any, in_degrees: Any) -> None:
    if bool((out_degrees != in_degrees).any()):
        raise ValueError("the graph is not symmetric: a vertex has more arcs out than in; pass symmetric=False")
