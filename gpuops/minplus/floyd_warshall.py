"""All-pairs shortest paths of a dense matrix by blocked Floyd-Warshall.

For every block K of pivots, in order:

1. independent:       D[K,K] := closure of D[K,K]            by smaller blocks, in the end by Floyd and Warshall
2. singly dependent:  D[K,:] := min(D[K,:], D[K,K] (x) D[K,:])
3. doubly dependent:  D[I,:] := min(D[I,:], D[I,K] (x) D[K,:])      for all other rows I

Step 3 also does the column panel, which other accounts treat like the row panel: in the columns K it reads
min(D[I,K], D[I,K] (x) D[K,K]), since D[K,K] is closed by then.

G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, types

from gpuops.arrays import check_matrices, has_contiguous_rows, is_cupy, same_view
from gpuops.errors import NegativeCycleError
from gpuops.minplus import relax, small_closure

# Blocks of pivots, coarse to fine. On a CPU the finer ones fit into the caches; a GPU closes 1,024 pivots by tiles.
_CPU_BLOCKS = (256, 64)
_CUDA_BLOCKS = (1024,)


def floyd_warshall(
    d: Any, *, out: Any = None, nonnegative: bool | None = None, tolerance: float = 0.0, pivots: int | None = None
) -> Any:
    """Shortest distances between all pairs of vertices.

    Parameters
    ----------
    d : (n, n) array
        Arc lengths, NumPy or CuPy, float32, float64, int32 or int16. No arc is +inf, or for integers the inside
        infinity of `gpuops.numbers`, whose bound on distances applies. The diagonal counts as min(d[i, i], 0).
    out : (n, n) array, optional
        Receives the result. With ``out=d`` no second matrix is made if the rows of `d` are contiguous.
    nonnegative : bool, optional
        None looks for negative arcs and for NaN, which costs a pass over `d`. True is the caller's word that there
        is neither; on a GPU the call then returns before the device is done. False looks for NaN only.
    tolerance : float
        A zero cycle may add up to a little less than 0 in floating point. Diagonal entries of at least
        ``-tolerance`` are taken for that and become 0. Where many such cycles share vertices the error can double
        with every vertex (S. Hougardy, Information Processing Letters 110, 2010) and no tolerance helps: use
        integers, or lengths that are exact in the dtype.
    pivots : int, optional
        Only the first so many vertices may lie inside a path; by default all.

    Returns
    -------
    array
        (n, n), `out` if given. Rounding depends on the order of additions, which differs between NumPy and CuPy;
        with distances that are exact in the dtype, integers above all, both give the same.

    Raises
    ------
    NegativeCycleError
        Some vertex reaches itself at less than ``-tolerance``. `out` then holds no distances.
    TypeError, ValueError
        Not a square matrix of one of the dtypes, or NaN or -inf in it.
    """
    matrices = {"d": d} | ({} if out is None else {"out": out})
    check_matrices(**matrices)
    n = len(d)
    for name, matrix in matrices.items():
        if matrix.shape != (n, n):
            raise ValueError(f"{name} has shape {matrix.shape}; distances between n vertices are an (n, n) matrix")
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; it must be 0 or positive")
    if pivots is not None and not 0 <= pivots <= n:
        raise ValueError(f"pivots is {pivots}; with {n} vertices it must be from 0 to {n}")
    inside = n if pivots is None else pivots
    nonnegative = _check_lengths(d, nonnegative)

    in_place = out is not None and same_view(d, out) and has_contiguous_rows(d)
    distances = d if in_place else d.copy(order="C")
    _clear_diagonal(distances)
    if is_cupy(d):
        _close(
            distances, inside, _CUDA_BLOCKS, functools.partial(small_closure.close, tolerance=tolerance), nonnegative
        )
    else:
        _close(distances, inside, _CPU_BLOCKS, functools.partial(_close_block_numpy, tolerance=tolerance), nonnegative)
    if not nonnegative:
        _check_diagonal(distances, tolerance)
    if out is None or in_place:
        return distances
    out[...] = distances
    return out


def _check_lengths(d: Any, nonnegative: bool | None) -> bool:
    """Is no arc negative? The minimum of a matrix tells, and is NaN if there is any."""
    if nonnegative or d.size == 0:
        return True
    if nonnegative is False and d.dtype.kind != "f":
        return False
    if is_cupy(d):
        nan, minus_infinity, negative = small_closure.look_over(d)
    else:
        shortest = d.min().item()
        nan, minus_infinity, negative = math.isnan(shortest), shortest == -math.inf, shortest < 0
    if nan:
        raise ValueError("d contains NaN; write +inf where there is no arc")
    if minus_infinity:
        raise ValueError("d contains -inf, which is not a length; negative lengths must be finite")
    return nonnegative is None and not negative


def _close(d: Any, inside: int, blocks: tuple[int, ...], close_block: Callable[[Any], None], nonnegative: bool) -> None:
    """Close `d` over paths with the first `inside` vertices within."""
    if not blocks:
        return close_block(d)
    block, *finer = blocks
    for start in range(0, inside, block):
        stop = min(start + block, inside)
        pivots = slice(start, stop)
        independent, rows = d[pivots, pivots], d[pivots]
        _close(independent, stop - start, tuple(finer), close_block, nonnegative)
        if len(d) > stop - start:
            relax(rows, independent, rows, nonnegative)
            for others in d[:start], d[stop:]:
                relax(others, others[:, pivots], rows, nonnegative)


def _clear_diagonal(d: Any) -> None:
    if is_cupy(d):
        return small_closure.clear_diagonal(d)
    diagonal = _diagonal(d)
    diagonal[...] = diagonal.clip(max=0)


def _check_diagonal(d: Any, tolerance: float) -> None:
    cycles = _diagonal(d)
    vertex = int(cycles.argmin())
    if cycles[vertex] < -tolerance:
        raise NegativeCycleError(
            f"negative cycle: vertex {vertex} reaches itself at distance {cycles[vertex].item():g}, "
            f"below the tolerance of -{tolerance:g}"
        )
    cycles[...] = 0


def _diagonal(d: Any) -> Any:
    """A view to write to; a small matrix would wait longer for indices than for its distances."""
    shape, strides = (len(d),), (sum(d.strides),)
    if is_cupy(d):
        import cupy

        return cupy.lib.stride_tricks.as_strided(d, shape, strides)
    return np.lib.stride_tricks.as_strided(d, shape, strides)


# --- CPU --------------------------------------------------------------------------------------------------------


def _close_block_numpy(d: np.ndarray, tolerance: float) -> None:
    _compile(d.dtype)(d, tolerance)


@functools.cache
def _compile(dtype: np.dtype) -> Any:
    matrix = types.Array(numba.from_dtype(dtype), 2, "A")
    return njit(types.void(matrix, types.float64), nogil=True, cache=True)(_close_small)


def _close_small(d, tolerance):
    closed = d + d.dtype.type(0)  # contiguous, and without -0.0
    pivot_row = np.empty(len(d), d.dtype)
    for k in range(len(d)):
        # The pivot counts as 0 in its step: less than that it can only be by rounding, which must not pile up, or on
        # a negative cycle, which stays visible.
        cycle = closed[k, k]
        closed[k, k] = 0
        pivot_row[:] = closed[k]
        for i in range(len(d)):
            row, to_pivot = closed[i], closed[i, k]
            for j in range(len(d)):
                # Wrapped to the width of the dtype, so that what is compared is what is stored.
                candidate = d.dtype.type(to_pivot + pivot_row[j])
                row[j] = candidate if candidate < row[j] else row[j]
        closed[k, k] = cycle
    for k in range(len(d)):
        if -tolerance <= closed[k, k] < 0:
            closed[k, k] = 0
    d[:] = closed
