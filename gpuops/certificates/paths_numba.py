"""Tests of distances and predecessors on a CPU: the Numba half of `gpuops.certificates.paths`."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry


@entry
def check_arcs(
    indptr, indices, weights, distances, predecessors, pushes, unreachable, has_limit, within, relative, absolute,
    first, last, tight,
):  # fmt: skip
    """Check rule 2 for the arcs out of the vertices `first` to `last` - 1, and mark in `tight` the vertices whose arc
    from the predecessor is tight. Returns the tail and the arc that break rule 2 (or -1, -1), the number of arcs tested
    and the largest excess within tolerance. Numba adds int16 and int32 in int64, float32 in float32.
    """
    checked, slack = 0, 0.0
    for u in range(first, last):
        push = pushes[u]
        if push == unreachable:
            continue
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            length, d = push + weights[arc], distances[v]
            checked += 1
            if d == unreachable:  # right if the sum is beyond all floats, or beyond the cutoff
                if length == np.inf or (has_limit and length > within - (relative * abs(within) + absolute)):
                    continue
                return u, arc, checked, slack
            allowed = relative * abs(d) + absolute
            excess = float(d - length)
            if excess > allowed:
                return u, arc, checked, slack
            slack = max(slack, excess)
            if excess >= -allowed and predecessors[v] == u:
                tight[v] = True
    return -1, -1, checked, slack


@entry
def longest_way(predecessors):
    """Return the most arcs on a path along the predecessors, and -1; or 0 and a vertex on a cycle of predecessors."""
    depths = np.full(predecessors.size, -1, np.int64)  # -1: not visited; -2: on the path that is being followed
    way = np.empty(predecessors.size, predecessors.dtype)
    longest = 0
    for v in range(predecessors.size):
        length, u = 0, v
        while depths[u] == -1 and predecessors[u] >= 0:
            depths[u] = -2
            way[length] = u
            length += 1
            u = predecessors[u]
        if depths[u] == -2:
            return 0, u
        depth = max(depths[u], 0)
        for k in range(length - 1, -1, -1):
            depth += 1
            depths[way[k]] = depth
        longest = max(longest, depth)
    return longest, -1
