"""Reduce the distances from an origin to one value: a count, the distance of the nearest, a sum, or a decaying sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.boundary.totals import row_minima, row_totals
from gpuops.numbers import outside_infinity


@dataclass(frozen=True)
class Reduction:
    """The value that the distances from an origin are reduced to.

    Attributes
    ----------
    name : "count", "sum", "min" or "decay"
    column : column of the destinations whose values are added up; None counts each destination as 1
    scale : scale of the decay: the value of a destination at the distance d is multiplied by exp(-d / scale)
    """

    name: str
    column: str | None = None
    scale: float | None = None


def parse_reduction(text: str) -> Reduction:
    """Parse ``count``, ``min``, ``sum:COLUMN``, ``decay:SCALE`` or ``decay:SCALE:COLUMN``.

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
    """Return one value for each row of distances; the minimum over no destinations is +inf.

    Parameters
    ----------
    found : (k, l) distances, unreachable as +inf or the integer dtype's maximum; NumPy or CuPy
    values : (l,) float64, the values of the destinations, in the library of `found`
    within : destinations farther away do not count

    Returns
    -------
    (k,) float64, NumPy or CuPy
    """
    limit = _limit(found.dtype, within)
    if reduction.name == "min":
        return row_minima(found, limit)
    return row_totals(found, values, limit, reduction.scale)


def _limit(dtype: np.dtype, within: float | None) -> float:
    """Return the largest distance that counts, rounded to `dtype` if that is a float dtype."""
    if dtype.kind == "f":
        limit = float(np.finfo(dtype).max)
        within = within if within is None else float(dtype.type(within))
    else:
        limit = float(outside_infinity(dtype)) - 1
    return limit if within is None else min(limit, within)
