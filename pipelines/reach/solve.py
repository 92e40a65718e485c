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
from pipelines.pictures.graphs import picture_graph, refuse_background
from pipelines.places.networks import NetworkLike, open_network
from pipelines.places.points import NONE, Points, points_from
from pipelines.places.single import listed
from pipelines.reach.areas import AREAS, GAPS, HULLS, areas_of, default_width, plane_scale, united
from pipelines.reach.limits import Limits, parse_limits
from pipelines.reach.reached import Cut, Pieces, cut_lines, reached_pieces
from pipelines.routes.distances import Rows, SearchedDistances, open_rows
from pipelines.stores.coordinates import are_geographic, coordinate_system
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.lines import points_along

if TYPE_CHECKING:
    import geopandas

FEW = 0.01  # share of the vertices; if fewer are reached, a short limit without a unit is questioned
KINDS = (*AREAS, "edges")
MAPS = (".html", ".svg", ".png", ".pdf")
CONCAVITY = 0.3  # usual shape of a concave hull


class Reach:
    """A search from some places up to limits; `edges` and `areas` return its result."""

    def __init__(
        self,
        network: NetworkLike,
        sources: Any,
        within: str | float | Sequence[float | str],
        *,
        reverse: bool = False,
        together: bool = False,
        snap_limit: float | str | None = None,
        crs: Any = None,
        graph: Graph | str | os.PathLike[str] | None = None,
    ):
        _, opened, snapping = open_network(network, graph, crs, snap_limit)
        self.limits: Limits = parse_limits(within, opened.unit)
        places = opened.coordinates()
        if places is None:
            raise ValueError(
                f"{opened.path} has no coordinates, so that nothing can be drawn of it; import it with coordinates "
                "(--coordinates)"
            )
        if opened.weight_min < 0:
            raise ValueError(f"{opened.path} has negative weights; isochrones need weights of 0 or more")
        self.graph, self.places, self.in_degrees = opened, places, are_geographic(opened, places)
        self.points: Points = points_from(listed(sources), opened, "source", snapping=snapping)
        indptr, self.heads, self.weights = opened.indptr(), opened.indices(), opened.weights()
        self.tails = np.repeat(np.arange(opened.n), np.diff(indptr))
        there = np.isfinite(places).all(axis=1)
        self._drawn, self._lines = there[self.tails] & there[self.heads], opened.lines()
        self._junctions = opened.junctions()
        if self._junctions is not None:
            self._drawn &= ~self._junctions.are_turns(self.tails, self.heads)
        self._reverse = reverse
        if reverse and opened.directed:  # a hierarchy has rows of distances from a source, not to a source
            rows: Rows = SearchedDistances(opened, reverse=True)
        else:
            rows = open_rows(network if isinstance(network, HierarchyStore) else opened, graph=None)[0]
        self._reached = [self._within(rows.row(vertex)) for vertex in self.points.vertices.tolist()]
        self._together, sources = together, np.arange(len(self.points.vertices))
        self._groups = ([sources] if together else list(sources[:, None])) if len(sources) else []
        reached = [np.unique(np.concatenate([self._reached[i][0] for i in group])) for group in self._groups]
        most = max(map(len, reached), default=opened.n)
        self.note = self.limits.hint if most < FEW * opened.n else None
        self.names = [f"the nearest of {len(sources)}"] * len(self._groups) if together else self.points.ids.to_pylist()
        self.moved = None if self.points.snapped is None or together else self.points.snapped

    def _within(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vertices of a row of distances that are reached within the largest limit, and their distances."""
        far = np.isinf(row) if row.dtype.kind == "f" else row == np.iinfo(row.dtype).max
        reached = np.flatnonzero(~far & (row <= self.limits.in_network[-1]))
        return reached, row[reached].astype(np.float64)

    def _pieces(self, sources: np.ndarray) -> tuple[Pieces, Cut, np.ndarray]:
        """Return the pieces that are reached from the nearest of some sources, their lines, and the `plane_scale`.

        Pieces without coordinates are left out.
        """
        leaving = np.full(self.graph.n, np.inf)
        for reached, distances in (self._reached[i] for i in sources):
            leaving[reached] = np.minimum(leaving[reached], distances)
        vertices = self.points.vertices[sources]
        closed = ~self.graph.through()
        closed[vertices] = False
        leaving[closed] = np.inf
        begins, ends = (self.heads, self.tails) if self._reverse else (self.tails, self.heads)
        undirected = not self.graph.directed
        pieces = reached_pieces(begins, ends, self.weights, leaving, self.limits.in_network, undirected)
        pieces = pieces.turned() if self._reverse else pieces
        pieces = Pieces(*(column[self._drawn[pieces.arcs]] for column in pieces))
        arcs, lines = np.unique(pieces.arcs, return_inverse=True)
        offsets, points = points_along(self._lines, self.places, arcs, self.tails[arcs], self.heads[arcs])
        scale = plane_scale(self.places[vertices], self.in_degrees)
        return pieces, cut_lines(offsets, points, scale, lines, pieces.first, pieces.last), scale

    def edges(self) -> geopandas.GeoDataFrame:
        """Return a row for each reached piece of an arc."""
        import geopandas
        import pandas
        import shapely

        factor = self.limits.given[-1] / self.limits.in_network[-1]
        roads = slice(None) if self._junctions is None else self._junctions.of(np.arange(self.graph.n))
        names = vertex_names(self.graph, roads).to_numpy(zero_copy_only=False)
        frames = []
        groups = zip(self.names, self._groups, strict=True) if self._groups else [(self._of_names(), np.arange(0))]
        for name, group in groups:
            pieces, cut, _ = self._pieces(group)
            arcs = pieces.arcs
            columns = {
                "source": np.full(len(arcs), name, object if isinstance(name, str) else None),
                "limit": self.limits.given[pieces.band],
                "tail": names[self.tails[arcs]],
                "head": names[self.heads[arcs]],
                "begin": pieces.begin * factor,
                "end": pieces.end * factor,
            }
            shapes = shapely.linestrings(cut.points, indices=np.repeat(np.arange(len(arcs)), np.diff(cut.offsets)))
            frames.append(geopandas.GeoDataFrame(columns, geometry=shapes, crs=self.crs))
        frame = frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
        return self._noted(frame)

    def areas(self, kind: str, concavity: float | None, width: float | None) -> geopandas.GeoDataFrame:
        """Return a row for each source and limit: the area within the limit, the largest first."""
        import geopandas

        columns: dict[str, Any] = {"source": [], "limit": []}
        moved, shapes = [], []
        for i, (name, group) in enumerate(zip(self.names, self._groups, strict=True)):
            # One hull around the parts of several sources would enclose the streets between the parts.
            parts = list(group[:, None]) if kind in HULLS else [group]
            each = [self._areas(part, kind, concavity, width) for part in parts]
            found = [united(areas) for areas in zip(*each, strict=True)]
            for limit, area in reversed([*zip(self.limits.given.tolist(), found, strict=True)]):
                columns["source"].append(name)
                columns["limit"].append(limit)
                moved.append(0.0 if self.moved is None else float(self.moved[i]))
                shapes.append(area)
        if self.moved is not None:
            columns["moved"] = moved
        if not shapes:
            columns["source"] = np.empty(0, np.int64 if self._of_names() == 0 else object)
        return self._noted(geopandas.GeoDataFrame(columns, geometry=shapes, crs=self.crs))

    def _of_names(self) -> int | str:
        """Return a value of the type of the names, from which the column of no sources has its type."""
        return 0 if self.points.numbered and not self._together else ""

    def _areas(self, sources: np.ndarray, kind: str, concavity: float | None, width: float | None) -> list[Any]:
        """Return the area of some sources within each limit."""
        pieces, cut, scale = self._pieces(sources)
        usual = default_width(self.crs or "", self.places[self.points.vertices[sources]], self.places)
        width, gap = usual if width is None else width, GAPS * usual
        concavity = CONCAVITY if concavity is None else concavity
        return areas_of(cut, pieces.band, len(self.limits.given), scale, kind, concavity, width, gap)

    def marks(self) -> pa.Table:
        """Return the vertices of the sources, with the labels of a map: their names, or "source" for an unnamed one."""
        ids = self.points.texts()
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
    reverse: bool = False,
    together: bool = False,
    concavity: float | None = None,
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
    reverse : bool
        Search against the arcs: return from where the sources are reached within limits. A hierarchy does not help to
        do so; its graph is searched.
    together : bool
        Return one isochrone around all sources, from the nearest source, not one isochrone for each source. The area is
        the union of the hulls of the sources, so that streets between two sources are outside of the area if neither
        source reaches them. A source that reaches only a straight street adds nothing, unless `kind` is "buffers".
    concavity : float, optional
        The shape of concave hulls, by default 0.3: from 0, which follows the streets most closely, to 1, the convex
        hull. The smaller the number, the more of the reached streets lies outside of the hull; with the default, hardly
        anything. Buffers contain all reached streets.
    width : float, optional
        Distance of the edge of a buffer from its street: in metres if coordinates are longitudes and latitudes, else in
        the unit of the coordinates. By default, it is 50 m on the ground. If the coordinate system is not known, the
        default is a hundredth of the diagonal of the network.
    snap_limit, crs, graph : as for `tilepath.od`

    Returns
    -------
    geopandas.GeoDataFrame
        Areas: the columns source, limit, moved (how far a place was moved) and geometry, a row for each source and
        limit, the largest limit first. A smaller area lies in the larger one. The hull of streets without an area, such
        as a single straight street, is empty.

        Edges: source, limit, tail, head, begin and end (when the two ends are reached) and geometry, a row for each
        piece of an arc between two limits, which is cut exactly where a limit ends. In a directed graph each arc is
        walked separately. In an undirected graph, both arcs of an edge are walked, and each piece ends where the two
        walks meet. Turns take time, but are not drawn. With `reverse`, pieces lead to the source, and begin and end are
        the distances to the source from the two ends of the piece.

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
        are less than a minute, and hardly anything is reached; or there are no sources.

    Examples
    --------
    >>> areas = tilepath.isochrones(hierarchy, (0, 0), [200, 400])
    >>> list(areas.columns)
    ['source', 'limit', 'moved', 'geometry']
    """
    check_kind(kind, concavity, width)
    need_geopandas("isochrones")
    reach = Reach(
        network, sources, within, reverse=reverse, together=together, snap_limit=snap_limit, crs=crs, graph=graph
    )
    none = None if len(reach.points.vertices) else f"the sources: {NONE}"
    for warning in (none, reach.points.warning, reach.note):
        if warning:
            warnings.warn(warning, stacklevel=2)
    return reach.edges() if kind == "edges" else reach.areas(kind, concavity, width)


def write_isochrones(
    reach: Reach,
    out: str | os.PathLike[str],
    *,
    kind: str = "concave",
    concavity: float | None = None,
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
    title, background : of a map, as for `tilepath.picture_graph`
    overwrite : replace `out` if it exists

    Raises
    ------
    ValueError, FileExistsError, ImportError
        As `pipelines.files.layers.write_layers`, or `tilepath.picture_graph`; or a map shall have edges.
    """
    check_kind(kind, concavity, width)
    suffix = check_isochrones(out, kind, overwrite, title, background)
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


def check_isochrones(
    out: str | os.PathLike[str], kind: str, overwrite: bool, title: str | None, background: str | None
) -> str:
    """Return the suffix of a file of isochrones; raises the errors of `write_isochrones` before long work."""
    suffix = suffix_of(out)
    if title is not None and suffix not in MAPS:
        raise ValueError(f"{out}: a layer has no title; leave out title (--title), or write a map ({', '.join(MAPS)})")
    refuse_background(out, background)
    if suffix not in MAPS:
        return check_layers(out, overwrite)
    check_free(out, overwrite)
    if kind == "edges":
        raise ValueError(f"{out}: a map shows areas, not edges; choose another kind (kind, --kind), or write a .gpkg")
    return suffix


def check_kind(kind: str, concavity: float | None, width: float | None) -> None:
    """Raise ValueError if an option is wrong."""
    if kind not in KINDS:
        raise ValueError(f"kind (--kind) is {kind!r}; choose one of {', '.join(KINDS)}")
    if concavity is not None and not 0 <= concavity <= 1:
        raise ValueError(f"concavity (--concavity) is {concavity:g}; give a number from 0 to 1")
    if concavity is not None and kind != "concave":
        raise ValueError(
            f"concavity (--concavity) goes with concave hulls, not with {kind} (kind, --kind); leave one of them out"
        )
    if width is not None and not 0 < width < np.inf:
        raise ValueError(f"width (--width) is {width:g}; give a distance above 0")
    if width is not None and kind != "buffers":
        raise ValueError(f"width (--width) goes with buffers, not with {kind} (kind, --kind); leave one of them out")
