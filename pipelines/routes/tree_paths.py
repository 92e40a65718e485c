"""Read paths from a paths store: follow the predecessors from the target to the vertex without a predecessor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import no_type_check

import numpy as np
import pyarrow as pa
from numba import njit

from gpuops.numbers import outside_infinity
from pipelines.files.tables import check_output, write_table
from pipelines.places.at import VertexOrPlace, vertex_at
from pipelines.routes.pairs import PairsLike, Walks, read_pairs, rows_of, table_of_walks, walk_pairs
from pipelines.routes.paths import NoPathError
from pipelines.routes.route import Route
from pipelines.stores.distances import BATCH_BYTES
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.paths import Paths, open_paths

UNREACHABLE, CYCLE = -1, -2


def tree_path(
    paths: Paths | str | os.PathLike[str],
    source: VertexOrPlace | None,
    target: VertexOrPlace,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Route:
    """Return the path from `source` to `target` in a paths store.

    Parameters
    ----------
    paths : the store or its path
    source, target : vertices as for `tilepath.shortest_path`. If the store has one row, with the paths from the
        nearest of several sources, `source` may be None: the path begins at the nearest source
    graph : the graph or its path; by default the graph recorded in the store

    Raises
    ------
    NoPathError
        The target was not reached, or lies beyond the cutoff or the targets of the search.
    StoreError
        A vertex or its row does not exist, the path begins at another source, or the predecessors are damaged.

    Examples
    --------
    >>> path = tilepath.tree_path(trees, "Rome", "Genoa")
    >>> path.distance, graph.names(path.vertices)
    (515, ['Rome', 'Pisa', 'Genoa'])
    """
    paths, graph = _open(paths, graph)
    if source is None and not paths.together:
        raise StoreError(f"{paths.path}: holds a row for each source; name the source of the path")
    source = None if source is None else vertex_at(graph, source, "source")
    target = vertex_at(graph, target, "target")
    row = 0 if source is None else int(rows_of(paths, np.array([source]), graph)[0])
    distance = paths.distances((row, target))
    label = graph.label
    if distance == outside_infinity(paths.dtype):
        start = "any source" if source is None else f"vertex {label(source)}"
        kept = " within the limits of the search" if paths.cutoff is not None or paths.targets else ""
        raise NoPathError(f"no path leads from {start} to vertex {label(target)}{kept}")
    _, vertices = _follow(paths, graph, paths.predecessors(row), np.array([target]), np.array([True]))
    if source is not None and vertices[0] != source:
        raise _other_begin(paths, graph, source, vertices[0], target)
    if (junctions := graph.junctions()) is not None:
        vertices = junctions.roads_of(np.array([len(vertices) - 1]), vertices)[1]
    return Route(graph, tuple(vertices.tolist()), distance.item())


def tree_paths_of_pairs(
    paths: Paths | str | os.PathLike[str],
    pairs: PairsLike,
    *,
    out: str | os.PathLike[str] | None = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> pa.Table:
    """Return distances and shortest paths of a table of pairs; each row of the store is read once.

    Parameters
    ----------
    paths, graph : as for `tree_path`
    pairs, out, overwrite : as for `tilepath.paths_of_pairs`. If the store has the paths from the nearest of all
        sources, the column `source` may be left out

    Returns
    -------
    pyarrow.Table
        The columns of `tilepath.paths_of_pairs`. Without a column `source` in `pairs`, `source` is the first
        vertex of the path.

    Raises
    ------
    ValueError, FileExistsError
        As for `tilepath.paths_of_pairs`; or a path begins at another source than the pair names, as the store has
        only paths from the nearest source.

    Examples
    --------
    >>> tilepath.tree_paths_of_pairs(trees, [("Rome", "Pisa")])["distance"].to_pylist()
    [350]
    """
    if out is not None:
        check_output(out, overwrite, pairs if isinstance(pairs, str | os.PathLike) else None)
    paths, graph = _open(paths, graph)
    given = read_pairs(pairs, graph, sources_optional=paths.together)
    targets = given.targets
    if given.sources is None:
        rows = np.zeros(len(given), np.int64)
    else:
        rows = rows_of(paths, given.sources, graph, given.name)
    row_bytes = paths.n * (paths.dtype.itemsize + 4)

    def read(rows: np.ndarray) -> Iterator[tuple[int, Iterator[tuple[np.ndarray, np.ndarray]]]]:
        batch = max(1, BATCH_BYTES // max(1, row_bytes))
        for start in range(0, len(rows), batch):
            some = (rows[start : start + batch], slice(None))
            yield start, zip(paths.distances(some), paths.predecessors(some), strict=True)

    def walk(row: tuple[np.ndarray, np.ndarray], pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        distances = row[0][targets[pairs]]
        reached = distances != outside_infinity(paths.dtype)
        return distances, *_follow(paths, graph, row[1], targets[pairs], reached)

    walks = walk_pairs(rows, read, walk, paths.dtype)
    table = table_of_walks(graph, _sources(paths, graph, given.sources, walks, targets, given.name), targets, walks)
    if out is not None:
        write_table(table, out, overwrite)
    return table


def _open(paths: Paths | str | os.PathLike[str], graph: Graph | str | os.PathLike[str] | None) -> tuple[Paths, Graph]:
    paths = open_paths(paths)
    return paths, paths.graph(graph)


def _sources(
    paths: Paths, graph: Graph, asked: np.ndarray | None, walks: Walks, targets: np.ndarray, name: str
) -> np.ndarray:
    """Return the first vertices of the paths; StoreError if a path does not begin at the source of its pair."""
    begins = walks.begins()
    if asked is None:
        return begins
    for i in np.flatnonzero((walks.hops >= 0) & (begins != asked))[:1]:
        error = _other_begin(paths, graph, asked[i], begins[i], targets[i])
        raise StoreError(f"{name}, row {i + 1}: {error}")
    return asked


def _other_begin(paths: Paths, graph: Graph, source: int, begin: int, target: int) -> StoreError:
    """Return the error for a path that was requested from `source` but begins at `begin`."""
    label = graph.label
    if not paths.together:
        return StoreError(
            f"{paths.path}: predecessors do not lead to vertex {label(source)}; the store is damaged; compute it again"
        )
    return StoreError(
        f"{paths.path}: holds paths from the nearest source; nearest to vertex {label(target)} is "
        f"{label(begin)}, not {label(source)}; request the path from there"
    )


def _follow(
    paths: Paths, graph: Graph, predecessors: np.ndarray, targets: np.ndarray, reached: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of arcs of the path to each target, int64, and the vertices of all paths.

    The number is `UNREACHABLE` for a target that was not reached.
    """
    hops = _count(predecessors, targets, reached)
    for target in targets[hops == CYCLE][:1]:
        raise StoreError(
            f"{paths.path}: the predecessors of vertex {graph.label(target)} lead nowhere; compute it again"
        )
    return hops, _collect(predecessors, targets, hops)


@njit(nogil=True, cache=True)
@no_type_check
def _count(predecessors, targets, reached):
    hops = np.full(targets.size, UNREACHABLE, np.int64)
    for i in range(targets.size):
        if not reached[i]:
            continue
        v, count = targets[i], 0
        while 0 <= predecessors[v] < predecessors.size and count < predecessors.size:
            v, count = predecessors[v], count + 1
        hops[i] = count if predecessors[v] < 0 else CYCLE
    return hops


@njit(nogil=True, cache=True)
@no_type_check
def _collect(predecessors, targets, hops):
    vertices = np.empty((hops[hops >= 0] + 1).sum(), np.int64)
    used = 0
    for i in range(targets.size):
        v = targets[i]
        for step in range(hops[i], -1, -1):
            vertices[used + step] = v
            v = predecessors[v]
        used += max(hops[i] + 1, 0)
    return vertices
