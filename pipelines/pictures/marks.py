"""Rings around marked nodes, and places for their labels, which hide no route, ring or other label if possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.pictures.drawing import Drawing
from pipelines.pictures.streets import street_points

NAMED_MARKS = 10  # most marked nodes that get names, and rings of the full size
SMALLEST_RING = 0.4  # least size of rings, as a share of the full size


def ring_size(drawing: Drawing) -> float:
    """Return the size of the rings of marked nodes, as a share of the full size: many rings are small."""
    return float(np.clip(np.sqrt(NAMED_MARKS / max(len(drawing.marks), 1)), SMALLEST_RING, 1))


def label_box(
    centre: np.ndarray,
    ring: np.ndarray,
    half: np.ndarray,
    rightwards: bool,
    lines: Any,
    taken: list[np.ndarray],
    page: np.ndarray | None,
) -> np.ndarray:
    """Return the corners (2, 2) of a label: to the right or left of a ring, above or below it.

    Parameters
    ----------
    centre, ring : (2,) the middle of the ring, and half of its width and height
    half : (2,) half of the width and height of the label
    rightwards : whether the right side comes first, else the left side
    lines : a path of matplotlib that shall stay visible
    taken : corners (2, 2) of rings and labels
    page : corners (2, 2) of a page that shall not grow; None if it may grow
    """
    away = ring + half + np.array([4.0, 3.0])
    side = away[0] if rightwards else -away[0]
    places = centre + np.array([[side, 0], [-side, 0], [0, away[1]], [0, -away[1]]])
    boxes = [np.array([place - half, place + half]) for place in places]
    grown = [0.0 if page is None else _beyond(box, page) for box in boxes]
    k = min(range(4), key=lambda k: (_hidden(boxes[k], lines, taken), grown[k], k))
    return boxes[k]


def lifted_lines(drawing: Drawing, centres: np.ndarray) -> Any:
    """Return the lines of the lifted arcs, such as a route, as a path of matplotlib."""
    from matplotlib.path import Path

    if not drawing.m:
        return Path(np.zeros((0, 2)))
    assert drawing.lifted is not None
    offsets, points = street_points(drawing, centres)
    codes = np.full(len(points), Path.LINETO, Path.code_type)
    codes[offsets[:-1]] = Path.MOVETO
    which = np.repeat(drawing.lifted, np.diff(offsets))
    return Path(points[which], codes[which])


def _hidden(box: np.ndarray, lines: Any, taken: list[np.ndarray]) -> int:
    """Return how much a name in a box (2, 2) hides: lifted lines, rings and names, each of which counts 1."""
    from matplotlib.transforms import Bbox

    others = sum(bool((box[0] < other[1]).all() and (box[1] > other[0]).all()) for other in taken)
    return others + int(len(lines.vertices) > 0 and lines.intersects_bbox(Bbox(box), filled=False))


def _beyond(box: np.ndarray, picture: np.ndarray) -> float:
    """Return how far a box reaches beyond the picture, in points: by this much the page would grow."""
    return float(np.concatenate([picture[0] - box[0], box[1] - picture[1], [0.0]]).max())
