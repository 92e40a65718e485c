"""Export a graph with coordinates to layers of geometries, for GIS programs: its arcs as lines, its vertices as points.

`tilepath.import_graph` can read the layer of arcs; the imported graph has the same tails, heads, weights and lines.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.files.coordinate_systems import line_lengths, metres_of
from pipelines.files.layers import check_layers, need_geopandas, write_layers
from pipelines.files.tables import vertex_names
from pipelines.places.networks import NetworkLike, open_network
from pipelines.stores.arc_tables import INDEX
from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import DEGREES, Graph
from pipelines.stores.lines import points_along
from pipelines.stores.road_network import road_network

if TYPE_CHECKING:
    import geopandas

OWN = ("source", "target", "weight", "highway", "length", "geometry")  # columns that no other weight takes
LAYERS = (".gpkg", ".geojson", ".geoparquet")  # other files of Parquet are tables without geometries


def export_layers(graph: Any, out: str | os.PathLike[str], *, overwrite: bool = False) -> int:
    """Write the arcs of a graph as lines; a GeoPackage also has the vertices as points. Returns the number of lines.

    Of a graph with turns, the roads are written, without the turns.

    Raises
    ------
    StoreError
        The store is not a graph, or the graph has no coordinates.
    ValueError, FileExistsError, ImportError
        As `pipelines.files.layers.write_layers`.
    """
    check_layers(out, overwrite)
    if not isinstance(graph, Graph):
        raise StoreError(f"{graph.path}: only a graph has geometries; export this store to a table (.csv, .parquet)")
    graph = road_network(graph)
    arcs = arcs_frame(graph)
    write_layers({"arcs": arcs, "vertices": vertices_frame(graph)}, out, overwrite)
    return len(arcs)


def graph_to_gdfs(network: NetworkLike) -> tuple[geopandas.GeoDataFrame, geopandas.GeoDataFrame]:
    """Return the vertices and the arcs of a graph as GeoDataFrames, as the function of this name of OSMnx does.

    Rows of the arcs name roads wherever roads are named (`Graph.with_weights`, `tilepath.criticality`).

    >>> vertices, arcs = tilepath.graph_to_gdfs(grid)
    >>> len(vertices), len(arcs)
    (30, 49)

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store, with coordinates

    Returns
    -------
    vertices : geopandas.GeoDataFrame
        The columns vertex and geometry.
    arcs : geopandas.GeoDataFrame
        The columns source, target, weight, other weights by their names, highway (if the classes of roads are known),
        length (in metres, if the coordinate system is known) and geometry. Another weight that is called length has the
        column `length_weight`. An edge of an undirected graph has one row. Of a graph with turns, the road network.
        The index is called `arc`; by this name, `with_weights` and `also` of `tilepath.od` know a column of this table.

    Raises
    ------
    StoreError
        The graph has no coordinates.
    ImportError
        GeoPandas is missing.

    Examples
    --------
    >>> vertices, arcs = tilepath.graph_to_gdfs(grid)
    >>> len(vertices), len(arcs), list(arcs.columns)
    (30, 49, ['source', 'target', 'weight', 'length', 'geometry'])
    """
    graph = road_network(open_network(network).graph)
    arcs = arcs_frame(graph)
    arcs.index.name = INDEX
    return vertices_frame(graph), arcs


def arcs_frame(graph: Graph, arcs: np.ndarray | None = None) -> geopandas.GeoDataFrame:
    """Return arcs of a graph as a GeoDataFrame with the columns source, target, weight and geometry.

    There are further columns for other weights of the graph, by their names; `highway` for the classes of roads, if
    they are known; and `length`, in metres if the coordinate system is known. A weight with the name of one of these
    columns gets the column `length_weight` or the like. The geometry is missing if an end has no coordinates.

    Parameters
    ----------
    arcs : int64 (k), positions in the store; by default all arcs, and of an undirected graph one for each edge
    """
    need_geopandas("geometries")
    import geopandas
    import shapely

    places = placed(graph)
    indptr, heads = graph.indptr(), graph.indices()
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    if arcs is None:
        arcs = np.arange(graph.m)
        if not graph.directed:
            from gpuops import mates_of

            arcs = np.flatnonzero(arcs < mates_of(indptr, heads))
    tails, heads = tails[arcs], heads[arcs]
    offsets, points = points_along(graph.lines(), places, arcs, tails, heads)
    shapes = shapely.linestrings(points, indices=np.repeat(np.arange(len(arcs)), np.diff(offsets)))
    there = np.isfinite(places).all(axis=1)
    shapes[~(there[tails] & there[heads])] = None
    names = vertex_names(graph).to_numpy(zero_copy_only=False)
    columns: dict[str, Any] = {"source": names[tails], "target": names[heads]}
    columns |= {"weight": graph.weights()[arcs]} if graph.weighted else {}
    for each in graph.choices:
        if each.name and each.name != graph.weight_name:
            column = f"{each.name}_weight" if each.name in OWN else each.name
            columns[column] = graph.weighted_by(each.name).weights()[arcs]
    if (classes := graph.classes()) is not None:
        columns["highway"] = np.array([*classes.names, None], object)[classes.of_arcs[arcs]]
    crs = coordinate_system(graph, places)
    columns["length"] = _lengths(offsets, points, crs)
    frame = geopandas.GeoDataFrame(columns, geometry=shapes, crs=crs or None)
    frame.attrs = {"attribution": graph.attribution} if graph.attribution else {}
    return frame


def with_lines(frame: Any, graph: Graph, arcs: np.ndarray, counts: np.ndarray) -> geopandas.GeoDataFrame:
    """Return a frame with a row for each path as a GeoDataFrame of the lines of the paths.

    The geometry is missing if a path has no arcs, or a vertex on the path has no coordinates.

    Parameters
    ----------
    frame : pandas.DataFrame
    graph : Graph
    arcs : (q,) int64, positions in the store of the arcs of all paths, one path after the other
    counts : (k,) int64, the number of arcs of each path
    """
    import geopandas
    import shapely

    places, tails = placed(graph), np.searchsorted(graph.indptr(), arcs, side="right") - 1
    offsets, points = points_along(graph.lines(), places, arcs, tails, graph.indices()[arcs])
    of_point = np.repeat(np.repeat(np.arange(len(counts)), counts), np.diff(offsets))
    kept = np.ones(len(points), bool)
    kept[offsets[1:-1]] = of_point[offsets[1:-1]] != of_point[offsets[1:-1] - 1]  # a path has each junction once
    lines = np.full(len(counts), None, object)
    shapely.linestrings(points[kept], indices=of_point[kept], out=lines)
    lines[np.unique(of_point[~np.isfinite(points).all(axis=1)])] = None
    found = geopandas.GeoDataFrame(frame, geometry=lines, crs=coordinate_system(graph, places) or None)
    found.attrs = frame.attrs
    return found


def arc_lengths(graph: Graph, arcs: np.ndarray) -> np.ndarray:
    """Return the lengths of arcs, by their positions in the store: in metres if the coordinate system is known."""
    places, indptr = placed(graph), graph.indptr()
    tails = np.searchsorted(indptr, arcs, side="right") - 1
    offsets, points = points_along(graph.lines(), places, arcs, tails, graph.indices()[arcs])
    return _lengths(offsets, points, coordinate_system(graph, places))


def _lengths(offsets: np.ndarray, points: np.ndarray, crs: str) -> np.ndarray:
    lengths = line_lengths(offsets, points, degrees=crs == DEGREES)
    return lengths * (metres_of(crs) or 1) if crs not in ("", DEGREES) else lengths


def vertices_frame(graph: Graph) -> geopandas.GeoDataFrame:
    """Return the vertices of a graph as a GeoDataFrame with the columns vertex and geometry."""
    import geopandas
    import shapely

    places = placed(graph)
    shapes = shapely.points(places)
    shapes[~np.isfinite(places).all(axis=1)] = None
    return geopandas.GeoDataFrame(
        {"vertex": vertex_names(graph).to_pylist()}, geometry=shapes, crs=coordinate_system(graph, places) or None
    )


def placed(graph: Graph) -> np.ndarray:
    """Return the coordinates of a graph; raises StoreError if it has none."""
    places = graph.coordinates()
    if places is None:
        raise StoreError(f"{graph.path} has no coordinates; import it with coordinates (coordinates, --coordinates)")
    return places
