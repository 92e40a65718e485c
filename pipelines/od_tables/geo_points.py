"""Points of GeoPandas: the places of a GeoDataFrame or a GeoSeries, in the coordinates of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.analysis.structure import are_geographic
from pipelines.stores import Graph

GLOBE = "EPSG:4326"  # longitude and latitude


def placed_table(given: Any, graph: Graph, name: str) -> pa.Table:
    """Return a table of the other columns of `given`, with columns of places: lon and lat, or x and y.

    Points are brought to longitude and latitude if the coordinates of the graph are degrees. Otherwise they must be in
    the coordinates of the graph.

    Parameters
    ----------
    given : GeoDataFrame or GeoSeries
    name : name of the points in messages

    Raises
    ------
    ValueError
        A geometry is missing or no point (the message names the row); or the points are in degrees, and the graph has
        other coordinates.
    """
    wrong = np.flatnonzero(np.asarray(given.geom_type != "Point") | np.asarray(given.geometry.is_empty))
    for row in wrong[:1].tolist():
        kind = given.geom_type.iloc[row] or "missing"
        cure = "give points, such as its representative_point()" if kind != "missing" else "leave the row out"
        raise ValueError(f"{name}, row {row + 1}: the geometry is {kind}; {cure}")
    coordinates = graph.coordinates()
    degrees = coordinates is not None and are_geographic(graph, coordinates)
    if given.crs is not None and degrees:
        places = given.geometry.to_crs(GLOBE)
    elif given.crs is not None and given.crs.is_geographic:
        raise ValueError(
            f"{name} are longitudes and latitudes, and the coordinates of {graph.path} are not; bring the points to the"
            " coordinates of the network first"
        )
    else:
        places = given.geometry
    taken = {"lon", "lat", "x", "y", "longitude", "latitude", "lng"}
    others = given.drop(columns=given.geometry.name) if given.ndim == 2 else given.to_frame().iloc[:, :0]
    others = others[[column for column in others.columns if str(column).strip().casefold() not in taken]]
    table = pa.Table.from_pandas(others, preserve_index=False)
    columns = {name: table[name] for name in table.column_names}
    for axis, values in zip(("lon", "lat") if degrees else ("x", "y"), (places.x, places.y), strict=True):
        columns[axis] = pa.array(np.asarray(values, np.float64))
    return pa.table(columns)
