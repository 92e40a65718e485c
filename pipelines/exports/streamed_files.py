"""Write tables, NumPy arrays and Matrix Market files piece by piece."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from pipelines.files.tables import SUFFIXES, table_writer
from pipelines.stores.table_stores import Columns


class Matrix(NamedTuple):
    """An array of any shape in pieces along its first axis."""

    shape: tuple[int, ...]
    dtype: np.dtype
    pieces: Iterator[np.ndarray]


class Coordinates(NamedTuple):
    """Entries of a matrix: pieces of rows, columns and values, from 0; without a `dtype`, values are not written."""

    shape: tuple[int, int]
    dtype: np.dtype | None
    pieces: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def _write_table(path: Path, pieces: Iterator[Columns], suffix: str) -> int:
    count, write = 0, None
    with ExitStack() as stack:
        for columns in pieces:
            batch = pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in columns.items()})
            if write is None:
                write = stack.enter_context(table_writer(path, batch.schema, suffix))
            write(batch)
            count += len(batch)
        if write is None:
            raise ValueError("the store is empty; there is nothing to export")
    return count


def _write_matrix(path: Path, matrix: Matrix, _: str) -> int:
    with path.open("wb") as file:
        file.write(matrix_header(matrix.shape, matrix.dtype))
        for piece in matrix.pieces:
            file.write(np.ascontiguousarray(piece, matrix.dtype).data)
        if file.tell() < math.prod(matrix.shape) * matrix.dtype.itemsize:
            raise ValueError("the store has fewer values than its shape says; check it with tilepath info --verify")
    return matrix.shape[0]


def matrix_header(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    """Return the header of a file in NumPy's format (.npy); the rows of the array follow it."""
    header = io.BytesIO()
    facts = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(header, facts)
    return header.getvalue()


def _write_coordinates(path: Path, matrix: Coordinates, _: str) -> int:
    count = 0
    field = "pattern" if matrix.dtype is None else "integer" if matrix.dtype.kind in "iub" else "real"
    with path.open("wb") as file:
        file.write(f"%%MatrixMarket matrix coordinate {field} general\n".encode())
        size = file.tell()
        file.write(_sizes(matrix.shape, 0))
        for rows, columns, values in matrix.pieces:
            entries = [rows + 1, columns + 1, *[values] * (matrix.dtype is not None)]
            batch = pa.RecordBatch.from_arrays([pa.array(column) for column in entries], [""] * len(entries))
            options = pa.csv.WriteOptions(include_header=False, delimiter=" ")
            pa.csv.write_csv(batch, file, options)
            count += len(rows)
        file.seek(size)
        file.write(_sizes(matrix.shape, count))
    return count


def _sizes(shape: tuple[int, int], count: int) -> bytes:
    """Return the line of sizes. Its length does not depend on `count`, as the final count is filled in at the end."""
    return f"{shape[0]} {shape[1]} {count:<20}\n".encode()


# For each suffix, the form of the data, and the function that writes the data to a file and returns the number of rows.
WRITERS: dict[str, tuple[str, Callable[..., int]]] = {
    **{suffix: ("table", _write_table) for suffix in SUFFIXES},
    ".npy": ("matrix", _write_matrix),
    ".mtx": ("coordinates", _write_coordinates),
}
