"""The road network of a graph with turns, in memory: its junctions are ordinary vertices, and it has no turns.

Pictures and layers of geometries show it, and roads are named by its vertices.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.lines import Lines
from pipelines.stores.road_classes import RoadClasses


@dataclass(frozen=True, repr=False, eq=False)
class RoadNetwork(Graph):
    """The road network of a graph with turns; made by `road_network`.

    Attributes
    ----------
    whole : Graph
        The graph with turns.
    arcs : (m,) int64
        The number of each arc in the graph with turns.
    """

    whole: Graph
    arcs: np.ndarray
    arrays: tuple[np.ndarray, np.ndarray]

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[0][start : (self.n if stop is None else stop) + 1].copy()

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[1][start:stop].copy()

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.whole.weights()[self.arcs[start:stop]]

    def labels(self) -> np.ndarray | None:
        labels = self.whole.labels()
        return None if labels is None else labels[: self.n]

    def coordinates(self) -> np.ndarray | None:
        coordinates = self.whole.coordinates()
        return None if coordinates is None else coordinates[: self.n]

    def through(self) -> np.ndarray:
        junctions = self.whole.junctions()
        assert junctions is not None
        through = self.whole.through()
        through[junctions.of(np.flatnonzero(junctions.codes < 0))] = True
        return through[: self.n]

    def lines(self) -> Lines | None:
        lines = self.whole.lines()
        return None if lines is None else lines.taken(self.arcs)

    def classes(self) -> RoadClasses | None:
        classes = self.whole.classes()
        return None if classes is None else classes.taken(self.arcs)


def road_network(graph: Graph) -> Graph:
    """Return the road network of a graph with turns, whose arcs have the order that they had before; or the graph."""
    junctions = graph.junctions()
    if junctions is None:
        return graph
    arrays, arcs = junctions.road_rows(graph.indptr(), graph.indices())
    weights = graph.weights()[arcs]
    parts: dict[str, Any] = {each.name: getattr(graph, each.name) for each in fields(Graph)}
    parts |= {"n": junctions.n, "m": len(arcs), "optional": graph.optional - {"junctions"}, "sorted_rows": True}
    parts |= {"weight_min": float(weights.min(initial=0)), "weight_max": float(weights.max(initial=0))}
    parts |= {"digest": f"roads of {graph.digest}", "choices": (), "weight_name": "", "weight_array": ""}
    return RoadNetwork(**parts, whole=graph, arcs=arcs, arrays=arrays)
