"""Distances between given vertices: by Dijkstra's algorithm from each source, by Floyd-Warshall, or on a GPU.

If all arcs have the same length, breadth-first searches replace Dijkstra's algorithm; 64 searches share each step.

Whatever the method, negative weights are first made non-negative by potentials (Johnson). Exact sums find the negative
cycles, and a zero cycle that only rounding makes negative is not taken for one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gpuops
from gpuops.arrays import on_host
from gpuops.certificates import find_potentials, nonnegative_weights
from gpuops.numbers import distance_limit, infinity, outside_infinity, to_outside
from tilepath.csgraph.arcs import Arcs
from tilepath.devices import hop_work, library_for, search_work

Found = tuple[np.ndarray, np.ndarray | None]  # distances, and predecessors (-1: no predecessor) if asked for

_BATCH = 32  # searches on a GPU that share each read of an arc


@dataclass(frozen=True)
class Question:
    """The distances that a caller asks of a graph.

    Attributes
    ----------
    sources : (k,) int64
    together : bool
        Find one row of distances from the nearest source, instead of a row from each source.
    limit : float
        Vertices farther than this count as unreachable.
    predecessors : bool
        Return predecessors too.
    everywhere : bool
        True if a negative cycle is an error even if no source reaches it.
    min_plus : bool or None
        True: Floyd-Warshall; False: searches; None: whichever is less work.
    """

    sources: np.ndarray
    together: bool = False
    limit: float = math.inf
    predecessors: bool = False
    everywhere: bool = True
    min_plus: bool | None = None


def solve(arcs: Arcs, question: Question, device: str) -> Found:
    """Return distances and predecessors, both (k, n), or (1, n) if `together`; predecessors are None if not asked for.

    Raises
    ------
    gpuops.NegativeCycleError
        There is a negative cycle; the error has its vertices.
    OverflowError
        A distance does not fit int32.
    """
    if bool((arcs.weights < 0).any()):
        return _solve_signed(arcs, question, device)
    equal = not question.together and question.min_plus is not True and bool((arcs.weights == arcs.weights[:1]).all())
    if not equal and _by_min_plus(arcs, question):
        return _floyd_warshall(arcs, library_for(arcs.n**3, device)), None
    rows = 1 if question.together else len(question.sources)
    xp = library_for((hop_work if equal else search_work)(rows, arcs.n, len(arcs.weights)), device)
    if equal:
        return _by_hops(arcs, question, xp)
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


def _by_hops(arcs: Arcs, question: Question, xp: Any) -> Found:
    found = gpuops.hop_distances(
        xp.asarray(arcs.indptr),
        xp.asarray(arcs.indices),
        question.sources,
        length=arcs.weights[0].item() if len(arcs.weights) else 1,
        dtype=arcs.weights.dtype,
        limit=question.limit,
        predecessors=question.predecessors,
        check=False,
    )
    distances, trees = found if question.predecessors else (found, None)
    return on_host(distances), on_host(trees)


def _by_min_plus(arcs: Arcs, question: Question) -> bool:
    n, dtype = arcs.n, arcs.weights.dtype
    if question.predecessors or question.together or question.limit != math.inf:
        return False
    if not np.array_equal(question.sources, np.arange(n)):
        return False
    if dtype.kind == "i" and len(arcs.weights) and int(arcs.weights.max()) * n >= distance_limit(dtype):
        return False  # a search raises OverflowError if a distance does not fit
    if question.min_plus is not None:
        return question.min_plus
    return n * n < search_work(1, n, len(arcs.weights))


def _floyd_warshall(arcs: Arcs, xp: Any) -> np.ndarray:
    """Return the distances from all vertices, (n, n)."""
    matrix = np.full((arcs.n, arcs.n), infinity(arcs.weights.dtype))
    np.minimum.at(matrix.reshape(-1), arcs.tails().astype(np.int64) * arcs.n + arcs.indices, arcs.weights)
    matrix = xp.asarray(matrix)
    closed = to_outside(gpuops.floyd_warshall(matrix, out=matrix, nonnegative=True))
    return on_host(closed)


def searches(arcs: Arcs, question: Question, xp: Any) -> Found:
    """Solve by label-correcting searches on a `gpuops.SearchGraph` in arrays of `xp`; weights must not be negative."""
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
        distances[first : first + len(batch)] = on_host(rows)
        if trees is not None:
            for number, (row, group) in enumerate(zip(rows, batch, strict=True), first):
                tree = gpuops.shortest_path_tree(graph, row, group)
                trees[number] = on_host(tree)
    return distances, trees


# --- Negative weights -------------------------------------------------------------------------------------------------


def _solve_signed(arcs: Arcs, question: Question, device: str) -> Found:
    """Solve for negative weights by Johnson's algorithm, in float64.

    Potentials make the weights non-negative, `solve` finds distances over these weights, and the potentials are then
    taken out of the distances.
    """
    weights = signed = arcs.weights.astype(np.float64)
    with np.errstate(over="ignore"):
        if not math.isfinite(4 * float(np.abs(weights).sum())):
            return _solve_scaled(arcs, question, device)
    if not question.everywhere:
        # Negative cycles that no source reaches are no error: raise negative weights to 0 where no source reaches.
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
        # The shifts of sources differ, so paths begin at different distances: add a vertex with an arc to each source.
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


def _solve_scaled(arcs: Arcs, question: Question, device: str) -> Found:
    """Solve with weights divided by a power of two, so that no sum of weights exceeds float64, and scale back."""
    exponent = len(arcs.weights).bit_length() + 3
    smaller = arcs._replace(weights=np.ldexp(arcs.weights, -exponent))
    try:
        distances, trees = solve(smaller, replace(question, limit=math.ldexp(question.limit, -exponent)), device)
    except gpuops.NegativeCycleError as error:
        with np.errstate(over="ignore"):
            weight = float(np.ldexp(error.weight or 0, exponent))
        raise gpuops.NegativeCycleError(str(error), error.vertices, weight) from None
    with np.errstate(over="ignore"):
        return np.ldexp(distances, exponent), trees


def _narrow(distances: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return float64 distances in `dtype`; OverflowError if a distance does not fit int32."""
    if dtype.kind == "i":
        reached = np.isfinite(distances)
        if reached.any() and not (
            -(2**31) <= distances[reached].min() and distances[reached].max() < outside_infinity(dtype)
        ):
            raise OverflowError("distances exceed int32; use float64")
        distances = np.where(reached, distances, outside_infinity(dtype))
    with np.errstate(over="ignore"):
        return distances.astype(dtype, copy=False)
