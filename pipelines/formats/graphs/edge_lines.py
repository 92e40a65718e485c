"""The lines and the classes of edges, which follow their arcs into the order of the store."""

from __future__ import annotations

import re

import numpy as np

from pipelines.formats.text_file import is_number
from pipelines.stores.lines import Lines
from pipelines.stores.road_classes import RoadClasses, classes_of

_WKT = re.compile(r"\s*LINESTRING\s*(?:Z|M|ZM)?\s*\(([^()]*)\)\s*", re.IGNORECASE)


def stored_order(
    tails: np.ndarray, heads: np.ndarray, weights: np.ndarray | None, simplify: bool, sorted_rows: bool
) -> np.ndarray:
    """Return the numbers of the arcs, ordered as `pipelines.formats.arc_spool` stores the arcs.

    With `simplify`, loops are left out, and all parallel arcs except the first of the lightest.

    >>> stored_order(np.array([1, 0, 0]), np.array([0, 2, 2]), np.array([5, 4, 3]), False, True)
    array([1, 2, 0])
    >>> stored_order(np.array([1, 0, 0]), np.array([0, 2, 2]), np.array([5, 4, 3]), True, True)
    array([2, 0])
    """
    if not simplify:
        return np.lexsort((heads, tails)) if sorted_rows else np.argsort(tails, kind="stable")
    order = np.lexsort((np.zeros(len(tails)) if weights is None else weights, heads, tails))
    order = order[tails[order] != heads[order]]
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(tails[order]) != 0) | (np.diff(heads[order]) != 0)
    return order[first]


class EdgeLines:
    """Collects the edges of a source in their order, and the lines and the classes of edges that have them."""

    def __init__(self) -> None:
        self._edges: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        self._lines: list[np.ndarray] = []
        self._numbers: list[int] = []  # number of the line of each edge, from 1; 0 for an edge without a line
        self._classes: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add_line(self, points: np.ndarray | None) -> None:
        """Add the line (k, 2) of the next edge; None if it has no line."""
        if points is not None:
            self._lines.append(points)
        self._numbers.append(0 if points is None else len(self._lines))

    def add_class(self, entry: str) -> None:
        """Add the class of the road of the next edge, "" if it is not known."""
        self._classes.append(entry)

    def add_edges(self, tails: np.ndarray, heads: np.ndarray, weights: np.ndarray | None) -> None:
        """Add the ends and the weights of some edges."""
        self._edges.append((tails, heads, weights))

    def stored(self, coordinates: np.ndarray, directed: bool, simplify: bool, sorted_rows: bool) -> Lines:
        """Return the lines of the arcs of the store; a line leads from the end that its first point is nearer to."""
        tails, heads, _ = self._all()
        offsets = np.concatenate([[0], np.cumsum([len(line) for line in self._lines])])
        points = np.concatenate(self._lines)
        numbers = np.array(self._numbers, np.int64)
        bent = np.flatnonzero(numbers)
        starts, tips = coordinates[tails[bent]], points[offsets[numbers[bent] - 1]]
        to_head = np.square(tips - coordinates[heads[bent]]).sum(axis=1)
        numbers[bent] *= np.where(np.square(tips - starts).sum(axis=1) > to_head, -1, 1)
        if not directed:
            numbers = np.stack([numbers, -numbers], 1).ravel()
        return Lines(numbers[self._order(directed, simplify, sorted_rows)], offsets, points)

    def stored_classes(self, directed: bool, simplify: bool, sorted_rows: bool) -> RoadClasses | None:
        """Return the classes of the arcs of the store, None if none is known."""
        found = classes_of(self._classes)
        if found is None:
            return None
        arcs = self._order(directed, simplify, sorted_rows)
        return found.taken(arcs if directed else arcs // 2)

    def _all(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the tails, heads and weights of all edges."""
        tails, heads = (np.concatenate([edges[end] for edges in self._edges]) for end in (0, 1))
        weighted = self._edges[0][2] is not None
        return tails, heads, np.concatenate([edges[2] for edges in self._edges]) if weighted else None

    def _order(self, directed: bool, simplify: bool, sorted_rows: bool) -> np.ndarray:
        """Return the numbers of the arcs in the order of the store; an undirected edge has two neighbouring arcs."""
        tails, heads, weights = self._all()
        if not directed:
            tails, heads = np.stack([tails, heads], 1).ravel(), np.stack([heads, tails], 1).ravel()
            weights = None if weights is None else np.repeat(weights, 2)
        return stored_order(tails, heads, weights, simplify, sorted_rows)


def line_in_text(text: str) -> np.ndarray | None:
    """Return the points of a line in well-known text, (k, 2); None if the text is something else.

    >>> line_in_text("LINESTRING (13.5 52, 13.6 52.1)").tolist()
    [[13.5, 52.0], [13.6, 52.1]]
    """
    found = _WKT.fullmatch(text)
    if found is None:
        return None
    points = [point.split()[:2] for point in found[1].split(",")]
    if len(points) < 2 or not all(len(point) == 2 and all(map(is_number, point)) for point in points):
        return None
    return np.array(points, np.float64)


def line_of(shape: object) -> np.ndarray | None:
    """Return the points of a line of Shapely, (k, 2), or of a line in well-known text; None for anything else."""
    if isinstance(shape, str):
        return line_in_text(shape)
    if getattr(shape, "geom_type", "") != "LineString" or getattr(shape, "is_empty", True):
        return None
    return np.array([point[:2] for point in shape.coords], np.float64)  # type: ignore[attr-defined]
