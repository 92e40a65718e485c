"""Tables of pairs of vertices and of the paths between them. Paths of pairs with the same row are found together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.tables import column_vertices, number_field, read_columns, select_columns, vertex_names
from pipelines.routes.distances import Rows
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.paths import Paths
from pipelines.stores.vertex_names import Positions

PairsLike: TypeAlias = np.ndarray | Sequence[Sequence[str | int]] | Positions | pa.Table | str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of vertices, made by `read_pairs`."""

    sources: np.ndarray | None  # int64 (P); None if the table has no sources
    targets: np.ndarray  # int64 (P)
    name: str  # name of the table in messages

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True, eq=False)
class Walks:
    """Paths of pairs, made by `walk_pairs`."""

    distances: np.ndarray  # (P), undefined for a pair without a path
    hops: np.ndarray  # int64 (P), number of arcs of the path, negative for a pair without a path
    paths: pa.LargeListArray  # (P), the vertices of each path; empty for a pair without a path

    def begins(self) -> np.ndarray:
        """Return the first vertex of each path, int64 (P), -1 for a pair without a path."""
        begins = np.full(len(self.hops), -1, np.int64)
        there = self.hops >= 0
        lengths = np.where(there, self.hops + 1, 0)
        begins[there] = self.paths.flatten().to_numpy()[(np.cumsum(lengths) - lengths)[there]]
        return begins


def read_pairs(pairs: PairsLike, graph: Graph, *, sources_optional: bool = False) -> Pairs:
    """Read pairs of vertices: an array of names (P, 2), or the columns `source` and `target` of a table or file.

    Raises
    ------
    ValueError
        A column is missing, or an entry is not a vertex; the message names the row.
    """
    if isinstance(pairs, np.ndarray | Positions | Sequence) and not isinstance(pairs, str):
        given = pairs.indices if isinstance(pairs, Positions) else np.asarray(pairs)
        given = given.reshape(-1, 2) if given.shape == (0,) else given
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"pairs have the shape {given.shape}; pass an array of shape (P, 2)")
        wrap = Positions if isinstance(pairs, Positions) else np.asarray
        sources, targets = (graph.vertices(wrap(given[:, i]), what) for i, what in enumerate(("source", "target")))
        return Pairs(sources, targets, "pairs")
    optional = ("source",) if sources_optional else ()
    columns = ("source", "target")
    name = "pairs" if isinstance(pairs, pa.Table) else os.fspath(pairs)
    if isinstance(pairs, pa.Table):
        table = select_columns(pairs, columns, name, optional)
    else:
        table = read_columns(pairs, columns, optional)
    there = "source" in table.column_names
    begins = column_vertices(table["source"], graph, name) if there else None
    return Pairs(begins, column_vertices(table["target"], graph, name), name)


def rows_of(store: Rows | Paths, sources: np.ndarray, graph: Graph, table: str | None = None) -> np.ndarray:
    """Return the row of `store` for each source, int64; StoreError names the first source without a row."""
    held = store.sources if isinstance(store, Paths) else store.row_vertices()
    row_of_vertex = np.full(store.n, -1, dtype=np.int64)
    row_of_vertex[held] = np.arange(len(held))
    rows = row_of_vertex[sources]
    for i in np.flatnonzero(rows < 0)[:1]:
        where = "" if table is None else f"{table}, row {i + 1}: "
        kind = "paths" if isinstance(store, Paths) else "distances"
        raise StoreError(
            f"{where}{store.path}: holds the {kind} from {len(held):,} of {store.n:,} vertices only; "
            f"vertex {graph.label(sources[i])} is not among them"
        )
    return np.zeros_like(rows) if isinstance(store, Paths) and store.together else rows


def walk_pairs(
    rows: np.ndarray,
    read: Callable[[np.ndarray], Iterator[tuple[int, Iterable[Any]]]],
    walk: Callable[[Any, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    dtype: np.dtype,
) -> Walks:
    """Return the paths of pairs.

    Parameters
    ----------
    rows : (P) the row of the store that each pair needs
    read : function that reads rows, given in ascending order, and yields batches: (position of the first row, rows)
    walk : function of a row and the numbers of pairs with this row; returns their distances, their numbers of arcs
        (negative for a pair without a path), and the vertices of all their paths, one path after the other
    dtype : dtype of the distances
    """
    order = np.argsort(rows, kind="stable")
    needed, starts = np.unique(rows[order], return_index=True)
    groups = np.split(order, starts[1:])
    distances, hops = np.empty(len(rows), dtype), np.empty(len(rows), np.int64)
    walked = [np.empty(0, np.int64)]

    def walk_group(row: Any, group: np.ndarray) -> np.ndarray:
        distances[group], hops[group], vertices = walk(row, group)
        return vertices

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start, block in read(needed):
            block = list(block)
            walked += pool.map(walk_group, block, groups[start : start + len(block)])
    offsets = np.concatenate([[0], np.cumsum(np.where(hops[order] < 0, 0, hops[order] + 1))])
    in_order = pa.LargeListArray.from_arrays(offsets, pa.array(np.concatenate(walked)))
    return Walks(distances, hops, in_order.take(pa.array(np.argsort(order))))


def table_of_walks(graph: Graph, sources: np.ndarray, targets: np.ndarray, walks: Walks) -> pa.Table:
    """Return a table with the columns source (null if negative), target, distance, hops and path.

    Vertices are given by their names, and the path of a graph with turns by its vertices in the road network. The unit
    of the weights is metadata of the column distance.
    """
    none, begins = walks.hops < 0, vertex_names(graph, np.maximum(sources, 0))
    hops, vertices = walks.hops, walks.paths.flatten().to_numpy()
    if (junctions := graph.junctions()) is not None:
        hops, vertices, _ = junctions.roads_of(hops, vertices)
    flat = vertex_names(graph, slice(graph.road_vertices)).take(pa.array(vertices))
    lengths = np.where(none, 0, hops + 1)
    path = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]), flat)
    table = pa.table(
        {
            "source": pc.if_else(pa.array(sources >= 0), begins, pa.scalar(None, begins.type)),
            "target": vertex_names(graph, targets),
            "distance": pa.array(walks.distances, mask=none),
            "hops": pa.array(hops, mask=none),
            "path": pc.if_else(pa.array(none), pa.scalar(None, path.type), path),
        }
    )
    distance = number_field("distance", walks.distances.dtype, graph.unit)
    return table.cast(table.schema.set(table.schema.get_field_index("distance"), distance))
