"""The disk of a table or a matrix, estimated before the first row is computed.

The names in a table are known beforehand, so text has known bytes except for its numbers. A distance has no character
if its destination is unreachable, and at most `CHARACTERS`. Parquet, gzip and Zarr compress by an unknown factor, so
their bytes are known only at most.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuops.memory import size
from pipelines.exports.streamed_files import matrix_header
from pipelines.files.output_file import grown_bytes
from pipelines.files.tables import PARQUET, legible
from pipelines.od_tables.forms import ArrayForm
from pipelines.od_tables.given import Given
from pipelines.od_tables.plan import PATH_VERTICES, PlannedTable, TableOptions
from pipelines.places.points import Points
from pipelines.stores.graph import Graph
from pipelines.stores.place import kept_beside
from pipelines.stores.schema import counted
from pipelines.workers.capacity import Needs, refuse_disk
from pipelines.workers.plans import run_plan, stating
from pipelines.workers.progress import Progress

LONG_BYTES = 1 << 30  # a result that may take as much takes long, so that its run prints its plan
CHARACTERS = {"int16": 6, "int32": 11, "float": 15}  # most characters of a number in text; of other types, 24
NAME_BYTES = 8  # assumed for the name of a vertex of a path
EXTRA_BYTES = 1 << 14  # of a store, or of a Parquet file, besides its values; each block is a file until the end


class Disk(NamedTuple):
    """Rows and bytes of a result: at least and at most."""

    rows: tuple[int, int]
    bytes: tuple[int, int]

    def describe(self, walks: bool = False) -> str:
        """Return both as text; with `walks`, the most bytes are those of paths of a usual length."""
        ends = [size(end) for end in self.bytes]
        known = self.rows[0] == self.rows[1]
        rows = f"{'' if known else 'at most '}{counted(self.rows[1], 'row')}"
        if walks:
            return f"{rows}, disk about {ends[1]} if paths have {PATH_VERTICES} vertices"
        if ends[0] == ends[1]:
            return f"{rows}, disk {ends[0]}"
        return f"{rows}, disk " + (f"{ends[0]} to {ends[1]}" if known and self.bytes[0] else f"at most {ends[1]}")


def matrix_disk(points: tuple[Points, Points], dtype: np.dtype, suffix: str) -> Disk:
    """Return the disk of a matrix."""
    rows, columns = (len(each.vertices) for each in points)
    values = rows * columns * dtype.itemsize
    if suffix == ".npy":
        return Disk((rows, rows), (values + len(matrix_header((rows, columns), dtype)),) * 2)
    names = sum(int(_bytes_of(each, ".parquet").sum()) for each in points)
    return Disk((rows, rows), (0, values + names + EXTRA_BYTES))


def table_disk(points: tuple[Points, Points], options: TableOptions, table: PlannedTable, suffix: str) -> Disk:
    """Return the disk of a planned table."""
    if isinstance(table.form, ArrayForm):
        return matrix_disk(points, table.form.dtype, suffix)
    count, width = (len(each.vertices) for each in points)
    least, most = _rows_of_each(options, width)
    schema, binary = table.form.schema, suffix in PARQUET
    sides = [_bytes_of(each, suffix) for each in points[: 1 if options.reductions else 2]]
    begins, ends = sides[0], sides[1] if len(sides) > 1 else np.zeros(1, np.int64)
    numbers = [field.type for field in schema if field.name not in ("origin", "destination", "path")]
    numbers = numbers[: len(numbers) - sum(each.snapped is not None for each in points[: len(sides)])]
    of_row = sum(kind.bit_width // 8 if binary else CHARACTERS.get(str(kind), 24) for kind in numbers)
    # A delimiter follows each entry of text; in Parquet, a bit or two for each entry tell which are missing.
    of_row, delimiters = of_row + len(schema), 0 if binary else len(schema)
    if options.paths:
        of_row += PATH_VERTICES * NAME_BYTES
    both = int(ends.sum()) * (1 if options.pairs else count)
    every = options.pairs or (least == most == width)
    low = least * int(begins.sum()) + (both if every else 0) + least * count * delimiters
    high = most * int(begins.sum()) + (both if every else most * count * int(ends.max(initial=0)))
    high += most * count * of_row
    header = sum(len(name) + 3 for name in schema.names)
    if binary:
        blocks = -(-count // table.step)
        high += blocks * (EXTRA_BYTES + int(begins.sum()) + int(ends.sum()))  # each block has all names once
        high *= 2 if blocks > 1 else 1  # to join the blocks takes as much again
    compressed = binary or suffix.endswith(".gz")
    return Disk((least * count, most * count), (0 if compressed else low + header, high + header))


def _rows_of_each(options: TableOptions, width: int) -> tuple[int, int]:
    """Return the rows of each origin, at least and at most."""
    if options.reductions or options.pairs:
        return 1, 1
    if options.nearest is not None:
        return 1, max(1, min(width, options.nearest))
    return (width if options.within is None else 0), width


def _bytes_of(points: Points, suffix: str) -> np.ndarray:
    """Return the bytes of the name of each point, and of how far the point was snapped, without delimiters."""
    binary, ids = suffix in PARQUET, points.ids
    names = ids.cast(pa.large_string())
    found = pc.binary_length(names).to_numpy(zero_copy_only=False).astype(np.int64)
    if points.numbered:
        found = np.full(len(ids), ids.type.bit_width // 8) if binary else found
    elif binary:
        found = found + 4
    else:  # text is in quotation marks, and its own are doubled
        found = found + 2 + pc.count_substring(names, '"').to_numpy(zero_copy_only=False)
    if points.snapped is None:
        return found
    if binary:
        return found + 8
    snapped = pa.array(legible(points.snapped, points.unit, suffix)).cast(pa.string())
    return found + pc.binary_length(snapped).to_numpy(zero_copy_only=False)


def state_disk(
    table: PlannedTable,
    suffix: str,
    given: Given,
    options: TableOptions,
    out: str | os.PathLike[str],
    place: str | os.PathLike[str],
    progress: bool | None,
) -> bool | None:
    """State the plan of a run that writes a table at `place`, after refusing a run that cannot fit on the disk.

    `place` is where `out` grows. What an earlier run left of `out` counts as free, since the run continues or replaces
    it. Returns whether the run shows its progress: `progress`, but a long run shows it also without a terminal.
    """
    disk = table_disk(given.points, options, table, suffix)
    origins, destinations = (len(each.vertices) for each in given.points)
    counts = counted(origins, "pair" if options.pairs else "origin")
    counts += "" if options.pairs else f", {counted(destinations, 'destination')}"
    text = f"{out}: {counts}, {disk.describe(options.paths)}{kept_beside(out, os.fspath(place))}"
    plan = run_plan(text, "searches" if isinstance(given.source, Graph) else "hierarchy", Needs(disk=disk.bytes[1]))
    with stating(plan):
        few = "keep the nearest (nearest, --nearest), reduce the table (reduce, --reduce), or "
        cure = f"{'' if options.reductions or options.pairs else few}write Parquet (.parquet)"
        refuse_disk(disk.bytes[0], place, cure, grown_bytes(out))
    if disk.bytes[1] < LONG_BYTES:
        return progress
    shown = True if progress is None else progress
    Progress(1, "rows", shown).note(text)
    return shown
