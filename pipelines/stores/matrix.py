"""The matrix store (schema `matrix/2`): distances from origins to destinations. It grows by chunks of rows.

=========== ============= =======================================================================
array       dtype, shape  meaning
=========== ============= =======================================================================
distances   number (k, l) distances; unreachable is +inf, or the integer dtype's maximum
origin      text (k)      names of the origins
destination text (l)      names of the destinations
=========== ============= =======================================================================

The attribute `unit` of `distances` is the unit of the graph's weights, if it is known. The dimensions of `distances`
are called origin and destination, like the other two arrays, so that xarray finds the coordinates. The attribute `done`
of the store lists the complete rows and is written after them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import DISTANCE_DTYPES
from pipelines.stores.contents import StoredArray, row_blocks
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, view
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.graph import Graph
from pipelines.stores.named_matrix import NamedMatrix
from pipelines.stores.resuming import FinishedStore, NewArray, RowsWriter
from pipelines.stores.schema import CHUNK_BYTES, TEXT, counted, distance_options
from pipelines.stores.vertex_names import VertexNameList, VertexNames
from pipelines.stores.whole_chunks import WholeChunks


def _derived(path: str, _group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    (rows, columns), chunks = (array := StoredArray(path, "distances")).shape, array.chunks
    options = found["options"]
    if chunks[0] != options["chunk"]:
        raise ValueError(f"chunks of {options['chunk']} rows")
    return {"dtype": dtype_of(DISTANCE_DTYPES)(options["dtype"]), "rows": rows, "columns": columns, "chunk": chunks[0]}


DECLARED = Schema(
    "matrix/2",
    source="graph",
    attributes=(Attribute("plan", dict, field="options"),),
    arrays=(
        Array("distances", ("dtype",), ("origin", "destination"), grows=True),
        Array("origin", (TEXT,), ("origin",)),
        Array("destination", (TEXT,), ("destination",)),
    ),
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(NamedMatrix, FinishedStore):
    """A finished matrix store, opened by `open_matrix`. Pickles leave out the arrays.

    ``store[i, j]`` is the distance from origin i to destination j, and ``store.at["home 7", "school 2"]`` is the
    distance from the origin to the destination of these names.
    """

    dimensions = ("origin", "destination")

    path: str
    rows: int
    columns: int
    dtype: np.dtype
    graph_path: str

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of origins and destinations."""
        return self.rows, self.columns

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Return any Zarr selection of the distances as a NumPy array."""
        return self.stored("distances")[selection]

    def names(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the names of the origins (k) and of the destinations (l), text."""
        return self.names_along(0), self.names_along(1)

    def names_along(self, axis: int, part: slice = slice(None)) -> np.ndarray:
        return self.stored(self.dimensions[axis])[part]

    def find_along(self, axis: int, names: VertexNameList) -> np.ndarray:
        naming = VertexNames(self.shape[axis], lambda: self.names_along(axis), self.path)
        return naming.vertices(names, self.dimensions[axis])

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        size = f"{counted(self.rows, 'origin')}, {counted(self.columns, 'destination')}"
        return f"{self.path}: {self.dtype} distances of {self.graph_path}, {size}"


@dataclass(frozen=True, eq=False)
class MatrixWriter(RowsWriter):
    """A matrix store that is being written."""

    declared, command = DECLARED, "od STORE"

    columns: int
    dtype: np.dtype
    options: dict[str, Any]

    def begun_with(self) -> dict[str, Any]:
        return self.options

    def write(self, start: int, distances: np.ndarray) -> None:
        """Write rows, in whole chunks, from row `start` on."""
        with disk_errors(self.path):
            WholeChunks(self.path, "distances", run_id=self.run_id)[start : start + len(distances)] = distances

    def check_values(self) -> tuple[str, ...]:
        for name in ("origin", "destination"):
            StoredArray(self.path, name)[:]
        for row, block in row_blocks([StoredArray(self.path, "distances")], self.rows_done()):
            if block.dtype.kind == "f" and np.isnan(block).any():
                raise StoreError(f"{self.path}: holds NaN at or after row {row}; compute it again")
        return ("that no distance is NaN",)


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
    distances = NewArray(shape, (chunk, width), dtype, distance_options(dtype, graph.weight_unit))
    arrays = {"origin": names[0], "destination": names[1], "distances": distances}
    return MatrixWriter.create(path, graph, {"plan": options, "done": []}, arrays, overwrite=overwrite)


def open_matrix(path: str | os.PathLike[str]) -> Matrix:
    """Open a finished matrix store and check its schema, shapes and dtypes; raises StoreError on a fault."""
    return view(Matrix, MatrixWriter.read_finished(path))
