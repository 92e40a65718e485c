"""The spanning forest on a CPU: the Numba half of `gpuops.graphs.spanning_forest`, by Kruskal's algorithm."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._union_find_numba import unite
from gpuops.graphs.components_numba import flatten_all


def forest(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a mask of the forest's arcs (m,), and for each vertex the least vertex of its component and its parent."""
    n = len(indptr) - 1
    chosen, components = np.zeros(len(indices), bool), np.arange(n, dtype=indices.dtype)
    degrees, neighbours = np.zeros(n, indices.dtype), np.zeros(n, indices.dtype)
    _choose(indptr, indices, components, chosen, degrees, neighbours)
    flatten_all(components)
    parents = np.full(n, -1, indices.dtype)
    _root(components, degrees, neighbours, parents)
    return chosen, components, parents


@entry
def _choose(indptr, indices, sets, chosen, degrees, neighbours):
    """Choose arcs in order unless their ends are joined. `neighbours` gets the xor of the neighbours of each vertex."""
    for tail in range(indptr.size - 1):
        for arc in range(indptr[tail], indptr[tail + 1]):
            head = indices[arc]
            if unite(sets, tail, head):
                chosen[arc] = True
                degrees[tail] += 1
                degrees[head] += 1
                neighbours[tail] ^= head
                neighbours[head] ^= tail


@entry
def _root(components, degrees, neighbours, parents):
    """Remove leaf after leaf, never a root: the one neighbour of a leaf is its parent, and may become a leaf next."""
    for v in range(components.size):
        leaf = v
        while degrees[leaf] == 1 and components[leaf] != leaf:
            parent = neighbours[leaf]
            parents[leaf] = parent
            degrees[leaf] = 0
            degrees[parent] -= 1
            neighbours[parent] ^= leaf
            leaf = parent
