"""Choose the dtype of the distances of a graph, and prove that all distances fit it.

A shortest path leaves each vertex at most once. Every distance is therefore at most the following sum over all
vertices: the largest |weight| of the arcs that leave the vertex. This bound takes one pass over the arcs, and it is far
below (n - 1) max |w| if only a few arcs are long. If the bound exceeds the limit and no weight is negative, the run
itself can check the distances. Along a shortest path, distances grow by less than the limit per arc, so the first
distance that reaches the limit is still below infinity.

A search with a cutoff or with targets keeps distances up to a limit of each row (`row_limit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuops.arrays import library_of, like
from gpuops.errors import WeightRangeError
from gpuops.numbers import check_dtype, distance_limit, infinity, outside_infinity
from pipelines.stores.graph import Graph

PIECE = 1 << 22  # arcs examined at a time


def distance_dtype(graph: Graph, dtype: Any = None) -> np.dtype:
    """Return the dtype of the distances: `dtype` if given, else float32 for float weights, int32 for integers."""
    if dtype is None:
        dtype = "float32" if graph.weight_dtype.kind == "f" else "int32"
    return check_dtype(dtype)


def distances_fit(graph: Graph, dtype: np.dtype, limit: float | None = None) -> bool:
    """Return whether all distances provably fit `dtype`. If not, the run must check them (`refuse_overflow`).

    The result can be False only for an integer `dtype` and non-negative weights. Distances must stay below `limit`; the
    default is the limit for Floyd-Warshall, with or without potentials.

    Raises
    ------
    WeightRangeError
        A weight is not an integer although `dtype` is an integer dtype, or a weight does not fit. Or distances may
        reach the limit, and `dtype` is a float dtype or a weight is negative.
    """
    if dtype.kind == "i" and graph.weight_dtype.kind == "f":
        _refuse_fractions(graph, dtype)
    if limit is None:
        limit = distance_limit(dtype)
        if graph.weight_min < 0:
            limit /= 4  # potentials of tail and head make intermediate distances up to three times as long
    largest = max(abs(graph.weight_min), abs(graph.weight_max))
    if largest * max(graph.n - 1, 1) < limit:
        return True
    bound = _bound(graph)
    if bound < limit:
        return True
    if dtype.kind == "i" and graph.weight_min >= 0 and largest < limit:
        return False
    cure = _larger(dtype) if dtype != np.float64 else f"{_larger(dtype)} and smaller weights"
    raise WeightRangeError(
        f"{graph.path}: distances may reach {bound:.6g}, but {dtype} needs them below {limit:.6g}; {cure}"
    )


def refuse_overflow(block: Any, dtype: np.dtype) -> None:
    """Raise WeightRangeError if a distance in `block` reaches the limit of the integer `dtype`.

    `block` is in inside form, NumPy or CuPy, without negative distances. Two distances below the limit add up to less
    than infinity, so the first distance that reaches the limit can be recognized.
    """
    limit = distance_limit(dtype)
    # `where` is used because a GPU would have to scan a mask to select by it.
    reached = library_of(block).where(block < infinity(dtype), block, dtype.type(0))
    if reached.size and int(reached.max()) >= limit:
        raise WeightRangeError(f"a distance exceeds {limit - 1:,}, the most that {dtype} holds; {_larger(dtype)}")


def _larger(dtype: np.dtype) -> str:
    """Return the advice to use a dtype that holds larger distances."""
    larger = "int32" if dtype == np.int16 else "float64"
    return f"use dtype={larger!r} (--dtype {larger})"


def arc_pieces(
    graph: Graph, first: int = 0, last: int | None = None
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Iterate over the arcs leaving the vertices `first` to `last` (excluded), by ranges of about `PIECE` arcs.

    Yields the first vertex of each range and the CSR of the range: indptr (from 0), indices, weights.
    """
    last = graph.n if last is None else last
    indptr = graph.indptr(first, last)
    start = 0
    while start < last - first:
        stop = int(np.searchsorted(indptr, indptr[start] + PIECE, side="right")) - 1
        stop = min(max(stop, start + 1), last - first)
        yield first + start, *graph.rows(first + start, first + stop)
        start = stop


def _bound(graph: Graph) -> float:
    total = 0.0
    for _first, indptr, _indices, weights in arc_pieces(graph):
        leaving = np.flatnonzero(np.diff(indptr))
        if leaving.size:
            with np.errstate(over="ignore"):  # an infinite bound proves nothing, as it should
                total += float(np.maximum.reduceat(np.abs(weights.astype(np.float64)), indptr[leaving]).sum())
    return total


def _refuse_fractions(graph: Graph, dtype: np.dtype) -> None:
    for first, indptr, indices, weights in arc_pieces(graph):
        wrong = np.flatnonzero(weights != np.rint(weights))
        if wrong.size:
            arc = int(wrong[0])
            tail = first + int(np.searchsorted(indptr, arc, side="right")) - 1
            raise WeightRangeError(
                f"{graph.path}: the arc {' -> '.join(graph.names([tail, indices[arc]]))} weighs {weights[arc]}, "
                f"not an integer; use dtype='float32' (--dtype float32), or scale the weights to use {dtype}"
            )


def reach(cutoff: float | None, dtype: np.dtype) -> float | None:
    """Return the cutoff, or None if no distance of the dtype can exceed it."""
    largest = float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)
    return cutoff if cutoff is not None and cutoff < largest else None


def row_limit(distances: Any, cutoff: float | None, targets: tuple[int, ...] | None) -> float | None:
    """Return the greatest distance that a row keeps.

    It is the distance of the farthest target that is reached within the cutoff. If there is no such target, it is the
    cutoff. `distances` (n) is a NumPy or CuPy array in outside form, as in stores.
    """
    if targets is None:
        return cutoff
    reached = distances[like(distances, np.array(targets))]
    reached = reached[reached != outside_infinity(distances.dtype)]
    if cutoff is not None:
        reached = reached[reached <= cutoff]
    return float(reached.max()) if reached.size else cutoff
