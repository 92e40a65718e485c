"""The coordinate system of places: which system they are in, and how they come into the coordinates of a network.

Columns `lon` and `lat` are longitudes and latitudes. Other pairs of numbers are in the coordinates of the network,
unless the caller names another system, or they are plainly longitudes and latitudes: the coordinates of the network are
no degrees, and every place could be a longitude and a latitude, and lies outside the network and its surroundings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipelines.files.coordinate_systems import crs_named, metres_of, to_system
from pipelines.stores.coordinates import are_degrees, are_geographic, coordinate_system
from pipelines.stores.graph import DEGREES, Graph

ON_EARTH = ("lon", "lat")


class Located(NamedTuple):
    """Places in the coordinates of a network.

    Attributes
    ----------
    places, exchanged : (k, 2) float64
        The places, and the same places with the two numbers of each exchanged; infinite where this is no place.
    on_the_globe : bool
        Whether distances are measured on the globe.
    note : str or None
        A line about the coordinate system, if it was not named.
    """

    places: np.ndarray
    exchanged: np.ndarray
    on_the_globe: bool
    note: str | None


def located(
    given: np.ndarray, axes: tuple[str, str], crs: Any, graph: Graph, coordinates: np.ndarray, name: str
) -> Located:
    """Bring places into the coordinates of a network.

    Parameters
    ----------
    given : (k, 2) float64
    axes : names of the two numbers: "lon" and "lat", or "x" and "y"
    crs : coordinate system of the places; None if it is not named
    graph, coordinates : the network and its coordinates
    name : what messages call the places

    Raises
    ------
    ValueError
        The places and the network do not fit together, or a place does not exist; the message names the row.
    """
    system = coordinate_system(graph, coordinates)
    guessed = crs is None and axes != ON_EARTH and _plainly_degrees(given, coordinates)
    if crs is not None:
        crs = crs_named(crs)
        if axes == ON_EARTH and not crs.is_geographic:
            raise ValueError(
                f"{name}: columns lon and lat are longitudes and latitudes, but crs (--crs) is {crs.to_string()}; name "
                "the columns x and y, or leave out crs"
            )
    elif axes == ON_EARTH or graph.crs == DEGREES or guessed:
        crs = DEGREES
    in_degrees = crs == DEGREES if crs is None or isinstance(crs, str) else bool(crs.is_geographic)
    if in_degrees:
        refuse_off_the_globe(given, axes, name)
    if crs is None or (not system and in_degrees and are_degrees(coordinates)):  # such as a generated network
        return Located(given, given[:, ::-1], in_degrees, None)
    if not system:
        what = "look like" if guessed else "are"
        own = "longitudes and latitudes" if in_degrees else f"in {crs.to_string()}"
        raise ValueError(
            f"{name} {what} {own}, and the coordinates of {graph.path} are in no known system; name it when the "
            "network is imported (crs, --crs), or give x and y in the coordinates of the network"
        )
    places = to_system(given, crs, system)
    for row in np.flatnonzero(~np.isfinite(places).all(axis=1))[:1].tolist():
        first, second = given[row].tolist()
        raise ValueError(
            f"{name}, row {row + 1}: {axes[0]} {first:g} with {axes[1]} {second:g} is no place in {system}, the "
            "coordinate system of the network; correct it, or name the system of the places (crs, --crs)"
        )
    note = f"{name}: taken for longitudes and latitudes, as the network is in {system}; crs={DEGREES!r} says so"
    exchanged = to_system(given[:, ::-1], crs, system)
    return Located(places, exchanged, system == DEGREES, note if guessed else None)


def axes_of_pairs(graph: Graph, crs: Any) -> tuple[str, str]:
    """Return the names of the two numbers of a place that has no names of its own."""
    coordinates = graph.coordinates() if crs is None else None
    return ON_EARTH if coordinates is not None and are_geographic(graph, coordinates) else ("x", "y")


def unit_of(graph: Graph, *, on_the_globe: bool) -> str:
    """Return the unit of distances between places: "m" on the globe and in planes with metres, else ""."""
    return "m" if on_the_globe or (graph.crs not in ("", DEGREES) and metres_of(graph.crs) == 1) else ""


def refuse_off_the_globe(places: np.ndarray, axes: tuple[str, str], name: str) -> None:
    """Raise ValueError if (k, 2) places are not longitudes and latitudes; the message names the row of table `name`.

    `axes` are the names of the two numbers.
    """
    for row in np.flatnonzero((np.abs(places) > (180, 90)).any(axis=1))[:1].tolist():
        lon, lat = places[row].tolist()
        hint = "; are they exchanged?" if abs(lon) <= 90 and abs(lat) <= 180 else ""
        if max(abs(lon), abs(lat)) > 360:
            own = (
                "if these are metres, name" if axes != ON_EARTH else "if these are metres, call them x and y, and name"
            )
            hint = f"; {own} their coordinate system (crs, --crs), such as crs=frame.crs"
        raise ValueError(f"{name}, row {row + 1}: there is no longitude {lon:g} with latitude {lat:g}{hint}")


def _plainly_degrees(given: np.ndarray, coordinates: np.ndarray) -> bool:
    """Return whether (k, 2) places are longitudes and latitudes rather than x and y of the network."""
    if not len(given) or are_degrees(coordinates) or not are_degrees(given):
        return False
    low, high = np.nanmin(coordinates, axis=0), np.nanmax(coordinates, axis=0)
    room = high - low
    return not ((given >= low - room) & (given <= high + room)).all(axis=1).any()
