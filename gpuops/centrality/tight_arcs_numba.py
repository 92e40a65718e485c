"""Shortest paths counted on the tight arcs of a search: the arcs (u, v) with d(u) + w = d(v), which form the paths.

The number of paths to a vertex is stored as m 2^(512 e), with m in [2^-256, 2^256) and an integer e for each vertex: a
grid of 1,000 x 1,000 has 10^600 shortest paths between two corners, more than float64 can hold. All scaling is by
powers of two, so m has the bits that float64 with an unlimited exponent would have.
"""

from __future__ import annotations

import math

import numpy as np

from gpuops._compiled_numba import entry, inner

_STEP = 512  # a number of paths is m 2^(_STEP e)
_LARGEST = 2.0 ** (_STEP // 2)  # m is less than this
ABSORBED = -1


@entry
def find_tight_arcs(indptr, stops, heads, lengths, order, reached, distances, firsts, tight):
    """List the tight arcs that leave the first `reached` vertices of `order`, which are sorted by distance.

    Parameters
    ----------
    indptr, stops, heads : (n,), (n,), (m,) arrays
        The arcs out of v are ``indptr[v]`` to ``stops[v] - 1``.
    lengths : (m,) float64
        Lengths of the arcs; an empty array if every arc has the length 1.
    order : (n,) array
    distances : (n,) float64
        +inf where unreachable.
    firsts : (n + 1,) int64
        Receives, for each vertex of `order`, the place of its first arc in `tight`; and then the end of `tight`.
    tight : (m,) int64
        Receives the numbers of the tight arcs.

    Returns
    -------
    int
        The number of tight arcs, or `ABSORBED` - arc if the length of a tight arc is lost in the sum.
    """
    size = 0
    for place in range(reached):
        tail = order[place]
        distance = distances[tail]
        firsts[place] = size
        for arc in range(indptr[tail], stops[tail]):
            end = distances[heads[arc]]
            length = lengths[arc] if len(lengths) > 0 else 1.0
            if distance + length == end and end < np.inf:
                if end == distance:
                    return ABSORBED - arc
                tight[size] = arc
                size += 1
    firsts[reached] = size
    return size


@entry
def count_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, inner):
    """Count the shortest paths from ``order[0]``.

    Parameters
    ----------
    heads, order, reached, firsts, tight
        As for `find_tight_arcs`.
    counts, exponents : (n,) float64, (n,) int32
        Receive the number of paths to each vertex, m and e. Exponents are meaningless where counts are 0.
    inner : (n,) float64
        Receives, for each vertex, the mean number of arcs of the shortest paths to it.
    """
    for place in range(reached):
        counts[order[place]] = 0.0
    source = order[0]
    counts[source], exponents[source], inner[source] = 1.0, 0, 0.0
    for place in range(reached):
        tail = order[place]
        count, exponent = counts[tail], exponents[tail]
        if place > 0:
            inner[tail] /= count  # so far, this is the number of arcs on all paths, scaled like the number of paths
        arcs = count * (inner[tail] + 1.0)
        for i in range(firsts[place], firsts[place + 1]):
            head = heads[tight[i]]
            if counts[head] == 0.0:
                counts[head], exponents[head], inner[head] = count, exponent, arcs
                continue
            gap = exponent - exponents[head]
            if gap > 0:
                counts[head] = _scaled(counts[head], gap) + count
                inner[head] = _scaled(inner[head], gap) + arcs
                exponents[head] = exponent
            else:
                counts[head] += _scaled(count, -gap)
                inner[head] += _scaled(arcs, -gap)
            if counts[head] >= _LARGEST:
                counts[head] = _scaled(counts[head], 1)
                inner[head] = _scaled(inner[head], 1)
                exponents[head] += 1


@entry
def depend_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, shares, added, vertices, arcs):
    """Add the dependencies of the source ``order[0]`` to `vertices`, and to `arcs` unless it is empty.

    Parameters
    ----------
    heads, order, reached, firsts, tight, counts, exponents
        As `count_on_tight_arcs` left them.
    shares : (n,) float64
        Working memory: (1 + dependency of w) / paths to w, scaled by w's exponent.
    added : float
        A number that is added to the dependency of every vertex except the source.
    vertices, arcs : (n,) float64, (m,) or (0,) float64
    """
    for place in range(reached - 1, -1, -1):
        tail = order[place]
        count, exponent, total = counts[tail], exponents[tail], 0.0
        for i in range(firsts[place], firsts[place + 1]):
            head = heads[tight[i]]
            share = _scaled(shares[head], exponents[head] - exponent)
            total += share
            if len(arcs) > 0:
                arcs[tight[i]] += count * share
        if place > 0:
            dependency = count * total
            shares[tail] = (1.0 + dependency) / count
            vertices[tail] += dependency + added


@entry
def flows_on_tight_arcs(heads, order, reached, firsts, tight, counts, exponents, shares, ending, arcs):
    """Add to `arcs` the flows from ``order[0]``: what ends at each vertex, shared equally by the shortest paths to it.

    Parameters
    ----------
    heads, order, reached, firsts, tight, counts, exponents
        As `count_on_tight_arcs` left them.
    shares : (n,) float64
        Working memory: the flow that arrives at w / paths to w, scaled by w's exponent.
    ending : (n,) float64
        The amount that ends at each vertex.
    arcs : (m,) float64
    """
    for place in range(reached - 1, -1, -1):
        tail = order[place]
        count, exponent, total = counts[tail], exponents[tail], 0.0
        for i in range(firsts[place], firsts[place + 1]):
            head = heads[tight[i]]
            share = _scaled(shares[head], exponents[head] - exponent)
            total += share
            arcs[tight[i]] += count * share
        shares[tail] = ending[tail] / count + total


@inner
def _scaled(value, gap):
    """Return value 2^(-512 gap) for gap >= 0."""
    if gap == 0:
        return value
    return math.ldexp(value, -_STEP * min(gap, 4))
