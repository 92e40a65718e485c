"""Write a block of distances from origins to destinations as a piece of a table, or of an array."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from gpuops.numbers import outside_infinity
from pipelines.exports.streamed_files import matrix_header
from pipelines.files.output_file import GrowingFile
from pipelines.files.tables import PARQUET, legible, number_field, table_writer, vertex_names
from pipelines.od_tables.blocks import Reduction
from pipelines.od_tables.points import Points, length_of
from pipelines.routes.paths import Walker
from pipelines.stores import Graph
from pipelines.workers.capacity import refuse_disk

NAMES = pa.dictionary(pa.int32(), pa.large_string())

Choice = tuple[np.ndarray, np.ndarray]  # rows and columns of a block, row by row
Choose = Callable[[np.ndarray], Choice | None]
PATHS = pa.large_list(pa.large_string())


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
    batch: Callable[[slice, np.ndarray], list[pa.Array]]

    def append(self, file: GrowingFile, rows: slice, found: np.ndarray) -> int:
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


def pair_table(
    points: tuple[Points, Points], suffix: str, dtype: np.dtype, unit: str, choose: Choose, routes: PairRoutes | None
) -> TableForm:
    """Return the form of a table of pairs: distances in `unit`, paths, and how far places were snapped.

    `choose` says which pairs of a block the table has. With `routes`, the table has paths, and blocks have the
    distances to all vertices.
    """
    origins, destinations = points
    # Every name is once in the dictionaries: Arrow would write uninitialized bytes for a name that is there twice.
    encoded = [p.ids.dictionary_encode() for p in points]
    codes, names = ([getattr(e, part) for e in encoded] for part in ("indices", "dictionary"))
    fields = [pa.field("origin", NAMES), pa.field("destination", NAMES), number_field("distance", dtype, unit)]
    fields += [] if routes is None else routes.fields()
    snaps = [snapped_column(p, what, suffix) for p, what in zip(points, ("origin", "destination"), strict=True)]
    fields += [snap[0] for snap in snaps if snap is not None]

    def batch(rows: slice, found: np.ndarray) -> list[pa.Array]:
        block = found if routes is None else found[:, destinations.vertices]
        chosen = choose(block)
        if chosen is None:
            i, j = np.divmod(np.arange(block.size), block.shape[1])
            values = block.ravel()
        else:
            i, j = chosen
            values = block[i, j]
        columns = [
            pa.DictionaryArray.from_arrays(codes[0].take(pa.array(i + rows.start)), names[0]),
            pa.DictionaryArray.from_arrays(codes[1].take(pa.array(j)), names[1]),
            pa.array(values, mask=values == outside_infinity(dtype)),
        ]
        if routes is not None:
            columns += routes.columns(origins.vertices[rows], found, i, destinations.vertices[j])
        columns += [snap[1].take(pa.array(k)) for snap, k in zip(snaps, (i + rows.start, j), strict=True) if snap]
        return columns

    return TableForm(suffix, pa.schema(fields), batch)


def reduced_table(origins: Points, suffix: str, unit: str, reduction: Reduction) -> TableForm:
    """Return the form of a table with one value for each origin; the minimum over no destinations is null.

    `unit` is the unit of distances.
    """
    name = reduction.name if reduction.column is None else f"{reduction.name}_{reduction.column}"
    fields = [pa.field("origin", pa.large_string()), number_field(name, np.float64, unit if name == "min" else "")]
    snap = snapped_column(origins, "origin", suffix)
    fields += [] if snap is None else [snap[0]]

    def batch(rows: slice, found: np.ndarray) -> list[pa.Array]:
        columns = [origins.ids[rows], pa.array(found, mask=np.isinf(found))]
        return columns if snap is None else [*columns, snap[1][rows]]

    return TableForm(suffix, pa.schema(fields), batch)


def snapped_column(points: Points, what: str, suffix: str) -> tuple[pa.Field, pa.Array] | None:
    """Return a column of how far places were snapped, in text in metres to a tenth; None if vertices were named."""
    if points.snapped is None:
        return None
    unit = "m" if points.on_the_globe else ""
    return number_field(f"{what}_snapped", np.float64, unit), pa.array(legible(points.snapped, unit, suffix))


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
    """Finds the paths of pairs from rows of distances.

    Parameters
    ----------
    graph : Graph
    dtype : dtype of the distances
    on_the_globe : bool or None
        Whether coordinates are longitudes and latitudes; with None, `are_geographic` decides.
    suffix : suffix of the table
    """

    def __init__(self, graph: Graph, dtype: np.dtype, on_the_globe: bool | None, suffix: str):
        self._walker = Walker(graph, dtype)
        self._names = vertex_names(graph)
        self._apart, self._unit = length_of(graph, on_the_globe)
        self._suffix = suffix

    def fields(self) -> list[pa.Field]:
        """Return the columns: the length of a path, if the graph has coordinates, and the vertices along the path."""
        length = [] if self._apart is None else [number_field("length", np.float64, self._unit)]
        return [*length, pa.field("path", PATHS)]

    def columns(self, sources: np.ndarray, rows: np.ndarray, i: np.ndarray, targets: np.ndarray) -> list[pa.Array]:
        """Return the values of the columns for some pairs; null if no path joins a pair.

        Parameters
        ----------
        sources, rows : (k,) vertices, and (k, n) distances from these vertices
        i, targets : pairs: (l,) numbers of rows, ascending, and (l,) vertices
        """
        starts = np.searchsorted(i, np.arange(len(sources) + 1))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            walks = list(
                pool.map(
                    lambda k: self._walker.walk(int(sources[k]), rows[k], targets[starts[k] : starts[k + 1]]),
                    range(len(sources)),
                )
            )
        none = np.empty(0, np.int64)
        hops, vertices = (np.concatenate([none, *(walk[part] for walk in walks)]) for part in (0, 1))
        missing = hops < 0
        ends = np.cumsum(np.where(missing, 0, hops + 1))
        offsets = np.concatenate([[0], ends])
        names = self._names.take(pa.array(vertices))
        path = pa.LargeListArray.from_arrays(offsets, names, mask=pa.array(missing))
        return [*self._lengths(vertices, ends, missing), path]

    def _lengths(self, vertices: np.ndarray, ends: np.ndarray, missing: np.ndarray) -> list[pa.Array]:
        if self._apart is None:
            return []
        steps = np.zeros(len(vertices))  # length from each vertex to the next vertex of its path, 0 at the end
        if len(vertices) > 1:
            steps[:-1] = self._apart(vertices[:-1], vertices[1:])
        there = ends[~missing]
        steps[there - 1] = 0
        lengths = np.zeros(len(missing))
        if len(there):
            lengths[~missing] = np.add.reduceat(steps, np.concatenate([[0], there[:-1]]))
        lengths = legible(lengths, self._unit, self._suffix)
        return [pa.array(lengths, mask=missing | np.isnan(lengths))]
