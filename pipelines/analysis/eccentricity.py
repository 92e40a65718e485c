"""Diameter, radius, centre and eccentricities of a graph store, by bounds instead of a search from every vertex.

After a search from v, every vertex w has bounds on its eccentricity e(w), the largest distance from it:

    d(w, v) <= e(w) <= d(w, v) + e(v)    and    e(v) - d(v, w) <= e(w)

They follow from the triangle inequality. The next searches begin at vertices with the largest upper bound, which may
have the diameter, and at vertices with the least lower bound, which may have the radius. The searches end when no other
vertex can reach either value. On many graphs this takes some tens of searches, on some, such as rings, nearly all.

In a directed graph, d(w, v) comes from a search against the arcs. There, the bounds hold only if the graph is strongly
connected. If it is not, or if paths cannot pass through some vertices, every vertex is searched.

Distances are sums in float64. They are exact for integers. For other weights the bounds are widened by the rounding of
a sum of n terms, so the result has the bits of a search from every vertex.

F. W. Takes, W. A. Kosters, "Computing the eccentricity distribution of large graphs", Algorithms 6, 2013; for directed
graphs see T. Akiba, Y. Iwata, Y. Kawata, "An exact algorithm for diameters of large real directed graphs", SEA 2015.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import gpuops
from gpuops import csr
from pipelines.files.tables import write_table
from pipelines.stores.graph import Graph, open_graph

EXACT = 2**53  # integers below this are exact in float64
MOST_TOGETHER = {True: 64, False: 16}  # searches between two looks at the bounds: by hops, and by weights
MOST_DISTANCES = 1 << 23  # distances that these searches have together
Search = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Eccentricities:
    """Diameter, radius and centre of a graph. The eccentricity of a vertex is the largest finite distance from it.

    Attributes
    ----------
    n : int
    diameter : float
        The largest eccentricity.
    diameter_pair : tuple of int
        The lowest vertex with this eccentricity, and the lowest vertex at this distance from it.
    radius : float
        The least eccentricity of a vertex that reaches all vertices; NaN if no vertex does.
    center, periphery : (k,), (l,) int64
        The vertices whose eccentricity is the radius, and the diameter. The center is empty if the radius is NaN.
    eccentricity : (n,) float64 or None
        Of every vertex; None if it was not asked for.
    searches : int
        Number of vertices that were searched.
    """

    n: int
    diameter: float
    diameter_pair: tuple[int, int]
    radius: float
    center: np.ndarray
    periphery: np.ndarray
    eccentricity: np.ndarray | None
    searches: int

    def write(self, out: str | os.PathLike[str], names: np.ndarray | None = None, *, overwrite: bool = False) -> None:
        """Write the columns vertex and eccentricity to a table; `names` are the names of the vertices."""
        vertex = np.arange(self.n) if names is None else names.tolist()
        write_table(pa.table({"vertex": vertex, "eccentricity": self.eccentricity}), out, overwrite)


def eccentricities(graph: Graph | str | os.PathLike[str], *, hops: bool = False, every: bool = False) -> Eccentricities:
    """Return diameter, radius and centre of `graph`, by as few searches as bounds allow, in this process.

    Parameters
    ----------
    graph : Graph or path of a graph store
        Weights must not be negative. Paths begin and end at closed vertices, too.
    hops : bool
        Give every arc the length 1, as arcs of unweighted graphs always have.
    every : bool
        Return the eccentricity of every vertex. With weights that are no integers, this takes a search from each.

    Raises
    ------
    StoreError
        The graph store is missing, foreign or damaged.
    ValueError
        A weight is negative, or the graph has no vertex.

    Examples
    --------
    >>> found = tilepath.eccentricities(graph)
    >>> found.diameter, found.radius, graph.names(found.center)
    (570.0, 350.0, ['Pisa'])
    """
    graph = open_graph(graph)
    graph.refuse_turns("eccentricities are")
    if graph.n == 0:
        raise ValueError(f"{graph.path} has no vertices")
    if graph.weighted and not hops and graph.weight_min < 0:
        raise ValueError(
            f"{graph.path} has a weight of {graph.weight_min:g}; for negative weights, compute all pairs (tilepath "
            "apsp) and measure that store (tilepath stats), or count arcs with hops=True (--hops)"
        )
    indptr, indices, weights = graph.rows()
    through = graph.through()
    by_hops = hops or not graph.weighted
    arrays = (indptr, indices, None if by_hops else weights)
    forward = searches_of(*arrays, through=through)
    backward = None
    if graph.directed:
        starts, tails, arcs = csr.transpose(indptr, indices)
        backward = searches_of(starts, tails, None if by_hops else weights[arcs], through=through)
    whole = by_hops or (weights.dtype.kind in "iu" and graph.weight_max * graph.n < EXACT)
    return bounded(
        forward, backward, np.diff(indptr), exact=whole, every=every, bounds=bool(through.all()), hops=by_hops
    )


def searches_of(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, *, through: np.ndarray) -> Search:
    """Return a function that returns distances (k, n) in float64 from some vertices (k)."""
    closed = None if through.all() else through
    if weights is None:
        return lambda vertices: gpuops.hop_distances(
            indptr, indices, vertices, dtype=np.float64, through=closed, check=False
        )
    layout = gpuops.search_graph(indptr, indices, weights.astype(np.float64), through=closed)
    return lambda vertices: gpuops.batched_shortest_distances(layout, vertices)


def bounded(
    forward: Search,
    backward: Search | None,
    degrees: np.ndarray,
    *,
    exact: bool,
    every: bool,
    bounds: bool = True,
    hops: bool,
) -> Eccentricities:
    """Return the eccentricities of a graph that is given by its searches.

    Parameters
    ----------
    forward, backward : functions as `searches_of` returns them
        Distances from vertices, and to vertices; `backward` is None if both are the same.
    degrees : (n,) int
        Searches begin at vertices of large degree if their bounds are equal.
    exact : bool
        Whether distances are not rounded.
    every : bool
        Find the eccentricity of every vertex, not only of those that may have the diameter or the radius.
    bounds : bool
        Whether the triangle inequality holds. If not, every vertex is searched.
    hops : bool
        Whether many searches take little longer than one.
    """
    n = len(degrees)
    slack = 0.0 if exact else 4 * n * 2.0**-53
    bounds = bounds and not (every and not exact)
    lower, upper = np.zeros(n), np.where(degrees == 0, 0, np.inf)  # a vertex without arcs reaches itself only
    searched, whole = np.zeros(n, bool), np.full(n, n == 1)
    most = max(1, min(MOST_TOGETHER[hops], MOST_DISTANCES // n) // 2)
    size = 1 if bounds else most
    while len(chosen := _next(lower, upper, degrees, every or not bounds, size)):
        there = forward(chosen)
        back = there if backward is None or not bounds else backward(chosen)
        finite = np.isfinite(there)
        found = np.where(finite, there, 0).max(axis=1)
        searched[chosen], whole[chosen] = True, finite.all(axis=1)
        if backward is not None and bounds and not (whole[chosen].all() and np.isfinite(back).all()):
            bounds = False  # the graph is not strongly connected
            lower[~searched], upper[~searched] = 0, np.inf
        if bounds:
            for own, away, home, reached in zip(found, there, back, finite, strict=True):
                least = np.maximum(home, own - away)[reached] - slack * own
                lower[reached] = np.maximum(lower[reached], least)
                upper[reached] = np.minimum(upper[reached], (home[reached] + own) * (1 + slack))
        lower[chosen] = upper[chosen] = found
        size = min(2 * size, most)
    if bounds:
        whole[:] = whole.any()  # the graph is undirected or strongly connected: all vertices reach all, or none does
    known = lower == upper
    diameter = float(lower[known].max())
    periphery = np.flatnonzero(known & (lower == diameter))
    row = forward(periphery[:1])[0]
    reaching = known & whole
    radius = float(lower[reaching].min()) if reaching.any() else math.nan
    return Eccentricities(
        n=n,
        diameter=diameter,
        diameter_pair=(int(periphery[0]), int(np.where(np.isfinite(row), row, -1).argmax())),
        radius=radius,
        center=np.flatnonzero(reaching & (lower == radius)),
        periphery=periphery,
        eccentricity=lower if known.all() else None,
        searches=int(searched.sum()),
    )


def _next(lower: np.ndarray, upper: np.ndarray, degrees: np.ndarray, every: bool, size: int) -> np.ndarray:
    """Return the vertices to search next, at most 2 `size`; none if the rest cannot change the result."""
    unknown = lower < upper
    if not every:
        unknown &= (upper >= lower.max()) | (lower <= upper.min())
    vertices = np.flatnonzero(unknown)
    if len(vertices) <= 2 * size:
        return vertices
    order = np.lexsort((-degrees[vertices], -upper[vertices])), np.lexsort((-degrees[vertices], lower[vertices]))
    return np.unique(vertices[np.concatenate([order[0][:size], order[1][:size]])])
