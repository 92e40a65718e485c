"""The name and the unit of the distances of a network in a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.units import METRES, SECONDS, limit_in, no_unit, symbol_of, units_like


@dataclass(frozen=True)
class Measured:
    """The name and the unit of the distances in a table.

    Attributes
    ----------
    name : name of the column: "travel_time" if the unit is one of time, else "distance"
    unit : unit of the column, "" if it is not known
    per : the number of units of the network in one unit of the column
    """

    name: str
    unit: str
    per: float = 1.0

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return distances of the network in the unit of the column."""
        return values if self.per == 1 else values.astype(np.float64) / self.per

    def dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype of the column, given the dtype of the distances."""
        return dtype if self.per == 1 else np.dtype(np.float64)

    def limit(self, given: float | str | None, what: str) -> float | None:
        """Return a distance in the unit of the column; a text such as "2min" may have another unit."""
        return limit_in(given, self.unit, what)

    def in_network(self, distance: float | None) -> float | None:
        """Convert a distance from the unit of the column to the unit of the network."""
        return distance if distance is None or self.per == 1 else distance * self.per


def notes(unit: str, graph: Graph) -> dict[str, str]:
    """Return the attributes of a data frame: the unit and the attribution of the network, each if there is one."""
    return {name: text for name, text in (("unit", unit), ("attribution", graph.attribution)) if text}


def measured(network_unit: str, unit: str | None) -> Measured:
    """Return the name and unit of distances in a table in `unit`; None means the unit of the network.

    >>> measured("s", "min")
    Measured(name='travel_time', unit='min', per=60.0)

    Raises
    ------
    ValueError
        `unit` or the unit of the network is not known, or one is a unit of time and the other a unit of length.
    """
    own = symbol_of(network_unit)
    name = "travel_time" if own in SECONDS else "distance"
    if unit is None:
        return Measured(name, network_unit)
    wanted = symbol_of(unit)
    if wanted is None:
        raise ValueError(f"unit (--unit) is {no_unit(unit)}")
    units = units_like(own)
    if units is None or own is None:
        recorded = f"is {network_unit!r}, which is not known here" if network_unit else "is not recorded"
        raise ValueError(
            f"unit (--unit) is {unit!r}, but the unit of the network {recorded}; import the network with its unit"
            f" (tilepath import --unit), one of {', '.join((*SECONDS, *METRES))}"
        )
    if wanted not in units:
        raise ValueError(f"unit (--unit) is {unit!r}, and the network is in {network_unit}; choose {', '.join(units)}")
    return Measured(name, wanted, units[wanted] / units[own])
