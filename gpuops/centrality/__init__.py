"""Betweenness: how many shortest paths pass through each vertex and each arc, where all pairs count alike.

The share of a vertex v in a pair (s, t) is the share of the shortest paths from s to t that pass through v, for v other
than s and t. The betweenness of v is the sum of its shares over all pairs, or over the pairs from some sources. The
betweenness of an arc is the same sum with the shortest paths that use the arc.

1. Loops are dropped, and all parallel arcs except the lightest: a shortest path never uses the dropped arcs. Parallel
   arcs of equal weight are one arc here, as in NetworkX.
2. For each source, a search finds the *tight* arcs, (u, v) with d(u) + w = d(v). All shortest paths consist of tight
   arcs. A pass forward over the tight arcs, in the order of distances, gives the number of shortest paths to each
   vertex. A pass backward gives the *dependency* of each vertex, the sum of its shares over all targets:
   ``sum(paths to v / paths to w * (1 + dependency of w))`` over the tight arcs (v, w).
3. Without weights, the search is breadth-first (`gpuops.centrality.levels_numba`). With weights, distances are sums in
   float64; two paths are equally short if the sums of their weights, rounded arc by arc, are equal
   (`gpuops.centrality.tight_arcs_numba`). On a GPU a block takes a source (`dependencies.cu`).
4. The dependencies of all sources are added in an order that is fixed by the number of sources
   (`gpuops.centrality.pairwise_sums`), so the number of threads and of workers changes no bit.

NumPy and CuPy arrays give the same bits as long as no pair has 2^53 shortest paths or more. Larger numbers of paths are
rounded when they are added, and a GPU adds them in the order of the arcs into a vertex, a CPU in the order of the
search: the relative difference is at most about 2^-53 for each addition.

A weight of zero is refused: with a cycle of weight zero, a pair has infinitely many shortest walks.

U. Brandes, "On variants of shortest-path betweenness centrality and their generic computation", Social Networks 30,
2008.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops.arrays import contiguous, is_cupy, like, on_host
from gpuops.centrality import centrality_cuda, centrality_numba
from gpuops.centrality.absorbed import Absorbed
from gpuops.centrality.pairwise_sums import Arrays
from gpuops.csr import check_count, check_csr, check_through, check_vertices, tails, transpose
from gpuops.errors import VerificationError

GROUP = centrality_numba.GROUP


class Betweenness(NamedTuple):
    """Sums over the pairs (s, t) of a source s and any other vertex t that s reaches.

    Attributes
    ----------
    vertices : (n,) float64
        For each vertex, the sum of the shares of the shortest paths that pass through it, or also begin or end at it.
    arcs : (m,) float64 or None
        For each arc, the sum of the shares of the shortest paths that use it. Parallel arcs of the least weight have
        equal parts. In a symmetric graph, an arc has the sum of both directions.
    pairs : int
        Number of pairs.
    inner : float
        The sum, over the pairs, of the mean number of inner vertices of their shortest paths.
    """

    vertices: Any
    arcs: Any
    pairs: int
    inner: float


def betweenness(
    indptr: Any,
    indices: Any,
    weights: Any = None,
    sources: Any = None,
    *,
    through: Any = None,
    symmetric: bool = False,
    endpoints: bool = False,
    arcs: bool = False,
    check: bool = True,
) -> Betweenness:
    """Sum up, for each vertex and each arc, the shares of the shortest paths that pass through it.

    Every ordered pair counts, in a symmetric graph too; `betweenness_factors` has the factors of NetworkX.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        The graph in compressed sparse rows, int32 or int64, NumPy or CuPy. Heads may stand in any order; loops and
        parallel arcs are allowed.
    weights : (m,) array, optional
        Lengths of the arcs, above 0, which are added up in float64; without them, every arc has the length 1. An arc of
        weight +inf counts as missing.
    sources : (k,) sequence of int, optional
        Where paths begin; by default at every vertex.
    through : (n,) array of bool, optional
        Whether a path may pass through each vertex; None: through every vertex. Paths may begin and end at any vertex.
    symmetric : bool
        Pass True if every arc has an opposite arc of the same weight.
    endpoints : bool
        Let a path also count for its first and its last vertex.
    arcs : bool
        Return the sums of the arcs, too.
    check : bool
        Check that the arrays form a graph. Pass False to skip the check if you know it.

    Returns
    -------
    Betweenness
        With arrays of the library of `indptr`. Shares below 2^-500 may be lost.

    Raises
    ------
    TypeError, ValueError
        Arrays of different libraries, arrays that do not form a graph, a source that is not a vertex, or a weight that
        is negative or NaN, is 0, or is lost when it is added to a distance.

    Examples
    --------
    >>> found = gpuops.betweenness(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]))
    >>> found.vertices
    array([0., 2., 0.])
    """
    summation = Summation(
        indptr, indices, weights, through=through, symmetric=symmetric, endpoints=endpoints, arcs=arcs, check=check
    )
    vertices = np.arange(summation.n) if sources is None else check_vertices(sources, summation.n)
    return summation.result(summation.over(vertices))


class Summation:
    """The sums of `betweenness`, prepared once for sources that come in several calls.

    `PairwiseSums` can add the sums of several calls. The result has the bits of a single call if each call has
    ``GROUP * 2**k`` successive sources, with the same k for all calls; the last call may have fewer sources.
    """

    def __init__(
        self,
        indptr: Any,
        indices: Any,
        weights: Any = None,
        *,
        through: Any = None,
        symmetric: bool = False,
        endpoints: bool = False,
        arcs: bool = False,
        check: bool = True,
    ):
        attributes = {} if weights is None else {"weights": weights}
        if check:
            check_csr(indptr, indices, **attributes)
        check_count(indptr)
        check_through(through, indptr)
        device = self._of_device = indptr if is_cupy(indptr) else None
        # Both halves take the graph without loops and parallel arcs, which a CPU drops in a pass over the arcs.
        indptr, indices, weights, through = map(on_host, (indptr, indices, weights, through))
        self.n = len(indptr) - 1
        self._symmetric, self._endpoints, self._arcs = symmetric, endpoints, arcs
        given = contiguous(indptr.astype(np.int64, copy=False)), contiguous(indices.astype(np.int32, copy=False))
        lengths = np.empty(0) if weights is None else contiguous(weights.astype(np.float64, copy=False))
        _refuse_weights(*given, lengths)
        m = len(indices)
        starts, heads, kept = np.empty(self.n + 1, np.int64), np.empty(m, np.uint32), np.empty(len(lengths))
        self._places = np.empty(m, np.int64)  # for each given arc, the number of the arc kept, -1 if there is none
        centrality_numba.simplify(*given, lengths, starts, heads, kept, self._places)
        self._indptr, self._stops = starts, starts[1:].copy()
        self._heads, self._lengths = heads[: starts[-1]].copy(), kept[: starts[-1]].copy()
        self._lightest = self._places >= 0
        if len(self._lengths):
            self._lightest &= lengths == self._lengths[self._places]
            if bool((self._lengths == self._lengths[0]).all()):
                self._lengths = np.empty(0)  # a path is then shorter if it has fewer arcs
        if through is not None:
            self._stops[~through] = starts[:-1][~through]
        if device is not None:
            self._placed = centrality_cuda.placed(device, self._indptr, self._heads, self._lengths, through)

    def over(self, sources: np.ndarray) -> Arrays:
        """Return the sums over some sources, for `result`: of vertices, of arcs kept, and two totals; NumPy arrays."""
        try:
            if self._of_device is not None:
                return centrality_cuda.sums(self._placed, sources, self._endpoints, self._arcs)
            rows = self._indptr, self._stops, self._heads
            return centrality_numba.sums(rows, self._lengths, sources, self._endpoints, self._arcs)
        except Absorbed as error:
            raise self._lost(*error.args) from None

    def result(self, sums: Arrays) -> Betweenness:
        """Return the betweenness, given the sums over all sources."""
        vertices, kept, (pairs, inner) = sums
        arcs = like(self._of_device, self._of_given_arcs(kept)) if self._arcs else None
        return Betweenness(like(self._of_device, vertices), arcs, int(pairs), float(inner))

    def _lost(self, arc: int) -> ValueError:
        tail = int(np.searchsorted(self._indptr, arc, side="right")) - 1
        return ValueError(
            f"the weight {self._lengths[arc]:g} of the arc from vertex {tail} to vertex {self._heads[arc]} is lost "
            "when it is added to a distance in float64; raise such small weights, or join the vertices"
        )

    def _of_given_arcs(self, kept: np.ndarray) -> np.ndarray:
        if self._symmetric:
            kept = kept + kept[self._opposites()]
        places = self._places[self._lightest]
        found = np.zeros(len(self._places))
        found[self._lightest] = (kept / np.maximum(np.bincount(places, minlength=len(kept)), 1))[places]
        return found

    def _opposites(self) -> np.ndarray:
        """Return, for each kept arc, the opposite arc."""
        starts, tails_by_head, arcs = transpose(self._indptr, self._heads.astype(np.int32))
        own = tails(self._indptr, len(self._heads), np.int32)
        back = np.lexsort((self._heads, own))  # by tail, then by head, which is the order of the transpose
        if not (np.array_equal(starts, self._indptr) and np.array_equal(tails_by_head, self._heads[back])):
            raise ValueError("the graph is not symmetric: an arc has no opposite arc; pass symmetric=False")
        found = np.empty(len(own), np.int64)
        found[back] = arcs
        return found


def betweenness_factors(
    n: int, k: int | None = None, *, directed: bool, endpoints: bool, normalized: bool
) -> tuple[float, float]:
    """Return the factors that turn sums over ordered pairs into the betweenness of NetworkX, version 3.6.

    Parameters
    ----------
    n : int
        Number of vertices.
    k : int, optional
        Number of sources, if they are a sample. The sums are then scaled up to all vertices.
    directed : bool
        Whether ordered pairs count; in an undirected graph, a pair counts once.
    endpoints : bool
        Whether paths count for their ends; True for the betweenness of edges.
    normalized : bool
        Divide by the number of pairs.

    Returns
    -------
    of_sources, of_others : float
        The factor of a vertex that is a source, and the factor of other vertices and of edges. With a single source,
        the first factor is NaN, since the betweenness of the source cannot be estimated.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> found = gpuops.betweenness(indptr, indices)
    >>> of_sources, _ = gpuops.betweenness_factors(3, directed=False, endpoints=False, normalized=True)
    >>> (found.vertices * of_sources).tolist()  # as networkx.betweenness_centrality
    [0.0, 1.0, 0.0]
    """
    ends = n if endpoints else n - 1
    if ends < 2:
        return 1.0, 1.0
    halves = 1 if directed else 2

    def factor(starts: int) -> float:
        if starts == 0:
            return float("nan")
        return 1 / (starts * (ends - 1)) if normalized else ends / (starts * halves)

    if k is None or endpoints:
        both = factor(ends if k is None else k)
        return both, both
    return factor(k - 1), factor(k)


def verify_betweenness(found: Betweenness, *, sources: int, arcs: int, symmetric: bool, endpoints: bool) -> None:
    """Check that vertices and arcs add up to the numbers of inner vertices and of arcs of shortest paths.

    The numbers were added up forward, from each source on; dependencies are added up backward. All terms are positive,
    so rounding changes a sum by at most a relative 2^-53 for each addition that a term takes part in. There are fewer
    than four additions for every arc and vertex, and one for every source. The check allows twice this error.

    Parameters
    ----------
    found : Betweenness
    sources, arcs : int
        Number of sources, and of arcs of the graph.
    symmetric, endpoints : bool
        As for `betweenness`.

    Raises
    ------
    VerificationError
        A sum is wrong.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> found = gpuops.betweenness(indptr, indices)
    >>> gpuops.verify_betweenness(found, sources=3, arcs=4, symmetric=False, endpoints=False)
    """
    bound = 2 * (4 * (arcs + len(found.vertices)) + sources) * 2.0**-53
    _compare("vertices", found.vertices, found.inner + 2 * found.pairs * endpoints, bound)
    if found.arcs is not None:
        _compare("arcs", found.arcs, (found.inner + found.pairs) * (2 if symmetric else 1), bound)


def _compare(name: str, values: np.ndarray, expected: float, bound: float) -> None:
    total = float(values.sum())
    if not (math.isfinite(expected) and abs(total - expected) <= bound * expected):
        raise VerificationError(
            f"the betweenness of all {name} adds up to {total:.17g}, and not to {expected:.17g}, the number of {name} "
            "of all shortest paths; compute it again"
        )


def _refuse_weights(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
    wrong = np.flatnonzero(~(weights > 0))
    if len(wrong):
        tail = int(np.searchsorted(indptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"the weight of the arc from vertex {tail} to vertex {indices[wrong[0]]} is {weights[wrong[0]]:g}; "
            "weights must be above 0, as paths along weights of 0 cannot be counted: raise the weights, or join the "
            "vertices"
        )
