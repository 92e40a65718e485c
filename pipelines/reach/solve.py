"""Isochrones: the streets, or the areas, that are reached from some places within limits."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipelines.files.layers import check_layers, need_geopandas, suffix_of, write_layers
from pipelines.files.output_file import check_free
from pipelines.files.tables import vertex_names
from pipelines.od_tables.units import notes
from pipelines.pictures.graphs import picture_graph
from pipelines.places.networks import NetworkLike, open_network
from pipelines.places.points import Points, points_from
from pipelines.places.single import listed
from pipelines.reach.areas import AREAS, areas_of, default_width, plane_scale
from pipelines.reach.limits import Limits, parse_limits
from pipelines.reach.reached import Cut, Pieces, cut_lines, reached_pieces
from pipelines.routes.distances import open_rows
from pipelines.stores import Graph
from pipelines.stores.coordinates import are_geographic, coordinate_system
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.lines import points_along

if TYPE_CHECKING:
    import geopandas

FEW = 0.01  # share of the vertices; if fewer are reached, a short limit without a unit is questioned
KINDS = (*AREAS, "edges")
MAPS = (".html", ".svg", ".png", ".pdf")


class Reach:
    """A search from some places up to limits; `edges` and `areas` return its result."""

    def __init__(
        self,
        network: NetworkLike,
        sources: Any,
        within: str | float | Sequence[float | str],
        *,
        together: bool = False,
        snap_limit: float | str | None = None,
        crs: Any = None,
        graph: Graph | str | os.PathLike[str] | None = None,
    ):
        _, opened, snapping = open_network(network, graph, crs)
        self.limits: Limits = parse_limits(within, opened.weight_unit)
        places = opened.coordinates()
        if places is None:
            raise ValueError(
                f"{opened.path} has no coordinates, so that nothing can be drawn of it; import it with coordinates "
                "(--coordinates)"
            )
        if opened.weight_min < 0:
            raise ValueError(f"{opened.path} has negative weights; isochrones need weights of 0 or more")
        self.graph, self.places, self.in_degrees = opened, places, are_geographic(opened, places)
        self.points: Points = points_from(listed(sources), opened, "source", snap_limit=snap_limit, snapping=snapping)
        indptr, self.heads, self.weights = opened.indptr(), opened.indices(), opened.weights()
        self.tails = np.repeat(np.arange(opened.n), np.diff(indptr))
        there = np.isfinite(places).all(axis=1)
        self._drawn = there[self.tails] & there[self.heads]
        self._junctions = opened.junctions()
        if self._junctions is not None:
            self._drawn &= ~self._junctions.are_turns(self.tails, self.heads)
        rows = open_rows(network if isinstance(network, HierarchyStore) else opened, graph=None)[0]
        self.pieces, self.cuts, self._reached = [], [], 0  # most vertices that are reached from a source
        for vertices in [self.points.vertices] if together else self.points.vertices[:, None]:
            pieces = self._pieces(rows, vertices)
            self.pieces.append(pieces)
            self.cuts.append(self._cut(pieces))
        self.note = self.limits.hint if self._reached < FEW * opened.n else None
        self.names = [f"the nearest of {len(self.points.ids)}"] if together else self.points.ids.to_pylist()
        self.moved = None if self.points.snapped is None or together else self.points.snapped

    def _pieces(self, rows: Any, vertices: np.ndarray) -> Pieces:
        """Return the pieces that are reached from the nearest of some vertices."""
        leaving = np.full(self.graph.n, np.inf)
        for vertex in vertices.tolist():
            row = rows.row(vertex)
            far = np.isinf(row) if row.dtype.kind == "f" else row == np.iinfo(row.dtype).max
            leaving = np.minimum(leaving, np.where(far, np.inf, row.astype(np.float64)))
        closed = ~self.graph.through()
        closed[vertices] = False
        self._reached = max(self._reached, int((leaving <= self.limits.in_network[-1]).sum()))
        leaving[closed] = np.inf
        return reached_pieces(
            self.tails, self.heads, self.weights, leaving, self.limits.in_network, not self.graph.directed
        )

    def _cut(self, pieces: Pieces) -> Cut:
        drawn = self._drawn[pieces.arcs]
        arcs, lines = np.unique(pieces.arcs[drawn], return_inverse=True)
        offsets, points = points_along(self.graph.lines(), self.places, arcs, self.tails[arcs], self.heads[arcs])
        scale = plane_scale(points, self.in_degrees)
        return cut_lines(offsets, points, scale, lines, pieces.first[drawn], pieces.last[drawn])

    def edges(self) -> geopandas.GeoDataFrame:
        """Return a row for each reached piece of an arc."""
        import geopandas
        import pandas
        import shapely

        factor = self.limits.given[-1] / self.limits.in_network[-1]
        names = np.array(vertex_names(self.graph).to_pylist(), object)
        if self._junctions is not None:
            names = names[self._junctions.of(np.arange(self.graph.n))]
        frames = []
        for name, pieces, cut in zip(self.names, self.pieces, self.cuts, strict=True):
            drawn = self._drawn[pieces.arcs]
            arcs = pieces.arcs[drawn]
            columns = {
                "source": np.full(len(arcs), name, object),
                "limit": self.limits.given[pieces.band[drawn]],
                "tail": names[self.tails[arcs]],
                "head": names[self.heads[arcs]],
                "begin": pieces.begin[drawn] * factor,
                "end": pieces.end[drawn] * factor,
            }
            shapes = shapely.linestrings(cut.points, indices=np.repeat(np.arange(len(arcs)), np.diff(cut.offsets)))
            frames.append(geopandas.GeoDataFrame(columns, geometry=shapes, crs=self.crs))
        frame = frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
        return self._noted(frame)

    def areas(self, kind: str, concavity: float, width: float | None) -> geopandas.GeoDataFrame:
        """Return a row for each source and limit: the area within the limit, the largest first."""
        import geopandas

        columns: dict[str, list[Any]] = {"source": [], "limit": []}
        moved, shapes = [], []
        for i, (name, pieces, cut) in enumerate(zip(self.names, self.pieces, self.cuts, strict=True)):
            band = pieces.band[self._drawn[pieces.arcs]]
            scale = plane_scale(cut.points, self.in_degrees)
            around = default_width(cut.points, self.in_degrees) if width is None else width
            found = areas_of(cut, band, len(self.limits.given), scale, kind, concavity, around)
            for limit, area in reversed([*zip(self.limits.given.tolist(), found, strict=True)]):
                columns["source"].append(name)
                columns["limit"].append(limit)
                moved.append(0.0 if self.moved is None else float(self.moved[i]))
                shapes.append(area)
        if self.moved is not None:
            columns["moved"] = moved
        return self._noted(geopandas.GeoDataFrame(columns, geometry=shapes, crs=self.crs))

    def marks(self) -> pa.Table:
        """Return the vertices of the sources, with the labels of a map: their names, or "source" for an unnamed one."""
        ids = self.points.ids.to_pylist()
        unnamed = self.points.numbered and ids in (["0"], ["1"])
        vertices = pa.array(self.graph.names(self.points.vertices))
        return pa.table({"vertex": vertices, "id": ["source"] if unnamed else ids})

    @property
    def crs(self) -> str | None:
        return coordinate_system(self.graph, self.places) or None

    def _noted(self, frame: Any) -> Any:
        frame.attrs = notes(self.limits.unit, self.graph)
        return frame


def isochrones(
    network: NetworkLike,
    sources: Any,
    within: str | float | Sequence[float | str],
    *,
    kind: str = "concave",
    together: bool = False,
    concavity: float = 0.3,
    width: float | None = None,
    snap_limit: float | str | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> geopandas.GeoDataFrame:
    """Return the isochrones of some places: the areas, or the pieces of streets, that are reached within limits.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store, with coordinates
    sources : (lon, lat), or name of a vertex, or list, array, data frame or file as for `tilepath.od`
        Places are moved to the nearest vertex of the largest strongly connected component.
    within : float, list of floats, or text
        Limits in the unit of the network, or in another unit of time or length, as "5,10,15min".
    kind : {"concave", "convex", "buffers", "edges"}
        Hulls of the reached streets, buffers around them, or the streets.
    together : bool
        Return one isochrone around all sources, from the nearest source, not one isochrone for each source.
    concavity : float
        The shape of concave hulls: from 0, which follows the streets most closely, to 1, the convex hull.
    width : float, optional
        Distance of the edge of a buffer from its street: by default 50 m, or a hundredth of the diagonal of the reached
        streets if coordinates are not longitudes and latitudes.
    snap_limit, crs, graph : as for `pipelines.od`

    Returns
    -------
    geopandas.GeoDataFrame
        Areas: the columns source, limit, moved (how far a place was moved) and geometry, a row for each source and
        limit, the largest limit first. Of convex hulls and of buffers, a smaller area lies in the larger one. The hull
        of streets without an area, such as a single straight street, is empty.

        Edges: source, limit, tail, head, begin and end (when the two ends are reached) and geometry, a row for each
        piece of an arc between two limits, which is cut exactly where a limit ends. In a directed graph each arc is
        walked separately; in an undirected graph the arcs of an edge end where they meet. Turns take time, but are not
        drawn.

        ``frame.attrs["unit"]`` is the unit of the limits, if it is known.

    Raises
    ------
    ValueError
        An option or a place is wrong; the network has no coordinates, or negative weights.
    StoreError
        A vertex does not exist.
    ImportError
        GeoPandas is missing.

    Warns
    -----
    UserWarning
        Places are far from the network, or have a nearer vertex outside its largest component; or limits without a unit
        are less than a minute, and hardly anything is reached.

    Examples
    --------
    >>> areas = tilepath.isochrones(hierarchy, (0, 0), [200, 400])
    >>> list(areas.columns)
    ['source', 'limit', 'moved', 'geometry']
    """
    check_kind(kind, concavity, width)
    need_geopandas("isochrones")
    reach = Reach(network, sources, within, together=together, snap_limit=snap_limit, crs=crs, graph=graph)
    for warning in (reach.points.warning, reach.note):
        if warning:
            warnings.warn(warning, stacklevel=2)
    return reach.edges() if kind == "edges" else reach.areas(kind, concavity, width)


def write_isochrones(
    reach: Reach,
    out: str | os.PathLike[str],
    *,
    kind: str = "concave",
    concavity: float = 0.3,
    width: float | None = None,
    title: str | None = None,
    background: str | None = "OpenStreetMap",
    overwrite: bool = False,
) -> int:
    """Write isochrones to a file of layers or to a map; a GeoPackage has areas and edges. Returns the number of rows.

    Parameters
    ----------
    reach : Reach
    out : path of the file: .gpkg, .geojson, .geoparquet or .parquet; or a map of the areas over the network, with rings
        around the sources: .html, .svg, .png or .pdf
    kind, concavity, width : as for `isochrones`
    title, background : of a map, as for `pipelines.picture_graph`
    overwrite : replace `out` if it exists

    Raises
    ------
    ValueError, FileExistsError, ImportError
        As `pipelines.files.layers.write_layers`, or `pipelines.picture_graph`; or a map shall have edges.
    """
    check_kind(kind, concavity, width)
    suffix = check_isochrones(out, kind, overwrite)
    if suffix in MAPS:
        areas, marks = reach.areas(kind, concavity, width), reach.marks()
        options: dict[str, Any] = {"title": title, "background": background, "overwrite": overwrite}
        picture_graph(reach.graph, out, areas=areas, marks=marks, **options)
        return len(areas)
    layers = {} if kind == "edges" else {"areas": reach.areas(kind, concavity, width)}
    if kind == "edges" or suffix == ".gpkg":
        layers["edges"] = reach.edges()
    write_layers(layers, out, overwrite)
    return len(next(iter(layers.values())))


def check_isochrones(out: str | os.PathLike[str], kind: str, overwrite: bool) -> str:
    """Return the suffix of a file of isochrones; raises the errors of `write_isochrones` before long work."""
    suffix = suffix_of(out)
    if suffix not in MAPS:
        return check_layers(out, overwrite)
    check_free(out, overwrite)
    if kind == "edges":
        raise ValueError(f"{out}: a map shows areas, not edges; choose another kind (kind, --kind), or write a .gpkg")
    return suffix


def check_kind(kind: str, concavity: float, width: float | None) -> None:
    """Raise ValueError if an option is wrong."""
    if kind not in KINDS:
        raise ValueError(f"kind (--kind) is {kind!r}; choose one of {', '.join(KINDS)}")
    if not 0 <= concavity <= 1:
        raise ValueError(f"concavity (--concavity) is {concavity:g}; give a number from 0 to 1")
    if width is not None and not 0 < width < np.inf:
        raise ValueError(f"width (--width) is {width:g}; give a distance above 0")
