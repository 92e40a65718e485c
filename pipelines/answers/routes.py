"""Shortest paths from rows of distances, without a matrix of predecessors.

The path from s to t is walked back from t: a predecessor of v is a tail u of an arc into v that is tight,
D[s, u] + w = D[s, v], with u = s or u allowed inside paths (`gpuops.certificates.tight_arcs` has the tolerance).

1. At v take the tight in-arc that fits best, and among equals the one whose tail is nearest to s.
2. Cycles of weight zero are tight all around, so no vertex is visited twice, and at a dead end the walk goes back and
   takes another arc: a depth-first search that ends at s, at most O(m), nearly always the in-arcs of the path alone.
3. Floats: the tolerance starts at that of 8 arcs and grows eightfold until the walk arrives, so that no arc is taken
   that fits worse than it must.

A walk reads one row of distances and the transpose of the graph, which is built once for any number of paths.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
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
from pipelines.answers.tables import check_output, write_table
from pipelines.stores import Graph
from pipelines.stores.solutions import SolutionLike, open_solution

UNREACHABLE, UNATTAINED = -1, -2


class NoPathError(ValueError):
    """There is no path between two vertices."""


@dataclass(frozen=True)
class Path:
    """A shortest path."""

    vertices: tuple[int, ...]  # from source to target; one vertex if they are the same
    weights: tuple[Any, ...]  # of its arcs, as in the graph; of parallel arcs the smallest
    distance: Any  # as stored
    length: Any  # the exact sum of `weights`, for floats rounded once


class Walker:
    """Walks back along tight arcs of one graph.

    Parameters
    ----------
    graph : Graph
    dtype : of the distances
    """

    def __init__(self, graph: Graph, dtype: np.dtype):
        self.graph = graph
        self._out_arcs = graph.rows()
        arcs = arcs_for(*self._out_arcs, graph.through(), dtype, graph.label)
        # An undirected edge stands in both directions: the graph is its own transpose.
        self._in_arcs = arcs.reversed() if graph.directed else arcs

    def walk(self, source: int, row: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Paths from one source: arcs per target, int64, -1 if unreachable, and the vertices of all paths in a row."""
        arcs, row = self._in_arcs, self._in_arcs.lift(row)
        ladder = [1] if arcs.exact else 8.0 ** np.arange(1, 2 + math.ceil(math.log(max(2, arcs.n), 8)))
        hops, vertices = _walk_back(
            arcs.arrays, row, arcs.unreachable, source, targets.astype(np.int64), *tolerances(arcs, row, ladder)
        )
        for target in targets[hops == UNATTAINED][:1]:
            raise VerificationError(
                f"no path from vertex {arcs.label(source)} to vertex {arcs.label(target)} has length {row[target]}: "
                "the distances are damaged or not those of this graph"
            )
        return hops, vertices

    def weight(self, u: int, v: int) -> Any:
        """The least weight of the arcs from u to v."""
        indptr, indices, weights = self._out_arcs
        out = slice(indptr[u], indptr[u + 1])
        return weights[out][indices[out] == v].min().item()


class PathFinder(Walker):
    """Finds any number of shortest paths in one store of distances, or from one boundary store.

    Parameters
    ----------
    distances : the store or its path
    graph : the graph or its path; None: the one recorded in the store
    """

    def __init__(self, distances: SolutionLike, graph: Graph | str | os.PathLike[str] | None = None):
        self.distances, opened = open_solution(distances, graph)
        super().__init__(opened, self.distances.dtype)
        self._row: tuple[int, np.ndarray] = (-1, np.empty(0))

    def path(self, source: int | str, target: int | str) -> Path:
        """A shortest path between two vertices given by index (int) or name (str).

        Raises
        ------
        NoPathError
            The target cannot be reached.
        StoreError
            There is no such vertex, or its row is not in the store.
        VerificationError
            The distances do not belong to the graph.
        """
        s, t = self.graph.vertex(source), self.graph.vertex(target)
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
    distances: SolutionLike,
    source: int | str,
    target: int | str,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Path:
    """One shortest path; `PathFinder` says what is raised, and is quicker for many.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    source, target : vertices by index (int) or name (str)
    """
    return PathFinder(distances, graph).path(source, target)


def paths_of_pairs(
    distances: SolutionLike,
    pairs: PairsLike,
    *,
    out: str | os.PathLike[str] | None = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> pa.Table:
    """Distances and shortest paths of a table of pairs; each row of the matrix is read once.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    pairs : array (P, 2), or table or file (.csv, .tsv, .csv.gz, .tsv.gz, .parquet) with columns `source` and `target`.
        Integers of an array are indices. Entries of a table (whole numbers too), and text in an array, mean what they
        mean on the command line (`pipelines.stores.vertex_names`)
    out : file to write, of one of these kinds
    overwrite : replace an existing file at `out`

    Returns
    -------
    One row per pair, in order: `source`, `target`, `distance`, `hops` and `path`, the last three null where there is
    no path. Vertices are named by their labels, or by their indices as text where there are none. `path` is a list; in
    CSV it is one text, joined by spaces.

    Raises
    ------
    ValueError
        A vertex does not exist or its row is not in the store (naming the row of the table, counted from 1 without
        the header), or a file is of another kind.
    FileExistsError
        `out` exists already.
    VerificationError
        The distances do not belong to the graph.
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
    distances: SolutionLike,
    sources: Sequence[int | str] | np.ndarray,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> np.ndarray:
    """The vertex before each vertex on a shortest path from each source; the paths of one source form a tree.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    sources : (S) vertices by index (int) or name (str)

    Returns
    -------
    int32 (int64 where the graph's indices are) (S, n): -1 at the source and where it does not lead.

    Raises
    ------
    StoreError, VerificationError
        As `PathFinder.path`.
    """
    distances, graph = open_solution(distances, graph)
    arcs = arcs_for(*graph.rows(), graph.through(), distances.dtype, graph.label)
    wanted = np.array([graph.vertex(source) for source in sources], dtype=np.int64)
    rows, places = np.unique(rows_of(distances, wanted, graph), return_inverse=True)
    vertices = distances.row_vertices()[rows]
    trees = np.empty((len(rows), distances.n), arcs.indices.dtype)

    def fill(place: int, row: np.ndarray) -> None:
        trees[place] = tight_tree(arcs, row, int(vertices[place])).predecessors

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start, block in distances.rows(rows):
            list(pool.map(fill, range(start, start + len(block)), block))
    return trees[places]


@njit(nogil=True, cache=True)
def _walk_back(in_arcs, row, unreachable, source, targets, relative_ladder, absolute_ladder):
    n = row.size
    hops, paths, used = np.empty(targets.size, np.int64), np.empty(64 + n, np.int64), 0
    # One stack serves all targets; `visited` holds the number of the last attempt that came by.
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
    """Leave a path from target back to source in the stack; returns its arcs, or UNATTAINED."""
    indptr, tails, weights, through = in_arcs
    stack, cursor, visited, attempt = work
    stack[0], cursor[0], visited[target] = target, -1, attempt
    top = 0
    while top >= 0:
        v = stack[top]
        if v == source:
            return top
        first = cursor[top] < 0  # then weigh up all in-arcs; after a dead end take any that is left
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
