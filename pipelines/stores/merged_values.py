"""Find columns that lose distinct values when stored as float32, such as Julian days, large offsets, long numbers."""

from __future__ import annotations

import numpy as np

LOOKED_AT = 4096  # most rows examined of a block; the remaining rows are assumed to be similar
MOST_VALUES = 1 << 17  # most values examined of a block
NOISE = 2.0**-46  # a smaller relative difference of two values is taken for a rounding error of float64 sums


class MergedValues:
    """Counts the distinct values of each column, in some rows, and the distinct values that float32 merges."""

    def __init__(self, columns: int):
        self._rows = max(1, min(LOOKED_AT, MOST_VALUES // columns))
        self._merged, self._distinct = np.zeros(columns, np.int64), np.zeros(columns, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Examine a block of values (k, d)."""
        ordered = np.sort(values[: self._rows].astype(np.float64), axis=0)
        apart = np.diff(ordered, axis=0) > NOISE * abs(ordered[1:])
        still = np.diff(ordered.astype(np.float32), axis=0) > 0
        self._distinct += apart.sum(axis=0)
        self._merged += (apart & ~still).sum(axis=0)

    def columns(self) -> np.ndarray:
        """Return the columns in which float32 merges more than 1 % of the distinct values, bool (d)."""
        return 100 * self._merged > self._distinct

    def most(self) -> float:
        """Return the fraction of distinct values that float32 merges, the largest fraction of all columns."""
        return float((self._merged / np.maximum(self._distinct, 1)).max())
