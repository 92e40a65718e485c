"""Graphs made of arcs of a stored graph, in memory; and the road network of a graph with turns, which is one of them.

The junctions of a road network are ordinary vertices, and it has no turns. Pictures and layers of geometries show it,
and roads are named by its vertices.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.lines import Lines
from pipelines.stores.road_classes import RoadClasses


@dataclass(frozen=True, repr=False, eq=False)
class GraphInMemory(Graph):
    """Some arcs of another graph, sorted by head within a row; names and coordinates are those of the other graph.

    Attributes
    ----------
    origin : the other graph
    arcs : (m,) int64
        The position of each arc in the store of `origin`.
    arrays : indptr, indices and weights
    """

    origin: Graph
    arcs: np.ndarray
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[0][start : (self.n if stop is None else stop) + 1].copy()

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[1][start:stop].copy()

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[2][start:stop].copy()

    def lines(self) -> Lines | None:
        lines = self.origin.lines()
        return None if lines is None else lines.taken(self.arcs)

    def classes(self) -> RoadClasses | None:
        classes = self.origin.classes()
        return None if classes is None else classes.taken(self.arcs)


def with_arrays(graph: Graph, arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Return the fields of a `GraphInMemory` with the fields of `graph`, but with these arrays."""
    weights = arrays[2]
    low, high = (float(weights.min()), float(weights.max())) if len(weights) else (np.inf, -np.inf)
    parts = {each.name: getattr(graph, each.name) for each in fields(Graph)}
    parts |= {"m": len(arrays[1]), "weight_dtype": weights.dtype, "weight_min": low, "weight_max": high}
    return parts | {"arrays": arrays, "sorted_rows": True}


@dataclass(frozen=True, repr=False, eq=False)
class RoadNetwork(GraphInMemory):
    """The road network of a graph with turns, its `origin`; made by `road_network`."""

    def labels(self) -> np.ndarray | None:
        labels = self.origin.labels()
        return None if labels is None else labels[: self.n]

    def coordinates(self) -> np.ndarray | None:
        coordinates = self.origin.coordinates()
        return None if coordinates is None else coordinates[: self.n]

    def through(self) -> np.ndarray:
        junctions = self.origin.junctions()
        assert junctions is not None
        through = self.origin.through()
        through[junctions.of(np.flatnonzero(junctions.codes < 0))] = True
        return through[: self.n]


def road_network(graph: Graph) -> Graph:
    """Return the road network of a graph with turns, whose arcs have the order that they had before; or the graph."""
    junctions = graph.junctions()
    if junctions is None:
        return graph
    rows, arcs = junctions.road_rows(graph.indptr(), graph.indices())
    parts = with_arrays(graph, (*rows, graph.weights()[arcs]))
    parts |= {"n": junctions.n, "optional": graph.optional - {"junctions"}, "digest": f"roads of {graph.digest}"}
    return RoadNetwork(**parts | {"choices": (), "weight_name": "", "weight_array": ""}, origin=graph, arcs=arcs)
