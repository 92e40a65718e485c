"""Sums over each row of a block of distances, NumPy or CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.hierarchy import totals_cuda


def row_totals(found: Any, values: Any, limit: float, scale: float | None = None) -> Any:
    """Return the sum, for each row, of the values of the columns that are no farther away than a limit.

    Parameters
    ----------
    found : (k, l) array, contiguous
        Distances of any distance dtype.
    values : (l,) array, float64
    limit : float
        Less than the distance of an unreachable column.
    scale : float, optional
        Weight a value at the distance d by exp(-d / scale).

    Returns
    -------
    (k,) array, float64
        On a GPU, bits depend on l, not on k.
    """
    if is_cupy(found):
        return totals_cuda.row_totals(found, values, limit, scale)
    reached = found <= limit
    return (reached if scale is None else np.where(reached, np.exp(-found / np.float64(scale)), 0.0)) @ values


def row_minima(found: Any, limit: float) -> Any:
    """Return the least distance of each row, (k,) float64; +inf if it exceeds a limit."""
    if is_cupy(found):
        return totals_cuda.row_minima(found, limit)
    return np.where(found <= limit, found, np.inf).min(axis=1, initial=np.inf).astype(np.float64)
