"""Points of GeoPandas: the places of a GeoDataFrame or a GeoSeries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.files.layers import with_geometry
from pipelines.files.tables import pandas_table


def placed_table(given: Any, axes: tuple[str, str], name: str) -> pa.Table:
    """Return a table of the other columns of `given`, with columns of the places, called `axes`.

    Parameters
    ----------
    given : GeoDataFrame, GeoSeries or array of GeoPandas
    name : name of the points in messages

    Raises
    ------
    ValueError
        A geometry is missing or no point; the message names the row.
    """
    if not hasattr(given, "geometry"):
        given = with_geometry(given)
    wrong = np.flatnonzero(np.asarray(given.geom_type != "Point") | np.asarray(given.geometry.is_empty))
    for row in wrong[:1].tolist():
        none = "missing" if given.geometry.isna().iloc[row] else "empty" if given.geometry.is_empty.iloc[row] else ""
        kind = none or given.geom_type.iloc[row]
        cure = "leave the row out" if none else "give points, such as its representative_point()"
        raise ValueError(f"{name}, row {row + 1}: the geometry is {kind}; {cure}")
    taken = {"lon", "lat", "x", "y", "longitude", "latitude", "lng"}
    others = given.drop(columns=given.geometry.name) if given.ndim == 2 else given.to_frame().iloc[:, :0]
    others = others[[column for column in others.columns if str(column).strip().casefold() not in taken]]
    table = pandas_table(others)
    columns = {name: table[name] for name in table.column_names}
    for axis, values in zip(axes, (given.geometry.x, given.geometry.y), strict=True):
        columns[axis] = pa.array(np.asarray(values, np.float64))
    return pa.table(columns)
