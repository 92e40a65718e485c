"""Stored samples, maps and mappings as columns: of a pandas DataFrame, and of an exported table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import pandas

Columns = dict[str, Any]  # NumPy or Arrow arrays of equal length, by name


class TableStore(ABC):
    """A store that is a table: with a row for each sample, or for each unit of a map."""

    @abstractmethod
    def table_columns(self, start: int, stop: int) -> Columns:
        """Return the columns of the rows from `start` to `stop` (excluded)."""

    @property
    @abstractmethod
    def table_rows(self) -> int:
        """The number of rows of the table."""

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a DataFrame, with the columns that `tilepath export` writes."""
        import pandas

        return pandas.DataFrame({k: _values(v) for k, v in self.table_columns(0, self.table_rows).items()})


def with_columns(columns: Columns, names: Iterable[str], values: Iterable[Any]) -> Columns:
    """Return `columns` with further columns; a name that is taken gets an underscore."""
    found = dict(columns)
    for name, column in zip(names, values, strict=True):
        while name in found:
            name += "_"
        found[name] = column
    return found


def _values(column: Any) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else np.asarray(column)
