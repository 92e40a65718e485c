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

From a hierarchy store, few paths are found without a row: the source climbs once, and each distance that the walk looks
at follows from the tables on the path from its vertex to the root (`gpuops.hierarchy.climbing`). The distance of the
target has the bits of `distances_between`: a float comes from a block of one pair. Other float distances may differ
from the distances of a row in the last bits. If several paths are equally long up to rounding, the walk may therefore
find another path than a walk over a row.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, no_type_check

import numpy as np
import pyarrow as pa
from numba import njit, types
from numba.extending import overload

from gpuops.certificates import arcs_for, tight_tree, tolerances
from gpuops.errors import VerificationError
from gpuops.hierarchy.climbing import Climbed, climb_from, distances_to
from gpuops.numbers import distance_limit
from gpuops.recompiling import recompiled_with_imports
from pipelines.files.tables import check_output, write_table
from pipelines.places.at import VertexOrPlace, vertex_at
from pipelines.places.snapping import Snapping
from pipelines.routes.along import arcs_along
from pipelines.routes.distances import RowsLike, open_rows
from pipelines.routes.pairs import PairsLike, Walks, read_pairs, rows_of, table_of_walks, walk_pairs
from pipelines.routes.route import Route
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.vertex_names import VertexNameList

UNREACHABLE, UNATTAINED = -1, -2
# Time for a vertex of a path in a hierarchy, in entries of a row; time for the tables that rows need, in rows.
ROUTE_WORK, TABLES_WORK = 1000, 200


class NoPathError(ValueError):
    """There is no path between two vertices."""


@dataclass(frozen=True, repr=False)
class Path(Route):
    """A shortest path, with the weights of its arcs.

    Attributes
    ----------
    graph : Graph
    vertices : tuple of int
        Positions, from source to target; one vertex if source and target are the same. `names` has their names.
    distance : int or float
        The distance as stored or computed, in `unit`.
    weights : tuple of numbers
        Weights of the arcs, as in the graph; of parallel arcs the smallest weight. The cost of a turn counts with the
        arc behind the turn.
    total : int or float
        The exact sum of `weights`, for floats rounded once.
    """

    weights: tuple[Any, ...]
    total: Any


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
        self.junctions = graph.junctions()
        arcs = arcs_for(*self._out_arcs, graph.through(), dtype, graph.label)
        # An undirected edge is stored in both directions, so the graph is its own transpose.
        self._in_arcs = arcs.reversed() if graph.directed else arcs

    def walk(self, source: int, row: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return paths from one source to some targets, given the row of distances from the source.

        The first array has the number of arcs of each path, int64, -1 for an unreachable target. The second array has
        the vertices of all paths, one path after the other.
        """
        return self._walk(source, self._in_arcs.lift(row), row[targets], targets)

    def walk_from(self, climbed: Climbed, distances: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same from a source that has climbed in a hierarchy, given its distances to the targets."""
        return self._walk(climbed.source, climbed, distances, targets)

    def _walk(
        self, source: int, row: np.ndarray | Climbed, distances: np.ndarray, targets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        arcs, lengths = self._in_arcs, self._in_arcs.lift(distances)
        ladder = [1] if arcs.exact else 8.0 ** np.arange(1, 2 + math.ceil(math.log(max(2, arcs.n), 8)))
        hops, vertices = _walk_back(
            arcs.arrays,
            row,
            lengths,
            (lengths != arcs.unreachable) | (targets == source),
            arcs.unreachable if isinstance(row, np.ndarray) else row.far,
            source,
            targets.astype(np.int64),
            # The path to a target meets no longer distances than the target's, before potentials are removed.
            *tolerances(arcs, np.append(lengths, 0), ladder),
        )
        for i in np.flatnonzero(hops == UNATTAINED)[:1]:
            raise VerificationError(
                f"no path from vertex {arcs.label(source)} to vertex {arcs.label(targets[i])} has length "
                f"{lengths[i]}: the distances are damaged, or belong to another graph"
            )
        return hops, vertices

    def arcs(self, hops: np.ndarray, vertices: np.ndarray) -> np.ndarray:
        """Return the number of each arc of some paths, given as `walk` returns them: of parallel arcs the lightest."""
        return arcs_along(*self._out_arcs, hops, vertices)

    def weights(self, vertices: np.ndarray) -> np.ndarray:
        """Return the weight of each arc of a path: of parallel arcs the smallest."""
        return self._out_arcs[2][self.arcs(np.array([len(vertices) - 1]), vertices)]


class PathFinder(Walker):
    """Finds any number of shortest paths from a store of distances, held or computed, or by searches of a graph.

    Parameters
    ----------
    distances : store of distances, hierarchy store or graph store, or its path. A graph is searched from each source,
        in this process
    graph : the graph of the store, or its path; by default the graph recorded in the store
    crs : coordinate system of places, as for `tilepath.od`

    Notes
    -----
    One thread at a time may use it, as it keeps distances from the last source.
    """

    def __init__(self, distances: RowsLike, graph: Graph | str | os.PathLike[str] | None = None, crs: Any = None):
        self.distances, opened = open_rows(distances, graph)
        self._crs = crs
        super().__init__(opened, self.distances.dtype)
        self._row: tuple[int, np.ndarray | Climbed] = (-1, np.empty(0))

    @cached_property
    def _snapping(self) -> Snapping:
        store = self.distances
        return Snapping(
            self.graph, store.by_place(self.graph) if isinstance(store, HierarchyStore) else None, self._crs
        )

    def path(self, source: VertexOrPlace, target: VertexOrPlace) -> Path:
        """Return a shortest path between two vertices, named by text, int or `tilepath.positions` (`Graph.vertex`).

        A place, such as (lon, lat), means the nearest vertex of the largest strongly connected component.

        Raises
        ------
        NoPathError
            The target cannot be reached.
        StoreError
            A vertex does not exist, or the store has no row for the source.
        VerificationError
            The distances do not belong to the graph.
        NegativeCycleError
            In a graph that is searched, the source reaches a negative cycle.
        """
        s = vertex_at(self.graph, source, "source", self._snapping)
        t = vertex_at(self.graph, target, "target", self._snapping)
        if self._row[0] != s:
            self._row = (s, self.row_of(s))
        distances, hops, vertices = self.paths(*self._row, np.array([t]))
        if hops[0] == UNREACHABLE:
            raise NoPathError(f"no path leads from vertex {self.graph.label(s)} to vertex {self.graph.label(t)}")
        weights = self.weights(vertices)
        total = math.fsum(weights.tolist()) if self.graph.weight_dtype.kind == "f" else sum(weights.tolist())
        if self.junctions is not None:
            _, vertices, roads = self.junctions.roads_of(hops, vertices)
            weights = self.junctions.weights_of(roads, weights)
        return Path(self.graph, tuple(vertices.tolist()), distances[0].item(), tuple(weights.tolist()), total)

    def row_of(self, source: int) -> np.ndarray | Climbed:
        """Return the row of a source, or in a hierarchy store the source after its climb."""
        if isinstance(self.distances, HierarchyStore):
            return climb_from(self.distances.hierarchy, source)
        rows_of(self.distances, np.array([source]), self.graph)
        return self.distances.row(source)

    def paths(
        self, source: int, row: np.ndarray | Climbed, targets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distances from a source to some targets, followed by the result of `walk`."""
        if isinstance(row, np.ndarray):
            return row[targets], *self.walk(source, row, targets)
        assert isinstance(self.distances, HierarchyStore)
        distances = self._exact(row, targets)
        if distances is None:
            distances = self.distances.between(np.array([source]), targets)[0]
        return distances, *self.walk_from(row, distances, targets)

    def _exact(self, climbed: Climbed, targets: np.ndarray) -> np.ndarray | None:
        """Return the distances to open targets if they are exact: integers that fit in the dtype. Otherwise, None."""
        dtype, arcs = self.distances.dtype, self._in_arcs
        if not arcs.exact or not arcs.through[targets].all():
            return None
        found = np.empty(len(targets), climbed.distances.dtype)
        distances_to(climbed, targets, found)
        reached = found < climbed.far
        if (np.abs(found[reached]) >= distance_limit(dtype)).any():
            return None
        return np.where(reached, found, arcs.unreachable).astype(dtype)


def shortest_path(
    distances: RowsLike,
    source: VertexOrPlace,
    target: VertexOrPlace,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
    crs: Any = None,
) -> Path:
    """Return one shortest path. For many paths, `PathFinder` is faster; `PathFinder.path` lists the errors.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    source, target : vertices by label (by position if the graph has no labels), as text or int; or by position, as
        "#17" or ``tilepath.positions(17)``; or places, as (lon, lat), which are moved to the nearest vertex
        (`tilepath.od` says in which coordinates; `tilepath.vertices_at` says how far they are moved)
    crs : coordinate system of the places, as for `tilepath.od`

    Returns
    -------
    Path
        The path, with its distance, the names of its vertices, and its geometry (`Path.to_geodataframe`). Its
        `vertices` are positions. In a graph with turns they are vertices of the road network.

    Examples
    --------
    >>> path = tilepath.shortest_path(graph, "Rome", "Genoa")
    >>> path.distance, graph.names(path.vertices)
    (515, ['Rome', 'Pisa', 'Genoa'])
    """
    return PathFinder(distances, graph, crs).path(source, target)


def paths_of_pairs(
    distances: RowsLike,
    pairs: PairsLike,
    *,
    out: str | os.PathLike[str] | None = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> pa.Table:
    """Return distances and shortest paths of a table of pairs; each row of the matrix is read once.

    From a hierarchy store, no row is computed for few pairs. The distances are the same. Among paths of float weights
    that are equally long up to rounding, the path of a pair may then depend on the number of pairs.

    Parameters
    ----------
    distances, graph : as for `PathFinder`
    pairs : array or list (P, 2) of names, as text or ints, or `tilepath.positions` of such an array; or table or file
        (.csv, .tsv, .csv.gz, .tsv.gz, .parquet) with the columns `source` and `target`. An entry names a vertex as on
        the command line, whether it is text or a whole number
    out : path of a table to write (.csv, .tsv, .csv.gz, .tsv.gz, .parquet)
    overwrite : replace an existing file at `out`

    Returns
    -------
    pyarrow.Table
        One row per pair, in order, with the columns `source`, `target`, `distance`, `hops` and `path`; `distance`,
        `hops` and `path` are null for a pair without a path. Vertices are named by their labels, or by their positions
        as text if the graph has no labels. `path` is a list; in CSV it is a text, joined by spaces.

    Raises
    ------
    ValueError
        A vertex does not exist or has no row in the store (the message names the row of the table, counted from 1
        without the header), or a file has another suffix.
    FileExistsError
        `out` exists already.
    VerificationError
        The distances do not belong to the graph.
    tilepath.DoesNotFitError
        `distances` is a graph, and there are too many sources to search from; the message says what to do.

    Examples
    --------
    >>> table = tilepath.paths_of_pairs(distances, [("Rome", "Genoa"), ("Pisa", "Milan")])
    >>> table["distance"].to_pylist()
    [515, 315]
    """
    if out is not None:
        check_output(out, overwrite, pairs if isinstance(pairs, str | os.PathLike) else None)
    finder = PathFinder(distances, graph)
    given = read_pairs(pairs, finder.graph)
    assert given.sources is not None
    walks = walks_of_pairs(finder, given.sources, given.targets, given.name)
    table = table_of_walks(finder.graph, given.sources, given.targets, walks)
    if out is not None:
        write_table(table, out, overwrite)
    return table


def walks_of_pairs(finder: PathFinder, sources: np.ndarray, targets: np.ndarray, name: str = "pairs") -> Walks:
    """Return distances and shortest paths of pairs of vertices, int64 (P) each; messages call the pairs `name`.

    From a hierarchy store, no row is computed for few pairs.
    """
    rows, store = rows_of(finder.distances, sources, finder.graph, name), finder.distances
    few = isinstance(store, HierarchyStore) and _few(len(rows), len(np.unique(rows)), store.n)

    def read(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        yield from [(0, rows)] if few else store.rows(rows)

    def walk(row: Any, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        source = int(sources[pairs[0]])
        return finder.paths(source, finder.row_of(source) if few else row, targets[pairs])

    return walk_pairs(rows, read, walk, store.dtype)


def _few(pairs: int, sources: int, n: int) -> bool:
    """Return whether paths from a hierarchy are found faster without whole rows.

    The time of a path grows with its number of arcs, about the square root of n in a road network.
    """
    return pairs * ROUTE_WORK * math.sqrt(n) <= (sources + TABLES_WORK) * n


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
    sources : (S) vertices by label (by position if the graph has no labels), as text or int; or by position, as "#17"
        or ``tilepath.positions([17])``

    Returns
    -------
    (S, n) int32 array, int64 if the graph's indices are int64
        Positions of vertices, which `Graph.names` turns into names; -1 at the source and at vertices that it does not
        reach.

    Raises
    ------
    StoreError, VerificationError
        As `PathFinder.path`.

    Examples
    --------
    >>> tilepath.predecessors(distances, ["Rome"]).tolist()
    [[-1, 0, 1, 0]]
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


@no_type_check
def _distances(row, vertices, found):
    """Fill `found` with the distances to some vertices, from a row or from a source that climbed. In compiled code."""


@overload(_distances)
@no_type_check
def _compiled_distances(row, vertices, found):
    if not isinstance(row, types.Array):
        return lambda row, vertices, found: distances_to(row, vertices, found)

    def gather(row, vertices, found):
        for i in range(len(vertices)):
            found[i] = row[vertices[i]]

    return gather


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
@recompiled_with_imports
@no_type_check
def _walk_back(in_arcs, row, lengths, reached, unreachable, source, targets, relative_ladder, absolute_ladder):
    n = in_arcs[0].size - 1
    hops, paths, used = np.empty(targets.size, np.int64), np.empty(64 + n, np.int64), 0
    # One stack serves all targets. Only the memory that a path needs is touched: paths are short, and graphs are large.
    stack, cursor, visited = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    work = stack, cursor, visited, np.empty(n, lengths.dtype)
    for i in range(targets.size):
        hops[i] = UNREACHABLE
        if not reached[i]:
            continue
        ends = source, targets[i], lengths[i]
        for relative, absolute in zip(relative_ladder, absolute_ladder):  # noqa: B905  (unknown to Numba)
            hops[i] = _search(in_arcs, row, unreachable, ends, relative, absolute, work)
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


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
@recompiled_with_imports
@no_type_check
def _search(in_arcs, row, unreachable, ends, relative, absolute, work):
    """Leave a path from target back to source in the stack; returns its number of arcs, or UNATTAINED."""
    indptr, tails, weights, through = in_arcs
    stack, cursor, visited, lengths = work
    source, stack[0], lengths[0] = ends
    visited[0], cursor[0], count = stack[0], -1, 1
    slots, near = np.full(1024, -1), np.empty(16, lengths.dtype)  # slots: hash table of positions in `visited`
    slots[_slot(slots, visited, visited[0])] = 0
    top = 0
    while top >= 0:
        v, length = stack[top], lengths[top]
        if v == source:
            return top
        first, last = cursor[top] < 0, indptr[v + 1]
        # At first compare all in-arcs; after a dead end take the next tight arc.
        begin = indptr[v] if first else cursor[top]
        end = last if first else min(begin + 1, last)
        if end - begin > near.size:
            near = np.empty(end - begin, lengths.dtype)
        _distances(row, tails[begin:end], near)
        best, best_gap, best_length = -1, length, length
        tolerance = relative * abs(length) + absolute
        for arc in range(begin, end):
            u, there = np.int64(tails[arc]), near[arc - begin]  # one type of numbers: `_slot` is compiled once
            if there == unreachable or not (u == source or through[u]) or slots[_slot(slots, visited, u)] >= 0:
                continue
            gap = abs(there + weights[arc] - length)
            if gap > tolerance:
                continue
            if best < 0 or gap < best_gap or (gap == best_gap and there < best_length):
                best, best_gap, best_length = u, gap, there
        cursor[top] = indptr[v] if first else end
        if best >= 0:
            top += 1
            stack[top], cursor[top], lengths[top], visited[count] = best, -1, best_length, best
            slots[_slot(slots, visited, visited[count])] = count
            count += 1
        elif first or end == last:
            top -= 1
        if 2 * count > slots.size:
            slots = np.full(2 * slots.size, -1)
            for i in range(count):
                slots[_slot(slots, visited, visited[i])] = i
    return UNATTAINED


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
@recompiled_with_imports
@no_type_check
def _slot(slots, visited, v):
    """Return the slot that has the position of v in `visited`, or the empty slot where it belongs."""
    slot = ((v * 0x9E3779B1) >> 16) & (slots.size - 1)
    while slots[slot] >= 0 and visited[slots[slot]] != v:
        slot = (slot + 1) & (slots.size - 1)
    return slot
