"""Origins and destinations: tables of vertices, or of places that are snapped to the nearest vertex."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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
    """

    ids: pa.Array
    vertices: np.ndarray
    snapped: np.ndarray | None
    columns: dict[str, np.ndarray]


def read_points(path: str | os.PathLike[str], graph: Graph, what: str, columns: Sequence[str] = ()) -> Points:
    """Read points from a table.

    Parameters
    ----------
    path : table in CSV, TSV or Parquet with the column `what` or ``vertex``, or else with ``lon`` and ``lat``, or ``x``
        and ``y``; and with a column ``id``, if points are to be called otherwise than by that
    what : "origin" or "destination"
    columns : names of columns of numbers to read besides

    Raises
    ------
    ValueError
        A column is missing, or an entry is; the message names the row.
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
        ids = table["id"] if "id" in table.column_names else vertex_names(graph).take(pa.array(vertices))
        return Points(_text(ids), vertices, None, numbers)
    axes = next((axes for axes in (("lon", "lat"), ("x", "y")) if {*axes} <= {*table.column_names}), None)
    if axes is None:
        raise ValueError(
            f"{name}: no column `{what}` or `vertex`, nor `lon` and `lat`, nor `x` and `y`; add one of these"
        )
    places = np.stack([_numbers(table, axis, name) for axis in axes], axis=1)
    if axes == ("lon", "lat"):
        _refuse_off_the_globe(places, name)
    vertices, snapped = snap(graph, places, on_the_globe=axes == ("lon", "lat"))
    ids = table["id"] if "id" in table.column_names else pa.array(np.arange(1, len(table) + 1))
    return Points(_text(ids), vertices, snapped, numbers)


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
    coordinates = graph.coordinates()
    if coordinates is None:
        raise ValueError(f"{graph.path} has no coordinates; name vertices, or import it with --coordinates")
    if on_the_globe and (np.abs(coordinates) > (180, 90)).any():
        raise ValueError(
            f"{graph.path}: its coordinates are not degrees, since {np.abs(coordinates).max():g} is among them; give"
            " places by x and y"
        )
    indptr, indices, _ = graph.rows()
    _, component = connected_components(
        csr_array((np.ones(graph.m, bool), indices, indptr), shape=(graph.n, graph.n)), connection="strong"
    )
    largest = np.flatnonzero(component == np.bincount(component).argmax())
    spots, wanted = (_on_sphere(p) if on_the_globe else p for p in (coordinates[largest], places))
    apart, nearest = cKDTree(spots).query(wanted)
    metres = 2 * EARTH_RADIUS * np.arcsin(np.minimum(apart / 2, 1)) if on_the_globe else apart
    return largest[nearest], metres


def _on_sphere(degrees: np.ndarray) -> np.ndarray:
    lon, lat = np.radians(degrees).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def _refuse_off_the_globe(places: np.ndarray, name: str) -> None:
    for row in np.flatnonzero((np.abs(places) > (180, 90)).any(axis=1))[:1].tolist():
        lon, lat = places[row].tolist()
        hint = "; are they exchanged?" if abs(lon) <= 90 and abs(lat) <= 180 else ""
        raise ValueError(f"{name}, row {row + 1}: there is no longitude {lon:g} with latitude {lat:g}{hint}")


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
