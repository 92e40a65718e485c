"""Tests of a row of distances on a CPU: the Numba half of `gpuops.certificates.distances`."""

from __future__ import annotations

from gpuops._compiled_numba import entry


@entry
def triangles(arcs, row, unreachable, source, relative, absolute):
    """Return the tail and the arc that break condition 2 (or -1, -1), the arcs tested and the largest excess."""
    indptr, indices, weights, through = arcs
    checked, slack = 0, 0.0
    for u in range(row.size):
        if row[u] == unreachable or not (u == source or through[u]):
            continue
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            excess = float(row[v] - (row[u] + weights[arc]))
            if row[v] == unreachable or excess > relative * abs(row[v]) + absolute:
                return u, arc, checked, slack
            checked += 1
            slack = max(slack, excess)
    return -1, -1, checked, slack
