"""Contract the nodes of roads that are no junctions, so that arcs lead from junction to junction.

A node is contracted if exactly two pieces of road meet there, which lead to two different nodes, and if all who arrive
by one piece may go on by the other: both pieces are open in both directions, or both in one direction, which leads
through. The arc along all contracted pieces has the sums of their lengths and times, and its line has their places.
Closed nodes (barriers), and nodes where turns are restricted, stay vertices; so does the node of least number of a
circular road without a junction.

Lengths are those of the ellipsoid WGS 84 between successive nodes, by the radii of curvature at their mean latitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from numba import njit

from gpuops.recompiling import recompiled_with_imports
from pipelines.formats.graphs.osm.reading import UNITS, Ways

EQUATOR, ECCENTRICITY = 6378137.0, 0.0066943799901413165  # of WGS 84: the radius in metres, the square of e


@dataclass
class Roads:
    """A network of n vertices and m arcs. The two directions of a road are successive arcs.

    Attributes
    ----------
    tails, heads : (m,) int64
    seconds, metres : (m,) float64
    numbers : (m,) int64 lines of the arcs, as `pipelines.stores.lines.Lines.of_arcs`
    roads : (m,) int64 number of the road; its two directions have the same number
    classes : (m,) int16 positions in `class_names` of the class of the road's first piece
    first_ways, last_ways : (m,) int64 OpenStreetMap's numbers of the ways at the tail and at the head
    first_nodes, last_nodes : (m,) int64 OpenStreetMap's numbers of the node after the tail and of that before the head
    names : (n,) int64 OpenStreetMap's numbers of the vertices, ascending
    places : (n, 2) float64 longitudes and latitudes
    through : (n,) bool, False for vertices that no path passes
    offsets, points : the lines, as `pipelines.stores.lines.Lines`
    """

    tails: np.ndarray
    heads: np.ndarray
    seconds: np.ndarray
    metres: np.ndarray
    numbers: np.ndarray
    roads: np.ndarray
    classes: np.ndarray
    first_ways: np.ndarray
    last_ways: np.ndarray
    first_nodes: np.ndarray
    last_nodes: np.ndarray
    names: np.ndarray
    places: np.ndarray
    through: np.ndarray
    offsets: np.ndarray
    points: np.ndarray
    class_names: tuple[str, ...]


def contracted(ways: Ways) -> Roads:
    """Return the network of the ways; it has no arcs if no way has two nodes."""
    names, first, at = np.unique(ways.nodes, return_index=True, return_inverse=True)
    at = at.astype(np.int32)
    x, y = ways.x[first], ways.y[first]
    del first
    along, against = np.empty(len(ways.ids)), np.empty(len(ways.ids))
    u, v, owner, metres = _pieces(at, ways.offsets, x, y)
    del at
    _rates(owner, metres, ways.along, ways.against, ways.seconds, along, against)
    halves = np.empty(2 * len(u), np.int32 if len(u) < 2**30 else np.int64)
    starts = _meeting(u, v, len(names), halves)
    kept = np.zeros(len(names), bool)
    closed = np.zeros(len(names), bool)
    for chosen, mask in (ways.closed_nodes, closed), (ways.restrictions.via, kept):
        mask[np.searchsorted(names, chosen[np.isin(chosen, names)])] = True
    kept |= closed
    _keep_junctions(u, v, owner, along, against, starts, halves, kept)
    kept &= np.diff(starts) > 0  # nodes of ways of a single node lie on no road
    nodes, offsets, ends = _chains(u, v, starts, halves, kept)
    sums = _sums(ends, owner, metres, along, against, offsets)
    return _arcs(ways, names, x, y, closed, kept, owner, nodes, offsets, ends, sums)


def _arcs(ways, names, x, y, closed, kept, owner, nodes, offsets, ends, sums) -> Roads:  # type: ignore[no-untyped-def]
    """Return the arcs of the chains, each in the directions that are open."""
    vertices = np.flatnonzero(kept)
    number = np.full(len(names), -1, np.int64)
    number[vertices] = np.arange(len(vertices))
    metres, forward, backward = sums
    chain = np.repeat(np.arange(len(metres)), 2)
    back = np.tile([False, True], len(metres))
    there = np.isfinite(np.where(back, backward[chain], forward[chain]))
    chain, back = chain[there], back[there]
    first, last = offsets[:-1][chain], offsets[1:][chain] - 1
    pieces = offsets[:-1] - np.arange(len(metres)), offsets[1:] - 2 - np.arange(len(metres))
    at_start, at_end = (owner[ends[piece] >> 1][chain] for piece in pieces)
    bent = np.diff(offsets) > 2
    line = np.cumsum(bent) * bent
    sizes = np.diff(offsets)[bent]
    drawn = nodes[np.repeat(bent, np.diff(offsets))]
    scaled = np.stack([x, y], axis=1)

    def turned(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.where(back, other, one)

    return Roads(
        tails=number[nodes[turned(first, last)]],
        heads=number[nodes[turned(last, first)]],
        seconds=turned(forward[chain], backward[chain]),
        metres=metres[chain],
        numbers=turned(line[chain], -line[chain]),
        roads=chain,
        classes=ways.classes[at_start],
        first_ways=ways.ids[turned(at_start, at_end)],
        last_ways=ways.ids[turned(at_end, at_start)],
        first_nodes=names[nodes[turned(first + 1, last - 1)]],
        last_nodes=names[nodes[turned(last - 1, first + 1)]],
        names=names[vertices],
        places=scaled[vertices] / UNITS,
        through=~closed[vertices],
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        points=scaled[drawn] / UNITS,
        class_names=ways.class_names,
    )


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _pieces(at, offsets, x, y):
    """Return the pieces of road between successive nodes of ways: both ends, the way, and the length in metres."""
    count = 0
    for way in range(len(offsets) - 1):
        for i in range(offsets[way], offsets[way + 1] - 1):
            count += at[i] != at[i + 1]
    u, v, owner = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    metres, count = np.empty(count), 0
    for way in range(len(offsets) - 1):
        for i in range(offsets[way], offsets[way + 1] - 1):
            a, b = at[i], at[i + 1]
            if a != b:
                u[count], v[count], owner[count] = a, b, way
                metres[count] = _apart(x[a], y[a], x[b], y[b])
                count += 1
    return u, v, owner, metres


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _apart(x1, y1, x2, y2):
    """Return the metres between two places in units of 1e-7 degrees."""
    unit = np.pi / 180 / UNITS
    latitude = 0.5 * unit * (float(y1) + float(y2))
    w = 1 - ECCENTRICITY * np.sin(latitude) ** 2
    north = EQUATOR * (1 - ECCENTRICITY) / (w * np.sqrt(w)) * unit * (float(y2) - float(y1))
    east = EQUATOR / np.sqrt(w) * np.cos(latitude) * unit * (float(x2) - float(x1))
    return np.hypot(north, east)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _rates(owner, metres, along_speed, against_speed, seconds, along, against):
    """Write the seconds per metre of each way along and against it, infinite where it is closed."""
    length = np.zeros(len(seconds))
    for piece in range(len(owner)):
        length[owner[piece]] += metres[piece]
    for way in range(len(seconds)):
        timed = seconds[way] > 0 and length[way] > 0
        for speed, rate in (along_speed, along), (against_speed, against):
            if speed[way] <= 0:
                rate[way] = np.inf
            else:
                rate[way] = seconds[way] / length[way] if timed else 3.6 / speed[way]


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _meeting(u, v, n, halves):
    """Fill `halves` with the pieces that meet at each node, and return where those of each node begin, as CSR.

    Half 2 * piece is at node u and leads to v; half 2 * piece + 1 leads back.
    """
    starts = np.zeros(n + 1, np.int64)
    for piece in range(len(u)):
        starts[u[piece] + 1] += 1
        starts[v[piece] + 1] += 1
    for node in range(n):
        starts[node + 1] += starts[node]
    places = starts[:-1].copy()
    for piece in range(len(u)):
        for half, node in (2 * piece, u[piece]), (2 * piece + 1, v[piece]):
            halves[places[node]] = half
            places[node] += 1
    return starts


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _keep_junctions(u, v, owner, along, against, starts, halves, kept):
    """Mark the nodes that are not contracted, apart from those of circular roads."""
    for node in range(len(kept)):
        if starts[node + 1] - starts[node] != 2:
            kept[node] = True
            continue
        one, other = halves[starts[node]], halves[starts[node] + 1]
        out_one, in_one = _open(one, owner, along, against)
        out_other, in_other = _open(other, owner, along, against)
        ends = _far(one, u, v), _far(other, u, v)
        if ends[0] == ends[1] or out_one != in_other or in_one != out_other:
            kept[node] = True


@njit(nogil=True, cache=True, inline="always")
@recompiled_with_imports
@no_type_check
def _far(half, u, v):
    """Return the node to which half of a piece leads."""
    return u[half >> 1] if half & 1 else v[half >> 1]


@njit(nogil=True, cache=True, inline="always")
@recompiled_with_imports
@no_type_check
def _open(half, owner, along, against):
    """Return whether a piece may be taken from the node of its half, and whether towards this node."""
    way = owner[half >> 1]
    forth, back = np.isfinite(along[way]), np.isfinite(against[way])
    return (back, forth) if half & 1 else (forth, back)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _chains(u, v, starts, halves, kept):
    """Return the nodes of all chains from vertex to vertex, their offsets, and the halves of pieces along them.

    A chain of k nodes has k - 1 halves. Circular roads without a junction come last, and `kept` gets their first node.
    """
    nodes, ends = np.empty(2 * len(u), u.dtype), np.empty(len(u), halves.dtype)
    offsets, chains, count = np.zeros(len(u) + 1, np.int64), 0, 0
    used = np.zeros(len(u), np.bool_)
    for circular in range(2):
        for vertex in range(len(kept)):
            if not circular and not kept[vertex]:
                continue
            for place in range(starts[vertex], starts[vertex + 1]):
                half = halves[place]
                if used[half >> 1]:
                    continue
                kept[vertex] = True
                nodes[count] = vertex
                count += 1
                while True:
                    used[half >> 1] = True
                    ends[count - 1 - chains] = half
                    node = _far(half, u, v)
                    nodes[count] = node
                    count += 1
                    if kept[node]:
                        break
                    arrived = half ^ 1
                    half = halves[starts[node]]
                    if half == arrived:
                        half = halves[starts[node] + 1]
                chains += 1
                offsets[chains] = count
    return nodes[:count].copy(), offsets[: chains + 1].copy(), ends


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _sums(ends, owner, metres, along, against, offsets):
    """Return of each chain the length, and the seconds forward and backward."""
    chains = len(offsets) - 1
    length, forward, backward = np.zeros(chains), np.zeros(chains), np.zeros(chains)
    for chain in range(chains):
        for piece in range(offsets[chain] - chain, offsets[chain + 1] - chain - 1):
            half = ends[piece]
            way, step = owner[half >> 1], metres[half >> 1]
            forth, back = (against[way], along[way]) if half & 1 else (along[way], against[way])
            length[chain] += step
            forward[chain] += step * forth
            backward[chain] += step * back
    return length, forward, backward
