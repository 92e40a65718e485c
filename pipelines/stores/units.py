"""Units of time and of length, by all names that networks and users give them, and numbers with such units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

SHORT = 60.0  # seconds; shorter limits without a unit are often meant in minutes
SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
METRES = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344}
_OTHER_NAMES = {
    "ms": ("millisecond", "milliseconds"),
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
    "m": ("metre", "metres", "meter", "meters"),
    "km": ("kilometre", "kilometres", "kilometer", "kilometers"),
    "ft": ("foot", "feet"),
    "mi": ("mile", "miles"),
}
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf|nan)\s*([a-zA-Z]*)"
_SYMBOLS = {name: symbol for symbol, names in _OTHER_NAMES.items() for name in (symbol, *names)}


def symbol_of(unit: str) -> str | None:
    """Return the symbol of a unit, such as "min" for "Minutes"; None if the unit is not known."""
    return _SYMBOLS.get(str(unit).strip().casefold())


def is_time(unit: str) -> bool:
    """Return whether a unit, or the name of a column that is taken for one, says that numbers are times.

    >>> is_time("Mins"), is_time("travel_time"), is_time("km"), is_time("")
    (True, True, False, False)
    """
    return symbol_of(unit) in SECONDS or "time" in unit.lower() or "duration" in unit.lower()


def shown_unit(unit: str, name: str) -> str:
    """Return the unit of weights; "" if it is only the name of their column, which imports store if no unit is given.

    >>> shown_unit("toll", "toll"), shown_unit("seconds", "seconds"), shown_unit("euros", "toll")
    ('', 'seconds', 'euros')
    """
    return "" if unit == name and symbol_of(unit) is None else unit


def no_unit(unit: str) -> str:
    """Return what a message says of a unit that is not known: the name that is probably meant, and all symbols.

    >>> no_unit("minuts")
    "'minuts', which is no unit; did you mean 'minutes'? Units are ms, s, min, h, d, m, km, ft, mi"
    """
    near = meant_by(unit)
    hint = f"did you mean {near!r}? Units" if near else "units"
    return f"{unit!r}, which is no unit; {hint} are {', '.join((*SECONDS, *METRES))}"


def meant_by(unit: str) -> str | None:
    """Return the known name that a misspelt unit is probably meant for; None if no name is near.

    >>> meant_by("secnods"), meant_by("euros")
    ('seconds', None)
    """
    return next(iter(get_close_matches(str(unit).strip().casefold(), _SYMBOLS, 1, 0.75)), None)


def read_numbers(given: Any, what: str) -> tuple[list[float], str]:
    """Return numbers and their unit, "" if there is none, of a number, a text or a list of these.

    >>> read_numbers("5, 10min", "within"), read_numbers(["5 min", "10 min"], "within"), read_numbers(2.5, "within")
    (([5.0, 10.0], 'min'), ([5.0, 10.0], 'min'), ([2.5], ''))

    Raises
    ------
    ValueError
        A text has no numbers, several units are given, or some entries of a list have a unit and others have none; the
        message calls the numbers `what`.
    """
    if not isinstance(given, str):
        several = list(given) if hasattr(given, "__iter__") and getattr(given, "ndim", 1) != 0 else [given]
        if not any(isinstance(each, str) for each in several):
            try:
                return [float(each) for each in several], ""
            except (TypeError, ValueError):
                raise ValueError(f"{what} is {given!r}; give numbers, or a text such as '5min'") from None
        if len({any(unit for _, unit in re.findall(_NUMBER, str(each))) for each in several}) > 1:
            raise ValueError(f"{what} is {given!r}, of which some have no unit; give every entry a unit, or none")
        given = ",".join(map(str, several))
    text = given.strip()
    if not re.fullmatch(rf"{_NUMBER}(\s*[,;\s]\s*{_NUMBER})*", text):
        raise ValueError(f"{what} is {given!r}; give numbers, each with a unit or without, such as 5 or 5min")
    found = re.findall(_NUMBER, text)
    units = dict.fromkeys(unit for _, unit in found if unit)
    if len(units) > 1:
        raise ValueError(f"{what} is {given!r}, in {' and in '.join(units)}; give all numbers in one unit")
    return [float(number) for number, _ in found], next(iter(units), "")


def per_unit(unit: str, own: str, what: str) -> float:
    """Return how many units of the network, which is called `own`, there are in one `unit`; 1 if `unit` is "".

    Raises
    ------
    ValueError
        `unit` is not known, or is no unit of the same kind as `own`; the message says that `what` is in this unit.
    """
    if not unit:
        return 1.0
    asked, symbol = symbol_of(unit), symbol_of(own)
    units = units_like(symbol)
    if asked is None:
        raise ValueError(f"{what} is in {no_unit(unit)}")
    if units is None or symbol is None:
        recorded = f"{own!r}, which is no unit of time or length" if own else "not known"
        raise ValueError(
            f"{what} is in {unit}, but the unit of the network is {recorded}; import the network with its unit (unit, "
            "--unit), or give numbers without a unit"
        )
    if asked not in units:
        raise ValueError(f"{what} is in {unit}, but distances are in {own}; choose one of {', '.join(units)}")
    return units[asked] / units[symbol]


def limits_in(given: Any, own: str, what: str) -> list[float]:
    """Return limits in the unit `own`, of a number, a text such as "5,10min" or a list of these.

    >>> limits_in("1,2min", "s", "within")
    [60.0, 120.0]
    """
    numbers, unit = read_numbers(given, what)
    if not numbers or not all(number >= 0 for number in numbers):
        raise ValueError(f"{what} is {given}; give a distance of 0 or more, with a unit or without")
    return [number * per_unit(unit, own, what) for number in numbers]


def limit_in(given: float | str | None, own: str, what: str) -> float | None:
    """Return a limit in the unit `own`; a text such as "2min" may have another unit. None stays None.

    >>> limit_in("2min", "s", "within"), limit_in(5, "s", "within")
    (120.0, 5.0)
    """
    if given is None:
        return None
    found = limits_in(given, own, what)
    if len(found) != 1:
        raise ValueError(f"{what} is {given}; give a distance of 0 or more, with a unit or without")
    return found[0]


def question_of_short(limits: Sequence[float], unit: str, what: str, whose: str, things: str) -> str | None:
    """Return what to say if limits without a unit reach hardly any of the `things`; None unless they are short times.

    `unit` is the unit in which the limits are read, `whose` the network or table that has it, and `what` the name of
    the limits.
    """
    own = SECONDS.get(symbol_of(unit) or "", float("inf"))
    if own > 1 or not 0 < max(limits) * own < SHORT:
        return None
    text = ",".join(f"{limit:g}" for limit in limits)
    return (
        f"{what} is {text} in {unit}, the unit of the {whose}, in which hardly any {things} is reached; "
        f"write '{text}min' for minutes, or '{text}{unit}'"
    )


def units_like(symbol: str | None) -> dict[str, float] | None:
    """Return all units of time, in seconds, or of length, in metres, like the given unit; None for an unknown unit."""
    return next((units for units in (SECONDS, METRES) if symbol in units), None)
