"""Breadth-first searches from many vertices on a CPU: the Numba half of `gpuops.hops`, 64 searches in each task."""

from __future__ import annotations

import numpy as np
from numba import njit

from gpuops._threads import for_all
from gpuops.numbers import outside_infinity

_WORD = 64
# _BIT[bit * _DE_BRUIJN >> 58] is the number of a single set bit: for each bit, the multiplication moves six other bits
# of de Bruijn's sequence to the top.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.empty(_WORD, np.uint8)
_BIT[[(int(_DE_BRUIJN) << i) % 2**64 >> 58 for i in range(_WORD)]] = range(_WORD)
_VISIT, _ARC = 128, 8  # cost of a vertex and of an arc for a word of searches, in relaxations of a dense matrix


def distances(indptr: np.ndarray, indices: np.ndarray, sources: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `gpuops.hop_distances` for int64 `indptr`, int32 `indices` and int64 `sources`."""
    n, k = len(indptr) - 1, len(sources)
    rows = np.empty((k, n), dtype)
    words = range(0, k, _WORD)

    def search(first: int) -> None:
        word = slice(first, min(first + _WORD, k))
        _search(indptr, indices, sources[word], outside_infinity(dtype), rows[word])

    for_all(search, words, len(words) * (_VISIT * n + _ARC * len(indices)))
    return rows


@njit(nogil=True, cache=True)
def _search(indptr, indices, sources, infinity, distances):
    """Fill a row for each of up to 64 sources, level by level."""
    n = len(indptr) - 1
    distances[:] = infinity
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
    while size > 0:
        queue, following = following, queue
        for place in range(size):
            vertex = queue[place]
            arrived = coming[vertex]
            seen[vertex] |= arrived
            here[vertex], coming[vertex] = arrived, 0
            while arrived != 0:
                least = arrived & -arrived
                distances[_BIT[least * _DE_BRUIJN >> np.uint64(58)], vertex] = level
                arrived ^= least
        before, size = size, 0
        for place in range(before):
            tail = queue[place]
            travelling = here[tail]
            for arc in range(indptr[tail], indptr[tail + 1]):
                head = indices[arc]
                arriving = travelling & ~seen[head]
                if arriving != 0:
                    if coming[head] == 0:
                        following[size] = head
                        size += 1
                    coming[head] |= arriving
        level += 1
