"""Potentials on a CPU: they make negative weights non-negative (Johnson), so that a search can use windows and pulls.

The least length of all walks that begin at v, which is at most 0, is -p(v). Then w + p(u) - p(v) is not negative for
any arc from u to v. Potentials are found in passes over the rows: each vertex takes the minimum over its own arcs.
Threads take ranges of rows. A length that another thread changes meanwhile is an upper bound before and after the
change, so the result does not depend on the order of threads.

D. B. Johnson, "Efficient algorithms for shortest paths in sparse networks", Journal of the ACM 24, 1977.
"""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import for_all
from gpuops.csr import equal_ranges

# Most passes. R-MAT graphs take about ten; a long chain would take a pass for each arc, a negative cycle takes no end.
_PASSES = 32
_TASKS, _TASK = 64, 2**15  # most tasks of a pass; arcs of a task if there are fewer tasks
_READ = 8  # cost of reading an arc, in relaxations of a dense matrix


def potentials(
    indptr: np.ndarray, degrees: np.ndarray, heads: np.ndarray, weights: np.ndarray, through: np.ndarray | None
) -> np.ndarray | None:
    """Return potentials p with w + p[u] - p[v] >= 0, up to float64 rounding, for every arc from an open vertex u to v.

    Parameters
    ----------
    indptr, degrees, heads, weights : (n + 1,), (n,), (m,), (m,) arrays
        Row v has the first ``degrees[v]`` arcs from ``indptr[v]`` on.
    through : (n,) array of bool, or None
        Whether a path may pass through the vertex.

    Returns
    -------
    (n,) float64, or None
        None if there are no potentials, because of a negative cycle, or if finding them would take too many passes.
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


@entry
def _look_ahead(indptr, degrees, heads, weights, through, rounding, lengths, first_row, last_row):
    """Shorten the walks of a range of rows; return the number of rows that found a shorter walk.

    Sums of float64 are lowered by more than their rounding error, so that no negative cycle is overlooked.
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
