"""Numba kernels of the elimination order: list neighbours, and eliminate vertices of small degree in rounds."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry, inner

_FEW = 0.01  # the rounds end when one removes a smaller share of the remaining vertices


@entry
def pattern(indptr, indices, reverse_starts, tails, number, size):
    """Return the neighbours of the `size` vertices whose `number` is not -1, in CSR with these numbers.

    The neighbours of a vertex are the other ends of its arcs in either direction, each once, without the vertex itself.
    """
    starts, neighbours = np.empty(size + 1, np.int64), np.empty(2 * len(indices), np.int32)
    seen = np.full(len(number), -1, np.int32)
    row, count = 0, 0
    starts[0] = 0
    for vertex in range(len(number)):
        if number[vertex] < 0:
            continue
        seen[vertex] = vertex
        for arc in range(indptr[vertex], indptr[vertex + 1]):
            other = indices[arc]
            if seen[other] != vertex and number[other] >= 0:
                seen[other], neighbours[count] = vertex, number[other]
                count += 1
        for arc in range(reverse_starts[vertex], reverse_starts[vertex + 1]):
            other = tails[arc]
            if seen[other] != vertex and number[other] >= 0:
                seen[other], neighbours[count] = vertex, number[other]
                count += 1
        row += 1
        starts[row] = count
    return starts, neighbours[:count].copy()


@entry
def peel(starts, neighbours):
    """Eliminate vertices of degree 2 and less, in rounds. No two neighbours are eliminated in the same round.

    When a vertex with two neighbours is eliminated, they become neighbours of each other. Returns the eliminated
    vertices in order, the remaining vertices, and the degrees. `neighbours` is changed: for a remaining vertex v, the
    first `degrees[v]` entries of its row are its remaining neighbours.
    """
    n = len(starts) - 1
    degrees = (starts[1:] - starts[:-1]).astype(np.int32)
    order, rest = np.empty(n, np.int32), np.arange(n).astype(np.int32)
    touched, gone = np.full(n, -1, np.int32), np.zeros(n, np.bool_)
    count, left, turn = 0, n, 0
    while left > 0:
        before = count
        for i in range(left):
            vertex = np.int64(rest[i])  # so that one signature of `_replace` is compiled
            if degrees[vertex] > 2 or touched[vertex] == turn:
                continue
            gone[vertex], order[count] = True, vertex
            count += 1
            first, second, none = np.int64(-1), np.int64(-1), np.int64(-1)
            if degrees[vertex] > 0:
                first = np.int64(neighbours[starts[vertex]])
                touched[first] = turn
            if degrees[vertex] == 2:
                second = np.int64(neighbours[starts[vertex] + 1])
                touched[second] = turn
                if _replace(starts, neighbours, degrees, first, vertex, second):
                    _replace(starts, neighbours, degrees, second, vertex, first)
                    continue
                _replace(starts, neighbours, degrees, second, vertex, none)
            if first >= 0:
                _replace(starts, neighbours, degrees, first, vertex, none)
        kept = 0
        for i in range(left):
            if not gone[rest[i]]:
                rest[kept] = rest[i]
                kept += 1
        left, turn = kept, turn + 1
        if count - before < _FEW * left:
            break
    return order[:count], rest[:left].copy(), degrees


@inner
def _replace(starts, neighbours, degrees, vertex, old, new):
    """Replace the neighbour `old` of a vertex by `new`, or remove it if `new` is -1.

    Returns False, without a change, if `new` is a neighbour already.
    """
    begin, end = starts[vertex], starts[vertex] + degrees[vertex]
    place = begin
    for i in range(begin, end):
        if neighbours[i] == new:
            return False
        if neighbours[i] == old:
            place = i
    if new >= 0:
        neighbours[place] = new
    else:
        degrees[vertex] -= 1
        neighbours[place] = neighbours[end - 1]
    return True


@entry
def compress(starts, neighbours, degrees, rest):
    """Return the graph of the vertices in `rest` in CSR for METIS, each vertex numbered by its position in `rest`."""
    number = np.empty(len(starts), np.int32)
    size = 0
    for i in range(len(rest)):
        number[rest[i]] = i
        size += degrees[rest[i]]
    new_starts, new_neighbours = np.empty(len(rest) + 1, np.int64), np.empty(size, np.int32)
    new_starts[0], count = 0, 0
    for i in range(len(rest)):
        begin = starts[rest[i]]
        for j in range(begin, begin + degrees[rest[i]]):
            new_neighbours[count] = number[neighbours[j]]
            count += 1
        new_starts[i + 1] = count
    return new_starts, new_neighbours
