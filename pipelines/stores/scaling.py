"""Scalings of the columns of samples, and their inverses, for display and for samples in the scaling of a map.

========= ============================ =====================================================
kind      stored value                 offset, factor of a column
========= ============================ =====================================================
none      x                            0, 1
zscore    (x - offset) / factor        mean, standard deviation (of the population)
minmax    (x - offset) / factor        least value, greatest minus least value
arcsinh   arcsinh(x / factor)          0, the cofactor
========= ============================ =====================================================

x is a value of the source, or the transformed value if the column has a transform (`pipelines.stores.transforms`). A
constant column has the factor 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.stores import transforms

MISSING_CURE = "declare that values are missing (missing=True, --missing), or leave the row out"
SCALINGS = ("none", "zscore", "minmax", "arcsinh")
BLOCK_VALUES = 1 << 20
LARGEST = 2.0**500  # the largest magnitude that the search for best matching units accepts


class RowError(ValueError):
    """A row of a source cannot be stored. `row` counts from 0, and `what` continues the message after the row."""

    def __init__(self, source: str, row: int, what: str):
        super().__init__(f"{source}: row {row} (from 0){what}")
        self.row, self.what = row, what


@dataclass(frozen=True)
class Scaling:
    """A scaling of one of the kinds in `SCALINGS`: an offset, a factor and possibly a transform for each column."""

    kind: str
    offsets: tuple[float, ...]
    factors: tuple[float, ...]
    transforms: tuple[str, ...] = ()  # one per column, "" for no transform; empty if no column has a transform

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Return the stored values, float64, of the values (k, d) of the source."""
        values = transforms.apply(self.transforms, np.asarray(values, np.float64))
        if self.kind == "none":
            return values
        with np.errstate(over="ignore"):
            values = (values - np.array(self.offsets)) / np.array(self.factors)
        return np.arcsinh(values) if self.kind == "arcsinh" else values

    def undo(self, values: np.ndarray) -> np.ndarray:
        """Return stored values (..., d), for example a codebook, in units of the source, float64."""
        values = np.asarray(values, np.float64)
        if self.kind == "arcsinh":
            values = np.sinh(values)
        if self.kind != "none":
            values = values * np.array(self.factors) + np.array(self.offsets)
        return transforms.undo(self.transforms, values)

    def words(self, column: int) -> str:
        """Return the name of the scale that values of a column are stored on, "" if it is the scale of the source."""
        transform = self.transforms[column] if self.transforms else ""
        scale = {"none": "", "zscore": "z-score", "minmax": "from 0 to 1"}.get(
            self.kind, f"arcsinh(x / {self.factors[column]:g})"
        )
        return ", ".join(filter(None, (transform, scale)))

    def recorded(self) -> dict[str, Any]:
        """Return the scaling as JSON."""
        found = {"kind": self.kind, "offsets": list(self.offsets), "factors": list(self.factors)}
        return found | ({"transforms": list(self.transforms)} if self.transforms else {})


def refuse_beyond(
    scaled: np.ndarray, dtype: np.dtype, source: str, columns: Sequence[str], first: int | None = None
) -> None:
    """Raise an error if values exceed `dtype` after the scaling of other samples was applied.

    The error is a RowError whose rows count from `first`, or a plain ValueError if `first` is None.
    """
    limit = min(LARGEST, float(np.finfo(dtype).max))
    beyond = abs(scaled) > limit
    if beyond.any():
        row, column = (int(i[0]) for i in np.nonzero(beyond))
        what = (
            f"column {columns[column]!r} is {scaled[row, column]:.3g} once it is scaled like the other samples; "
            f"{dtype} samples go up to {limit:.3g}; correct it, or leave the row out"
        )
        if first is None:
            raise ValueError(f"{source}: a value of {what}")
        raise RowError(source, first + row, f", {what}")


def scaling_from(recorded: dict[str, Any], columns: int) -> Scaling:
    """Return the scaling that `Scaling.recorded` described; raises ValueError unless it has this number of columns."""
    offsets, factors = (tuple(map(float, recorded[name])) for name in ("offsets", "factors"))
    if recorded["kind"] not in SCALINGS or not len(offsets) == len(factors) == columns:
        raise ValueError(f"the scaling {recorded['kind']} has {len(factors)} columns, expected {columns}")
    of_columns = tuple(map(str, recorded.get("transforms", ())))
    if len(of_columns) not in (0, columns):
        raise ValueError(f"there are transforms of {len(of_columns)} columns, expected {columns}")
    transforms.check(of_columns)
    return Scaling(recorded["kind"], offsets, factors, of_columns)


class Moments:
    """Extremes, means and variances of the values present in each column.

    Values are collected until a block is full, so that every sum is rounded the same way and results do not depend on
    how the rows are cut into pieces. Blocks are merged as in T. F. Chan, G. H. Golub and R. J. LeVeque (Technical
    Report STAN-CS-79-773, 1979).
    """

    def __init__(self, columns: int):
        rows = max(1, min(4096, BLOCK_VALUES // columns))
        self.counts = np.zeros(columns, np.int64)
        self.means, self._squares = np.zeros(columns), np.zeros(columns)
        self.minima, self.maxima = np.full(columns, np.inf), np.full(columns, -np.inf)
        self._block, self._held = np.empty((rows, columns)), 0

    def add(self, values: np.ndarray) -> None:
        """Add (k, d) values."""
        while len(values):
            count = min(len(values), len(self._block) - self._held)
            self._block[self._held : self._held + count] = values[:count]
            self._held, values = self._held + count, values[count:]
            if self._held == len(self._block):
                self._merge()

    def finish(self) -> Moments:
        """Merge the last block and return self; no values may be added afterwards."""
        if self._held:
            self._merge()
        return self

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (d)."""
        return np.sqrt(self._squares / np.maximum(self.counts, 1))

    def _merge(self) -> None:
        block, self._held = self._block[: self._held], 0
        minima, maxima = block.min(axis=0), block.max(axis=0)
        if (minima == minima).all():  # false if the block holds a NaN
            counts = np.full(block.shape[1], len(block))
            means = block.sum(axis=0) / counts
            squares = np.square(block - means).sum(axis=0)
        else:
            present = ~np.isnan(block)
            counts = present.sum(axis=0)
            means = np.where(present, block, 0).sum(axis=0) / np.maximum(counts, 1)
            squares = np.square(np.where(present, block - means, 0)).sum(axis=0)
            minima = np.where(present, block, np.inf).min(axis=0)
            maxima = np.where(present, block, -np.inf).max(axis=0)
        total = np.maximum(self.counts + counts, 1)
        step = np.where(counts > 0, means - self.means, 0)
        self._squares += squares + step * step * (self.counts * counts / total)
        self.means += step * (counts / total)
        self.counts += counts
        self.minima, self.maxima = np.minimum(self.minima, minima), np.maximum(self.maxima, maxima)
