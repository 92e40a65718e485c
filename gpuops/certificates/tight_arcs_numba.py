"""Tight arcs on a CPU: the Numba half of `gpuops.certificates.tight_arcs`."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry


@entry
def breadth_first(arcs, row, unreachable, source, relative, absolute):
    """Return the predecessors and levels of a breadth-first search along tight arcs; see `tight_arcs`."""
    indptr, indices, weights, through = arcs
    n = row.size
    predecessors, levels = np.full(n, -1, indices.dtype), np.full(n, -1, indices.dtype)
    queue = np.empty(n, indices.dtype)
    queue[0], levels[source] = source, 0
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        if u != source and not through[u]:
            continue
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            if levels[v] >= 0 or row[v] == unreachable:
                continue
            if abs(row[u] + weights[arc] - row[v]) <= relative * abs(row[v]) + absolute:
                predecessors[v], levels[v] = u, levels[u] + 1
                queue[tail] = v
                tail += 1
    return tail, levels[queue[tail - 1]], predecessors, levels
