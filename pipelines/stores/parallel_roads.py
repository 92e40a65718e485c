"""Roads between the same two ends, such as two carriageways: they are told apart by their lines."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.lines import Lines, points_along


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


def with_lines(named: Sequence[bytes | None], roads: np.ndarray, keys: Sequence[bytes]) -> np.ndarray:
    """Return which arcs have the line of their road, bool; a road whose line is None has all its arcs.

    Parameters
    ----------
    named : the key of the line of each road
    roads : (k,) the road of each arc
    keys : (k,) the key of the line of each arc
    """
    return np.array([named[road] in (None, key) for road, key in zip(roads.tolist(), keys, strict=True)], bool)


def warn_of_parallel_roads(graph: Graph, ends: np.ndarray, roads: np.ndarray, keys: Sequence[bytes]) -> None:
    """Warn if arcs of a road that was named only by its two ends, (r, 2), have several lines.

    `roads` and `keys` have the road and the key of the line of each arc.
    """
    lines: dict[int, set[bytes]] = {}
    for road, key in zip(roads.tolist(), keys, strict=True):
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
