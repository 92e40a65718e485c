"""Read roads from a layer of lines: GeoPackage, GeoJSON, GeoParquet, shapefiles, or a GeoDataFrame in memory.

1. Take the layer of lines, its coordinate system, and the columns of weights and of one-way roads.
2. Number the vertices. The columns of tail and head name the vertices if the entries agree with the ends of the lines,
   as in tables of OSMnx; otherwise a vertex is a place where lines end.
3. Take the weights from a column, or else the lengths of the lines as weights: in metres on the ellipsoid for
   longitudes and latitudes, else in the unit of the coordinate system.

Roads join only where they end: lines that cross between their ends do not meet, as a bridge does not meet the road
below. The lines themselves are stored too (`pipelines.stores.lines`). A layer is read whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.files.coordinate_systems import FROM_WEB_MERCATOR, is_web_mercator, line_lengths, with_known_crs
from pipelines.files.layers import need_geopandas, read_layer
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.columns import (
    listed,
    may_be_directions,
    may_be_weights,
    well_known_pairs,
    well_known_weights,
)
from pipelines.formats.graphs.edge_lines import stored_order
from pipelines.formats.graphs.joined import poorly_joined, why_roads_are_apart
from pipelines.formats.graphs.one_way import AGAINST, ALONG, BOTH, WRITE, cut_off, ways_of, without_reverse
from pipelines.formats.graphs.osmnx import units_in
from pipelines.formats.graphs.parquet import weight_dtype
from pipelines.formats.graphs.weight_units import measured, says_time
from pipelines.stores.graph import DEGREES
from pipelines.stores.lines import Lines
from pipelines.stores.road_classes import COLUMNS, RoadClasses, classes_of
from pipelines.stores.schema import counted

GEOMETRY = "geometry"  # the name of the weight that is the length of the line


@contextmanager
def read_layers(
    source: Any,
    layer: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    oneway: str | None = None,
    directed: bool | None = None,
    crs: str | None = None,
    unit: str | None = None,
) -> Iterator[ArcStream]:
    """Yield the roads of a layer of lines.

    Parameters
    ----------
    source : path of a file, or a GeoDataFrame
    layer : name of the layer of a file; by default the only layer of lines
    weight : column of weights, or "geometry" for the lengths of the lines; by default the only column with a well-known
        name for weights, else the lengths
    columns : columns of tail and head, whose entries become labels, and optionally the column of weights
    oneway : column of the directions of roads; by default, the column `oneway` if there is one. With columns of tail
        and head, a two-way road may have a line for each direction (`without_reverse`); each line is then one arc
    directed : True: each line is an arc from its first to its last point; False: each line leads in both directions.
        Without a column `oneway`, the default is True with columns of tail and head, else False
    crs : name of the coordinate system, if the layer does not record one
    unit : unit of length in which to give the lengths of the lines, if they are the weights
    """
    roads = _Roads.read(source, layer, crs)
    ends = roads.ends(columns)
    weight = weight if columns is None or len(columns) < 3 else columns[2]
    weights, unit, about = roads.weights(weight, ends.columns, unit)
    ways, about_ways = roads.ways(oneway, directed, ends)
    arcs = _arcs(ends.tails, ends.heads, weights, ways)
    each = bool((ways != BOTH).any())
    stream = ArcStream(
        [(arcs.tails, arcs.heads, arcs.weights) if each else (ends.tails, ends.heads, weights)],
        n=len(ends.places),
        directed=each,
        weight_dtype=weights.dtype,
        labels=ends.labels,
        text_labels=any(_numbers(roads.column(name, "columns")) is None for name in ends.columns),
        coordinates=ends.places,
        lines=lambda simplify, sorted_rows: roads.lines(arcs, simplify, sorted_rows),
        classes=lambda simplify, sorted_rows: roads.classes(arcs, simplify, sorted_rows),
        crs=roads.crs,
        weight_unit=unit,
        units=units_in(roads.names),
    )
    crs_said = "coordinate system unknown, name it (crs, --crs)" if not roads.crs else roads.crs
    stream.remarks = [
        f"{roads.name}: {counted(len(ways), 'line')}, {ends.about}, {about_ways}, {about}, {crs_said}",
        *roads.remarks,
    ]
    stream.warnings = [*roads.warnings, *roads.apart(arcs, ends)]
    yield stream


@dataclass
class _Ends:
    """The vertices of lines. If columns of tail and head name them: `labels`, `columns`; else these are None and ()."""

    tails: np.ndarray
    heads: np.ndarray
    places: np.ndarray
    labels: list[str] | None
    columns: tuple[str, ...]
    about: str


@dataclass
class _Arcs:
    """Arcs in the order of the layer; `numbers` as `Lines.of_arcs`."""

    tails: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray


class _Roads:
    """The lines of a layer; a line of several parts becomes several lines."""

    def __init__(self, frame: Any, name: str, crs: str, remarks: list[str], warnings: list[str]):
        import shapely

        self.frame, self.name, self.crs, self.remarks = frame, name, crs, remarks
        self.warnings = warnings
        self.rows = frame["__row"].to_numpy()  # of the layer, from 0
        shapes = frame.geometry.to_numpy()
        self.points, parts = shapely.get_coordinates(shapely.force_2d(shapes), return_index=True)
        self.offsets = np.searchsorted(parts, np.arange(len(shapes) + 1))
        bad = ~np.isfinite(self.points).all(axis=1)
        for part in parts[bad][:1].tolist():
            raise FormatError(f"{name}, row {self.rows[part]} (from 0): a point is not finite; correct the geometry")

    @classmethod
    def read(cls, source: Any, layer: str | None, crs: str | None) -> _Roads:
        need_geopandas("layers of geometries")
        try:
            if isinstance(source, str | os.PathLike):
                frame, name = read_layer(source, layer, "LineString")
            elif layer is not None:
                raise ValueError("a GeoDataFrame is one layer; leave out layer")
            else:
                frame, name = source, f"the {type(source).__name__}"
            given = crs if crs is not None else frame.crs
            frame, found = with_known_crs(frame, crs, name)
        except ValueError as error:
            raise FormatError(str(error)) from error
        levels = [level for level in frame.index.names if level is not None]
        frame = frame.reset_index(level=levels) if levels else frame
        frame = frame.assign(__row=np.arange(len(frame)))
        missing = frame.geometry.isna() | frame.geometry.is_empty
        remarks, warnings = [], []
        if given is not None and is_web_mercator(given):
            remarks.append(f"{name}: {FROM_WEB_MERCATOR}")
        if missing.any():
            left_out = counted(int(missing.sum()), "row")
            first = np.flatnonzero(missing)[0]
            warnings.append(f"{name}: left out {left_out} without a geometry, such as row {first} (from 0)")
            frame = frame[~missing]
        kinds = frame.geom_type
        for row, kind in zip(frame["__row"], kinds, strict=True):
            if kind not in ("LineString", "MultiLineString", "LinearRing"):
                raise FormatError(
                    f"{name}, row {row} (from 0): is a {kind}, but roads are LineStrings; choose a layer of lines "
                    "(layer, --layer), or leave the row out; a frame without its geometries is a table of edges"
                )
        if (kinds == "MultiLineString").any():
            before = len(frame)
            frame = frame.explode(ignore_index=True)
            if len(frame) > before:
                remarks.append(f"{name}: took lines of several parts apart: {len(frame) - before:,} lines more")
        if not len(frame):
            raise FormatError(f"{name}: has no lines; choose a layer of lines (layer, --layer)")
        return cls(frame, name, found, remarks, warnings)

    @property
    def names(self) -> list[str]:
        own = (self.frame.geometry.name, "__row")
        return [str(column) for column in self.frame.columns if column not in own]

    def column(self, name: str, option: str) -> Any:
        if name not in self.names:
            raise FormatError(
                f"{self.name}: there is no column {name!r:.40}; columns are {listed(self.names)}; choose one "
                f"({option}, --{option})"
            )
        return self.frame[name]

    def ends(self, columns: Sequence[str] | None) -> _Ends:
        """Return the vertices: the entries of `columns` or of columns with well-known names, else places."""
        both = np.stack([self.points[self.offsets[:-1]], self.points[self.offsets[1:] - 1]], axis=1) + 0.0
        if columns is not None:
            if len(columns) not in (2, 3):
                raise FormatError(f"{self.name}: give two columns, tail and head, and optionally the weight (columns)")
            ends = self._named(both, (columns[0], columns[1]))
            assert ends is not None
            return ends
        for tail, head in well_known_pairs(self.names):
            ends = self._named(both, (self.names[tail], self.names[head]), doubtful=True)
            if ends is not None:
                return ends
        order, found = _in_order_of_appearance(
            np.unique(both.reshape(-1, 2), axis=0, return_index=True, return_inverse=True)
        )
        found = found.reshape(-1, 2)
        return _Ends(found[:, 0], found[:, 1], both.reshape(-1, 2)[order], None, (), "joined where they end")

    def _named(self, both: np.ndarray, columns: tuple[str, str], doubtful: bool = False) -> _Ends | None:
        """Return the vertices that columns name; None if `doubtful` and one vertex were in several places."""
        texts = np.stack([_texts(self.column(name, "columns")) for name in columns], axis=1).ravel()
        of_osmnx = columns == ("u", "v")
        for row in np.flatnonzero(texts == "")[:1].tolist():
            if doubtful and not of_osmnx:  # such as names of streets
                return None
            raise FormatError(
                f"{self.name}, row {self.rows[row // 2]} (from 0): {columns[row % 2]!r} is missing; fill it in, or "
                "leave the row out"
            )
        order, found = _in_order_of_appearance(np.unique(texts, return_index=True, return_inverse=True))
        places = both.reshape(-1, 2)[order]
        apart = (np.abs(places[found] - both.reshape(-1, 2)) > 1e-6 * (1 + np.abs(places[found]))).any(axis=1)
        if doubtful and apart.any():
            end = int(np.flatnonzero(apart)[0])
            if of_osmnx:
                self.warnings.append(
                    f"{self.name}: u and v are not read, since {texts[end]} is in several places, such as in row "
                    f"{self.rows[end // 2]} (from 0); vertices are the places where lines end"
                )
            return None
        found = found.reshape(-1, 2)
        about = f"tails from {columns[0]}, heads from {columns[1]}"
        return _Ends(found[:, 0], found[:, 1], places, texts[order].tolist(), columns, about)

    def weights(self, name: str | None, taken: tuple[str, ...], unit: str | None = None) -> tuple[np.ndarray, str, str]:
        """Return the weights of the lines, their unit, and a description; lengths of lines are in `unit` if given."""
        others_said, times = "", []
        if name is None:
            others = [each for each in self.names if each not in taken]
            known = well_known_weights(others)
            known = ["weight"] if "weight" in known else known  # as in exported arcs, which have a length, too
            if len(known) > 1:
                raise FormatError(
                    f"{self.name}: it is unclear which column holds the weights; columns are {listed(self.names)}; "
                    f"name it (weight, --weight), or take the lengths of the lines (weight='{GEOMETRY}')"
                )
            name = known[0] if known else GEOMETRY
            vertices = {self.names[place] for pair in well_known_pairs(self.names) for place in pair}
            numbers_too = [
                each
                for each in others
                if each != name and each not in vertices and may_be_weights(each) and self._is_number(each)
            ]
            times = [each for each in numbers_too if says_time(each)]
            others_said = f", other numbers in {listed(numbers_too)} (weight, --weight)" if numbers_too else ""
        if name != GEOMETRY or GEOMETRY in self.names:
            values = self.column(name, "weight")
            numbers = _numbers(values)
            if numbers is None:
                raise FormatError(f"{self.name}: column {name!r} has text; weights are numbers; convert it")
            if numbers.dtype.kind == "f":
                for row in np.flatnonzero(~np.isfinite(numbers))[:1].tolist():
                    raise FormatError(
                        f"{self.name}, row {self.rows[row]} (from 0): {name!r} is {numbers[row]}; correct it or leave "
                        "the row out"
                    )
            self._doubt(name, numbers)
            return (
                numbers.astype(weight_dtype(f"{self.name}: column {name!r}", numbers.dtype)),
                name,
                f"weights from {name}{others_said}",
            )
        lengths = line_lengths(self.offsets, self.points, degrees=self.crs == DEGREES)
        lengths, unit = measured(lengths, self._unit(), unit, "lengths of the lines")
        if times:
            self.warnings.append(
                f"{self.name}: weights are the lengths of the lines, and {listed(times)} was not read; name the column "
                f"of weights (weight, --weight), or say that lengths are meant (weight='{GEOMETRY}')"
            )
        about = f"weights are the lengths of the lines in {unit or 'units of the coordinates'}"
        return lengths, unit, about + others_said

    def _is_number(self, name: str) -> bool:
        column = self.frame[name]
        return column.ndim == 1 and _numbers(column) is not None

    def _doubt(self, name: str, weights: np.ndarray) -> None:
        """Add a warning of weights that are hardly lengths or times of roads: all zero, or negative."""
        negative = np.flatnonzero(weights < 0)
        if not (weights != 0).any():
            self.warnings.append(f"{self.name}: {name!r} is 0 in all rows, from row {self.rows[0]} (from 0)")
        elif len(negative):
            row = negative[0]
            self.warnings.append(
                f"{self.name}: {name!r} is negative in {counted(len(negative), 'row')} of {len(weights):,}, first "
                f"{weights[row]} in row {self.rows[row]} (from 0)"
            )

    def _unit(self) -> str:
        """Return the unit of lengths, "" if it is not known."""
        if self.crs == DEGREES:
            return "m"
        units = {axis.unit_name for axis in self.frame.crs.axis_info[:2]} if self.frame.crs is not None else set()
        unit = units.pop() if len(units) == 1 else ""
        return "m" if unit == "metre" else unit

    def ways(self, name: str | None, directed: bool | None, ends: _Ends) -> tuple[np.ndarray, str]:
        """Return the direction of each line (`BOTH`, `ALONG` or `AGAINST`), and a description."""
        if name is not None and directed is not None:
            raise FormatError(
                f"{self.name}: a column of one-way roads (oneway, --oneway) says where lines lead; leave out directed "
                "(--directed, --undirected)"
            )
        known = [each for each in self.names if each.casefold() == "oneway"]
        if name is None and directed is None and len(known) == 1:
            name = known[0]
        if name is None and directed is None:
            unread = [each for each in self.names if may_be_directions(each)]
            if unread:
                self.warnings.append(
                    f"{self.name}: {listed(unread)} may hold directions of one-way roads, and was not read; name the "
                    "column (oneway, --oneway), or say that there are none (directed=False, --undirected)"
                )
        if name is None:
            along = bool(ends.columns) if directed is None else directed
            ways = np.full(len(self.rows), ALONG if along else BOTH)
            return ways, "each in the direction of its points" if along else "in both directions"
        texts = _texts(self.column(name, "oneway"))
        ways, unknown = ways_of(texts.tolist())
        if unknown is not None:
            raise FormatError(
                f"{self.name}, row {self.rows[unknown]} (from 0): {name!r} is {texts[unknown].lower()!r}; {WRITE}"
            )
        about = f"{int((ways != BOTH).sum()):,} of them one-way by {name}"
        if not ends.columns:
            return ways, about
        alone = without_reverse(ends.tails, ends.heads, ways == BOTH)
        if alone is None:
            return ways, f"{about}, the others in both directions"
        self.warnings += cut_off(self.name, self.rows, alone)
        return np.where(ways == BOTH, ALONG, ways), f"{about}, a line for each direction of the others"

    def apart(self, arcs: _Arcs, ends: _Ends) -> list[str]:
        """Return a warning if most roads are not joined to each other, with the cause."""
        n = len(ends.places)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(arcs.tails, minlength=n))])
        heads = arcs.heads[np.argsort(arcs.tails, kind="stable")]
        warning = poorly_joined(self.name, indptr, heads)
        if not warning:
            return []
        why = why_roads_are_apart(
            indptr,
            heads,
            ends.places,
            degrees=self.crs == DEGREES,
            from_web_mercator=any(FROM_WEB_MERCATOR in remark for remark in self.remarks),
            unit=self._unit(),
            named=bool(ends.columns),
        )
        return [f"{warning}, {why}"]

    def lines(self, arcs: _Arcs, simplify: bool, sorted_rows: bool) -> Lines:
        order = stored_order(arcs.tails, arcs.heads, arcs.weights, simplify, sorted_rows)
        return Lines(arcs.numbers[order], self.offsets, self.points)

    def classes(self, arcs: _Arcs, simplify: bool, sorted_rows: bool) -> RoadClasses | None:
        """Return the classes of the roads of the stored arcs, from a column with a well-known name."""
        columns = [name for known in COLUMNS for name in self.names if name.casefold() == known]
        found = classes_of(self.frame[columns[0]]) if columns else None
        if found is None:
            return None
        order = stored_order(arcs.tails, arcs.heads, arcs.weights, simplify, sorted_rows)
        return found.taken(np.abs(arcs.numbers[order]) - 1)


def has_geometries(source: Any) -> bool:
    """Return whether `source` is a GeoDataFrame whose active column has geometries, or that is empty."""
    if not (hasattr(source, "geom_type") and hasattr(source, "crs") and hasattr(source, "active_geometry_name")):
        return False
    return source.active_geometry_name is not None and (not len(source) or bool(source.geometry.notna().any()))


def _arcs(tails: np.ndarray, heads: np.ndarray, weights: np.ndarray, ways: np.ndarray) -> _Arcs:
    """Return the arcs of lines; the two arcs of a line that leads in both directions are neighbours."""
    lines = np.repeat(np.arange(len(ways)), np.where(ways == BOTH, 2, 1))
    second = np.concatenate([[False], np.diff(lines) == 0])
    against = second | (ways[lines] == AGAINST)
    return _Arcs(
        np.where(against, heads[lines], tails[lines]),
        np.where(against, tails[lines], heads[lines]),
        weights[lines],
        np.where(against, -1, 1) * (lines + 1),
    )


def _in_order_of_appearance(unique: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return, of ``np.unique(..., return_index, return_inverse)``, the first places and the numbers, renumbered.

    Values are numbered in the order in which they appear first.
    """
    _, first, inverse = unique
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return first[order], number[inverse.ravel()]


def _texts(column: Any) -> np.ndarray:
    """Return a column of pandas as text: whole numbers without a point, and "" for a missing entry."""
    missing = column.isna().to_numpy()
    values = column.to_numpy(object, copy=True)
    values[missing] = ""
    numbers = [isinstance(value, float | np.floating) and float(value).is_integer() for value in values.tolist()]
    texts = [str(int(v)) if whole else str(v) for v, whole in zip(values.tolist(), numbers, strict=True)]
    return np.array(texts, object)


def _numbers(column: Any) -> np.ndarray | None:
    """Return a column of numbers of pandas, NaN for a missing entry; None if it has text."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if not is_numeric_dtype(column.dtype) or is_bool_dtype(column.dtype):
        return None
    return column.to_numpy(np.float64, na_value=np.nan) if column.isna().any() else column.to_numpy()
