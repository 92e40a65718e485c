"""Dense rows of the weight matrix that Floyd-Warshall starts from, built from compressed sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops import csr
from gpuops.arrays import like
from gpuops.numbers import infinity


def weight_rows(out: Any, first: int, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> Any:
    """Fill `out` with the weights of the arcs that leave vertices `first`, `first` + 1, ..., and return `out`.

    Parallel arcs count with their smallest weight, and missing arcs are `gpuops.numbers.infinity`. The diagonal is 0,
    or the weight of a loop if that weight is negative. -0.0 becomes +0.0, because the three-operand minimum compares
    floats by their bits.

    Parameters
    ----------
    out : array, (rows, n), a distance dtype
        NumPy or CuPy, filled in place.
    first : int
        The vertex of row 0.
    indptr, indices, weights : numpy arrays, (rows + 1), (arcs), (arcs)
        The arcs in CSR form, heads sorted within a row; weights are converted to the dtype of `out`.
    """
    out[...] = infinity(out.dtype)
    rows = csr.tails(indptr, len(indices), np.int64)
    if len(indices):
        new = np.empty(len(indices), dtype=bool)
        new[0] = True
        np.not_equal(indices[1:], indices[:-1], out=new[1:])
        new[1:] |= rows[1:] != rows[:-1]
        starts = np.flatnonzero(new)
        smallest = np.minimum.reduceat(weights.astype(out.dtype), starts)
        smallest += out.dtype.type(0)
        out[like(out, rows[starts]), like(out, indices[starts])] = like(out, smallest)
    own = like(out, np.arange(len(out)))
    diagonal = out[own, own + first]
    diagonal[diagonal > 0] = 0
    out[own, own + first] = diagonal
    return out
