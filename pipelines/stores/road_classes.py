"""The classes of roads, such as "primary" or "footway", by which pictures draw lines wide or thin."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Columns of layers and attributes of edges that hold the class: of OpenStreetMap and OSMnx, of Geofabrik, of others.
COLUMNS = ("highway", "fclass", "road_class", "roadclass")
MOST = np.iinfo(np.int16).max  # most classes


@dataclass(frozen=True, eq=False)
class RoadClasses:
    """The class of the road of each arc.

    Attributes
    ----------
    of_arcs : (m,) int16
        Position of the class in `names`; -1: the class is not known.
    names : the classes, in alphabetical order
    """

    of_arcs: np.ndarray
    names: tuple[str, ...]

    def taken(self, arcs: np.ndarray) -> RoadClasses:
        """Return the classes of some arcs, in the order of `arcs`."""
        return RoadClasses(self.of_arcs[arcs], self.names)


def classes_of(entries: Iterable[Any]) -> RoadClasses | None:
    """Return classes by the entries of a column, one for each road; None if no entry names a class, or too many do.

    >>> found = classes_of(["path", None, "['primary', 'path']"])
    >>> found.of_arcs.tolist(), found.names
    ([0, -1, 1], ('path', 'primary'))
    """
    texts = [class_in(entry) for entry in entries]
    names = tuple(sorted({*texts} - {""}))
    if not 0 < len(names) <= MOST:
        return None
    number = {name: i for i, name in enumerate(names)} | {"": -1}
    return RoadClasses(np.array([number[text] for text in texts], np.int16), names)


def class_in(entry: Any) -> str:
    """Return the class that an entry names, "" for none; of several, as OSMnx gives for merged roads, the first."""
    if isinstance(entry, str) and entry.startswith("["):
        try:
            entry = ast.literal_eval(entry)
        except (SyntaxError, ValueError):
            return ""
    if isinstance(entry, Sequence | np.ndarray) and not isinstance(entry, str):
        entry = entry[0] if len(entry) else ""
    return entry.strip() if isinstance(entry, str) else ""


def check_classes(of_arcs: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise ValueError if the number of a class is out of range."""
    if of_arcs.size and not -1 <= of_arcs.min() <= of_arcs.max() < len(names):
        raise ValueError("an arc has a class that does not exist")
