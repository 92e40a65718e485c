"""Pictures of graphs: check the options, make a `Drawing`, lay it out and write it."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops.errors import NotEulerianError
from gpuops.numbers import outside_infinity
from pipelines.files.figures import in_words
from pipelines.pictures.drawing import Drawing
from pipelines.pictures.part import part_of
from pipelines.pictures.separators import levels_of_vertices, separator_tree
from pipelines.pictures.table_values import TableLike, values_of_table
from pipelines.pictures.view import View, Walks
from pipelines.places.at import VertexOrPlace, name_of, place_of, vertex_at
from pipelines.places.networks import open_network
from pipelines.places.points import Points, points_from
from pipelines.places.single import listed
from pipelines.routes.distances import open_rows
from pipelines.routes.paths import shortest_path
from pipelines.routes.route import Route
from pipelines.routes.tree_paths import tree_path
from pipelines.stores.changed import closed_lines
from pipelines.stores.circuits import Circuits, open_circuits
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore, open_hierarchy
from pipelines.stores.paths import Paths, open_paths
from pipelines.stores.road_network import road_network
from pipelines.stores.schema import brief, store_schema
from pipelines.stores.solutions import Solution, open_solution
from pipelines.stores.units import limit_in
from pipelines.stores.vertex_names import Positions, VertexName, positions

if TYPE_CHECKING:
    import folium
    from matplotlib.figure import Figure

PAGES = (".html", ".htm")
KINDS = ("bricks", "levels", "tree")  # kinds of pictures of a hierarchy
ALONE = {  # options that exclude each other
    "number the arcs": ("circuit", "edges"),
    "colour the arcs": ("circuit", "spanning tree", "route"),
    "colour the vertices": ("values", "circuit", "distances", "degrees"),
}


def picture_graph(
    graph: Graph | HierarchyStore | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    edges: bool = False,
    circuit: bool | Circuits | str | os.PathLike[str] = False,
    spanning_tree: bool = False,
    wash: bool = False,
    components: bool = False,
    in_degree: int | None = None,
    out_degree: int | None = None,
    distances: Solution | Paths | str | os.PathLike[str] | None = None,
    every: float | str | None = None,
    source: VertexOrPlace | None = None,
    route: tuple[VertexOrPlace, VertexOrPlace] | Route | None = None,
    values: TableLike | None = None,
    column: str | None = None,
    sample: int | None = None,
    around: VertexOrPlace | None = None,
    seed: int = 0,
    title: str | None = None,
    areas: Any = None,
    marks: Any = (),
    size: float | None = None,
    dpi: int = 150,
    cmap: str | None = None,
    background: str | None = "OpenStreetMap",
    overwrite: bool = False,
    crs: Any = None,
    ax: Any = None,
) -> Figure | folium.Map | None:
    """Draw a graph; return the figure, and write it to the image file `path`, in the format of its suffix.

    A graph with coordinates is drawn as a map; with longitudes and latitudes, the map is true to scale in its middle.
    A map of more than 500 vertices shows streets instead of dots: lines with their bends, wide where the roads are
    fast, and filled bands of distances. Roads that `Graph.with_weights` closed are dashed and dark red. Without
    coordinates, up to 10 vertices lie in layers, or in a circle if there are many arcs, and more vertices are laid out
    by forces. Beyond 150 vertices or 400 arcs, names and arrow heads are left out. Equal calls give equal bytes.

    Parameters
    ----------
    graph : Graph or path of a graph store; or HierarchyStore, whose graph is drawn, and which answers `source`, `route`
    path : path of the new file (.svg, .png or .pdf; .html for a map that can be moved and zoomed, which returns a map
        of folium; or .dot for Graphviz, which gives no figure); by default no file is written
    edges : number the arcs by their positions in the store
    circuit : True or a circuits store: number the arcs in walking order, alternately green and red. Walks begin at
        green vertices; a walk that is not closed ends at a red vertex
    spanning_tree : draw the forest of `gpuops.spanning_forest` in red, and other arcs in grey
    wash : fade all arcs that are not in the spanning tree or on the route
    components : draw a frame around each weak component
    in_degree, out_degree : colour vertices with at least this many arcs in (yellow), arcs out (green), or both (blue)
    distances : a store of distances or paths, or a hierarchy store; its row of `source` colours the
        vertices, and a ring marks the source. By default, the graph is searched. Below a route, the streets of a map
        have colours only if `source` is given, too
    every : colour vertices and arcs in bands of this width instead (isochrones); a text such as "2min" has its own unit
    source : a vertex by label (by position if the graph has no labels), as text or int; or by position, as "#17" or
        ``tilepath.positions(17)``; or a place, as (lon, lat). By default the first vertex of `route`, else the
        vertex of the first row
    route : two vertices, named as `source`: draw the shortest path of `distances` between them in red, and mark both by
        rings; or a route of this graph, such as the result of `tilepath.shortest_path`
    values : a path, a pyarrow.Table or a DataFrame: a table with the column `vertex` and a column of numbers, which
        colour the vertices, such as the table of `tilepath.betweenness`; or a table of `tilepath.od` whose origins are
        vertices (or its destinations, if all rows have the same origin). Of several rows of a vertex, the least counts
    column : the column of `values`; by default the distances, or else its only column of numbers. The scale is labelled
        with the name of the column in words: "Sum of seats" for sum_seats. Rename the column for another label
    sample : draw this number of vertices: those with the fewest arcs on a path to `around`
    around : middle of the sample, named as `source`; by default a random vertex
    seed : seed of layouts and samples
    title : line above the picture; by default the name of the store and the contents of the picture
    areas : a GeoDataFrame of areas below the streets of a map, as `tilepath.isochrones` returns it; they are cut at
        the edge of the map
    marks : vertices or places with a ring around them: one as `source`, or a list, array or frame as for `tilepath.od`.
        Up to ten rings are labelled with the names of the vertices or places. A vertex given by its position gets no
        label if its name is a number. A single place without a name gets no label either
    size : width of a map in inches, without margins; by default 7.5
    dpi : pixels of an inch
    cmap : name of a colour map of matplotlib for `distances`, `values` and `areas`. Ends of the map that are too light
        for thin lines on white are left out for `distances` and `values`
    background : the tiles that an .html file loads from a network as its background map, by their name in folium or
        their URL; None: nothing is loaded. Without a network, the file shows the streets
    overwrite : replace `path` if it exists
    crs : coordinate system of the places of `source`, `route`, `around` and `marks`, as for `tilepath.od`
    ax : axes of a figure of matplotlib, to draw in them instead of a new figure; without `path`. A map has the size of
        the axes unless there is a `size`. The axes of a map have the coordinates of the network, so that you can draw
        on it, such as by ``frame.plot(ax=ax)`` of GeoPandas; other axes have points of the page

    Raises
    ------
    ImportError
        Matplotlib, NetworkX or, for .html, folium is missing; the message says how to install it.
    gpuops.NotEulerianError
        `circuit` is True, and the graph has no Euler circuit or path.
    StoreError
        A vertex does not exist, or a store belongs to another graph.
    ValueError
        The graph is too large, options exclude each other, an area or a place lies outside the network, or the suffix
        is unknown.
    FileExistsError
        `path` exists.

    Examples
    --------
    >>> figure = tilepath.picture_graph(graph, "roads.svg")
    """
    _check_axes(ax, path)
    refuse_background(path, background)
    answers, whole, snapping = open_network(graph, crs=crs)
    graph = road_network(whole)  # the vertices that turns added lie where their junctions lie
    asked = {"circuit": bool(circuit), "edges": edges, "spanning tree": spanning_tree, "route": route is not None}
    asked |= {"values": values is not None, "distances": distances is not None or source is not None}
    asked |= {"degrees": in_degree is not None or out_degree is not None, "areas": areas is not None}
    _refuse_clashes(asked, sample, wash, column, cmap)
    band = limit_in(every, whole.weight_unit, "every (--every)")
    _check_bands(band, asked)
    on_map = "coordinates" in graph.optional
    _check_page(size, dpi, on_map)
    middle = None if around is None else vertex_at(whole, around, "around", snapping)
    origin = "" if isinstance(source, Positions) else name_of(source)
    source = None if source is None else positions(vertex_at(whole, source, "source", snapping))
    ends = [] if route is None else _route_ends(whole, route, snapping)
    part = part_of(graph, sample=sample, around=middle, seed=seed, on_map=on_map)
    view = View(graph, part, on_map)
    if edges:
        view.number([str(arc) for arc in view.numbers().tolist()])
    if circuit:
        view.walk(_circuit_of(graph, circuit))
    if spanning_tree:
        view.span(wash)
    if components:
        view.frame()
    if asked["degrees"]:
        view.mark_degrees(in_degree, out_degree)
    if values is not None:
        view.colour(*values_of_table(values, column, graph))
    if asked["distances"] or asked["route"]:
        solution = answers if distances is None else _solution(distances, whole)
        streets = view.picture.streets
        known = route if isinstance(route, Route) else None
        given: Any = [None] * len(ends) if known or route is None else route
        placed = [_end_name(whole, *each, streets) for each in zip(given, ends, strict=True)]
        _add_distances(view, whole, solution, source, ends, [origin, *placed], band, wash, known)
    if asked["areas"]:
        if not on_map:
            raise ValueError("areas lie on a map, but the graph has no coordinates; leave them out")
        view.cover(areas, cmap or view.picture.cmap)
    view.close(closed_lines(whole))
    if np.size(marks):
        points = points_from(listed(marks), whole, "mark", snapping=snapping)
        if points.warning:
            warnings.warn(points.warning, stacklevel=2)
        view.mark(points.vertices, _names_of(points, marks))
    drawing = view.drawing()
    drawing.inches, drawing.dpi, drawing.cmap = size, dpi, cmap or drawing.cmap
    return write_drawing(drawing, path, seed, title, overwrite, background, ax)


def picture_bricks(
    store: HierarchyStore | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    kind: str = "bricks",
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
    sample: int | None = None,
    around: VertexName | None = None,
    seed: int = 0,
    title: str | None = None,
    size: float | None = None,
    dpi: int = 150,
    overwrite: bool = False,
) -> Figure | folium.Map | None:
    """Draw a hierarchy store: how the network is cut in halves, quarters and so on, down to bricks.

    Parameters
    ----------
    store : HierarchyStore, or path of such a store
    path, sample, around, seed, title, size, dpi, overwrite : as for `picture_graph`, as is the result; a tree takes no
        sample and no size
    kind : "bricks" colours the bricks, with the vertices that separate them dark; "levels" colours these vertices by
        the levels of their nodes in the tree, the root strongest; "tree" draws the nodes from the root down to bricks,
        each above its subtree. Dots of the tree grow with their vertices as far as there is room, and the number of
        vertices is written where it fits; in a large tree, some leaves are subtrees of several bricks
    graph : the graph or its path, if it was moved; a tree needs no graph

    Raises
    ------
    ValueError
        `kind` is unknown, no vertex of the tree separates bricks, or, as for `picture_graph`, the graph is too large.
    StoreError, FileExistsError, ImportError
        As for `picture_graph`.

    Examples
    --------
    >>> figure = tilepath.picture_bricks(hierarchy, "bricks.png")
    """
    store = open_hierarchy(store)
    if kind not in KINDS:
        raise ValueError(f"kind (--kind) is {kind!r}; choose one of {', '.join(KINDS)}")
    if kind != "bricks" and not store.hierarchy.structure.bricks.upper:
        raise ValueError(
            f"{store.path}: the bricks hold all vertices of the tree, so that there are no levels and no tree; draw "
            "the bricks (kind='bricks', --kind bricks), or the hierarchy of a larger graph"
        )
    if kind == "tree":
        if sample is not None or around is not None:
            raise ValueError("a tree has all vertices; leave out sample (--sample) and around (--around)")
        if size is not None:
            raise ValueError("size (--size) is the width of a map, and a tree is no map; leave it out")
        _check_page(None, dpi, False)
        drawing = separator_tree(store)
        drawing.dpi = dpi
        return write_drawing(drawing, path, seed, title, overwrite)
    opened = graph if isinstance(graph, Graph) else store.graph(graph)
    on_map = "coordinates" in opened.optional
    _check_page(size, dpi, on_map)
    middle = None if around is None else opened.vertex(around, "around")
    view = View(opened, part_of(opened, sample=sample, around=middle, seed=seed, on_map=on_map), on_map)
    if kind == "levels":
        view.grade(levels_of_vertices(store.hierarchy.structure), store.division())
    else:
        view.divide(store.division())
    drawing = view.drawing()
    drawing.inches, drawing.dpi = size, dpi
    return write_drawing(drawing, path, seed, title, overwrite)


def _route_ends(graph: Graph, route: Any, snapping: Any) -> list[Positions]:
    """Return the two vertices of a route; two places are moved together, so that a warning is given once."""
    if isinstance(route, Route):
        if route.graph.digest != graph.digest:
            raise StoreError(
                f"route: it leads through another network than {graph.path}, or has other weights; draw its network "
                "(route.graph)"
            )
        return [positions(vertex) for vertex in (route.vertices[0], route.vertices[-1])]
    if hasattr(route, "columns") or hasattr(route, "geom_type"):
        raise ValueError(
            "route has lines; name two vertices or places, or give one route of tilepath.shortest_path. Draw many "
            "routes with GeoPandas on a map in axes: tilepath.picture_graph(network, ax=axes); routes.plot(ax=axes)"
        )
    if isinstance(route, str) or not hasattr(route, "__len__") or len(route) != 2:
        raise ValueError(f"route (--route) is {brief(repr(route))}; name two vertices or places")
    placed = [place_of(each) for each in route]
    if placed and all(each is not None for each in placed):
        points = points_from(np.array(placed), graph, "route end", snapping=snapping)
        if points.warning:
            warnings.warn(points.warning, stacklevel=3)
        return [positions(vertex) for vertex in points.vertices.tolist()]
    return [positions(vertex_at(graph, each, "route", snapping)) for each in route]


def _end_name(graph: Graph, given: Any, end: Positions, streets: bool) -> str | None:
    """Return the name of a place, or None. On a map of streets, a position is a place, named by its label.

    The name is "" if the label is a number.
    """
    if not (streets and isinstance(given, Positions)):
        return name_of(given)
    label = graph.label(int(end))
    return "" if label.isdecimal() else label


def _names_of(points: Points, given: Any) -> list[str]:
    """Return the names of marks, "" for marks without: vertices by position whose names are numbers, a single place."""
    names = points.texts()
    if isinstance(given, Positions):
        return ["" if name.isdecimal() else name for name in names]
    return [""] if points.snapped is not None and points.numbered and names in (["0"], ["1"]) else names


def refuse_background(path: str | os.PathLike[str] | None, background: str | None) -> None:
    """Raise ValueError for tiles that the caller chose, if `path` is no page that loads them."""
    page = path is not None and Path(path).suffix.lower() in PAGES
    if not page and background not in (None, "OpenStreetMap"):
        raise ValueError(
            f"background (--background) is {background!r}, but only an .html file loads one; leave it out, or write "
            "an .html file"
        )


def write_drawing(
    drawing: Drawing,
    path: str | os.PathLike[str] | None,
    seed: int = 0,
    title: str | None = None,
    overwrite: bool = False,
    background: str | None = None,
    ax: Any = None,
) -> Figure | folium.Map | None:
    """Write a drawing to `path`, in the format of its suffix, and return its figure or map; .dot files have neither.

    `title` replaces the title of the drawing. With axes `ax` of matplotlib, the drawing is in these axes.
    """
    from pipelines.pictures.canvas import draw, draw_in
    from pipelines.pictures.drawing import write_dot
    from pipelines.pictures.web_map import write_web_map

    if title is not None:
        drawing.title = title
    if ax is not None:
        return draw_in(ax, drawing, seed)
    if path is not None and Path(path).suffix.lower() in PAGES:
        return write_web_map(drawing, path, background=background, overwrite=overwrite)
    if path is not None and Path(path).suffix.lower() in (".dot", ".gv"):
        write_dot(drawing, path, overwrite)
        return None
    return draw(drawing, path, seed, overwrite)


def _refuse_clashes(
    asked: dict[str, bool], sample: int | None, wash: bool, column: str | None, cmap: str | None
) -> None:
    """Raise ValueError if options exclude each other, or one has no effect without another."""
    for what, options in ALONE.items():
        found = [option for option in options if asked[option]]
        if len(found) > 1:
            raise ValueError(f"{found[0]} and {found[1]} both {what}; ask for one of the two")
    if asked["circuit"] and sample is not None:
        raise ValueError(
            "a sample does not have all arcs of a circuit; leave out sample (--sample) or circuit (--circuit)"
        )
    if asked["route"] and sample is not None:
        raise ValueError("a sample may lack vertices of a route; leave out sample (--sample) or route (--route)")
    if wash and not (asked["spanning tree"] or asked["route"]):
        raise ValueError(
            "wash (--wash) leaves a spanning tree or a route; ask for spanning_tree (--spanning-tree) or "
            "route (--route)"
        )
    if column is not None and not asked["values"]:
        raise ValueError("a column (--column) is of a table; name the table (values, --values)")
    if cmap is not None and not (asked["values"] or asked["distances"] or asked["areas"]):
        raise ValueError(
            "cmap (--cmap) colours distances or values, and the picture has none; name a source (source, --from) or a "
            "table (values, --values)"
        )


def _check_page(size: float | None, dpi: int, on_map: bool) -> None:
    if size is not None and not on_map:
        raise ValueError("size (--size) is the width of a map, but the graph has no coordinates; leave it out")
    if size is not None and not 1 <= size <= 100:
        raise ValueError(f"size (--size) is {size:g}; give a width from 1 to 100 inches")
    if not 10 <= dpi <= 1200:
        raise ValueError(f"dpi (--dpi) is {dpi}; give 10 to 1200 pixels of an inch")


def _check_axes(ax: Any, path: Any) -> None:
    if ax is not None and (path is not None or not hasattr(ax, "inset_axes")):
        raise ValueError("ax takes axes of matplotlib, and no path with it; write their figure by ax.figure.savefig")


def _check_bands(every: float | None, asked: dict[str, bool]) -> None:
    if every is None:
        return
    if not 0 < every < math.inf:
        raise ValueError(f"every is {every:g}; give the width of a band, above 0")
    if not asked["distances"]:
        raise ValueError("bands of every (--every) are of distances; name their source (source, --from)")
    if any(asked[option] for option in ALONE["colour the arcs"]):
        raise ValueError("bands of every (--every), and a circuit, a tree or a route, all colour the arcs; ask for one")


def _add_distances(
    view: View,
    graph: Graph,
    solution: Solution | Paths | Graph,
    source: Positions | None,
    route: list[Positions],
    placed: list[str | None],
    every: float | None,
    wash: bool,
    known_route: Route | None = None,
) -> None:
    """Add distances from a vertex of `graph`, or a route, to the picture of its road network.

    `route` has the ends of the route, which `solution` finds if it is not known. `placed` has the names of the source
    and of the ends of the route, each None unless it is a place. A name is "" if only a position is known: on a map of
    streets, a number is no name.
    """
    origin, *names = placed
    asked = source is not None  # of a map with a route, `distances` alone only says what answers
    values, scale, sources = _values(solution, graph, source if asked or not route else route[0])
    number = scale.isdecimal() and view.picture.streets
    origin = ("source" if number else None) if origin == "" else origin
    factor, scale = in_words(graph.weight_unit, "the source" if origin == "source" else origin or scale, values)
    values, every = values * factor, None if every is None else every * factor
    if asked or not route or not view.picture.streets:
        view.colour(values, scale, every)
    if route:
        known = [each for each in names if each is not None]
        view.lead(known_route or _route(solution, graph, route[0], route[1]), wash, known if len(known) == 2 else None)
    else:
        view.mark(sources, [origin] if origin and view.picture.streets else None)


def _circuit_of(graph: Graph, circuit: bool | Circuits | str | os.PathLike[str]) -> Walks:
    if circuit is True:
        from gpuops import euler_circuit

        try:
            found = euler_circuit(graph.indptr(), graph.indices(), path=True, directed=graph.directed)
        except NotEulerianError as error:
            raise error.named(graph.label, graph.path) from None
        return Walks(found.arcs, found.offsets, graph.directed)
    opened = open_circuits(circuit)  # type: ignore[arg-type]
    if opened.graph_digest != graph.digest:
        raise StoreError(f"{opened.path}: holds the circuits of another graph than {graph.path}; name the right store")
    return Walks(opened.arcs(), opened.offsets(), opened.directed)


def _solution(store: Solution | Paths | str | os.PathLike[str], graph: Graph) -> Solution | Paths:
    if isinstance(store, str | os.PathLike):
        store = open_paths(store) if store_schema(store) == "paths/1" else open_solution(store, graph)[0]
    if store.graph_digest != graph.digest:
        raise StoreError(f"{store.path}: holds the distances of another graph than {graph.path}; name the right store")
    return store


def _values(
    store: Solution | Paths | Graph, graph: Graph, source: VertexName | None
) -> tuple[np.ndarray, str, np.ndarray]:
    """Return distances, float64 (n), NaN if unreachable; the name of their source; and the sources."""
    if isinstance(store, Paths):
        vertex = None if source is None else graph.vertex(source, "source")
        row = store.distances(0 if vertex is None else store.row_of(vertex))
        begins = store.row_sources(0 if vertex is None else store.row_of(vertex))
    else:
        rows, _ = open_rows(store)
        vertex = int(rows.row_vertices()[0]) if source is None else graph.vertex(source, "source")
        row, begins = rows.row(vertex), np.array([vertex])
    values = np.where(row == outside_infinity(row.dtype), np.nan, row.astype(np.float64))
    origin = graph.label(int(begins[0])) if len(begins) == 1 else f"the nearest of {len(begins):,} sources"
    return values, origin, begins


def _route(store: Solution | Paths | Graph, graph: Graph, source: VertexName, target: VertexName) -> Route:
    if isinstance(store, Paths):
        return tree_path(store, source, target, graph=graph)
    return shortest_path(store, source, target, graph=None if store is graph else graph)
