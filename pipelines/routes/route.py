"""A route: a shortest path with its distance, its names and its geometry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.exports.layers import arc_lengths, arcs_frame, placed
from pipelines.files.layers import to_degrees
from pipelines.routes.along import arcs_along
from pipelines.stores import Graph
from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.road_network import road_network
from pipelines.stores.schema import StoreError, counted, number

if TYPE_CHECKING:
    import geopandas


@dataclass(frozen=True, repr=False)
class Route:
    """A shortest path.

    `len` is the number of arcs, and libraries that read ``__geo_interface__`` (folium, shapely) take a route as a line.

    Attributes
    ----------
    graph : Graph
    vertices : tuple of int
        Positions, from source to target; one vertex if source and target are the same.
    distance : int or float
        The distance as stored or computed, in `unit`.
    """

    graph: Graph = field(compare=False)
    vertices: tuple[int, ...]
    distance: Any

    def __len__(self) -> int:
        return len(self.vertices) - 1

    def __bool__(self) -> bool:
        return True  # also without arcs

    def __repr__(self) -> str:
        source, target = self.graph.names([self.vertices[0], self.vertices[-1]])
        unit = f" {self.unit}" if self.unit else ""
        return f"<route from {source} to {target}: {number(self.distance)}{unit} over {counted(len(self), 'arc')}>"

    @property
    def unit(self) -> str:
        """The unit of the distance, "" if it is not known."""
        return self.graph.weight_unit

    @property
    def names(self) -> list[str]:
        """The names of the vertices."""
        return self.graph.names(self.vertices)

    @property
    def length(self) -> float | None:
        """The length along the lines of the arcs in metres; None without coordinates in a known coordinate system."""
        places = self.graph.coordinates()
        if places is None or not coordinate_system(self.graph, places):
            return None
        return float(arc_lengths(*self._arcs()).sum())

    def _arcs(self) -> tuple[Graph, np.ndarray]:
        """Return the road network, and the positions of the arcs of the route in it."""
        roads = road_network(self.graph)
        indptr, indices, weights = roads.rows()
        arcs = arcs_along(indptr, indices, weights, np.array([len(self)]), np.array(self.vertices))
        if not roads.sorted_rows:
            arcs = np.lexsort((roads.indices(), np.repeat(np.arange(roads.n), np.diff(indptr))))[arcs]
        return roads, arcs

    def to_geodataframe(self) -> geopandas.GeoDataFrame:
        """Return a row for each arc: source, target, weight, other weights, highway, length and geometry.

        The geometry is the line of the arc, or straight if the arc has no line. Of parallel arcs, the lightest is on
        the path. In a graph with turns, weights are without the costs of turns.

        Raises
        ------
        pipelines.stores.StoreError
            The graph has no coordinates.
        ImportError
            GeoPandas is missing.
        """
        return arcs_frame(*self._arcs())

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        """The route as a feature of GeoJSON: a line in longitudes and latitudes."""
        frame, places = self.to_geodataframe(), placed(self.graph)[list(self.vertices)]
        crs = coordinate_system(self.graph, places)
        if not crs:
            raise StoreError(
                f"{self.graph.path}: GeoJSON has longitudes and latitudes, but the coordinates are in no known system; "
                "name it when the network is imported (crs, --crs)"
            )
        lines = [np.array(line.coords)[1:] for line in frame.geometry]
        points = to_degrees(np.concatenate([places[:1], *(lines or [places])]), crs)
        about = {"source": self.names[0], "target": self.names[-1], "distance": self.distance, "unit": self.unit}
        line = {"type": "LineString", "coordinates": points.tolist()}
        return {"type": "Feature", "properties": about, "geometry": line}
