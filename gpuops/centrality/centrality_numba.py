"""Sums of dependencies on a CPU: the Numba half of `gpuops.centrality`. A task takes a group of sources."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._heap_numba import settle
from gpuops._threads import for_all
from gpuops.centrality.absorbed import Absorbed
from gpuops.centrality.levels_numba import count_by_levels, depend_by_levels
from gpuops.centrality.pairwise_sums import Arrays, PairwiseSums
from gpuops.centrality.tight_arcs_numba import (
    ABSORBED,
    count_on_tight_arcs,
    depend_on_tight_arcs,
    find_tight_arcs,
)

GROUP = 16  # sources whose dependencies are added one after the other
_VISIT, _ARC = 64, 16  # cost of a vertex and of an arc for a source, in relaxations of a dense matrix
# Up to this number of paths, neither the number nor its inverse leaves the range of float64.
LARGEST_COUNT = 2.0**1000
_COMPLETE = -1


def sums(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    lengths: np.ndarray,
    sources: np.ndarray,
    endpoints: bool,
    arcs: bool,
    largest: float = LARGEST_COUNT,
) -> Arrays:
    """Return the sums over the sources; see `gpuops.centrality.Summation`.

    Parameters
    ----------
    rows : indptr (n,), stops (n,), heads (m,)
        int64, int64, uint32. The arcs out of v are ``indptr[v]`` to ``stops[v] - 1``, or to ``indptr[v + 1] - 1`` if v
        is the source.
    lengths : (m,) float64
        Above 0; an empty array if every arc has the length 1.
    largest : float
        Larger numbers of paths are counted with exponents. The result does not depend on `largest`.

    Raises
    ------
    Absorbed
        The length of an arc is lost in a distance.
    """
    indptr, stops, heads = rows
    n, m = len(indptr) - 1, len(heads)
    groups = range(0, len(sources), GROUP)
    tree = PairwiseSums(len(groups))
    absorbed: list[int] = []

    def work(number: int) -> None:
        group = sources[groups[number] : groups[number] + GROUP]
        part = np.zeros(n), np.zeros(m if arcs else 0), np.zeros(2)
        arc = _add(indptr, stops, heads, lengths, group, 1.0 if endpoints else 0.0, largest, *part)
        if arc != _COMPLETE:
            absorbed.append(arc)
        tree.add(number, part)

    for_all(work, range(len(groups)), len(sources) * (_VISIT * n + _ARC * m))
    if absorbed:
        raise Absorbed(min(absorbed))
    return tree.total() if len(groups) else (np.zeros(n), np.zeros(m if arcs else 0), np.zeros(2))


@entry
def _add(indptr, stops, heads, lengths, sources, added, largest, vertices, arcs, totals):
    """Add the dependencies of each source to `vertices` and `arcs`, and to `totals` the pairs and their inner vertices.

    Returns the number of an arc whose length is lost in a distance, or `_COMPLETE`.
    """
    n, weighted = len(indptr) - 1, len(lengths) > 0
    stops, graph = stops.copy(), (indptr, heads, lengths, stops > indptr[:-1])
    order, bounds = np.empty(n + 1, np.uint32), np.empty(n + 1, np.int64)
    paths, seen, shares = np.empty(n), np.empty(n, np.uint8), np.zeros(n)
    counts, dependencies = np.empty(n), np.empty(n)
    # The following arrays take memory only once they are used.
    exponents, inner, distances = np.empty(n, np.int32), np.empty(n), np.empty(n)
    firsts, tight = np.empty(n + 1, np.int64), np.empty(len(heads), np.int64)
    predecessors, queue, place = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    for source in sources:
        stop = stops[source]
        stops[source] = indptr[source + 1]  # paths may begin at a closed vertex
        if weighted:
            distances[:], predecessors[:] = np.inf, -1
            reached, _ = settle(graph, np.array([source]), np.inf, np.inf, distances, predecessors, queue, place)
            for i in range(reached):
                order[i] = queue[n - 1 - i]
        else:
            reached, levels, most = count_by_levels(indptr, stops, heads, source, order, bounds, paths, seen, counts)
        if weighted or most > largest:
            if not weighted:
                distances[:] = np.inf
                for level in range(levels):
                    for i in range(bounds[level], bounds[level + 1]):
                        distances[order[i]] = level
            size = find_tight_arcs(indptr, stops, heads, lengths, order, reached, distances, firsts, tight)
            if size < 0:
                return ABSORBED - size
            count_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, inner)
            depend_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, shares, added, vertices, arcs)
            if not weighted:
                shares[:] = 0.0
            for i in range(1, reached):
                totals[1] += inner[order[i]] - 1.0
        else:
            depend_by_levels(
                indptr, stops, heads, order, bounds, levels, counts, shares, dependencies, added, vertices, arcs
            )
            for level in range(1, levels):
                totals[1] += (level - 1.0) * (bounds[level + 1] - bounds[level])
        totals[0] += reached - 1
        vertices[source] += added * (reached - 1)
        stops[source] = stop
    return _COMPLETE


@entry
def simplify(indptr, indices, weights, starts, heads, lengths, places):
    """Drop loops and missing arcs, and keep the lightest of parallel arcs.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) or (0,) arrays
        Without weights, every arc has the weight 1; an arc of weight +inf is missing.
    starts, heads, lengths : (n + 1,) int64, (m,) uint32, (m,) or (0,) float64
        Receive the arcs kept, in compressed sparse rows, in the order of their first arcs.
    places : (m,) int64
        Receives for each given arc the number of its kept arc, or -1 for loops and missing arcs.
    """
    n, weighted, size = len(indptr) - 1, len(weights) > 0, 0
    at = np.full(n, -1, np.int64)
    starts[0] = 0
    for tail in range(n):
        begin = size
        for arc in range(indptr[tail], indptr[tail + 1]):
            head = indices[arc]
            weight = weights[arc] if weighted else 1.0
            if head == tail or weight == np.inf:
                places[arc] = -1
                continue
            if at[head] < begin:
                at[head] = size
                heads[size] = head
                if weighted:
                    lengths[size] = weight
                size += 1
            elif weighted and weight < lengths[at[head]]:
                lengths[at[head]] = weight
            places[arc] = at[head]
        starts[tail + 1] = size
