"""Edges in a Parquet file: one row per edge, read in batches. Weights keep their dtype."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.formats.arc_sort import ArcStream, FormatError, Piece
from pipelines.formats.graphs.columns import Columns, choose_columns
from pipelines.formats.graphs.text import first_not_utf8
from pipelines.formats.graphs.vertices import Names, check_numbering, edge_stream

BATCH_ROWS = 1 << 18
_LARGEST = 1 << 62  # the number of a vertex must be below this, so that differences fit in int64
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
    """The edges of a Parquet file.

    Parameters
    ----------
    columns : names or positions from 0 of tail, head and optionally weight (`choose_columns`)
    weight : column of weights, where `columns` has only two
    base : number of the first vertex; default 0
    vertices : number of vertices, where they are numbers; default: as the largest one implies
    labels : whether vertices are names; default: unless both columns are integers
    directed : False: each row is an undirected edge
    """
    name = os.fspath(source)
    try:
        file = pq.ParquetFile(name, buffer_size=1 << 20, pre_buffer=False)  # a row group may be the whole file
    except _DAMAGE as error:
        raise FormatError(f"{name}: cannot be read as Parquet ({error}); get a new copy, or name its format") from error
    with file:
        schema = file.schema_arrow
        chosen = choose_columns(name, len(schema), schema.names, columns, weight)
        for position in chosen:
            if position is not None and schema.names.count(schema.names[position]) > 1:
                raise FormatError(
                    f"{name}: several columns are called {schema.names[position][:40]!r}; give each a different name"
                )
        ends = [schema.field(end).type for end in chosen[:2]]
        if labels is None:
            labels = not all(map(pa.types.is_integer, ends))
        for kind in ends:
            if not (pa.types.is_integer(kind) or (labels and _is_text(kind))):
                raise FormatError(
                    f"{name}: tails and heads are {ends[0]} and {ends[1]}; choose integer or text columns (--columns)"
                )
        check_numbering(name, base, vertices, labels)
        known = Names() if labels else None
        yield edge_stream(
            _pieces(name, file, chosen, known, base or 0, vertices),
            known,
            source=name,
            base=base,
            n=vertices,
            directed=directed,
            weight_dtype="int32" if chosen.weight is None else _weight_dtype(name, schema.field(chosen.weight)),
            weight_unit="" if chosen.weight is None else schema.names[chosen.weight],
            remarks=[f"{name}: {chosen.described(schema.names)}"],
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
    name: str, file: pq.ParquetFile, chosen: Columns, names: Names | None, base: int, n: int | None
) -> Iterator[Piece]:
    wanted = [file.schema_arrow.names[c] for c in chosen if c is not None]
    row = 0
    try:
        for batch in file.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False):
            for column in wanted:
                if batch[column].null_count:
                    bad = row + int(np.flatnonzero(batch[column].is_null().to_numpy(zero_copy_only=False))[0])
                    raise FormatError(f"{name}, row {bad} (from 0): {column!r} is null; fill or remove the row")
            ends = [_vertices(name, row, batch[column], names is not None) for column in wanted[:2]]
            size = len(batch)
            weights = batch[wanted[2]].to_numpy(zero_copy_only=False) if len(wanted) > 2 else np.ones(size, np.int32)
            if names is not None:
                check_rows(f"{name}, row", row, ends, weights)
                tails, heads = names.number(*ends)
            else:
                check_rows(f"{name}, row", row, ends, weights, (base, _LARGEST if n is None else base + n))
                tails, heads = (numbers.astype(np.int64) - base for numbers in ends)
            yield tails, heads, weights
            row += size
    except _DAMAGE as error:
        raise FormatError(f"{name}: damaged after row {row} ({error}); get a new copy") from error


def _vertices(name: str, row: int, column: pa.Array, named: bool) -> Any:
    """A column of tails or heads: text as a string array if they are names, else an array of integers."""
    if not named:
        return column.to_numpy()
    column = column.cast(pa.string())
    if (bad := first_not_utf8(column)) is not None:
        raise FormatError(f"{name}, row {row + bad} (from 0): a name is not UTF-8; write the file again")
    return column


def weight_dtype(what: str, dtype: Any) -> np.dtype:
    """The dtype in which weights of a typed source are stored: their own, but int32 for bool, float32 for float16."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise FormatError(f"{what} is {dtype}; weights are integers or floats of at most 64 bits; convert it")
    return np.dtype({"bool": "int32", "float16": "float32"}.get(dtype.name, dtype))


def check_rows(where: str, first: int, ends: Any, weights: np.ndarray, bounds: tuple[int, int] | None = None) -> None:
    """Raise FormatError at the first row whose weight is not finite or beyond int64, or, with `bounds`, whose vertex
    is below the first bound or not below the second. `ends` are the tails and the heads."""
    bad = ~np.isfinite(weights) if weights.dtype.kind == "f" else weights > np.iinfo(np.int64).max
    if bounds is not None:
        for vertices in ends:
            bad |= (vertices < bounds[0]) | (vertices >= bounds[1])
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        allowed = ""
        if bounds is not None:
            allowed = (
                f"vertices are {bounds[0]} "
                + (f"to {bounds[1] - 1}" if bounds[1] < _LARGEST else "and up (--base)")
                + ", "
            )
        raise FormatError(
            f"{where} {first + row} (from 0): arc {ends[0][row]} -> {ends[1][row]}, weight {weights[row]}; {allowed}"
            "weights must be finite and at most 2^63 - 1; leave out arcs that do not exist"
        )
