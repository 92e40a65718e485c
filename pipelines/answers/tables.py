"""Tables in files: CSV and TSV, gzip'd or not, and Parquet, by suffix; and columns that name vertices.

A column that names vertices is read as text, whatever its format and type: integers as `str(int)` writes them, and
floats that are whole numbers likewise, since integers become floats beside a missing value. For the meaning of the text
see `pipelines.stores.vertex_names`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pipelines.formats.output_file import check_free, whole_file
from pipelines.stores import Graph, StoreError

DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")


def check_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that says what kind of table `path` is, in lower case; ValueError if it is not a table."""
    for suffix in (*DELIMITERS, *PARQUET):
        if Path(path).name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"{path}: tables are .csv, .tsv, .csv.gz, .tsv.gz or .parquet files; choose one of these suffixes")


def check_output(
    path: str | os.PathLike[str], overwrite: bool = False, read: str | os.PathLike[str] | None = None
) -> None:
    """Make sure that a table can go to `path`, before work is done for it.

    Raises
    ------
    ValueError
        Its suffix is not that of a table, or it is the input file `read`.
    FileExistsError, FileNotFoundError
        It exists already, and `overwrite` does not allow replacing it; or there is no folder for it.
    """
    check_suffix(path)
    if read is not None and os.path.exists(path) and os.path.samefile(path, read):
        raise ValueError(f"{path}: the table cannot replace the file its pairs are read from; choose another name")
    check_free(path, overwrite)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what is wrong with a file into a ValueError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        cure = "correct the file, or its suffix if it is another kind of file"
        raise ValueError(f"{path}: cannot be read ({error}); {cure}") from error


def open_text(path: str | os.PathLike[str]) -> pa.NativeFile:
    """The bytes of a file of text, which may be gzip'd."""
    return pa.input_stream(os.fspath(path), compression="gzip" if os.fspath(path).lower().endswith(".gz") else None)


def read_columns(path: str | os.PathLike[str], columns: Sequence[str], optional: Sequence[str] = ()) -> pa.Table:
    """As `select_columns`; in CSV and TSV the columns are text, which keeps labels such as 007 as they are."""
    suffix = check_suffix(path)
    with reading(path):
        if suffix in PARQUET:
            table = pa.parquet.read_table(path)
        else:
            with open_text(path) as stream:
                table = pa.csv.read_csv(
                    stream,
                    parse_options=pa.csv.ParseOptions(delimiter=DELIMITERS[suffix], newlines_in_values=True),
                    convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string())),
                )
    return select_columns(table, columns, os.fspath(path), optional)


def select_columns(table: pa.Table, columns: Sequence[str], name: str, optional: Sequence[str] = ()) -> pa.Table:
    """Some columns of `table`; ValueError, calling it `name`, unless each is there once, or is `optional`."""
    there = [column for column in columns if column in table.column_names or column not in optional]
    for column in there:
        count = table.column_names.count(column)
        if count != 1:
            found = f"{count} columns `{column}`" if count else f"no column `{column}`"
            raise ValueError(f"{name}: {found}; its columns are {', '.join(table.column_names)}")
    return table.select(there)


def write_table(table: pa.Table, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a table, whole or not at all; text has no lists, so in CSV and TSV those are joined by blanks.

    Raises
    ------
    ValueError, FileExistsError
        As `check_output`.
    """
    check_output(path, overwrite)
    with whole_file(path) as partial, table_writer(partial, table.schema, check_suffix(path)) as write:
        write(table)


@contextmanager
def table_writer(
    sink: str | os.PathLike[str] | pa.NativeFile, schema: pa.Schema, suffix: str, *, header: bool = True
) -> Iterator[Callable[[pa.Table | pa.RecordBatch], None]]:
    """Write a table in pieces, in the format of `suffix`, to a file or a stream.

    Text has no lists, so in CSV and TSV those are joined by blanks; nor has it dictionaries.

    Parameters
    ----------
    header : whether text begins with the names of the columns
    """
    if suffix in PARQUET:
        with pa.parquet.ParquetWriter(sink, schema, **_parquet_options(schema)) as parquet:
            yield parquet.write
        return
    plain = pa.schema([(field.name, _plain(field.type)) for field in schema])
    options = pa.csv.WriteOptions(delimiter=DELIMITERS[suffix], include_header=header)
    compression = "gzip" if suffix.endswith(".gz") else None
    with (
        pa.output_stream(sink, compression=compression) as stream,
        pa.csv.CSVWriter(stream, plain, write_options=options) as text,
    ):
        yield lambda piece: text.write(_as_plain(piece, plain))


def _parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Dictionaries for names alone, if there are any: dictionaries of numbers and statistics of text take longest."""
    names = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    if not names:
        return {}
    others = [_leaf(field) for field in schema if field.name not in names]
    compression = dict.fromkeys(names, "zstd") | dict.fromkeys(others, "lz4")
    return {"compression": compression, "use_dictionary": names, "write_statistics": others}


def _leaf(field: pa.Field) -> str:
    """What Parquet calls the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_large_list(field.type) else field.name


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return kind.value_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _as_plain(piece: pa.Table | pa.RecordBatch, plain: pa.Schema) -> pa.Table | pa.RecordBatch:
    columns = [
        pc.binary_join(column, pa.scalar(" ", field.type)) if pa.types.is_large_list(column.type) else column
        for column, field in zip(piece.columns, plain, strict=True)
    ]
    return type(piece).from_arrays(columns, names=plain.names).cast(plain)


def vertex_names(graph: Graph) -> pa.Array:
    """The names of the vertices, text (n): their labels, or their indices."""
    labels = graph.labels()
    return pa.array(np.arange(graph.n) if labels is None else labels.tolist()).cast(pa.large_string())


def column_vertices(column: pa.ChunkedArray, graph: Graph, table: str) -> np.ndarray:
    """The vertex that each entry of a column names, int64.

    Raises
    ------
    ValueError
        An entry names none, or several; the message says in which row of `table`, counted from 1 without the header.
    """
    names = _as_text(column, table)
    vertices = graph.find(names)
    for row in np.flatnonzero(vertices < 0)[:1].tolist():
        if not names[row].is_valid:
            raise ValueError(f"{table}, row {row + 1}: a vertex is missing; fill it in or leave the row out")
        try:
            graph.vertex(names[row].as_py())
        except StoreError as error:
            raise ValueError(f"{table}, row {row + 1}: {error}") from None
    return vertices


def _as_text(column: pa.ChunkedArray, table: str) -> pa.Array:
    """The entries as text, null where they are missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = column.to_numpy().astype(np.float64)  # NaN where missing
        missing = np.isnan(numbers)
        largest = min(2.0**53, 2.0 ** (np.finfo(kind.to_pandas_dtype()).nmant + 1))  # every integer up to it is exact
        strange = ~missing & ~((np.floor(numbers) == numbers) & (np.abs(numbers) <= largest))
        for row in np.flatnonzero(strange)[:1].tolist():
            raise ValueError(
                f"{table}, row {row + 1}: {numbers[row]} is not a vertex; give labels as text, or whole numbers "
                f"that {kind} holds exactly"
            )
        column = pa.chunked_array([pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)])
    elif not (pa.types.is_integer(kind) or pa.types.is_null(kind) or _is_text(kind)):
        raise ValueError(f"{table}: a column that names vertices is {kind}; give text or whole numbers")
    return column.cast(pa.large_string()).combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
