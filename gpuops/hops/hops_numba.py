"""Breadth-first searches from many vertices on a CPU: the Numba half of `gpuops.hops`, 64 searches in each task."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from gpuops._compiled_numba import entry, inner
from gpuops._threads import for_all
from gpuops.arrays import contiguous
from gpuops.numbers import multiples, outside_infinity

Graph = tuple[np.ndarray, np.ndarray, np.ndarray]

_WORD = 64
# _BIT[bit * _DE_BRUIJN >> 58] is the number of a single set bit: for each bit, the multiplication moves six other bits
# of de Bruijn's sequence to the top.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.empty(_WORD, np.uint8)
_BIT[[(int(_DE_BRUIJN) << i) % 2**64 >> 58 for i in range(_WORD)]] = range(_WORD)
_DEEP = 32  # from so many levels on, searches share few arcs
_VISIT, _ARC = 128, 8  # cost of a vertex and of an arc for a word of searches, in relaxations of a dense matrix


def prepared(indptr: np.ndarray, indices: np.ndarray, through: np.ndarray | None, _: Any) -> Graph:
    """Return the graph as `rows` takes it; a CPU needs no transposed graph."""
    indptr = contiguous(indptr.astype(np.int64, copy=False))
    stops = indptr[1:] if through is None else np.where(through, indptr[1:], indptr[:-1])
    return indptr, stops, contiguous(indices.astype(np.int32, copy=False))


def rows(graph: Graph, sources: np.ndarray, length: Any, levels: int) -> tuple[np.ndarray, int]:
    """Return rows of distances for `gpuops.hop_distances`, (k, n), and the number of levels of the deepest search.

    The first search of a word is made alone. If it is deep, vertices are reached in different levels from different
    sources, so the other searches of the word would share few arcs, and are made alone, too.

    Parameters
    ----------
    graph : indptr (n + 1,), stops (n,), indices (m,)
        int64, int64, int32. The arcs out of v are ``indptr[v]`` to ``stops[v] - 1``, or to ``indptr[v + 1] - 1`` if the
        search begins at v.
    sources : (k,) int64
    length : scalar of the dtype of distances
        The length of every arc.
    levels : int
        Searches end after this number of levels.
    """
    values = multiples(length, levels)
    indptr, _, indices = graph
    n, k = len(indptr) - 1, len(sources)
    distances = np.empty((k, n), values.dtype)
    size = min(_WORD, -(-k // numba.config.NUMBA_NUM_THREADS))  # with few sources, all threads take some
    words = range(0, k, max(1, size))
    deepest = [0]

    def search(first: int) -> None:
        word = slice(first, min(first + size, k))
        deepest.append(_search_word(*graph, sources[word], values, outside_infinity(values.dtype), distances[word]))

    for_all(search, words, len(words) * (_VISIT * n + _ARC * len(indices)))
    return distances, max(deepest)


def trees(graph: Graph, sources: np.ndarray, distances: np.ndarray, length: np.number) -> np.ndarray:
    """Return rows of predecessors, (k, n) int32: for each vertex, the least tail of an arc on a shortest path.

    Parameters
    ----------
    graph, sources
        As for `rows`.
    distances : (k, n) array
        Distances of different levels must differ.
    length : scalar of the dtype of distances
    """
    found = np.full(distances.shape, -1, np.int32)
    infinity = outside_infinity(distances.dtype)

    def attach(row: int) -> None:
        _attach(*graph, sources[row], length, infinity, distances[row], found[row])

    for_all(attach, range(len(sources)), len(sources) * _ARC * (len(graph[1]) + len(graph[2])))
    return found


@entry
def _search_word(indptr, stops, indices, sources, values, infinity, distances):
    """Fill a row for each of up to 64 sources; returns the number of levels of the deepest search."""
    distances[:] = infinity
    queue = np.empty(len(indptr), np.int32)
    levels = _search_alone(indptr, stops, indices, sources[0], values, infinity, distances[0], queue)
    if levels <= _DEEP:
        return max(levels, _search(indptr, stops, indices, sources[1:], values, distances[1:]))
    for i in range(1, len(sources)):
        found = _search_alone(indptr, stops, indices, sources[i], values, infinity, distances[i], queue)
        levels = max(levels, found)
    return levels


@inner
def _search_alone(indptr, stops, indices, source, values, infinity, row, queue):
    """Fill a row, which is infinite, for one source; returns the number of levels."""
    row[source], queue[0] = values[0], source
    begin, size, levels = 0, 1, 1
    while begin < size and levels < len(values):
        end, value = size, values[levels]
        for place in range(begin, end):
            tail = queue[place]
            for arc in range(indptr[tail], stops[tail] if levels > 1 else indptr[tail + 1]):
                head = indices[arc]
                new = row[head] == infinity
                queue[size] = head
                size += new
                row[head] = value if new else row[head]
        levels += size > end
        begin = end
    return levels


@entry
def _attach(indptr, stops, indices, source, length, infinity, row, tree):
    """Fill the predecessors of a row of distances."""
    for tail in range(len(row) - 1, -1, -1):
        end = row[tail] + length
        if end >= infinity:
            continue
        for arc in range(indptr[tail], stops[tail] if tail != source else indptr[tail + 1]):
            head = indices[arc]
            tree[head] = tail if row[head] == end else tree[head]  # without a branch, which would be mispredicted


@inner
def _search(indptr, stops, indices, sources, values, distances):
    """Fill rows, which are infinite, for up to 64 sources, level by level; returns the number of levels."""
    n = len(indptr) - 1
    # Bit i of a vertex's word says whether the search of source i has been here, is here, or arrives in the next level.
    seen, here, coming = np.zeros(n, np.uint64), np.empty(n, np.uint64), np.zeros(n, np.uint64)
    queue, following = np.empty(n, np.int32), np.empty(n, np.int32)
    size = 0
    for i in range(len(sources)):
        vertex = sources[i]
        if coming[vertex] == 0:
            following[size] = vertex
            size += 1
        coming[vertex] |= np.uint64(1) << np.uint64(i)
    level = 0
    while size > 0 and level < len(values):
        queue, following = following, queue
        value = values[level]
        for place in range(size):
            vertex = queue[place]
            arrived = coming[vertex]
            seen[vertex] |= arrived
            here[vertex], coming[vertex] = arrived, 0
            while arrived != 0:
                least = arrived & -arrived
                distances[_BIT[least * _DE_BRUIJN >> np.uint64(58)], vertex] = value
                arrived ^= least
        level += 1
        if level == len(values):
            break
        before, size = size, 0
        for place in range(before):
            tail = queue[place]
            travelling = here[tail]
            # Paths may begin at a closed vertex, but not pass through it.
            for arc in range(indptr[tail], stops[tail] if level > 1 else indptr[tail + 1]):
                head = indices[arc]
                arriving = travelling & ~seen[head]
                if arriving != 0:
                    if coming[head] == 0:
                        following[size] = head
                        size += 1
                    coming[head] |= arriving
    return level
