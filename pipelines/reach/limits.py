"""Limits such as "5,10,15min", in the unit of a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_METRES = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344}
_WORDS = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "mins": "min",
    "minute": "min",
    "minutes": "min",
    "hr": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "metre": "m",
    "metres": "m",
    "meter": "m",
    "meters": "m",
    "kilometres": "km",
    "kilometers": "km",
    "feet": "ft",
    "miles": "mi",
}


class Limits(NamedTuple):
    """Limits in ascending order.

    Attributes
    ----------
    given : (b,) float64, in `unit`
    unit : as asked for, else the unit of the network; "" if it is not known
    in_network : (b,) float64, in the unit of the network
    """

    given: np.ndarray
    unit: str
    in_network: np.ndarray


def parse_limits(within: str | float | Sequence[float], network_unit: str) -> Limits:
    """Return limits from a number, a list of numbers, or a text such as "5,10,15" or "5,10,15min".

    >>> parse_limits("5,10min", "s")
    Limits(given=array([ 5., 10.]), unit='min', in_network=array([300., 600.]))

    Raises
    ------
    ValueError
        A limit is not a positive number, or the unit is unknown or of another kind than the unit of the network.
    """
    unit = ""
    if isinstance(within, str):
        found = re.fullmatch(r"([-+\d.eE,;\s]*\d\.?)\s*([a-zA-Z]*)\s*", within)
        try:
            numbers = [float(number) for number in re.split(r"[,;\s]+", found[1].strip())] if found else []
        except ValueError:
            numbers = []
        unit = found[2] if found else ""
    else:
        numbers = list(np.atleast_1d(np.asarray(within, np.float64)))
    given = np.unique(np.array(numbers, np.float64))
    if not given.size or not ((0 < given) & (given < np.inf)).all():
        raise ValueError(f"within (--within) is {within!r}; give numbers above 0, such as 5,10,15 or 5,10,15min")
    return Limits(given, unit or network_unit, given * _factor(unit, network_unit))


def _factor(unit: str, network_unit: str) -> float:
    """Return how many units of the network a unit is."""
    if not unit:
        return 1.0
    asked, known = (_WORDS.get(each.lower(), each.lower()) for each in (unit, network_unit))
    for units in (_SECONDS, _METRES):
        if asked in units and known in units:
            return units[asked] / units[known]
    if asked not in _SECONDS | _METRES:
        raise ValueError(f"within (--within) is in {unit!r}; units are {', '.join(_SECONDS | _METRES)}")
    if known not in _SECONDS | _METRES:
        raise ValueError(
            f"the unit of the network is {network_unit!r}, which is no unit of time or length; import it with its unit "
            "(unit, --unit), or give limits without a unit (within, --within)"
        )
    raise ValueError(
        f"within (--within) is in {unit}, but the weights of the network are in {network_unit}; give limits in that "
        "unit"
    )
