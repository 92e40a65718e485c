"""The pieces of arcs that are reached within limits, each cut where a limit ends.

A walk along an arc starts at the distance of its tail, and has a constant pace: the share s of the length of the arc is
walked after s times its weight. An edge of an undirected graph is walked from both of its ends, along its two arcs.
Both walks end at the point where they meet. So every point of a street is reached once, at the earliest time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuops import csr


class Pieces(NamedTuple):
    """Pieces of arcs.

    Attributes
    ----------
    arcs : (p,) int64
        Positions of the arcs in the store.
    first, last : (p,) float64
        Where the piece begins and ends on its arc, as shares of the length of the arc.
    band : (p,) int64
        The piece lies between the limits number ``band - 1`` (or 0, for the first band) and ``band``.
    begin, end : (p,) float64
        The distances from the source to the two ends of the piece.
    """

    arcs: np.ndarray
    first: np.ndarray
    last: np.ndarray
    band: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def turned(self) -> Pieces:
        """Return the same pieces of the opposite arcs, which lead from the ends of these arcs to their beginnings."""
        return Pieces(self.arcs, 1 - self.last, 1 - self.first, self.band, self.end, self.begin)


def reached_pieces(
    tails: np.ndarray,
    heads: np.ndarray,
    weights: np.ndarray,
    leaving: np.ndarray,
    limits: np.ndarray,
    undirected: bool,
) -> Pieces:
    """Return the pieces of arcs that are reached within the largest limit.

    Parameters
    ----------
    tails, heads, weights : (m,) arcs, with weights of 0 or more
    leaving : (n,) float64
        The distance of each vertex from the source; +inf if no arc is walked from the vertex: not reached, or closed.
    limits : (b,) float64, ascending
    undirected : whether each edge has two opposite arcs, so that it is walked from both of its ends
    """
    starts, steps = leaving[tails], weights.astype(np.float64)
    stops, whole = starts + steps, np.ones(len(steps))
    if undirected:  # an edge is done when the walks along both of its arcs together have taken its weight
        opposite = leaving[heads]
        both = np.isfinite(starts) & np.isfinite(opposite)
        meeting = np.where(both, (np.where(both, starts + opposite, 0.0) + steps) / 2, np.inf)
        stops = np.clip(meeting, starts, stops)
        whole[both & (steps == 0)] = 0.5  # walks that take no time meet in the middle
    bounds = np.concatenate([[0.0], limits])
    arcs = np.flatnonzero(starts <= limits[-1])
    starts, stops, steps, whole = starts[arcs], stops[arcs], steps[arcs], whole[arcs]
    pieces = []
    for band in range(len(limits)):
        low, high = bounds[band], bounds[band + 1]
        begin, end = np.maximum(starts, low), np.minimum(stops, high)
        there = begin < end
        # An arc of weight 0 is reached at once, in the first band that has its tail.
        there |= (steps == 0) & (starts <= high) & ((starts > low) | (band == 0))
        kept = np.flatnonzero(there)
        with np.errstate(invalid="ignore", divide="ignore"):
            first = np.where(steps[kept] > 0, (begin[kept] - starts[kept]) / steps[kept], 0.0)
            last = np.where(steps[kept] > 0, (end[kept] - starts[kept]) / steps[kept], 1.0)
        last = np.where(end[kept] == starts[kept] + steps[kept], whole[kept], np.minimum(last, 1.0))
        pieces.append((arcs[kept], first, last, np.full(len(kept), band), begin[kept], end[kept]))
    return Pieces(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


class Cut(NamedTuple):
    """Lines: the points of line i are ``points[offsets[i] : offsets[i + 1]]``."""

    offsets: np.ndarray
    points: np.ndarray


def cut_lines(
    offsets: np.ndarray, points: np.ndarray, scale: np.ndarray, lines: np.ndarray, first: np.ndarray, last: np.ndarray
) -> Cut:
    """Return pieces of lines.

    Parameters
    ----------
    offsets, points : the lines, as `pipelines.stores.lines.points_along` returns them
    scale : (2,) lengths of a unit of x and of a unit of y, so that lengths can be compared
    lines : (p,) the line of each piece
    first, last : (p,) where a piece begins and ends, as shares of the length of its line
    """
    steps = np.hypot(*(np.diff(points, axis=0) * scale).T)
    steps[offsets[1:-1] - 1] = 0  # from a line to the next
    along = np.concatenate([[0.0], np.cumsum(steps)])
    begins, ends = offsets[lines], offsets[lines + 1]
    base = along[begins]
    length = along[ends - 1] - base
    low, high = base + first * length, base + last * length
    after = np.clip(np.searchsorted(along, low, side="right"), begins + 1, ends)
    before = np.clip(np.searchsorted(along, high, side="left"), after, ends)
    before = np.where(last >= 1, np.maximum(ends - 1, after), before)
    after = np.minimum(after, before)

    def at(place: np.ndarray, following: np.ndarray) -> np.ndarray:
        point = np.clip(following - 1, begins, ends - 2)
        step = along[point + 1] - along[point]
        share = np.clip(np.where(step > 0, (place - along[point]) / np.where(step > 0, step, 1), 0), 0, 1)
        return points[point] + share[:, None] * (points[point + 1] - points[point])

    counts = np.concatenate([[0], np.cumsum(before - after + 2)])
    found = np.empty((counts[-1], 2))
    found[counts[:-1]] = np.where((first <= 0)[:, None], points[begins], at(low, after))
    found[counts[1:] - 1] = np.where((last >= 1)[:, None], points[ends - 1], at(high, before))
    found[csr.in_ranges(counts[:-1] + 1, counts[1:] - 1)] = points[csr.in_ranges(after, before)]
    return Cut(counts, found)
