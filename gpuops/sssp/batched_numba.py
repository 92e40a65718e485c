"""Many separate searches that share the reads of arcs, on a CPU.

First each thread runs one search at a time, which opens windows until pulls are due. On grids and roads pulls never
become due, and the searches are done. In other graphs pulls take most of the time, because every unsettled row has to
be fetched from memory. So all searches pull together, and the distances of each search form a column: an arc is read
once and leads to a row with the distances of all searches, and a few vector instructions take the minimum of two rows.
The few vertices that still change in the end relax their arcs for all searches together, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import by_parts, for_all
from gpuops.numbers import outside_infinity
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.pulls_numba import pull, pull_rows
from gpuops.sssp.search_numba import Scratch, Search
from gpuops.sssp.sources_numba import Begins

_TILE = 16  # vertices whose distances fill a cache line of each row
_STREAM = 16  # cost of transposing a distance, in relaxations of a dense matrix


def batch(graph: Any, sources: np.ndarray) -> np.ndarray:
    """Return the shortest distances from each of some sources, (k, n), all in the original numbering.

    Parameters
    ----------
    graph : SearchGraph
        In NumPy arrays, without negative weights.
    sources : (k,) array of int

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    k, infinity, begins_at = len(sources), outside_infinity(graph.dtype), graph.rank[sources]
    rows = np.empty((k, graph.n), graph.dtype)
    floors, lasts = np.full((2, k), infinity, graph.dtype)
    begins: list[Begins] = [(np.empty(0, np.int64), floors[:0])] * k
    spare: list[Scratch] = []  # memory of finished searches

    def begin(number: int) -> None:
        rows[number] = infinity
        rows[number, begins_at[number]] = 0
        try:
            scratch = spare.pop()
        except IndexError:
            scratch = Scratch.of(graph)
        search = Search(graph, rows[number], scratch=scratch)
        pulls = search.push()
        spare.append(scratch)
        floors[number] = search.floor
        lasts[number] = search.last if pulls else infinity  # all distances are final
        begins[number] = search.begins

    for_all(begin, range(k), 2**40)
    spare.clear()
    columns = np.empty((graph.n, k), graph.dtype)
    _turn(_to_columns, rows, columns, graph.rank)
    if (lasts < infinity).any():
        changed, _ = pull(graph, pull_rows, columns, floors, lasts)
        if graph.through is not None:
            changed &= graph.through
        queue = np.flatnonzero(changed).astype(np.int32)
        _push(graph.indptr, graph.indices, graph.weights, columns, queue, changed, graph.through)
    for_all(lambda number: refuse_overflow(graph, columns[:, number], begins[number]), range(k), _STREAM * columns.size)
    _turn(_to_rows, rows, columns, graph.rank)
    return rows


def _turn(turn: Callable[..., None], rows: np.ndarray, columns: np.ndarray, rank: np.ndarray) -> None:
    """Call `turn` for ranges of vertices, in threads."""
    by_parts(lambda part: turn(rows, columns, rank, part.start, part.stop), len(columns), _STREAM * columns.size)


@entry
def _to_columns(rows, columns, rank, first, last):
    for start in range(first, last, _TILE):
        for search in range(rows.shape[0]):
            for vertex in range(start, min(start + _TILE, last)):
                columns[vertex, search] = rows[search, vertex]


@entry
def _to_rows(rows, columns, rank, first, last):
    for start in range(first, last, _TILE):
        for search in range(rows.shape[0]):
            for vertex in range(start, min(start + _TILE, last)):
                rows[search, vertex] = columns[rank[vertex], search]


@entry
def _push(indptr, indices, weights, distances, queue, changed, through):
    """Relax the arcs of vertices that changed, which are in `queue`, round by round, until no vertex changes."""
    n, searches = distances.shape
    following = np.empty(n, np.int32)
    while queue.size:
        changed[queue] = False
        size = 0
        for tail in queue:
            row = distances[tail]
            for arc in range(indptr[tail], indptr[tail + 1]):
                weight, head = weights[arc], indices[arc]
                known = distances[head]
                nearer = 0
                for column in range(searches):
                    nearer += row[column] + weight < known[column]
                if not nearer:
                    continue
                for column in range(searches):
                    distance = row[column] + weight
                    known[column] = distance if distance < known[column] else known[column]
                if not changed[head] and (through is None or through[head]):
                    changed[head] = True
                    following[size] = head
                    size += 1
        queue = following[:size].copy()
