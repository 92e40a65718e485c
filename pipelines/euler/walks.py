"""The vertices along the walks of a circuits store, and a table of the walks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pipelines.exports import export_store
from pipelines.files.tables import check_output, vertex_names
from pipelines.stores.circuits import Circuits
from pipelines.stores.graph import Graph

_PIECE = 1 << 16  # vertices of a walk read at a time


@dataclass(frozen=True)
class Ends:
    """The first and the last vertices of a walk; `skipped` vertices lie between them."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    skipped: int


def walk_ends(circuits: Circuits, graph: Graph, shown: int, walks: int) -> list[Ends]:
    """Return the vertices along the first `walks` walks, in order.

    Of a walk of more than `shown` vertices, only about `shown` vertices are returned, half of them from either end.
    """
    offsets = circuits.offsets()[: walks + 1]
    indptr = graph.indptr()
    ends = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        vertices = end - begin + 1
        half = vertices if vertices <= shown else max(1, shown // 2)
        first = _vertices(circuits, graph, indptr, begin, min(begin + half, end + 1), end)
        last = _vertices(circuits, graph, indptr, end + 1 - half, end + 1, end) if half < vertices else ()
        ends.append(Ends(first, last, vertices - len(first) - len(last)))
    return ends


def walk_names(circuits: Circuits, graph: Graph) -> Iterator[Iterator[list[str]]]:
    """Yield an iterator for each walk, which yields the names of its vertices in order, in pieces.

    Read the pieces of a walk before the next walk.
    """
    offsets, indptr, names = circuits.offsets().tolist(), graph.indptr(), vertex_names(graph).cast(pa.large_string())

    def pieces(begin: int, end: int) -> Iterator[list[str]]:
        for start in range(begin, end + 1, _PIECE):
            stop = min(start + _PIECE, end + 1)
            yield names.take(pa.array(_vertices(circuits, graph, indptr, start, stop, end), pa.int64())).to_pylist()

    for begin, end in pairwise(offsets):
        yield pieces(begin, end)


def _vertices(circuits: Circuits, graph: Graph, indptr: np.ndarray, start: int, stop: int, end: int) -> tuple[int, ...]:
    """Return the vertices at the positions `start` to `stop` (excluded) of a walk.

    Positions count the arcs of all walks. The vertex at a position is the tail of the arc at this position. The last
    vertex of the walk, the head of its last arc, is at the position `end`, after the arcs of the walk.
    """
    arcs = circuits.arcs(start, min(stop, end))
    vertices = (indptr.searchsorted(arcs, side="right") - 1).tolist()
    if stop > end:
        last = int(circuits.arcs(end - 1, end)[0])
        vertices.append(int(graph.indices(last, last + 1)[0]))
    return tuple(vertices)


def write_walks(circuits: Circuits, graph: Graph, out: str | os.PathLike[str], overwrite: bool = False) -> int:
    """Write a table of all walks, with one row for each arc in walking order; return the number of rows.

    The table has the columns of `tilepath.export_store`: `circuit` from 0, `position` in the circuit, `arc` as its
    position in the graph store, and `source` and `target`, the labels of its tail and head.

    Raises
    ------
    ValueError, FileExistsError
        The name of `out` is not the name of a table, or `out` exists and may not be overwritten.

    Examples
    --------
    >>> tilepath.write_walks(circuits, ring, "walks.csv")
    3
    """
    check_output(out, overwrite)
    return export_store(circuits.path, out, graph=graph.path, overwrite=overwrite)
