"""Finds a cycle of negative weight, along which distances would fall forever, or else potentials against negative arcs.

Inside a path only vertices of the mask `through` may lie (the *open* ones; the others are closed). A closed walk that
a path could repeat, or that makes the distance of a vertex to itself negative, therefore contains a simple cycle of
negative weight with at most one closed vertex, where it starts and ends:

1. a loop of negative weight, at any vertex;
2. a cycle of open vertices: relax the arcs among them from the potentials p = 0 in the order of a queue
   (Bellman-Ford), until nothing changes, or the arcs that relaxed last ("parents") close a cycle, which is then
   negative (Cherkassky and Goldberg, Negative-cycle detection algorithms, 1999). The search for it costs O(n) and
   comes after every n relaxations;
3. a cycle through one closed vertex z: p makes the arcs among open vertices non-negative, w + p[u] - p[v] >= 0, so
   min (w(z, a) - p[a]) + min (p[b] + w(b, z)) >= 0 rules z out at once. Otherwise search from z over open vertices,
   giving up labels from which no return can be negative any more: O(m) for most z, O(n m) at worst.

A graph without negative weights is answered by one look at the weights.

Integers are exact in int64. Floats are added in float64, with roundoff u. With M the sum over all vertices of their
lowest negative in-weights, every |p| <= M and an addition rounds by at most u M. An arc relaxes only if it gains more
than a threshold t, so parents closing a cycle of k arcs prove its weight below k u M - t. t starts at 4 u M. A cycle
counts only if its exact sum (`math.fsum`) is more negative than the rounding of its own weights could make a zero
cycle: 0.1 + 0.2 - 0.3 is one. Each one that does not count at least doubles t, until there are no more of those. A
cycle whose arcs weigh no less than -t on average may go unnoticed.

Where there is none, the potentials make every weight non-negative, w + out[u] - into[v] >= 0, and change the length of
every path from s to v by the same out[s] - into[v] (Johnson, Efficient algorithms for shortest paths in sparse
networks, 1977). A closed vertex is left and entered but never passed, so it has two potentials that need not agree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gpuops.errors import NegativeCycleError

if TYPE_CHECKING:  # arrays in memory have no stores, and should not load them
    from pipelines.stores import Graph


def find_negative_cycle(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, through: np.ndarray | None = None
) -> tuple[tuple[int, ...], float] | None:
    """One cycle of negative weight, or None.

    Parameters
    ----------
    indptr, indices, weights : the graph in CSR, n + 1, m and m entries, loops and parallel arcs welcome
    through : bool (n), whether the vertex may lie inside a path; None: every vertex may

    Returns
    -------
    The vertices in travel order, the first not repeated, and the total weight (int for integer weights); a closed
    vertex stands first.

    Raises
    ------
    ValueError
        Path sums of integer weights may exceed int64.
    """
    return _search(indptr, indices, weights, through)[0]


def find_potentials(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, through: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Potentials `out` and `into`, (n) each, with w + out[u] - into[v] >= 0 for every arc (up to rounding of floats).

    Open vertices have out = into <= 0. int64 for integer weights, else float64. Parameters as above.

    Raises
    ------
    NegativeCycleError
        There are none, because of the cycle that the error carries.
    ValueError
        Path sums of integer weights may exceed int64.
    """
    cycle, potentials = _search(indptr, indices, weights, through)
    if cycle is not None:
        vertices, weight = cycle
        raise NegativeCycleError(f"the vertices {vertices} form a cycle of weight {weight:g}", vertices, weight)
    out, into = potentials.copy(), potentials
    if through is not None and not through.all():
        tails = np.repeat(np.arange(len(through)), np.diff(indptr))
        closed = ~through
        np.minimum.at(into, indices, np.where(closed[indices] & through[tails], potentials[tails] + weights, 0))
        np.maximum.at(out, tails, np.where(closed[tails], into[indices] - weights, out[tails]))
    return out, into


def nonnegative_weights(
    potentials: tuple[np.ndarray, np.ndarray], first: int, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The weights of the arcs that leave the vertices from `first` on, made non-negative by potentials."""
    out, into = potentials
    tails = first + np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.maximum(weights + out[tails] - into[indices], 0)  # below 0 by rounding only


def named_cycle(graph: Graph, error: NegativeCycleError) -> NegativeCycleError:
    """The error for users: the vertices of the cycle by their labels, and the cure."""
    vertices, weight = error.vertices, error.weight
    if not vertices:  # none of its cycles is known: rounded sums fall, exact ones may not
        return NegativeCycleError(f"{graph.path}: {error}")
    names = [graph.label(v) for v in (*vertices[:20], vertices[0])]
    shown = " -> ".join(names[:-1] + ["..."] * (len(vertices) > 20) + names[-1:])
    return NegativeCycleError(
        f"{graph.path}: the cycle {shown} weighs {weight:g}, so distances along it fall forever; correct its weights",
        vertices,
        weight,
    )


def _search(indptr, indices, weights, through):
    """A negative cycle and its weight, or None; and the potentials of step 2."""
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
    """Step 2: a negative cycle of open vertices or None, and potentials (n)."""
    n = len(indptr) - 1
    lowest = np.zeros(n, dtype=np.float64)
    np.minimum.at(lowest, indices[negative], weights[negative])
    bound, exact = -lowest.sum(), weights.dtype.kind != "f"
    if exact and bound + np.abs(weights, dtype=np.float64).max() > 2**61:
        raise ValueError("path sums of these integer weights may exceed int64; use floating-point weights")
    threshold = weights.dtype.type(0 if exact else 4 * 2.0**-53 * bound)

    potentials, parents = np.zeros(n, weights.dtype), np.full(n, -1, np.int64)
    tail_of = np.full(n, -1, np.int64)  # of the parent arc
    start = np.unique(tails[through[tails]])
    while True:
        at = _relax(indptr, indices, weights, through, threshold, start, potentials, parents, tail_of)
        if at < 0:
            return None, potentials
        vertices, weight, least = _follow(at, at, parents, tail_of, weights, rounding)
        if weight < -least:
            return (vertices, weight), potentials
        threshold = max(2 * threshold, 2 * least / len(vertices))
        parents[:] = tail_of[:] = -1
        start = np.flatnonzero(through)


@njit(nogil=True, cache=True)
def _relax(indptr, indices, weights, through, threshold, start, potentials, parents, tail_of):
    """Relax arcs among open vertices, those that leave `start` first; returns a vertex on a parent cycle, or -1."""
    n = potentials.size
    queue, queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    queue[: start.size] = start
    for u in start:
        queued[u] = True
    head, count, relaxed = 0, start.size, 0
    while count > 0:
        u = queue[head]
        head, count = (head + 1) % n, count - 1
        queued[u] = False
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            length = potentials[u] + weights[arc]
            if not through[v] or length >= potentials[v] - threshold:
                continue
            potentials[v], parents[v], tail_of[v] = length, arc, u
            relaxed += 1
            if not queued[v]:
                queue[(head + count) % n] = v
                queued[v] = True
                count += 1
        if relaxed >= n:
            relaxed = 0
            at = _on_cycle(tail_of)
            if at >= 0:
                return at
    return -1


@njit(nogil=True, cache=True)
def _on_cycle(tail_of):
    """A vertex on a cycle of the graph v -> tail_of[v], or -1."""
    seen_from = np.full(tail_of.size, -1, np.int64)
    for start in range(tail_of.size):
        v = start
        while v >= 0 and seen_from[v] < 0:
            seen_from[v] = start
            v = tail_of[v]
        if v >= 0 and seen_from[v] == start:
            return v
    return -1


def _follow(first, last, parents, tail_of, weights, rounding):
    """Walk the parents back from `last` to `first`: the vertices of the cycle in travel order, its exact weight, and
    what the rounding of its weights can make of a zero cycle."""
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
    """Step 3: a negative cycle through one closed vertex and open ones, or None."""
    n = len(through)
    far = np.inf if weights.dtype.kind == "f" else np.iinfo(np.int64).max // 4
    out, back = _cheapest_turns(indptr, indices, weights, through, potentials, far)
    labels, parents, tail_of = np.full(n, far, weights.dtype), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for z in np.flatnonzero((out < far) & (back < far) & (out + back < 0)):
        if _return_to(z, indptr, indices, weights, through, potentials, back[z], labels, far, parents, tail_of):
            vertices, weight, least = _follow(z, z, parents, tail_of, weights, rounding)
            if weight < -least:
                return vertices, weight
    return None


@njit(nogil=True, cache=True)
def _cheapest_turns(indptr, indices, weights, through, potentials, far):
    """For closed z: the least w(z, a) - p[a] over arcs to open a, and the least p[b] + w(b, z) from open b."""
    out, back = np.full(through.size, far, weights.dtype), np.full(through.size, far, weights.dtype)
    for u in range(through.size):
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            if through[v] and not through[u]:
                out[u] = min(out[u], weights[arc] - potentials[v])
            elif through[u] and not through[v]:
                back[v] = min(back[v], potentials[u] + weights[arc])
    return out, back


@njit(nogil=True, cache=True)
def _return_to(z, indptr, indices, weights, through, potentials, back, labels, far, parents, tail_of):
    """Whether a walk from z over open vertices back to z has negative weight; `parents` then hold it.

    The label of v is the least length of a walk from z to v, less p[v]. `labels` come and go filled with `far`.
    """
    n = labels.size
    queue, queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    head, count, found = 0, 0, False
    labelled = np.empty(n, np.int64)
    labels_set = 0
    u = z
    while not found:
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            if v == z and u != z and labels[u] + potentials[u] + weights[arc] < 0:
                parents[z], tail_of[z], found = arc, u, True
                break
            if not through[v]:
                continue
            if u == z:
                label = weights[arc] - potentials[v]
            else:  # not negative but for rounding; a label that cannot fall around a cycle makes the search end
                label = labels[u] + max(weights[arc] + potentials[u] - potentials[v], 0)
            if label >= labels[v] or label + back >= 0:
                continue
            if labels[v] == far:
                labelled[labels_set] = v
                labels_set += 1
            labels[v], parents[v], tail_of[v] = label, arc, u
            if not queued[v]:
                queue[(head + count) % n] = v
                queued[v] = True
                count += 1
        if count == 0:
            break
        u = queue[head]
        head, count = (head + 1) % n, count - 1
        queued[u] = False
    for i in range(labels_set):
        labels[labelled[i]] = far
    return found
