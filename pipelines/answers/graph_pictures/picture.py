"""Pictures of graphs: what is asked for becomes a `Drawing`, which is laid out and written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gpuops.errors import NotEulerianError
from gpuops.numbers import outside_infinity
from pipelines.answers.graph_pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    LIGHT_GREEN,
    LIGHT_RED,
    NAMED_NODES,
    NUMBERED_ARCS,
    PALE,
    RED,
    YELLOW,
    Drawing,
)
from pipelines.answers.graph_pictures.part import Part, part_of
from pipelines.answers.routes import shortest_path
from pipelines.answers.structure import out_and_in_degrees
from pipelines.answers.tree_routes import tree_path
from pipelines.stores import Distances, Graph, Paths, StoreError, open_distances, open_graph, open_paths, store_schema
from pipelines.stores.circuits import Circuits, open_circuits


def picture_graph(
    graph: Graph | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    edges: bool = False,
    circuit: bool | Circuits | str | os.PathLike[str] = False,
    spanning_tree: bool = False,
    wash: bool = False,
    components: bool = False,
    in_degree: int | None = None,
    out_degree: int | None = None,
    distances: Distances | Paths | str | os.PathLike[str] | None = None,
    source: int | str | None = None,
    route: tuple[int | str, int | str] | None = None,
    sample: int | None = None,
    around: int | str | None = None,
    seed: int = 0,
) -> None:
    """Draw a graph to the image file `path`; its suffix names the format (.svg, .png, .pdf, or .dot for Graphviz).

    A graph with coordinates is drawn as a map. Else up to 10 vertices lie in layers, and more are laid out by forces.
    Beyond 150 vertices or 400 arcs names and arrow heads are left out. The same call gives the same bytes.

    Parameters
    ----------
    graph : Graph or path of a graph store
    path : the image
    edges : number the arcs by their places in the store
    circuit : True, or a circuits store: number the arcs in walking order, alternately green and red. Walks begin at
        green vertices, and end at red ones where they are open.
    spanning_tree : the forest of `gpuops.spanning_forest` in red over grey
    wash : what is not in the tree, or on the route, is washed away
    components : a frame around each weak component
    in_degree, out_degree : vertices with so many arcs in are yellow, with so many arcs out green, with both blue
    distances : a store of distances or paths, whose row of `source` colours the vertices
    source : a vertex, index (int) or name (str); by default the first of `route`, else that of the first row
    route : two vertices: the shortest path of `distances` between them in red
    sample : draw so many vertices, those that fewest arcs part from `around`, by default a random vertex
    seed : of layouts and samples

    Raises
    ------
    ImportError
        Matplotlib or NetworkX is missing; the message says how to install it.
    gpuops.NotEulerianError
        `circuit` is True, and there is none.
    StoreError
        There is no such vertex, or a store is of another graph.
    ValueError
        The graph is too large, options exclude each other, or the suffix is unknown.
    """
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    _refuse_clashes(bool(circuit), edges, spanning_tree, wash, route, distances, source, in_degree, out_degree, sample)
    on_map = "coordinates" in graph.optional
    middle = None if around is None else graph.vertex(around)
    part = part_of(graph, sample=sample, around=middle, seed=seed, on_map=on_map)
    view = _View(graph, part, on_map)
    if edges:
        view.number([str(arc) for arc in view.numbers().tolist()])
    if circuit:
        view.walk(_circuit_of(graph, circuit))
    if spanning_tree:
        view.span(wash)
    if components:
        view.frame()
    if in_degree is not None or out_degree is not None:
        view.mark_degrees(in_degree, out_degree)
    if distances is not None:
        solution = _solution(distances, graph)
        view.colour(*_values(solution, graph, route[0] if route and source is None else source))
        if route is not None:
            view.lead(_route(solution, graph, *route), wash)
    write_drawing(view.drawing(), path, seed)


def write_drawing(drawing: Drawing, path: str | os.PathLike[str], seed: int = 0) -> None:
    """Write a drawing in the format that the suffix of `path` names."""
    from pipelines.answers.graph_pictures.canvas import draw
    from pipelines.answers.graph_pictures.dot import write_dot

    if Path(path).suffix.lower() in (".dot", ".gv"):
        write_dot(drawing, path)
    else:
        draw(drawing, path, seed)


@dataclass
class _Walks:
    """Arcs in walking order, by their places in the store; walk k is ``arcs[offsets[k] : offsets[k + 1]]``."""

    arcs: np.ndarray
    offsets: np.ndarray
    directed: bool


class _View:
    """A part of a graph, to which one thing after the other is added."""

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
        coordinates = graph.coordinates() if on_map else None
        self.coordinates = None if coordinates is None else coordinates[part.vertices]
        self.about = [part.about] if part.about else []

    def numbers(self) -> np.ndarray:
        """The places in the store of the arcs that are drawn."""
        return self.part.arcs[self.chosen]

    def number(self, texts: list[str]) -> None:
        if len(self.part.vertices) > NAMED_NODES or len(self.chosen) > NUMBERED_ARCS:
            raise ValueError(
                f"{self.graph.path}: numbers are legible beside up to {NUMBERED_ARCS} arcs of {NAMED_NODES} vertices; "
                f"here are {len(self.chosen):,} of {len(self.part.vertices):,}: draw a part of it, or no numbers"
            )
        self.texts = texts

    def walk(self, walks: _Walks) -> None:
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
        self.about.append(f"{count:,} component{'' if count == 1 else 's'}")

    def mark_degrees(self, in_degree: int | None, out_degree: int | None) -> None:
        outgoing, incoming = (degrees[self.part.vertices] for degrees in out_and_in_degrees(self.graph))
        many_in = incoming >= in_degree if in_degree is not None else np.zeros(len(incoming), bool)
        many_out = outgoing >= out_degree if out_degree is not None else np.zeros(len(outgoing), bool)
        self.fills[many_in], self.fills[many_out] = YELLOW, LIGHT_GREEN
        self.fills[many_in & many_out] = BLUE
        if in_degree is not None:
            self.legend.append((YELLOW, f"at least {in_degree} arc{'s' * (in_degree != 1)} in"))
        if out_degree is not None:
            self.legend.append((LIGHT_GREEN, f"at least {out_degree} arc{'s' * (out_degree != 1)} out"))
        if in_degree is not None and out_degree is not None:
            self.legend.append((BLUE, "both"))

    def colour(self, values: np.ndarray, scale: str) -> None:
        self.values, self.scale = values[self.part.vertices], scale

    def lead(self, vertices: tuple[int, ...], wash: bool) -> None:
        """A route, by vertices of the graph, whose arcs are the lightest between them."""
        weights = self.graph.weights()[self.part.arcs]
        on = np.zeros(len(self.part.arcs), bool)
        for u, v in pairwise(vertices):
            row = np.arange(self.part.indptr[u], self.part.indptr[u + 1])
            row = row[self.heads[row] == v]
            on[row[np.argmin(weights[row])]] = True
        if not self.graph.directed:  # the arc of the edge that is drawn may be the other one
            pairs = {(int(self.tails[arc]), int(self.heads[arc])) for arc in np.flatnonzero(on)}
            on[:] = False
            for arc in self.chosen.tolist():
                u, v = int(self.tails[arc]), int(self.heads[arc])
                if pairs & {(u, v), (v, u)}:
                    on[arc] = True
                    pairs -= {(u, v), (v, u)}
        self._lift(on, wash)
        first, last = (self.graph.label(v) for v in (vertices[0], vertices[-1]))
        self.about.append(f"route from {first} to {last}, {len(vertices) - 1:,} arcs")

    def drawing(self) -> Drawing:
        chosen, graph = self.chosen, self.graph
        n, m = len(self.part.vertices), len(chosen)
        kind = "arc" if graph.directed or m == len(self.part.arcs) else "edge"
        counted = f"{n:,} {'vertex' if n == 1 else 'vertices'}, {m:,} {kind}{'' if m == 1 else 's'}"
        title = "; ".join([f"{Path(graph.path).name}: {counted}", *self.about])
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
            lifted=self.lifted[chosen],
        )
        return drawing if self.coordinates is None else _with_coordinates(drawing)

    def _lift(self, arcs: np.ndarray, wash: bool) -> None:
        self.colours[:] = PALE if wash else "#b8bcc2"
        self.widths[:] = 0.7 if wash else 1.0
        self.colours[arcs] = RED
        self.widths[arcs] = 2.0
        self.lifted = arcs


def _one_of_two(part: Part) -> np.ndarray:
    """Of the two arcs of each edge the lesser."""
    from gpuops import mates_of

    return np.flatnonzero(np.arange(len(part.arcs)) < mates_of(part.indptr, part.indices))


def _with_coordinates(drawing: Drawing) -> Drawing:
    """The drawing without nodes that have no place on the map; all of it, not as a map, where none has."""
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
    return Drawing(
        names=some(drawing.names, there),
        tails=place[drawing.tails[kept]],
        heads=place[drawing.heads[kept]],
        directed=drawing.directed,
        title=f"{drawing.title}; without {left_out:,} that have no coordinates",
        texts=some(drawing.texts, kept),
        colours=some(drawing.colours, kept),
        widths=some(drawing.widths, kept),
        fills=some(drawing.fills, there),
        frames=[(name, place[group[there[group]]]) for name, group in drawing.frames if there[group].any()],
        legend=drawing.legend,
        coordinates=drawing.coordinates[there],
        values=None if drawing.values is None else drawing.values[there],
        scale=drawing.scale,
        lifted=None if drawing.lifted is None else drawing.lifted[kept],
    )


def _refuse_clashes(
    circuit: bool,
    edges: bool,
    spanning_tree: bool,
    wash: bool,
    route: Any,
    distances: Any,
    source: Any,
    in_degree: int | None,
    out_degree: int | None,
    sample: int | None,
) -> None:
    degrees = in_degree is not None or out_degree is not None
    clashes = {
        "circuit and edges both number the arcs": circuit and edges,
        "circuit and spanning tree both colour the arcs": circuit and spanning_tree,
        "circuit and route both colour the arcs": circuit and route is not None,
        "spanning tree and route both colour the arcs": spanning_tree and route is not None,
        "distances and degrees both colour the vertices": distances is not None and degrees,
        "circuit and distances both colour the vertices": circuit and distances is not None,
        "circuit and degrees both colour the vertices": circuit and degrees,
    }
    for text, there in clashes.items():
        if there:
            raise ValueError(f"{text}; ask for one of the two")
    if circuit and sample is not None:
        raise ValueError(
            "a sample does not have all arcs of a circuit; leave out sample (--sample) or circuit (--circuit)"
        )
    if route is not None and sample is not None:
        raise ValueError("a sample may lack vertices of a route; leave out sample (--sample) or route (--route)")
    if wash and not spanning_tree and route is None:
        raise ValueError(
            "wash (--wash) leaves a spanning tree or a route; ask for one of them (--spanning-tree, --route)"
        )
    if (route is not None or source is not None) and distances is None:
        raise ValueError("a route, or distances from a vertex, come from a store; name it (--distances)")


def _circuit_of(graph: Graph, circuit: bool | Circuits | str | os.PathLike[str]) -> _Walks:
    if circuit is True:
        from gpuops import euler_circuit

        try:
            found = euler_circuit(graph.indptr(), graph.indices(), path=True, directed=graph.directed)
        except NotEulerianError as error:
            raise error.named(graph.label, graph.path) from None
        return _Walks(found.arcs, found.offsets, graph.directed)
    opened = circuit if isinstance(circuit, Circuits) else open_circuits(circuit)  # type: ignore[arg-type]
    if opened.graph_digest != graph.digest:
        raise StoreError(f"{opened.path}: holds the circuits of another graph than {graph.path}; name the right store")
    return _Walks(opened.arcs(), opened.offsets(), opened.directed)


def _solution(store: Distances | Paths | str | os.PathLike[str], graph: Graph) -> Distances | Paths:
    if not isinstance(store, Distances | Paths):
        store = open_paths(store) if store_schema(store) == "paths/1" else open_distances(store)
    if store.graph_digest != graph.digest:
        raise StoreError(f"{store.path}: holds the distances of another graph than {graph.path}; name the right store")
    return store


def _values(store: Distances | Paths, graph: Graph, source: int | str | None) -> tuple[np.ndarray, str]:
    """Distances as float64 (n), NaN where there is none, and what they are."""
    if isinstance(store, Paths):
        vertex = None if source is None else graph.vertex(source)
        row = store.distances(0 if vertex is None else store.row_of(vertex))
        begins = store.row_sources(0 if vertex is None else store.row_of(vertex))
    else:
        vertex = int(store.row_vertices()[0]) if source is None else graph.vertex(source)
        row, begins = store.row(vertex), np.array([vertex])
    values = np.where(row == outside_infinity(row.dtype), np.nan, row.astype(np.float64))
    unit = f" [{graph.weight_unit}]" if graph.weight_unit else ""
    origin = graph.label(int(begins[0])) if len(begins) == 1 else f"the nearest of {len(begins):,} sources"
    return values, f"distance from {origin}{unit}"


def _route(store: Distances | Paths, graph: Graph, source: int | str, target: int | str) -> tuple[int, ...]:
    if isinstance(store, Paths):
        return tree_path(store, source, target, graph=graph).vertices
    return shortest_path(store, source, target, graph=graph).vertices
