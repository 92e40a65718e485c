"""Stored matrices of distances in the forms of other libraries, and by names: NumPy, pandas, xarray, Dask.

The base class of stores whose array `distances` has a name for each row and for each column. A method that reads the
whole matrix is refused if memory cannot hold it; Dask and xarray read chunk by chunk, when values are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuops.memory import refuse_beyond_memory
from gpuops.numbers import outside_infinity
from pipelines.stores.declared import Array
from pipelines.stores.displays import aligned, html_table, on_one_line
from pipelines.stores.opened import OpenedStore
from pipelines.stores.schema import TEXT
from pipelines.stores.vertex_names import Positions

if TYPE_CHECKING:
    import dask.array
    import pandas
    import xarray

    from pipelines.stores.graph import Graph
    from pipelines.stores.vertex_names import VertexNameList

SHOWN = 5  # rows and columns shown of a matrix


class NamedMatrix(OpenedStore, ABC):
    """A stored matrix of distances (k, l) with names for its rows and columns.

    Attributes
    ----------
    at : ByName
        ``store.at["Rome", "Milan"]`` is a distance, ``store.at[names, others]`` a block, ``store.at["Rome"]`` a row.
    """

    dtype: np.dtype
    dimensions: ClassVar[tuple[str, str]] = ("source", "target")  # what names rows, and what names columns

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    @abstractmethod
    def describe(self) -> str:
        """Return a one-line description of the store, for display."""

    @abstractmethod
    def names_along(self, axis: int, part: slice = slice(None)) -> np.ndarray:
        """Return the names of the rows (axis 0) or columns (axis 1): text, or int64 if names are integers."""

    @abstractmethod
    def find_along(self, axis: int, names: VertexNameList) -> np.ndarray:
        """Return the rows (axis 0) or columns (axis 1) of a list of names, int64; StoreError if a name has none."""

    @property
    def at(self) -> ByName:
        """Distances by the names of rows and columns; see `ByName`."""
        return ByName(self)

    def block(self, rows: VertexNameList, columns: VertexNameList) -> np.ndarray:
        """Return the distances (k, l) of a list of k names of rows and a list of l names of columns, in their order."""
        return self._read(self.find_along(0, rows), self.find_along(1, columns))

    def _read(self, rows: Any, columns: Any) -> np.ndarray:
        return self.stored("distances").block(rows, columns)

    def to_numpy(self) -> np.ndarray:
        """Return the whole matrix; raises ValueError if memory cannot hold it."""
        rows, columns = self.shape
        needed = 2 * rows * columns * self.dtype.itemsize  # Zarr decompresses chunks in additional memory
        cure = "read some rows (store[0:100]), or take to_dask() or to_xarray(), which read chunk by chunk"
        refuse_beyond_memory(needed, f"{self.path}: its {rows:,} x {columns:,} matrix takes", cure)
        return self.stored("distances")[:]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"{self.path}: a store cannot be an array without a copy; pass copy=None")
        return self.to_numpy().astype(dtype or self.dtype, copy=False)

    def to_dask(self) -> dask.array.Array:
        """Return the matrix as a Dask array, (k, l) in the chunks of the store; values are read when computed."""
        import dask.array

        stored = self.stored("distances")  # unlike plain Zarr, it notices damage
        return dask.array.from_array(stored, stored.chunks, name=False, asarray=False, lock=False)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the whole matrix as a DataFrame (k, l), with names as index and columns.

        Unreachable is +inf among floats; among integers it is missing (NA), and the dtype is pandas' Int16 or Int32.
        Raises ValueError if memory cannot hold the matrix.
        """
        import pandas

        index, columns = (pandas.Index(self.names_along(axis), name=self.dimensions[axis]) for axis in (0, 1))
        values = self.to_numpy()
        frame = pandas.DataFrame(values, index, columns)
        unreachable = values == outside_infinity(self.dtype)
        if self.dtype.kind == "i" and unreachable.any():
            return frame.astype(f"Int{8 * self.dtype.itemsize}").mask(unreachable)
        return frame

    def to_xarray(self) -> xarray.DataArray:
        """Return the matrix as a DataArray (k, l) of a Dask array, with names as coordinates.

        The attributes say the value of `unreachable` and, if it is known, the `unit`.
        """
        import xarray

        coordinates = {self.dimensions[axis]: self.names_along(axis) for axis in (0, 1)}
        attributes = self.stored("distances").attributes | {"unreachable": outside_infinity(self.dtype).item()}
        return xarray.DataArray(self.to_dask(), coordinates, self.dimensions, "distances", attributes)

    def __repr__(self) -> str:
        try:
            return "\n".join([f"<{self.describe()}>", *aligned(self._corner())])
        except (ValueError, OSError) as error:  # a text is for looking into faults, too
            return f"<{self.describe()}>\nvalues cannot be read: {error}"

    def _repr_html_(self) -> str:
        try:
            return html_table(self.describe(), self._corner(), named=True)
        except (ValueError, OSError):
            return f"<pre>{escape(repr(self))}</pre>"

    def _corner(self) -> list[list[str]]:
        """Return the first rows and columns with their names, as a table of text; "..." stands for the rest."""
        first = slice(0, SHOWN)
        values = self.stored("distances")[first, first]
        cells = [["-" if value == outside_infinity(self.dtype) else f"{value:.6g}" for value in row] for row in values]
        names = [[on_one_line(str(name)) for name in self.names_along(axis, first)] for axis in (0, 1)]
        table = [["", *names[1]], *([name, *row] for name, row in zip(names[0], cells, strict=True))]
        table = [[*row, "..."] for row in table] if self.shape[1] > SHOWN else table
        return [*table, ["..."] * len(table[0])] if self.shape[0] > SHOWN else table


class VertexMatrix(NamedMatrix):
    """A stored matrix whose columns are the vertices of a graph, and whose rows are some of these vertices.

    Attributes
    ----------
    named : Graph
        The graph, to look up names.
    """

    n: int
    named: Graph

    @abstractmethod
    def row_vertices(self) -> np.ndarray | None:
        """Return the vertex of each row, int64 (k); None if the only row begins at the nearest of several vertices."""

    @abstractmethod
    def row_of(self, source: int) -> int:
        """Return the row of the vertex at the position `source`; raises StoreError if the store lacks this row."""

    def names_along(self, axis: int, part: slice = slice(None)) -> np.ndarray:
        vertices = np.arange(self.n) if axis else self.row_vertices()
        if vertices is None:
            return np.array(["nearest source"])[part]
        if "labels" not in self.named.optional:
            return vertices[part]
        return self.named.typed(np.array(self.named.names(vertices[part])))

    def find_along(self, axis: int, names: VertexNameList) -> np.ndarray:
        vertices = self.named.vertices(names, self.dimensions[axis])
        return vertices if axis else np.array([self.row_of(vertex) for vertex in vertices.tolist()], np.int64)


COORDINATES = (  # arrays of a `VertexMatrix`
    Array("source", (TEXT, "int64"), ("source",), optional=True),
    Array("target", (TEXT,), ("target",), optional=True),
)


def coordinates(graph: Graph, sources: Sequence[int] | None) -> dict[str, np.ndarray]:
    """Return the arrays `COORDINATES` of a new store: names of the rows and columns, which xarray takes as coordinates.

    `sources` are the vertices of the rows, None for all vertices. Names that would be 0, 1, 2 and so on are left out.
    """
    rows = None if sources is None else np.asarray(sources, np.int64)
    labels = graph.labels()
    if labels is None:
        return {} if rows is None else {"source": rows}
    return {"source": labels if rows is None else labels[rows], "target": labels}


class ByName:
    """Distances of a stored matrix by names: ``store.at[row, column]``.

    `row` and `column` are each a name or a list of names: a label or, where there are no labels, a position, as text or
    int; or `tilepath.positions`. Without `column` all columns are read.

    Returns
    -------
    scalar, (k,), (l,) or (k, l)
        In the order of the names; a name alone adds no dimension. Unreachable is +inf, or the integer dtype's maximum.

    Raises
    ------
    StoreError
        The matrix has no row or no column of that name, or several.
    IndexError
        There are more than two parts.
    """

    def __init__(self, matrix: NamedMatrix):
        self._matrix = matrix

    def __getitem__(self, names: Any) -> Any:
        given = names if isinstance(names, tuple) else (names,)
        if not 1 <= len(given) <= 2:
            raise IndexError(f"at[...] has {len(given)} parts; give the names of rows, or of rows and columns")
        places: list[Any] = [slice(None)] * 2
        squeezed: list[Any] = [slice(None)] * 2
        for axis, each in enumerate(given):
            listed, alone = _listed(each)
            places[axis] = self._matrix.find_along(axis, listed)
            squeezed[axis] = 0 if alone else slice(None)
        return self._matrix._read(*places)[tuple(squeezed)]


def _listed(given: Any) -> tuple[VertexNameList, bool]:
    """Return a name as a list of one name, or a list as it is, and whether it was a name."""
    if isinstance(given, Positions):
        alone = not given.indices.ndim
        return (Positions(given.indices.reshape(1)) if alone else given), alone
    alone = isinstance(given, str) or not np.ndim(given)
    return ([given] if alone else given), alone
