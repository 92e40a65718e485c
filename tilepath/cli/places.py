"""Places in arguments that name vertices, such as 13.37,52.52: a command takes the nearest vertices, and says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tilepath.cli.messages import say

PLACES = (
    "In a network with coordinates, a place such as 13.37,52.52 (longitude and latitude, or x and y) names the nearest "
    "vertex of the largest strongly connected component."
)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
PLACE = re.compile(rf"\s*({_NUMBER})\s*,\s*({_NUMBER})\s*")


def place_in(text: str) -> tuple[float, float] | None:
    """Return the two numbers of a text such as "13.37,52.52", or None for any other text.

    >>> place_in("13.37, -52.5"), place_in("a,b")
    ((13.37, -52.5), None)
    """
    found = PLACE.fullmatch(text)
    return None if found is None else (float(found[1]), float(found[2]))


def protected(arguments: list[str]) -> list[str]:
    """Return the arguments with a blank before a place that begins with a minus sign, as it is no option."""
    return [f" {each}" if each.startswith("-") and PLACE.fullmatch(each) else each for each in arguments]


class AtPlaces:
    """Turns places into vertices of one graph. Other names stay as they are; a text that is also a label is a label."""

    def __init__(self, graph: Any):
        self.graph = graph

    def __call__(self, name: Any, what: str = "place") -> Any:
        """Return the vertex at a place, as `tilepath.positions`; or `name` unchanged if it is no place."""
        if not isinstance(name, str) or (place := place_in(name)) is None or self.graph.find([name])[0] >= 0:
            return name
        from pipelines import positions
        from pipelines.places.at import described, point_at

        points = point_at(self.graph, place, what, name.strip(), self._snapping)
        say(described(points, name, self.graph), err=True)
        return positions(points.vertices[0])

    @cached_property
    def _snapping(self) -> Any:
        """The vertices by place."""
        from pipelines.places.snapping import Snapping

        return Snapping(self.graph)

    def all(self, names: Sequence[str], what: str) -> list[int]:
        """Return the vertices of some names or places."""
        return [self.graph.vertex(self(name, what), what) for name in names]

    def in_file(self, file: str, what: str) -> list[int]:
        """Return the vertices that a file names, or the vertices at the places in the file, each vertex once."""
        from pipelines.files.listed_vertices import vertices_in_file
        from pipelines.files.tables import has_column, is_table
        from pipelines.places.points import points_from
        from pipelines.stores.schema import counted

        axes = ("lon", "lat"), ("x", "y")
        if not is_table(file) or not any(has_column(file, a) and has_column(file, b) for a, b in axes):
            return vertices_in_file(self.graph, what, file)
        points = points_from(file, self.graph, what, snapping=self._snapping)
        found = list(dict.fromkeys(points.vertices.tolist()))
        self._say(points, file, f" to {counted(len(found), 'vertex', 'vertices')}")
        return found

    def pairs(self, file: str) -> Any:
        """Return the pairs of vertices in a file, as `tilepath.positions`, if it has places; else the file."""
        from pipelines import positions
        from pipelines.files.tables import column_names
        from pipelines.od_tables.pairs_of_points import read_pairs_of_points

        if not any(name.startswith(("origin_", "destination_")) for name in column_names(file)):
            return file
        points = read_pairs_of_points(file, self._snapping)
        for what, each in zip(("origins", "destinations"), points, strict=True):
            if each.snapped is not None:
                self._say(each, f"{file}, {what}", "")
        return positions(list(zip(*(each.vertices.tolist() for each in points), strict=True)))

    def _say(self, points: Any, of: str, to: str) -> None:
        """Say how far places were moved, and a warning if there is one."""
        from pipelines.stores.schema import counted

        places, unit = counted(len(points.vertices), "place"), f" {points.unit}".rstrip()
        say(f"{of}: {places} moved by at most {points.snapped.max():,.1f}{unit}{to}", err=True)
        if points.warning:
            say(points.warning, err=True)
