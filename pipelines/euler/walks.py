"""Walks of a circuits store by their vertices, and as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pipelines.answers.tables import check_output, vertex_names, write_table
from pipelines.stores import Graph
from pipelines.stores.circuits import Circuits

_PIECE = 1 << 16  # vertices of a walk that are read at once


@dataclass(frozen=True)
class Ends:
    """The first and the last vertices of a walk; `skipped` vertices lie between them."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    skipped: int


def walk_ends(circuits: Circuits, graph: Graph, shown: int, walks: int) -> list[Ends]:
    """The vertices of the first `walks`, in order; of one with more than `shown` only so many, half from either end."""
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
    """For each walk, the names of all its vertices in order, in pieces; each walk is to be read before the next."""
    offsets, indptr, names = circuits.offsets().tolist(), graph.indptr(), vertex_names(graph)

    def pieces(begin: int, end: int) -> Iterator[list[str]]:
        for start in range(begin, end + 1, _PIECE):
            stop = min(start + _PIECE, end + 1)
            yield names.take(pa.array(_vertices(circuits, graph, indptr, start, stop, end), pa.int64())).to_pylist()

    for begin, end in pairwise(offsets):
        yield pieces(begin, end)


def _vertices(circuits: Circuits, graph: Graph, indptr: np.ndarray, start: int, stop: int, end: int) -> tuple[int, ...]:
    """The vertices at the places `start` to `stop` (excluded) of a walk whose last one is at `end`, after all arcs."""
    arcs = circuits.arcs(start, min(stop, end))
    vertices = (indptr.searchsorted(arcs, side="right") - 1).tolist()
    if stop > end:
        last = int(circuits.arcs(end - 1, end)[0])
        vertices.append(int(graph.indices(last, last + 1)[0]))
    return tuple(vertices)


def write_walks(circuits: Circuits, graph: Graph, out: str | os.PathLike[str], overwrite: bool = False) -> int:
    """Write a table of all walks, a row for each arc in walking order; returns how many rows.

    Its columns are `circuit` from 0, `arc` by its place in the graph store, and its ends, `tail` and `head`, by label.

    Raises
    ------
    ValueError, FileExistsError
        `out` is not a table by its name, or exists and may not be overwritten.
    """
    check_output(out, overwrite)
    arcs, offsets, names = circuits.arcs(), circuits.offsets(), vertex_names(graph)
    tails = graph.indptr().searchsorted(arcs, side="right") - 1
    table = {
        "circuit": pa.array(np.repeat(np.arange(circuits.count), np.diff(offsets))),
        "arc": pa.array(arcs),
        "tail": names.take(pa.array(tails)),
        "head": names.take(pa.array(graph.indices()[arcs])),
    }
    write_table(pa.table(table), out, overwrite)
    return len(arcs)
