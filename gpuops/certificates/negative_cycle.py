"""Find a cycle of negative weight, along which distances fall forever, or potentials that remove negative weights.

Only vertices of the mask `through` may lie inside a path (*open* vertices; every other vertex is *closed*). A closed
walk that a path could repeat, or that makes the distance of a vertex to itself negative, therefore contains a simple
cycle of negative weight with at most one closed vertex, where the cycle starts and ends:

1. a loop of negative weight, at any vertex;
2. a cycle of open vertices: relax the arcs among open vertices, starting from the potentials p = 0, in the order of a
   queue (Bellman-Ford). Stop when no potential changes any more, or when the arcs that relaxed last ("parents") close a
   cycle, which is then negative (Cherkassky and Goldberg, Negative-cycle detection algorithms, 1999). Looking for a
   cycle of parents costs O(n) and is done after every n relaxations;
3. a cycle through one closed vertex z: p makes the arcs among open vertices non-negative, w + p[u] - p[v] >= 0, so
   min (w(z, a) - p[a]) + min (p[b] + w(b, z)) >= 0 rules z out at once. Otherwise search from z over open vertices,
   and drop labels from which no return to z is negative: O(m) for most z, O(n m) at worst.

A graph without negative weights needs only one pass over the weights.

Integers are exact in int64. Floats are added in float64, with roundoff u. With M the sum over all vertices of their
lowest negative in-weights, every |p| <= M and an addition rounds by at most u M. An arc relaxes only if it gains more
than a threshold t, so parents closing a cycle of k arcs prove its weight below k u M - t. t starts at 4 u M. A cycle
counts only if its exact sum (`math.fsum`) is below the most negative value that rounded weights can give to a cycle of
weight zero, such as 0.1 + 0.2 - 0.3. Each cycle that does not count at least doubles t, until no such cycle is found. A
cycle whose arcs weigh no less than -t on average may go unnoticed.

Without a negative cycle, the potentials make every weight non-negative, w + out[u] - into[v] >= 0, and change the
length of every path from s to v by the same out[s] - into[v] (Johnson, Efficient algorithms for shortest paths in
sparse networks, 1977). A closed vertex is left and entered but never passed, so its two potentials need not agree.
"""

from __future__ import annotations

import math

import numpy as np

from gpuops import csr
from gpuops.certificates.negative_cycle_numba import cheapest_turns, relax, return_to
from gpuops.errors import NegativeCycleError


def find_negative_cycle(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, through: np.ndarray | None = None
) -> tuple[tuple[int, ...], float] | None:
    """Return one cycle of negative weight, or None.

    Parameters
    ----------
    indptr, indices, weights : the graph in CSR, n + 1, m and m entries, loops and parallel arcs welcome
    through : bool (n), whether the vertex may lie inside a path; None: every vertex may

    Returns
    -------
    The vertices in travel order, the first not repeated, and the total weight (int for integer weights). If a vertex of
    the cycle is closed, it stands first.

    Raises
    ------
    ValueError
        Path sums may exceed int64, or float64 for floating-point weights.
    """
    return _search(indptr, indices, weights, through)[0]


def find_potentials(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, through: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return potentials `out` and `into`, (n) each, with w + out[u] - into[v] >= 0 for every arc (up to rounding).

    Open vertices have out = into <= 0. The dtype is int64 for integer weights, else float64. `find_negative_cycle`
    describes the parameters.

    Raises
    ------
    NegativeCycleError
        There are no potentials, because of the negative cycle that the error carries.
    ValueError
        Path sums may exceed int64, or float64 for floating-point weights.
    """
    cycle, potentials = _search(indptr, indices, weights, through)
    if cycle is not None:
        vertices, weight = cycle
        raise NegativeCycleError(f"the vertices {vertices} form a cycle of weight {weight:g}", vertices, weight)
    out, into = potentials.copy(), potentials
    if through is not None and not through.all():
        tails = csr.tails(indptr, len(indices), np.int64)
        closed = ~through
        np.minimum.at(into, indices, np.where(closed[indices] & through[tails], potentials[tails] + weights, 0))
        np.maximum.at(out, tails, np.where(closed[tails], into[indices] - weights, out[tails]))
    return out, into


def nonnegative_weights(
    potentials: tuple[np.ndarray, np.ndarray], first: int, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the weights of the arcs out of k vertices, `first` and the next ones, made non-negative by potentials.

    Parameters
    ----------
    potentials : (n) arrays `out` and `into`, as `find_potentials` returns them
    indptr, indices, weights : the arcs in CSR, k + 1, m and m entries for k vertices; `indptr` begins with 0

    Returns
    -------
    (m) array, int64 for integer weights, else float64
    """
    out, into = potentials
    tails = first + csr.tails(indptr, len(indices), np.int64)
    return np.maximum(weights + out[tails] - into[indices], 0)  # below 0 by rounding only


def _search(indptr, indices, weights, through):
    """Return a negative cycle and its weight, or None; and the potentials of step 2."""
    exact = weights.dtype.kind != "f"
    rounding = 0.0 if exact else float(np.finfo(weights.dtype).eps)
    weights = weights.astype(np.int64 if exact else np.float64)
    negative = np.flatnonzero(weights < 0)
    if negative.size == 0:
        return None, np.zeros(len(indptr) - 1, weights.dtype)
    through = np.ones(len(indptr) - 1, dtype=bool) if through is None else through
    tails = np.searchsorted(indptr, negative, side="right") - 1

    loops = tails == indices[negative]
    if loops.any():
        arc = negative[loops][np.argmin(weights[negative[loops]])]
        return ((int(indices[arc]),), weights[arc].item()), None

    cycle, potentials = _among_open(indptr, indices, weights, through, rounding, negative, tails)
    if cycle is None and not through.all():
        cycle = _through_closed(indptr, indices, weights, through, rounding, potentials)
    return cycle, potentials


def _among_open(indptr, indices, weights, through, rounding, negative, tails):
    """Step 2: return a negative cycle of open vertices or None, and potentials (n)."""
    n = len(indptr) - 1
    lowest = np.zeros(n, dtype=np.float64)
    np.minimum.at(lowest, indices[negative], weights[negative])
    with np.errstate(over="ignore"):
        bound, exact = -lowest.sum(), weights.dtype.kind != "f"
    if exact and bound + np.abs(weights, dtype=np.float64).max() > 2**61:
        raise ValueError("path sums of these integer weights may exceed int64; use floating-point weights")
    if bound == np.inf:
        raise ValueError("path sums of these weights may exceed float64; scale the weights down")
    threshold = weights.dtype.type(0 if exact else 4 * 2.0**-53 * bound)

    potentials, parents = np.zeros(n, weights.dtype), np.full(n, -1, np.int64)
    tail_of = np.full(n, -1, np.int64)  # the tail of each vertex's parent arc
    start = np.unique(tails[through[tails]])
    while True:
        at = relax(indptr, indices, weights, through, threshold, start, potentials, parents, tail_of)
        if at < 0:
            return None, potentials
        vertices, weight, least = _follow(at, at, parents, tail_of, weights, rounding)
        if weight < -least:
            return (vertices, weight), potentials
        threshold = max(2 * threshold, 2 * least / len(vertices))
        parents[:] = tail_of[:] = -1
        start = np.flatnonzero(through)


def _follow(first, last, parents, tail_of, weights, rounding):
    """Follow the parents back from `last` to `first`. Returns the vertices of the cycle in travel order, its exact
    weight, and the largest weight that rounding of its arcs can give to a cycle of weight zero.
    """
    vertices, arcs, v = [], [], int(last)
    while True:
        arcs.append(parents[v])
        v = int(tail_of[v])
        vertices.append(v)
        if v == first:
            break
    total = math.fsum if weights.dtype.kind == "f" else sum
    least = rounding * float(np.abs(weights[arcs]).sum())
    return tuple(vertices[::-1]), total(weights[arcs].tolist()), least


def _through_closed(indptr, indices, weights, through, rounding, potentials):
    """Step 3: return a negative cycle through one closed vertex and open vertices, or None."""
    n = len(through)
    far = np.inf if weights.dtype.kind == "f" else np.iinfo(np.int64).max // 4
    out, back = cheapest_turns(indptr, indices, weights, through, potentials, far)
    labels, parents, tail_of = np.full(n, far, weights.dtype), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for z in np.flatnonzero((out < far) & (back < far) & (out + back < 0)):
        if return_to(z, indptr, indices, weights, through, potentials, back[z], labels, far, parents, tail_of):
            vertices, weight, least = _follow(z, z, parents, tail_of, weights, rounding)
            if weight < -least:
                return vertices, weight
    return None
