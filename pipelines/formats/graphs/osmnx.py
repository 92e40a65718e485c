"""What graphs of OSMnx record: the coordinate system, the units, and that the data come from OpenStreetMap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.files.coordinate_systems import recorded_name
from pipelines.stores.graph import DEGREES, OPENSTREETMAP

UNITS = {"travel_time": "s", "length": "m"}  # of the weights that OSMnx gives to edges


def units_of(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the units of the weights of a graph by its attributes; none if OSMnx did not make the graph."""
    return UNITS if attribution_of(attributes) else {}


def units_in(names: Iterable[str]) -> dict[str, str]:
    """Return the units of the weights of a table of edges by the names of its columns; none if it is not of OSMnx.

    >>> units_in(["u", "v", "key", "osmid", "length"]), units_in(["u", "v", "length"])
    ({'travel_time': 's', 'length': 'm'}, {})
    """
    return UNITS if {"u", "v", "osmid"} <= set(names) else {}


def crs_of(attributes: Mapping[str, Any], remarks: list[str]) -> str:
    """Return the name of the coordinate system that the attributes of a graph record, "" for none.

    A remark is added if the record cannot be read.
    """
    given = attributes.get("crs")
    if given is None or str(given).upper() == DEGREES:
        return "" if given is None else DEGREES
    try:
        return recorded_name(str(given))
    except (ImportError, ValueError) as error:
        remarks.append(f"the coordinate system {str(given)[:80]!r} is not recorded ({error}); name it (crs, --crs)")
        return ""


def attribution_of(attributes: Mapping[str, Any]) -> str:
    """Return the attribution of a graph by its attributes: that of OpenStreetMap if OSMnx made the graph, else "".

    >>> attribution_of({"created_with": "OSMnx 2.1.1"}) == OPENSTREETMAP, attribution_of({})
    (True, '')
    """
    return OPENSTREETMAP if str(attributes.get("created_with", "")).startswith("OSMnx") else ""
