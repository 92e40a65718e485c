"""Pulls: vertices look for nearer tails, for one search or for many together.

`search_numba` explains when a search pulls, and why a pass that changes no distance proves that all are final.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuops._atomics import prefetch
from gpuops._compiled_numba import entry, inner
from gpuops._threads import for_all, threads_for
from gpuops.numbers import outside_infinity
from gpuops.sssp.passes_numba import new_counters, next_range, passes_done
from gpuops.sssp.profile_numba import less, profile

_FEW = 1 / 256  # pulls end when a smaller share of the unsettled vertices changes
_PASSES = 64  # most passes of pulls
_GATHER = 256  # cost of a random access, in relaxations of a dense matrix
_ROUNDING = 2.0**-48  # relative error of a few sums in float64
LATE = 2  # mark of a late vertex
_BLOCK = 64  # vertices of a pull whose rows are prefetched together


def pull(
    graph: Any,
    rows: Callable[..., Any],
    distances: np.ndarray,
    floor: Any,
    last: Any,
    late: np.ndarray | None = None,
    *more: Any,
) -> tuple[np.ndarray, int]:
    """Let unsettled vertices look for nearer tails, pass by pass, until few vertices find one.

    Parameters
    ----------
    graph : SearchGraph
    rows : the function of each thread, which pulls ranges of vertices: `pull_rows`, or one with the same signature
    distances : (n,) array of one search, or (n, k) array of k searches; changed in place
    floor : no tail with a smaller key can improve a distance; for k searches, (k,) array
    last : distances with keys up to `last` are final, except the distances of late vertices; for k searches, (k,) array
    late : (n,) uint8, the late vertices, as `Search.late`; changed in place; only for one search
    more : further arguments of `rows`

    Returns
    -------
    changed : (n,) uint8, not 0 for vertices that came nearer in the last pass; other vertices improve no distance
    passes : the number of passes
    """
    given, infinity = profile(graph), outside_infinity(graph.dtype)
    through = np.ones(graph.n, bool) if graph.through is None else graph.through
    arrays = graph.in_indptr, graph.in_indices, graph.in_weights, graph.potentials, given.in_lightest, through
    changed = np.zeros(graph.n, np.uint8) if late is None else late
    rounding = 0
    if graph.potentials is not None:
        rounding = _ROUNDING * (given.magnitude + abs(floor) + abs(last))
        floor, last = floor - rounding, last - rounding
    floors = np.stack([floor, last - rounding])  # from the second pass on, tails with final distances have been read
    counters, relaxations = new_counters(), _GATHER * graph.n

    def work(_: int) -> None:
        rows(*arrays, distances, changed, floors, last, infinity, given.cuts, counters, _FEW, _PASSES, *more)

    for_all(work, range(threads_for(relaxations)), relaxations)
    return changed, passes_done(counters)


@entry
def _plus(weight, tail, potentials):
    return weight if potentials is None else np.float64(weight) + potentials[tail]


@entry
def pull_rows(
    in_indptr, in_indices, in_weights, potentials, in_lightest, through, distances, changed, floors, last, infinity,
    cuts, counters, few, most,
):  # fmt: skip
    """Pull ranges of vertices, pass by pass, with other threads that do the same.

    For one search, the rows of a block of vertices are prefetched together, and then the distances of their first
    tails.
    """
    ranges, number, unsettled, nearer = cuts.size - 1, -1, 0, 0
    heads = np.empty(_BLOCK, np.int32)
    while True:
        number = next_range(counters, ranges, number, unsettled, nearer, few, most)
        if number < 0:
            return
        place, floor = number % ranges, floors[min(number // ranges, 1)]
        unsettled, nearer = 0, 0
        if distances.ndim == 1:  # decided when Numba compiles
            for start in range(cuts[place], cuts[place + 1], _BLOCK):
                end = min(start + _BLOCK, cuts[place + 1])
                more, count = _find(in_lightest, potentials, distances, changed, floor, last, start, end, heads)
                unsettled += more
                nearer += _pull(
                    in_indptr, in_indices, in_weights, potentials, through, distances, changed, floor, last, infinity,
                    heads, count,
                )  # fmt: skip
        else:
            unsettled, nearer = _pull_range_together(
                in_indptr, in_indices, in_weights, in_lightest, through, distances, changed, floor, last, cuts[place],
                cuts[place + 1],
            )  # fmt: skip


@inner
def _find(in_lightest, potentials, distances, changed, floor, last, start, end, heads):
    """List the vertices that may come nearer; return the number of unsettled vertices, and that of listed ones."""
    unsettled, count = 0, 0
    for head in range(start, end):
        known = distances[head]
        if changed[head] != LATE:
            changed[head] = 0
        is_open = less(known, head, potentials) > last
        unsettled += is_open
        heads[count] = head
        count += is_open & (floor + in_lightest[head] < known)
    return unsettled, count


@inner
def _pull(
    in_indptr, in_indices, in_weights, potentials, through, distances, changed, floor, last, infinity, heads, count
):  # fmt: skip
    """Pull the listed vertices, which all have arcs; return the number that came nearer."""
    nearer = 0
    for i in range(count):
        row = in_indptr[heads[i]]
        prefetch(in_indices, row)
        prefetch(in_weights, row)
    for i in range(count):
        prefetch(distances, in_indices[in_indptr[heads[i]]])
    for i in range(count):
        head = heads[i]
        best = known = distances[head]
        for arc in range(in_indptr[head], in_indptr[head + 1]):
            weight, tail = in_weights[arc], in_indices[arc]
            if floor + _plus(weight, tail, potentials) >= best:
                break
            distance = distances[tail] + weight
            if potentials is not None and distances[tail] == infinity:
                continue  # the int32 infinity plus a negative weight is not a distance
            if distance < best and through[tail]:
                best = distance
        if best < known:
            distances[head] = best
            late = potentials is not None and less(best, head, potentials) <= last
            changed[head] = LATE if late else max(changed[head], np.uint8(1))
            nearer += 1
    return nearer


@inner
def _pull_range_together(
    in_indptr, in_indices, in_weights, in_lightest, through, distances, changed, floors, lasts, first_vertex,
    last_vertex,
):  # fmt: skip
    """Pull a range of vertices for all searches; return the same counts of vertices as for one search."""
    unsettled, nearer, searches = 0, 0, distances.shape[1]
    best, bars = np.empty_like(floors), np.empty_like(floors)
    for head in range(first_vertex, last_vertex):
        known = distances[head]
        changed[head] = False
        lightest = in_lightest[head]
        settled, hopeless = 0, 0
        for column in range(searches):
            best[column] = known[column]
            settled += known[column] <= lasts[column]
            # Only sums below its bar can improve a column; no sum is below the bar of a settled column.
            bars[column] = floors[column] if known[column] <= lasts[column] else known[column]
            hopeless += floors[column] + lightest >= bars[column]
        if settled == searches:
            continue
        unsettled += 1
        if hopeless == searches:
            continue
        for arc in range(in_indptr[head], in_indptr[head + 1]):
            weight = in_weights[arc]
            hopeless = 0
            for column in range(searches):
                hopeless += floors[column] + weight >= bars[column]
            if hopeless == searches:
                break
            tail = in_indices[arc]
            if not through[tail]:
                continue
            row = distances[tail]
            for column in range(searches):
                distance = row[column] + weight
                best[column] = distance if distance < best[column] else best[column]
                bars[column] = best[column] if best[column] < bars[column] else bars[column]
        improved = 0
        for column in range(searches):
            improved += best[column] < known[column]
            known[column] = best[column]
        if improved:
            changed[head] = True
            nearer += 1
    return unsettled, nearer
