"""Choose the columns of a source of samples: columns of values, and optionally of labels, weights and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipelines.formats.errors import FormatError

PIECE_BYTES = 32 << 20  # bytes of values, in float64, that are read at a time


class Rows(NamedTuple):
    """Some samples: values (k, d), NaN where missing; weights, labels and ids, (k) each, or None."""

    values: np.ndarray
    weights: np.ndarray | None = None
    labels: list[Any] | None = None
    ids: list[Any] | None = None


class Wanted(NamedTuple):
    """The columns of a source to read, by name or position from 0.

    If `columns` is None, all columns that no other field names are values. `piece_bytes` bytes of values, in float64,
    are read at a time. `missing` is True if values may be missing.
    """

    columns: Sequence[str | int] | None = None
    label: str | int | None = None
    weight: str | int | None = None
    ids: str | int | None = None
    exclude: Sequence[str | int] = ()
    piece_bytes: int = PIECE_BYTES
    missing: bool = False

    def stripped(self) -> Wanted:
        """Return a copy without blanks around names; `distinct` removes them from the names of a source."""
        return self._replace(
            columns=None if self.columns is None else [*map(_strip, self.columns)],
            label=_strip(self.label),
            weight=_strip(self.weight),
            ids=_strip(self.ids),
            exclude=[*map(_strip, self.exclude)],
        )

    def of_values(self) -> Wanted:
        """Return a copy without labels, weights and ids."""
        return self._replace(label=None, weight=None, ids=None)


def _strip(column: Any) -> Any:
    return column.strip() if isinstance(column, str) else column


class Chosen(NamedTuple):
    """Positions of the columns to read, and the names of the columns of values."""

    values: list[int]
    label: int | None
    weight: int | None
    ids: int | None
    names: list[str]

    def extras(self) -> list[int]:
        return [column for column in (self.label, self.weight, self.ids) if column is not None]


class Opened(NamedTuple):
    """An open source of samples.

    `line_of` returns the line of a text file in which a row ends, else None. `ids` is True if rows have ids without a
    column for them.
    """

    names: list[str]
    rows: Iterator[Rows]
    line_of: Callable[[int], int | None] = lambda row: None
    ids: bool = False


Source: TypeAlias = AbstractContextManager[Opened]


def choose_columns(
    source: str, names: Sequence[str], wanted: Wanted, also_called: Sequence[str] | None = None
) -> Chosen:
    """Return the positions of the wanted columns; FormatError if a column is missing, or is named twice.

    `also_called` has a second name of each column. A column may be named by its second name unless several columns have
    it; a column of values that is named so gets the second name.
    """
    others = [""] * len(names) if also_called is None else list(also_called)

    def position(column: str | int) -> int:
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, str) and others.count(column) == 1:
            return others.index(column)
        if str(column).isdecimal() and int(column) < len(names):
            return int(column)
        if isinstance(column, str) and column in others:
            several = ", ".join(repr(name) for name, other in zip(names, others, strict=True) if other == column)
            raise FormatError(f"{source}: several columns are called {column!r}; name one of {several}")
        shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
        raise FormatError(f"{source}: there is no column {column!r}; columns are {shown}")

    label, weight, ids = (None if c is None else position(c) for c in (wanted.label, wanted.weight, wanted.ids))
    excluded = [position(column) for column in wanted.exclude]
    beside = [c for c in (label, weight, ids) if c is not None]
    if wanted.columns is None:
        values = [column for column in range(len(names)) if column not in (*beside, *excluded)]
    else:
        values = [position(column) for column in wanted.columns]
    chosen = [*values, *beside, *excluded]
    if not values:
        raise FormatError(f"{source}: there is no column of values; name at least one (columns, --columns)")
    if len(set(chosen)) < len(chosen):
        twice = next(names[column] for column in chosen if chosen.count(column) > 1)
        raise FormatError(
            f"{source}: column {twice!r} was chosen twice; use it once, as value, label, weight or id, or leave it out"
        )
    asked = wanted.columns or values
    called = [name if name in others else names[column] for column, name in zip(values, asked, strict=True)]
    return Chosen(values, label, weight, ids, [str(name) for name in called])


def distinct(source: str, names: Sequence[str]) -> list[str]:
    """Return the names without blanks around them; FormatError if two names are equal."""
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FormatError(f"{source}: two columns are called {twice!r}; give each a different name")
    return names
