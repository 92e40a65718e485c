"""Tables of pairs of vertices, and of the paths between them; pairs that share a row of a store are walked together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.answers.tables import column_vertices, read_columns, select_columns, vertex_names
from pipelines.stores import Graph, Paths, StoreError
from pipelines.stores.solutions import Solution

PairsLike: TypeAlias = np.ndarray | pa.Table | str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of vertices, made by `read_pairs`."""

    sources: np.ndarray | None  # int64 (P); None where the table leaves them out
    targets: np.ndarray  # int64 (P)
    name: str  # of the table, in messages

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True, eq=False)
class Walks:
    """Paths of pairs, made by `walk_pairs`."""

    distances: np.ndarray  # (P), meaningless where there is no path
    hops: np.ndarray  # int64 (P), negative where there is no path
    paths: pa.LargeListArray  # (P) of vertices; empty where there is no path

    def begins(self) -> np.ndarray:
        """The vertex that each path begins at, int64 (P), -1 where there is no path."""
        begins = np.full(len(self.hops), -1, np.int64)
        there = self.hops >= 0
        lengths = np.where(there, self.hops + 1, 0)
        begins[there] = self.paths.flatten().to_numpy()[(np.cumsum(lengths) - lengths)[there]]
        return begins


def read_pairs(pairs: PairsLike, graph: Graph, *, sources_optional: bool = False) -> Pairs:
    """The vertices of an array (P, 2), of indices or names, or of the columns `source` and `target` of a table or file.

    Raises
    ------
    ValueError
        A column is missing, or an entry names no vertex; the message says in which row.
    """
    if isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"pairs have the shape {pairs.shape}; pass an array of shape (P, 2)")
        if pairs.dtype.kind in "iu":
            return Pairs(_indices(pairs[:, 0], graph), _indices(pairs[:, 1], graph), "pairs")
        if pairs.dtype.kind not in "UT":
            raise ValueError(f"pairs are {pairs.dtype}; pass an array of integers (indices) or of text (names)")
        pairs = pa.table({"source": pairs[:, 0].tolist(), "target": pairs[:, 1].tolist()})
    optional = ("source",) if sources_optional else ()
    columns = ("source", "target")
    name = "pairs" if isinstance(pairs, pa.Table) else os.fspath(pairs)
    if isinstance(pairs, pa.Table):
        table = select_columns(pairs, columns, name, optional)
    else:
        table = read_columns(pairs, columns, optional)
    there = "source" in table.column_names
    sources = column_vertices(table["source"], graph, name) if there else None
    return Pairs(sources, column_vertices(table["target"], graph, name), name)


def rows_of(store: Solution | Paths, sources: np.ndarray, graph: Graph, table: str | None = None) -> np.ndarray:
    """The row of `store` for each source, int64; StoreError names the first that has none."""
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
    """The paths of pairs.

    Parameters
    ----------
    rows : (P) the row of the store that each pair needs
    read : reads rows, given in rising order, in batches: (position of the first, the rows)
    walk : finds the paths of some pairs from a row: their distances, their arcs (negative: no path), and the vertices
        of all paths in a row
    dtype : of the distances
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
    """The columns source (null where negative), target, distance, hops and path, vertices by their names."""
    names, none = vertex_names(graph), walks.hops < 0
    flat = names.take(walks.paths.flatten())
    lengths = np.where(none, 0, walks.hops + 1)
    path = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]), flat)
    return pa.table(
        {
            "source": names.take(pa.array(sources, mask=sources < 0)),
            "target": names.take(pa.array(targets)),
            "distance": pa.array(walks.distances, mask=none),
            "hops": pa.array(walks.hops, mask=none),
            "path": pc.if_else(pa.array(none), pa.scalar(None, path.type), path),
        }
    )


def _indices(column: np.ndarray, graph: Graph) -> np.ndarray:
    for row in np.flatnonzero((column < 0) | (column >= graph.n))[:1].tolist():
        try:
            graph.vertex(int(column[row]))
        except StoreError as error:
            raise ValueError(f"pairs, row {row + 1}: {error}") from None
    return column.astype(np.int64)
