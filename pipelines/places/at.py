"""The vertices at places, for all calls that take vertices: routes, searches, pictures and isochrones."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from pipelines.places.networks import NetworkLike, open_network
from pipelines.places.points import Points, points_from
from pipelines.stores import Graph
from pipelines.stores.vertex_names import Positions, positions


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
    snap_limit: float | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Placed:
    """Return the vertices at places, for arguments that name vertices.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
    places : (lon, lat), or (k, 2) array or list, or data frame or file with such columns
        Longitudes and latitudes, or x and y; for tables, and for `crs`, see `tilepath.od`.
    snap_limit, crs, graph : as for `pipelines.od`

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
    >>> import tilepath
    >>> here = tilepath.vertices_at("roads.zarr", (13.37, 52.52))  # doctest: +SKIP
    >>> tilepath.shortest_path("roads.zarr", here.vertices, "17")  # doctest: +SKIP
    """
    _, opened, snapping = open_network(network, graph, crs)
    single = isinstance(places, tuple) and np.ndim(places) == 1
    if isinstance(places, list | tuple | np.ndarray):
        places = np.asarray(places, np.float64)
        if places.shape[-1:] != (2,) or places.ndim > 2:
            raise ValueError(f"places are of shape {places.shape}; give pairs of numbers, such as (lon, lat)")
        places = np.atleast_2d(places)
    points = points_from(places, opened, "place", snap_limit=snap_limit, snapping=snapping)
    moved = np.zeros(len(points.vertices)) if points.snapped is None else points.snapped
    return Placed(positions(points.vertices[0] if single else points.vertices), moved, points.warning)


def described(points: Points, text: str, graph: Graph) -> str:
    """Return a line about the place `text`: to which vertex and how far it was moved, and a warning if there is one."""
    assert points.snapped is not None
    far = f"{points.snapped[0]:,.1f} m" if points.unit else f"{points.snapped[0]:,.6g}"
    said = f"{text.strip()}: moved {far} to vertex {graph.label(int(points.vertices[0]))}"
    warned = [line.partition(": ")[2].partition("; ")[0] for line in (points.warning or "").split("\n") if line]
    return "; ".join([said, *warned])
