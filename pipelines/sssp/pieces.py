"""A piece of a graph, laid out for searches: the arcs that leave a range of vertices.

A piece is a graph with its own numbering. Its vertices are the vertices of the range and, as *ghosts* without arcs, the
heads outside the range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuops.arrays import library_of
from gpuops.sssp.graph_layout import SearchGraph, search_graph

AT_A_TIME = 1 << 27  # arcs whose heads are renumbered at a time


@dataclass(frozen=True)
class Piece:
    """The arcs that leave the vertices `first` to `last` (excluded), laid out for searches."""

    first: int
    last: int
    graph: SearchGraph
    vertices: Any  # (local n), the vertex of each number in `graph`: first the range, then the ghosts
    places: Any  # (local n), `vertices` in the internal order of `graph`

    def moved(self, move: Callable[[Any], Any]) -> Piece:
        """Return the piece with every array moved to the device or to the host."""
        arrays = {name: move(part) for name, part in vars(self.graph).items() if hasattr(part, "dtype")}
        return replace(
            self, graph=replace(self.graph, **arrays), vertices=move(self.vertices), places=move(self.places)
        )


def lay_out_piece(n: int, first: int, last: int, rows: Any, dtype: np.dtype, through: Any, reverse: bool) -> Piece:
    """Return the piece with the arcs that leave the vertices `first` to `last` (excluded) of a graph of n vertices.

    Parameters
    ----------
    rows : the arcs in CSR; the arrays may be changed
    through : bool (n), the vertices that may lie inside a path; None if all may
    reverse : whether to lay out the transpose, too
    """
    indptr, heads, weights = rows
    xp = library_of(heads)
    parts = [slice(a, a + AT_A_TIME) for a in range(0, len(heads), AT_A_TIME)]
    number = xp.zeros(n, dtype=np.int32)
    for part in parts:
        number[heads[part]] = 1
    number[first:last] = 0
    ghosts = xp.flatnonzero(number).astype(np.int32)
    vertices = xp.concatenate([xp.arange(first, last, dtype=np.int32), ghosts])
    number[vertices] = xp.arange(len(vertices), dtype=np.int32)
    for part in parts:
        heads[part] = number[heads[part]]
    del number
    graph = search_graph(
        xp.concatenate([indptr, xp.full(len(ghosts), len(heads), dtype=np.int64)]),
        heads,
        weights,
        dtype=dtype,
        through=None if through is None else through[vertices],
        reverse=reverse,
    )
    return Piece(first, last, graph, vertices, vertices[graph.order])
