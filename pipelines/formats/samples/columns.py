"""What is read from a source of samples: some columns are values, others may be labels, weights and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipelines.formats.arc_sort import FormatError

PIECE_BYTES = 32 << 20  # of values in float64 that are read at a time


class Rows(NamedTuple):
    """Some samples: (k, d) values with NaN for those that are missing; (k) weights, labels and ids, or None."""

    values: np.ndarray
    weights: np.ndarray | None = None
    labels: list[Any] | None = None
    ids: list[Any] | None = None


class Wanted(NamedTuple):
    """The columns of a source to read, by name or position from 0; `columns` None: all that nothing else names.

    `piece_bytes` of values, in float64, are read at a time.
    """

    columns: Sequence[str | int] | None = None
    label: str | int | None = None
    weight: str | int | None = None
    ids: str | int | None = None
    exclude: Sequence[str | int] = ()
    piece_bytes: int = PIECE_BYTES

    def of_values(self) -> Wanted:
        """The same without what stands beside the values."""
        return self._replace(label=None, weight=None, ids=None)


class Chosen(NamedTuple):
    """Positions of the columns to read, and what those of values are called."""

    values: list[int]
    label: int | None
    weight: int | None
    ids: int | None
    names: list[str]

    def extras(self) -> list[int]:
        return [column for column in (self.label, self.weight, self.ids) if column is not None]


class Opened(NamedTuple):
    """An open source of samples.

    `line_of` gives the line in which a row ends, in text; `ids` says whether rows have ids, asked for or not.
    """

    names: list[str]
    rows: Iterator[Rows]
    line_of: Callable[[int], int | None] = lambda row: None
    ids: bool = False


Source: TypeAlias = AbstractContextManager[Opened]


def choose_columns(
    source: str, names: Sequence[str], wanted: Wanted, also_called: Sequence[str] | None = None
) -> Chosen:
    """Positions of the columns that are wanted; FormatError if one is missing, or has been named twice.

    A column may be named by what it is `also_called`, unless several are; one of values is then called that.
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
        raise FormatError(f"{source}: there is no column of values; name at least one (--columns)")
    if len(set(chosen)) < len(chosen):
        twice = next(names[column] for column in chosen if chosen.count(column) > 1)
        raise FormatError(
            f"{source}: column {twice!r} was chosen twice; use it as value, label, weight or id, or leave it out, once"
        )
    asked = wanted.columns or values
    called = [name if name in others else names[column] for column, name in zip(values, asked, strict=True)]
    return Chosen(values, label, weight, ids, [str(name) for name in called])


def distinct(source: str, names: Sequence[str]) -> list[str]:
    """The names without blanks around them; FormatError if two are the same."""
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FormatError(f"{source}: two columns are called {twice!r}; give each a different name")
    return names
