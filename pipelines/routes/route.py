"""A route: a shortest path with its distance, its names and its geometry."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.exports.layers import arcs_frame, placed
from pipelines.files.coordinate_systems import to_degrees
from pipelines.routes.road_lengths import RoadsAlong
from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted, number

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
        return self.graph.unit

    @property
    def names(self) -> list[str]:
        """The names of the vertices."""
        return self.graph.names(self.vertices)

    @cached_property
    def length(self) -> float | None:
        """The length along the lines of the arcs in metres; None without coordinates in a known coordinate system.

        The first access reads the rows of the graph. For many routes, `tilepath.od` with `paths` reads them once.
        """
        roads = RoadsAlong(self.graph)
        return float(roads.lengths(*self._path())[0]) if roads.unit else None

    def _path(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([len(self)]), np.array(self.vertices)

    def to_geodataframe(self) -> geopandas.GeoDataFrame:
        """Return a row for each arc: source, target, weight, other weights, highway, length and geometry.

        The geometry is the line of the arc, or straight if the arc has no line. Of parallel arcs, the lightest is on
        the path. In a graph with turns, weights are without the costs of turns.

        Raises
        ------
        StoreError
            The graph has no coordinates.
        ImportError
            GeoPandas is missing.
        """
        roads = RoadsAlong(self.graph)
        return arcs_frame(roads.roads, roads.arcs(*self._path()))

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
