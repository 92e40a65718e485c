"""Write a graph store row by row, without knowing beforehand how many vertices and arcs there are.

The rows are sorted as imported arcs are (`pipelines.formats.arc_spool`): in memory, or if memory is too small, in an
unlinked file in the folder of the store. The store is written when all rows are known, whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pipelines.formats.arc_sort import sorting
from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.graphs.parquet import check_rows, weight_dtype
from pipelines.stores.schema import counted

PIECE = 1 << 18  # arcs that are kept before they are set aside


@contextmanager
def graph_by_rows(
    path: str | os.PathLike[str],
    *,
    vertices: int | None = None,
    labels: Iterable[str] | None = None,
    directed: bool = True,
    unit: str = "",
    source: str = "rows",
    sorted_rows: bool = True,
    overwrite: bool = False,
) -> Iterator[GraphRows]:
    """Write a graph store row by row: row v has the arcs that leave vertex v.

    In the block ``with graph_by_rows(path) as rows:``, call `rows.append` for each vertex in turn, or
    `rows.append_rows` for many. The store appears when the block ends. If an error ends the block, no store is left.

    Parameters
    ----------
    path : path of the new store
    vertices : number of rows that will be appended; None: as many as are appended
    labels : names of the vertices, read when the block ends; None: vertices are numbers from 0
    directed : False: each arc is an undirected edge, which is in the row of one of its ends, and is stored in both
        directions
    unit, source : unit of the weights and origin of the graph, for `tilepath info`
    sorted_rows : False: keep the arcs of each row in the order given, not sorted by head
    overwrite : replace an existing graph store at `path`

    Yields
    ------
    GraphRows

    Raises
    ------
    ValueError
        The number of rows is not `vertices`, an arc leads to a vertex without a row, or a row is faulty
        (`GraphRows.append_rows`).
    StoreError
        `path` exists, or the disk is full.

    Examples
    --------
    >>> with tilepath.graph_by_rows("rows.zarr", vertices=3) as rows:
    ...     rows.append([1, 2], [5, 7])
    ...     rows.append([2], [1])
    ...     rows.append([])
    >>> tilepath.open_graph("rows.zarr").weights().tolist()
    [5, 7, 1]
    """
    arcs = ArcStream(
        (), directed=directed, labels=labels, text_labels=True, weighted=False, weight_unit=unit, source=source
    )
    with sorting(path, arcs, sorted_rows=sorted_rows, overwrite=overwrite) as add:
        rows = GraphRows(add, os.fspath(path), arcs)
        try:
            yield rows
            arcs.n = rows._end(vertices)
            arcs.weight_dtype = rows._weight_dtype()
        finally:
            rows._add = None


class GraphRows:
    """Takes the rows of a new graph store; made by `graph_by_rows`.

    Attributes
    ----------
    n, m : int
        The numbers of rows and of arcs appended so far.
    """

    def __init__(self, add: Callable[..., None], path: str, arcs: ArcStream):
        self.n = self.m = 0
        self._add: Callable[..., None] | None = add
        self._path, self._arcs = path, arcs
        self._dtypes: set[np.dtype] = set()  # of all weights
        self._largest = -1  # the largest head
        self._kept: list[Piece] = []
        self._kept_arcs = 0

    def append(self, heads: Any, weights: Any = None) -> None:
        """Append the row of the next vertex; `heads` may be empty. For parameters and errors see `append_rows`."""
        self.append_rows([len(heads)], heads, weights)

    def append_rows(self, degrees: Any, heads: Any, weights: Any = None) -> None:
        """Append the rows of the next vertices.

        Parameters
        ----------
        degrees : (k,) integers
            The number of arcs in each row.
        heads : (l,) integers
            The heads of the arcs, row after row, as numbers of vertices from 0. Their rows may follow later.
        weights : (l,) numbers, optional
            Finite. None: the graph is unweighted, and no row has weights. The store keeps the dtype of NumPy
            arrays, if all have the same; of Python's numbers, integers become int32 or int64, and others float64.

        Raises
        ------
        ValueError
            An array has a wrong length or a wrong value (the message names the row), or some rows have weights and
            others have none.
        """
        if self._add is None:
            raise ValueError(f"{self._path}: the block has ended, and rows can be appended no more; begin a new graph")
        degrees, heads = self._integers("degrees", degrees), self._integers("heads", heads)
        if degrees.sum() != len(heads):
            raise ValueError(
                f"{self._path}, row {self.n} and on: degrees add up to {degrees.sum():,}, but there are "
                f"{len(heads):,} heads; give the heads of all arcs"
            )
        tails = np.repeat(np.arange(self.n, self.n + len(degrees)), degrees)
        if len(heads):
            values = self._weights(weights, tails, heads)
            self._kept.append((tails, heads, values))
            self._kept_arcs += len(heads)
            self._largest = max(self._largest, int(heads.max()))
        self.n, self.m = self.n + len(degrees), self.m + len(heads)
        if self._kept_arcs >= PIECE:
            self._flush()

    def _integers(self, what: str, values: Any) -> np.ndarray:
        array = np.asarray(values)
        if array.size == 0 and array.ndim == 1:
            return array.astype(np.int64)
        where = f"{self._path}, row {self.n} and on"
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"{where}: {what} are {array.dtype} of shape {array.shape}; give a list of whole numbers")
        if array.min() < 0 or array.max() >= 1 << 62:
            raise ValueError(
                f"{where}: {what} run from {array.min()} to {array.max()}; give numbers from 0 to 2^62 - 1"
            )
        return array.astype(np.int64)

    def _weights(self, weights: Any, tails: np.ndarray, heads: np.ndarray) -> np.ndarray | None:
        where = f"{self._path}, row {tails[0]} and on"
        weighted = weights is not None
        if self.m and self._arcs.weighted != weighted:
            others = "none" if weighted else "weights"
            raise ValueError(
                f"{where}: {'weights are' if weighted else 'no weights are'} given, but the rows before have {others}; "
                "give weights to all rows or to none"
            )
        self._arcs.weighted = weighted
        if not weighted:
            return None
        array = np.asarray(weights)
        if array.shape != tails.shape or array.dtype.kind not in "biuf":
            raise ValueError(
                f"{where}: weights are {array.dtype} of shape {array.shape}; give {counted(len(tails), 'number')}"
            )
        check_rows(f"{self._path}, arc", self.m, (tails, heads), array)
        self._dtypes.add(array.dtype)
        return array if array.dtype.kind == "f" else array.astype(np.int64)

    def _weight_dtype(self) -> np.dtype | None:
        """Return the dtype that all weights have in common; None: the least one that fits, as for Python's numbers."""
        if len(self._dtypes) != 1 or self._dtypes <= {np.dtype(np.int64), np.dtype(np.float64)}:
            return None
        return weight_dtype(self._path, *self._dtypes)

    def _flush(self) -> None:
        assert self._add is not None
        if self._kept:
            tails, heads, weights = zip(*self._kept, strict=True)
            values = np.concatenate(weights) if self._arcs.weighted else None
            self._add(np.concatenate(tails), np.concatenate(heads), values)
        self._kept, self._kept_arcs = [], 0

    def _end(self, announced: int | None) -> int:
        """Return the number of vertices after the last row."""
        if announced is not None and self.n != announced:
            raise ValueError(
                f"{self._path}: {counted(self.n, 'row')} appended, but vertices={announced} announced; append a row "
                "for each vertex, empty if no arc leaves it"
            )
        if self._largest >= self.n:
            raise ValueError(
                f"{self._path}: an arc leads to vertex {self._largest}, but only {counted(self.n, 'row')} appended; "
                "append a row for each vertex, empty if no arc leaves it"
            )
        if self.n == 0:
            raise ValueError(f"{self._path}: no rows were appended; append a row for each vertex")
        self._flush()
        return self.n
