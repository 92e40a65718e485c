"""A single place or name among the arguments that take several: a pair of numbers, a point, a row of a data frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.files.layers import READ, with_geometry
from pipelines.files.tables import SUFFIXES, is_among
from pipelines.stores.vertex_names import Positions, positions

PLACED = (("lon", "lat"), ("x", "y"), ("geometry", "geometry"))  # names in a row with a place


def is_pair(given: Any) -> bool:
    """Return whether an argument is one place: a tuple of two numbers, or a list or an array of two with a float.

    A list or an array of two whole numbers names two vertices.

    >>> is_pair((561440, 5711440)), is_pair([561440, 5711440]), is_pair([0.5, 2])
    (True, False, True)
    """
    return is_place(given) and (isinstance(given, tuple) or np.asarray(given).dtype.kind == "f")


def is_place(given: Any) -> bool:
    """Return whether an entry of a list is a place: a pair of numbers, also of whole numbers."""
    if isinstance(given, np.ndarray):
        return given.shape == (2,) and given.dtype.kind in "iuf"
    both = isinstance(given, tuple | list) and len(given) == 2
    return both and all(isinstance(each, float | int | np.number) and not isinstance(each, bool) for each in given)


def are_rows(given: Any) -> bool:
    """Return whether `given` is a data frame of any library, or a series or an array of geometries."""
    if hasattr(given, "geom_type"):
        return not isinstance(given.geom_type, str)
    return getattr(given, "ndim", 2) == 2 and hasattr(given, "columns") and hasattr(given, "__len__")


def are_places(given: Any) -> bool:
    """Return whether `given` is an array (k, 2) of numbers."""
    return isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == 2 and given.dtype.kind in "iuf"


def is_point(given: Any) -> bool:
    """Return whether `given` is a single point of shapely; of a frame of GeoPandas, `geom_type` is a column."""
    return isinstance(kind := getattr(given, "geom_type", None), str) and kind == "Point"


def whole_row(given: Any) -> Any:
    """Return a row of a data frame of pandas that has a place as a frame of one row, and anything else as it is."""
    if not hasattr(given, "iloc") or given.ndim != 1 or hasattr(given, "geom_type"):
        return given
    names = [str(name) for name in given.index]
    if not any(all(is_among(axis, names) for axis in axes) for axes in PLACED):
        return given
    frame = given.to_frame().T
    return with_geometry(frame) if "geometry" in names else frame


def as_layer(given: Any) -> Any:
    """Return a plain frame of pandas with one column of geometries, as some joins return it, as a GeoDataFrame."""
    if not hasattr(given, "iloc") or given.ndim != 2 or hasattr(given, "geom_type"):
        return given
    shapes = [column for column, dtype in given.dtypes.items() if str(dtype) == "geometry"]
    return with_geometry(given, shapes[0]) if len(shapes) == 1 else given


def listed(given: Any) -> Any:
    """Return points as `points_from` takes them: a single place or name becomes a list of one."""
    if is_pair(given):
        return np.array([given], np.float64)
    if is_point(given):
        return [given]
    if isinstance(given, int | np.integer):
        return [int(given)]
    if isinstance(given, Positions) and not given.indices.ndim:
        return positions(given.indices[None])
    if isinstance(given, str) and not given.lower().endswith((*SUFFIXES, *READ)):
        return [given]
    return given
