"""Shortest paths from rows of distances, without a matrix of predecessors.

The path from s to t is walked back from t. A predecessor of v is the tail u of a tight arc into v, an arc with
D[s, u] + w = D[s, v]; u is s or a vertex that is not closed (`gpuops.certificates.tight_arcs` has the tolerance).

1. At v, take the tight in-arc with the smallest gap between both sides; among equals, the arc whose tail is nearest
   to s.
2. All arcs of a cycle of weight zero are tight, so no vertex is visited twice. At a dead end the walk goes back and
   takes another arc. This is a depth-first search that ends at s, in time O(m) at most; nearly always it visits only
   the in-arcs of the path.
3. With floats, the tolerance is first the rounding error of a path of 8 arcs. It grows eightfold until the walk arrives
   at s, so the walk takes no arc with a larger gap than necessary.

A walk reads one row of distances and the transpose of the graph, which is built once for any number of paths.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from gpuops.certificates import arcs_for, tight_tree, tolerances
from gpuops.errors import VerificationError
from pipelines.answers.pairs import PairsLike, read_pairs, rows_of, table_of_walks, walk_pairs
from pipelines.answers.searched_distances import RowsLike, open_rows
from pipelines.answers.tables import check_output, write_table
from pipelines.stores import Graph
from pipelines.stores.vertex_names import VertexName, VertexNameList

UNREACHABLE, UNATTAINED = -1, -2


class NoPathError(ValueError):
    """There is no path between two vertices."""


@dataclass(frozen=True)
class Path:
    """A shortest path."""

    vertices: tuple[int, ...]  # positions, from source to target; one vertex if source and target are the same
    weights: tuple[Any, ...]  # weights of the arcs, as in the graph; of parallel arcs the smallest weight
    distance: Any  # the distance as stored
    length: Any  # the exact sum of `weights`, for floats rounded once


class Walker:
    """Walks back along tight arcs of one graph.

    Parameters
    ----------
    graph : Graph
    dtype : dtype of the distances
    """

    def __init__(self, graph: Graph, dtype: np.dtype):
        self.graph = graph
        self._out_arcs = graph.rows()
        arcs = arcs_for(*self._out_arcs, graph.through(), dtype, graph.label)
        # An undirected edge is stored in both directions, so the graph is its own transpose.
        self._in_arcs = arcs.reversed() if graph.directed else arcs

    def walk(self, source: int, row: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return paths from one source to some targets.

        The first array has the number of arcs of each path, int64, -1 for an unreachable target. The second array has
        the vertices of all paths, one path after the other.
        """
        arcs, row = self._in_arcs, self._in_arcs.lift(row)
        ladder = [1] if arcs.exact else 8.0 ** np.arange(1, 2 + math.ceil(math.log(max(2, arcs.n), 8)))
        hops, vertices = _walk_back(
            arcs.arrays, row, arcs.unreachable, source, targets.astype(np.int64), *tolerances(arcs, row, ladder)
        )
        for target in targets[hops == UNATTAINED][:1]:
            raise VerificationError(
                f"no path from vertex {arcs.label(source)} to vertex {arcs.label(target)} has length {row[target]}: "
                "the distances are damaged, or belong to another graph"
            )
        return hops, vertices

    def weight(self, u: int, v: int) -> Any:
        """Return the smallest weight of the arcs from u to v."""
        indptr, indices, weights = self._out_arcs
        out = slice(indptr[u], indptr[u + 1])
        return weights[out][indices[out] == v].min().item()


class PathFinder(Walker):
    """Finds any number of shortest paths from a store of distances, held or computed, or by searches of a graph.

    Parameters
    ----------
    distances : store of distances, hierarchy store or graph store, or its path. A graph is searched from each source,
        in this process
    graph : the graph of the store, or its path; by default the graph recorded in the store
    """

    def __init__(self, distances: RowsLike, graph: Graph | str | os.PathLike[str] | None = None):
        self.distances, opened = open_rows(distances, graph)
        super().__init__(opened, self.distances.dtype)
        self._row: tuple[int, np.ndarray] = (-1, np.empty(0))

    def path(self, source: VertexName, target: VertexName) -> Path:
        """Return a shortest path between two vertices, named by text, int or `tilepath.positions` (`Graph.vertex`).

        Raises
        ------
        NoPathError
            The target cannot be reached.
        StoreError
            A vertex does not exist, or the store has no row for the source.
        VerificationError
            The distances do not belong to the graph.
        NegativeCycleError
            The graph that is searched has a negative cycle.
        """
        s, t = self.graph.vertex(source, "source"), self.graph.vertex(target, "target")
        if self._row[0] != s:
            rows_of(self.distances, np.array([s]), self.graph)
            self._row = (s, self.distances.row(s))
        row = self._row[1]
        hops, vertices = self.walk(s, row, np.array([t]))
        if hops[0] == UNREACHABLE:
            raise NoPathError(f"no path leads from vertex {self.graph.label(s)} to vertex {self.graph.label(t)}")
        weights = tuple(self.weight(u, v) for u, v in pairwise(vertices))
        length = math.fsum(weights) if self.graph.weight_dtype.kind == "f" else sum(weights)
        return Path(tuple(vertices.tolist()), weights, row[t].item(), length)


def shortest_path(
    distances: RowsLike,
    source: VertexName,
    target: VertexName,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Path:
    """Return one shortest path. For many paths, `PathFinder` is faster; `PathFinder.path` lists the errors.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    source, target : vertices by label (by index if the graph has no labels), as text or int; or by position, as "#17"
        or ``tilepath.positions(17)``

    Returns
    -------
    Path
        The path. Its `vertices` are positions; `Graph.names` turns them into names.
    """
    return PathFinder(distances, graph).path(source, target)


def paths_of_pairs(
    distances: RowsLike,
    pairs: PairsLike,
    *,
    out: str | os.PathLike[str] | None = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> pa.Table:
    """Return distances and shortest paths of a table of pairs; each row of the matrix is read once.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    pairs : array or list (P, 2) of names, as text or ints, or `tilepath.positions` of such an array; or table or file
        (.csv, .tsv, .csv.gz, .tsv.gz, .parquet) with the columns `source` and `target`. An entry names a vertex as on
        the command line (`pipelines.stores.vertex_names`), whether it is text or a whole number
    out : path of a table to write (.csv, .tsv, .csv.gz, .tsv.gz, .parquet)
    overwrite : replace an existing file at `out`

    Returns
    -------
    pyarrow.Table
        One row per pair, in order, with the columns `source`, `target`, `distance`, `hops` and `path`; `distance`,
        `hops` and `path` are null for a pair without a path. Vertices are named by their labels, or by their indices as
        text if the graph has no labels. `path` is a list; in CSV it is a text, joined by spaces.

    Raises
    ------
    ValueError
        A vertex does not exist or has no row in the store (the message names the row of the table, counted from 1
        without the header), or a file has another suffix.
    FileExistsError
        `out` exists already.
    VerificationError
        The distances do not belong to the graph.
    pipelines.workers.capacity.DoesNotFitError
        `distances` is a graph, and there are too many sources to search from; the message says what to do.
    """
    if out is not None:
        check_output(out, overwrite, pairs if isinstance(pairs, str | os.PathLike) else None)
    finder = PathFinder(distances, graph)
    given = read_pairs(pairs, finder.graph)
    sources, targets = given.sources, given.targets
    assert sources is not None

    def walk(row: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return row[targets[pairs]], *finder.walk(int(sources[pairs[0]]), row, targets[pairs])

    rows = rows_of(finder.distances, sources, finder.graph, given.name)
    walks = walk_pairs(rows, finder.distances.rows, walk, finder.distances.dtype)
    table = table_of_walks(finder.graph, sources, targets, walks)
    if out is not None:
        write_table(table, out, overwrite)
    return table


def predecessors(
    distances: RowsLike,
    sources: VertexNameList,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> np.ndarray:
    """Return the predecessor of each vertex on a shortest path from each source; the paths of a source form a tree.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    sources : (S) vertices by label (by index if the graph has no labels), as text or int; or by position, as "#17" or
        ``tilepath.positions([17])``

    Returns
    -------
    (S, n) int32 array, int64 if the graph's indices are int64
        Positions of vertices, which `Graph.names` turns into names; -1 at the source and at vertices that it does not
        reach.

    Raises
    ------
    StoreError, VerificationError
        As `PathFinder.path`.
    """
    found, graph = open_rows(distances, graph)
    arcs = arcs_for(*graph.rows(), graph.through(), found.dtype, graph.label)
    wanted = graph.vertices(sources, "source")
    rows, places = np.unique(rows_of(found, wanted, graph), return_inverse=True)
    vertices = found.row_vertices()[rows]
    trees = np.empty((len(rows), found.n), arcs.indices.dtype)

    def fill(place: int, row: np.ndarray) -> None:
        trees[place] = tight_tree(arcs, row, int(vertices[place])).predecessors

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start, block in found.rows(rows):
            list(pool.map(fill, range(start, start + len(block)), block))
    return trees[places]


@njit(nogil=True, cache=True)
def _walk_back(in_arcs, row, unreachable, source, targets, relative_ladder, absolute_ladder):
    n = row.size
    hops, paths, used = np.empty(targets.size, np.int64), np.empty(64 + n, np.int64), 0
    # One stack serves all targets; `visited` has for each vertex the number of the last attempt that visited it.
    stack, cursor, visited, attempt = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64), 0
    for i in range(targets.size):
        hops[i] = UNREACHABLE
        if targets[i] != source and row[targets[i]] == unreachable:
            continue
        for relative, absolute in zip(relative_ladder, absolute_ladder):  # noqa: B905  (unknown to Numba)
            attempt += 1
            work = (stack, cursor, visited, attempt)
            hops[i] = _search(in_arcs, row, unreachable, source, targets[i], relative, absolute, work)
            if hops[i] >= 0:
                break
        if hops[i] < 0:
            continue
        if used + hops[i] + 1 > paths.size:
            paths = np.concatenate((paths, np.empty(paths.size, np.int64)))
        for step in range(hops[i], -1, -1):
            paths[used] = stack[step]
            used += 1
    return hops, paths[:used]


@njit(nogil=True, cache=True)
def _search(in_arcs, row, unreachable, source, target, relative, absolute, work):
    """Leave a path from target back to source in the stack; returns its number of arcs, or UNATTAINED."""
    indptr, tails, weights, through = in_arcs
    stack, cursor, visited, attempt = work
    stack[0], cursor[0], visited[target] = target, -1, attempt
    top = 0
    while top >= 0:
        v = stack[top]
        if v == source:
            return top
        first = cursor[top] < 0  # at first compare all in-arcs; after a dead end take the next tight arc
        if first:
            cursor[top] = indptr[v]
        best, best_gap = -1, row[v]
        tolerance = relative * abs(row[v]) + absolute
        for arc in range(cursor[top], indptr[v + 1]):
            u = tails[arc]
            if visited[u] == attempt or row[u] == unreachable or not (u == source or through[u]):
                continue
            gap = abs(row[u] + weights[arc] - row[v])
            if gap > tolerance:
                continue
            if best < 0 or gap < best_gap or (gap == best_gap and row[u] < row[best]):
                best, best_gap = u, gap
            if not first:
                cursor[top] = arc + 1
                break
        if best < 0:
            top -= 1
        else:
            top += 1
            stack[top], cursor[top], visited[best] = best, -1, attempt
    return UNATTAINED
