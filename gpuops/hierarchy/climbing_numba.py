"""Numba kernels for one source: climb to the root, and sweep single paths of the tree."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import copy, entry, inner

_CLIMBED, _SWEPT = 1, 2


@entry
def begin(count, nodes, far):
    """Return memory for `count` distances, and the state of all nodes.

    NumPy would ask for huge pages, which the system fills with zeros when one entry is written.
    """
    return np.empty(count, type(far)), np.zeros(nodes, np.uint8)


@entry
def enter(climbed, places, lengths):
    """Begin at places with the given lengths. Returns the nodes on the paths from these places to the root."""
    d, state = climbed.distances, climbed.state
    nodes, count = np.empty(len(state), np.int32), 0
    for place in places:
        node = climbed.node_of[place]
        while node >= 0 and state[node] == 0:
            state[node], nodes[count] = _CLIMBED, node
            d[climbed.starts[node] : climbed.starts[node + 1]] = climbed.far
            node, count = climbed.parent[node], count + 1
    for i in range(len(places)):
        d[places[i]] = min(d[places[i]], lengths[i])
    return nodes[:count].copy()


@entry
def climb(climbed, nodes, out_starts, out):
    """Climb through the given nodes, children before parents."""
    d = climbed.distances
    for node in nodes:
        first, width = climbed.starts[node], climbed.starts[node + 1] - climbed.starts[node]
        front = climbed.front[climbed.front_starts[node] : climbed.front_starts[node + 1]]
        size = width + len(front)
        reached = np.empty(size, d.dtype)
        copy(d[first : first + width], reached)
        for j in range(len(front)):
            reached[width + j] = d[front[j]]
        for i in range(width):
            row, length = out[out_starts[node] + i * size :][:size], reached[i]
            if length < climbed.far:
                for j in range(size):
                    if row[j] < climbed.limit:
                        reached[j] = min(reached[j], length + row[j])
        copy(reached[:width], d[first:])
        for j in range(len(front)):
            d[front[j]] = reached[width + j]


@entry
def distances_to(climbed, vertices, found):
    """Fill `found` with the distances from the source to some vertices; unreachable is `climbed.far`.

    A closed vertex counts as unreachable, except for the source itself.
    """
    # Compiled code counts a reference for each use of an array of a tuple, therefore none is used in the loop.
    node_of, place, state, d, far = climbed.node_of, climbed.place, climbed.state, climbed.distances, climbed.far
    potentials, offset = climbed.potentials, climbed.offset
    for i in range(len(vertices)):
        vertex = vertices[i]
        at = place[vertex]
        if vertex == climbed.source:
            found[i] = 0
        elif at >= len(d):
            found[i] = far
        else:
            if state[node_of[at]] != _SWEPT:
                _sweep_to(climbed, node_of[at])
            found[i] = d[at]
            if len(potentials) and d[at] < far:
                found[i] += potentials[vertex] - offset


@inner
def _sweep_to(climbed, node):
    """Sweep a node after those of its ancestors that were not swept before."""
    d, state, parent = climbed.distances, climbed.state, climbed.parent
    count, at = 0, node
    while at >= 0 and state[at] != _SWEPT:
        count, at = count + 1, parent[at]
    path, at = np.empty(count, np.int32), node
    for i in range(count - 1, -1, -1):
        path[i], at = at, parent[at]
    for at in path:
        first, width = climbed.starts[at], climbed.starts[at + 1] - climbed.starts[at]
        front = climbed.front[climbed.front_starts[at] : climbed.front_starts[at + 1]]
        size = len(front)
        reached = np.empty(size, d.dtype)
        for j in range(size):
            reached[j] = d[front[j]]
        step = width + size if climbed.undirected else size
        for i in range(width):
            row = climbed.back[climbed.back_starts[at] + i * step :][:size]
            best = d[first + i] if state[at] == _CLIMBED else climbed.far
            for j in range(size):
                if row[j] < climbed.limit:
                    best = min(best, reached[j] + row[j])
            d[first + i] = best
        state[at] = _SWEPT
