"""A part of a graph, and everything that a picture adds to it: numbers, a circuit, a tree, frames, colours, a route."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.answers.graph_pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LIGHT_GREEN,
    LIGHT_RED,
    NAMED_NODES,
    NUMBERED_ARCS,
    PALE,
    PARTS,
    RED,
    YELLOW,
    Drawing,
)
from pipelines.answers.graph_pictures.layout import on_paper
from pipelines.answers.graph_pictures.part import Part
from pipelines.answers.od_points import in_degrees
from pipelines.answers.structure import out_and_in_degrees
from pipelines.stores import Graph
from pipelines.stores.on_demand import Division
from pipelines.stores.schema import counted


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
        self.directed = graph.directed
        self.chosen = np.arange(len(part.arcs)) if graph.directed else _one_of_two(part)
        self.tails, self.heads = part.tails, part.indices
        self.texts: list[str] | None = None
        self.colours = np.full(len(part.arcs), GREY, object)
        self.widths = np.full(len(part.arcs), 1.0)
        self.lifted = np.zeros(len(part.arcs), bool)
        self.fills = np.full(len(part.vertices), "#ffffff", object)
        self.frames: list[tuple[str, np.ndarray]] = []
        self.legend: list[tuple[str, str]] = []
        self.values: np.ndarray | None = None
        self.scale = ""
        self.every: float | None = None
        self.rims = True
        coordinates = graph.coordinates() if on_map else None
        self.coordinates = None if coordinates is None else coordinates[part.vertices]
        self.degrees = coordinates is not None and in_degrees(graph, coordinates)
        self.marks: list[int] = []
        self.about = [part.about] if part.about else []

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
        self.directed = True
        self.chosen = np.sort(walks.arcs)
        order = np.empty(len(self.part.arcs), np.int64)
        order[walks.arcs] = np.arange(len(walks.arcs))
        self.number([str(place + 1) for place in order[self.chosen].tolist()])
        self.colours[walks.arcs] = np.where(np.arange(len(walks.arcs)) % 2 == 0, GREEN, RED)
        self.widths[:] = 1.3
        starts, ends = self.tails[walks.arcs[walks.offsets[:-1]]], self.heads[walks.arcs[walks.offsets[1:] - 1]]
        self.fills[ends[starts != ends]] = LIGHT_RED
        self.fills[starts] = LIGHT_GREEN
        self.legend.append((LIGHT_GREEN, "start"))
        if (starts != ends).any():
            self.legend.append((LIGHT_RED, "end"))
        self.legend += [(GREEN, "arcs 1, 3, 5, ..."), (RED, "arcs 2, 4, 6, ...")][: len(walks.arcs)]
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
        self.frames = [(f"component {k}", np.flatnonzero(numbers == k)) for k in range(count)]
        self.about.append(counted(count, "component"))

    def mark_degrees(self, in_degree: int | None, out_degree: int | None) -> None:
        outgoing, incoming = (degrees[self.part.vertices] for degrees in out_and_in_degrees(self.graph))
        many_in = incoming >= in_degree if in_degree is not None else np.zeros(len(incoming), bool)
        many_out = outgoing >= out_degree if out_degree is not None else np.zeros(len(outgoing), bool)
        self.fills[many_in], self.fills[many_out] = YELLOW, LIGHT_GREEN
        self.fills[many_in & many_out] = BLUE
        if in_degree is not None:
            self.legend.append((YELLOW, f"at least {counted(in_degree, 'arc')} in"))
        if out_degree is not None:
            self.legend.append((LIGHT_GREEN, f"at least {counted(out_degree, 'arc')} out"))
        if in_degree is not None and out_degree is not None:
            self.legend.append((BLUE, "both"))

    def mark(self, vertices: Any) -> None:
        """Mark vertices of the graph by rings, if they are drawn."""
        self.marks += np.flatnonzero(np.isin(self.part.vertices, vertices)).tolist()

    def colour(self, values: np.ndarray, scale: str, every: float | None = None) -> None:
        """Colour vertices by distances: smoothly, or with their arcs in bands of the width `every`."""
        self.values, self.scale, self.every = values[self.part.vertices], scale, every
        if every is not None:
            self.widths[:] = 2.0

    def divide(self, division: Division) -> None:
        """Colour parts, neighbouring parts differently. Arcs between parts and vertices that separate them are dark."""
        part, separates = division.part[self.part.vertices], division.separates[self.part.vertices]
        colours = np.array(PARTS, object)[_apart(part[self.tails], part[self.heads], division.parts)]
        across = part[self.tails] != part[self.heads]
        self.fills[:] = np.where(separates, INK, colours[part])
        self.colours[:] = np.where(across, INK, colours[part[self.tails]])
        self.widths[:] = np.where(across, 1.2, 2.0)
        self.lifted = across
        self.rims = False
        name, about = division.names
        self.legend.append((INK, name))
        self.about.append(about)

    def lead(self, vertices: tuple[int, ...], wash: bool) -> None:
        """Draw a route through `vertices` of the graph in red; of parallel arcs, the lightest is on the route."""
        weights = self.graph.weights()[self.part.arcs]
        on = np.zeros(len(self.part.arcs), bool)
        for u, v in pairwise(vertices):
            row = np.arange(self.part.indptr[u], self.part.indptr[u + 1])
            row = row[self.heads[row] == v]
            on[row[np.argmin(weights[row])]] = True
        if not self.graph.directed:  # of the two arcs of an edge, the arc that is drawn may be the opposite one
            pairs = {(int(self.tails[arc]), int(self.heads[arc])) for arc in np.flatnonzero(on)}
            on[:] = False
            for arc in self.chosen.tolist():
                u, v = int(self.tails[arc]), int(self.heads[arc])
                if pairs & {(u, v), (v, u)}:
                    on[arc] = True
                    pairs -= {(u, v), (v, u)}
        self._lift(on, wash)
        self.mark([vertices[0], vertices[-1]])
        first, last = (self.graph.label(v) for v in (vertices[0], vertices[-1]))
        self.about.append(f"route from {first} to {last}, {counted(len(vertices) - 1, 'arc')}")

    def drawing(self) -> Drawing:
        chosen, graph = self.chosen, self.graph
        n, m = len(self.part.vertices), len(chosen)
        kind = "arc" if graph.directed or m == len(self.part.arcs) else "edge"
        counts = f"{counted(n, 'vertex', 'vertices')}, {counted(m, kind)}"
        title = "; ".join([f"{Path(graph.path).name}: {counts}", *self.about])
        drawing = Drawing(
            names=graph.names(self.part.vertices.tolist()),
            tails=self.tails[chosen],
            heads=self.heads[chosen],
            directed=self.directed,
            title=title,
            texts=self.texts,
            colours=self.colours[chosen].tolist(),
            widths=self.widths[chosen].tolist(),
            fills=self.fills.tolist(),
            frames=self.frames,
            legend=self.legend,
            coordinates=self.coordinates,
            values=self.values,
            scale=self.scale,
            every=self.every,
            rims=self.rims,
            lifted=self.lifted[chosen],
            marks=self.marks,
        )
        if drawing.coordinates is not None:
            drawing = with_coordinates(drawing)
        if drawing.coordinates is not None and self.degrees and drawing.n:
            drawing.coordinates = on_paper(drawing.coordinates)
        return drawing

    def _lift(self, arcs: np.ndarray, wash: bool) -> None:
        self.colours[:] = PALE if wash else "#b8bcc2"
        self.widths[:] = 0.7 if wash else 1.0
        self.colours[arcs] = RED
        self.widths[arcs] = 2.0
        self.lifted = arcs


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
    place = np.cumsum(there) - 1
    kept = there[drawing.tails] & there[drawing.heads]

    def some(items: list[Any] | None, which: np.ndarray) -> Any:
        return None if items is None else [item for item, keep in zip(items, which.tolist(), strict=True) if keep]

    left_out = int((~there).sum())
    return replace(
        drawing,
        names=some(drawing.names, there),
        tails=place[drawing.tails[kept]],
        heads=place[drawing.heads[kept]],
        title=f"{drawing.title}; without {left_out:,} lacking coordinates",
        texts=some(drawing.texts, kept),
        colours=some(drawing.colours, kept),
        widths=some(drawing.widths, kept),
        fills=some(drawing.fills, there),
        frames=[(name, place[group[there[group]]]) for name, group in drawing.frames if there[group].any()],
        coordinates=drawing.coordinates[there],
        values=None if drawing.values is None else drawing.values[there],
        lifted=None if drawing.lifted is None else drawing.lifted[kept],
        marks=[int(place[v]) for v in drawing.marks if there[v]],
    )
