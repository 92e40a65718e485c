"""Points of GeoPandas: the places of a GeoDataFrame or a GeoSeries, in the coordinates of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.stores import Graph
from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.graph import DEGREES


def placed_table(given: Any, graph: Graph, name: str) -> pa.Table:
    """Return a table of the other columns of `given`, with columns of places: lon and lat, or x and y.

    Points are brought to the coordinate system of the graph if both coordinate systems are known. Otherwise points must
    be in the coordinates of the graph.

    Parameters
    ----------
    given : GeoDataFrame or GeoSeries
    name : name of the points in messages

    Raises
    ------
    ValueError
        A geometry is missing or no point (the message names the row); or the points are in degrees, and the coordinate
        system of the graph is not known.
    """
    wrong = np.flatnonzero(np.asarray(given.geom_type != "Point") | np.asarray(given.geometry.is_empty))
    for row in wrong[:1].tolist():
        kind = "missing" if given.geometry.isna().iloc[row] else given.geom_type.iloc[row]
        cure = "give points, such as its representative_point()" if kind != "missing" else "leave the row out"
        raise ValueError(f"{name}, row {row + 1}: the geometry is {kind}; {cure}")
    coordinates = graph.coordinates()
    system = "" if coordinates is None else coordinate_system(graph, coordinates)
    if given.crs is not None and system:
        places = given.geometry.to_crs(system)
    elif given.crs is not None and given.crs.is_geographic:
        raise ValueError(
            f"{name} are longitudes and latitudes, and the coordinates of {graph.path} are in no known system; name it"
            " when the network is imported (crs, --crs), or bring the points to its coordinates first"
        )
    else:
        places = given.geometry
    taken = {"lon", "lat", "x", "y", "longitude", "latitude", "lng"}
    others = given.drop(columns=given.geometry.name) if given.ndim == 2 else given.to_frame().iloc[:, :0]
    others = others[[column for column in others.columns if str(column).strip().casefold() not in taken]]
    table = pa.Table.from_pandas(others, preserve_index=False)
    columns = {name: table[name] for name in table.column_names}
    for axis, values in zip(("lon", "lat") if system == DEGREES else ("x", "y"), (places.x, places.y), strict=True):
        columns[axis] = pa.array(np.asarray(values, np.float64))
    return pa.table(columns)
