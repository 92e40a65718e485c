"""Origins and destinations: tables of vertices, or of places that are snapped to the nearest vertex."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.answers.od_places import Network, far_away, refuse_exchanged, refuse_far, refuse_off_the_globe
from pipelines.answers.tables import column_vertices, read_columns, vertex_names
from pipelines.stores import Graph

EARTH_RADIUS = 6_371_008.8  # metres, the mean radius of the IUGG


class Points(NamedTuple):
    """Some vertices and what they are called.

    Attributes
    ----------
    ids : (k,) text
        From the column `id` of the table, else the names of the vertices, else the numbers of the rows from 1.
    vertices : (k,) int64
    snapped : (k,) float64, or None where vertices were named
        How far a place is from its vertex: metres on the unit sphere scaled to the earth for longitude and latitude,
        else units of the coordinates.
    columns : dict of (k,) float64
        The columns asked for besides.
    on_the_globe : bool or None
        Whether places were given by longitude and latitude; None where vertices were named.
    warning : str or None
        A sentence on places that are so far from every vertex that they may not be meant; None if there are none.
    """

    ids: pa.Array
    vertices: np.ndarray
    snapped: np.ndarray | None
    columns: dict[str, np.ndarray]
    on_the_globe: bool | None = None
    warning: str | None = None

    def digest(self) -> str:
        """The same for the same points."""
        found = hashlib.blake2b(digest_size=16)
        found.update("\0".join(self.ids.to_pylist()).encode())
        snapped = () if self.snapped is None else (self.snapped,)
        for values in (self.vertices, *snapped, *self.columns.values()):
            found.update(np.ascontiguousarray(values).data)
        return found.hexdigest()


def read_points(
    path: str | os.PathLike[str],
    graph: Graph,
    what: str,
    columns: Sequence[str] = (),
    *,
    snap_limit: float | None = None,
) -> Points:
    """Read points from a table.

    Parameters
    ----------
    path : table in CSV, TSV or Parquet with the column `what` or ``vertex``, or else with ``lon`` and ``lat``, or ``x``
        and ``y``; and with a column ``id``, if points are to be called otherwise than by that
    what : "origin" or "destination"
    columns : names of columns of numbers to read besides
    snap_limit : how far a place may be from its vertex, in metres or in units of the coordinates; None: anywhere

    Raises
    ------
    ValueError
        A column is missing, or an entry is, or a place is too far from every vertex; the message names the row.
    """
    known = ("id", what, "vertex", "lon", "lat", "x", "y")
    table = read_columns(path, (*known, *columns), known)
    name = os.fspath(path)
    if not len(table):
        raise ValueError(f"{name}: no rows; give at least one {what}")
    numbers = {column: _numbers(table, column, name) for column in columns}
    named = next((column for column in (what, "vertex") if column in table.column_names), None)
    if named is not None:
        vertices = column_vertices(table[named], graph, name)
        ids = _ids(table, name, vertex_names(graph).take(pa.array(vertices)))
        return Points(ids, vertices, None, numbers)
    axes = next((axes for axes in (("lon", "lat"), ("x", "y")) if {*axes} <= {*table.column_names}), None)
    if axes is None:
        raise ValueError(
            f"{name}: no column `{what}` or `vertex`, nor `lon` and `lat`, nor `x` and `y`; add one of these"
        )
    places = np.stack([_numbers(table, axis, name) for axis in axes], axis=1)
    on_the_globe = axes == ("lon", "lat")
    if on_the_globe:
        refuse_off_the_globe(places, name)
    vertices, snapped = snap(graph, places, on_the_globe=on_the_globe)
    network = Network(_coordinates(graph), on_the_globe)
    refuse_exchanged(places, snapped, axes, network, name)
    refuse_far(snapped, snap_limit, network, name)
    ids = _ids(table, name, pa.array(np.arange(1, len(table) + 1)))
    return Points(ids, vertices, snapped, numbers, on_the_globe, far_away(snapped, network, name))


def points_of(graph: Graph, vertices: Sequence[int | str]) -> Points:
    """Points by their names or indices."""
    found = np.array([graph.vertex(v) for v in vertices], np.int64)
    return Points(_text(vertex_names(graph).take(pa.array(found))), found, None, {})


def snap(graph: Graph, places: np.ndarray, *, on_the_globe: bool) -> tuple[np.ndarray, np.ndarray]:
    """The nearest vertices of the largest strongly connected component, where paths lead both ways.

    Parameters
    ----------
    places : (k, 2) float64
        Longitude and latitude in degrees if `on_the_globe`, else x and y.

    Returns
    -------
    (k,) int64 and (k,) float64
        The vertices and how far away they are, in metres or in units of the coordinates.

    Raises
    ------
    ValueError
        The graph has no coordinates, or they are not longitudes and latitudes.
    ImportError
        SciPy is not installed.
    """
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import cKDTree
    except ImportError as error:
        raise ImportError("snapping places to vertices needs SciPy: pip install scipy") from error
    coordinates = _coordinates(graph)
    if on_the_globe and not are_degrees(coordinates):
        raise ValueError(
            f"{graph.path}: its coordinates are not degrees, since {np.nanmax(np.abs(coordinates)):g} is among them;"
            " give places by x and y"
        )
    indptr, indices, _ = graph.rows()
    _, component = connected_components(
        csr_array((np.ones(graph.m, bool), indices, indptr), shape=(graph.n, graph.n)), connection="strong"
    )
    largest = np.flatnonzero((component == np.bincount(component).argmax()) & np.isfinite(coordinates).all(axis=1))
    if not len(largest):
        raise ValueError(f"{graph.path} has no coordinates where its roads are; name vertices")
    spots, wanted = (_on_sphere(p) if on_the_globe else p for p in (coordinates[largest], places))
    apart, nearest = cKDTree(spots).query(wanted)
    metres = 2 * EARTH_RADIUS * np.arcsin(np.minimum(apart / 2, 1)) if on_the_globe else apart
    return largest[nearest], metres


def length_of(graph: Graph, on_the_globe: bool | None) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """A function of (k,) and (k,) vertices: how far they are apart, in a straight line or on the sphere, float64.

    Metres on the globe, else units of the coordinates; None where there are none. With `on_the_globe` None,
    coordinates that could be degrees are.
    """
    places = graph.coordinates()
    if places is None:
        return None
    if not (are_degrees(places) if on_the_globe is None else on_the_globe):
        return lambda u, v: np.linalg.norm(places[u] - places[v], axis=1)
    spots = _on_sphere(places)
    return lambda u, v: 2 * EARTH_RADIUS * np.arcsin(np.minimum(np.linalg.norm(spots[u] - spots[v], axis=1) / 2, 1))


def are_degrees(coordinates: np.ndarray) -> bool:
    """Whether (n, 2) coordinates could be longitudes and latitudes; NaN where a vertex has none."""
    return not (np.abs(coordinates) > (180, 90)).any()


def _coordinates(graph: Graph) -> np.ndarray:
    found = graph.coordinates()
    if found is None:
        raise ValueError(f"{graph.path} has no coordinates; name vertices, or import it with --coordinates")
    return found


def _on_sphere(degrees: np.ndarray) -> np.ndarray:
    lon, lat = np.radians(degrees).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def _ids(table: pa.Table, name: str, otherwise: pa.Array) -> pa.Array:
    """What the points are called, text: the column `id` if there is one."""
    if "id" not in table.column_names:
        return _text(otherwise)
    found = _text(table["id"])
    empty = pc.equal(pc.utf8_length(found), 0).fill_null(True)
    for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False))[:1].tolist():
        raise ValueError(f"{name}, row {row + 1}: `id` is missing; fill it in or leave the row out")
    return found


def _numbers(table: pa.Table, column: str, name: str) -> np.ndarray:
    """A column of finite numbers, float64."""
    found = np.array([_number(value) for value in table[column].to_pylist()], np.float64)
    for row in np.flatnonzero(~np.isfinite(found))[:1].tolist():
        raise ValueError(
            f"{name}, row {row + 1}: `{column}` is missing or not a number; correct it or leave the row out"
        )
    return found


def _number(value: Any) -> float:
    """The number, NaN if there is none: in text files all columns are text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def _text(column: Any) -> pa.Array:
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return found.cast(pa.large_string())
