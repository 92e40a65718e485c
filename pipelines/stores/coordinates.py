"""The coordinate system of a graph: longitudes and latitudes, or a plane."""

from __future__ import annotations

import numpy as np

from pipelines.stores.graph import DEGREES, Graph


def are_geographic(graph: Graph, coordinates: np.ndarray) -> bool:
    """Return whether coordinates of a graph are longitudes and latitudes.

    The coordinate system that the graph records decides. Without a record, coordinates that could be longitudes and
    latitudes are taken for longitudes and latitudes, except in generated grids.
    """
    if graph.crs:
        return graph.crs == DEGREES
    return are_degrees(coordinates) and not graph.source.startswith(("Grid(", "Road("))


def coordinate_system(graph: Graph, coordinates: np.ndarray) -> str:
    """Return the coordinate system of the coordinates, such as "EPSG:4326"; "" if it is not known."""
    return graph.crs or (DEGREES if are_geographic(graph, coordinates) else "")


def are_degrees(coordinates: np.ndarray) -> bool:
    """Return whether (n, 2) coordinates could be longitudes and latitudes; NaN for a vertex without coordinates."""
    return not (np.abs(coordinates) > (180, 90)).any()
