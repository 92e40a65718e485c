"""A part of a graph, and everything that a picture adds to it: numbers, a circuit, a tree, frames, colours, a route."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.analysis.structure import out_and_in_degrees
from pipelines.files.coordinate_systems import metres_of
from pipelines.files.figures import in_words
from pipelines.pictures.drawing import (
    BLUE,
    CLOSED,
    GREEN,
    INK,
    LEVELS,
    LIGHT_GREEN,
    LIGHT_RED,
    NAMED_NODES,
    NUMBERED_ARCS,
    PALE,
    PARTS,
    RED,
    YELLOW,
    Area,
    Drawing,
)
from pipelines.pictures.extent import Box, box_around, clipped, refuse_areas
from pipelines.pictures.layout import on_paper
from pipelines.pictures.part import Part
from pipelines.places.by_place import EARTH_RADIUS
from pipelines.routes.route import Route
from pipelines.stores.coordinates import are_geographic, coordinate_system
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import Division
from pipelines.stores.lines import points_along
from pipelines.stores.schema import counted, number
from pipelines.stores.units import is_time

FAST = (2.0, 3.2), (1.3, 2.2)  # a road this many times as fast as usual has a line of this width, the fastest first
PALENESS = 0.6  # share of the colour of an area; the rest is white
CLASS_WIDTHS = {  # widths of the lines of roads by their classes in OpenStreetMap; of all other roads, 1
    **dict.fromkeys(("motorway", "trunk"), 3.8),
    "primary": 3.0,
    "secondary": 2.4,
    "tertiary": 1.7,
    **dict.fromkeys(("service", "track", "pedestrian", "cycleway", "bridleway", "footway", "path", "steps"), 0.6),
}


@dataclass
class Walks:
    """Arcs in walking order, by their positions in the store; walk k is ``arcs[offsets[k] : offsets[k + 1]]``."""

    arcs: np.ndarray
    offsets: np.ndarray
    directed: bool


class View:
    """Collects everything that a picture of a part of a graph shows; `drawing` returns it."""

    def __init__(self, graph: Graph, part: Part, on_map: bool):
        self.graph, self.part = graph, part
        self.chosen = np.arange(len(part.arcs)) if graph.directed else _one_of_two(part)
        coordinates = graph.coordinates() if on_map else None
        self.degrees = coordinates is not None and are_geographic(graph, coordinates)
        self.picture = Drawing(  # of all arcs, chosen or not
            names=graph.names(part.vertices.tolist()),
            tails=part.tails,
            heads=part.indices,
            directed=graph.directed,
            coordinates=None if coordinates is None else coordinates[part.vertices],
        )
        if coordinates is not None:
            self._bend(coordinates)
        self.texts: list[str] | None = None  # of the chosen arcs
        self.about = [part.about] if part.about else []
        self.counts = True  # whether the title has the numbers of vertices and arcs

    def _bend(self, coordinates: np.ndarray) -> None:
        """Give arcs their lines, the map its scale, and on a map of streets widths by class, or else by speed."""
        picture, part, lines = self.picture, self.part, self.graph.lines()
        tails, heads = part.vertices[picture.tails], part.vertices[picture.heads]
        bends = points_along(lines, coordinates, part.arcs, tails, heads)
        scale = on_paper(coordinates[np.isfinite(coordinates).all(axis=1)]) if self.degrees else 1.0
        self.lengths = _lengths(bends, scale)
        picture.bends = None if lines is None else bends
        picture.crs = coordinate_system(self.graph, coordinates)
        if self.degrees:
            picture.metres = math.radians(EARTH_RADIUS)
        elif self.graph.crs:
            picture.metres = metres_of(self.graph.crs)
        classes = self.graph.classes()
        if picture.streets and classes is not None:
            widths = [CLASS_WIDTHS.get(name.removesuffix("_link"), 1.0) for name in classes.names]
            picture.widths = np.array([*widths, 1.0])[classes.of_arcs[part.arcs]]  # the last is that of no class, -1
        elif picture.streets and is_time(self.graph.weight_unit):
            picture.widths = _widths(self.lengths, self.graph.weights()[part.arcs])

    def numbers(self) -> np.ndarray:
        """Return the positions in the store of the arcs that are drawn."""
        return self.part.arcs[self.chosen]

    def number(self, texts: list[str]) -> None:
        if len(self.part.vertices) > NAMED_NODES or len(self.chosen) > NUMBERED_ARCS:
            raise ValueError(
                f"{self.graph.path}: numbers are legible with up to {NUMBERED_ARCS} arcs and {NAMED_NODES} vertices; "
                f"here are {len(self.chosen):,} arcs and {len(self.part.vertices):,} vertices: draw a part of the "
                "graph, or leave out the numbers"
            )
        self.texts = texts

    def walk(self, walks: Walks) -> None:
        picture = self.picture
        picture.directed = True
        self.chosen = np.sort(walks.arcs)
        order = np.empty(len(self.part.arcs), np.int64)
        order[walks.arcs] = np.arange(len(walks.arcs))
        self.number([str(place + 1) for place in order[self.chosen].tolist()])
        picture.colours[walks.arcs] = np.where(np.arange(len(walks.arcs)) % 2 == 0, GREEN, RED)
        picture.widths[:] = 1.3
        starts = picture.tails[walks.arcs[walks.offsets[:-1]]]
        ends = picture.heads[walks.arcs[walks.offsets[1:] - 1]]
        picture.fills[ends[starts != ends]] = LIGHT_RED
        picture.fills[starts] = LIGHT_GREEN
        picture.legend.append((LIGHT_GREEN, "start"))
        if (starts != ends).any():
            picture.legend.append((LIGHT_RED, "end"))
        picture.legend += [(GREEN, "arcs 1, 3, 5, ..."), (RED, "arcs 2, 4, 6, ...")][: len(walks.arcs)]
        kind = "Euler path" if len(starts) == 1 and (starts != ends).any() else "Euler circuit"
        self.about.append(kind if len(starts) == 1 else f"{len(starts):,} Euler circuits")

    def span(self, wash: bool) -> None:
        from gpuops import spanning_forest

        indptr = self.part.indptr.astype(np.int64)
        forest = spanning_forest(indptr, self.part.indices, check=False)
        self._lift(forest.arcs, wash)
        self.about.append("spanning tree in red")

    def frame(self) -> None:
        from gpuops import weak_components

        numbers = weak_components(self.part.indptr.astype(np.int64), self.part.indices, compact=True, check=False)
        count = int(numbers.max(initial=-1)) + 1
        self.picture.frames = [(f"component {k}", np.flatnonzero(numbers == k)) for k in range(count)]
        self.about.append(counted(count, "component"))

    def mark_degrees(self, in_degree: int | None, out_degree: int | None) -> None:
        picture = self.picture
        outgoing, incoming = (degrees[self.part.vertices] for degrees in out_and_in_degrees(self.graph))
        many_in = incoming >= in_degree if in_degree is not None else np.zeros(len(incoming), bool)
        many_out = outgoing >= out_degree if out_degree is not None else np.zeros(len(outgoing), bool)
        picture.fills[many_in], picture.fills[many_out] = YELLOW, LIGHT_GREEN
        picture.fills[many_in & many_out] = BLUE
        if in_degree is not None:
            picture.legend.append((YELLOW, f"at least {counted(in_degree, 'arc')} in"))
        if out_degree is not None:
            picture.legend.append((LIGHT_GREEN, f"at least {counted(out_degree, 'arc')} out"))
        if in_degree is not None and out_degree is not None:
            picture.legend.append((BLUE, "both"))

    def mark(self, vertices: Any, names: list[str] | None = None) -> None:
        """Mark vertices of the graph by rings, if they are drawn; `names` replace their labels.

        A mark with an empty name has no label on a map of streets, and else the name of the vertex.
        """
        nodes = np.flatnonzero(np.isin(self.part.vertices, vertices)).tolist()
        self.picture.marks += nodes
        for node in nodes if names is not None else []:
            places = np.flatnonzero(np.asarray(vertices) == self.part.vertices[node]).tolist()
            name = ", ".join(names[place] for place in places if names[place])  # type: ignore[index]
            if name or self.picture.streets:
                self.picture.names[node] = name

    def colour(self, values: np.ndarray, scale: str, every: float | None = None) -> None:
        """Colour vertices by distances: smoothly, or with their arcs in bands of the width `every`."""
        self.picture.values, self.picture.scale, self.picture.every = values[self.part.vertices], scale, every
        if every is not None and not self.picture.streets:
            self.picture.widths[:] = 2.0

    def cover(self, areas: Any, cmap: str) -> None:
        """Fill areas, the rows of `tilepath.isochrones`, with a colour for each limit."""
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        if not (hasattr(areas, "geom_type") and "limit" in areas and areas.geom_type.str.endswith("Polygon").all()):
            raise ValueError("areas have no polygons with limits; pass what tilepath.isochrones returns, but not edges")
        frame = areas if areas.crs is None or not self.picture.crs else areas.to_crs(self.picture.crs)
        network = self.graph.coordinates()
        assert network is not None
        refuse_areas(frame, box_around(network, self.degrees), areas.crs)
        frame = clipped(frame, self._box())
        limits = np.unique(frame["limit"])
        unit = f" {frame.attrs['unit']}" if "unit" in frame.attrs else ""
        order = np.argsort(-frame["limit"].to_numpy(), kind="stable")
        for limit, shape in zip(frame["limit"].iloc[order], frame.geometry.iloc[order], strict=True):
            parts = [part for part in getattr(shape, "geoms", [shape]) if not part.is_empty]
            polygons = [part for part in parts if part.geom_type == "Polygon"]  # cut areas may touch the edge in lines
            rings = [[np.array(ring.coords)[:, :2] for ring in (part.exterior, *part.interiors)] for part in polygons]
            share = (np.searchsorted(limits, limit) + 0.5) / len(limits)
            colour = to_hex(np.array(colormaps[cmap](share)) * PALENESS + (1 - PALENESS))  # streets are dark
            self.picture.areas.append(Area(colour, rings, f"within {limit:g}{unit}"))
        self.picture.legend += dict.fromkeys((area.colour, area.text) for area in reversed(self.picture.areas))

    def close(self, lines: list[np.ndarray]) -> None:
        """Draw closed roads, given by their lines (k, 2); of a road that is closed in both directions, one line."""
        if not lines:
            return
        low, high = self._box()
        once = {min(line.tobytes(), line[::-1].tobytes()): line for line in lines}
        found = [line for line in once.values() if (line >= low).all() and (line <= high).all()]
        self.picture.closed += found
        if found:
            self.picture.legend.append((CLOSED, "closed road" if len(found) == 1 else "closed roads"))

    def _box(self) -> Box:
        """Return the box of what is drawn, and of some room around it."""
        shown, bends = self.picture.coordinates, self.picture.bends
        assert shown is not None
        return box_around(shown if bends is None else np.vstack([shown, bends[1]]), self.degrees)

    def divide(self, division: Division) -> None:
        """Colour parts, neighbouring parts differently. Arcs between parts and vertices that separate them are dark."""
        picture = self.picture
        part, separates = division.part[self.part.vertices], division.separates[self.part.vertices]
        colours = np.array(PARTS, object)[_apart(part[picture.tails], part[picture.heads], division.parts)]
        across = part[picture.tails] != part[picture.heads]
        picture.fills[:] = np.where(separates, INK, colours[part])
        picture.colours[:] = np.where(across, INK, colours[part[picture.tails]])
        picture.widths[:] = np.where(across, 1.2, 2.0)
        picture.lifted = across
        picture.rims = False
        name, about = division.names
        picture.legend.append((INK, name))
        self.about.append(about)

    def grade(self, levels: np.ndarray, division: Division) -> None:
        """Colour the vertices of the upper tree of a hierarchy, and their arcs, by `levels` (n), -1 for all others."""
        picture, separates = self.picture, division.separates[self.part.vertices]
        level = np.minimum(levels[self.part.vertices], len(LEVELS) - 1)
        colours = np.array([*LEVELS, PALE], object)
        ends = np.sort([level[picture.tails], level[picture.heads]], axis=0)
        of_arc = np.where(
            ends[0] < 0, ends[1], ends[0]
        )  # the lower number; if one end has no level, the level of the other end
        picture.fills[:], picture.colours[:] = colours[level], np.where(of_arc < 0, "#d3d6da", colours[of_arc])
        picture.widths[:] = np.where(of_arc < 0, 2.0, 1.0 + 1.2 * 0.7**of_arc)
        picture.radii = np.where(level < 0, 1.6, 1.6 + 2.2 * 0.7**level)
        picture.lifted, picture.rims = of_arc >= 0, False
        picture.legend += legend_of_levels(level)
        picture.legend.append((PALE, "bricks"))
        if (closed := separates & (level < 0)).any():
            picture.fills[closed] = BLUE
            picture.legend.append((BLUE, f"closed: {counted(int(closed.sum()), 'vertex', 'vertices')}"))
        self.about.append(division.names[1])

    def lead(self, route: Route, wash: bool, names: list[str] | None = None) -> None:
        """Draw a route in red; of parallel arcs, the lightest is on the route.

        `names` are the names of its ends, if these are places; the title then has the distance in place of vertices.
        """
        vertices = route.vertices
        tails, heads = self.picture.tails, self.picture.heads
        weights = self.graph.weights()[self.part.arcs]
        on = np.zeros(len(self.part.arcs), bool)
        for u, v in pairwise(vertices):
            row = np.arange(self.part.indptr[u], self.part.indptr[u + 1])
            row = row[heads[row] == v]
            on[row[np.argmin(weights[row])]] = True
        if not self.graph.directed:  # of the two arcs of an edge, the arc that is drawn may be the opposite one
            pairs = {(int(tails[arc]), int(heads[arc])) for arc in np.flatnonzero(on)}
            on[:] = False
            for arc in self.chosen.tolist():
                u, v = int(tails[arc]), int(heads[arc])
                if pairs & {(u, v), (v, u)}:
                    on[arc] = True
                    pairs -= {(u, v), (v, u)}
        self._lift(on, wash)
        self.mark([vertices[0], vertices[-1]], names)
        if names is not None:
            factor, scale = in_words(route.unit, "", np.array([route.distance], np.float64))
            about = f"route of {number(round(route.distance * factor, 1))} {scale.partition(', ')[2]}".strip()
            if self.picture.metres and is_time(route.unit):
                about += f", {self.lengths[on].sum() * self.picture.metres / 1000:,.1f} km"
            self.about.append(about)
            self.counts = False
            return
        first, last = (self.graph.label(v) for v in (vertices[0], vertices[-1]))
        self.about.append(f"route from {first} to {last}, {counted(len(vertices) - 1, 'arc')}")

    def drawing(self) -> Drawing:
        graph, arcs = self.graph, np.isin(np.arange(len(self.part.arcs)), self.chosen)
        drawing = self.picture.kept(np.ones(self.picture.n, bool), arcs)
        kind = "arc" if graph.directed or arcs.all() else "edge"
        counts = f"{counted(drawing.n, 'vertex', 'vertices')}, {counted(drawing.m, kind)}"
        about = [counts, *self.about] if self.counts else self.about
        drawing.title = f"{Path(graph.path).name}: {'; '.join(about)}"
        drawing.texts, drawing.attribution = self.texts, graph.attribution
        if drawing.coordinates is not None:
            drawing = with_coordinates(drawing)
        if drawing.coordinates is not None and self.degrees and drawing.n:
            scale = on_paper(drawing.coordinates)
            drawing.stretched, drawing.coordinates = scale, drawing.coordinates * scale
            if drawing.bends is not None:
                drawing.bends = drawing.bends[0], drawing.bends[1] * scale
            drawing.closed = [line * scale for line in drawing.closed]
            for area in drawing.areas:
                area.polygons = [[ring * scale for ring in polygon] for polygon in area.polygons]
        return drawing

    def _lift(self, arcs: np.ndarray, wash: bool) -> None:
        picture = self.picture
        picture.colours[:] = PALE if wash else "#b8bcc2"
        picture.widths = picture.widths * (0.7 if wash else 1.0)
        picture.colours[arcs] = RED
        picture.widths[arcs] = 2.4 if picture.streets else 2.0
        picture.lifted = arcs


def _lengths(bends: tuple[np.ndarray, np.ndarray], scale: Any) -> np.ndarray:
    """Return the lengths of lines, whose points are multiplied by `scale`."""
    offsets, points = bends
    steps = np.linalg.norm(np.diff(points * scale, axis=0), axis=1)
    steps[offsets[1:-1] - 1] = 0  # from a line to the next
    return np.diff(np.concatenate([[0.0], np.cumsum(np.nan_to_num(steps))])[np.minimum(offsets, len(points) - 1)])


def _widths(lengths: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the widths of roads by their speeds, compared with the median of all: the classes of roads, mostly."""
    speeds = lengths / np.where(times > 0, times, np.inf)
    usual = np.median(speeds[speeds > 0]) if (speeds > 0).any() else 1.0
    return np.select([speeds > fast * usual for fast, _ in FAST], [width for _, width in FAST], 1.0)


def _apart(tails: np.ndarray, heads: np.ndarray, count: int) -> np.ndarray:
    """Return a colour, below ``len(PARTS)``, for each of `count` parts; parts that arcs join differ if possible."""
    both = np.stack([np.concatenate([tails, heads]), np.concatenate([heads, tails])], axis=1)
    joined = np.unique(both[both[:, 0] != both[:, 1]], axis=0)
    starts = np.searchsorted(joined[:, 0], np.arange(count + 1))
    found = np.full(count, -1)
    for k in range(count):
        taken = found[joined[starts[k] : starts[k + 1], 1]]
        uses = np.bincount(taken[taken >= 0], minlength=len(PARTS))
        found[k] = (k + uses[np.arange(k, k + len(PARTS)) % len(PARTS)].argmin()) % len(PARTS)
    return found


def legend_of_levels(level: np.ndarray, vertices: np.ndarray | int = 1) -> list[tuple[str, str]]:
    """Return the legend of levels, -1 for none, with the sum of the numbers `vertices` of each level."""
    found: list[tuple[str, str]] = []
    for i, colour in enumerate(LEVELS):
        count = int((np.minimum(level, len(LEVELS) - 1) == i).astype(int) @ np.broadcast_to(vertices, level.shape))
        if count:
            name = "level 0 (root)" if i == 0 else f"level {i}" + (" and deeper" if i == len(LEVELS) - 1 else "")
            found.append((colour, f"{name}: {count:,}" if found else f"{name}: {counted(count, 'vertex', 'vertices')}"))
    return found


def _one_of_two(part: Part) -> np.ndarray:
    """Return one of the two arcs of each edge, the arc with the smaller number."""
    from gpuops import mates_of

    return np.flatnonzero(np.arange(len(part.arcs)) < mates_of(part.indptr, part.indices))


def with_coordinates(drawing: Drawing) -> Drawing:
    """Return the drawing without nodes that have no coordinates; if all lack them, all nodes, but not as a map."""
    assert drawing.coordinates is not None
    there = np.isfinite(drawing.coordinates).all(axis=1)
    if there.all():
        return drawing
    if not there.any():
        drawing.coordinates = None
        return drawing
    found = drawing.kept(there, there[drawing.tails] & there[drawing.heads])
    found.title += f"; without {int((~there).sum()):,} lacking coordinates"
    return found
