"""Values of vertices from a table, such as betweenness or closeness, for their colours in a picture."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pipelines.files.tables import column_names, column_numbers, column_vertices, read_columns, select_columns
from pipelines.stores import Graph

TableLike: TypeAlias = pa.Table | str | os.PathLike[str]


def values_of_table(table: TableLike | Any, column: str | None, graph: Graph) -> tuple[np.ndarray, str]:
    """Return a value for each vertex, float64 (n), and the name of its column.

    Parameters
    ----------
    table : pyarrow.Table, DataFrame, or path of a table
        With the column `vertex`. A vertex without a row, or without an entry, has the value NaN.
    column : str or None
        The column of the values; None for the only column beside `vertex`.
    graph : Graph

    Raises
    ------
    ValueError
        A column is missing, or an entry is not a vertex or not a number; the message names the row.
    """
    in_memory = None if isinstance(table, str | os.PathLike) else pa.table(table)
    name = os.fspath(table) if in_memory is None else "values"
    names = column_names(table) if in_memory is None else in_memory.column_names
    if column is None:
        others = [each for each in names if each.strip().casefold() != "vertex"]
        if len(others) != 1:
            raise ValueError(f"{name}: name the column (column, --column): {', '.join(others) or 'there is none'}")
        (column,) = others
    wanted = ("vertex", column)
    read = read_columns(table, wanted) if in_memory is None else select_columns(in_memory, wanted, name)
    values = np.full(graph.n, np.nan)
    values[column_vertices(read["vertex"], graph, name)] = column_numbers(read, column, name, optional=True)
    return values, column
