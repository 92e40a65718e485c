"""The vertices at places, for all calls that take vertices: routes, searches, pictures and isochrones."""

from __future__ import annotations

import os
import warnings
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipelines.places.networks import NetworkLike, open_network
from pipelines.places.points import Points, points_from
from pipelines.places.single import are_rows, is_point
from pipelines.places.snapping import Snapping
from pipelines.places.systems import ON_EARTH
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted
from pipelines.stores.vertex_names import Positions, VertexName, positions

PAIRS = (ON_EARTH, ("x", "y"))  # names of the two numbers in a row of a data frame
VertexOrPlace: TypeAlias = "VertexName | tuple[float, float]"


class Placed(NamedTuple):
    """The vertices at some places.

    Attributes
    ----------
    vertices : Positions
        The nearest vertices of the largest strongly connected component, for any argument that names vertices.
    moved : (k,) float64
        Distances from the places to their vertices: metres on the globe, else units of the coordinates.
    warning : str or None
        Lines about places that are far from every vertex, or have a nearer vertex outside the component, or were taken
        for longitudes and latitudes.
    """

    vertices: Positions
    moved: np.ndarray
    warning: str | None


def vertices_at(
    network: NetworkLike,
    places: Any,
    *,
    snap_limit: float | str | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Placed:
    """Return the vertices at places, for arguments that name vertices.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
    places : (lon, lat), or (k, 2) array or list, or data frame or file with such columns
        Longitudes and latitudes, or x and y; for tables, and for `crs`, see `tilepath.od`.
    snap_limit, crs, graph : as for `tilepath.od`

    Returns
    -------
    Placed
        With `vertices`, `moved` and `warning`. For a single place, `vertices` name one vertex.

    Raises
    ------
    ValueError
        The network has no coordinates, or a place is wrong.

    Examples
    --------
    >>> at = tilepath.vertices_at(hierarchy, [(0, 0), (3, 4)]).vertices
    >>> tilepath.distances_between(hierarchy, at, at).shape
    (2, 2)
    """
    _, opened, snapping = open_network(network, graph, crs, snap_limit)
    single = isinstance(places, tuple) and np.ndim(places) == 1
    if isinstance(places, list | tuple | np.ndarray):
        places = np.asarray(places, np.float64)
        if places.shape[-1:] != (2,) or places.ndim > 2:
            raise ValueError(f"places are of shape {places.shape}; give pairs of numbers, such as (lon, lat)")
        places = np.atleast_2d(places)
    points = points_from(places, opened, "place", snapping=snapping)
    moved = np.zeros(len(points.vertices)) if points.snapped is None else points.snapped
    return Placed(positions(points.vertices[0] if single else points.vertices), moved, points.warning)


def vertex_at(graph: Graph, given: Any, what: str, snapping: Snapping | None = None) -> int:
    """Return the vertex that a name means, or the nearest vertex of a place.

    A place is a pair of numbers, a shapely Point, or a row of a data frame with lon and lat, x and y, or a geometry; or
    a frame or a series of points of one row, whose coordinate system counts.

    Warns of a place that is far from the network or was moved past a vertex, and of its coordinate system if that is a
    guess. `what` is a word for the vertex in messages.
    """
    if are_rows(given):
        if len(given) != 1:
            raise ValueError(f"the {what} is a table of {counted(len(given), 'row')}; give one row, as frame.iloc[[0]]")
        points = point_at(graph, given, what, f"the {what}", snapping)
    elif (place := place_of(given)) is not None:
        points = point_at(graph, place, what, f"the {what} {place}", snapping)
    else:
        return graph.vertex(given, what)
    if points.warning:
        warnings.warn(points.warning, stacklevel=4)
    return int(points.vertices[0])


def point_at(graph: Graph, given: Any, what: str, name: str, snapping: Snapping | None) -> Points:
    """Return the point at one place, given as `points_from` takes it; messages call the place `name`."""
    try:
        points = points_from(given, graph, what, snapping=snapping)
    except ValueError as error:
        raise ValueError(str(error).replace(f"the {what}s, row 1", name).replace(f"the {what}s", name)) from None
    warning = points.warning
    return points._replace(warning=None if warning is None else warning.replace(f"the {what}s", name))


def place_of(given: Any) -> tuple[float, float] | None:
    """Return the two numbers of a place, or None if `given` is no place but a name.

    >>> place_of((13, 52.5)), place_of(np.array([13.0, 52.5])), place_of("13,52.5")
    ((13.0, 52.5), (13.0, 52.5), None)
    """
    if is_point(given):
        return float(given.x), float(given.y)
    if hasattr(given, "iloc") and given.ndim == 1:  # a row of a data frame
        found = next((pair for pair in PAIRS if {*pair} <= {*given.index}), None)
        given = given.get("geometry") if found is None else tuple(given[axis] for axis in found)
        return None if given is None else place_of(given)
    if not isinstance(given, tuple | list | np.ndarray) or len(given) != 2:
        return None
    if not all(isinstance(each, float | int | np.number) for each in given):
        return None
    return float(given[0]), float(given[1])


def name_of(given: Any) -> str | None:
    """Return the name of a place: the id or the name of a row, else the two numbers; None if `given` is no place.

    >>> name_of((13.38, 52.515)), name_of("Rome")
    ('13.38, 52.515', None)
    """
    if (place := place_of(given)) is None:
        return None
    for column in ("id", "name") if hasattr(given, "iloc") else ():
        if (name := given.get(column)) is not None and name == name:
            return str(name)
    return str(given.name) if isinstance(getattr(given, "name", None), str) else f"{place[0]:.7g}, {place[1]:.7g}"


def described(points: Points, text: str, graph: Graph) -> str:
    """Return a line about the place `text`: to which vertex and how far it was moved, and a warning if there is one."""
    assert points.snapped is not None
    far = f"{points.snapped[0]:,.1f} m" if points.unit else f"{points.snapped[0]:,.6g}"
    said = f"{text.strip()}: moved {far} to vertex {graph.label(int(points.vertices[0]))}"
    warned = [line.partition(": ")[2].partition("; ")[0] for line in (points.warning or "").split("\n") if line]
    return "; ".join([said, *warned])
