"""Stored samples, maps and mappings as columns: of a pandas DataFrame, and of an exported table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipelines.stores.displays import aligned, html_table, on_one_line

if TYPE_CHECKING:
    import pandas

SHOWN = 5  # rows shown of a table
MOST_COLUMNS = 12  # columns shown

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

    @abstractmethod
    def describe(self) -> str:
        """Return a one-line description of the store, for display."""

    def __repr__(self) -> str:
        try:
            rows = self._first_rows()
        except (ValueError, OSError) as error:  # a text is for looking into faults, too
            return f"<{self.describe()}>\nrows cannot be read: {error}"
        more = [f"and {self.table_rows - SHOWN:,} more"] if self.table_rows > SHOWN else []
        return "\n".join([f"<{self.describe()}>", *aligned(rows), *more])

    def _repr_html_(self) -> str:
        try:
            return html_table(self.describe(), self._first_rows(), max(0, self.table_rows - SHOWN))
        except (ValueError, OSError):
            return f"<pre>{escape(repr(self))}</pre>"

    def _first_rows(self) -> list[list[str]]:
        """Return the names of the first columns, and their values in the first rows, as text."""
        columns = self.table_columns(0, min(SHOWN, self.table_rows))
        names = list(columns)[:MOST_COLUMNS]
        cells = [[shown(value) for value in _values(columns[name]).tolist()] for name in names]
        table = [list(map(shown, names)), *map(list, zip(*cells, strict=True))]
        return [[*row, "..."] for row in table] if len(columns) > MOST_COLUMNS else table

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


def as_array(path: str, values: np.ndarray, dtype: Any, copy: bool | None) -> np.ndarray:
    """Return the values of the store at `path` as ``__array__`` of NumPy has to."""
    if copy is False:
        raise ValueError(f"{path}: a store cannot be an array without a copy; pass copy=None")
    return values if dtype is None else values.astype(dtype, copy=False)


def shown(value: Any) -> str:
    """Return a value of a table as text on one line."""
    return on_one_line(f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value))


def _values(column: Any) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else np.asarray(column)
