"""All-pairs shortest paths of a dense matrix by blocked Floyd-Warshall.

For every block K of pivots, in order:

1. independent:       D[K,K] := closure of D[K,K]            by smaller blocks, the smallest by plain Floyd-Warshall
2. singly dependent:  D[K,:] := min(D[K,:], D[K,K] (x) D[K,:])
3. doubly dependent:  D[I,:] := min(D[I,:], D[I,K] (x) D[K,:])      for all other rows I

Step 3 includes the column panel, which other descriptions update before it, like the row panel: in the columns K
step 3 is D[I,K] := min(D[I,K], D[I,K] (x) D[K,K]), and D[K,K] is closed by then. So on a GPU step 2 leaves out the
columns K.

G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuops._threads import for_all
from gpuops.arrays import check_matrices, contiguous_copy, has_contiguous_rows, is_cupy, same_view
from gpuops.errors import NegativeCycleError
from gpuops.minplus import middle_closure, relax_and_pack, relax_each, relax_packed, small_closure
from gpuops.minplus.batched_closures import close_cuda, close_numpy

# Sizes of the nested blocks of pivots, coarse to fine. On a CPU the blocks fit into the caches. A GPU closes a block in
# one launch; with a number of vertices in _CUDA_BETWEEN, blocks of 1,024 are faster. A batch of matrices that are no
# larger than the finest block of a CPU, or than _CUDA_BATCHED on a GPU, is closed by one call.
_CPU_BLOCKS = (256, 64)
_CUDA_BLOCKS = {
    np.dtype(name): (block,) for name, block in {"float32": 2048, "float64": 1024, "int32": 2048, "int16": 1024}.items()
}
_CUDA_BETWEEN = range(2049, 4096)
_CUDA_BATCHED = 1024


def floyd_warshall(
    d: Any,
    *,
    out: Any = None,
    nonnegative: bool | None = None,
    tolerance: float = 0.0,
    pivots: Any = None,
    sizes: Any = None,
) -> Any:
    """Return the shortest distances between all pairs of vertices, of one graph or of each graph of a batch.

    Parameters
    ----------
    d : (n, n) or (B, n, n) array
        Arc lengths, NumPy or CuPy, float32, float64, int32 or int16. A missing arc is +inf, or for integers the inside
        infinity of `gpuops.numbers`; the bound that `gpuops.numbers` sets on distances applies. The diagonal counts as
        min(d[i, i], 0). A CPU closes the matrices of a batch on all cores, a GPU closes them in a few launches if
        n <= 1024.
    out : array of the shape of `d`, optional
        Receives the result. With ``out=d`` no second matrix is made if the rows of `d` are contiguous.
    nonnegative : bool, optional
        None checks for negative arcs, NaN and -inf, which costs a pass over `d`. Pass True if you know that `d` has
        no negative arc and no NaN; it is not checked, and on a GPU the call returns before the device is done. False
        checks for NaN and -inf only.
    tolerance : float
        By rounding, the length of a zero cycle can be a little less than 0 in floating point. Diagonal entries from
        ``-tolerance`` to 0 are taken for zero cycles and become 0. Where many zero cycles share vertices, the error can
        double with every vertex (S. Hougardy, Information Processing Letters 110, 2010) and no tolerance helps: use
        integers, or lengths that are exact in the dtype.
    pivots : int, or (B,) integers for a batch, optional
        Only the first `pivots` vertices may lie inside a path; by default all vertices.
    sizes : (B,) integers, optional
        For a batch of matrices of different sizes: only ``d[k, :sizes[k], :sizes[k]]`` counts. Entries outside it must
        not be negative, and have no meaning in the result. `pivots` may then not exceed `sizes`.

    Returns
    -------
    array
        Of the shape of `d`; `out` if given. NumPy and CuPy results can differ by rounding, because the order of
        additions differs. Distances that are exact in the dtype, integers above all, are equal.

    Raises
    ------
    NegativeCycleError
        Some vertex reaches itself at less than ``-tolerance``. `out` then holds no distances.
    TypeError, ValueError
        `d` is neither a square matrix nor a batch of square matrices, has another dtype, or contains NaN or -inf.

    Examples
    --------
    >>> d = np.array([[0, 3, np.inf], [np.inf, 0, 1], [2, np.inf, 0]])
    >>> gpuops.floyd_warshall(d)
    array([[0., 3., 4.],
           [3., 0., 1.],
           [2., 5., 0.]])
    """
    matrices = {"d": d} if out is None or out is d else {"d": d, "out": out}
    check_matrices(batches=True, **matrices)
    *batch, _, n = d.shape
    for name, matrix in matrices.items():
        if matrix.shape != (*batch, n, n):
            shape = f"(n, n) matrix{' for each graph of a batch' if batch else ''}"
            raise ValueError(f"{name} has shape {matrix.shape}; distances between n vertices are an {shape}")
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; it must be 0 or positive")
    shapes = _check_sizes(n, batch, pivots, sizes)
    nonnegative = _check_lengths(d, nonnegative)

    in_place = out is not None and same_view(d, out) and has_contiguous_rows(d)
    distances = d if in_place else contiguous_copy(d)
    blocks = _CPU_BLOCKS if not is_cupy(d) else (1024,) if n in _CUDA_BETWEEN else _CUDA_BLOCKS[d.dtype]
    most, close_batch = (_CUDA_BATCHED, close_cuda) if is_cupy(d) else (blocks[-1], close_numpy)
    if batch and n <= most:
        close_batch(distances, shapes, tolerance)
    else:
        if batch or shapes is not None or not is_cupy(d):  # `small_closure.close` does it
            _clear_diagonal(distances)
        close_block = functools.partial(_close_block, tolerance=tolerance, nonnegative=nonnegative)
        if batch:
            _close_each(distances, shapes, blocks, close_block, nonnegative)
        else:
            inside = n if shapes is None else int(shapes[0, 1])
            _close(distances, inside, blocks, close_block, nonnegative)
    if not nonnegative:
        _check_diagonal(distances, tolerance)
    if out is None or in_place:
        return distances
    out[...] = distances
    return out


def _check_sizes(n: int, batch: list[int], pivots: Any, sizes: Any) -> np.ndarray | None:
    """Return (B, 2) int32, the size and the number of pivots of each matrix; None if neither argument is given."""
    if pivots is None and sizes is None:
        return None
    if sizes is not None and not batch:
        raise ValueError("sizes are for a batch of matrices, of shape (B, n, n)")
    shapes = np.full((*(batch or [1]), 2), n, np.int32)
    for column, name, values, most in (0, "sizes", sizes, n), (1, "pivots", pivots, shapes[:, 0]):
        given = shapes[:, 0] if values is None else np.asarray(values)
        if given.shape not in ((), (len(shapes),)) or given.dtype.kind not in "iu":
            raise ValueError(f"{name} must be an integer{' for each matrix' if batch else ''}, not {values!r}")
        given, limits = np.broadcast_to(given, len(shapes)), np.broadcast_to(most, len(shapes))
        if (wrong := np.flatnonzero((given < 0) | (given > limits))).size:
            value, limit = given[wrong[0]], limits[wrong[0]]
            raise ValueError(f"{name} is {value}; with {limit} vertices it must be from 0 to {limit}")
        shapes[:, column] = given
    return shapes


def _check_lengths(d: Any, nonnegative: bool | None) -> bool:
    """Return True if it is known that no arc is negative; raise ValueError if `d` contains NaN or -inf.

    On a CPU the minimum answers everything: it is NaN if `d` contains NaN.
    """
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
    """Close `d` over the paths whose inner vertices are among the first `inside` vertices."""
    if not blocks:
        return close_block(d)
    block, *finer = blocks
    if inside == len(d) <= block:
        return _close(d, inside, tuple(finer), close_block, nonnegative)

    def close(start: int) -> None:
        stop = min(start + block, inside)
        _close(d[start:stop, start:stop], stop - start, tuple(finer), close_block, nonnegative)

    for start in range(0, inside, block):
        stop = min(start + block, inside)
        pivots = slice(start, stop)
        rows = d[pivots]
        if start == 0 or is_cupy(d):
            close(start)
        # A GPU leaves the closed columns as they are, if they are whole tiles.
        is_whole = start % 1024 == 0 and (stop % 1024 == 0 or stop == len(d))
        packed = relax_and_pack(rows, rows[:, pivots], nonnegative, pivots if is_whole else slice(0, 0))
        others, beside = [d[:start], d[stop:]], None
        if stop < inside and not is_cupy(d):  # one thread closes the next block while the other threads relax rows
            after = min(stop + block, inside)
            relax_packed(d[stop:after], d[stop:after, pivots], packed)
            others, beside = [d[:start], d[after:]], functools.partial(close, stop)
        relax_each([(c, c[:, pivots]) for c in others], packed, beside)


def _close_block(d: Any, tolerance: float, nonnegative: bool) -> None:
    """Close a block that is not divided any further."""
    if not is_cupy(d):
        close_numpy(d[None], None, tolerance)
    elif len(d) <= small_closure.MOST:
        small_closure.close(d, tolerance, nonnegative)
    else:
        middle_closure.close(d, tolerance, nonnegative)


def _close_each(
    d: Any, shapes: np.ndarray | None, blocks: tuple[int, ...], close_block: Callable[[Any], None], nonnegative: bool
) -> None:
    """Close the matrices of a batch separately: one after another on a GPU, one on each core of a CPU."""

    def close(k: int) -> None:
        n, inside = (d.shape[1],) * 2 if shapes is None else map(int, shapes[k])
        _close(d[k, :n, :n], inside, blocks, close_block, nonnegative)

    if is_cupy(d):
        for k in range(len(d)):
            close(k)
    else:
        for_all(close, range(len(d)), d.shape[0] * d.shape[1] ** 3)


def _clear_diagonal(d: Any) -> None:
    if is_cupy(d):
        return small_closure.clear_diagonal(d)
    diagonal = _diagonal(d)
    diagonal[...] = diagonal.clip(max=0)


def _check_diagonal(d: Any, tolerance: float) -> None:
    cycles = _diagonal(d)
    if cycles.size == 0:
        return
    worst = int(cycles.argmin())
    length = cycles.ravel()[worst].item()
    if length < -tolerance:
        matrix, vertex = divmod(worst, d.shape[-1])
        where = f"{vertex} of matrix {matrix}" if d.ndim == 3 else f"{vertex}"
        raise NegativeCycleError(
            f"negative cycle: vertex {where} reaches itself at distance {length:g}, below the tolerance of "
            f"-{tolerance:g}"
        )
    cycles[...] = 0


def _diagonal(d: Any) -> Any:
    """Return a writable view of the diagonals: indexing would take longer than closing a small matrix."""
    shape, strides = d.shape[:-1], (*d.strides[:-2], sum(d.strides[-2:]))
    if is_cupy(d):
        import cupy

        return cupy.lib.stride_tricks.as_strided(d, shape, strides)
    return np.lib.stride_tricks.as_strided(d, shape, strides)
