"""Sums of flows on a CPU: the Numba half of `gpuops.centrality.flows`. A task takes a group of origins."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._heap_numba import settle
from gpuops._threads import for_all
from gpuops.centrality.absorbed import Absorbed
from gpuops.centrality.centrality_numba import GROUP
from gpuops.centrality.pairwise_sums import Arrays, PairwiseSums
from gpuops.centrality.tight_arcs_numba import (
    ABSORBED,
    count_on_tight_arcs,
    find_tight_arcs,
    flows_on_tight_arcs,
)

_VISIT, _ARC = 128, 16  # cost of a vertex and of an arc for an origin, in relaxations of a dense matrix
_COMPLETE, _LOST, _UNREACHABLE = 0, 1, 2


class Unreachable(Exception):
    """No path leads from the origin to the destination of the pair with this number."""


def sums(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    lengths: np.ndarray,
    demand: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> Arrays:
    """Return the sums over the origins; see `gpuops.centrality.flows.FlowSummation`.

    Parameters
    ----------
    rows : indptr (n,), stops (n,), heads (m,)
        As for `gpuops.centrality.centrality_numba.sums`.
    lengths : (m,) float64
        Above 0.
    demand : origins (k,), starts (k + 1,), destinations (p,), amounts (p,)
        As in `gpuops.centrality.flows.Demand`.

    Raises
    ------
    Absorbed, Unreachable
        The length of an arc is lost in a distance, or a pair has no path; with the lowest number of an arc or a pair.
    """
    indptr, stops, heads = rows
    origins, starts, destinations, amounts = demand
    n, m = len(indptr) - 1, len(heads)
    groups = range(0, len(origins), GROUP)
    if not len(groups):
        return np.zeros(m), np.zeros(1)
    tree = PairwiseSums(len(groups))
    faults: list[tuple[int, int]] = []

    def work(number: int) -> None:
        some = slice(groups[number], groups[number] + GROUP)
        part = np.zeros(m), np.zeros(1)
        bounds = starts[groups[number] : groups[number] + GROUP + 1]
        fault = _add(indptr, stops, heads, lengths, origins[some], bounds, destinations, amounts, *part)
        if fault[0] != _COMPLETE:
            faults.append(fault)
        tree.add(number, part)

    for_all(work, range(len(groups)), len(origins) * (_VISIT * n + _ARC * m))
    if faults:
        kind, number = min(faults)
        raise (Absorbed if kind == _LOST else Unreachable)(number)
    return tree.total()


@entry
def _add(indptr, stops, heads, lengths, origins, bounds, destinations, amounts, arcs, cost):
    """Add the flows of each origin to `arcs`, and their cost to ``cost[0]``.

    Returns `_COMPLETE`; or `_LOST` and the number of an arc; or `_UNREACHABLE` and the number of a pair.
    """
    n = len(indptr) - 1
    stops, graph = stops.copy(), (indptr, heads, lengths, stops > indptr[:-1])
    order, distances = np.empty(n, np.int32), np.empty(n)
    predecessors, queue, place = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    firsts, tight = np.empty(n + 1, np.int64), np.empty(len(heads), np.int64)
    counts, exponents, inner = np.empty(n), np.empty(n, np.int32), np.empty(n)
    ending, shares = np.zeros(n), np.zeros(n)
    for i in range(len(origins)):
        origin = origins[i]
        stop = stops[origin]
        stops[origin] = indptr[origin + 1]  # paths may begin at a closed vertex
        distances[:], predecessors[:] = np.inf, -1
        reached, _ = settle(graph, np.array([origin]), np.inf, np.inf, distances, predecessors, queue, place)
        for j in range(reached):
            order[j] = queue[n - 1 - j]
        for pair in range(bounds[i], bounds[i + 1]):
            if distances[destinations[pair]] == np.inf:
                return _UNREACHABLE, pair
            ending[destinations[pair]] += amounts[pair]
            cost[0] += amounts[pair] * distances[destinations[pair]]
        size = find_tight_arcs(indptr, stops, heads, lengths, order, reached, distances, firsts, tight)
        if size < 0:
            return _LOST, ABSORBED - size
        count_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, inner)
        flows_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, shares, ending, arcs)
        for pair in range(bounds[i], bounds[i + 1]):
            ending[destinations[pair]] = 0.0
        stops[origin] = stop
    return _COMPLETE, 0
