"""The names of the rows of a table of places or vertices, by which a result refers to them.

The names are the column `id`; else the column `name`, if no entry is missing and no two entries are equal; else, for
places, the index of a frame or a series of pandas; else names that the caller gives.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.tables import pandas_array

INDEX = "\0index"  # column with the index of a pandas frame, which has names


def numbered(frame: Any) -> Any:
    """Return a frame of pandas that was read from a file; if its index only counts the rows, it counts from 1."""
    index, count = frame.index, len(frame)
    plain = index.names == [None] and index.dtype.kind == "i" and (index == np.arange(count)).all()
    return frame.set_axis(np.arange(1, count + 1)) if plain else frame


def with_index(table: pa.Table, frame: Any) -> pa.Table:
    """Return the table of a data frame, with the index of a frame or a series of pandas as the column `INDEX`.

    >>> import pandas
    >>> frame = pandas.DataFrame({"x": [1.5]}, index=pandas.MultiIndex.from_tuples([("node", 7)]))
    >>> with_index(pa.table({"x": [1.5]}), frame)[INDEX].to_pylist()
    ['node/7']
    """
    if not hasattr(frame, "iloc"):
        return table
    index = frame.index
    if index.nlevels > 1:  # such as element and id of the features of OSMnx
        index = ["/".join(map(str, each)) for each in index]
    return table.append_column(INDEX, pa.array(index) if isinstance(index, list) else pandas_array(index))


def by_index(message: str, frame: Any, name: str) -> str:
    """Return a message about the rows of the table `name`, with the labels of the index in place of their numbers.

    >>> import pandas
    >>> by_index("homes, row 2: no place; the worst is row 1", pandas.DataFrame(index=["a", "b"]), "homes")
    "homes, index 'b': no place; the worst is index 'a'"
    """
    labels = frame.index.tolist()

    def of(number: str) -> str:
        return repr(labels[int(number) - 1])

    row = rf"({re.escape(name)},|worst is|first in) row (\d+)"
    message = re.sub(row, lambda m: f"{m[1]} index {of(m[2])}", message)
    rows = r"first rows (\d+) and (\d+)"
    return re.sub(rows, lambda m: f"first the rows of index {of(m[1])} and {of(m[2])}", message)


def row_names(table: pa.Table, name: str, otherwise: pa.Array) -> pa.Array:
    """Return the names of the rows, as `integers_or_text` returns a column of them; by default `otherwise`.

    Raises
    ------
    ValueError
        An entry of `id` is missing; the message names the table `name` and the row.
    """
    for column in ("id", "name", INDEX):
        if column not in table.column_names:
            continue
        found = integers_or_text(table[column])
        empty = pc.equal(pc.utf8_length(text_of(found)), 0).fill_null(True)
        if column == "name" and (pc.any(empty).as_py() or pc.count_distinct(found).as_py() < len(found)):
            continue
        for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False))[:1].tolist():
            known = "the index" if column == INDEX else f"`{column}`"
            raise ValueError(f"{name}, row {row + 1}: {known} is missing; fill it in or leave the row out")
        return found
    return otherwise


def repeated(names: pa.Array, name: str) -> str | None:
    """Return a warning of rows of the table `name` that have equal names, None if all differ.

    >>> repeated(pa.array(["a", "b", "a"]), "the origins")
    "the origins: 2 rows are not alone with their id, first rows 1 and 3 with 'a'; give each row an id of its own"
    """
    if pc.count_distinct(names).as_py() == len(names):
        return None
    numbers = names.dictionary_encode().indices.to_numpy()
    several = np.bincount(numbers)[numbers] > 1
    first, second = np.flatnonzero(numbers == numbers[several.argmax()])[:2].tolist()
    return (
        f"{name}: {int(several.sum()):,} rows are not alone with their id, first rows {first + 1} and {second + 1} with"
        f" {names[first].as_py()!r}; give each row an id of its own"
    )


def names_of_shapes(given: Any, count: int, name: str) -> pa.Array:
    """Return the names of the rows of a frame, as `row_names` does; of a list, the numbers of the rows from 1."""
    table, numbers = pa.table({"row": np.arange(1, count + 1)}), pa.array(np.arange(1, count + 1))
    for column in getattr(given, "column_names", getattr(given, "columns", ())):
        if (plain := str(column).strip().casefold()) in ("id", "name"):
            values = given[column]
            known = pandas_array(values) if hasattr(values, "iloc") else pa.table(given)[column]
            table = table.append_column(plain, known)
    return row_names(with_index(table, given), name, numbers)


def names_as(names: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return names of vertices in the type of a column that names them: integers, or int64 for floats; else text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    kind = pa.int64() if pa.types.is_floating(kind) else kind
    return text_of(names).cast(kind) if pa.types.is_integer(kind) else text_of(names)


def integers_or_text(column: Any) -> pa.Array:
    """Return a column of integers as it is, floats that are whole as int64, and every other column as text.

    >>> integers_or_text(pa.array([7.0, 8.0])).type, integers_or_text(pa.array([7.0, 8.5])).to_pylist()
    (DataType(int64), ['7', '8.5'])
    """
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if pa.types.is_floating(found.type):  # as integers beside missing values become in pandas
        try:
            return found.cast(pa.int64())
        except pa.ArrowInvalid:  # a float is not whole
            pass
    return found if pa.types.is_integer(found.type) else text_of(found)


def text_of(column: Any) -> pa.Array:
    """Return a column as text."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(found.type, pa.BaseExtensionType):  # such as UUIDs, which Arrow keeps as bytes
        return pa.array([None if each is None else str(each) for each in found.to_pylist()], pa.large_string())
    return found.cast(pa.large_string())
