"""Columns that lose distinct values when they are stored as float32: Julian days, large offsets, long numbers."""

from __future__ import annotations

import numpy as np

LOOKED_AT = 4096  # rows of each block, the others are taken to be like them
MOST_VALUES = 1 << 17  # of a block
NOISE = 2.0**-46  # values that differ by less, relative to themselves, differ by the rounding of float64 sums


class MergedValues:
    """Counts distinct values of each column, in some rows, and how many of them float32 makes the same."""

    def __init__(self, columns: int):
        self._rows = max(1, min(LOOKED_AT, MOST_VALUES // columns))
        self._merged, self._distinct = np.zeros(columns, np.int64), np.zeros(columns, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Look at a block of values (k, d)."""
        ordered = np.sort(values[: self._rows].astype(np.float64), axis=0)
        apart = np.diff(ordered, axis=0) > NOISE * abs(ordered[1:])
        still = np.diff(ordered.astype(np.float32), axis=0) > 0
        self._distinct += apart.sum(axis=0)
        self._merged += (apart & ~still).sum(axis=0)

    def columns(self) -> np.ndarray:
        """bool (d): the columns in which more than one distinct value in a hundred is merged."""
        return 100 * self._merged > self._distinct

    def most(self) -> float:
        """The largest part of the distinct values of a column that is merged."""
        return float((self._merged / np.maximum(self._distinct, 1)).max())
