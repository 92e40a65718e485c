"""Potentials on a CPU: they make negative weights non-negative (Johnson), so that a search can go by windows and pulls.

The least length of all walks that begin at v, which is at most 0, is -p(v). Then w + p(u) - p(v) is not negative for
any arc from u to v.
Potentials are found in passes over the rows, each vertex taking the minimum over its own arcs. Threads take ranges of
rows: what another one writes meanwhile is an upper bound, before and after, and the result does not depend on it.

D. B. Johnson, "Efficient algorithms for shortest paths in sparse networks", Journal of the ACM 24, 1977.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gpuops._threads import for_all
from gpuops.csr import equal_ranges

_PASSES = 32  # about ten do on R-MAT graphs; long chains would take one for each arc, and negative cycles have no end
_TASKS, _TASK = 64, 2**15  # that many tasks, or fewer of so many arcs
_READ = 8  # what an arc takes, in relaxations of a dense matrix


def potentials(
    indptr: np.ndarray, degrees: np.ndarray, heads: np.ndarray, weights: np.ndarray, through: np.ndarray | None
) -> np.ndarray | None:
    """Potentials p with w + p[u] - p[v] >= 0, up to rounding of float64, for every arc from an open vertex u to v.

    Parameters
    ----------
    indptr, degrees, heads, weights : (n + 1,), (n,), (m,), (m,) arrays
        Row v has the first ``degrees[v]`` arcs from ``indptr[v]`` on.
    through : (n,) array of bool, or None
        May the vertex lie inside a path?

    Returns
    -------
    (n,) float64, or None
        None where there are no potentials, because of a negative cycle, or where it would take long to find them.
    """
    n = len(degrees)
    rounding = 2.0**-51 if weights.dtype == np.float64 else 0.0
    lengths = np.zeros(n)
    ranges = equal_ranges(indptr, min(_TASKS, 1 + len(heads) // _TASK))
    for _ in range(_PASSES):
        counts: list[int] = []

        def look(rows: tuple[int, int], counts: list[int] = counts) -> None:
            counts.append(_look_ahead(indptr, degrees, heads, weights, through, rounding, lengths, *rows))

        for_all(look, ranges, _READ * len(heads))
        if not sum(counts):
            return -lengths if np.isfinite(lengths).all() else None
    return None


@njit(nogil=True, cache=True)
def _look_ahead(indptr, degrees, heads, weights, through, rounding, lengths, first_row, last_row):
    """How many rows of a range found a shorter walk.

    Sums of float64 are rounded down by more than their error, so that no negative cycle is overlooked.
    """
    nearer = 0
    for row in range(first_row, last_row):
        if through is not None and not through[row]:
            continue
        best = lengths[row]
        begin = np.uint64(indptr[row])
        for arc in range(begin, begin + np.uint64(degrees[row])):
            length = np.float64(weights[arc]) + lengths[np.uint64(heads[arc])]
            length -= rounding * abs(length)
            best = length if length < best else best
        if best < lengths[row]:
            lengths[row] = best
            nearer += 1
    return nearer
