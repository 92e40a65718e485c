"""What the distances from an origin add up to: how many destinations, how near the nearest, sums, decaying sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.boundary.totals_cuda import row_minima, row_totals
from gpuops.numbers import outside_infinity


@dataclass(frozen=True)
class Reduction:
    """What the distances from an origin are reduced to.

    Attributes
    ----------
    name : "count", "sum", "min" or "decay"
    column : of the destinations, whose values are added up; None counts each as 1
    scale : of the decay: a destination at the distance d counts exp(-d / scale)
    """

    name: str
    column: str | None = None
    scale: float | None = None


def parse_reduction(text: str) -> Reduction:
    """``count``, ``min``, ``sum:COLUMN``, or ``decay:SCALE`` or ``decay:SCALE:COLUMN``.

    >>> parse_reduction("sum:jobs")
    Reduction(name='sum', column='jobs', scale=None)
    """
    name, *rest = text.split(":")
    if name in ("count", "min") and not rest:
        return Reduction(name)
    if name == "sum" and len(rest) == 1 and rest[0]:
        return Reduction(name, rest[0])
    if name == "decay" and 1 <= len(rest) <= 2:
        try:
            scale = float(rest[0])
        except ValueError:
            scale = 0.0
        if 0 < scale < np.inf:
            return Reduction(name, rest[1] if len(rest) == 2 else None, scale)
    raise ValueError(f"reduce is {text!r}; give count, min, sum:COLUMN, decay:SCALE or decay:SCALE:COLUMN")


def reduced(found: Any, reduction: Reduction, values: Any, within: float | None) -> Any:
    """One value for each row of distances; the minimum of none is +inf.

    Parameters
    ----------
    found : (k, l) distances, unreachable as +inf or the integer dtype's maximum; NumPy or CuPy
    values : (l,) float64, what the destinations count; of the same library
    within : destinations that are farther away do not count

    Returns
    -------
    (k,) float64, NumPy or CuPy
    """
    if is_cupy(found):
        return _reduced_on_gpu(found, reduction, values, within)
    reached = found != outside_infinity(found.dtype)
    if within is not None:
        reached &= found <= within
    if reduction.name == "min":
        return np.where(reached, found, np.inf).min(axis=1, initial=np.inf).astype(np.float64)
    if reduction.name == "decay":
        return np.where(reached, np.exp(-found / np.float64(reduction.scale)), 0.0) @ values
    return reached @ values


def _reduced_on_gpu(found: Any, reduction: Reduction, values: Any, within: float | None) -> Any:
    if found.dtype.kind == "f":
        limit = float(np.finfo(found.dtype).max)
        within = within if within is None else float(found.dtype.type(within))  # as NumPy compares it
    else:
        limit = float(outside_infinity(found.dtype)) - 1
    limit = limit if within is None else min(limit, within)
    if reduction.name == "min":
        return row_minima(found, limit)
    return row_totals(found, values, limit, reduction.scale)
