"""Numba kernels of a nested dissection by levels, which orders a graph without METIS.

A breadth-first search from a vertex far out sorts a connected piece of the graph into levels. The vertices of one level
that have neighbours in the next level separate the piece. They come last in the order, and the two sides are pieces
again. The level has the fewest separating vertices per vertex of the smaller side, which is at least an eighth of the
piece; if no level has such a side, it is a level near the middle.

A. George, J. W. H. Liu, "An automatic nested dissection algorithm for irregular finite element problems", SIAM
Journal on Numerical Analysis 15, 1978.
"""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import copy, entry, inner

_SMALL = 8  # most vertices of a piece that is not separated, as in the leaves of the elimination tree
_PART = 8  # the smaller side has at least one of so many parts of a piece
_TURNS = 2  # searches, each from the last vertex that the search before it found
_WAITING, _ORDERED = -1, -2  # in place of the level of a vertex


@entry
def dissect(starts, neighbours):
    """Return the vertices of an undirected graph, given in CSR without loops, in an order of elimination, int32."""
    n = len(starts) - 1
    order, left = np.empty(n, np.int32), n  # filled from its end; `left` vertices are not ordered
    vertices, queue = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    level = np.full(n, _WAITING, np.int32)
    pieces = [(0, n)]  # ranges of `vertices`; no arc joins two pieces
    while len(pieces) > 0:
        begin, end = pieces.pop()
        piece, count, components = vertices[begin:end], 0, 0
        for vertex in piece:
            level[vertex] = _WAITING
        for vertex in piece:
            if level[vertex] == _WAITING:
                first = count
                count = _search(vertex, starts, neighbours, level, queue, first)
                pieces.append((begin + first, begin + count))
                components += 1
        copy(queue[:count], piece)
        if components != 1:
            continue
        pieces.pop()
        first, last = 0, len(piece)
        if len(piece) > _SMALL:
            for _ in range(_TURNS):
                for vertex in piece:
                    level[vertex] = _WAITING
                _search(piece[-1], starts, neighbours, level, queue, 0)
                copy(queue[: len(piece)], piece)
            first, last = _best_level(piece, starts, neighbours, level)
        kept, is_whole = first, last - first == len(piece)
        for i in range(first, last):
            vertex = piece[i]
            if is_whole or _reaches_on(vertex, starts, neighbours, level):
                left -= 1
                order[left] = vertex
            else:
                piece[kept] = vertex
                kept += 1
        # Mark the separator only now, because `_reaches_on` reads levels.
        for i in range(left, left + last - kept):
            level[order[i]] = _ORDERED
        if kept > 0:
            pieces.append((begin, begin + kept))
        if last < len(piece):
            pieces.append((begin + last, end))
    return order


@inner
def _search(vertex, starts, neighbours, level, queue, count):
    """Write the waiting vertices that `vertex` reaches to `queue` from `count` on, by levels. Returns their end."""
    level[vertex], queue[count] = 0, vertex
    head, count = count, count + 1
    while head < count:
        vertex = queue[head]
        head += 1
        for i in range(starts[vertex], starts[vertex + 1]):
            other = neighbours[i]
            if level[other] == _WAITING:
                level[other], queue[count] = level[vertex] + 1, other
                count += 1
    return count


@inner
def _reaches_on(vertex, starts, neighbours, level):
    """Return whether a vertex has a neighbour in the next level."""
    found = False
    for i in range(starts[vertex], starts[vertex + 1]):
        found |= level[neighbours[i]] == level[vertex] + 1
    return found


@inner
def _best_level(piece, starts, neighbours, level):
    """Return the range of the best level in a piece that is sorted by levels; the whole piece if none separates it."""
    size, best, middle, least = len(piece), (0, 0), (0, len(piece)), np.inf
    first = 0
    while first < size:
        last, cut = first, 0
        while last < size and level[piece[last]] == level[piece[first]]:
            cut += _reaches_on(piece[last], starts, neighbours, level)
            last += 1
        smaller = min(last - cut, size - last)
        if smaller * _PART >= size and cut < least * smaller:
            best, least = (first, last), cut / smaller
        if 2 * first <= size and 0 < cut and last - cut > 0:
            middle = (first, last)
        first = last
    return best if best[1] > 0 else middle
