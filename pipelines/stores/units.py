"""Units of time and of length, by all names that networks and users give them."""

from __future__ import annotations

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
_SYMBOLS = {name: symbol for symbol, names in _OTHER_NAMES.items() for name in (symbol, *names)}


def symbol_of(unit: str) -> str | None:
    """Return the symbol of a unit, such as "min" for "Minutes"; None if the unit is not known."""
    return _SYMBOLS.get(unit.strip().casefold())


def units_like(symbol: str | None) -> dict[str, float] | None:
    """Return all units of time, in seconds, or of length, in metres, like the given unit; None for an unknown unit."""
    return next((units for units in (SECONDS, METRES) if symbol in units), None)
