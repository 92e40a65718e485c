"""Numba kernels for many sources: climb to the upper tree, sweep the upper tree, and reach bricks by products.

A table of distances has a row for each vertex of a brick and its front, or for each vertex of the upper tree, and a
column for each source. One step of a climb or a sweep is thus done for all sources together.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import njit, types

from gpuops.hierarchy.tree import tree_type
from gpuops.numbers import distance_limit, infinity, outside_infinity


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
    columns = (short, long, long, short, short, mask, long, short, numbers, mask, long)
    out = types.Array(scalar, 2, "A"), long
    signatures = (
        types.void(matrix, *starts, mask, tree, scalar),
        types.void(number, index, index, *columns, tree, scalar),
        types.void(*out, matrix, *starts, numbers, index, index, *columns, tree, scalar, scalar, scalar),
    )
    unreachable = infinity(dtype)
    limit = unreachable if dtype.kind == "f" else dtype.type(distance_limit(dtype))
    depart, tables, arrive = (
        njit(signature, nogil=True, cache=True)(function)
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
        brick, last = int(tree.brick[tree.node_of[places[first]]]), first + 1
        while last < len(places) and tree.brick[tree.node_of[places[last]]] == brick:
            last += 1
        if brick == len(tree.sizes):
            _enter(d, places[first:last], sources[first:last], lengths[first:last], touched, tree)
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
    table, first_group, last_group, group_brick, group_starts, chunk_starts, column, target, again,
    arc_starts, arc_rows, arc_lengths, needed, table_starts, tree, unreachable,
):  # fmt: skip
    """Compute the tables of some groups of `Destinations`. `table` begins with the table of `first_group`."""
    for group in range(first_group, last_group):
        brick, columns = int(group_brick[group]), group_starts[group + 1] - group_starts[group]
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
        own[:] = unreachable
        arcs = arc_starts[group_starts[group] : group_starts[group + 1] + 1]
        for f in range(depth):
            _lower(own[f], local, f, arcs, arc_rows, arc_lengths)


def _arrive(
    out, out_rows, d, places, sources, lengths, table, first_chunk, last_chunk, group_brick, group_starts, chunk_starts,
    column, target, again, arc_starts, arc_rows, arc_lengths, needed, table_starts, tree, unreachable, limit, outside,
):  # fmt: skip
    """Fill rows of `out` with the distances to the destinations of some chunks.

    `d`, (upper, k), has the distances from k sources to the upper tree; `table` has the tables of the chunks.
    """
    starts, most = group_starts[chunk_starts], 0
    for chunk in range(first_chunk, last_chunk):
        most = max(most, starts[chunk + 1] - starts[chunk])
    found, touched = np.empty((d.shape[1], most), d.dtype), np.zeros(len(tree.parent), np.bool_)
    for chunk in range(first_chunk, last_chunk):
        for group in range(chunk_starts[chunk], chunk_starts[chunk + 1]):
            begin = table_starts[group] - table_starts[chunk_starts[first_chunk]]
            own = table[begin : begin + table_starts[group + 1] - table_starts[group]]
            left, right = group_starts[group], group_starts[group + 1]
            columns, arcs = slice(left - starts[chunk], right - starts[chunk]), arc_starts[left : right + 1]
            _reach(
                found, columns, d, places, sources, lengths, int(group_brick[group]), own, arcs, arc_rows,
                arc_lengths, needed, touched, tree, unreachable,
            )  # fmt: skip
        for source in range(d.shape[1]):
            row, result = found[source], out[out_rows[source]]
            for i in range(starts[chunk], starts[chunk + 1]):
                length = row[np.uint32(column[i])]
                length = length if length < limit else outside
                if again[i]:
                    length = min(length, result[target[i]])
                result[np.uint32(target[i])] = length


@njit(nogil=True)
def _reach(
    found, columns, d, places, sources, lengths, brick, table, arcs, arc_rows, arc_lengths, needed, touched, tree,
    unreachable,
):  # fmt: skip
    """Fill `found[:, columns]` with the distances from k sources to the columns of a brick or of the upper tree."""
    if brick == len(tree.sizes):
        for source in range(len(found)):
            row = found[source][columns]
            row[:] = unreachable
            _lower(row, d, source, arcs, arc_rows, arc_lengths)
        return
    begin, depth = tree.brick_fronts[brick], tree.brick_fronts[brick + 1] - tree.brick_fronts[brick]
    values, rows = np.empty(depth, d.dtype), np.arange(depth).astype(np.int32)
    own = table.reshape(depth, len(arcs) - 1)
    for source in range(len(found)):
        row = found[source][columns]
        row[:] = unreachable
        for f in range(depth):
            values[f] = d[tree.brick_front[begin + f], source]
        _relax(row, values, own, rows)
    first = 0
    while first < len(places) and places[first] < tree.first_place[brick]:
        first += 1
    last = first
    while last < len(places) and places[last] < tree.first_place[brick] + tree.sizes[brick]:
        last += 1
    if first < last:  # paths that stay in the brick
        local = _climbed(brick, places[first:last], lengths[first:last], touched, tree, unreachable)
        local[tree.sizes[brick] :] = unreachable
        _sweep(local, brick, needed, tree)
        for i in range(first, last):
            _lower(found[sources[i]][columns], local, i - first, arcs, arc_rows, arc_lengths)


@njit(nogil=True)
def _enter(d, places, columns, lengths, touched, tree):
    """Lower the rows of starts in a table to the lengths of the starts, and mark the nodes of the starts as touched."""
    for i in range(len(places)):
        node = tree.node_of[places[i]]
        row = tree.row[node] + places[i] - tree.starts[node]
        d[row, columns[i]] = min(d[row, columns[i]], lengths[i])
        touched[node] = True


@njit(nogil=True)
def _climbed(brick, places, lengths, touched, tree, unreachable):
    """Return a table for a brick and its front after starts in the brick have climbed, with a column for each start."""
    depth = tree.brick_fronts[brick + 1] - tree.brick_fronts[brick]
    d = np.empty((tree.sizes[brick] + depth, len(places)), lengths.dtype)
    d[:] = unreachable
    _enter(d, places, np.arange(len(places)).astype(np.int32), lengths, touched, tree)
    _climb(d, brick, touched, tree)
    return d


@njit(nogil=True)
def _climb(d, brick, touched, tree):
    """Climb through the touched nodes of a brick or of the upper tree, and mark their parents as touched."""
    for at in range(tree.brick_nodes[brick], tree.brick_nodes[brick + 1]):
        node = tree.nodes[at]
        if not touched[node]:
            continue
        if tree.parent[node] >= 0:
            touched[tree.parent[node]] = True
        first, begin = tree.row[node], tree.front_starts[node]
        width, size = tree.starts[node + 1] - tree.starts[node], tree.front_starts[node + 1] - begin
        own, values = np.empty(width, np.int32), np.empty(width, d.dtype)
        for i in range(width):
            own[i] = first + i
        for turn in range(width + size):  # the front first, from the rows of the node as its children left them
            column = width + turn if turn < size else turn - size
            for i in range(width):
                values[i] = tree.out[tree.out_starts[node] + i * (width + size) + column]
            _relax(d[tree.rows[begin + turn] if turn < size else own[column]], values, d, own)


@njit(nogil=True)
def _sweep(d, brick, needed, tree):
    """Sweep the needed nodes of a brick or of the upper tree."""
    for at in range(tree.brick_nodes[brick + 1] - 1, tree.brick_nodes[brick] - 1, -1):
        node = tree.nodes[at]
        size = tree.front_starts[node + 1] - tree.front_starts[node]
        if size > 0 and needed[node]:
            width, rows = tree.starts[node + 1] - tree.starts[node], np.empty(size, np.int32)
            for i in range(size):
                rows[i] = tree.rows[tree.front_starts[node] + i]
            begin, step = tree.back_starts[node], width + size if tree.undirected else size
            for i in range(width):
                _relax(d[tree.row[node] + i], tree.back[begin + i * step : begin + i * step + size], d, rows)


@njit(nogil=True)
def _relax(row, values, table, rows):
    """Lower `row` to min(row, values[i] + table[rows[i]]) for all i.

    Four i are processed at a time, so that `row` is loaded and stored less often. Processing the last i several times
    does not change the result. Sums of integers are cast to the dtype of the row, and so may wrap.
    """
    kind, last = row.dtype.type, len(rows) - 1
    for i in range(0, len(rows), 4):
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        a0, a1, a2, a3 = values[i], values[i1], values[i2], values[i3]
        b0, b1, b2, b3 = table[rows[i]], table[rows[i1]], table[rows[i2]], table[rows[i3]]
        for j in range(row.size):
            first, second = kind(a0 + b0[j]), kind(a1 + b1[j])
            third, fourth = kind(a2 + b2[j]), kind(a3 + b3[j])
            first = second if second < first else first
            third = fourth if fourth < third else third
            first = third if third < first else first
            row[j] = first if first < row[j] else row[j]


@njit(nogil=True)
def _lower(row, d, column, arcs, arc_rows, arc_lengths):
    """Lower each row[c] to the minimum of d[row of the arc, column] + length, over the arcs of column c of a group."""
    kind = row.dtype.type
    for c in range(len(row)):
        for arc in range(arcs[c], arcs[c + 1]):
            row[c] = min(row[c], kind(d[arc_rows[arc], column] + arc_lengths[arc]))
