"""The roads along paths, and the lengths of paths: along the lines of the roads, on the ellipsoid or in a plane."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pipelines.exports.layers import arc_lengths
from pipelines.routes.along import arcs_along, sums_along
from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.graph import Graph
from pipelines.stores.road_network import road_network


class RoadsAlong:
    """Finds the roads along paths of a graph, and measures each road once.

    Attributes
    ----------
    roads : Graph
        The graph, or the road network of a graph with turns. Paths are given by its vertices.
    """

    def __init__(self, graph: Graph):
        self.roads = road_network(graph)

    def arcs(self, hops: np.ndarray, vertices: np.ndarray) -> np.ndarray:
        """Return the position in the store of each arc of some paths, given as `arcs_along` takes them."""
        arcs = arcs_along(*self._rows, hops, vertices)
        return arcs if self.roads.sorted_rows else self._stored[arcs]

    @cached_property
    def unit(self) -> str | None:
        """The unit of lengths: "m", or "" if the coordinate system is not known; None without coordinates."""
        places = self.roads.coordinates()
        return None if places is None else "m" if coordinate_system(self.roads, places) else ""

    def lengths(self, hops: np.ndarray, vertices: np.ndarray) -> np.ndarray:
        """Return the length of each path, float64; 0 where there is no path (`hops` is negative)."""
        arcs = self.arcs(hops, vertices)
        new = np.unique(arcs)
        new = new[np.isnan(self._lengths[new])]
        if len(new):
            self._lengths[new] = arc_lengths(self.roads, new)
        return sums_along(arcs, hops, self._lengths)

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.roads.rows()

    @cached_property
    def _stored(self) -> np.ndarray:
        return self.roads.stored_positions()

    @cached_property
    def _lengths(self) -> np.ndarray:
        """The lengths of the arcs, NaN for those that no path had yet."""
        return np.full(self.roads.m, np.nan)
