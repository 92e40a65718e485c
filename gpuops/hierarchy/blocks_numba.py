"""Numba kernels for many sources: climb to the upper tree, sweep the upper tree, and reach bricks by products.

A table of distances has a row for each vertex of a brick and its front, or for each vertex of the upper tree, and a
column for each source. One step of a climb or a sweep is thus done for all sources together.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from gpuops._compiled_numba import compiled, inner
from gpuops.hierarchy.relax_numba import relax
from gpuops.hierarchy.tree import tree_type
from gpuops.numbers import distance_limit, infinity, outside_infinity

# Bytes of distances in the order of columns, for some sources, before they are copied to the result. At least 16
# sources are copied together if they fit in the larger number, because all tables are read once for each few sources.
_FOUND, _FOUND_MOST = 2**23, 2**26
_STRIP = 256  # columns of a product that are computed together, so that their part of the table stays in a cache


class Kernels(NamedTuple):
    """`_depart`, `_tables` and `_arrive`, compiled for one dtype."""

    depart: Any
    tables: Any
    arrive: Any


@functools.cache
def compile_for(dtype: np.dtype) -> Kernels:
    """Compile the kernels for one dtype."""
    scalar = numba.from_dtype(dtype)
    matrix, number, numbers = (
        types.Array(scalar, 2, "C"),
        types.Array(scalar, 1, "C"),
        types.Array(scalar, 1, "C", True),
    )
    long, short, mask = (types.Array(each, 1, "C", True) for each in (types.int64, types.int32, types.boolean))
    starts, tree, index = (short, short, numbers), tree_type(dtype), types.int64
    columns = (short, long, long, short, long, long, short, mask, long, short, numbers, mask, long)
    out = types.Array(scalar, 2, "A"), long
    signatures = (
        types.void(matrix, *starts, mask, tree, scalar),
        types.void(number, index, index, *columns, tree, scalar),
        types.void(*out, matrix, *starts, numbers, index, *columns, tree, scalar, scalar, scalar),
    )
    unreachable = infinity(dtype)
    limit = unreachable if dtype.kind == "f" else dtype.type(distance_limit(dtype))
    depart, tables, arrive = (
        compiled(signature, function)
        for signature, function in zip(signatures, (_depart, _tables, _arrive), strict=True)
    )
    return Kernels(
        lambda *arguments: depart(*arguments, unreachable),
        lambda *arguments: tables(*arguments, unreachable),
        lambda *arguments: arrive(*arguments, unreachable, limit, outside_infinity(dtype)),
    )


def _depart(d, places, sources, lengths, needed, tree, unreachable):
    """Fill `d`, (upper, k), with the distances from k sources to the upper tree. Starts are sorted by place."""
    d[:] = unreachable
    touched = np.zeros(len(tree.parent), np.bool_)
    first = 0
    while first < len(places):
        brick, last = np.int64(tree.brick[tree.node_of[places[first]]]), first + 1
        while last < len(places) and tree.brick[tree.node_of[places[last]]] == brick:
            last += 1
        if brick == len(tree.sizes):
            _enter(d, places[first:last], sources[first:last].copy(), lengths[first:last], touched, tree)
        else:
            local = _climbed(brick, places[first:last], lengths[first:last], touched, tree, unreachable)
            begin, behind = tree.brick_fronts[brick], tree.brick_fronts[brick + 1]
            for at in range(begin, behind):
                row, values = d[tree.brick_front[at]], local[tree.sizes[brick] + at - begin]
                for i in range(last - first):
                    row[sources[first + i]] = min(row[sources[first + i]], values[i])
        first = last
    _climb(d, len(tree.sizes), touched, tree)
    _sweep(d, len(tree.sizes), needed, tree)


def _tables(
    table, first_group, last_group, group_brick, group_starts, window_starts, column, window_runs, run_starts,
    run_targets, run_again, arc_starts, arc_rows, arc_lengths, needed, table_starts, tree, unreachable,
):  # fmt: skip
    """Compute the tables of some groups of `Destinations`. `table` begins with the table of `first_group`."""
    for group in range(first_group, last_group):
        brick, columns = np.int64(group_brick[group]), group_starts[group + 1] - group_starts[group]
        if brick == len(tree.sizes):
            continue
        size, depth = tree.sizes[brick], tree.brick_fronts[brick + 1] - tree.brick_fronts[brick]
        local = np.empty((size + depth, depth), table.dtype)
        local[:] = unreachable
        for f in range(depth):
            local[size + f, f] = 0
        _sweep(local, brick, needed, tree)
        begin = table_starts[group] - table_starts[first_group]
        own = table[begin : begin + depth * columns].reshape(depth, columns)
        arcs = arc_starts[group_starts[group] : group_starts[group + 1] + 1]
        own[:] = unreachable
        _lower(own, np.int64(0), local, np.int64(0), depth, arcs, arc_rows, arc_lengths)


def _arrive(
    out, out_rows, d, places, sources, lengths, table, window, group_brick, group_starts, window_starts, column,
    window_runs, run_starts, run_targets, run_again, arc_starts, arc_rows, arc_lengths, needed, table_starts, tree,
    unreachable, limit, outside,
):  # fmt: skip
    """Fill rows of `out` with the distances to the destinations of a window.

    `d`, (upper, k), has the distances from k sources to the upper tree; `table` has the tables of the window.
    """
    groups, touched = range(window_starts[window], window_starts[window + 1]), np.zeros(len(tree.parent), np.bool_)
    left, right = group_starts[groups.start], group_starts[groups.stop]
    row = max(1, (right - left) * d.itemsize)
    step = max(1, _FOUND // row, min(16, _FOUND_MOST // row))
    found = np.empty((min(step, d.shape[1]), right - left), d.dtype)
    for first in range(0, d.shape[1], step):
        some = found[: min(step, d.shape[1] - first)]
        for group in groups:
            begin, end = group_starts[group], group_starts[group + 1]
            start = table_starts[group] - table_starts[groups.start]
            own_table = table[start : start + table_starts[group + 1] - table_starts[group]]
            _reach(
                some[:, begin - left : end - left], d, first, places, sources, lengths, np.int64(group_brick[group]),
                own_table, arc_starts[begin : end + 1], arc_rows, arc_lengths, needed, touched, tree, unreachable,
            )  # fmt: skip
        for source in range(len(some)):
            row, result = some[source], out[out_rows[first + source]]
            for run in range(window_runs[window], window_runs[window + 1]):
                own = column[run_starts[run] : run_starts[run + 1]]
                part = result[run_targets[run] : run_targets[run] + len(own)]
                if run_again[run]:
                    for i in range(len(own)):
                        if row[own[i]] < limit:
                            part[i] = min(part[i], row[own[i]])
                else:
                    for i in range(len(own)):
                        length = row[np.uint32(own[i])]
                        part[i] = length if length < limit else outside


@inner
def _reach(
    found, d, start, places, sources, lengths, brick, table, arcs, arc_rows, arc_lengths, needed, touched, tree,
    unreachable,
):  # fmt: skip
    """Fill `found`, (s, columns), with the distances from some sources to the columns of a brick or of the upper tree.

    The sources are the columns of `d` from `start` on.
    """
    if brick == len(tree.sizes):
        found[:] = unreachable
        _lower(found, np.int64(0), d, start, start + len(found), arcs, arc_rows, arc_lengths)
        return
    front = tree.brick_front[tree.brick_fronts[brick] : tree.brick_fronts[brick + 1]]
    _product(found, d, start, front, table, unreachable)
    first = 0
    while first < len(places) and places[first] < tree.first_place[brick]:
        first += 1
    last = first
    while last < len(places) and places[last] < tree.first_place[brick] + tree.sizes[brick]:
        last += 1
    while first < last and sources[first] < start:
        first += 1
    while first < last and sources[last - 1] >= start + len(found):
        last -= 1
    if first < last:  # paths that stay in the brick
        local = _climbed(brick, places[first:last], lengths[first:last], touched, tree, unreachable)
        local[tree.sizes[brick] :] = unreachable
        _sweep(local, brick, needed, tree)
        for i in range(first, last):
            if start <= sources[i] < start + len(found):
                _lower(found, sources[i] - start, local, i - first, i - first + 1, arcs, arc_rows, arc_lengths)


@inner
def _product(found, d, start, front, table, unreachable):
    """Fill `found` with the product of the distances to a front, rows of `d`, and the table of a brick."""
    (k, columns), depth = found.shape, len(front)
    if 2 * columns < k:  # vectors of sources are fuller than vectors of columns
        turned, some = np.empty((columns, k), d.dtype), d[:, start : start + k]
        for c in range(columns):
            relax(turned, c, 0, k, table, c, columns, some, front, 0, depth, unreachable)
            for source in range(k):
                found[source, c] = turned[c, source]
        return
    values, own = np.empty((depth, k), d.dtype), table.reshape(depth, columns)
    for f in range(depth):
        for source in range(k):
            values[f, source] = d[front[f], start + source]
    for begin in range(0, columns, _STRIP):
        end = min(begin + _STRIP, columns)
        for source in range(k):
            relax(found, source, begin, end, values, source, k, own, None, 0, depth, unreachable)


@inner
def _enter(d, places, columns, lengths, touched, tree):
    """Lower the rows of starts in a table to the lengths of the starts, and mark the nodes of the starts as touched."""
    for i in range(len(places)):
        node = tree.node_of[places[i]]
        row = tree.row[node] + places[i] - tree.starts[node]
        d[row, columns[i]] = min(d[row, columns[i]], lengths[i])
        touched[node] = True


@inner
def _climbed(brick, places, lengths, touched, tree, unreachable):
    """Return a table for a brick and its front after starts in the brick have climbed, with a column for each start."""
    depth = tree.brick_fronts[brick + 1] - tree.brick_fronts[brick]
    d = np.empty((tree.sizes[brick] + depth, len(places)), lengths.dtype)
    d[:] = unreachable
    _enter(d, places, np.arange(len(places)).astype(np.int32), lengths, touched, tree)
    _climb(d, brick, touched, tree)
    return d


@inner
def _climb(d, brick, touched, tree):
    """Climb through the touched nodes of a brick or of the upper tree, and mark their parents as touched."""
    widest = 0
    for at in range(tree.brick_nodes[brick], tree.brick_nodes[brick + 1]):
        node = tree.nodes[at]
        widest = max(widest, tree.starts[node + 1] - tree.starts[node])
    before = np.empty((widest, d.shape[1]), d.dtype)  # the rows of a node as its children left them
    for at in range(tree.brick_nodes[brick], tree.brick_nodes[brick + 1]):
        node = tree.nodes[at]
        if not touched[node]:
            continue
        if tree.parent[node] >= 0:
            touched[tree.parent[node]] = True
        first, begin = tree.row[node], tree.front_starts[node]
        width, size = tree.starts[node + 1] - tree.starts[node], tree.front_starts[node + 1] - begin
        for i in range(width):
            for source in range(d.shape[1]):
                before[i, source] = d[first + i, source]
        for column in range(width + size):
            row = first + column if column < width else tree.rows[begin + column - width]
            values = tree.out_starts[node] + column
            relax(d, row, 0, d.shape[1], tree.out, values, width + size, before, None, 0, width, None)


@inner
def _sweep(d, brick, needed, tree):
    """Sweep the needed nodes of a brick or of the upper tree."""
    for at in range(tree.brick_nodes[brick + 1] - 1, tree.brick_nodes[brick] - 1, -1):
        node = tree.nodes[at]
        begin = tree.front_starts[node]
        size = tree.front_starts[node + 1] - begin
        if size > 0 and needed[node]:
            width = tree.starts[node + 1] - tree.starts[node]
            step = width + size if tree.undirected else size
            for i in range(width):
                values = tree.back_starts[node] + i * step
                relax(d, tree.row[node] + i, 0, d.shape[1], tree.back, values, 1, d, tree.rows, begin, size, None)


@inner
def _lower(found, row, d, begin, end, arcs, arc_rows, arc_lengths):
    """Lower rows of `found`, from `row` on, to the distances of the sources `begin` to `end` - 1 of the table `d`.

    The distance to a column is the minimum of d[row of the arc, source] + length over the arcs of the column.
    """
    for c in range(found.shape[1]):
        for arc in range(arcs[c], arcs[c + 1]):
            values, length = d[arc_rows[arc]], arc_lengths[arc]
            for i in range(end - begin):
                found[row + i, c] = min(found[row + i, c], found.dtype.type(values[begin + i] + length))
