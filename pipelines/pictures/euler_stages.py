"""Pictures of the stages of finding an Euler circuit (`gpuops.euler`), from the graph to one circle of arcs."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuops.errors import NotEulerianError
from pipelines.analysis.structure import out_and_in_degrees
from pipelines.files.output_file import check_free
from pipelines.pictures.drawing import NAMED_NODES, NUMBERED_ARCS, RED, Drawing
from pipelines.pictures.graphs import picture_graph, write_drawing
from pipelines.pictures.part import MOST_VERTICES
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.schema import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAGES = ("1-graph", "2-partitions", "3-circuit-graph", "4-spanning-tree", "5-full-circle")
COLOURS = ("#aecbfa", "#fde293", "#a8dab5", "#f6aea9", "#d7aefb", "#fdcfe8", "#a1e4f2", "#e6c9a8")


def picture_partitions(
    graph: Graph | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    overwrite: bool = False,
) -> Figure | None:
    """Draw the cycles that the pairing of arcs makes: every node is an arc, every circle a cycle.

    Raises
    ------
    gpuops.NotEulerianError
        A vertex has unequal numbers of arcs in and out.

    Examples
    --------
    >>> figure = tilepath.picture_partitions(ring)
    """
    stages = _Stages(graph)
    return write_drawing(stages.partitions(), path, seed, overwrite=overwrite)


def picture_euler_stages(
    graph: Graph | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    suffix: str = ".svg",
    seed: int = 0,
    overwrite: bool = False,
) -> list[Path]:
    """Draw the stages of finding an Euler circuit as five pictures in a folder, which is created if it is missing.

    The pictures show: 1. the graph, with numbered arcs; 2. the partitions, which are the cycles of the pairing; 3. the
    circuit graph, whose edges are vertices that two partitions have in common; 4. a spanning tree of the circuit graph;
    5. the circle of all arcs after the swaps.

    Returns
    -------
    list of Path
        The pictures in this order.

    Raises
    ------
    gpuops.NotEulerianError
        A vertex has unequal numbers of arcs in and out.
    ValueError
        The graph is too large, or `folder` has the suffix of a picture.
    FileExistsError
        A picture exists, and `overwrite` is False.

    Examples
    --------
    >>> len(tilepath.picture_euler_stages(ring, "stages"))
    5
    """
    if Path(folder).suffix.lower() in (".svg", ".png", ".pdf", ".dot"):
        raise ValueError(f"{folder}: the stages are several pictures; name a folder for them")
    stages = _Stages(graph)
    if stages.graph.n > NAMED_NODES or stages.graph.m > NUMBERED_ARCS:
        raise ValueError(
            f"{stages.graph.path}: the stages number every arc, which is legible up to {NUMBERED_ARCS} arcs and"
            f" {NAMED_NODES} vertices; this graph has {stages.graph.m:,} and {stages.graph.n:,}; draw a smaller graph"
        )
    paths = [Path(folder) / f"{name}{suffix}" for name in STAGES]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path in paths:
        check_free(path, overwrite)
    picture_graph(stages.graph, paths[0], edges=True, seed=seed, overwrite=overwrite)
    drawings = (
        stages.partitions(),
        stages.circuit_graph(tree=False),
        stages.circuit_graph(tree=True),
        stages.circles(stages.joined, "after the swaps"),
    )
    for drawing, path in zip(drawings, paths[1:], strict=True):
        write_drawing(drawing, path, seed, overwrite=overwrite)
    return paths


class _Stages:
    """The results of the stages for a graph."""

    def __init__(self, graph: Graph | str | os.PathLike[str]):
        from gpuops import circuit_graph, cycle_labels, join_circuits, pair_arcs, spanning_links

        self.graph = open_graph(graph)
        if self.graph.m > MOST_VERTICES:
            raise ValueError(
                f"{self.graph.path}: has {self.graph.m:,} arcs; a picture of partitions shows up to {MOST_VERTICES:,}"
            )
        self.indptr = self.graph.indptr()
        outgoing, incoming = out_and_in_degrees(self.graph)
        for v in np.flatnonzero(outgoing != incoming)[:1].tolist():
            raise NotEulerianError(
                f"arcs can be paired if every vertex has equal numbers in and out; {{}} has {incoming[v]} in and "
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

    def partitions(self) -> Drawing:
        """Return a drawing of the cycles of the pairing."""
        return self.circles(self.predecessors, counted(self.count, "partition"))

    def circles(self, predecessors: np.ndarray, what: str) -> Drawing:
        """Return a drawing with arcs as nodes, in circles where each arc follows its predecessor."""
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
            attribution=self.graph.attribution,
            circles=circles,
        )

    def circuit_graph(self, tree: bool) -> Drawing:
        """Return a drawing with partitions as nodes, joined by the vertices that they have in common."""
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
            attribution=self.graph.attribution,
            lifted=chosen,
        )

    def _colour(self, k: int) -> str:
        return COLOURS[k % len(COLOURS)]

    def _legend(self) -> list[tuple[str, str]]:
        if self.count > len(COLOURS):
            return []
        sizes = np.bincount(self.partition).tolist()
        return [(self._colour(k), f"{k}: {counted(size, 'arc')}") for k, size in enumerate(sizes)]
