"""Certificate of shortest paths from given sources: proof in O(m), without a second solver.

d are the distances, p the predecessors, c(s) the distance at which paths begin at a source s (0 by default). A vertex u
*pushes* d(u) if it may lie inside a path. A closed source s pushes c(s), because paths begin there. Other closed
vertices push no distance. The result is correct if and only if

1. d(s) <= c(s) for every source s;
2. d(v) <= push(u) + w for every arc (u, v) of weight w whose tail pushes and is reached: *feasible*. In particular v is
   then reached, so no arc leads out of the reached set: *closed*;
3. a reached vertex either has p(v) = -1, is a source and has d(v) = c(v), or an arc (p(v), v) exists and is *tight*,
   push(p(v)) + w = d(v). A vertex that is not reached has p(v) = -1;
4. following p from any vertex ends: the predecessors are a *forest*. Rule 3 does not imply this, because around a cycle
   of weight zero every arc may be tight.

By (1) and (2), summed along any path to v, d(v) is at most the length of the path; by (3) and (4) some path has exactly
the length d(v). Weights may be negative: summed around a cycle of reached vertices, (2) says that the cycle is not
negative.

With a cutoff, an arc that leads beyond the cutoff need not reach its head, and no distance may exceed the cutoff. With
negative weights a path may leave the cutoff and come back, so a cutoff and negative weights cannot be combined.

Integers are exact, in int64. Floats are exact too if the solver takes minima of sums push(u) + w, each rounded to the
dtype of the distances, and stops when no arc improves a distance. Dijkstra's algorithm and every label-correcting
search do so: the test then repeats the last comparisons of the solver. Results that were summed in another
order or precision (Floyd-Warshall, potentials) need `exact=False`. It grants the rounding of path sums, as derived in
`gpuops.certificates.tight_arcs`, for the number of arcs of the longest path in the forest.

The rules come from the Graph500 specification (validation of the single-source shortest path kernel), which covers
undirected graphs and non-negative weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuops import csr
from gpuops._threads import for_all
from gpuops.certificates.certificate import Certificate
from gpuops.certificates.paths_numba import check_arcs, longest_way
from gpuops.certificates.tight_arcs import Arcs, potential_range, seen_weights, tolerances
from gpuops.errors import VerificationError
from gpuops.numbers import check_dtype, outside_infinity

_TASKS = 64  # ranges of vertices with about equal numbers of arcs, for the threads


@dataclass(frozen=True, eq=False)
class _Claim:
    """The arrays to be proven right, in the arithmetic of the proof."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    distances: np.ndarray
    predecessors: np.ndarray
    roots: np.ndarray  # the sources, each once
    begins: np.ndarray  # (n) c(v) of the module's docstring; `unreachable` except at sources
    pushes: np.ndarray  # (n) push(v) of the module's docstring; `unreachable` where a vertex pushes no distance
    unreachable: Any
    limit: Any  # the cutoff, or None
    label: Callable[[int], str]  # names a vertex in messages
    relative: float = 0.0
    absolute: float = 0.0

    @property
    def reached(self) -> np.ndarray:
        return self.distances != self.unreachable


def verify_paths(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    distances: np.ndarray,
    predecessors: np.ndarray,
    sources: int | Sequence[int] | np.ndarray,
    *,
    starts: Any = None,
    through: np.ndarray | None = None,
    cutoff: float | None = None,
    exact: bool = True,
    label: Callable[[int], str] = str,
) -> Certificate:
    """Prove one row of distances and predecessors correct.

    Parameters
    ----------
    indptr, indices, weights : the graph in CSR, n + 1, m and m entries; loops and parallel arcs welcome. Weights are
        rounded to the dtype of the distances, as a computation in that dtype sees them.
    distances : (n) float32, float64, int32 or int16; unreachable is +inf, or the dtype's maximum
    predecessors : (n) integers, -1 at roots and at unreachable vertices. A closed source may itself have a predecessor;
        the paths of the vertices that it precedes still begin at the source.
    sources : one vertex, or several: every distance is then the distance from the nearest source
    starts : distance at which paths begin, one number or one for each source; default 0
    through : bool (n), whether the vertex may lie inside a path; None: every vertex may
    cutoff : largest distance searched for, rounded to the dtype of the distances; farther vertices are unreachable
    exact : False: grant the rounding of path sums, for results that were not summed and rounded arc by arc
    label : names a vertex in messages, such as `Graph.label`; default: the number of the vertex

    Returns
    -------
    Certificate
        `arcs` is the number of arcs tested, `hops` the number of arcs on the longest path of the forest. The tolerance
        is 0 unless ``exact=False``.

    Raises
    ------
    VerificationError
        A rule is broken; the message names the vertex or the arc, and the numbers.
    ValueError
        The arguments do not belong together, or a cutoff is given with negative weights.
    NegativeCycleError
        With ``exact=False``: there are no shortest paths.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> distances, predecessors = np.array([0, 3, 4], "int32"), np.array([-1, 0, 1], "int32")
    >>> tilepath.verify_paths(indptr, indices, weights, distances, predecessors, 0)
    Certificate(rows=1, arcs=4, hops=2, relative=0.0, absolute=0.0, slack=0.0)
    """
    claim = _claim(indptr, indices, weights, distances, predecessors, sources, starts, through, cutoff, label)
    _check_entries(claim)
    hops = _forest(claim)
    if not exact and claim.distances.dtype.kind == "f":
        claim = _grant(claim, through, hops)
    _check_roots(claim)
    checked, slack = _check_arcs(claim)
    return Certificate(1, checked, hops, claim.relative, claim.absolute, slack)


def _claim(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, distances: np.ndarray, predecessors: np.ndarray,
    sources: Any, starts: Any, through: np.ndarray | None, cutoff: float | None, label: Callable[[int], str],
) -> _Claim:  # fmt: skip
    """Check the arguments and convert them to one arithmetic."""
    n, dtype = len(indptr) - 1, check_dtype(distances.dtype)
    for name, values in (("distances", distances), ("predecessors", predecessors), ("through", through)):
        if values is not None and values.shape != (n,):
            raise ValueError(f"{name} have the shape {values.shape}; the graph has {n} vertices, so give ({n},)")
    if predecessors.dtype.kind != "i":
        raise ValueError(f"predecessors are {predecessors.dtype}; pass signed integers, -1 for none")
    weights = seen_weights(np.asarray(weights), dtype)
    unreachable = outside_infinity(dtype)
    roots, begins = _begins(n, dtype, sources, starts)
    pushes = distances = np.ascontiguousarray(distances)
    if through is not None:
        pushes = np.where(through, distances, unreachable)
        closed = roots[~through[roots]]
        pushes[closed] = begins[closed]
    limit: Any = None
    if cutoff is not None:
        if np.isnan(cutoff):
            raise ValueError("the cutoff is NaN; give a number")
        if weights.size and weights.min() < 0:
            raise ValueError(
                "with negative weights a path may leave the cutoff and come back, so a result within it cannot be "
                "proven; search without a cutoff and verify that"
            )
        limit = dtype.type(cutoff) if dtype.kind == "f" else int(np.floor(min(cutoff, int(unreachable) - 1)))
    predecessors = np.ascontiguousarray(predecessors)
    return _Claim(indptr, indices, weights, distances, predecessors, roots, begins, pushes, unreachable, limit, label)


def _begins(n: int, dtype: np.dtype, sources: Any, starts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sources, each once, and (n) the distance at which paths begin, unreachable except at sources."""
    given = np.atleast_1d(np.asarray(sources))
    if given.size == 0 or given.dtype.kind not in "iu" or given.ndim != 1:
        raise ValueError("name at least one source, by vertex number")
    if given.min() < 0 or given.max() >= n:
        raise ValueError(f"a source is outside the vertices 0..{n - 1}")
    offered = np.broadcast_to(np.asarray(0 if starts is None else starts), given.shape)
    if not np.isfinite(offered).all() or (dtype.kind != "f" and not np.array_equal(offered.astype(dtype), offered)):
        raise ValueError(f"the distances at which paths begin must be finite {dtype} numbers, not {starts}")
    begins = np.full(n, outside_infinity(dtype), dtype=dtype)
    np.minimum.at(begins, given, offered.astype(dtype))
    return np.unique(given), begins


def _check_entries(claim: _Claim) -> None:
    """Check the distance and the predecessor of each vertex, without the arcs."""
    distances, predecessors, reached = claim.distances, claim.predecessors, claim.reached
    n, label = len(distances), claim.label
    if distances.dtype.kind == "f":
        for v in np.flatnonzero(np.isnan(distances) | (distances == -np.inf))[:1]:
            raise VerificationError(f"the distance of vertex {label(v)} is {distances[v]}")
    for v in np.flatnonzero((predecessors < -1) | (predecessors >= n))[:1]:
        raise VerificationError(f"the predecessor of vertex {label(v)} is {predecessors[v]}; vertices are 0..{n - 1}")
    for v in np.flatnonzero(~reached & (predecessors >= 0))[:1]:
        before = label(predecessors[v])
        raise VerificationError(f"vertex {label(v)} is unreachable, but has the predecessor {before}")
    if claim.limit is not None:
        for v in np.flatnonzero(reached & (distances > claim.limit))[:1]:
            raise VerificationError(
                f"the distance of vertex {label(v)} is {distances[v]}, beyond the cutoff {claim.limit}"
            )
    root = reached & (predecessors < 0)
    root[claim.roots] = False
    for v in np.flatnonzero(root)[:1]:
        raise VerificationError(
            f"vertex {label(v)} is at the distance {distances[v]} without a predecessor, and is not a source"
        )


def _forest(claim: _Claim) -> int:
    """Check rule 4, and return the most arcs on a path of the forest."""
    predecessors = claim.predecessors
    hops, v = longest_way(predecessors)
    if v < 0:
        return hops
    cycle, u = [v], int(predecessors[v])
    while u != v:
        cycle.append(u)
        u = int(predecessors[u])
    cycle.reverse()
    names = [claim.label(u) for u in (cycle if len(cycle) <= 12 else [*cycle[:6], cycle[-1]])]
    if len(cycle) > 12:
        names.insert(6, f"({len(cycle) - 7} more)")
    raise VerificationError(f"the predecessors form a cycle, {' -> '.join([*names, names[0]])}")


def _grant(claim: _Claim, through: np.ndarray | None, hops: int) -> _Claim:
    """Return the claim in float64, with the tolerance for paths one arc longer than the longest, plus a start."""
    graph = claim.indptr, claim.indices, claim.weights
    shift, starts = potential_range(*graph, through), claim.begins[claim.roots]
    if starts.min() < 0:  # partial sums may then exceed the distance at the end of the path; a spread bounds them
        shift += float(np.abs(starts).max())
    mask = np.ones(len(claim.distances), dtype=bool) if through is None else through
    arcs = Arcs(*graph, mask, claim.distances.dtype, shift)
    relative, absolute = tolerances(arcs, claim.distances.astype(np.float64), hops + 2)
    lifted = {name: getattr(claim, name).astype(np.float64) for name in ("weights", "distances", "begins", "pushes")}
    return replace(claim, **lifted, unreachable=np.inf, relative=float(relative), absolute=float(absolute))


def _check_roots(claim: _Claim) -> None:
    """Check rule 1, and rule 3 for roots."""
    roots, reached = claim.roots, claim.reached[claim.roots]
    lost = roots[~reached]
    if claim.limit is not None:
        lost = lost[claim.begins[lost] <= claim.limit]
    for s in lost[:1]:
        raise VerificationError(f"source {claim.label(s)} is unreachable, but paths begin there at {claim.begins[s]}")
    roots = roots[reached]
    wide = np.int64 if claim.distances.dtype.kind == "i" else claim.distances.dtype
    begins, found = claim.begins[roots].astype(wide), claim.distances[roots].astype(wide)
    for i in np.flatnonzero(found - begins > claim.relative * np.abs(found) + claim.absolute)[:1]:
        raise VerificationError(
            f"source {claim.label(roots[i])} is at the distance {found[i]}, but paths begin there at {begins[i]}"
        )
    for i in np.flatnonzero((claim.predecessors[roots] < 0) & (found != begins))[:1]:
        raise VerificationError(
            f"source {claim.label(roots[i])} is at the distance {found[i]} without a predecessor, "
            f"but paths begin there at {begins[i]}"
        )


def _check_arcs(claim: _Claim) -> tuple[int, float]:
    """Check rule 2, and rule 3 except for roots, in one pass; return the number of arcs tested, the largest excess."""
    n, m = len(claim.distances), len(claim.indices)
    within = claim.distances.dtype.type(0 if claim.limit is None else claim.limit)
    ranges = csr.equal_ranges(claim.indptr, _TASKS)
    tight = np.zeros(n, dtype=bool)
    found = [(-1, -1, 0, 0.0)] * len(ranges)

    def check(k: int) -> None:
        found[k] = check_arcs(
            claim.indptr, claim.indices, claim.weights, claim.distances, claim.predecessors, claim.pushes,
            claim.unreachable, claim.limit is not None, within, claim.relative, claim.absolute,
            *ranges[k], tight,
        )  # fmt: skip

    for_all(check, range(len(found)), m)
    for u, arc, _, _ in found:
        if arc >= 0:
            v = int(claim.indices[arc])
            state = "unreachable" if not claim.reached[v] else f"at the distance {claim.distances[v]}"
            raise VerificationError(f"vertex {claim.label(v)} is {state}, but {_sum_along(claim, u, arc)} at most")
    for v in np.flatnonzero((claim.predecessors >= 0) & ~tight)[:1]:
        raise VerificationError(_not_tight(claim, int(v)))
    return sum(count for _, _, count, _ in found), max(slack for _, _, _, slack in found)


def _not_tight(claim: _Claim, v: int) -> str:
    """Say why no arc from its predecessor gives vertex v its distance."""
    u, label = int(claim.predecessors[v]), claim.label
    arcs = np.arange(claim.indptr[u], claim.indptr[u + 1])
    arcs = arcs[claim.indices[arcs] == v]
    claimed = f"vertex {label(v)} is at the distance {claim.distances[v]} with the predecessor {label(u)}, but"
    if arcs.size == 0:
        return f"{claimed} there is no arc {label(u)} -> {label(v)}"
    if claim.pushes[u] == claim.unreachable:
        why = "which is closed" if claim.reached[u] else "which is unreachable"
        return f"{claimed} no path leads on from vertex {label(u)}, {why}"
    return f"{claimed} {_sum_along(claim, u, int(arcs[np.argmin(claim.weights[arcs])]))}"


def _sum_along(claim: _Claim, u: int, arc: int) -> str:
    push, w = claim.pushes[u], claim.weights[arc]
    length = push + w if claim.distances.dtype.kind == "f" else int(push) + int(w)
    head = claim.label(claim.indices[arc])
    return f"the arc {claim.label(u)} -> {head} of weight {w} makes it {push} + {w} = {length}"
