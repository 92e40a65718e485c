"""What is read from a source of samples: some columns are values, one may be labels and one weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias

import numpy as np

from pipelines.formats.arc_sort import FormatError

PIECE_BYTES = 32 << 20


class Rows(NamedTuple):
    """Some samples: (k, d) values with NaN for those that are missing, (k) weights or None, (k) labels or None."""

    values: np.ndarray
    weights: np.ndarray | None
    labels: list[str | None] | None


class Wanted(NamedTuple):
    """The columns of a source to read, by name or position from 0; None: all that are neither label nor weight."""

    columns: Sequence[str | int] | None = None
    label: str | int | None = None
    weight: str | int | None = None


class Chosen(NamedTuple):
    """Positions of the columns to read."""

    values: list[int]
    label: int | None
    weight: int | None


# What a reader is: names of the values, and the samples in pieces, while the source is open.
Source: TypeAlias = AbstractContextManager[tuple[list[str], Iterator[Rows]]]


def choose_columns(source: str, names: Sequence[str], wanted: Wanted) -> Chosen:
    """Positions of the values, the label and the weight among columns called `names`; FormatError if one is missing."""

    def position(column: str | int) -> int:
        if isinstance(column, str) and column in names:
            return names.index(column)
        if str(column).isdecimal() and int(column) < len(names):
            return int(column)
        shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
        raise FormatError(f"{source}: there is no column {column!r}; columns are {shown}")

    label = None if wanted.label is None else position(wanted.label)
    weight = None if wanted.weight is None else position(wanted.weight)
    if wanted.columns is None:
        values = [column for column in range(len(names)) if column not in (label, weight)]
    else:
        values = [position(column) for column in wanted.columns]
    chosen = [*values, *(c for c in (label, weight) if c is not None)]
    if not values:
        raise FormatError(f"{source}: there is no column of values; name at least one (--columns)")
    if len(set(chosen)) < len(chosen):
        twice = next(names[column] for column in chosen if chosen.count(column) > 1)
        raise FormatError(f"{source}: column {twice!r} was chosen twice; use it as value, label or weight, only once")
    return Chosen(values, label, weight)


def distinct(source: str, names: Sequence[str]) -> list[str]:
    """The names without blanks around them; FormatError if two are the same."""
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FormatError(f"{source}: two columns are called {twice!r}; give each a different name")
    return names


def named_label(value: float | int | str | bytes) -> str | None:
    """A label from an array; None for NaN and for empty text.

    >>> named_label(3.0), named_label(12345678), named_label(b"B cell"), named_label(float("nan"))
    ('3', '12345678', 'B cell', None)
    """
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else repr(value)
    return str(value) or None
