"""Snap places to the nearest vertices of a network, and find places that are probably wrong.

A place is probably wrong if its two numbers are exchanged, or if it is far from every road.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipelines.places.by_place import EARTH_RADIUS, nearest, vertices_by_place
from pipelines.places.systems import Located, located
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted

FAR_METRES = 1000.0  # a place this far from its vertex is far, if distances are in metres
FAR_SHARE = 0.01  # the same in other units, as a share of the diagonal of the network
OUTSIDE_METRES = 50_000.0  # a place farther away than this, and than the diagonal of the network, is not of the network


class _Vertices:
    """The vertices of a graph, read and sorted by place at the first use."""

    def __init__(self, graph: Graph, by_place: tuple[np.ndarray, np.ndarray] | None):
        self.graph, self._by_place = graph, by_place

    @cached_property
    def coordinates(self) -> np.ndarray:
        found = self.graph.coordinates()
        if found is None:
            raise ValueError(
                f"{self.graph.path} has no coordinates; name vertices, or import it with coordinates (--coordinates)"
            )
        return found

    @cached_property
    def by_place(self) -> tuple[np.ndarray, np.ndarray]:
        """The vertices of the component, and the other vertices, sorted by place.

        The component is that of the original graph: closed roads must not move a place to other vertices.
        """
        return self._by_place or vertices_by_place(self.graph.original, self.coordinates)


class Snapping:
    """Moves places to the nearest vertices of the largest strongly connected component, where paths lead both ways.

    Parameters
    ----------
    by_place : the arrays of `ByPlace`; None to sort the vertices at the first use
    crs : coordinate system of the places, as pyproj reads it; None if it is not named
    limit : greatest distance of a place from its vertex, in metres or in units of the coordinates, or a text such as
        "1km"; None for any
    """

    def __init__(
        self,
        graph: Graph,
        by_place: tuple[np.ndarray, np.ndarray] | None = None,
        crs: Any = None,
        limit: float | str | None = None,
    ):
        self.graph, self.crs, self.limit = graph, crs, limit
        self._vertices = _Vertices(graph, by_place)

    def of(self, crs: Any, limit: float | str | None = None) -> Snapping:
        """Return the same for another `crs`, and another `limit` if it is named; both share the sorted vertices."""
        other = copy(self)
        other.crs, other.limit = crs, self.limit if limit is None else limit
        return other

    @property
    def coordinates(self) -> np.ndarray:
        """The coordinates of the vertices, float64 (n, 2); raises ValueError if the graph has none."""
        return self._vertices.coordinates

    def located(self, places: np.ndarray, axes: tuple[str, str], name: str) -> Located:
        """Return places in the coordinates of the graph (`pipelines.places.systems.located`)."""
        return located(places, axes, self.crs, self.graph, self.coordinates, name)

    def snap(self, places: np.ndarray, *, on_the_globe: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the nearest vertices.

        Parameters
        ----------
        places : (k, 2) float64
            Longitude and latitude in degrees if `on_the_globe`, else x and y.

        Returns
        -------
        (k,) int64, (k,) float64 and (k,) bool
            The vertices; their distances from the places, in metres or in units of the coordinates; and whether a
            vertex outside the component is nearer.

        Raises
        ------
        ValueError
            The graph has no coordinates.
        ImportError
            SciPy is not installed, and the vertices are not sorted by place.
        """
        coordinates = self.coordinates
        component, others = self._vertices.by_place
        if not len(component):
            raise ValueError(
                f"{self.graph.path} has no coordinates in its largest strongly connected component; name vertices"
                " instead"
            )
        vertices, apart = nearest(component, coordinates, places, on_the_globe=on_the_globe)
        return vertices, apart, nearest(others, coordinates, places, on_the_globe=on_the_globe)[1] < apart


def on_sphere(degrees: np.ndarray) -> np.ndarray:
    """Return longitudes and latitudes, (k, 2), as points of the unit sphere, (k, 3)."""
    lon, lat = np.radians(degrees).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def distances_apart(places: np.ndarray, others: np.ndarray, *, on_the_globe: bool) -> np.ndarray:
    """Return the distances between (k, 2) places, in metres on the globe, else in units of the coordinates."""
    if not on_the_globe:
        return np.linalg.norm(places - others, axis=1)
    chords = np.linalg.norm(on_sphere(places) - on_sphere(others), axis=1)
    return 2 * EARTH_RADIUS * np.arcsin(np.minimum(chords / 2, 1))


@dataclass(frozen=True, eq=False)
class Network:
    """The vertices of a network as points.

    Attributes
    ----------
    coordinates : (n, 2) float64, NaN for a vertex without coordinates (but not all)
    unit : unit of distances, "m" or ""
    on_the_globe : whether distances are measured on the globe
    mark : "vertex" or "road": to what distances of places are measured
    """

    coordinates: np.ndarray
    unit: str
    on_the_globe: bool
    mark: str = "vertex"

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinates, (2) each."""
        return np.nanmin(self.coordinates, axis=0), np.nanmax(self.coordinates, axis=0)

    def has(self, places: np.ndarray, margin: float) -> np.ndarray:
        """Return whether (k, 2) places lie in the box widened on each side by `margin` times its size; bool (k)."""
        low, high = self.box
        room = margin * (high - low)
        return ((places >= low - room) & (places <= high + room)).all(axis=1)

    @property
    def diagonal(self) -> float:
        """The distance between two opposite corners of the box."""
        low, high = self.box
        return float(distances_apart(low[None], high[None], on_the_globe=self.on_the_globe)[0])

    @property
    def far(self) -> float:
        """The distance from its vertex beyond which a place is far."""
        return FAR_METRES if self.unit else FAR_SHARE * self.diagonal

    @property
    def outside(self) -> float:
        """The distance from its vertex beyond which a place does not belong to the network."""
        return max(self.diagonal, OUTSIDE_METRES if self.unit else 0.0)

    def say(self, distance: float) -> str:
        """Return a distance as text, with its unit if it is known."""
        if not self.unit:
            return f"{distance:,.6g}"
        return f"{distance:,.0f} m" if distance < 10_000 else f"{distance / 1000:,.0f} km"


def refuse_exchanged(
    given: np.ndarray, found: Located, snapped: np.ndarray, axes: tuple[str, str], network: Network, name: str
) -> None:
    """Raise ValueError if a place is far outside the box of the network, but inside with its two numbers exchanged."""
    for row in np.flatnonzero(~network.has(found.places, 1.0) & network.has(found.exchanged, 0.0))[:1].tolist():
        first, second = given[row].tolist()
        raise ValueError(
            f"{name}, row {row + 1}: {axes[0]} {first:g} with {axes[1]} {second:g} is {network.say(snapped[row])} from"
            f" the nearest {network.mark}, and with the two numbers exchanged it is within the network; exchange them"
        )


def refuse_far(snapped: np.ndarray, limit: float | None, network: Network, name: str) -> None:
    """Raise ValueError if a place is farther than the limit from its vertex, or squares of its distances overflow."""
    for row in np.flatnonzero(np.isinf(snapped))[:1].tolist():
        raise ValueError(f"{name}, row {row + 1}: too far from every vertex to measure; give numbers in larger units")
    for row in np.flatnonzero(snapped > (np.inf if limit is None else limit))[:1].tolist():
        raise ValueError(
            f"{name}, row {row + 1}: {network.say(snapped[row])} from the nearest vertex, more than the limit of"
            f" {network.say(limit or 0.0)}; correct it, leave the row out, or raise the limit (snap_limit,"
            " --snap-limit)"
        )


def refuse_outside(snapped: np.ndarray, network: Network, name: str) -> None:
    """Raise ValueError if a place is farther from the network than the network is large, and than 50 km."""
    rows = np.flatnonzero(snapped > network.outside)
    for row in rows[:1].tolist():
        more = len(rows) - 1
        others = "" if not more else "; so is 1 other row" if more == 1 else f"; so are {more:,} other rows"
        raise ValueError(
            f"{name}, row {row + 1}: {network.say(snapped[row])} from the nearest {network.mark}, farther than the"
            f" network is large ({network.say(network.diagonal)}){others}; name the coordinate system of the places"
            " (crs, --crs), exchange the two numbers, or correct them"
        )


def far_away(snapped: np.ndarray, network: Network, name: str) -> str | None:
    """Return a warning of places that are far from their vertices, None if all are near."""
    count = int((snapped > network.far).sum())
    if not count:
        return None
    worst = int(snapped.argmax())
    places = "1 place is" if count == 1 else f"{count:,} places are"
    cure = "snap_limit (--snap-limit) refuses such rows" if network.mark == "vertex" else "correct it, or leave it out"
    return (
        f"{name}: {places} farther than {network.say(network.far)} from the nearest {network.mark}, the worst is row"
        f" {worst + 1}, {network.say(snapped[worst])} away; {cure}"
    )


def moved_on(passed: np.ndarray, name: str) -> str | None:
    """Return a warning of the places, set in `passed`, bool (k), that were moved past a nearer vertex; None if none."""
    rows = np.flatnonzero(passed) + 1
    if not len(rows):
        return None
    return (
        f"{name}: {counted(len(rows), 'place')} moved past a nearer vertex, which is outside the largest strongly"
        f" connected component, the first in row {rows[0]}"
    )
