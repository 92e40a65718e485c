"""Read edges from a Parquet file, one row per edge, in batches. Weights keep their dtype."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.columns import choose_columns
from pipelines.formats.graphs.osmnx import units_in
from pipelines.formats.graphs.text import first_not_utf8
from pipelines.formats.graphs.vertices import LARGEST, Names, check_numbering, edge_stream
from pipelines.stores.graph_writer import stored_dtype

BATCH_ROWS = 1 << 18
_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)  # what pyarrow raises on a file that is not Parquet


@contextmanager
def read_parquet(
    source: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    weight: str | int | None = None,
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """Yield the edges of a Parquet file.

    Parameters
    ----------
    columns, weight, base, vertices, directed : as for `pipelines.formats.graphs.edge_list.read_edge_list`
    labels : True if vertices are names; default: True unless tails and heads are integers
    """
    name = os.fspath(source)
    try:
        file = pq.ParquetFile(name, buffer_size=1 << 20, pre_buffer=False)  # a row group may be the whole file
    except FileNotFoundError as error:
        raise FormatError(f"{name}: there is no such file; correct the name or the folder") from error
    except _DAMAGE as error:
        reason = "a name is not UTF-8" if isinstance(error, UnicodeError) else error
        raise FormatError(
            f"{name}: cannot be read as Parquet ({reason}); get a new copy, or name its format"
        ) from error
    with file:
        schema = file.schema_arrow
        chosen = choose_columns(name, len(schema), schema.names, columns, weight)
        for position in chosen:
            if position is not None and schema.names.count(schema.names[position]) > 1:
                raise FormatError(
                    f"{name}: several columns are called {schema.names[position][:40]!r}; give each a different name"
                )
        wanted = [schema.field(position) for position in chosen if position is not None]
        names = [field.name for field in wanted]
        yield stream_of_batches(
            name,
            wanted,
            lambda: file.iter_batches(BATCH_ROWS, columns=names, use_threads=False),
            base=base,
            n=vertices,
            labels=labels,
            directed=directed,
            remarks=[f"{name}: {chosen.described(schema.names)}{chosen.unread(schema.names) if directed else ''}"],
            units=units_in(schema.names),
        )


def stream_of_batches(
    name: str,
    columns: Sequence[pa.Field],
    batches: Callable[[], Iterator[pa.RecordBatch]],
    *,
    base: int | None,
    n: int | None,
    labels: bool | None,
    **properties: Any,
) -> ArcStream:
    """Return a stream of the edges in record batches of `columns`: tail, head and optionally weight."""
    ends = [column.type for column in columns[:2]]
    if labels is None:
        labels = not all(map(pa.types.is_integer, ends))
    for kind in ends:
        if not (pa.types.is_integer(kind) or (labels and _is_text(kind))):
            raise FormatError(
                f"{name}: tails and heads are {ends[0]} and {ends[1]}; choose integer or text columns (--columns)"
            )
    check_numbering(name, base, n, labels)
    known = Names() if labels else None
    return edge_stream(
        _pieces(name, [column.name for column in columns], batches, known, base or 0, n),
        known,
        source=name,
        base=base,
        n=n,
        text_labels=not all(map(pa.types.is_integer, ends)),
        weighted=len(columns) > 2,
        weight_dtype=None if len(columns) == 2 else _weight_dtype(name, columns[2]),
        weight_unit="" if len(columns) == 2 else columns[2].name,
        **properties,
    )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _weight_dtype(name: str, column: pa.Field) -> np.dtype:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise FormatError(f"{name}: column {column.name!r} holds {kind}; weights are integers or floats; convert it")
    return weight_dtype("", "float16" if pa.types.is_float16(kind) else kind.to_pandas_dtype())


def _pieces(
    name: str,
    wanted: list[str],
    batches: Callable[[], Iterator[pa.RecordBatch]],
    names: Names | None,
    base: int,
    n: int | None,
) -> Iterator[Piece]:
    row = 0
    try:
        for batch in batches():
            for column in wanted:
                if batch[column].null_count:
                    bad = row + int(np.flatnonzero(batch[column].is_null().to_numpy(zero_copy_only=False))[0])
                    raise FormatError(f"{name}, row {bad} (from 0): {column!r} is null; fill or remove the row")
            ends = [_vertices(name, row, batch[column], names is not None) for column in wanted[:2]]
            weights = batch[wanted[2]].to_numpy(zero_copy_only=False) if len(wanted) > 2 else None
            if names is not None:
                check_rows(f"{name}, row", row, ends, weights)
                tails, heads = names.number(*ends)
            else:
                check_rows(f"{name}, row", row, ends, weights, (base, LARGEST if n is None else base + n))
                tails, heads = (numbers.astype(np.int64) - base for numbers in ends)
            yield tails, heads, weights
            row += len(batch)
    except _DAMAGE as error:
        raise FormatError(f"{name}: damaged after row {row} ({error}); get a new copy") from error


def _vertices(name: str, row: int, column: pa.Array, named: bool) -> Any:
    """Return a column of tails or heads as a pyarrow string array if they are names, else as an array of integers."""
    if not named:
        return column.to_numpy()
    column = column.cast(pa.string())
    if (bad := first_not_utf8(column)) is not None:
        raise FormatError(f"{name}, row {row + bad} (from 0): a name is not UTF-8; write the file again")
    return column


def weight_dtype(what: str, dtype: Any) -> np.dtype:
    """Return the stored dtype of weights of `dtype` (`stored_dtype`), or raise FormatError."""
    if (stored := stored_dtype(dtype)) is None:
        raise FormatError(f"{what} is {dtype}; weights are integers or floats of at most 64 bits; convert it")
    return stored


def check_rows(
    where: str, first: int, ends: Any, weights: np.ndarray | None, bounds: tuple[int, int] | None = None
) -> None:
    """Raise FormatError at the first faulty row.

    A row is faulty if its weight (unless there are none) is not finite or beyond int64, or if its tail or head (in
    `ends`) is not in the range from ``bounds[0]`` to ``bounds[1] - 1``, if `bounds` is given.
    """
    if weights is None:
        bad = np.zeros(len(ends[0]), bool)
    else:
        bad = ~np.isfinite(weights) if weights.dtype.kind == "f" else weights > np.iinfo(np.int64).max
    if bounds is not None:
        for vertices in ends:
            bad |= (vertices < bounds[0]) | (vertices >= bounds[1])
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        allowed = []
        if bounds is not None:
            last = f"to {bounds[1] - 1}" if bounds[1] < LARGEST else "and up (base, --base)"
            allowed.append(f"vertices are {bounds[0]} {last}")
        weight = ""
        if weights is not None:
            weight = f", weight {weights[row]}"
            allowed.append("weights must be finite and at most 2^63 - 1")
        raise FormatError(
            f"{where} {first + row} (from 0): arc {ends[0][row]} -> {ends[1][row]}{weight}; {', '.join(allowed)}; "
            "leave out arcs that do not exist"
        )
