"""Roads at places: which roads meet a geometry of shapely, as GeoPandas has them, or lie nearest to a place."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.files.tables import column_numbers, frame_table, is_among, select_columns
from pipelines.places.by_place import EARTH_RADIUS
from pipelines.places.points import system_of
from pipelines.places.row_names import names_of_shapes
from pipelines.places.single import are_places, is_pair, is_place, whole_row
from pipelines.places.snapping import Network, Snapping, distances_apart, far_away, refuse_exchanged, refuse_outside
from pipelines.places.systems import ON_EARTH, Located, axes_of_pairs, unit_of
from pipelines.stores.coordinates import coordinate_system
from pipelines.stores.graph import DEGREES, Graph
from pipelines.stores.lines import points_along
from pipelines.stores.named_roads import NamedRoads
from pipelines.stores.parallel_roads import line_keys, one_key_each, same_line
from pipelines.stores.road_network import road_network

TOLERANCE = 0.5  # metres that a line may lie beside a road: files round coordinates, and projections do
SHARE = 1e-6  # the same as a share of the extent of the network, if its unit is not known
ROUNDED = 0.04  # part of the tolerance that allows for rounded coordinates: 2 cm
ENDS = 10  # tolerances at each end of a road, at most a quarter of it, that belong to its junctions
MOST_NAMED = 4  # equally near roads that a message names
SLOPE = 20  # roads that meet at an angle of 3 degrees are a tolerance apart 19.1 tolerances from their junction
EQUAL = 0.2  # part of the tolerance by which the distances of equally near roads differ at most: 10 cm
REACH = 19.5  # tolerances from its end, at most, that a line runs along a road which it only touches at the end


class Shapes(NamedTuple):
    """Geometries of shapely: `shapes`; and `axes`, the names of the two numbers of a point, None if there are none."""

    shapes: list[Any]
    axes: tuple[str, str] | None = None


def shapes_of(given: Any, what: str) -> Shapes | None:
    """Return geometries or places, for `roads_at`, as geometries; None if `given` has neither."""
    import shapely

    given = whole_row(given)
    if isinstance(given, shapely.Geometry):
        return Shapes([given])
    if hasattr(given, "geom_type"):
        return Shapes(list(getattr(given, "geometry", given)))
    if (table := frame_table(given)) is not None:
        names = table.column_names
        axes = next((axes for axes in (ON_EARTH, ("x", "y")) if all(is_among(axis, names) for axis in axes)), None)
        if axes is None:
            return None
        chosen = select_columns(table, axes, what)
        columns = [column_numbers(chosen, axis, what) for axis in axes]
        return Shapes(list(shapely.points(*columns)), axes)
    if is_pair(given) or are_places(given):
        return Shapes(list(shapely.points(np.reshape(given, (-1, 2)))))
    if isinstance(given, list | tuple | np.ndarray) and len(given):
        if all(isinstance(each, shapely.Geometry) for each in given):
            return Shapes(list(given))
        if all(map(is_place, given)):
            return Shapes(list(shapely.points(np.array(given, np.float64))))
    return None


def roads_at(graph: Graph, given: Any, what: str, crs: Any = None) -> NamedRoads | None:
    """Return the roads that some geometries meet, in the order of the geometries; None if `given` has no geometries.

    Warns of points that are far from every road, and of geometries that were taken for longitudes and latitudes.

    Parameters
    ----------
    graph : Graph
    given : a geometry of shapely, a list of geometries, a GeoSeries or a GeoDataFrame; or a place, as a point: (lon,
        lat), a list or an array (k, 2) of floats, or a data frame with columns lon and lat, or x and y
        A polygon meets each road that it crosses or touches. A line meets each road that it crosses, and each road
        along which it runs at a distance of at most half a metre (for a road shorter than 10 m, at most a twentieth of
        its length). A line that touches a road only at one of the ends of the road does not meet the road, even if the
        angle between them is only 3 degrees. A line that meets no road by these rules means the most similar road, if
        the two are at most half a metre apart. A point means the nearest road. It is refused if another road is as
        near, up to 10 cm (for a road shorter than 2 m, a twentieth of its length), as at a junction. Geometries
        without a coordinate system are in the coordinates of the graph, as places are (`pipelines.places.systems`).
    what : word for the geometries in messages
    crs : their coordinate system, if `given` does not say it

    Returns
    -------
    NamedRoads
        The ends and the line of each road, and the row and the name of its geometry. A geometry has each of its roads
        once: both arcs of a road have the same line, and parallel roads have other lines.

    Raises
    ------
    ValueError
        The graph has no coordinates; or a geometry meets no road, is as near to several roads, or is probably wrong.
        The message names the row.
    """
    import shapely

    if (given_shapes := shapes_of(given, what)) is None:
        return None
    shapes, graph = given_shapes.shapes, road_network(graph)
    coordinates = graph.coordinates()
    if coordinates is None:
        raise ValueError(f"{what}: {graph.path} has no coordinates; name roads by their two ends, as [('a', 'b')]")
    parts, rows = shapely.get_parts(shapes, return_index=True)
    parts, rows = parts[~shapely.is_empty(parts)], rows[~shapely.is_empty(parts)]
    snapping = Snapping(graph, crs=system_of(given, crs, what))
    axes = given_shapes.axes or axes_of_pairs(graph, snapping.crs)
    inner = shapely.get_coordinates(shapely.point_on_surface(parts))
    places = snapping.located(inner, axes, what)
    roads = _roads_of(graph, coordinates)
    parts = shapely.transform(parts, lambda each: snapping.located(each, axes, what).places * roads.scale)
    nearest = _nearest(roads, places.places)
    if len(nearest):
        apart = _distances_to(roads, nearest, places)
        unit = unit_of(graph, on_the_globe=places.on_the_globe)
        network = Network(coordinates, unit, places.on_the_globe, "road")
        refuse_exchanged(inner, places, apart, axes, network, what)
        apart = np.where(shapely.get_dimensions(parts) == 0, apart, 0)
        refuse_outside(apart, network, what)
        for text in (places.note, far_away(apart, network, what)):
            if text:
                warnings.warn(text, stacklevel=6)
    beside = _tolerance(graph, coordinates, on_the_globe=places.on_the_globe)
    _refuse_ties(graph, coordinates, roads, parts, nearest, beside, rows, what)
    met, near = _met(roads, parts, nearest, beside)
    keys = one_key_each(_keys_of(graph, coordinates, roads, near), [*map(tuple, roads.ends[near].tolist())])
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    each_line = np.array([numbers[key] for key in keys], np.int64)
    pairs = np.unique(np.column_stack([rows[met], roads.ends[near], each_line]), axis=0)  # in the order of the rows
    for row in np.setdiff1d(np.arange(len(shapes)), pairs[:, 0])[:1].tolist():
        raise ValueError(f"{what}, row {row + 1}: no road meets the geometry; move it, or leave the row out")
    names = names_of_shapes(whole_row(given), len(shapes), what)
    by_number = list(numbers)
    lines: list[bytes | None] = [by_number[i] for i in pairs[:, 3].tolist()]
    return NamedRoads(pairs[:, 1], pairs[:, 2], pairs[:, 0], names.take(pa.array(pairs[:, 0])), lines)


def lines_like(
    graph: Graph, given: Any, tails: np.ndarray, heads: np.ndarray, what: str, crs: Any = None
) -> list[bytes | None]:
    """Return, for each row of a table of arcs, the key of the line between its ends that is most like its geometry.

    None stands for a row without a geometry, or whose ends no arc joins.
    """
    import shapely

    shapes = np.array([given.geometry] if given.ndim == 1 else given.geometry, object)
    found: list[bytes | None] = [None] * len(shapes)
    there = np.flatnonzero([isinstance(each, shapely.Geometry) and not each.is_empty for each in shapes])
    graph = road_network(graph)
    coordinates = graph.coordinates()
    if coordinates is None or not len(there):
        return found
    snapping = Snapping(graph, crs=system_of(given, crs, what))
    axes = axes_of_pairs(graph, snapping.crs)
    shapes[there] = shapely.transform(shapes[there], lambda each: snapping.located(each, axes, what).places)
    rows_tails = np.repeat(np.arange(graph.n), np.diff(graph.indptr()))
    n, rows_heads = np.int64(graph.n), graph.indices()
    wanted = tails.astype(np.int64) * n + heads
    arcs = np.flatnonzero(np.isin(rows_tails * n + rows_heads, wanted[there]))
    offsets, points = points_along(graph.lines(), coordinates, arcs, rows_tails[arcs], rows_heads[arcs])
    keys = line_keys(graph.lines(), coordinates, arcs, rows_tails[arcs], rows_heads[arcs])
    lines = shapely.linestrings(points, indices=np.repeat(np.arange(len(arcs)), np.diff(offsets)))
    between: dict[int, list[int]] = {}
    for i, pair in enumerate((rows_tails[arcs] * n + rows_heads[arcs]).tolist()):
        between.setdefault(pair, []).append(i)
    for row in there.tolist():
        if those := between.get(int(wanted[row])):
            unlike = shapely.hausdorff_distance(lines[those], shapes[row]) if len(those) > 1 else np.zeros(1)
            found[row] = keys[those[int(unlike.argmin())]]
    return found


class _Roads(NamedTuple):
    """The arcs of a network as lines, in a plane where x and y are equally long: coordinates times `scale`.

    `arcs` (k,) has the position of each arc in the network. `ends` (k, 2) has its vertices in ascending order, so that
    both arcs of a road have equal ends. `tree` finds lines by their place.
    """

    arcs: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    tree: Any
    scale: np.ndarray


def _roads_of(graph: Graph, coordinates: np.ndarray) -> _Roads:
    """Return all arcs that have coordinates, without loops."""
    import shapely

    heads = graph.indices()
    tails = np.repeat(np.arange(graph.n), np.diff(graph.indptr()))
    there = np.isfinite(coordinates).all(axis=1)
    arcs = np.flatnonzero(there[tails] & there[heads] & (tails != heads))
    offsets, points = points_along(graph.lines(), coordinates, arcs, tails[arcs], heads[arcs])
    scale = np.ones(2)
    if coordinate_system(graph, coordinates) == DEGREES:  # so that the nearest road is nearest on the globe, too
        scale[0] = np.cos(np.radians(np.nanmean(coordinates[:, 1])))
    lines = shapely.linestrings(points * scale, indices=np.repeat(np.arange(len(arcs)), np.diff(offsets)))
    return _Roads(arcs, np.sort(np.stack([tails, heads], axis=1)[arcs], axis=1), lines, shapely.STRtree(lines), scale)


def _keys_of(graph: Graph, coordinates: np.ndarray, roads: _Roads, numbers: np.ndarray) -> list[bytes]:
    """Return the keys of the lines of some roads."""
    return line_keys(graph.lines(), coordinates, roads.arcs[numbers], *roads.ends[numbers].T)


def _nearest(roads: _Roads, places: np.ndarray) -> np.ndarray:
    """Return the road nearest to each place, none if there are no roads."""
    import shapely

    if not len(roads.lines):
        return np.zeros(0, np.int64)
    return roads.tree.nearest(shapely.points(places * roads.scale))


def _distances_to(roads: _Roads, nearest: np.ndarray, places: Located) -> np.ndarray:
    """Return the distance of each place from its nearest road, as `distances_apart` does."""
    import shapely

    lines, points = roads.lines[nearest], shapely.points(places.places * roads.scale)
    on_road = shapely.line_interpolate_point(lines, shapely.line_locate_point(lines, points))
    there = shapely.get_coordinates(on_road) / roads.scale
    return distances_apart(places.places, there, on_the_globe=places.on_the_globe)


def _refuse_ties(
    graph: Graph,
    coordinates: np.ndarray,
    roads: _Roads,
    parts: np.ndarray,
    nearest: np.ndarray,
    beside: float,
    rows: np.ndarray,
    what: str,
) -> None:
    """Raise ValueError if another road is as near to a point as its nearest road: rounding would choose one of them.

    Both directions of a road are one road here: they are closed together.
    """
    import shapely

    points = np.flatnonzero(shapely.get_dimensions(parts) == 0)[: len(nearest)]
    chosen = nearest[points]
    lines, places = roads.lines[chosen], parts[points]
    reach = shapely.distance(lines, places) + np.minimum(EQUAL * beside, shapely.length(lines) / SLOPE)
    point, near = roads.tree.query(places, "dwithin", distance=reach)
    keys = [_keys_of(graph, coordinates, roads, each) for each in (near, chosen[point])]
    for i in point[[not same_line(one, other) for one, other in zip(*keys, strict=True)]][:1].tolist():
        those = near[point == i]
        count = len(set(one_key_each(_keys_of(graph, coordinates, roads, those), [0] * len(those))))
        ends = np.unique(roads.ends[those], axis=0)
        named = [" - ".join(graph.names(each)) for each in ends[:MOST_NAMED]]
        others = f" and {len(ends) - MOST_NAMED:,} more" if len(ends) > MOST_NAMED else ""
        raise ValueError(
            f"{what}, row {rows[points[i]] + 1}: {count} roads are equally near to the place ({', '.join(named)}"
            f"{others}); give a place in the middle of the road, its two ends as names, or its line"
        )


def _met(roads: _Roads, parts: np.ndarray, nearest: np.ndarray, beside: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which part meets which road: pairs of the number of a part and the number of a road.

    Parameters
    ----------
    parts : points, lines and polygons, in the plane of the roads
    nearest : the road nearest to each part
    beside : how far a line may lie beside a road
    """
    import shapely

    kinds, lines = shapely.get_dimensions(parts), roads.lines
    met, near = roads.tree.query(parts, "dwithin", distance=np.where(kinds == 1, beside, 0))
    kept = kinds[met] == 2
    for i in np.flatnonzero(kinds[met] == 1).tolist():
        kept[i] = _meets(parts[met[i]], lines[near[i]], beside)
    for part in np.setdiff1d(met[kinds[met] == 1], met[kept]).tolist():  # a short road, whose rounded line is given
        those = np.flatnonzero(met == part)
        unlike = shapely.hausdorff_distance(lines[near[those]], parts[part])
        kept[those[unlike <= min(beside, unlike.min())]] = True
    spots = np.flatnonzero(kinds == 0)[: len(nearest)]
    return np.concatenate([met[kept], spots]), np.concatenate([near[kept], nearest[spots]])


def _meets(line: Any, road: Any, beside: float) -> bool:
    """Return whether a line crosses a road between its junctions, or runs along it at a distance of at most `beside`.

    The distance is at most 1 / `SLOPE` of the length of the road, so that a short road differs from its neighbours.
    """
    import shapely
    from shapely.ops import substring

    length = road.length
    cut = min(ENDS * beside, length / 4)
    if line.dwithin(substring(road, cut, length - cut), min(ROUNDED * beside, length / (5 * SLOPE))):
        return True
    apart = min(beside, length / SLOPE)
    reach = REACH * apart
    low, high = np.add(np.reshape(road.bounds, (2, 2)), [[-2 * apart], [2 * apart]])
    near = shapely.clip_by_rect(line, *low, *high).buffer(apart)
    for stretch in shapely.get_parts(shapely.line_merge(road.intersection(near))):
        if stretch.geom_type == "LineString":
            at = shapely.line_locate_point(road, shapely.points(shapely.get_coordinates(stretch)[[0, -1]]))
            first, last = at.min(), at.max()
            if last >= reach and first <= length - reach:
                return True
    return False


def _tolerance(graph: Graph, coordinates: np.ndarray, *, on_the_globe: bool) -> float:
    """Return how far a line may lie beside a road, in units of the coordinates (on the globe, degrees of latitude)."""
    if on_the_globe:
        return TOLERANCE / (EARTH_RADIUS * np.pi / 180)
    if unit_of(graph, on_the_globe=False):
        return TOLERANCE
    return SHARE * float(np.ptp(coordinates[np.isfinite(coordinates).all(axis=1)], axis=0).max(initial=0))
