"""What becomes of a block of distances from origins to destinations: a piece of a table, or of an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpuops.numbers import outside_infinity
from pipelines.answers.od_points import Points
from pipelines.answers.od_reductions import Reduction
from pipelines.answers.od_routes import PairRoutes
from pipelines.answers.parquet_pieces import join_pieces
from pipelines.answers.streamed_files import matrix_header
from pipelines.answers.tables import PARQUET, table_writer
from pipelines.formats.growing_file import GrowingFile

NAMES = pa.dictionary(pa.int32(), pa.large_string())

Choice = tuple[np.ndarray, np.ndarray]  # rows and columns of a block, row by row
Choose = Callable[[np.ndarray], Choice | None]


@dataclass(frozen=True)
class ArrayForm:
    """A NumPy file of the matrix."""

    shape: tuple[int, int]
    dtype: np.dtype

    def append(self, file: GrowingFile, rows: slice, found: np.ndarray) -> int:
        """Append some rows; returns how many."""
        with open(file.path, "ab") as stream:
            if not file.ends:
                stream.write(matrix_header(self.shape, self.dtype))
            stream.write(np.ascontiguousarray(found).data)
        return len(found)

    def finish(self, file: GrowingFile) -> None:
        """Nothing is left to do."""


@dataclass(frozen=True)
class TableForm:
    """A table; `batch` makes a piece of it from the numbers of the origins and what was asked for of them."""

    suffix: str
    schema: pa.Schema
    batch: Callable[[slice, np.ndarray], list[pa.Array]]

    def append(self, file: GrowingFile, rows: slice, found: np.ndarray) -> int:
        """Append the rows of some origins; returns how many."""
        batch = pa.RecordBatch.from_arrays(self.batch(rows, found), schema=self.schema)
        if self.suffix not in PARQUET:
            with pa.OSFile(str(file.path), "ab") as text:
                with table_writer(text, self.schema, self.suffix, header=not file.ends) as write:
                    write(batch)
            return len(batch)
        piece = pa.BufferOutputStream()
        with table_writer(piece, self.schema, self.suffix) as write:
            write(batch)
        with open(file.path, "ab") as stream:
            stream.write(piece.getvalue())
        return len(batch)

    def finish(self, file: GrowingFile) -> None:
        """Make one table of the pieces."""
        if self.suffix in PARQUET:
            join_pieces(file.path, file.ends)


def pair_table(
    points: tuple[Points, Points], suffix: str, dtype: np.dtype, choose: Choose, routes: PairRoutes | None
) -> TableForm:
    """Pairs with their distances, how far places were snapped, and their paths if `routes` finds them.

    With routes, blocks have the distances to all vertices.
    """
    origins, destinations = points
    # Arrow writes bytes that it never set where a dictionary has a name twice.
    encoded = [p.ids.dictionary_encode() for p in points]
    codes, names = ([getattr(e, part) for e in encoded] for part in ("indices", "dictionary"))
    fields = [("origin", NAMES), ("destination", NAMES), ("distance", pa.from_numpy_dtype(dtype))]
    fields += [] if routes is None else routes.fields()
    snaps = ("origin_snapped", "destination_snapped")
    fields += [(name, pa.float64()) for name, p in zip(snaps, points, strict=True) if p.snapped is not None]

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
        if origins.snapped is not None:
            columns.append(pa.array(origins.snapped[i + rows.start]))
        if destinations.snapped is not None:
            columns.append(pa.array(destinations.snapped[j]))
        return columns

    return TableForm(suffix, pa.schema(fields), batch)


def reduced_table(origins: Points, suffix: str, reduction: Reduction) -> TableForm:
    """One value for each origin, as blocks have them; null for the minimum of none."""
    name = reduction.name if reduction.column is None else f"{reduction.name}_{reduction.column}"
    fields = [("origin", pa.large_string()), (name, pa.float64())]
    fields += [] if origins.snapped is None else [("origin_snapped", pa.float64())]

    def batch(rows: slice, found: np.ndarray) -> list[pa.Array]:
        columns = [origins.ids[rows], pa.array(found, mask=np.isinf(found))]
        return columns if origins.snapped is None else [*columns, pa.array(origins.snapped[rows])]

    return TableForm(suffix, pa.schema(fields), batch)


def choices(found: np.ndarray, within: float | None, nearest: int | None) -> Choice | None:
    """Rows and columns of the pairs to keep, row by row; None for all. Of equals the first column is nearer."""
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
