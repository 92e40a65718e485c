"""Tight arcs: which arcs lie on shortest paths, found from the distances alone.

D is the row of distances from the source s. An arc (u, v) of weight w whose tail may be left (u = s, or u may lie
inside a path) is *tight* if D[u] + w = D[v]. Shortest paths are made of tight arcs, and every path of tight arcs from s
is a shortest path. So predecessors can be found afterwards, without a matrix filled during the computation:

1. search breadth-first from s over the tight arcs: the tree is acyclic even where cycles of weight zero are tight;
2. every vertex at a finite distance must be reached, or the distances do not belong to the graph.

The test is exact for integers. For floats it has a tolerance, with u the unit roundoff of the distances: D[v] is a sum
of the weights of h arcs, in some order of its h - 1 additions; an addition rounds by at most u times a partial sum.
With non-negative weights the partial sums are at most D[v], so to first order the error of D[v] is at most
(h - 1) u D[v] and the error of D[u] at most (h - 2) u D[v]. Testing in float64 rounds twice more:
|D[u] + w - D[v]| <= x D[v] with x = 2 h u, and x / (1 - x) D[v] to all orders. With negative weights the computation
adds weights made non-negative by potentials p (`gpuops.certificates.negative_cycle`), so partial sums are at most
D[v] + p[s] - p[v], and max D - min D + max p - min p takes the place of D[v]. GPUs flush numbers below the smallest
normal number to zero, which adds an error of up to that number per addition. Weights are first rounded to the dtype of
the distances, as the computation did.

h is not known beforehand. The first tree is searched with the tolerance for h = n - 1, which suffices for any path. Its
depth gives a smaller h, and the search is repeated with the tolerance for that h. A loose tolerance opens short cuts,
so the first depth may have been too small and a vertex may not be reached any more: then h doubles, up to four times
the depth. If that does not suffice, the distance is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuops import csr
from gpuops.certificates.negative_cycle import find_potentials
from gpuops.certificates.tight_arcs_numba import breadth_first
from gpuops.errors import VerificationError
from gpuops.numbers import check_dtype, outside_infinity


@dataclass(frozen=True, eq=False)
class Arcs:
    """A graph in CSR, with weights as a computation of distances in `dtype` sees them; made by `arcs_for`."""

    indptr: np.ndarray  # int64 (n + 1)
    indices: np.ndarray  # int32 or int64 (m)
    weights: np.ndarray  # (m), int64 for integer distances, float64 for floats
    through: np.ndarray  # bool (n)
    dtype: np.dtype  # dtype of the distances
    shift: float  # range of the potentials that make the weights non-negative; 0 for integers and where not needed
    label: Callable[[int], str] = str  # names a vertex in messages

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.indptr, self.indices, self.weights, self.through

    @property
    def exact(self) -> bool:
        return self.dtype.kind != "f"

    @property
    def unreachable(self) -> Any:
        """The value for unreachable vertices in a row returned by `lift`."""
        return self.weights.dtype.type(outside_infinity(self.dtype))

    def lift(self, row: np.ndarray) -> np.ndarray:
        """Return a row of distances in the arithmetic of the tests, int64 or float64."""
        return np.ascontiguousarray(row, dtype=self.weights.dtype)

    def reversed(self) -> Arcs:
        """Return the transpose: arcs are ordered by head, and `indices` names the tails."""
        indptr, tails, arcs = csr.transpose(self.indptr, self.indices)
        return replace(self, indptr=indptr, indices=tails, weights=self.weights[arcs])


@dataclass(frozen=True, eq=False)
class TightTree:
    """Shortest paths from one source, made by `tight_tree`."""

    predecessors: np.ndarray  # int32 or int64 (n), -1 at the source and at unreachable vertices
    levels: np.ndarray  # like `predecessors`: number of arcs from the source, -1 at unreachable vertices
    depth: int  # the largest level
    relative: float  # an arc into v counted as tight within relative * |D[v]| + absolute
    absolute: float


def arcs_for(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    through: np.ndarray | None,
    dtype: Any,
    label: Callable[[int], str] = str,
) -> Arcs:
    """Return a graph in CSR as a computation of distances in `dtype` sees it; `through` None: every vertex is open.

    `label` names a vertex in messages.

    Raises
    ------
    ValueError
        The distances are integers and a weight is fractional.
    NegativeCycleError
        The graph has no shortest distances. (Checked only where weights are negative and distances are floats.)
    """
    dtype = check_dtype(dtype)
    seen = seen_weights(weights, dtype).astype(np.float64 if dtype.kind == "f" else np.int64)
    mask = np.ones(len(indptr) - 1, dtype=bool) if through is None else through
    shift = potential_range(indptr, indices, weights, mask) if dtype.kind == "f" else 0.0
    return Arcs(indptr, indices, seen, mask, dtype, shift, label)


def seen_weights(weights: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the weights as a computation of `dtype` distances sees them; integers keep their dtype, sums are int64."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # an arc too heavy for the dtype is never tight
            return weights.astype(dtype, copy=False)
    if weights.dtype.kind == "i":
        return weights
    whole = weights.astype(np.int64)
    if not np.array_equal(whole, weights):
        raise ValueError(f"a graph with fractional weights cannot have {dtype} distances")
    return whole


def potential_range(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, through: np.ndarray | None) -> float:
    """Return the range of potentials that make the weights non-negative; 0 if no weight is negative."""
    if not (weights < 0).any():
        return 0.0
    out, into = find_potentials(indptr, indices, weights, through)
    return float(max(out.max(), into.max()) - min(out.min(), into.min()))


def tight_tree(arcs: Arcs, row: np.ndarray, source: int) -> TightTree:
    """Find predecessors and levels on shortest paths from `source`, by breadth-first search over tight arcs.

    Parameters
    ----------
    arcs : the graph
    row : (n) distances from `source`, unreachable marked as in stores

    Raises
    ------
    VerificationError
        The distance from the source to itself is not zero, or no path has the length of a finite distance.
    """
    row = arcs.lift(row)
    if row[source] != 0:
        raise VerificationError(f"the distance from vertex {arcs.label(source)} to itself is {row[source]}, not 0")
    strange = np.flatnonzero(np.isnan(row) | (row == -np.inf))
    if strange.size:
        raise VerificationError(
            f"the distance from vertex {arcs.label(source)} to vertex {arcs.label(strange[0])} is {row[strange[0]]}"
        )
    finite = int(np.count_nonzero(row != arcs.unreachable))
    hops, shrinking = max(1, arcs.n - 1), True
    while True:
        relative, absolute = tolerances(arcs, row, hops)
        reached, depth, predecessors, levels = breadth_first(
            arcs.arrays, row, arcs.unreachable, source, relative, absolute
        )
        if reached == finite and (arcs.exact or depth + 1 >= hops or not shrinking):
            relative, absolute = tolerances(arcs, row, max(hops, depth + 1))
            return TightTree(predecessors, levels, depth, float(relative), float(absolute))
        if reached == finite:
            hops = depth + 1
        elif arcs.exact or hops >= 4 * (depth + 1):
            raise VerificationError(_unattained(arcs, row, source, levels))
        else:
            hops, shrinking = 2 * hops, False


def tolerances(arcs: Arcs, row: np.ndarray, hops: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the relative and absolute tolerance for paths of `hops` arcs (any shape) in a lifted row; integers: 0."""
    hops = np.asarray(hops, dtype=np.float64)
    if arcs.exact:
        return np.zeros_like(hops), np.zeros_like(hops)
    facts = np.finfo(arcs.dtype)
    x = np.minimum(2 * hops * (float(facts.eps) / 2), 0.5)  # beyond 0.5 no digit is significant
    relative, absolute = x / (1 - x), 2 * hops * float(facts.tiny)
    if not arcs.shift:
        return relative, absolute
    spread = np.ptp(row[row != arcs.unreachable]) + arcs.shift
    return np.zeros_like(hops), absolute + relative * spread


def _unattained(arcs: Arcs, row: np.ndarray, source: int, levels: np.ndarray) -> str:
    """Name the nearest vertex that no path of tight arcs reaches: farther vertices may be missing because of it."""
    missing = np.flatnonzero((row != arcs.unreachable) & (levels < 0))
    v = missing[np.argmin(row[missing])]
    into = np.flatnonzero(arcs.indices == v)
    tails = np.searchsorted(arcs.indptr, into, side="right") - 1
    usable = (tails != v) & (row[tails] != arcs.unreachable) & (arcs.through[tails] | (tails == source))
    label = arcs.label
    claimed = f"the distance from vertex {label(source)} to vertex {label(v)} is {row[v]}, but"
    if not usable.any():
        return f"{claimed} no arc from a reachable vertex leads there"
    into, tails = into[usable], tails[usable]
    lengths = row[tails] + arcs.weights[into]
    best = np.argmin(lengths)
    return f"{claimed} no path has that length; the arc {label(tails[best])} -> {label(v)} makes it {lengths[best]}"
