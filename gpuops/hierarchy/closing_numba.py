"""Numba kernels that close nodes: a node and its front are a small dense matrix, with the node's vertices as pivots.

G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba import types

from gpuops._compiled_numba import compiled, copy, entry, inner
from gpuops.hierarchy.relax_numba import relax
from gpuops.numbers import infinity


def pivot_tile(dtype: Any) -> int:
    """Return the number of pivots of a tile. The bits of floats depend on it, so a GPU has tiles of the same size."""
    return 32 if np.dtype(dtype).itemsize == 8 else 64


@functools.cache
def compile_for(dtype: np.dtype) -> Any:
    """Return `_close`, compiled for one dtype."""
    scalar, long = numba.from_dtype(dtype), types.Array(types.int64, 1, "C", readonly=True)
    number, short = types.Array(scalar, 1, "C"), types.Array(types.int32, 1, "C", readonly=True)
    signature = types.int64(
        short, types.boolean, long, long, short, long, long, short, long, types.Array(scalar, 1, "C", readonly=True),
        long, number, long, number, types.boolean, short, long, number,
        types.Array(types.float64, 1, "C"), types.Array(types.float64, 1, "C"), scalar, types.int64,
    )  # fmt: skip
    close = compiled(signature, _close)
    unreachable, tile = infinity(dtype), pivot_tile(dtype)
    return lambda *arguments: close(*arguments, unreachable, tile)


def _close(
    nodes, above, starts, front_starts, front, children, arc_starts, higher, arcs, lengths,
    out_starts, out, into_starts, into, undirected, of_node, update_starts, updates,
    largest_out, largest_into, unreachable, tile,
):  # fmt: skip
    """Close some nodes, each after its children. Returns -1, or an arc that the structure has no room for.

    The *update* of a node is the matrix of distances among the vertices of its front, by paths through its subtree. An
    update waits on a stack until the parent of the node is closed. The update of the last node of a brick goes to
    `updates` instead. `above` says that all bricks are closed already and `nodes` are their last nodes and the upper
    tree; the updates of the bricks are then read from `updates`.
    """
    bricks = len(update_starts) - 1
    closed = np.empty(len(nodes), np.bool_)
    for i in range(len(nodes)):
        closed[i] = above and of_node[nodes[i]] < bricks
    most, widest = _room(nodes, closed, starts, front_starts, children)
    stack, memory = np.empty(most, out.dtype), np.empty(widest * widest, out.dtype)
    column = np.empty((1, widest), out.dtype)
    places, waiting, top, count = np.empty(widest, np.int64), np.empty(len(nodes), np.int32), 0, 0
    for i in range(len(nodes)):
        node = nodes[i]
        brick, width = of_node[node], starts[node + 1] - starts[node]
        own_front = front[front_starts[node] : front_starts[node + 1]]
        size = len(own_front)
        if closed[i]:
            copy(updates[update_starts[brick] : update_starts[brick + 1]], stack[top:])
        else:
            matrix = memory[: (width + size) ** 2].reshape(width + size, width + size)
            matrix[:] = unreachable
            for vertex in range(width + size):
                matrix[vertex, vertex] = 0
            unknown = _enter_arcs(
                matrix, starts[node], width, own_front, arc_starts, higher, arcs, lengths, unreachable
            )
            if unknown >= 0:
                return unknown
            for _ in range(children[node]):
                count -= 1
                child = waiting[count]
                theirs = front[front_starts[child] : front_starts[child + 1]]
                top -= len(theirs) ** 2
                _enter_update(matrix, starts[node], width, own_front, theirs, stack[top:], places)
            table = out[out_starts[node] : out_starts[node + 1]].reshape(width, width + size)
            back = into[into_starts[node] : into_starts[node + 1]] if not undirected else into
            if width <= tile:
                _eliminate(matrix, width, table, back, undirected, column)
            else:
                _eliminate_by_tiles(matrix, width, tile, table, back, undirected, column)
            largest_out[node] = _largest(table.ravel(), unreachable)
            largest_into[node] = largest_out[node] if undirected else _largest(back, unreachable)
            last = not above and i == len(nodes) - 1
            update = updates[update_starts[brick] : update_starts[brick + 1]] if last else stack[top:]
            for row in range(size):
                copy(matrix[width + row, width:], update[row * size :])
        if size > 0:
            top += size * size
            waiting[count] = node
            count += 1
    return -1


@inner
def _room(nodes, closed, starts, front_starts, children):
    """Return the most entries on the stack at a time, and the most vertices of a node and its front.

    `closed` nodes only put their updates on the stack.
    """
    sizes, count, top, most, widest = np.empty(len(nodes), np.int64), 0, 0, 0, 0
    for i in range(len(nodes)):
        node = nodes[i]
        size = front_starts[node + 1] - front_starts[node]
        if not closed[i]:
            widest = max(widest, starts[node + 1] - starts[node] + size)
            for _ in range(children[node]):
                count -= 1
                top -= sizes[count]
        if size > 0:
            sizes[count] = size * size
            top += size * size
            count += 1
        most = max(most, top)
    return most, widest


@inner
def _enter_arcs(matrix, first, width, front, arc_starts, higher, arcs, lengths, unreachable):
    """Enter the arcs within a node, and between the node and its front, in `matrix`.

    Returns -1, or the number of an arc that connects the node with a later vertex outside its front.
    """
    for i in range(width):
        for at in range(arc_starts[first + i], arc_starts[first + i + 1]):
            j = higher[at] - first
            arc = arcs[at] if arcs[at] >= 0 else ~arcs[at]
            if lengths[arc] >= unreachable:
                continue
            if j >= width:
                place, behind = 0, len(front)
                while place < behind:
                    middle = (place + behind) // 2
                    if front[middle] < higher[at]:
                        place = middle + 1
                    else:
                        behind = middle
                if place == len(front) or front[place] != higher[at]:
                    return arc
                j = width + place
            if arcs[at] >= 0:
                matrix[i, j] = min(matrix[i, j], lengths[arc])
            else:
                matrix[j, i] = min(matrix[j, i], lengths[arc])
    return -1


@inner
def _enter_update(matrix, first, width, front, theirs, update, places):
    """Enter the update of a child. Each vertex of the child's front is in the node or in the node's front."""
    at, size = 0, len(theirs)
    for i in range(size):
        places[i] = theirs[i] - first
        if places[i] >= width:
            while front[at] != theirs[i]:
                at += 1
            places[i] = width + at
    for i in range(size):
        row, values = matrix[places[i]], update[i * size : (i + 1) * size]
        for j in range(size):
            row[places[j]] = min(row[places[j]], values[j])


@inner
def _eliminate(matrix, width, table, back, undirected, column):
    """Close a matrix over paths through its first `width` vertices, the vertices of the node.

    The rows of the node go to `table`. The distances from the front to the node, transposed, go to `back`, unless the
    graph is undirected and `table` has the same distances. The distances among the front stay in `matrix`.
    """
    last, size = len(matrix), len(matrix) - width
    for pivot in range(width):
        for i in range(width):
            if i != pivot:
                relax(matrix, i, 0, width, matrix, i * last + pivot, 1, matrix, None, pivot, 1, None)
    for i in range(width):
        copy(matrix[i], table[i])
        relax(table, i, width, last, matrix, i * last, 1, matrix, None, 0, width, None)
    for e in range(size):
        row = width + e
        if undirected:
            for i in range(width):
                column[0, i] = table[i, row]
        else:
            copy(matrix[row, :width], column[0])
            relax(column, 0, 0, width, matrix, row * last, 1, matrix, None, 0, width, None)
            for i in range(width):
                back[i * size + e] = column[0, i]
        relax(matrix, row, width, last, column, 0, 1, table, None, 0, width, None)


@inner
def _eliminate_by_tiles(matrix, width, tile, table, back, undirected, column):
    """Do the work of `_eliminate` for a node of more than `tile` vertices: eliminate one tile of pivots after another.

    A tile is closed alone. Two products with the closed tile lower the rows and the columns of its pivots. The product
    of these columns and rows lowers all other entries, also the entries of earlier tiles.
    """
    last, size = len(matrix), len(matrix) - width
    for first in range(0, width, tile):
        end = min(first + tile, width)
        for pivot in range(first, end):
            for i in range(first, end):
                if i != pivot:
                    relax(matrix, i, first, end, matrix, i * last + pivot, 1, matrix, None, pivot, 1, None)
        for i in range(first, end):
            copy(matrix[i], table[i])
            for begin, stop in ((0, first), (end, last)):
                relax(table, i, begin, stop, matrix, i * last + first, 1, matrix, None, first, end - first, None)
        for row in range(last):
            if first <= row < end:
                continue
            copy(matrix[row, first:end], column[0, first:])
            relax(column, 0, first, end, matrix, row * last + first, 1, matrix, None, first, end - first, None)
            copy(column[0, first:end], matrix[row, first:])
            for begin, stop in ((0, first), (end, last)):
                relax(matrix, row, begin, stop, column, first, 1, table, None, first, end - first, None)
        for i in range(first, end):
            copy(table[i], matrix[i])
    for i in range(width):
        copy(matrix[i], table[i])
        if not undirected:
            for e in range(size):
                back[i * size + e] = matrix[width + e, i]


@inner
def _largest(values, unreachable):
    """Return the largest value below `unreachable`, at least 0."""
    most = 0.0
    for value in values:
        if value < unreachable and value > most:
            most = float(value)
    return most


@entry
def are_symmetric(arc_starts, higher, arcs, lengths, unreachable):
    """Return whether the shortest arc between any two vertices is as long in one direction as in the other."""
    out, into = np.empty(len(arc_starts), lengths.dtype), np.empty(len(arc_starts), lengths.dtype)
    out[:], into[:] = unreachable, unreachable
    for v in range(len(arc_starts) - 1):
        for at in range(arc_starts[v], arc_starts[v + 1]):
            x, arc = higher[at], arcs[at]
            if arc >= 0:
                out[x] = min(out[x], lengths[arc])
            else:
                into[x] = min(into[x], lengths[~arc])
        for at in range(arc_starts[v], arc_starts[v + 1]):
            if out[higher[at]] != into[higher[at]]:
                return False
        for at in range(arc_starts[v], arc_starts[v + 1]):
            out[higher[at]] = into[higher[at]] = unreachable
    return True


@entry
def longest_path(values, parent):
    """Return the largest sum of values on a path in the tree from a node to a root."""
    below, most = np.zeros(len(values)), 0.0
    for node in range(len(values)):
        sum_ = values[node] + below[node]
        if parent[node] >= 0:
            below[parent[node]] = max(below[parent[node]], sum_)
        else:
            most = max(most, sum_)
    return most
