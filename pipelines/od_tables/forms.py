"""Write a block of distances from origins to destinations as a piece of a table, or of an array."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from gpuops.numbers import outside_infinity
from pipelines.exports.streamed_files import matrix_header
from pipelines.files.output_file import GrowingFile
from pipelines.files.tables import PARQUET, legible, number_field, table_writer, vertex_names
from pipelines.od_tables.blocks import Reduction
from pipelines.od_tables.units import Measured
from pipelines.places.points import Points
from pipelines.routes.along import Along, sums_along
from pipelines.routes.paths import Walker
from pipelines.routes.road_lengths import RoadsAlong
from pipelines.workers.capacity import refuse_disk

Choice = tuple[np.ndarray, np.ndarray]  # rows and columns of a block, row by row
Choose = Callable[[np.ndarray], Choice | None]


@dataclass(frozen=True)
class ArrayForm:
    """The matrix of distances as a NumPy file."""

    shape: tuple[int, int]
    dtype: np.dtype

    def append(self, file: GrowingFile, rows: slice, found: np.ndarray) -> int:
        """Append some rows; returns how many rows were appended."""
        with open(file.path, "ab") as stream:
            if not file.ends:
                stream.write(matrix_header(self.shape, self.dtype))
            stream.write(np.ascontiguousarray(found).data)
        return len(found)

    def finish(self, file: GrowingFile) -> None:
        """Do nothing: the array is complete with its last rows."""


@dataclass(frozen=True)
class TableForm:
    """A table. `batch` makes columns from the numbers of some origins and the block computed for these origins."""

    suffix: str
    schema: pa.Schema
    batch: Callable[[slice, Any], list[pa.Array]]

    def append(self, file: GrowingFile, rows: slice, found: Any) -> int:
        """Append the rows of some origins; returns how many rows were appended."""
        batch = pa.RecordBatch.from_arrays(self.batch(rows, found), schema=self.schema)
        if self.suffix not in PARQUET:
            with pa.OSFile(str(file.path), "ab") as text:
                with table_writer(text, self.schema, self.suffix, header=not file.ends) as write:
                    write(batch)
            return len(batch)
        piece = pa.BufferOutputStream()
        with table_writer(piece, self.schema, self.suffix) as write:
            write(batch)
        data = piece.getvalue()
        if file.ends:  # to join the pieces takes as much disk as the pieces
            cure = "go on later (resume, --resume); a table of text (.csv) needs no joining"
            refuse_disk(file.ends[-1] + 2 * len(data), file.out, cure)
        with open(file.path, "ab") as stream:
            stream.write(data)
        return len(batch)

    def finish(self, file: GrowingFile) -> None:
        """Join the pieces, each a Parquet file, to one Parquet file, a group of rows at a time."""
        if self.suffix not in PARQUET or len(file.ends) < 2:
            return
        with pa.memory_map(str(file.path)) as whole:
            lengths = (end - start for start, end in pairwise((0, *file.ends)))
            pieces = (pa.parquet.ParquetFile(pa.BufferReader(whole.read_buffer(length))) for length in lengths)
            first = next(pieces)  # Arrow reads names with shorter offsets than `self.schema` has
            with table_writer(file.joined, first.schema_arrow, self.suffix) as write:
                for piece in chain([first], pieces):
                    for group in range(piece.num_row_groups):
                        write(piece.read_row_group(group))


class Found(NamedTuple):
    """Rows of a table of pairs.

    Attributes
    ----------
    origins, destinations : (k,) int64, numbers of points; destination -1 for an origin that has none
    values : (k,) distances, unreachable as +inf or the integer dtype's maximum
    walks : (k,) numbers of arcs, and the vertices of all paths, as `Walker.walk` returns them; None without paths
    """

    origins: np.ndarray
    destinations: np.ndarray
    values: np.ndarray
    walks: tuple[np.ndarray, np.ndarray] | None = None

    def of_each(self, rows: slice, missing: Any) -> Found:
        """Return the rows with one more for each origin in `rows` that has none, with the value `missing`."""
        alone = np.setdiff1d(np.arange(rows.start, rows.stop), self.origins)
        at = np.searchsorted(self.origins, alone)
        walks = None if self.walks is None else (np.insert(self.walks[0], at, -1), self.walks[1])
        return Found(
            np.insert(self.origins, at, alone),
            np.insert(self.destinations, at, -1),
            np.insert(self.values, at, missing),
            walks,
        )


def pair_table(
    points: tuple[Points, Points],
    suffix: str,
    dtype: np.dtype,
    value: Measured,
    choose: Choose,
    routes: PairRoutes | None,
    *,
    of_each: bool = False,
) -> TableForm:
    """Return the form of a table of pairs: distances, columns of their paths, and how far places were snapped.

    With `of_each`, an origin without a pair has a row without a destination.

    A block is a `Found`, or a matrix; `choose` chooses the pairs of a matrix that the table has. With `routes`, a
    matrix has the distances to all vertices.
    """
    origins, destinations = points
    # Integers are written as they are; text is written by its number in a dictionary.
    # Every name is once in the dictionaries: Arrow would write uninitialized bytes for a name that is there twice.
    encoded = [p.ids if p.numbered else p.ids.dictionary_encode() for p in points]
    fields = [pa.field(what, each.type) for what, each in zip(("origin", "destination"), encoded, strict=True)]
    fields += [number_field(value.name, value.dtype(dtype), value.unit)]
    fields += [] if routes is None else routes.fields()
    snaps = [snapped_column(p, what, suffix) for p, what in zip(points, ("origin", "destination"), strict=True)]
    fields += [snap[0] for snap in snaps if snap is not None]

    def chosen(rows: slice, found: np.ndarray) -> Found:
        block = found if routes is None else found[:, destinations.vertices]
        kept = choose(block)
        walks = None if routes is None else routes.walk(origins, destinations, rows, found, kept)
        if kept is None:
            i, j = np.divmod(np.arange(block.size), block.shape[1])
            return Found(i + rows.start, j, block.ravel(), walks)
        return Found(kept[0] + rows.start, kept[1], block[kept], walks)

    def numbers(of: np.ndarray) -> pa.Array:
        return pa.array(of, mask=of < 0)

    def batch(rows: slice, block: np.ndarray | Found) -> list[pa.Array]:
        found = block if isinstance(block, Found) else chosen(rows, block)
        found = found.of_each(rows, outside_infinity(dtype)) if of_each else found
        i, j = found.origins, found.destinations
        columns = [
            encoded[0].take(pa.array(i)),
            encoded[1].take(numbers(j)),
            pa.array(value.of(found.values), mask=found.values == outside_infinity(dtype)),
        ]
        if routes is not None:
            assert found.walks is not None
            columns += routes.columns(*found.walks)
        columns += [snap[1].take(numbers(k)) for snap, k in zip(snaps, (i, j), strict=True) if snap]
        return columns

    return TableForm(suffix, pa.schema(fields), batch)


def reduced_table(origins: Points, suffix: str, value: Measured, reductions: Sequence[Reduction]) -> TableForm:
    """Return the form of a table with one row for each origin, and one column for each reduction.

    The minimum and the mean over no destinations are null.
    """
    nearest = [reduction.name == "min" for reduction in reductions]
    units = [value.unit if each else "" for each in nearest]
    fields = [number_field(each.title, np.float64, unit) for each, unit in zip(reductions, units, strict=True)]
    fields = [pa.field("origin", origins.ids.type), *fields]
    snap = snapped_column(origins, "origin", suffix)
    fields += [] if snap is None else [snap[0]]

    def batch(rows: slice, found: np.ndarray) -> list[pa.Array]:
        columns = [origins.ids[rows]]
        for each, of_nearest in zip(found.T, nearest, strict=True):
            columns.append(pa.array(value.of(each) if of_nearest else each, mask=~np.isfinite(each)))
        return columns if snap is None else [*columns, snap[1][rows]]

    return TableForm(suffix, pa.schema(fields), batch)


def snapped_column(points: Points, what: str, suffix: str) -> tuple[pa.Field, pa.Array] | None:
    """Return a column of how far places were snapped, in text in metres to a tenth; None if vertices were named."""
    if points.snapped is None:
        return None
    column = pa.array(legible(points.snapped, points.unit, suffix))
    return number_field(f"{what}_snapped", np.float64, points.unit), column


def choices(found: np.ndarray, within: float | None, nearest: int | None) -> Choice | None:
    """Return rows and columns of the pairs to keep, row by row; None for all pairs.

    Of equal distances, the first column counts as nearer.
    """
    if within is None and nearest is None:
        return None
    keep = found != outside_infinity(found.dtype)
    if within is not None:
        keep &= found <= within
    if nearest is None:
        i, j = np.nonzero(keep)
        return i, j
    order = np.argsort(found, axis=1, kind="stable")[:, :nearest]
    i = np.repeat(np.arange(len(found)), order.shape[1])
    j = order.ravel()
    there = keep[i, j]
    return i[there], j[there]


class PairRoutes:
    """Finds the paths of pairs from rows of distances, and makes the columns of paths.

    Parameters
    ----------
    walker : Walker
    suffix : suffix of the table
    paths : whether the table has the vertices of each path and, if the graph has coordinates, its length
    along : the weights whose sums along each path the table has
    """

    def __init__(self, walker: Walker, suffix: str, *, paths: bool, along: Sequence[Along] = ()):
        self._walker, self._suffix, self._along = walker, suffix, along
        self._names = vertex_names(walker.graph, slice(walker.graph.road_vertices)) if paths else None
        roads = RoadsAlong(walker.graph) if paths else None
        # Without coordinates there are no lengths; and a column `length` of `along` is the length that the user has.
        wanted = roads is not None and roads.unit is not None and all(each.name != "length" for each in along)
        self._roads = roads if wanted else None

    def fields(self) -> list[pa.Field]:
        """Return the columns: the sums, the length along the roads, and the vertices along the path."""
        sums = [number_field(each.name, each.weights.dtype, each.unit) for each in self._along]
        length = [] if self._roads is None else [number_field("length", np.float64, self._roads.unit or "")]
        return [*sums, *length, *([] if self._names is None else [pa.field("path", pa.large_list(self._names.type))])]

    def walk(
        self, origins: Points, destinations: Points, rows: slice, found: np.ndarray, kept: Choice | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the paths of some pairs of a block, as `Walker.walk` returns the paths of one source.

        Parameters
        ----------
        rows, found : the origins of the block, and their distances (k, n) to all vertices
        kept : numbers of rows of the block, rising, and of destinations; None for all pairs
        """
        sources = origins.vertices[rows]
        ends, starts = destinations.vertices, np.arange(len(sources) + 1) * len(destinations.vertices)
        if kept is not None:
            ends, starts = ends[kept[1]], np.searchsorted(kept[0], np.arange(len(sources) + 1))

        def walk(k: int) -> tuple[np.ndarray, np.ndarray]:
            targets = ends if kept is None else ends[starts[k] : starts[k + 1]]
            return self._walker.walk(int(sources[k]), found[k], targets)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            walks = list(pool.map(walk, range(len(sources))))
        none = np.empty(0, np.int64)
        hops, vertices = (np.concatenate([none, *(walk[part] for walk in walks)]) for part in (0, 1))
        return hops, vertices

    def columns(self, hops: np.ndarray, vertices: np.ndarray) -> list[pa.Array]:
        """Return the values of the columns for some paths; null where there is no path (`hops` is negative)."""
        missing = hops < 0
        found = []
        if self._along:
            arcs = self._walker.arcs(hops, vertices)
            for each in self._along:
                sums = legible(sums_along(arcs, hops, each.weights), each.unit, self._suffix)
                found.append(pa.array(sums, mask=missing))
        if self._names is None:
            return found
        if self._walker.junctions is not None:
            hops, vertices, _ = self._walker.junctions.roads_of(hops, vertices)
        ends = np.cumsum(np.where(missing, 0, hops + 1))
        offsets = np.concatenate([[0], ends])
        names = self._names.take(pa.array(vertices))
        path = pa.LargeListArray.from_arrays(offsets, names, mask=pa.array(missing))
        return [*found, *self._lengths(hops, vertices), path]

    def _lengths(self, hops: np.ndarray, vertices: np.ndarray) -> list[pa.Array]:
        if self._roads is None:
            return []
        lengths = legible(self._roads.lengths(hops, vertices), self._roads.unit or "", self._suffix)
        return [pa.array(lengths, mask=(hops < 0) | np.isnan(lengths))]
