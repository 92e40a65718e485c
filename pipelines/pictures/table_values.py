"""Values of vertices from a table, such as betweenness or closeness, for their colours in a picture."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.figures import WORDS
from pipelines.files.tables import (
    column_names,
    column_numbers,
    column_vertices,
    frame_table,
    read_columns,
    select_columns,
)
from pipelines.stores.graph import Graph

TableLike: TypeAlias = pa.Table | str | os.PathLike[str]
DISTANCES = ("travel_time", "distance")  # columns of distances in a table of `tilepath.od`
REDUCTIONS = ("sum", "mean")  # of columns such as sum_seats, in a table of `tilepath.od`
KEYS = ("vertex", "origin", "destination", "path")  # columns that are no values


def values_of_table(table: TableLike | Any, column: str | None, graph: Graph) -> tuple[np.ndarray, str]:
    """Return a value for each vertex, float64 (n), and the name of its column in words, with the unit of distances.

    Parameters
    ----------
    table : pyarrow.Table, DataFrame, or path of a table
        With the column `vertex`, or a table of `tilepath.od` with the column `origin`, or with `destination` if all
        rows have the same origin. Of several rows of a vertex, the least value counts. A vertex without a row, or
        without an entry, has the value NaN.
    column : str or None
        The column of the values; None for the distances, or else for the only column of values.
    graph : Graph

    Raises
    ------
    ValueError
        A column is missing, or an entry is not a vertex or not a number; the message names the row.
    """
    in_memory = None if isinstance(table, str | os.PathLike) else frame_table(table)
    name = os.fspath(table) if in_memory is None else "values"
    names = column_names(table) if in_memory is None else in_memory.column_names
    key = "vertex" if "origin" not in names or "vertex" in names else "origin"
    if column is None:
        others = [each for each in names if each.strip().casefold() not in KEYS and not each.endswith("_snapped")]
        others = [each for each in DISTANCES if each in others] or others
        if len(others) != 1:
            raise ValueError(f"{name}: name the column (column, --column): {', '.join(others) or 'there is none'}")
        (column,) = others
    wanted = ("vertex", column) if key == "vertex" else ("origin", "destination", column)
    optional = ("destination",)
    read = (
        read_columns(table, wanted, optional)
        if in_memory is None
        else select_columns(in_memory, wanted, name, optional)
    )
    if key == "origin" and "destination" in read.column_names and pc.count_distinct(read["origin"]).as_py() == 1:
        key = "destination"
    if key == "destination":  # an origin that reaches nothing has a row without a destination
        read = read.filter(pc.is_valid(read[key]))
    found = column_numbers(read, column, name, optional=True)
    values = np.full(graph.n, np.nan)
    np.fmin.at(values, _vertices(read[key], graph, name), found)
    label = label_of(column)
    unit = getattr(table, "attrs", {}).get("unit", "") if column in DISTANCES else ""
    return values, f"{label}, {WORDS.get(unit, unit)}" if unit else label


def label_of(column: str) -> str:
    """Return the name of a column as the label of a scale.

    >>> label_of("sum_seats"), label_of("travel_time"), label_of("Jobs by bus")
    ('Sum of seats', 'Travel time', 'Jobs by bus')
    """
    reduction, _, of = column.partition("_")
    text = f"{reduction} of {of}" if reduction in REDUCTIONS and of else column
    text = text.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def _vertices(column: Any, graph: Graph, name: str) -> np.ndarray:
    try:
        return column_vertices(column, graph, name)
    except ValueError as error:
        cure = "give a table of vertices, such as od(network, None, places) with a row for each vertex"
        raise ValueError(f"{error}; colours are of vertices, not of places: {cure}") from None
