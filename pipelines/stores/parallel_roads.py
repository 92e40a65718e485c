"""Roads between the same two ends, such as two carriageways: they are told apart by their lines."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.lines import Lines, points_along

ALIKE = 500  # two lines are one road if they are nowhere farther apart than this part of the length


def line_keys(
    lines: Lines | None, coordinates: np.ndarray, arcs: np.ndarray, tails: np.ndarray, heads: np.ndarray
) -> list[bytes]:
    """Return a key of the line of each arc; arcs with the same points, in either order, have the same key.

    The parameters are those of `pipelines.stores.lines.points_along`.
    """
    offsets, points = points_along(lines, coordinates, arcs, tails, heads)
    points += 0.0  # so that -0 and 0 are equal
    parts = (points[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    return [min(part.tobytes(), part[::-1].tobytes()) for part in parts]


def same_line(one: bytes, other: bytes) -> bool:
    """Return whether the lines of two keys are one road, whose two directions may be drawn slightly apart."""
    if one == other:
        return True
    a, b = (np.frombuffer(each).reshape(-1, 2) for each in (one, other))
    length = float(np.linalg.norm(np.diff(a, axis=0), axis=1).sum())
    return max(_farthest(a, b), _farthest(b, a)) <= length / ALIKE


def _farthest(points: np.ndarray, line: np.ndarray) -> float:
    """Return the largest distance of a point from a line."""
    along = np.diff(line, axis=0)
    from_begins = points[:, None] - line[:-1]
    share = (from_begins * along).sum(axis=2) / np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    apart = from_begins - np.clip(share, 0, 1)[..., None] * along
    return float(np.linalg.norm(apart, axis=2).min(axis=1).max())


def one_key_each(keys: Sequence[bytes], groups: Sequence[object]) -> list[bytes]:
    """Return the keys, where the same lines of a group have the key of the first of them."""
    first: dict[object, list[bytes]] = {}
    found = []
    for key, group in zip(keys, groups, strict=True):
        known = first.setdefault(group, [])
        same = next((each for each in known if same_line(each, key)), None)
        if same is None:
            known.append(key)
        found.append(key if same is None else same)
    return found


def with_lines(named: Sequence[bytes | None], roads: np.ndarray, keys: Sequence[bytes]) -> np.ndarray:
    """Return which arcs have the line of their road, bool; a road whose line is None has all its arcs.

    Parameters
    ----------
    named : the key of the line of each road
    roads : (k,) the road of each arc
    keys : (k,) the key of the line of each arc
    """
    lines = ((named[road], key) for road, key in zip(roads.tolist(), keys, strict=True))
    return np.array([line is None or same_line(line, key) for line, key in lines], bool)


def warn_of_parallel_roads(graph: Graph, ends: np.ndarray, roads: np.ndarray, keys: Sequence[bytes]) -> None:
    """Warn if arcs of a road that was named only by its two ends, (r, 2), have several lines.

    `roads` and `keys` have the road and the key of the line of each arc.
    """
    lines: dict[int, set[bytes]] = {}
    for road, key in zip(roads.tolist(), one_key_each(keys, roads.tolist()), strict=True):
        lines.setdefault(road, set()).add(key)
    several = [road for road, each in lines.items() if len(each) > 1]
    if several:
        count, (a, b) = len(lines[several[0]]), graph.names(ends[several[0]])
        further = f"; {len(several) - 1:,} more pairs are joined by several roads" if several[1:] else ""
        warnings.warn(
            f"{count} roads join {a!r} and {b!r}; {'both' if count == 2 else 'all'} are closed; give a row of "
            f"graph_to_gdfs or a geometry for one of them{further}",
            stacklevel=6,  # the caller of with_weights
        )


def warn_of_parallel_arcs(graph: Graph, tails: np.ndarray, heads: np.ndarray, counts: np.ndarray) -> None:
    """Warn if a mapping from (tail, head) gives one weight to several arcs; `counts` has their number for each pair."""
    several = np.flatnonzero(counts > 1).tolist()
    if several:
        first = several[0]
        a, b = graph.names([tails[first], heads[first]])
        further = f"; {len(several) - 1:,} more pairs have parallel arcs, too" if several[1:] else ""
        warnings.warn(
            f"weights: {counts[first]} arcs lead from {a!r} to {b!r}, and each gets the weight of this pair; to change "
            f"one of them, give a column of tilepath.graph_to_gdfs, or an array with the weight of each arc{further}",
            stacklevel=5,  # the caller of with_weights
        )
