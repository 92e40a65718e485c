"""Edges in a Parquet file: one row per edge, read in batches. Weights keep their dtype."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.arc_sort import ArcStream, FormatError, Piece
from pipelines.formats.columns import Names, choose_columns

BATCH_ROWS = 1 << 18


@contextmanager
def read_parquet(
    source: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    weight: str | int | None = None,
    base: int = 0,
    labels: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """The edges of a Parquet file.

    Parameters
    ----------
    columns : names or positions from 0 of tail, head and perhaps weight (`choose_columns`)
    weight : column of weights, where `columns` has only two
    base : number of the first vertex
    labels : are vertices names? Default: they are unless both columns are integers
    directed : False: each row is an undirected edge
    """
    name = os.fspath(source)
    try:
        file = pq.ParquetFile(name, buffer_size=1 << 20, pre_buffer=False)  # a row group may be the whole file
    except (pa.ArrowInvalid, OSError) as error:
        raise FormatError(f"{name}: cannot be read as Parquet ({error}); get it anew, or name its format") from error
    with file:
        schema = file.schema_arrow
        tail, head, value = choose_columns(name, len(schema), schema.names, columns, weight)
        ends = [schema.field(tail).type, schema.field(head).type]
        if labels is None:
            labels = not all(map(pa.types.is_integer, ends))
        for kind in ends:
            if not (pa.types.is_integer(kind) or (labels and _is_text(kind))):
                raise FormatError(
                    f"{name}: tails and heads are {ends[0]} and {ends[1]}; choose integer or text columns (--columns)"
                )
        dtype = np.dtype("int32")
        if value is not None:
            dtype = weight_dtype(f"{name}: column {schema.names[value]!r}", schema.field(value).type.to_pandas_dtype())
        yield ArcStream(
            _pieces(name, file, (tail, head, value), base, known := Names() if labels else None),
            directed=directed,
            weight_dtype=dtype,
            labels=map(str, count(base)) if known is None and base else known,
            weight_unit="" if value is None else schema.names[value],
        )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _pieces(
    name: str, file: pq.ParquetFile, chosen: tuple[int, int, int | None], base: int, names: Names | None
) -> Iterator[Piece]:
    wanted = [file.schema_arrow.names[c] for c in chosen if c is not None]
    row = 0
    try:
        for batch in file.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False):
            for column in wanted:
                if batch[column].null_count:
                    bad = row + int(np.flatnonzero(batch[column].is_null().to_numpy(zero_copy_only=False))[0])
                    raise FormatError(f"{name}, row {bad} (from 0): {column!r} is null; fill or remove the row")
            tails, heads = batch[wanted[0]], batch[wanted[1]]
            size = len(tails)
            weights = batch[wanted[2]].to_numpy(zero_copy_only=False) if len(wanted) > 2 else np.ones(size, np.int32)
            if names is not None:
                tails, heads = names.number(tails.cast(pa.string()), heads.cast(pa.string()))
            else:
                tails, heads = (ends.cast(pa.int64()).to_numpy() - base for ends in (tails, heads))
            check_rows(f"{name}, row", row, tails, heads, weights, base)
            yield tails, heads, weights
            row += size
    except (pa.ArrowInvalid, OSError) as error:
        raise FormatError(f"{name}: damaged after row {row} ({error}); get it anew") from error


def weight_dtype(what: str, dtype: Any) -> np.dtype:
    """The dtype in which weights of a typed source are stored: their own; truth values become int32."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.dtype("int32")
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise FormatError(f"{what} is {dtype}; weights are integers or floats of at most 64 bits, convert it")
    return dtype


def check_rows(where: str, first: int, tails: np.ndarray, heads: np.ndarray, weights: np.ndarray, base: int) -> None:
    """Raise FormatError at the first row with a vertex below the base or a weight that is not finite."""
    bad = (tails < 0) | (heads < 0)
    if weights.dtype.kind == "f":
        bad |= ~np.isfinite(weights)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise FormatError(
            f"{where} {first + row} (from 0): arc {tails[row] + base} -> {heads[row] + base}, weight {weights[row]}; "
            f"vertices are {base} and up (--base), weights are finite, arcs that do not exist are left out"
        )
