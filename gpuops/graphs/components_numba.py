"""Weak components on a CPU: the Numba half of `gpuops.graphs.weak_components`, union-find by all threads at once."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import by_parts, for_all
from gpuops._union_find_numba import find, flatten, unite
from gpuops.csr.csr_numba import parts

_TASKS = 64
_GATHER = 64  # cost of a random access, in relaxations of a dense matrix


def labels(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the least vertex of each vertex's component, (n,) of the dtype of `indices`."""
    n, m = len(indptr) - 1, len(indices)
    parents = np.arange(n, dtype=indices.dtype)
    for_all(lambda part: _unite_ends(indptr, indices, *part, parents), parts(indptr, m, _TASKS), _GATHER * m)
    flatten_all(parents)
    return parents


def flatten_all(parents: np.ndarray) -> None:
    """Make all elements of `parents` (n,) point to their roots."""
    by_parts(lambda part: flatten(parents, part.start, part.stop), len(parents), _GATHER * len(parents))


@entry
def _unite_ends(indptr, indices, row, first, last, parents):
    arc = first
    while arc < last:
        end = min(indptr[row + 1], last)
        root = find(parents, row)
        while arc < end:
            head = indices[arc]
            if parents[head] != root:  # skips `unite` if the head is known to be in the set, as it mostly is
                unite(parents, root, head)
            arc += 1
        row += 1
