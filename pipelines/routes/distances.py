"""Distances without a matrix: rows that searches of a graph compute when they are read, and blocks from a hierarchy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from gpuops import batched_shortest_distances, search_graph
from gpuops.arrays import is_cupy
from gpuops.errors import NegativeCycleError, WeightRangeError
from pipelines.stores.distances import Distances
from pipelines.stores.graph import SCHEMA, Graph, open_graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.named_matrix import NamedMatrix
from pipelines.stores.paths import Paths
from pipelines.stores.schema import check_path, kind_of, store_schema
from pipelines.stores.solutions import Solution, SolutionLike, open_solution
from pipelines.stores.vertex_names import Positions, VertexNames
from pipelines.validation.negative_cycle import named_cycle
from pipelines.workers.capacity import DoesNotFitError, Needs, this_process

BATCH = 32  # number of sources whose searches share the reads of arcs
# Memory for an arc and for a vertex: the graph as stored, laid out for searches, and both transposes.
ARC_BYTES, VERTEX_BYTES = 56, 64
# Searches of integer weights have distances of int32; a graph that is searched has no option for another dtype.
AS_FLOATS = (
    "import the graph with weights of float64 (in text, write a weight with a decimal point), or pass a hierarchy that "
    "is made with dtype='float64' (tilepath hierarchy --dtype float64)"
)
MOST_ARCS = 1 << 36  # most arcs that the searches for a table read: some ten minutes of a few cores


class SearchedDistances:
    """The rows of distances of a graph, with the methods of a store of distances (`pipelines.stores.distances`).

    Parameters
    ----------
    graph : Graph
        Weights may be negative.
    reverse : bool
        Search against the arcs: rows have the distances from every vertex to the source. Weights must not be negative.

    Attributes
    ----------
    dtype : dtype of the distances: int32 for integer weights, else the dtype of the weights

    Raises
    ------
    NegativeCycleError
        A loop has a negative weight. Methods that search also raise it if a source reaches a negative cycle. The
        message has the labels of the vertices of the cycle.
    tilepath.WeightRangeError
        A weight does not fit int32. Methods that search raise it for a distance.
    tilepath.DoesNotFitError
        The memory of this process is too small for the graph.
    """

    def __init__(self, graph: Graph, *, reverse: bool = False):
        needs = Needs((ARC_BYTES * graph.m + VERTEX_BYTES * graph.n,))
        cure = "Let the workers of a cluster search (tilepath sssp)"
        needs.refuse_memory(f"{graph.path}: searches in this process", this_process(), cure)
        self.graph, self.path, self.n = graph, graph.path, graph.n
        rows = graph.reverse.rows() if reverse else graph.rows()
        with self._errors():
            self._laid_out = search_graph(*rows, through=graph.through(), symmetric=not graph.directed)
        self.dtype = self._laid_out.dtype

    def search(self, sources: np.ndarray) -> np.ndarray:
        """Return distances (k, n) from some vertices (k) to all; unreachable is +inf, or the maximum of int32."""
        with self._errors():
            return batched_shortest_distances(self._laid_out, sources)

    def row_vertices(self) -> np.ndarray:
        """Return the vertex of each row, int64 (n)."""
        return np.arange(self.n)

    def row(self, source: int) -> np.ndarray:
        """Return the distances from the vertex at the position `source` to every vertex, (n)."""
        return self.search(np.array([source]))[0]

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the rows numbered `rows`, int (k), in batches: (position in `rows`, block of rows).

        Raises
        ------
        DoesNotFitError
            The searches would take too long.
        """
        if len(rows) * (self.graph.m + self.n) > MOST_ARCS:
            raise DoesNotFitError(
                f"{self.path}: these are {len(rows):,} searches in a graph of {self.graph.m:,} arcs, which would take "
                "too long; let the workers of a cluster write the paths (tilepath sssp --sources-file), or prepare a "
                "road network once (tilepath hierarchy) and pass that store"
            )
        for start in range(0, len(rows), BATCH):
            yield start, self.search(rows[start : start + BATCH])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except NegativeCycleError as error:
            raise named_cycle(self.graph, error) from None
        except OverflowError as error:
            fault = str(error).partition(";")[0]
            raise WeightRangeError(f"{self.path}: {fault}; {AS_FLOATS}") from None


Rows: TypeAlias = Solution | SearchedDistances
RowsLike: TypeAlias = SolutionLike | Graph


def open_rows(given: RowsLike, graph: Graph | str | os.PathLike[str] | None = None) -> tuple[Rows, Graph]:
    """Open a source of distances, and its graph: a store of distances, held or computed, or a graph.

    Parameters
    ----------
    given : the source or its path
    graph : the graph of a store, if it was moved; by default the graph recorded in the store

    Raises
    ------
    ValueError
        `given` is a graph, and `graph` is given as well.
    """
    if isinstance(given, str | os.PathLike) and store_schema(given) == SCHEMA:
        given = open_graph(given)
    if not isinstance(given, Graph):
        return open_solution(given, graph)
    if graph is not None:
        raise ValueError(f"{given.path} is a graph itself; leave out graph (--graph)")
    return SearchedDistances(given), given


def distances_between(
    store: Graph | NamedMatrix | HierarchyStore | str | os.PathLike[str],
    sources: Any,
    targets: Any,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Any:
    """Return the shortest distances from each source to each target, without computing the whole matrix.

    Distances, paths and matrix stores are read. A hierarchy store computes the block. A graph is searched from each
    source, in this process.

    Parameters
    ----------
    store : Graph, HierarchyStore, Distances, Paths or Matrix, or path of such a store
    sources, targets : (k,) and (l,) vertices
        Labels, or positions if the graph has no labels, as text or int. Positions can always be given as "#17" or
        ``tilepath.positions([17])``. If either argument is a CuPy array, or positions in a CuPy array, a hierarchy
        computes the distances on its device, and they stay there.
    graph : Graph or path, optional
        The graph of a store, if it was moved. Of a hierarchy it is read for labels only, so `positions` do not need it.

    Returns
    -------
    (k, l) array, NumPy or CuPy
        Rows and columns in the order of `sources` and `targets`. Unreachable is +inf, or the integer dtype's maximum.

    Raises
    ------
    StoreError
        A vertex does not exist, the store has no row of a source, or the graph store is missing.
    tilepath.WeightRangeError
        A distance does not fit the dtype of a hierarchy store.
    tilepath.DoesNotFitError
        The searches of a graph need more memory than there is, or would take too long.
    ValueError
        `sources` or `targets` are not a list of names, or the store holds no distances.

    Examples
    --------
    >>> tilepath.distances_between(graph, ["Rome"], ["Milan", "Genoa"]).tolist()
    [[570, 515]]
    """
    if isinstance(store, str | os.PathLike):
        store = kind_of(store).open(store)
    if isinstance(store, HierarchyStore):
        return _computed(store, sources, targets, graph)
    if isinstance(store, Graph):
        searched, names = open_rows(store, graph)
        rows, columns = names.vertices(sources, "source"), names.vertices(targets, "target")
        return _searched(searched, rows, columns)
    if not isinstance(store, NamedMatrix):
        if not hasattr(store, "path"):
            check_path(store)
        raise ValueError(f"{getattr(store, 'path', store)} holds no distances; give a graph, or what was made of one")
    if graph is not None and isinstance(store, Distances | Paths):
        store = replace(store, graph_path=os.fspath(graph.path if isinstance(graph, Graph) else graph))
    return store.block(sources, targets)


def _computed(store: HierarchyStore, sources: Any, targets: Any, graph: Any) -> Any:
    gpu = any(is_cupy(v.indices if isinstance(v, Positions) else v) for v in (sources, targets))
    if isinstance(sources, Positions) and isinstance(targets, Positions):
        names = VertexNames(store.n, lambda: None, store.path)
    else:
        names = (store.named if graph is None else graph if isinstance(graph, Graph) else store.graph(graph)).naming
    rows, columns = _vertices(names, sources, "source"), _vertices(names, targets, "target")
    return store.between_on_gpu(rows, columns) if gpu else store.between(rows, columns)


def _searched(searched: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the block of some rows and columns; each row is searched once."""
    different, places = np.unique(rows, return_inverse=True)
    found = np.empty((len(different), len(columns)), searched.dtype)
    for start, block in searched.rows(different):
        found[start : start + len(block)] = block[:, columns]
    return found[places]


def _vertices(names: VertexNames, given: Any, what: str) -> Any:
    """Return the vertices that a list names. Positions in a CuPy array stay on its device, unless one is wrong."""
    if isinstance(given, Positions) and is_cupy(given.indices):
        found = given.indices
        if found.ndim == 1 and found.size and int(found.min()) >= 0 and int(found.max()) < names.n:
            return found
    return names.vertices(given, what)
