"""Check the options of functions: whole numbers, numbers, and names out of a list."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int; raise ValueError unless it is a whole number from `low` to `high`, if there is one.

    >>> whole("rows", 3, 1)
    3
    >>> whole("rows", 0, 1)
    Traceback (most recent call last):
    ValueError: rows is 0; give a whole number from 1
    """
    of_kind = isinstance(value, Integral) and not isinstance(value, bool)
    if not of_kind or value < low or (high is not None and value > high):
        to = "" if high is None else f" to {high}"
        raise ValueError(f"{name} is {value!r}; give a whole number from {low}{to}")
    return int(value)


def number(name: str, value: Any, low: float, high: float | None = None) -> float:
    """Return `value`; raise ValueError unless it is a number from `low` to `high`, if there is one."""
    of_kind = isinstance(value, Real) and not isinstance(value, bool)
    if not of_kind or not value >= low or (high is not None and not value <= high):
        to = "" if high is None else f" to {high:g}"
        raise ValueError(f"{name} is {value!r}; give a number from {low:g}{to}")
    return value


def one_of(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise ValueError unless `value` is one of the `choices`.

    >>> one_of("order", "up", ("rows", "columns"))
    Traceback (most recent call last):
    ValueError: order is 'up'; pass one of 'rows', 'columns'
    """
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; pass one of {', '.join(map(repr, choices))}")
