"""Read edges from tables in memory: data frames of pandas, GeoPandas and Polars, and tables of Arrow.

Only pyarrow is imported here; a caller that passes a frame has imported its library. Only the columns of tail, head and
weight are read; other columns, such as geometries, may have any type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.formats.arc_spool import DOUBTFUL_PER_ARC, DOUBTFUL_VERTICES
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.columns import choose_columns
from pipelines.formats.graphs.one_way import AGAINST, BOTH, WRITE, cut_off, ways_of, without_reverse
from pipelines.formats.graphs.osmnx import units_in
from pipelines.formats.graphs.parquet import BATCH_ROWS, stream_of_batches


def is_data_frame(source: Any) -> bool:
    """Return whether `source` is a table of pandas, Polars or PyArrow."""
    return isinstance(source, pa.Table) or hasattr(source, "reset_index") or hasattr(source, "to_arrow")


@contextmanager
def read_data_frame(
    source: Any,
    columns: Sequence[str | int] | None = None,
    weight: str | int | None = None,
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    directed: bool | None = None,
    oneway: str | None = None,
) -> Iterator[ArcStream]:
    """Yield the edges of a data frame, one for each row, with the options of `read_parquet`.

    A column `oneway`, or the column named by `oneway`, says where rows lead, as in layers of lines. If two-way roads
    have a single row each, the reverse of this row is added. With `directed`, the column `oneway` is not read.

    Named levels of a pandas index, such as u, v and key in frames of OSMnx, are columns too. Numbers that are ids, such
    as OpenStreetMap's, become labels if none of the options `labels`, `base` and `vertices` is given.
    """
    what = f"the {type(source).__name__}"
    names, column = _columns(source)
    chosen = choose_columns(what, len(names), names, columns, weight)
    positions = [position for position in chosen if position is not None]
    try:
        table = pa.Table.from_arrays([column(at) for at in positions], [names[at] for at in positions])
    except pa.ArrowException as error:
        raise FormatError(f"{what}: {listed_names(names, positions)} cannot be read ({error}); convert them") from error
    for name, ends in zip(table.column_names[:2], table.columns[:2], strict=True):
        for row in np.flatnonzero(ends.is_null(nan_is_null=True))[:1].tolist():
            raise FormatError(f"{what}, row {row} (from 0): {name[:40]!r} is missing; fill it in, or leave the row out")
    remarks = [f"{what}: {chosen.described(names)}"]
    warnings: list[str] = []
    known = [each for each in names if each.casefold() == "oneway"]
    if oneway is not None or (directed is None and len(known) == 1):
        asked = known[0] if oneway is None else oneway
        table, about = _with_directions(what, table, asked, names, column, warnings, given=oneway is not None)
        remarks[0] += about
    if labels is None and base is None and vertices is None and _holds_ids(table):
        labels = True
        remarks.append(f"{what}: the numbers are ids, since most are far larger than their count; they become labels")
    stream = stream_of_batches(
        what,
        list(table.schema),
        lambda: iter(table.to_batches(BATCH_ROWS)),
        base=base,
        n=vertices,
        labels=labels,
        directed=directed is not False,
        remarks=remarks,
        units=units_in(names),
    )
    stream.warnings = warnings
    yield stream


def _with_directions(
    what: str,
    table: pa.Table,
    name: str,
    names: Sequence[str],
    column: Callable[[int], Any],
    warnings: list[str],
    *,
    given: bool,
) -> tuple[pa.Table, str]:
    """Return a table of edges with a row for each direction, by a column of one-way roads, and a description."""
    if name not in names:
        raise FormatError(f"{what}: there is no column {name!r:.40}; choose one (oneway, --oneway)")
    try:
        entries = column(list(names).index(name)).to_pylist()
    except pa.ArrowException:  # such as lists beside truth values
        entries = ["of several types"]
    ways, unknown = ways_of(["" if entry is None else entry for entry in entries])
    if unknown is not None:
        fault = f"{what}, row {unknown} (from 0): {name!r} is {str(entries[unknown])[:40]!r}"
        if given:
            raise FormatError(f"{fault}; {WRITE}")
        warnings.append(f"{fault}, so directions are not read, and each row leads from tail to head; {WRITE}")
        return table, ""
    table = _alike(table)
    tails, heads = _numbered(table)
    alone = without_reverse(tails, heads, ways == BOTH)
    turned = table.select([1, 0, *range(2, table.num_columns)]).rename_columns(table.column_names)
    against, about = ways == AGAINST, f", {int((ways != BOTH).sum()):,} of them one-way by {name}"
    if against.any():
        table = _by_rows(table, turned, against)
    if alone is not None:
        warnings += cut_off(what, np.arange(len(ways)), alone)
        return table, f"{about}, a row for each direction of the others"
    return pa.concat_tables([table, turned.filter(pa.array(ways == BOTH))]), f"{about}, the others in both directions"


def _alike(table: pa.Table) -> pa.Table:
    """Return a table whose tails and heads, which take each other's places, have one type."""
    kinds = table.schema.types[:2]
    if kinds[0] == kinds[1]:
        return table
    kind = pa.int64() if all(map(pa.types.is_integer, kinds)) else pa.string()
    for place in range(2):
        table = table.set_column(place, table.column_names[place], table.column(place).cast(kind))
    return table


def _by_rows(table: pa.Table, turned: pa.Table, against: np.ndarray) -> pa.Table:
    """Return `table` with some rows taken from `turned`."""
    order = np.arange(len(against)) + len(against) * against
    return pa.concat_tables([table, turned]).take(pa.array(order))


def _numbered(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of tails and heads, equal where vertices are; -1 for a missing vertex, which is refused later."""
    both = pa.chunked_array([chunk for column in table.columns[:2] for chunk in column.chunks]).combine_chunks()
    numbers = both.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers[: len(table)], numbers[len(table) :]


def _holds_ids(table: pa.Table) -> bool:
    """Return True if tails and heads are integers that name vertices, rather than positions of vertices.

    They are names if half of the numbers are far larger than the number of vertices; one large number may be a mistake.
    """
    if any(not pa.types.is_integer(column.type) or column.null_count for column in table.columns[:2]):
        return False
    largest = max((int(column.to_numpy().max(initial=0)) for column in table.columns[:2]), default=0)
    if largest < max(DOUBTFUL_VERTICES, DOUBTFUL_PER_ARC * len(table)):
        return False
    ids = np.unique(np.concatenate([column.to_numpy() for column in table.columns[:2]]))
    return bool(ids[len(ids) // 2] > DOUBTFUL_PER_ARC * len(ids))


def listed_names(names: Sequence[str], positions: Sequence[int]) -> str:
    """Name the columns at some positions, for a message."""
    return "columns " + ", ".join(repr(names[at][:40]) for at in positions)


def _columns(source: Any) -> tuple[list[str], Callable[[int], Any]]:
    """Return the names of the columns, and a function that returns the column at a position as an Arrow array."""
    if hasattr(source, "reset_index"):
        levels = [level for level, name in enumerate(source.index.names) if name is not None]
        own = list(source.columns)
        names = [str(source.index.names[level]) for level in levels] + list(map(str, own))

        def column(at: int) -> Any:
            if at < len(levels):
                return pa.array(source.index.get_level_values(levels[at]), from_pandas=True)
            return pa.array(source.iloc[:, at - len(levels)], from_pandas=True)

        return names, column
    table = source if isinstance(source, pa.Table) else source.to_arrow()
    return table.column_names, table.column
