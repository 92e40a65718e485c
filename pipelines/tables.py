"""Tables in CSV and Parquet files, told apart by suffix, and the vertices that a column of one names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pipelines.stores import Graph, StoreError


def check_suffix(path: str | os.PathLike[str]) -> None:
    """ValueError unless `path` is a CSV or Parquet file by its name."""
    if Path(path).suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: tables are .csv or .parquet files")


def read_columns(path: str | os.PathLike[str], columns: list[str]) -> pa.Table:
    """Some columns of a table; in CSV they are text, which keeps labels such as 007 as they are."""
    check_suffix(path)
    if Path(path).suffix == ".csv":
        as_text = pa.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()))
        table = pa.csv.read_csv(path, convert_options=as_text)
    else:
        table = pa.parquet.read_table(path)
    return select_columns(table, columns, os.fspath(path))


def select_columns(table: pa.Table, columns: list[str], name: str) -> pa.Table:
    """Some columns of `table`; ValueError, calling it `name`, if one is missing."""
    for column in columns:
        if column not in table.column_names:
            raise ValueError(f"{name}: no column `{column}`, only {', '.join(table.column_names)}")
    return table.select(columns)


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table; CSV has no lists, so those of text are joined by spaces."""
    check_suffix(path)
    if Path(path).suffix == ".parquet":
        pa.parquet.write_table(table, path)
        return
    for i, field in enumerate(table.schema):
        if pa.types.is_large_list(field.type):
            table = table.set_column(i, field.name, pc.binary_join(table[i], pa.scalar(" ", field.type.value_type)))
    pa.csv.write_csv(table, path)


def vertex_names(graph: Graph) -> pa.Array:
    """What the vertices are called, text (n): their labels, or their indices."""
    labels = graph.labels()
    return pa.array(np.arange(graph.n) if labels is None else labels.tolist()).cast(pa.large_string())


def named_vertices(column: pa.ChunkedArray, graph: Graph, names: pa.Array, table: str) -> np.ndarray:
    """The vertex that each entry of a column names, int64: numbers are indices, text is as in `Graph.vertex`.

    Raises
    ------
    ValueError
        An entry names none, or several; the message says in which row of `table`, counted from 1 without the header.
    """
    if pa.types.is_integer(column.type):
        vertices = _filled(column.cast(pa.int64()))
        doubtful = (vertices < 0) | (vertices >= graph.n)
    else:
        column = column.cast(pa.large_string())
        vertices = _filled(pc.index_in(column, value_set=names))
        counts = names.value_counts()
        several = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        doubtful = (vertices < 0) | pc.is_in(column, value_set=several).to_numpy()
    for row in np.flatnonzero(doubtful):
        entry = column[row].as_py()
        try:
            vertices[row] = graph.vertex("" if entry is None else entry)
        except StoreError as error:
            raise ValueError(f"{table}, row {row + 1}: {error}") from None
    return vertices


def _filled(column: pa.ChunkedArray) -> np.ndarray:
    return np.array(pc.fill_null(column, -1), dtype=np.int64)
