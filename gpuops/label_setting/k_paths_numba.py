"""The Numba kernel and the steps of `gpuops.label_setting.k_paths`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._heap_numba import settle
from gpuops._threads import for_all
from gpuops.csr import transpose

Graph = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, weights, through

_WORK = 1 << 18  # assumed work of a search, in relaxations of a dense matrix; the true work is not known beforehand


class Candidate(NamedTuple):
    """The shortest path that begins like its parent up to the spur, and does not go on to an excluded vertex there."""

    length: float
    path: tuple[int, ...]
    spur: int  # position in `path`
    excluded: tuple[int, ...]


def k_shortest(graph: Graph, source: int, target: int, k: int, slack: float) -> list[tuple[float, tuple[int, ...]]]:
    """Return length and vertices of `gpuops.k_shortest_paths` for checked arguments.

    `slack` bounds the relative rounding error of the length of a path that is added up in two parts.
    """
    indptr, indices, weights, through = graph
    n = len(through)
    starts, tails, arcs = transpose(indptr, indices)
    ahead = _distances_to(starts, tails, weights[arcs], through, target)
    spare: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # memory of searches that have ended

    def search(root: tuple[int, ...], before: float, excluded: tuple[int, ...], limit: float) -> Candidate | None:
        memory = spare.pop() if spare else (np.full(n, np.inf), np.empty(n, np.int32), np.zeros(n, bool))
        ends = np.array(excluded, np.int64)
        length, rest = _spur(graph, ahead, np.array(root), before, ends, target, limit, slack, *memory)
        spare.append(memory)
        return None if len(rest) == 0 else Candidate(length, root + tuple(rest.tolist()), len(root) - 1, excluded)

    if source == target:
        return [(0.0, (source,))]
    first = search((source,), 0.0, (), math.inf)
    candidates = [] if first is None else [first]
    found: list[tuple[float, tuple[int, ...]]] = []
    while candidates:
        length, path, spur, excluded = heapq.heappop(candidates)
        found.append((length, path))
        needed = k - len(found)
        if needed == 0:
            break
        limit = math.inf
        if len(candidates) >= needed:
            limit = heapq.nsmallest(needed, candidates)[-1].length
        sums = _sums(graph, np.array(path))
        branches = [
            (path[: i + 1], sums[i], (*(excluded if i == spur else ()), path[i + 1]), limit)
            for i in range(spur, len(path) - 1)
        ]
        for other in _together(search, branches):
            heapq.heappush(candidates, other)
    return found


def _together(
    search: Callable[..., Candidate | None], branches: list[tuple[tuple[int, ...], float, tuple[int, ...], float]]
) -> list[Candidate]:
    """Search every branch, and return the paths found; threads share the searches."""
    found: list[Candidate | None] = []
    for_all(lambda branch: found.append(search(*branch)), branches, len(branches) * _WORK)
    return [each for each in found if each is not None]


@entry
def _distances_to(starts, tails, weights, through, target):
    """Return the distance of every vertex to `target`, given the graph with its arcs reversed."""
    n = len(through)
    distances, before = np.full(n, np.inf), np.full(n, -1, np.int32)
    queue, place = np.empty(n, np.int32), np.empty(n, np.int32)
    reverse = starts, tails, weights, through
    settle(reverse, np.array([target]), np.inf, np.inf, distances, before, queue, place)
    return distances


@entry
def _sums(graph, path):
    """Return the length of the path up to each of its vertices."""
    indptr, indices, weights, _ = graph
    sums = np.zeros(len(path))
    for i in range(len(path) - 1):
        least = np.inf
        for arc in range(indptr[path[i]], indptr[path[i] + 1]):
            if indices[arc] == path[i + 1]:
                least = min(least, weights[arc])
        sums[i + 1] = sums[i] + least
    return sums


@entry
def _spur(graph, ahead, root, before, excluded, target, limit, slack, lengths, previous, used):
    """Return the length of a shortest path that goes on from `root`, and its vertices after the root.

    Parameters
    ----------
    ahead : (n,) float64
        The distance of every vertex to `target`.
    root : (r,) int64
        The vertices up to the spur; the rest of the path visits none of them.
    before : float
        Length of the root.
    excluded : (e,) int64
        Vertices that the path does not visit directly after the root.
    limit : float
        Longer paths are not needed.
    lengths, previous, used : (n,) float64, (n,) int32, (n,) bool
        Working memory: +inf, anything and False, before and after the call.

    Returns
    -------
    length : float
    rest : (l,) int64
        Empty if there is no path, or no path that is needed.
    """
    indptr, indices, weights, through = graph
    spur = root[-1]
    used[root] = True
    touched, best = [spur], limit
    lengths[spur] = before
    open_vertices = [(before + ahead[spur], spur)]
    while len(open_vertices) > 0:
        key, tail = heapq.heappop(open_vertices)
        if key > best * (1 + slack):
            break
        reach = lengths[tail]
        if tail == target or key > reach + ahead[tail]:  # the vertex was reached on a shorter path meanwhile
            continue
        for arc in range(indptr[tail], indptr[tail + 1]):
            head, length = np.int64(indices[arc]), reach + weights[arc]
            key = length + ahead[head]
            if length >= lengths[head] or used[head] or key == np.inf or key > best * (1 + slack):
                continue
            if (tail == spur and (excluded == head).any()) or (head != target and not through[head]):
                continue
            if head == target:
                best = min(best, length)
            if lengths[head] == np.inf:
                touched.append(head)
            lengths[head], previous[head] = length, tail
            heapq.heappush(open_vertices, (key, head))
    found, rest = lengths[target], [np.int64(0) for _ in range(0)]
    if found < np.inf:
        at = target
        while at != spur:
            rest.append(at)
            at = np.int64(previous[at])
    for vertex in touched:
        lengths[vertex] = np.inf
    used[root] = False
    return found, np.array(rest[::-1], np.int64)
