"""Isochrones: the pieces of streets against a walk in small steps, cuts against Shapely, areas, and what is refused."""

import heapq
import warnings
from itertools import pairwise

import geopandas
import numpy as np
import pandas
import pytest
import scipy
import shapely
import shapely.ops
from commands import invoke
from hypothesis import given, settings
from hypothesis import strategies as st

import tilepath
from pipelines import StoreError, build_hierarchy, import_graph, write_graph, write_reverse
from pipelines.reach import areas
from pipelines.reach.limits import parse_limits
from pipelines.reach.reached import cut_lines, reached_pieces
from pipelines.reach.solve import Reach, write_isochrones

# --- Pieces: a walk along halves of units -----------------------------------------------------------------------------


def times(edges, closed, source):
    """Earliest times by a heap; `edges` has for each point its (next point, time)."""
    found, heap = {}, [(0.0, "", source)]
    while heap:
        time, _, point = heapq.heappop(heap)
        if point in found:
            continue
        found[point] = time
        if point == source or point not in closed:
            for after, step in edges.get(point, ()):
                heapq.heappush(heap, (time + step, str(after), after))
    return found


def halves(u, v, weight, edge):
    """The points on an edge that are half a unit apart; of an edge of weight 0, its ends and its middle."""
    return [u, *((edge, i) for i in range(1, 2 * weight or 2)), v]


graphs = st.tuples(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9),
    st.sets(st.integers(0, 4)),
    st.integers(0, 4),
    st.lists(st.integers(1, 20), min_size=1, max_size=3, unique=True).map(sorted),
    st.booleans(),
)


@settings(max_examples=50)
@given(graphs)
def test_pieces_are_the_halves_that_a_walk_reaches(graph):
    """`edges` (u, v, weight) have an arc, or in an undirected graph two arcs; weights, and so meetings, are halves."""
    edges, closed, source, limits, undirected = graph
    limits = np.array(limits) / 2
    arcs, steps, walked = [], {}, {}
    for edge, (u, v, weight) in enumerate(edges):
        for turned in (False, True)[: 1 + undirected]:
            arcs.append((v, u, weight) if turned else (u, v, weight))
        points = halves(u, v, weight, edge)
        for i in range(len(points) - 1):
            step = 0.5 if weight else 0.0
            steps.setdefault(points[i], []).append((points[i + 1], step))
            if undirected:
                steps.setdefault(points[i + 1], []).append((points[i], step))
            walked[edge, i] = (points[i], points[i + 1])
    reached = times(steps, closed, source)

    def leaves(point):
        """When a walk leaves a point, +inf if it does not."""
        there = point in reached and (point == source or point not in closed)
        return reached[point] if there else np.inf

    tails, heads, weights = np.array(arcs).T
    leaving = np.array([leaves(vertex) for vertex in range(5)])
    pieces = reached_pieces(tails, heads, weights, leaving, limits, undirected)
    found = {}
    for arc, first, last, band, begin, end in zip(*pieces, strict=True):
        edge, turned = divmod(arc, 2) if undirected else (arc, 0)
        weight = edges[edge][2]
        count = 2 * weight or 2
        low, high = np.array([first, last]) * count
        assert begin <= end <= limits[band]
        assert band == 0 or begin >= limits[band - 1]
        assert begin == leaving[tails[arc]] + first * weight
        assert end == pytest.approx(leaving[tails[arc]] + last * weight)
        for i in range(round(low), round(high)):
            place = (edge, count - 1 - i if turned else i)
            found.setdefault(place, []).append(band)
        assert (round(low), round(high)) == pytest.approx((low, high))
    expected = {}
    for place, (a, b) in walked.items():
        when = min(leaves(a), leaves(b)) if undirected else leaves(a)
        when += 0.5 if edges[place[0]][2] else 0.0
        if when <= limits[-1]:
            expected[place] = int(np.searchsorted(limits, when))
    assert found == {place: [band] for place, band in expected.items()}


whole = st.integers(0, 3)
lines = st.lists(st.lists(st.tuples(whole, whole), min_size=2, max_size=5), min_size=1, max_size=4)
shares = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 1), st.floats(0, 1)).map(lambda s: (s[0], min(s[1:]), max(s[1:]))),
    min_size=1,
    max_size=6,
)


@settings(max_examples=50)
@given(lines, shares, st.sampled_from([(1.0, 1.0), (2.0, 0.5)]))
def test_cuts_are_those_of_shapely(lines, shares, scale):
    scale = np.array(scale)
    offsets = np.concatenate([[0], np.cumsum([len(line) for line in lines])])
    points = np.concatenate([np.array(line, float) for line in lines])
    which, first, last = (np.array(column) for column in zip(*shares, strict=True))
    which %= len(lines)
    cut = cut_lines(offsets, points, scale, which, first, last)
    for i, line in enumerate(which.tolist()):
        found = shapely.LineString(cut.points[cut.offsets[i] : cut.offsets[i + 1]] * scale)
        given = shapely.LineString(np.array(lines[line], float) * scale)
        expected = shapely.ops.substring(given, first[i], last[i], normalized=True)
        assert found.length == pytest.approx((last[i] - first[i]) * given.length, abs=1e-9)
        assert found.hausdorff_distance(expected) < 1e-9
        if first[i] == 0:
            assert tuple(cut.points[cut.offsets[i]]) == lines[line][0]
        if last[i] == 1:
            assert tuple(cut.points[cut.offsets[i + 1] - 1]) == lines[line][-1]


# --- Of a network -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cross(tmp_path_factory):
    """Four streets of 100 m, each with a bend, from a crossing at (0, 0); 10 s each; the eastern one is one-way."""
    arms = [[(0, 0), (50, 0), (100, 0)], [(0, 0), (0, 50), (0, 100)], [(0, 0), (-100, 0)], [(0, -100), (0, 0)]]
    frame = geopandas.GeoDataFrame(
        {"oneway": ["yes", "no", "no", "no"], "time": [10, 10, 10, 10]},
        geometry=[shapely.LineString(arm) for arm in arms],
        crs="EPSG:25833",
    )
    return import_graph(frame, tmp_path_factory.mktemp("cross") / "g", weight="time", unit="s")


def test_streets_are_cut_where_the_time_ends(cross):
    edges = tilepath.isochrones(cross, (1.0, 2.0), [6, 3, 100], kind="edges")
    assert edges.crs == "EPSG:25833"
    assert edges.attrs == {"unit": "s"}
    # The place is moved to the crossing, although the end of the one-way street is not in the component.
    north = edges[(edges["tail"] == 0) & (edges["head"] == 2)].sort_values("begin")
    assert north.geometry.to_wkt().tolist() == [
        "LINESTRING (0 0, 0 30)",
        "LINESTRING (0 30, 0 50, 0 60)",
        "LINESTRING (0 60, 0 100)",
    ]
    assert north[["limit", "begin", "end"]].to_numpy().tolist() == [[3, 0, 3], [6, 3, 6], [100, 6, 10]]
    assert (edges["end"] <= edges["limit"]).all()
    south = edges[(edges["tail"] == 0) & (edges["head"] == 4)]
    assert south.geometry.iloc[0].coords[0] == (0, 0)  # against its line


def test_areas_and_their_columns(cross):
    for kind, area in ("convex", 60 * 60 * 2), ("concave", None), ("buffers", None):
        width = 5 if kind == "buffers" else None
        found = tilepath.isochrones(cross, (1.0, 2.0), "6,3", kind=kind, width=width)
        assert found.columns.tolist() == ["source", "limit", "moved", "geometry"]
        assert found["limit"].tolist() == [6, 3]
        assert found["moved"].tolist() == [pytest.approx(5**0.5)] * 2
        assert found.geometry.is_valid.all()
        if area is not None:
            assert found.area.tolist() == [pytest.approx(area), pytest.approx(area / 4)]
        if kind == "buffers":
            assert found.geometry.iloc[0].covers(found.geometry.iloc[1])
            arms = tilepath.isochrones(cross, (1.0, 2.0), 6, kind="edges").union_all()
            assert found.geometry.iloc[0].buffer(0.1).covers(arms.buffer(4.8))
            assert not found.geometry.iloc[0].intersects(shapely.Point(30, 30))


@pytest.fixture(scope="module")
def two_towns(tmp_path_factory):
    """Two equal towns of 60 random crossings each, 9 km apart; streets to the five nearest crossings, 1 s a metre."""
    rng = np.random.default_rng(3)
    town = rng.uniform(0, 1000, (60, 2))
    near = np.argsort(np.linalg.norm(town[:, None] - town, axis=2), axis=1)[:, 1:6]
    lines = [
        shapely.LineString([town[u] + (e, 0), town[v] + (e, 0)]) for e in (0, 9000) for u in range(60) for v in near[u]
    ]
    frame = geopandas.GeoDataFrame(geometry=lines, crs="EPSG:25833")
    with pytest.warns(UserWarning, match="the largest strongly connected component has only"):
        return import_graph(frame, tmp_path_factory.mktemp("towns") / "g", weight="geometry", unit="m")


def test_the_area_of_several_sources_is_the_union_of_their_areas(two_towns):
    places = [(400, 500), (9600, 500)]  # the towns are not joined, so that both places would move to one of them
    nearest = [np.linalg.norm(two_towns.coordinates() - place, axis=1).argmin() for place in places]
    sources = tilepath.positions(np.array(nearest))
    for kind in "concave", "convex":
        alone = tilepath.isochrones(two_towns, sources, [200, 400], kind=kind).dissolve("limit")
        together = tilepath.isochrones(two_towns, sources, [200, 400], kind=kind, together=True).set_index("limit")
        assert together.geometry.symmetric_difference(alone.geometry, align=True).area.max() < 1e-6
        assert (together.geometry.count_geometries() == 2).all()


def test_each_area_contains_the_smaller_ones(two_towns):
    areas = (
        tilepath.isochrones(two_towns, (400.0, 500.0), list(range(150, 700, 50)), concavity=0.1).geometry[::-1].tolist()
    )
    assert areas[0].area > 1000
    for smaller, larger in pairwise(areas):
        assert smaller.difference(larger).area < 1e-6
    assert not any(len(part.interiors) for area in areas for part in shapely.get_parts(area))


def test_hulls_contain_dead_ends(tmp_path):
    """Blocks of 50 m with two long straight dead ends; and an oblique straight street far away, which has no area."""
    grid = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1) * 50.0
    lines = [*zip(grid[:, :-1].reshape(-1, 2), grid[:, 1:].reshape(-1, 2), strict=True)]
    lines += zip(grid[:-1].reshape(-1, 2), grid[1:].reshape(-1, 2), strict=True)
    lines += [((200, 200), (500, 210)), ((200, 0), (480, 20)), ((500, 210), (933, 431.1))]
    frame = geopandas.GeoDataFrame(geometry=[shapely.LineString(line) for line in lines], crs="EPSG:25833")
    graph = import_graph(frame, tmp_path / "g", weight="geometry", unit="m")
    near, far = (np.linalg.norm(graph.coordinates() - at, axis=1).argmin() for at in ((200, 100), (933, 431.1)))
    area = tilepath.isochrones(graph, tilepath.positions(near), 400).geometry[0]
    streets = tilepath.isochrones(graph, tilepath.positions(near), 400, kind="edges").union_all()
    assert streets.length > 2500
    assert streets.difference(area.buffer(0.01)).length == 0
    gaps, more = [], areas._with_more_points
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(areas, "_with_more_points", lambda *given: gaps.append(given[2]) or more(*given))
        for most in 500, 10:
            patch.setattr(areas, "MOST_GAPS", most)
            tilepath.isochrones(graph, tilepath.positions(near), 400)
    low, high = np.reshape(streets.bounds, (2, 2))
    assert gaps == pytest.approx([25, np.hypot(*(high - low)) / 10], rel=1e-3)
    for kind in "concave", "convex":
        assert tilepath.isochrones(graph, tilepath.positions(far), 321.7, kind=kind).is_empty.tolist() == [True]


def test_buffers_are_fifty_metres_wide_on_the_ground(tmp_path):
    """A street of 400 m in New York, by 250 m alone, with other limits, and in other systems."""
    ends = geopandas.GeoSeries.from_xy([585000, 585400], [4511000, 4511000], crs="EPSG:26918")
    found = []
    for crs in "EPSG:26918", "EPSG:2263", "EPSG:4326", "EPSG:3857":
        street = geopandas.GeoDataFrame(geometry=[shapely.LineString(ends.to_crs(crs).tolist())], crs=crs)
        graph = import_graph(street.assign(metres=400), tmp_path / crs[5:], weight="metres", unit="m")
        for within in [250], [250, 300], [1000, 250]:
            areas = tilepath.isochrones(graph, "0", within, kind="buffers").set_index("limit")
            found.append(areas.to_crs(26918).geometry[250])
    sizes = np.array([area.area for area in found])
    np.testing.assert_allclose(sizes, 250 * 100 + 50**2 * np.pi, rtol=0.02)  # quarters of circles have three sides
    np.testing.assert_allclose(sizes, sizes[0], rtol=2e-3)
    places = np.array([[0.0, 0], [400, 300], [4000, 3000]])  # in no known system: 1 % of 5,000
    plain = write_graph(
        tmp_path / "g", np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([500.0, 4500]), coordinates=places, crs=""
    )
    for within in [250], [250, 4000]:
        area = tilepath.isochrones(plain, "0", within, kind="buffers").set_index("limit").geometry[250]
        assert area.area == pytest.approx(250 * 100 + 50**2 * np.pi, rel=0.02)


def test_from_several_places(cross):
    names = ["1", "2", "3", "4"]  # the ends; the first has no way out
    found = tilepath.isochrones(cross, names, 5, kind="edges")
    assert {*found["source"]} == {"2", "3", "4"}
    assert "moved" not in tilepath.isochrones(cross, names, 5).columns
    together = tilepath.isochrones(cross, names, 20, kind="edges", together=True)
    assert {*together["source"]} == {"the nearest of 4"}
    assert together["end"].max() == 20  # to the end of the one-way street
    assert tilepath.isochrones(cross, "2", 5).geometry.is_empty.tolist() == [True]  # a straight street has no area
    empty = tilepath.isochrones(cross, ["2", "3"], 5, together=True)
    assert [area.wkt for area in empty.geometry] == ["POLYGON EMPTY"]


def test_closed_vertices_are_reached_and_left_only_by_those_who_start_there(tmp_path):
    places, through = np.array([[0.0, 0], [300, 0], [600, 0]]), np.array([False, False, True])
    graph = write_graph(
        tmp_path / "g", np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([1, 1]), coordinates=places, through=through
    )
    for source, arcs in ("0", [(0, 1)]), ("1", [(1, 2)]):
        edges = tilepath.isochrones(graph, source, 9, kind="edges")
        assert list(zip(edges["tail"], edges["head"], strict=True)) == arcs


@pytest.mark.parametrize("directed", [True, False])
def test_from_where_a_place_is_reached(tmp_path, directed):
    """Distances are those of SciPy in the transposed matrix. Pieces lead to the source, and are cut at their start."""
    rng = np.random.default_rng(4)
    places, weights = rng.uniform(0, 100, (12, 2)), rng.integers(1, 9, (12, 12)) * (rng.random((12, 12)) < 0.2)
    np.fill_diagonal(weights, 0)
    weights = weights if directed else np.triu(weights) + np.triu(weights).T
    matrix = scipy.sparse.csr_array(weights.astype(float))
    graph = write_graph(
        tmp_path / "g", matrix.indptr, matrix.indices, matrix.data, directed=directed, coordinates=places
    )
    to = scipy.sparse.csgraph.dijkstra(matrix.T, indices=5)
    pieces = tilepath.isochrones(graph, "5", [4, 11], kind="edges", reverse=True)
    found = {}
    for limit, tail, head, begin, end, line in pieces.drop(columns="source").itertuples(index=False):
        u, v = int(tail), int(head)
        assert begin == pytest.approx(min(limit, to[v] + weights[u, v])) or not directed
        assert end == pytest.approx(max(4 * (limit == 11), to[v]))
        shares = (np.array([[begin], [end]]) - to[v]) / weights[u, v]  # of the arc, from its head
        np.testing.assert_allclose(line.coords, places[v] + shares * (places[u] - places[v]))
        found.setdefault((u, v), []).append(begin - end)
    there = [(u, v) for u, v in np.argwhere(weights).tolist() if to[v] < 11]
    if directed:
        assert {arc: sum(parts) for arc, parts in found.items()} == {
            (u, v): pytest.approx(min(11 - to[v], weights[u, v])) for u, v in there
        }
        assert len(there) > len(tilepath.isochrones(graph, "5", 11, kind="edges"))
    for kind in "convex", "buffers":
        area, back = (
            tilepath.isochrones(each, "5", 11, kind=kind, reverse=each is graph)
            for each in (graph, write_reverse(graph, tmp_path / "back", overwrite=True))
        )
        assert area.geometry[0].equals(back.geometry[0])


def test_hierarchies_and_degrees(cross, tmp_path, client):
    hierarchy = build_hierarchy(client, cross, tmp_path / "h")
    expected = tilepath.isochrones(cross, (1.0, 2.0), "0.1min", kind="buffers")
    found = tilepath.isochrones(hierarchy, (1.0, 2.0), "0.1min", kind="buffers")
    assert found.equals(expected)
    assert expected["limit"].tolist() == [0.1]
    assert expected.attrs == {"unit": "min"}
    # The same streets at 60 degrees north: a buffer is as wide as it is high.
    places = np.array([[13, 60], [13.01, 60], [13, 60.005]])
    graph = write_graph(
        tmp_path / "g", np.array([0, 2, 2, 2]), np.array([1, 2]), np.array([9.0, 9.0]), coordinates=places
    )
    area = tilepath.isochrones(graph, "0", 9, kind="buffers", width=30)
    assert area.crs == "EPSG:4326"
    metres = area.to_crs("EPSG:32633")
    streets = shapely.MultiLineString([places[[0, 1]], places[[0, 2]]])
    streets = geopandas.GeoSeries([streets], crs="EPSG:4326").to_crs("EPSG:32633")
    assert metres.symmetric_difference(streets.buffer(30)).area[0] < 0.01 * metres.area[0]


def test_what_cannot_be_reached(cross, tmp_path):
    wrong = [
        ({"within": "5km"}, r"is in km, but distances are in s; choose one of ms, s"),
        ({"within": "5parsec"}, r"is in 'parsec', which is no unit; units are"),
        ({"within": [0, 5]}, "give numbers above 0"),
        ({"within": "a"}, "give numbers, each with a unit or without"),
        ({"within": "1min,2h"}, "in min and in h; give all numbers in one unit"),
        # 60 has the unit of the network, not that of the text beside it.
        ({"within": [60, "2min"]}, "some have no unit; give every entry a unit, or none"),
        ({"within": [None]}, r"within \(--within\) is \[None\]; give numbers"),
        ({"kind": "round"}, r"kind \(--kind\) is 'round'; choose one of concave"),
        ({"concavity": 2}, r"concavity \(--concavity\) is 2"),
        ({"concavity": 0.3, "kind": "convex"}, r"concavity \(--concavity\) goes with concave hulls, not with convex"),
        ({"width": 0}, r"width \(--width\) is 0"),
        ({"width": 5}, r"width \(--width\) goes with buffers, not with concave"),
        ({"sources": (500.0, 0.0), "snap_limit": 10}, "more than the limit"),
    ]
    for options, says in wrong:
        with pytest.raises(ValueError, match=says):
            tilepath.isochrones(cross, **{"sources": "0", "within": 5, **options})
    with pytest.raises(StoreError, match="no vertex"):
        tilepath.isochrones(cross, "nowhere", 5)
    bare = write_graph(tmp_path / "bare", np.array([0, 1, 1]), np.array([1]), np.array([1.0]))
    with pytest.raises(ValueError, match="has no coordinates, so that nothing can be drawn"):
        tilepath.isochrones(bare, "0", 5)
    places = np.array([[0.0, 0], [1, 0]])
    negative = write_graph(tmp_path / "minus", np.array([0, 1, 1]), np.array([1]), np.array([-1.0]), coordinates=places)
    with pytest.raises(ValueError, match="negative weights"):
        tilepath.isochrones(negative, "0", 5)
    with pytest.warns(UserWarning, match="moved past a nearer vertex"):
        tilepath.isochrones(cross, (99.0, 0.0), 5)
    with pytest.raises(ValueError, match="'weight', which is no unit"):
        parse_limits("5min", "weight")


def test_limits_without_a_unit_may_be_meant_in_minutes(tmp_path):
    count = 500
    rows = np.arange(count + 1), (np.arange(count) + 1) % count, np.ones(count)
    places = np.stack([np.arange(count), np.zeros(count)], axis=1)
    seconds = write_graph(tmp_path / "s", *rows, coordinates=places, weight_unit="s")
    text = r"within \(--within\) is 1,2,3 in s, the unit of the network, .*; write '1,2,3min' for minutes, or '1,2,3s'"
    with pytest.warns(UserWarning, match=text):
        tilepath.isochrones(seconds, "0", [1, 2, 3])
    told = invoke("isochrones", seconds.path, tmp_path / "a.gpkg", "--from", "0", "--within", "3")
    assert "write '3min' for minutes" in " ".join(told.output.split())
    minutes = write_graph(tmp_path / "min", *rows, coordinates=places, weight_unit="min")
    long = write_graph(tmp_path / "long", *rows[:2], 100 * np.ones(count), coordinates=places, weight_unit="s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for network, within in (
            (long, 90),
            (seconds, "1,2,3s"),
            (seconds, ["1s", "3 s"]),
            (seconds, [3, 59]),
            (minutes, 3),
        ):
            assert len(tilepath.isochrones(network, "0", within, kind="edges")) > 0


def test_maps_have_the_names_of_the_sources(cross, tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr("pipelines.reach.solve.picture_graph", lambda *_, marks, **__: kept.append(marks.to_pylist()))
    for sources in ((1.0, 2.0), [(1.0, 2.0), (0.0, 9.0)], {"vertex": ["0"], "id": ["market"]}, "0"):
        given = pandas.DataFrame(sources) if isinstance(sources, dict) else sources
        write_isochrones(Reach(cross, given, "3,6s"), tmp_path / "map.svg")
    assert [[mark["id"] for mark in marks] for marks in kept] == [["source"], ["1", "2"], ["market"], ["0"]]
    assert [marks[0]["vertex"] for marks in kept] == ["0"] * 4


def test_vertices_without_coordinates_are_left_out(tmp_path):
    places = np.array([[0.0, 0], [300, 0], [np.nan, np.nan]])
    graph = write_graph(
        tmp_path / "g", np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([1.0, 1.0]), coordinates=places
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tilepath.isochrones(graph, "0", 9, kind="edges")) == 1


def test_the_command(cross, tmp_path):
    def run(*arguments):
        return invoke("isochrones", cross.path, *arguments)

    out = tmp_path / "o.gpkg"
    told = run(out, "--from", "1,2", "--from", "-99,0", "--within", "3,6")
    assert told.exit_code == 0, told.output
    assert told.output.splitlines() == [
        "source 1,2: moved 2.2 m to vertex 0",
        "source -99,0: moved 1.0 m to vertex 3",
        f"{out}: 4 areas within 3, 6 s of 2 sources",
    ]
    assert geopandas.list_layers(out)["name"].tolist() == ["areas", "edges"]
    assert geopandas.read_file(out, layer="areas")["source"].tolist() == ["1,2", "1,2", "-99,0", "-99,0"]
    (tmp_path / "s.csv").write_text("id,x,y\nhere,1,1\n")
    told = run(tmp_path / "r.geojson", "--from", "1", "--within", "3", "--kind", "edges", "--reverse")
    assert "1 edge within" in told.output  # the end of the one-way street, with which no way begins
    told = run(tmp_path / "o.geojson", "--from-file", tmp_path / "s.csv", "--within", "3", "--kind", "edges")
    assert "4 edges within 3 s of 1 source" in told.output
    assert geopandas.read_file(tmp_path / "o.geojson")["source"].tolist() == ["here"] * 4
    for arguments, says in (
        ([out, "--from", "1,2", "--within", "3"], "exists already"),
        ([tmp_path / "x.tif", "--from", "1,2", "--within", "3"], "choose one"),
        ([tmp_path / "x.gpkg", "--within", "3"], "name the sources"),
        ([tmp_path / "x.gpkg", "--from", "0", "--from", "1,2", "--within", "3"], "only places, or only names"),
    ):
        told = run(*arguments)
        assert told.exit_code != 0
        assert says in told.output + str(told.exception)
