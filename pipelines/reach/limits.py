"""Limits such as "5,10,15min", in the unit of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipelines.stores.units import per_unit, question_of_short, read_numbers

WITHIN = "within (--within)"


class Limits(NamedTuple):
    """Limits in ascending order.

    Attributes
    ----------
    given : (b,) float64, in `unit`
    unit : the unit that the user gave, or else the unit of the network; "" if it is not known
    in_network : (b,) float64, in the unit of the network
    hint : str or None
        What to say if hardly anything is reached: that limits without a unit are less than a minute.
    """

    given: np.ndarray
    unit: str
    in_network: np.ndarray
    hint: str | None = None


def parse_limits(within: str | float | Sequence[float | str], network_unit: str) -> Limits:
    """Return limits from a number, a list, or a text such as "5,10,15" or "5,10,15min".

    >>> parse_limits("5,10min", "s").in_network.tolist()
    [300.0, 600.0]

    Raises
    ------
    ValueError
        A limit is not a positive number, or the unit is unknown or of another kind than the unit of the network.
    """
    numbers, unit = read_numbers(within, WITHIN)
    given = np.unique(np.array(numbers, np.float64))
    if not given.size or not ((0 < given) & (given < np.inf)).all():
        raise ValueError(f"{WITHIN} is {within!r}; give numbers above 0, such as 5,10,15 or 5,10,15min")
    in_network = given * per_unit(unit, network_unit, WITHIN)
    hint = None if unit else question_of_short(given.tolist(), network_unit, WITHIN, "network", "street")
    return Limits(given, unit or network_unit, in_network, hint)
