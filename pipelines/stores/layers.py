"""Arcs as lines of a map: which roads meet a geometry of shapely, as GeoPandas has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.graph import DEGREES, Graph
from pipelines.stores.lines import points_along
from pipelines.stores.road_network import road_network


def roads_at(graph: Graph, given: Any, what: str) -> np.ndarray:
    """Return the ends of the roads that some geometries meet, int64 (k, 2), each road once.

    Parameters
    ----------
    graph : Graph
    given : a geometry of shapely, a GeoSeries or a GeoDataFrame
        A polygon or a line meets each road that it crosses or touches; a point means the nearest road. Geometries
        without a coordinate system are in the coordinates of the graph.
    what : word for the geometries in messages

    Raises
    ------
    ValueError
        The graph has no coordinates, or a geometry meets no road; the message names the row.
    """
    import shapely

    graph = road_network(graph)
    coordinates = graph.coordinates()
    if coordinates is None:
        raise ValueError(f"{what}: {graph.path} has no coordinates; name roads by their two ends, as [('a', 'b')]")
    system = coordinate_system(graph, coordinates)
    if getattr(given, "crs", None) is not None and system:
        given = given.to_crs(system)
    shapes = [given] if isinstance(given, shapely.Geometry) else list(given.geometry)
    heads = graph.indices()
    tails = np.repeat(np.arange(graph.n), np.diff(graph.indptr()))
    there = np.isfinite(coordinates).all(axis=1)
    arcs = np.flatnonzero(there[tails] & there[heads] & (tails != heads))
    offsets, points = points_along(graph.lines(), coordinates, arcs, tails[arcs], heads[arcs])
    scale = np.ones(2)
    if system == DEGREES:  # so that the road nearest to a point is nearest on the globe, too
        scale[0] = np.cos(np.radians(np.nanmean(coordinates[:, 1])))
    points = points * scale
    tree = shapely.STRtree(shapely.linestrings(points, indices=np.repeat(np.arange(len(arcs)), np.diff(offsets))))
    found = []
    for row, shape in enumerate(shapes, 1):
        near = np.zeros(0, np.int64)
        if shape is not None and not shape.is_empty:
            scaled = shapely.transform(shape, lambda each: each * scale)
            near = tree.nearest([scaled]) if scaled.geom_type == "Point" else tree.query(scaled, "intersects")
        if not len(near):
            raise ValueError(f"{what}, row {row}: no road meets the geometry; move it, or leave the row out")
        found.append(arcs[near])
    ends = np.sort(np.stack([tails, heads], axis=1)[np.concatenate(found)], axis=1)
    return np.unique(ends, axis=0)
