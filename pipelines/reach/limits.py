"""Limits such as "5,10,15min", in the unit of a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipelines.stores.units import METRES, SECONDS, symbol_of, units_like


class Limits(NamedTuple):
    """Limits in ascending order.

    Attributes
    ----------
    given : (b,) float64, in `unit`
    unit : the unit that the user gave, or else the unit of the network; "" if it is not known
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
    """Return the number of units of the network in one `unit`."""
    if not unit:
        return 1.0
    asked, own = symbol_of(unit), symbol_of(network_unit)
    units = units_like(own)
    if asked is None:
        raise ValueError(f"within (--within) is in {unit!r}; units are {', '.join((*SECONDS, *METRES))}")
    if units is None or own is None:
        raise ValueError(
            f"the unit of the network is {network_unit!r}, which is no unit of time or length; import it with its unit "
            "(unit, --unit), or give limits without a unit (within, --within)"
        )
    if asked not in units:
        raise ValueError(
            f"within (--within) is in {unit}, but the weights of the network are in {network_unit}; give limits in "
            "that unit"
        )
    return units[asked] / units[own]
