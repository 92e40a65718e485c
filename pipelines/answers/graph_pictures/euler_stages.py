"""Pictures of how an Euler circuit is found (`gpuops.euler`): what each stage makes, from the graph to one circle."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from gpuops.errors import NotEulerianError
from pipelines.answers.graph_pictures.drawing import NAMED_NODES, NUMBERED_ARCS, RED, Drawing
from pipelines.answers.graph_pictures.part import MOST_VERTICES
from pipelines.answers.graph_pictures.picture import picture_graph, write_drawing
from pipelines.answers.structure import out_and_in_degrees
from pipelines.stores import Graph, open_graph

STAGES = ("1-graph", "2-partitions", "3-circuit-graph", "4-spanning-tree", "5-full-circle")
COLOURS = ("#aecbfa", "#fde293", "#a8dab5", "#f6aea9", "#d7aefb", "#fdcfe8", "#a1e4f2", "#e6c9a8")


def picture_partitions(graph: Graph | str | os.PathLike[str], path: str | os.PathLike[str], *, seed: int = 0) -> None:
    """Draw the cycles into which the pairing of arcs falls: every node is an arc, every cycle a circle.

    Raises
    ------
    gpuops.NotEulerianError
        Some vertex has more arcs in than out, or fewer.
    """
    stages = _Stages(graph)
    write_drawing(
        stages.circles(stages.predecessors, f"{stages.count} partition{'s' * (stages.count != 1)}"), path, seed
    )


def picture_euler_stages(
    graph: Graph | str | os.PathLike[str], folder: str | os.PathLike[str], *, suffix: str = ".svg", seed: int = 0
) -> list[Path]:
    """Draw the stages of finding an Euler circuit: five pictures in a folder, which is made.

    1. the graph, its arcs numbered; 2. the partitions, cycles of the pairing; 3. the circuit graph, whose edges are
    vertices that two partitions have in common; 4. its spanning tree; 5. the circle after the swaps.

    Returns
    -------
    list of Path
        The pictures in this order.

    Raises
    ------
    gpuops.NotEulerianError
        Some vertex has more arcs in than out, or fewer.
    ValueError
        The graph is too large, or `folder` is called like a picture.
    """
    if Path(folder).suffix.lower() in (".svg", ".png", ".pdf", ".dot"):
        raise ValueError(f"{folder}: the stages are several pictures; name a folder for them")
    stages = _Stages(graph)
    if stages.graph.n > NAMED_NODES or stages.graph.m > NUMBERED_ARCS:
        raise ValueError(
            f"{stages.graph.path}: the stages number every arc, which is legible up to {NUMBERED_ARCS} arcs of"
            f" {NAMED_NODES} vertices; here are {stages.graph.m:,} of {stages.graph.n:,}; draw a smaller graph"
        )
    paths = [Path(folder) / f"{name}{suffix}" for name in STAGES]
    Path(folder).mkdir(parents=True, exist_ok=True)
    picture_graph(stages.graph, paths[0], edges=True, seed=seed)
    write_drawing(
        stages.circles(stages.predecessors, f"{stages.count} partition{'s' * (stages.count != 1)}"), paths[1], seed
    )
    write_drawing(stages.circuit_graph(tree=False), paths[2], seed)
    write_drawing(stages.circuit_graph(tree=True), paths[3], seed)
    write_drawing(stages.circles(stages.joined, "after the swaps"), paths[4], seed)
    return paths


class _Stages:
    """What the stages find in a graph."""

    def __init__(self, graph: Graph | str | os.PathLike[str]):
        from gpuops import circuit_graph, cycle_labels, join_circuits, pair_arcs, spanning_links

        self.graph = graph if isinstance(graph, Graph) else open_graph(graph)
        if self.graph.m > MOST_VERTICES:
            raise ValueError(
                f"{self.graph.path}: has {self.graph.m:,} arcs; a picture of partitions shows up to {MOST_VERTICES:,}"
            )
        self.indptr = self.graph.indptr()
        outgoing, incoming = out_and_in_degrees(self.graph)
        for v in np.flatnonzero(outgoing != incoming)[:1].tolist():
            raise NotEulerianError(
                f"arcs are paired where as many enter every vertex as leave it; {{}} has {incoming[v]} in and "
                f"{outgoing[v]} out",
                (v,),
            ).named(self.graph.label, self.graph.path)
        self.predecessors = pair_arcs(self.indptr, self.graph.indices())
        labels = cycle_labels(self.predecessors)
        self.links = circuit_graph(self.indptr, labels)
        self.forest = spanning_links(self.indptr, labels)
        self.joined = join_circuits(self.predecessors, self.forest.slots)
        self.names, self.partition = np.unique(labels, return_inverse=True)
        self.count = len(self.names)

    def circles(self, predecessors: np.ndarray, what: str) -> Drawing:
        """Arcs as nodes, each after its predecessor."""
        from gpuops import walk_circuits

        order, offsets = walk_circuits(predecessors)
        circles = [order[begin:end] for begin, end in pairwise(offsets)]
        arcs = np.arange(len(predecessors))
        return Drawing(
            names=[str(arc) for arc in arcs],
            tails=predecessors.astype(np.int64),
            heads=arcs,
            title=f"{Path(self.graph.path).name}: the arcs, each after its predecessor; {what}",
            fills=[self._colour(k) for k in self.partition.tolist()],
            legend=self._legend(),
            circles=circles,
        )

    def circuit_graph(self, tree: bool) -> Drawing:
        """Partitions as nodes, joined by the vertices that they have in common."""
        slots = self.links.slots
        vertices = np.searchsorted(self.indptr, slots, side="right") - 1
        tails, heads = (np.searchsorted(self.names, ends) for ends in (self.links.tails, self.links.heads))
        chosen = np.isin(slots, self.forest.slots) if tree else np.zeros(len(slots), bool)
        what = "its spanning tree in red" if tree else "an edge for a vertex that two partitions have in common"
        return Drawing(
            names=[str(k) for k in range(self.count)],
            tails=tails,
            heads=heads,
            directed=False,
            title=f"{Path(self.graph.path).name}: the circuit graph; {what}",
            texts=self.graph.names(vertices.tolist()),
            colours=[RED if red else "#9aa0a6" for red in chosen.tolist()],
            widths=[2.0 if red else 1.0 for red in chosen.tolist()],
            fills=[self._colour(k) for k in range(self.count)],
            legend=self._legend(),
            lifted=chosen,
        )

    def _colour(self, k: int) -> str:
        return COLOURS[k % len(COLOURS)]

    def _legend(self) -> list[tuple[str, str]]:
        if self.count > len(COLOURS):
            return []
        sizes = np.bincount(self.partition).tolist()
        return [(self._colour(k), f"{k}: {size} arc{'s' * (size != 1)}") for k, size in enumerate(sizes)]
