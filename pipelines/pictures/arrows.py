"""The curves of arcs: quadratic Bezier curves from the rim of a node to the rim of another, and loops.

Curves of parallel arcs are bent apart. Nodes are boxes with round corners. The size of a node is half its width and
half its height, and the smaller of the two is the radius of the corners. A curve is cut where it leaves its first node
and where it enters its last, so arrow heads end at the rim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SAMPLES, DENSE = 33, 129  # points of a curve that are compared with nodes; with texts, which are smaller
HEAD = 6.5  # length of an arrow head, in points
# How far a bundle of parallel arcs may be bent to miss nodes, in points; the first that fits is taken.
TRIES = (0, 12, -12, 20, -20, 28, -28, 38, -38, 50, -50, 64, -64, 80, -80)


@dataclass
class Curve:
    """An arc: three control points (of a loop, four), and the corners of the arrow head, (3, 2), or None."""

    points: np.ndarray
    head: np.ndarray | None

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return the points of the curve at `t`, (len(t), 2)."""
        return _bezier(self.points, t)


def route_arcs(
    tails: np.ndarray, heads: np.ndarray, centres: np.ndarray, sizes: np.ndarray, directed: bool, apart: float
) -> list[Curve]:
    """Return a curve for every arc. Arcs between the same nodes, in either direction, are `apart` points apart."""
    bundles: dict[tuple[int, int], list[int]] = {}
    for arc, (u, v) in enumerate(zip(tails.tolist(), heads.tolist(), strict=True)):
        bundles.setdefault((min(u, v), max(u, v)), []).append(arc)
    curves: list[Curve | None] = [None] * len(tails)
    for (u, v), arcs in bundles.items():
        if u == v:
            outward = _free_direction(u, tails, heads, centres)
            for k, arc in enumerate(arcs):
                curves[arc] = _loop(centres[u], sizes[u], outward, k, directed)
            continue
        arcs.sort(key=lambda arc: (tails[arc] != u, arc))
        offsets = (np.arange(len(arcs)) - (len(arcs) - 1) / 2) * apart
        offsets += _shift(u, v, offsets, centres, sizes)
        for arc, offset in zip(arcs, offsets.tolist(), strict=True):
            bend = _bend(centres[u], centres[v], offset)
            forward = tails[arc] == u
            points = bend if forward else bend[::-1]
            ends = (sizes[u], sizes[v]) if forward else (sizes[v], sizes[u])
            curves[arc] = _trimmed(points, *ends, directed)
    return [curve for curve in curves if curve is not None]


def label_places(curves: list[Curve], boxes: np.ndarray, centres: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return places of the texts of arcs, (m, 2).

    A text lies on the curve of its arc, and if possible clear of nodes, arrow heads, other texts and other curves.
    `boxes` (m, 2) has half the width and half the height of each text.
    """
    if not curves:
        return np.zeros((0, 2))
    along = 0.5 + 0.03 * np.array([0, *(sign * step for step in range(1, 11) for sign in (-1, 1))])
    samples = np.concatenate([curve.at(np.linspace(0, 1, DENSE)) for curve in curves])
    owners = np.repeat(np.arange(len(curves)), DENSE)
    tips = np.array([curve.head.mean(axis=0) for curve in curves if curve.head is not None]).reshape(-1, 2)
    places = np.zeros((len(curves), 2))
    for i, curve in enumerate(curves):
        best, half, tried = math.inf, boxes[i], curve.at(along)
        close = ((samples > tried.min(axis=0) - half) & (samples < tried.max(axis=0) + half)).all(axis=1)
        near = np.flatnonzero(close & (owners != i))
        covers = (np.abs(samples[near] - tried[:, None]) < half).all(axis=2)
        for rank, place in enumerate(tried):
            over_nodes = _overlap(place, half + 1, centres, sizes)
            over_texts = _overlap(place, half + 1, places[:i], boxes[:i])
            over_tips = _overlap(place, half, tips, np.full_like(tips, HEAD / 2))
            over_curves = len(np.unique(owners[near[covers[rank]]]))
            cost = 4 * over_nodes + 4 * over_texts + 2 * over_tips + 0.7 * over_curves + 0.01 * rank
            if cost < best:
                best, places[i] = cost, place
    return places


def _overlap(place: np.ndarray, half: np.ndarray, centres: np.ndarray, sizes: np.ndarray) -> int:
    return int((np.abs(centres - place) < sizes + half).all(axis=1).sum()) if len(centres) else 0


def _shift(u: int, v: int, offsets: np.ndarray, centres: np.ndarray, sizes: np.ndarray) -> float:
    """Return how far to bend a bundle of arcs, in points, so that the arcs miss other nodes if possible."""
    others = np.delete(np.arange(len(centres)), [u, v])
    if len(others) == 0:
        return 0.0
    t = np.linspace(0.04, 0.96, SAMPLES)
    best, least = 0, math.inf
    for shift in TRIES:
        hits = 0
        for offset in offsets:
            curve = _bezier(_bend(centres[u], centres[v], float(offset) + shift), t)
            inside = (np.abs(curve[:, None] - centres[others]) < sizes[others] + 3).all(axis=2)
            hits += int(inside.any(axis=0).sum())
        cost = hits + abs(shift) / 100
        if cost < least:
            best, least = shift, cost
        if not hits:
            break
    return best


def _bend(a: np.ndarray, b: np.ndarray, offset: float) -> np.ndarray:
    """Return the control points of a curve whose middle is `offset` points to the left of the straight line."""
    chord = b - a
    length = float(np.hypot(*chord)) or 1.0
    beside = np.array([-chord[1], chord[0]]) / length
    return np.array([a, (a + b) / 2 + 2 * offset * beside, b])


def _trimmed(points: np.ndarray, size_a: np.ndarray, size_b: np.ndarray, directed: bool) -> Curve:
    """Return the curve from the rim of its first node to the rim of its last node; if directed, with an arrow head."""
    t = np.linspace(0, 1, 257)
    curve = _bezier(points, t)
    out_a = ~_inside(curve - points[0], size_a)
    out_b = ~_inside(curve - points[-1], size_b)
    first = int(out_a.argmax())
    last = len(t) - 1 - int(out_b[::-1].argmax())
    if not out_a.any() or not out_b.any() or first >= last:  # the nodes touch
        first, last = 96, 160
    tip, head = last, None
    if directed:
        away = np.linalg.norm(curve - curve[tip], axis=1)
        base = next((i for i in range(tip, first, -1) if away[i] >= HEAD), first)
        head = _arrow_head(curve[base], curve[tip])
        last = max(base, first + 1)
    return Curve(_cut(points, t[first], t[last]), head)


def _arrow_head(base: np.ndarray, tip: np.ndarray) -> np.ndarray:
    along = tip - base
    length = float(np.hypot(*along)) or 1.0
    along = along / length
    across = np.array([-along[1], along[0]])
    start = tip - HEAD * along
    return np.array([tip, start + 0.42 * HEAD * across, start - 0.42 * HEAD * across])


def _loop(centre: np.ndarray, size: np.ndarray, outward: float, k: int, directed: bool) -> Curve:
    """Return a loop that leaves its node around the direction `outward`; loops grow with their number `k`."""
    reach, opening = 30.0 + 13 * k + float(size.max()), 0.5 + 0.06 * k
    points = [centre]
    for angle in (outward + opening, outward - opening):
        points.append(centre + 1.25 * reach * np.array([math.cos(angle), math.sin(angle)]))
    return _trimmed(np.array([*points, centre]), size, size, directed)


def _free_direction(node: int, tails: np.ndarray, heads: np.ndarray, centres: np.ndarray) -> float:
    """Return the middle of the widest angle between neighbours; upwards if the node has no neighbours."""
    around = {int(v) for v in np.concatenate([heads[tails == node], tails[heads == node]])} - {node}
    if not around:
        return math.pi / 2
    angles = sorted(math.atan2(*(centres[v] - centres[node])[::-1]) for v in around)
    gaps = [(b - a, a) for a, b in zip(angles, [*angles[1:], angles[0] + 2 * math.pi], strict=True)]
    width, begin = max(gaps)
    return begin + width / 2


def _inside(offsets: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return whether points, relative to the centre of a node, lie in the node."""
    radius = float(size.min())
    beyond = np.maximum(np.abs(offsets) - (size - radius), 0)
    return np.hypot(beyond[:, 0], beyond[:, 1]) < radius


def _bezier(points: np.ndarray, t: np.ndarray) -> np.ndarray:
    from matplotlib.bezier import BezierSegment

    return BezierSegment(points)(t)


def _cut(points: np.ndarray, start: float, stop: float) -> np.ndarray:
    """Return the control points of the part of a curve between two parameters, `stop` above 0."""
    from matplotlib.bezier import split_de_casteljau

    until_stop, _ = split_de_casteljau(points, stop)
    _, from_start = split_de_casteljau(until_stop, start / stop)
    return np.array(from_start)
