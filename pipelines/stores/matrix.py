"""The matrix store (schema `matrix/1`): distances from origins to destinations. It grows by chunks of rows.

=========== ============= =======================================================================
array       dtype, shape  meaning
=========== ============= =======================================================================
distance    number (k, l) distances; unreachable is +inf, or the integer dtype's maximum
origin      text (k)      names of the origins
destination text (l)      names of the destinations
=========== ============= =======================================================================

The attribute `unit` of `distance` is the unit of the graph's weights, if it is known. The dimensions of `distance` are
called origin and destination, like the other two arrays, so that xarray finds the coordinates. The attribute `done` of
the store lists the complete rows and is written after them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import DISTANCE_DTYPES, outside_infinity
from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing, write_small_array
from pipelines.stores.graph import Graph
from pipelines.stores.origin import origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store
from pipelines.stores.resuming import RowsWriter, refuse_other_options, resume_store
from pipelines.stores.schema import (
    CHUNK_BYTES,
    TEXT,
    StoreError,
    attribute,
    check_array,
    counted,
    create_array,
    damaged_attributes,
    disk_errors,
    flag,
    open_store,
    recorded_dtype,
)
from pipelines.stores.whole_chunks import WholeChunks

SCHEMA = "matrix/1"
NAMES = ("origin", "destination")


@dataclass(frozen=True, eq=False)
class Matrix:
    """A finished matrix store, opened by `open_matrix`. Pickles leave out the arrays."""

    path: str
    shape: tuple[int, int]
    dtype: np.dtype
    graph_path: str

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Return any Zarr selection of the distances as a NumPy array."""
        return StoredArray(self.path, "distance")[selection]

    def names(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the names of the origins (k) and of the destinations (l), text."""
        return StoredArray(self.path, "origin")[:], StoredArray(self.path, "destination")[:]

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        rows, columns = self.shape
        size = f"{counted(rows, 'origin')}, {counted(columns, 'destination')}"
        return f"{self.path}: {self.dtype} distances of {self.graph_path}, {size}"

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        return _verify(self.path, np.ones(self.shape[0], bool))


@dataclass(frozen=True, eq=False)
class MatrixWriter(RowsWriter):
    """A matrix store that is being written."""

    schema, arrays = SCHEMA, ("distance",)
    rows: int
    columns: int
    chunk: int
    dtype: np.dtype
    options: dict[str, Any]

    def write(self, start: int, distances: np.ndarray) -> None:
        """Write rows, in whole chunks, from row `start` on."""
        with disk_errors(self.path):
            WholeChunks(self.path, "distance")[start : start + len(distances)] = distances

    def verify(self) -> Verified:
        """Verify the rows that are recorded as complete, as `Matrix.verify` does."""
        return _verify(self.path, self.rows_done())


def create_matrix(
    path: str | os.PathLike[str],
    graph: Graph,
    names: Sequence[np.ndarray],
    *,
    dtype: np.dtype,
    chunk: int,
    options: dict[str, Any],
    overwrite: bool = False,
) -> MatrixWriter:
    """Create a matrix store in which no row is done yet.

    Parameters
    ----------
    names : names of the origins (k) and of the destinations (l), text
    chunk : rows per chunk
    options : options that a resumed run must repeat (JSON)
    """
    shape = tuple(map(len, names))
    width = max(1, min(shape[1], CHUNK_BYTES // (chunk * dtype.itemsize)))
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        for name, text in zip(NAMES, names, strict=True):
            write_small_array(group, name, text, str, (name,))
        create_array(
            group,
            "distance",
            shape,
            (chunk, width),
            dtype,
            fill_value=outside_infinity(dtype).item(),
            dimension_names=NAMES,
            attributes={"unit": graph.weight_unit} if graph.weight_unit else None,
        )
        group.update_attributes({"graph": origin_of(path, graph), "plan": options, "done": []})
    return replace(begun_matrix(place), run_id=run_id)


def resume_matrix(
    path: str | os.PathLike[str],
    graph: Graph,
    options: dict[str, Any],
    describe: Callable[[str, Any], Any] = lambda name, value: value,
) -> MatrixWriter:
    """Take over an unfinished store to resume it; a finished store is returned as it is.

    Raises
    ------
    StoreError
        The store was begun from another graph or with other options.
    """
    return resume_store(
        path, SCHEMA, graph, _read, lambda begun: refuse_other_options(path, begun.options, options, describe)
    )


def begun_matrix(path: str | os.PathLike[str]) -> MatrixWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def open_matrix(path: str | os.PathLike[str]) -> Matrix:
    """Open a finished matrix store and check its schema, shapes and dtypes; raises StoreError on a fault."""
    group = open_store(path, SCHEMA)
    writer, origin = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        raise StoreError(f"{path}: unfinished; repeat the command that made it (tilepath od) with --resume")
    return Matrix(os.path.abspath(path), (writer.rows, writer.columns), writer.dtype, origin_path(path, origin))


def _verify(path: str, done: np.ndarray) -> Verified:
    array = StoredArray(path, "distance")
    chunks = {name: StoredArray(path, name).places() for name in NAMES} | {"distance": array.places(done)}
    refuse_missing(path, chunks)
    for name in NAMES:
        StoredArray(path, name)[:]
    for row in np.flatnonzero(done)[:: array.chunks[0]].tolist():
        block = array[row : row + array.chunks[0]]
        if block.dtype.kind == "f" and np.isnan(block).any():
            raise StoreError(f"{path}: holds NaN at or after row {row}; compute it again")
    return compare_contents(path, open_store(path, SCHEMA), chunks, "that no distance is NaN")


def _read(path: str | os.PathLike[str], group: zarr.Group) -> MatrixWriter:
    with damaged_attributes(path):
        options = dict(attribute(path, group, "plan"))
        dtype = recorded_dtype(options["dtype"])
        chunk = int(options["chunk"])
    if dtype not in DISTANCE_DTYPES:
        raise StoreError(f"{path}: the attributes are damaged ({dtype} distances); recreate the store")
    check_array(path, group, "distance", (None, None), (dtype,))
    array = StoredArray(path, "distance")
    rows, columns = array.shape
    for name, length in zip(NAMES, array.shape, strict=True):
        check_array(path, group, name, (length,), (TEXT,))
    if array.chunks[0] != chunk:
        raise StoreError(f"{path}: the attributes are damaged (chunks of {chunk} rows); recreate the store")
    return MatrixWriter(os.path.abspath(path), "", flag(path, group, "complete"), rows, columns, chunk, dtype, options)
