"""Breadth-first searches of batches of small graphs on a CPU: the Numba half of `gpuops.hops.encodings`."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import copy, entry
from gpuops._threads import for_all

_TASK = 2**16  # pairs of vertices for which small graphs are grouped into one task of a thread
_PAIR = 16  # cost of a pair of vertices, in relaxations of a dense matrix


def encodings(
    indptr: np.ndarray, indices: np.ndarray, starts: np.ndarray, size: int, longest: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return `gpuops.path_encodings` for checked arguments, and the number of an arc between two graphs, or -1."""
    count = len(starts) - 1
    hops = np.full((count, size, size), -1, np.int16)
    no_arcs = np.empty((count, size, size, 0), np.int32)
    together = max(1, _TASK // max(1, size * size))
    wrong: list[int] = []

    def search(first: int, arcs: np.ndarray) -> None:
        some = slice(first, first + together)
        wrong.append(_search(indptr, indices, starts[first : first + together + 1], hops[some], arcs[some]))

    def search_all(arcs: np.ndarray) -> None:
        work = count * size * size * (_PAIR + arcs.shape[3])
        for_all(lambda first: search(first, arcs), range(0, count, together), work)

    if longest is None:  # the length of the longest path is not known yet
        search_all(no_arcs)
        longest = max(0, int(hops.max(initial=0)))
    arcs = np.full((count, size, size, longest), -1, np.int32)
    search_all(arcs)
    return hops, arcs, max(wrong, default=-1)


@entry
def _search(indptr, indices, starts, hops, arcs):
    """Search from each vertex of each graph. Returns the number of an arc between two graphs, or -1."""
    size, longest = hops.shape[1], arcs.shape[3]
    queue = np.empty(size, np.int64)  # vertices by distance
    wrong = -1
    for graph in range(len(starts) - 1):
        first, n = starts[graph], starts[graph + 1] - starts[graph]
        for source in range(n):
            row, paths = hops[graph, source], arcs[graph, source]
            row[:] = -1
            row[source], queue[0] = 0, source
            begin, end = 0, 1
            while begin < end:
                tail = queue[begin]
                begin += 1
                for arc in range(indptr[first + tail], indptr[first + tail + 1]):
                    head = indices[arc] - first
                    if head < 0 or head >= n:
                        wrong = arc
                    elif row[head] < 0:
                        row[head] = row[tail] + 1
                        queue[end] = head
                        end += 1
                        kept = min(longest, row[tail])
                        copy(paths[tail, :kept], paths[head])
                        if row[tail] < longest:
                            paths[head, row[tail]] = arc
    return wrong
