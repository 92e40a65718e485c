"""Many separate searches that share the reads of arcs, on a CPU: a column of distances for each.

Each search opens windows by itself, a search to a thread, until it takes less to pull; where nothing is pulled, on
grids and roads, that is all. Pulls are what takes time elsewhere, since every row that is not settled has to be
fetched. So then all searches pull together: a row is read once, and what its arcs lead to is a row of distances, of
which a few vector instructions take the minimum. The few vertices that still change in the end relax their arcs for
all searches too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpuops._threads import for_all
from gpuops.numbers import outside_infinity
from gpuops.sssp.overflow_numba import refuse_overflow
from gpuops.sssp.search_numba import Search, pull
from gpuops.sssp.sources_numba import Begins

_TILE = 1024  # vertices, so that what is turned stays in the caches
_STREAM = 16  # what turning a distance takes, in relaxations of a dense matrix


def batched(graph: Any, distances: np.ndarray) -> int:
    """Improve many separate searches.

    Parameters
    ----------
    graph : SearchGraph
        In NumPy arrays, without negative weights.
    distances : (n, k) array
        A column for every search, the rows contiguous; changed in place. Each vertex that a search has reached relaxes
        its arcs.

    Returns
    -------
    int
        Number of rounds.

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    k, infinity = distances.shape[1], outside_infinity(graph.dtype)
    columns = np.empty((k, graph.n), graph.dtype)
    transpose(distances, columns)
    floors, lasts = np.full((2, k), infinity, graph.dtype)
    rounds: list[int] = [0] * k
    begins: list[Begins] = [(np.empty(0, np.int64), floors[:0])] * k

    def begin(column: int) -> None:
        search = Search(graph, columns[column])
        pulls = search.push()
        floors[column] = search.floor
        lasts[column] = search.last if pulls else infinity  # all of it is final
        rounds[column], begins[column] = search.rounds, search.begins

    for_all(begin, range(k), 2**40)
    transpose(columns, distances)
    total = sum(rounds)
    if (lasts < infinity).any():
        changed, passes = pull(graph, _pull_rows, distances, floors, lasts)
        if graph.through is not None:
            changed &= graph.through
        total += passes + _push(graph.indptr, graph.indices, graph.weights, distances, changed, graph.through, infinity)
    for column, starts in zip(distances.T, begins, strict=True):
        refuse_overflow(graph, column, starts)
    return total


def transpose(source: np.ndarray, target: np.ndarray) -> None:
    """target = source.T, in tiles that stay in the caches."""
    columns_first = source.shape[0] < source.shape[1]

    def turn(start: int) -> None:
        tile = slice(start, start + _TILE)
        if columns_first:
            target[tile] = source[:, tile].T
        else:
            target[:, tile] = source[tile].T

    for_all(turn, range(0, max(source.shape), _TILE), _STREAM * source.size)


def turn_columns(columns: np.ndarray, rank: np.ndarray, rows: np.ndarray) -> None:
    """rows = columns[rank].T, by threads."""

    def turn(start: int) -> None:
        tile = slice(start, start + _TILE)
        rows[:, tile] = columns[rank[tile]].T

    for_all(turn, range(0, len(rank), _TILE), _STREAM * columns.size)


@njit(nogil=True, cache=True)
def _pull_rows(
    in_indptr, in_indices, in_weights, in_lightest, through, distances, changed, floors, lasts, infinity,
    first_vertex, last_vertex,
):  # fmt: skip
    """`gpuops.sssp.search_numba.pull_rows` for rows of distances."""
    unsettled, nearer, searches = 0, 0, distances.shape[1]
    best, bars = np.empty_like(floors), np.empty_like(floors)
    for head in range(first_vertex, last_vertex):
        known = distances[head]
        changed[head] = False
        lightest = in_lightest[head]
        settled, hopeless = 0, 0
        for column in range(searches):
            best[column] = known[column]
            settled += known[column] <= lasts[column]
            # Sums that do not fall below its bar cannot improve a column; where it is settled, none can.
            bars[column] = floors[column] if known[column] <= lasts[column] else known[column]
            hopeless += floors[column] + lightest >= bars[column]
        if settled == searches:
            continue
        unsettled += 1
        if hopeless == searches:
            continue
        for arc in range(in_indptr[head], in_indptr[head + 1]):
            weight = in_weights[arc]
            hopeless = 0
            for column in range(searches):
                hopeless += floors[column] + weight >= bars[column]
            if hopeless == searches:
                break
            tail = in_indices[arc]
            if not through[tail]:
                continue
            row = distances[tail]
            for column in range(searches):
                distance = row[column] + weight
                best[column] = distance if distance < best[column] else best[column]
                bars[column] = best[column] if best[column] < bars[column] else bars[column]
        improved = 0
        for column in range(searches):
            improved += best[column] < known[column]
            known[column] = best[column]
        if improved:
            changed[head] = True
            nearer += 1
    return unsettled, nearer


@njit(nogil=True, cache=True)
def _push(indptr, indices, weights, distances, changed, through, infinity):
    """Relax the arcs of vertices that changed, by rounds, until nothing does."""
    n, searches = distances.shape
    queue, following = np.flatnonzero(changed).astype(np.int32), np.empty(n, np.int32)
    rounds = 0
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
        rounds += 1
    return rounds
