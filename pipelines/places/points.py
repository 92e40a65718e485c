"""Origins and destinations: tables of vertices, or of places that are snapped to the nearest vertex."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.files.coordinate_systems import crs_named
from pipelines.files.layers import READ, is_layer, read_layer
from pipelines.files.tables import (
    SUFFIXES,
    column_names,
    column_numbers,
    column_vertices,
    frame_table,
    is_table,
    read_columns,
    select_columns,
    vertex_names,
)
from pipelines.places.geo_points import placed_table
from pipelines.places.row_names import INDEX, by_index, names_as, numbered, repeated, row_names, text_of, with_index
from pipelines.places.single import are_places, as_layer, is_pair, is_place, is_point, whole_row
from pipelines.places.snapping import (
    Network,
    Snapping,
    far_away,
    moved_on,
    refuse_exchanged,
    refuse_far,
    refuse_outside,
)
from pipelines.places.systems import ON_EARTH, axes_of_pairs, unit_of
from pipelines.stores.graph import Graph
from pipelines.stores.units import limit_in
from pipelines.stores.vertex_names import Positions

NONE = "none is named; look at how they were chosen"  # what to say of no points
ROUNDED = 1e-5  # how far a vertex may be from its place in a table, as a share of the extent of the network


class Points(NamedTuple):
    """Origins or destinations: vertices, and the names of the points.

    Attributes
    ----------
    ids : (k,) integers or text
        Names of the points (`pipelines.places.row_names`): by default the names of the vertices, or, for places, the
        index of a frame of pandas, or the numbers of the rows from 1. Names that the user gave as integers are integers
        of the same type, and floats that are whole are int64. Every other type, such as dates, becomes text.
    vertices : (k,) int64
    snapped : (k,) float64, or None if vertices were named
        Distance of a place from its vertex: in metres on a sphere if the graph has longitudes and latitudes, else in
        units of the coordinates.
    columns : dict of (k,) float64
        The further columns that were asked for.
    on_the_globe : bool or None
        Whether distances are measured on the globe; None if vertices were named.
    unit : str
        Unit of `snapped`: "m", or "" if it is not known.
    warning : str or None
        A line about the coordinate system of the places, if it was not named; a line about places that are so far from
        every vertex that they are probably wrong; a line about places that have a nearer vertex outside the largest
        strongly connected component; and a line about equal ids. None if there is no such line.
    everywhere : bool
        Whether the points are all vertices of the graph, in their order.
    """

    ids: pa.Array
    vertices: np.ndarray
    snapped: np.ndarray | None
    columns: dict[str, np.ndarray]
    on_the_globe: bool | None = None
    unit: str = ""
    warning: str | None = None
    everywhere: bool = False

    @property
    def numbered(self) -> bool:
        """Whether the names are integers."""
        return pa.types.is_integer(self.ids.type)

    def texts(self) -> list[str]:
        """Return the names as text."""
        return text_of(self.ids).to_pylist()

    def take(self, rows: np.ndarray) -> Points:
        """Return the points with these numbers."""
        return self._replace(
            ids=self.ids.take(pa.array(rows)),
            vertices=self.vertices[rows],
            snapped=None if self.snapped is None else self.snapped[rows],
            columns={name: values[rows] for name, values in self.columns.items()},
            everywhere=False,
        )

    def digest(self) -> str:
        """Return a hash of the points, which is equal for equal points."""
        found = hashlib.blake2b(digest_size=16)
        found.update("\0".join(self.texts()).encode())
        snapped = () if self.snapped is None else (self.snapped,)
        for values in (self.vertices, *snapped, *self.columns.values()):
            found.update(np.ascontiguousarray(values).data)
        return found.hexdigest()


def points_from(
    given: Any,
    graph: Graph,
    what: str,
    columns: Sequence[str] = (),
    *,
    snapping: Snapping | None = None,
) -> Points:
    """Return points from a file, a data frame, an array of places, or names of vertices.

    Parameters
    ----------
    given : path of a table (CSV, TSV, Parquet) or of a layer of points; or a data frame of pandas, Polars or Arrow, or
        a row of pandas; or a GeoDataFrame or GeoSeries of points; or an array (k, 2) of numbers, or a list of pairs of
        numbers, or one such pair; or a list of names of vertices, or `tilepath.positions`.
        `pipelines.places.systems` says which coordinate system pairs are in.
        The columns of a table are ``lon`` and ``lat``; or else ``x`` and ``y``; or else `what` or ``vertex``. If rows
        have places, the column `what` is ignored, and a vertex in the column ``vertex`` must be at the place of its
        row. A column ``id`` or ``name`` may name the points. Case and blanks in names of columns do not matter, and
        other usual names are known (`pipelines.files.tables`)
    what : word for a point, such as "origin"
    columns : names of further columns to read, with numbers
    snapping : the vertices by place, with the coordinate system and the limit of places; None if neither is named

    Raises
    ------
    ValueError
        A column or an entry is missing, a place is too far from every vertex, or a vertex is not at the place of its
        row (the message names the row); or the limit is not a distance.
    """
    snapping = snapping or Snapping(graph)
    if not hasattr(given, "iloc"):
        return _with_numbered_rows(given, what, columns, snapping)
    frame, name = whole_row(given), f"the {what}s"
    try:
        points = _with_numbered_rows(given, what, columns, snapping)
    except ValueError as error:
        error.args = (by_index(str(error), frame, name),)
        raise
    return points._replace(warning=None if points.warning is None else by_index(points.warning, frame, name))


def _with_numbered_rows(given: Any, what: str, columns: Sequence[str], snapping: Snapping) -> Points:
    """Return the points of `points_from`; messages name rows by their numbers."""
    graph, name = snapping.graph, f"the {what}s"
    if isinstance(given, str | os.PathLike):
        if not is_layer(given):
            return _points_in_file(given, what, columns, snapping)
        given, name = read_layer(given, None, "Point")
        if not len(given):
            raise ValueError(f"{name}: no rows; give at least one {what}")
        given = numbered(given)
    given = as_layer(whole_row(given))
    if is_pair(given):
        given = np.array([given], np.float64)
    if isinstance(given, list) and given and all(map(is_point, given)):
        given = np.array([(each.x, each.y) for each in given])
    if isinstance(given, list | tuple) and given and all(map(is_place, given)):
        given = np.array(given, np.float64)
    if hasattr(given, "geom_type"):
        snapping = snapping.of(system_of(given, snapping.crs, name))
        table = placed_table(given, axes_of_pairs(graph, snapping.crs), name)
    elif (frame := frame_table(given)) is not None:
        table = frame
    elif are_places(given):
        table = pa.table(dict(zip(axes_of_pairs(graph, snapping.crs), given.T, strict=True)))
    else:
        vertices = graph.vertices(given, what)
        names = vertex_names(graph, vertices)
        if not isinstance(given, Positions):
            dtype = np.asarray(given).dtype
            names = names_as(names, pa.from_numpy_dtype(dtype) if dtype.kind in "iu" else pa.large_string())
        return Points(names, vertices, None, {})
    chosen = select_columns(with_index(table, given), (*_known(what), *columns), name, _optional(what, columns))
    return points_in_table(chosen, name, what, columns, snapping, all_names=lambda: table.column_names)


def _points_in_file(path: str | os.PathLike[str], what: str, columns: Sequence[str], snapping: Snapping) -> Points:
    """Return the points in a file of a table."""
    name = os.fspath(path)
    if not is_table(path):
        raise ValueError(
            f"{path}: {what}s are read from tables ({', '.join(SUFFIXES)}) and layers"
            f" ({', '.join(READ)}); choose one of these suffixes, or give a list of names: [{name!r}]"
        )
    table = read_columns(path, (*_known(what), *columns), _optional(what, columns))
    if not len(table):
        raise ValueError(f"{name}: no rows; give at least one {what}")
    return points_in_table(table, name, what, columns, snapping, all_names=partial(column_names, path))


def merged(warnings: Sequence[str]) -> list[str]:
    r"""Return the lines of warnings, each once; lines that say the same of several tables become one line.

    >>> merged(["the origins: far\nthe origins: moved", "the destinations: far"])
    ['the origins, the destinations: far', 'the origins: moved']
    """
    tables: dict[str, list[str]] = {}
    for line in "\n".join(warnings).splitlines():
        name, _, text = line.partition(": ")
        tables.setdefault(text, []).append(name)
    return [f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in tables.items()]


def every_vertex(graph: Graph) -> Points:
    """Return all vertices as points, without those that were added for turns."""
    count = graph.road_vertices
    return Points(vertex_names(graph, slice(count)), np.arange(count), None, {}, everywhere=True)


def _known(what: str) -> tuple[str, ...]:
    return ("id", "name", INDEX, what, "vertex", "lon", "lat", "x", "y", "geometry")


def _optional(what: str, columns: Sequence[str]) -> list[str]:
    """Return the known columns that a table may lack: those that are not asked for by `columns`."""
    return [column for column in _known(what) if column not in columns]


def points_in_table(
    table: pa.Table,
    name: str,
    what: str,
    columns: Sequence[str],
    snapping: Snapping,
    *,
    all_names: Callable[[], Sequence[str]] | None = None,
) -> Points:
    """Return the points in the columns of a table that `points_from` reads; messages call it `name`.

    `all_names` returns the names of all columns of the table that a message lists, by default those of `table`.
    """
    graph, numbers = snapping.graph, {column: column_numbers(table, column, name) for column in columns}
    axes = next((axes for axes in (ON_EARTH, ("x", "y")) if {*axes} <= {*table.column_names}), None)
    named = next((column for column in (what, "vertex") if column in table.column_names), None)
    if axes is None and named is not None and "geometry" in table.column_names:
        raise ValueError(
            f"{name}: the column `geometry` is not read, as the table is no layer; give a GeoDataFrame or a layer, or "
            "leave the column out"
        )
    if axes is not None and "vertex" in table.column_names:
        _refuse_two_places(table, axes, snapping, name)
        axes, named = None, "vertex"
    if axes is None and named is not None:
        vertices = column_vertices(table[named], graph, name)
        own = names_as(vertex_names(graph, vertices), table[named].type)
        plain = table.drop_columns([each for each in (INDEX,) if each in table.column_names])
        ids = row_names(plain, name, own)
        note = repeated(ids, name) if "id" in table.column_names else None
        return Points(ids, vertices, None, numbers, warning=note)
    if axes is None:
        raise ValueError(
            f"{name}: no column `{what}` or `vertex`, nor `lon` and `lat`, nor `x` and `y`; its columns are "
            f"{', '.join(all_names() if all_names else table.column_names)}; rename them"
        )
    given = np.stack([column_numbers(table, axis, name) for axis in axes], axis=1)
    found = snapping.located(given, axes, name)
    vertices, snapped, passed = snapping.snap(found.places, on_the_globe=found.on_the_globe)
    unit = unit_of(graph, on_the_globe=found.on_the_globe)
    network = Network(snapping.coordinates, unit, found.on_the_globe)
    refuse_exchanged(given, found, snapped, axes, network, name)
    refuse_far(snapped, limit_in(snapping.limit, network.unit, "snap_limit (--snap-limit)"), network, name)
    if snapping.limit is None:
        refuse_outside(snapped, network, name)
    ids = row_names(table, name, pa.array(np.arange(1, len(table) + 1)))
    texts = found.note, far_away(snapped, network, name), moved_on(passed, name), repeated(ids, name)
    warnings = [text for text in texts if text]
    warning = "\n".join(warnings) or None
    return Points(ids, vertices, snapped, numbers, found.on_the_globe, network.unit, warning)


def _refuse_two_places(table: pa.Table, axes: tuple[str, str], snapping: Snapping, name: str) -> None:
    """Raise ValueError if a row has a place and the name of a vertex that is elsewhere."""
    vertices = column_vertices(table["vertex"], snapping.graph, name)
    given = np.stack([column_numbers(table, axis, name) for axis in axes], axis=1)
    there = snapping.coordinates[vertices]
    apart = np.abs(snapping.located(given, axes, name).places - there).max(axis=1)
    extent = np.ptp(snapping.coordinates[np.isfinite(snapping.coordinates).all(axis=1)], axis=0).max()
    for row in np.flatnonzero(~(apart <= ROUNDED * extent))[:1].tolist():
        raise ValueError(
            f"{name}, row {row + 1}: the vertex {snapping.graph.label(vertices[row])} (column `vertex`) is not at the "
            "place of the row; leave out the column `vertex`, or the place"
        )


def system_of(given: Any, crs: Any, name: str) -> Any:
    """Return the coordinate system of geometries: what GeoPandas records, or else `crs`; they must not contradict."""
    own = getattr(given, "crs", None)
    if own is None:
        return crs
    if crs is not None and not own.equals(crs_named(crs), ignore_axis_order=True):
        raise ValueError(f"{name}: their coordinate system is {own.to_string()}, not {crs}; leave out crs (--crs)")
    return own
