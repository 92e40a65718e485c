"""Compute a block of origins: the distances to all destinations, or a value for each origin.

The distances from an origin are reduced to a count, the distance of the nearest, a sum or a mean; in counts, sums and
means, weights may fall with the distance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gpuops.arrays import library_of
from gpuops.hierarchy.totals import row_minima, row_totals
from gpuops.numbers import outside_infinity
from pipelines.od_tables.units import Measured
from pipelines.routes.distances import BATCH, SearchedDistances
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.units import read_numbers
from pipelines.workers.device_arrays import to_host

Ask: TypeAlias = Callable[[np.ndarray], np.ndarray]  # from the vertices of some origins to a row for each origin
DEVICE_PAIRS = 1 << 27  # least number of pairs whose distances are computed on a GPU at a time


REDUCE = "SCALE of reduce (--reduce)"
DECAYS = ("linear", "exponential")
SEVERAL = re.compile(r"\s*,\s*(?=(?:count|min|sum:|mean:|decay:))")  # a comma within the name of a column stays


@dataclass(frozen=True)
class Reduction:
    """The value that the distances from an origin are reduced to.

    Attributes
    ----------
    name : "count", "sum", "mean", "min" or "decay"
    column : column of the destinations whose values are added up; None counts each destination as 1
    scale : a destination at the distance d has the weight exp(-d / scale), or 1 - d / scale if `linear`; with None, 1
    linear : whether weights fall linearly
    within : destinations farther away do not count; None for any distance
    ending : end of the name of the column in the table
    """

    name: str
    column: str | None = None
    scale: float | None = None
    linear: bool = False
    within: float | None = None
    ending: str = ""

    @property
    def title(self) -> str:
        """The name of the column in the table, such as "sum_jobs"."""
        return self.name + ("" if self.column is None else f"_{self.column}") + self.ending

    def weights(self, found: Any) -> Any:
        """Return the weights of destinations at some distances, NumPy or CuPy, float64."""
        xp = library_of(found)
        if self.scale is None:
            return xp.ones(found.shape)
        return 1 - found / np.float64(self.scale) if self.linear else xp.exp(-found / np.float64(self.scale))


def parse_reduction(
    text: str, decay: str | None = None, within: float | None = None, value: Measured | None = None
) -> Reduction:
    """Parse ``count``, ``min``, ``sum:COLUMN``, ``mean:COLUMN``, ``decay:SCALE`` or ``decay:SCALE:COLUMN``.

    `decay` ("linear" or "exponential") makes weights fall with the distance on the scale of `within`; it goes with
    count, sum and mean. A SCALE may have a unit, such as 10min: `value` has the unit of the table.

    >>> parse_reduction("sum:jobs")
    Reduction(name='sum', column='jobs', scale=None, linear=False, within=None, ending='')
    """
    found = _parsed(text, value)
    if decay is None:
        return found
    if decay not in DECAYS:
        raise ValueError(f"decay is {decay!r}; choose {' or '.join(DECAYS)}")
    if found.name not in ("count", "sum", "mean"):
        raise ValueError("decay (--decay) goes with count, sum and mean only; leave it out")
    if within is None or not within > 0:
        raise ValueError("decay (--decay) needs within (--within) above 0, the distance at which it ends")
    return replace(found, scale=float(within), linear=decay == "linear")


def reductions_in(given: str | Sequence[str] | None) -> list[str]:
    """Return the texts of the option `reduce`: of a list, or of a text with commas; [] for None.

    >>> reductions_in("count, sum:jobs,min")
    ['count', 'sum:jobs', 'min']
    """
    if given is None or isinstance(given, str):
        return [] if given is None else SEVERAL.split(given)
    found = list(given)
    if not found or not all(isinstance(each, str) for each in found):
        raise ValueError(f"reduce is {given!r}; give a text such as 'count', or a list of texts")
    return found


def _parsed(text: str, value: Measured | None) -> Reduction:
    name, *rest = text.split(":")
    if name in ("count", "min") and not rest:
        return Reduction(name)
    if name in ("sum", "mean") and len(rest) == 1 and rest[0]:
        return Reduction(name, rest[0])
    if name == "decay" and 1 <= len(rest) <= 2:
        scale = value.limit(rest[0], REDUCE) if value is not None else read_numbers(rest[0], REDUCE)[0][0]
        if scale is not None and 0 < scale < np.inf:
            return Reduction(name, rest[1] if len(rest) == 2 else None, scale)
    raise ValueError(f"reduce is {text!r}; give count, min, sum:COLUMN, mean:COLUMN, decay:SCALE or decay:SCALE:COLUMN")


def reduced(found: Any, reduction: Reduction, values: Any) -> Any:
    """Return one value for each row of distances; the minimum over no destinations is +inf, and the mean NaN.

    Parameters
    ----------
    found : (k, l) distances, unreachable as +inf or the integer dtype's maximum; NumPy or CuPy
    values : (l,) float64, the values of the destinations, in the library of `found`

    Returns
    -------
    (k,) float64, NumPy or CuPy
    """
    limit = _limit(found.dtype, reduction.within)
    if reduction.name == "min":
        return row_minima(found, limit)

    def total(values: Any) -> Any:
        if not reduction.linear:
            return row_totals(found, values, limit, reduction.scale)
        return library_of(found).where(found <= limit, reduction.weights(found), 0.0) @ values

    if reduction.name != "mean":
        return total(values)
    with np.errstate(invalid="ignore"):  # NaN where no destination counts
        return total(values) / total(library_of(found).ones_like(values))


def _limit(dtype: np.dtype, within: float | None) -> float:
    """Return the largest distance that counts, rounded to `dtype` if that is a float dtype."""
    if dtype.kind == "f":
        limit = float(np.finfo(dtype).max)
        within = within if within is None else float(dtype.type(within))
    else:
        limit = float(outside_infinity(dtype)) - 1
    return limit if within is None else min(limit, within)


class DistancesTo:
    """Distances from any vertices to some targets; unreachable is +inf, or the maximum of an integer dtype."""

    def __init__(self, source: HierarchyStore | Graph, targets: np.ndarray):
        if isinstance(source, HierarchyStore):
            self.dtype = source.dtype
            self.rows: Ask = lambda v: source.between(v, targets)
            return
        if source.weight_min < 0:
            raise ValueError(
                f"{source.path} has negative weights; make a hierarchy store of it first (tilepath hierarchy)"
            )
        found = SearchedDistances(source)
        self.dtype = found.dtype
        none = np.empty((0, len(targets)), found.dtype)
        self.rows = lambda v: np.concatenate(
            [none, *(found.search(v[i : i + BATCH])[:, targets] for i in range(0, len(v), BATCH))]
        )


@dataclass(frozen=True, eq=False)
class Reducing:
    """A table with one row for each origin.

    Attributes
    ----------
    targets : (l,) vertices
    reductions : the values that the distances from an origin are reduced to: c columns
    values : for each reduction (l,), the value that each target counts
    rows : number of origins whose distances to all targets are in memory at a time
    """

    targets: np.ndarray
    reductions: Sequence[Reduction]
    values: Sequence[np.ndarray]
    rows: int

    def of(self, found: DistancesTo) -> Ask:
        """Return a function that computes the values of origins, (k, c), from distances on the CPU."""
        return self._ask(found.rows, self.values, self.rows)

    def on_gpu(self, store: HierarchyStore) -> Ask:
        """Return a function that computes the values of origins on the GPU; the tables of `store` are copied there now.

        A GPU adds sums in another order than a CPU does, so that their rounding differs.
        """
        import cupy

        targets, values = self.targets, [cupy.asarray(each) for each in self.values]
        ask = self._ask(lambda v: store.between_on_gpu(v, targets), values, self.rows_on_gpu)
        ask(targets[:1])  # lays out tables and targets, and compiles the kernels
        return ask

    @property
    def rows_on_gpu(self) -> int:
        """Number of origins whose distances to all targets are in the memory of a GPU at a time."""
        return max(self.rows, DEVICE_PAIRS // max(1, len(self.targets)))

    def _ask(self, find: Callable[[np.ndarray], Any], values: Sequence[Any], rows: int) -> Ask:
        def columns(found: Any) -> np.ndarray:
            each = zip(self.reductions, values, strict=True)
            return np.stack([to_host(reduced(found, reduction, of)) for reduction, of in each], axis=1)

        def ask(vertices: np.ndarray) -> np.ndarray:
            pieces = (vertices[i : i + rows] for i in range(0, len(vertices), rows))
            return np.concatenate([columns(find(piece)) for piece in pieces])

        return ask
