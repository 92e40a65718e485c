"""Distances between given vertices: by one heap a source, by Floyd-Warshall, or by searches on a GPU.

Negative weights are made non-negative by potentials first, whatever the method (Johnson): exact sums find negative
cycles, and zero cycles that only rounding makes negative do no harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuops
from gpuops.arrays import is_cupy
from gpuops.certificates import find_potentials, nonnegative_weights
from gpuops.numbers import distance_limit, infinity, outside_infinity, to_outside
from tilepath.csgraph.arcs import Arcs
from tilepath.devices import library_for, search_work

Found = tuple[np.ndarray, np.ndarray | None]  # distances and predecessors, -1 where there is none

_BATCH = 32  # searches that share the reads of arcs on a GPU


@dataclass(frozen=True)
class Question:
    """What is asked of a graph.

    Attributes
    ----------
    sources : (k,) int64
    together : bool
        All sources count as one; there is one row then.
    limit : float
        What is farther is unreachable.
    predecessors : bool
    everywhere : bool
        Is a negative cycle an error also where no source reaches it?
    min_plus : bool or None
        Floyd-Warshall, or searches; None: whichever takes less.
    """

    sources: np.ndarray
    together: bool = False
    limit: float = math.inf
    predecessors: bool = False
    everywhere: bool = True
    min_plus: bool | None = None


def solve(arcs: Arcs, question: Question, device: str) -> Found:
    """(k, n) distances and predecessors, or one row of each if `together`.

    Raises
    ------
    gpuops.NegativeCycleError
        With the vertices of a cycle.
    OverflowError
        A distance does not fit int32.
    """
    if bool((arcs.weights < 0).any()):
        return _solve_signed(arcs, question, device)
    if _by_min_plus(arcs, question):
        return _floyd_warshall(arcs, library_for(arcs.n**3, device)), None
    rows = 1 if question.together else len(question.sources)
    xp = library_for(search_work(rows, arcs.n, len(arcs.weights)), device)
    if xp is not np:
        return searches(arcs, question, xp)
    if question.together and not len(question.sources):
        return (
            np.full((1, arcs.n), outside_infinity(arcs.weights.dtype)),
            np.full((1, arcs.n), -1, np.int32) if question.predecessors else None,
        )
    return gpuops.dijkstra_rows(
        arcs.indptr,
        arcs.indices,
        arcs.weights,
        question.sources,
        together=question.together,
        limit=question.limit,
        predecessors=question.predecessors,
        check=False,
    )


def _by_min_plus(arcs: Arcs, question: Question) -> bool:
    n, dtype = arcs.n, arcs.weights.dtype
    if question.predecessors or question.together or question.limit != math.inf:
        return False
    if not np.array_equal(question.sources, np.arange(n)):
        return False
    if dtype.kind == "i" and len(arcs.weights) and int(arcs.weights.max()) * n >= distance_limit(dtype):
        return False  # a search notices what does not fit
    if question.min_plus is not None:
        return question.min_plus
    return n * n < search_work(1, n, len(arcs.weights))


def _floyd_warshall(arcs: Arcs, xp: Any) -> np.ndarray:
    """All rows, in order."""
    matrix = np.full((arcs.n, arcs.n), infinity(arcs.weights.dtype))
    np.minimum.at(matrix.reshape(-1), arcs.tails().astype(np.int64) * arcs.n + arcs.indices, arcs.weights)
    matrix = xp.asarray(matrix)
    closed = to_outside(gpuops.floyd_warshall(matrix, out=matrix, nonnegative=True))
    return closed.get() if is_cupy(closed) else closed


def searches(arcs: Arcs, question: Question, xp: Any) -> Found:
    """By label correcting on a graph that is laid out, of NumPy or CuPy arrays; weights must not be negative."""
    graph = gpuops.search_graph(*map(xp.asarray, arcs[:3]))
    dtype, unreachable = graph.dtype, outside_infinity(graph.dtype)
    sources = question.sources.tolist()
    groups = [sources] if question.together else [[source] for source in sources]
    distances = np.full((len(groups), arcs.n), unreachable, dtype)
    trees = np.full(distances.shape, -1, np.int32) if question.predecessors else None
    for first in range(0, len(groups), _BATCH):
        batch = groups[first : first + _BATCH]
        if question.together:
            rows = gpuops.shortest_distances(graph, sources)[None]
        else:
            rows = gpuops.batched_shortest_distances(graph, sources[first : first + _BATCH])
        if not math.isinf(question.limit):
            rows[~(rows <= question.limit)] = unreachable
            for row, group in zip(rows, batch, strict=True):
                row[xp.asarray(group)] = 0
        distances[first : first + len(batch)] = rows.get() if is_cupy(rows) else rows
        if trees is not None:
            for number, (row, group) in enumerate(zip(rows, batch, strict=True), first):
                tree = gpuops.shortest_path_tree(graph, row, group)
                trees[number] = tree.get() if is_cupy(tree) else tree
    return distances, trees


# --- Negative weights -------------------------------------------------------------------------------------------------


def _solve_signed(arcs: Arcs, question: Question, device: str) -> Found:
    """Johnson: the same question of non-negative weights, and its distances shifted back, in float64."""
    weights = signed = arcs.weights.astype(np.float64)
    if not question.everywhere:
        # Cycles that no source reaches do not count, so no arc there may be negative.
        lengths = np.zeros_like(weights)
        reached = (
            gpuops.dijkstra_rows(arcs.indptr, arcs.indices, lengths, question.sources, together=True, check=False)[0][0]
            == 0
        )
        signed = np.where(reached[arcs.tails()], weights, np.maximum(weights, 0))
    potentials = find_potentials(arcs.indptr, arcs.indices, signed)
    shifts = potentials[0]
    lengths = nonnegative_weights(potentials, 0, arcs.indptr, arcs.indices, signed)
    changed, sources = Arcs(arcs.indptr, arcs.indices, lengths, False), question.sources
    if question.together:
        # One more vertex, from which an arc leads to each source: then paths begin at different distances.
        indptr = np.append(arcs.indptr, arcs.indptr[-1] + len(sources))
        indices = np.append(arcs.indices, sources).astype(np.int32)
        changed = Arcs(indptr, indices, np.append(lengths, -shifts[sources]), False)
        sources = np.array([arcs.n])
    asked = Question(sources, predecessors=question.predecessors, min_plus=question.min_plus)
    distances, trees = solve(changed, asked, device)
    distances, trees = distances[:, : arcs.n], None if trees is None else trees[:, : arcs.n]
    distances += shifts
    if question.together and trees is not None:
        trees[trees == arcs.n] = -1
    if not question.together:
        distances -= shifts[question.sources, None]
    if question.limit != math.inf:
        beyond = ~(distances <= question.limit)
        distances[beyond] = math.inf
        if trees is not None:
            trees[beyond] = -1
    return _narrow(distances, arcs.weights.dtype), trees


def _narrow(distances: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """float64 distances in `dtype`."""
    if dtype.kind == "i":
        reached = np.isfinite(distances)
        if reached.any() and not (
            -(2**31) <= distances[reached].min() and distances[reached].max() < outside_infinity(dtype)
        ):
            raise OverflowError("distances exceed int32; use float64")
        distances = np.where(reached, distances, outside_infinity(dtype))
    return distances.astype(dtype, copy=False)
