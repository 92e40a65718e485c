"""Read and write tables, as CSV, TSV (both also with gzip) or Parquet, by suffix; and read columns that name vertices.

A column that names vertices is read as text, whatever its format and type. Integers become text as `str(int)` writes
them. Floats that are whole numbers become integers first, as a column of integers with a missing value often has been
turned into floats. For the meaning of the text see `pipelines.stores.vertex_names`.

A column is found by its name, else by its name in other case or with blanks around it, or by one of `OTHER_NAMES`. In
CSV the delimiter is a semicolon if the first line has semicolons and no comma.
"""

from __future__ import annotations

import csv
import io
import itertools
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

from gpuops.memory import available_memory, size
from pipelines.files.output_file import check_free, whole_file
from pipelines.stores.errors import StoreError, raise_if_of_system
from pipelines.stores.graph import Graph

DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")
SUFFIXES = (*DELIMITERS, *PARQUET)
SIDES = ("origin", "destination")  # columns of a table of pairs
# What pyarrow raises for a column of values that have no common type, or for whole numbers beyond int64.
NO_TYPE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
_MOST_GZIP = 1032  # bytes that a byte of gzip expands to, at most
_BLOCK_BYTES = 1 << 20
OTHER_NAMES = {
    "lon": ("longitude", "lng"),
    "lat": ("latitude",),
    "source": ("origin",),
    "target": ("destination",),
    "origin": ("source",),
    "destination": ("target",),
}


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has a suffix of tables."""
    return os.fspath(path).lower().endswith(SUFFIXES)


def check_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a table in lower case; ValueError if `path` has no suffix of tables, or is not UTF-8."""
    os.fspath(path).encode()  # Arrow opens only names in UTF-8, and would fail at the end of a long run
    for suffix in SUFFIXES:
        if Path(path).name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"{path}: tables are .csv, .tsv, .csv.gz, .tsv.gz or .parquet files; choose one of these suffixes")


def check_output(
    path: str | os.PathLike[str], overwrite: bool = False, read: str | os.PathLike[str] | None = None
) -> None:
    """Check that a table can be written to `path`, before long work.

    Raises
    ------
    ValueError
        `path` has no suffix of tables, or is the input file `read`.
    FileExistsError, FileNotFoundError
        `path` exists and `overwrite` is False; or its folder does not exist.
    """
    check_suffix(path)
    if read is not None and os.path.exists(path) and os.path.samefile(path, read):
        raise ValueError(f"{path}: the table cannot replace the file its pairs are read from; choose another name")
    check_free(path, overwrite)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Return a context that turns errors of reading a file into a ValueError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file; correct the name or the folder") from None
    except (pa.ArrowException, csv.Error, UnicodeDecodeError, OSError) as error:
        raise_if_of_system(error, path)
        cure = "correct the file, or its suffix if it is another kind of file"
        raise ValueError(f"{path}: cannot be read ({error}); {cure}") from error


def open_text(path: str | os.PathLike[str]) -> pa.NativeFile:
    """Open a file of text, which may be compressed with gzip, as a stream of bytes."""
    return pa.input_stream(os.fspath(path), compression="gzip" if os.fspath(path).lower().endswith(".gz") else None)


def check_expanded(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a compressed table, which is read whole, takes more than the free memory."""
    most, name = available_memory() // 2, os.fspath(path).lower()
    if name.endswith(PARQUET):
        about = pa.parquet.read_metadata(path)
        expanded = about.num_rows * about.num_columns * 8
    elif name.endswith(".gz") and os.path.getsize(path) * _MOST_GZIP > most:
        expanded = 0
        with open_text(path) as stream:
            while expanded <= most and (block := stream.read(_BLOCK_BYTES)):
                expanded += len(block)
    else:
        return
    if expanded > most:
        raise ValueError(f"{path}: takes more than {size(most)} of memory, half of what is free; read fewer rows")


def read_columns(path: str | os.PathLike[str], columns: Sequence[str], optional: Sequence[str] = ()) -> pa.Table:
    """Read columns of a file, as `select_columns`; in CSV and TSV they are text, which keeps labels such as 007."""
    suffix = check_suffix(path)
    with reading(path):
        check_expanded(path)
        if suffix in PARQUET:
            table = pa.parquet.read_table(path)
        else:
            names, delimiter = _header(path, suffix)
            wanted = [names[place] for column in columns for place in _places(names, column)]
            with open_text(path) as stream:
                table = pa.csv.read_csv(
                    stream,
                    parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                    convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.string())),
                )
    return select_columns(table, columns, os.fspath(path), optional)


def select_columns(table: pa.Table, columns: Sequence[str], name: str, optional: Sequence[str] = ()) -> pa.Table:
    """Return some columns of `table`, renamed to `columns`; `optional` columns may be missing.

    Raises
    ------
    ValueError
        A column is missing or occurs twice; the message calls the table `name`.
    """
    found = {column: _places(table.column_names, column) for column in columns}
    found = {column: places for column, places in found.items() if places or column not in optional}
    for column, places in found.items():
        if len(places) != 1:
            count = f"{len(places)} columns `{column}`" if places else f"no column `{column}`"
            names = [each for each in table.column_names if not each.startswith("\0")]  # without a frame's index
            raise ValueError(f"{name}: {count}; its columns are {', '.join(names)}")
    return table.select([place for (place,) in found.values()]).rename_columns(list(found))


def frame_table(given: Any) -> pa.Table | None:
    """Return a data frame of pandas, Polars or Arrow as a table; None if it is none."""
    if hasattr(given, "iloc") and given.ndim == 2:  # pandas would export its index as an additional column
        return pandas_table(given)
    if hasattr(given, "__arrow_c_stream__") and hasattr(given, "columns"):
        return pa.table(given)
    return None


def pandas_table(frame: Any) -> pa.Table:
    """Return a frame of pandas as a table without its index; a column of values of several types becomes text."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except NO_TYPE:
        columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    return pa.table([pandas_array(column) for column in columns], names=[*map(str, frame.columns)])


def pandas_array(column: Any) -> pa.Array:
    """Return a column or an index of pandas; values of several types become text."""
    try:
        return pa.Array.from_pandas(column)
    except NO_TYPE:
        there = ~np.asarray(column.isna())
        return pa.array([str(each) if known else None for each, known in zip(column, there, strict=True)])


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the columns of a table in a file."""
    suffix = check_suffix(path)
    with reading(path):
        return pa.parquet.read_schema(path).names if suffix in PARQUET else _header(path, suffix)[0]


def has_column(path: str | os.PathLike[str], column: str) -> bool:
    """Return whether a table in a file has such a column."""
    return is_among(column, column_names(path))


def is_among(column: str, names: Sequence[str]) -> bool:
    """Return whether one of the names of columns means `column`."""
    return bool(_places(names, column))


def _places(names: Sequence[str], column: str) -> list[int]:
    """Return the positions of the names that may mean `column`."""
    exact = [place for place, name in enumerate(names) if name == column]
    known = {column.casefold(), *OTHER_NAMES.get(column, ())}
    return exact or [place for place, name in enumerate(names) if name.strip().casefold() in known]


def _header(path: str | os.PathLike[str], suffix: str) -> tuple[list[str], str]:
    """Return the names of the columns of CSV or TSV, and the delimiter."""
    delimiter = DELIMITERS[suffix]
    with open_text(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        line = text.readline()
        if delimiter == "," and ";" in line and "," not in line:
            delimiter = ";"
        return next(csv.reader(itertools.chain([line], text), delimiter=delimiter), []), delimiter


def write_table(table: pa.Table, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a table, whole or not at all. In CSV and TSV the entries of a list are joined by blanks.

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
    """Return a context with a function that writes pieces of a table to a file or a stream, in the format of `suffix`.

    In CSV and TSV the entries of a list are joined by blanks, and dictionaries become plain values.

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
    """Return options that save time: dictionaries for columns of names only, and statistics for other columns only.

    A column of names is a dictionary in `schema`, or in a table of pairs an integer. Without such columns, the options
    are the defaults.
    """
    pairs = SIDES if {*SIDES} <= {*schema.names} else ()
    names = [field.name for field in schema if pa.types.is_dictionary(field.type) or field.name in pairs]
    if not names:
        return {}
    others = [_leaf(field) for field in schema if field.name not in names]
    compression = dict.fromkeys(names, "zstd") | dict.fromkeys(others, "lz4")
    return {"compression": compression, "use_dictionary": names, "write_statistics": others}


def _leaf(field: pa.Field) -> str:
    """Return Parquet's name of the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_large_list(field.type) else field.name


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return pa.large_string()
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _as_plain(piece: pa.Table | pa.RecordBatch, plain: pa.Schema) -> pa.Table | pa.RecordBatch:
    texts = pa.large_list(pa.large_string())
    columns = [
        pc.binary_join(column.cast(texts), pa.scalar(" ", field.type))
        if pa.types.is_large_list(column.type)
        else column
        for column, field in zip(piece.columns, plain, strict=True)
    ]
    return type(piece).from_arrays(columns, names=plain.names).cast(plain)


def number_field(name: str, dtype: Any, unit: str) -> pa.Field:
    """Return the field of a column of numbers, with `unit` as metadata unless it is empty."""
    return pa.field(name, pa.from_numpy_dtype(dtype), metadata={"unit": unit} if unit else None)


def legible(values: np.ndarray, unit: str, suffix: str) -> np.ndarray:
    """Return lengths as a table of this suffix shows them: in text, metres are rounded to a tenth."""
    return values.round(1) if unit == "m" and suffix not in PARQUET else values


def vertex_names(graph: Graph, which: slice | np.ndarray = slice(None)) -> pa.Array:
    """Return the names of the vertices `which`, by default (n), as tables have them (`Graph.typed`): int64 or text.

    The names are the labels, or the positions if the graph has no labels.
    """
    labels = graph.labels()
    names = np.arange(graph.n)[which] if labels is None else graph.typed(labels[which])
    return pa.array(names) if names.dtype.kind == "i" else pa.array(names.tolist(), pa.large_string())


def column_numbers(table: pa.Table, column: str, name: str, *, optional: bool = False) -> np.ndarray:
    """Return a column of finite numbers, float64; with `optional`, NaN for a missing entry.

    Raises
    ------
    ValueError
        An entry is not a number, or is missing; the message names the table `name` and the row, counted from 1 without
        the header.
    """
    values = table[column]
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        found = values.cast(pa.float64()).to_numpy()
    else:
        found = np.array([_number(entry) for entry in values.to_pylist()], np.float64)
    for row in np.flatnonzero(~np.isfinite(found)).tolist():
        entry = values[row].as_py()
        missing = entry is None or entry != entry or not str(entry).strip()
        if not (missing and optional):
            fault = "missing" if missing else f"{entry!r}, not a number"
            raise ValueError(f"{name}, row {row + 1}: `{column}` is {fault}; correct it or leave the row out")
    return found


def _number(value: Any) -> float:
    """Return the number that `value`, an entry of a text file, stands for; NaN if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def column_vertices(column: pa.ChunkedArray, graph: Graph, table: str) -> np.ndarray:
    """Return the vertex that each entry of a column names, int64.

    Raises
    ------
    ValueError
        An entry names no vertex, or several; the message names the row of `table`, counted from 1 without the header.
    """
    names = names_in(column, table)
    vertices = graph.find(names)
    for row in np.flatnonzero(vertices < 0)[:1].tolist():
        if not names[row].is_valid:
            raise ValueError(f"{table}, row {row + 1}: a vertex is missing; fill it in or leave the row out")
        try:
            graph.vertex(names[row].as_py())
        except StoreError as error:
            raise ValueError(f"{table}, row {row + 1}: {error}") from None
    return vertices


def names_in(column: pa.ChunkedArray, table: str) -> pa.Array:
    """Return the names of vertices in a column as text, null for a missing entry."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = column.to_numpy().astype(np.float64)  # NaN for a missing entry
        missing = np.isnan(numbers)
        largest = min(2.0**53, 2.0 ** (np.finfo(kind.to_pandas_dtype()).nmant + 1))  # integers up to here are exact
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
