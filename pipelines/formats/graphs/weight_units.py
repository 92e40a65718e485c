"""The units of imported weights: names of columns may contradict them, and lengths of lines are converted."""

from __future__ import annotations

import re

import numpy as np

from pipelines.formats.errors import FormatError
from pipelines.stores.units import METRES, SECONDS, is_time, symbol_of, units_like

_LENGTHS = {"length", "len", "distance", "dist"}
_SPEED = re.compile("(?:max|free)?speeds?(?:kph|kmh|mph)?|velocity|kph|kmh|mph")


def measured(values: np.ndarray, own: str, unit: str | None, what: str) -> tuple[np.ndarray, str]:
    """Return weights that tilepath computed in the unit `own`, in the unit that the user asks for, and this unit.

    `what` says in a message what the weights are; `own` is "" if their unit is not known, as of lengths in a plane
    without a known coordinate system.

    Raises
    ------
    FormatError
        The weights have no such unit.
    """
    if unit is None or unit == own:
        return values, own
    asked, symbol = symbol_of(unit), symbol_of(own)
    known = METRES if not own else units_like(symbol)
    if asked is None or known is None or asked not in known:
        are = f"in {own}" if own else "in units of the coordinates"
        kind = "times" if units_like(asked) is SECONDS else "weights"
        raise FormatError(
            f"unit (--unit) is {unit!r}, but the {what} are {are}; name the column of {kind} (weight, --weight), or "
            "leave unit out"
        )
    return (values if symbol is None else values * (known[symbol] / known[asked])), unit


def contradiction(column: str, unit: str) -> str | None:
    """Return what to say if the name of a column of weights contradicts their unit; None if it does not.

    >>> contradiction("length_m", "s")
    "unit (--unit) is 's', but the name of the column 'length_m' says m; give the unit of its numbers"
    >>> contradiction("travel_time", "km")
    "unit (--unit) is 'km', but the name of the column 'travel_time' says times; give the unit of its numbers"
    >>> contradiction("travel_time", "min"), contradiction("cost", "km"), contradiction("minutes", "euros")
    (None, None, None)
    """
    asked, said = symbol_of(unit), _symbol_in(column)
    if asked is None or asked == said:
        return None
    kind = "times" if is_time(column) else "lengths" if _LENGTHS & set(_words(column)) else ""
    if said is None and kind != ("lengths" if asked in SECONDS else "times"):
        return None
    return (
        f"unit (--unit) is {unit!r}, but the name of the column {column!r:.40} says {said or kind}; give the unit of "
        "its numbers"
    )


def unit_named(column: str) -> str:
    """Return the unit that the name of a column of weights says, "" for a single letter, which may mean anything.

    >>> unit_named("minutes"), unit_named("toll"), unit_named("d")
    ('minutes', 'toll', '')
    """
    return column if len(column) != 1 else ""


def is_speed(column: str) -> bool:
    """Return whether the name of a column says that its numbers are speeds, which no path adds up.

    >>> is_speed("speed_kph"), is_speed("maxspeed"), is_speed("free_speed_time"), is_speed("cost")
    (True, True, False, False)
    """
    return not is_time(column) and any(map(_SPEED.fullmatch, _words(column)))


def says_time(column: str) -> bool:
    """Return whether the name of a column says that its numbers are times, such as "seconds" or "travel_time"."""
    return _symbol_in(column) in SECONDS or is_time(column)


def _symbol_in(column: str) -> str | None:
    """Return the symbol of the unit that the name of a column ends with; None for none, and for a single letter.

    >>> _symbol_in("length_m"), _symbol_in("TravelTimeMin"), _symbol_in("d"), _symbol_in("speed_m_s")
    ('m', 'min', None, None)
    """
    *before, last = _words(column) or [""]
    if (not before and len(last) < 2) or (before and symbol_of(before[-1])):
        return None
    return symbol_of(last)


def _words(column: str) -> list[str]:
    return [word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", column)]
