"""Roads from layers of lines, and graphs as layers: vertices, directions, lengths and lines, and what is refused."""

import shutil
from types import SimpleNamespace

import geopandas
import networkx as nx
import numpy as np
import pandas
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import (
    StoreError,
    export_store,
    import_graph,
    od,
    open_graph,
    positions,
    write_forest,
    write_graph,
    write_reverse,
)
from pipelines.files.layers import write_layers
from pipelines.formats.graphs import FormatError
from pipelines.formats.graphs.edge_lines import line_in_text, stored_order
from pipelines.stores.lines import points_along
from tilepath.cli import tilepath

PLANE = "EPSG:6933"  # of the whole world, in metres


def layer(*lines, crs=PLANE, **columns):
    return geopandas.GeoDataFrame(columns, geometry=[shapely.LineString(line) for line in lines], crs=crs)


# The first leads north by a bend, the second back straight, the third goes on to the east.
NORTH, BACK, EAST = [(0, 0), (3, 4), (3, 10)], [(3, 10), (0, 0)], [(3, 10), (8, 10)]


def arcs_of(graph):
    """Each arc as (points from tail to head, weight), from places and lines."""
    indptr, heads, weights = graph.indptr(), graph.indices(), graph.weights()
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    offsets, points = points_along(graph.lines(), graph.coordinates(), np.arange(graph.m), tails, heads)
    found = []
    for arc in range(graph.m):
        line = points[offsets[arc] : offsets[arc + 1]]
        assert (line[[0, -1]] == graph.coordinates()[[tails[arc], heads[arc]]]).all()
        found.append((tuple(map(tuple, line.tolist())), weights[arc].item()))
    return sorted(found)


def classes_by_weight(graph):
    """The class of the road of each weight; None if it is not known."""
    classes = graph.classes()
    names = [*classes.names, None]
    pairs = {(weight, names[k]) for weight, k in zip(graph.weights().tolist(), classes.of_arcs.tolist(), strict=True)}
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


def as_points(line):
    return tuple((float(x), float(y)) for x, y in line)


def test_roads_join_where_they_end_and_lead_both_ways(load):
    told = []
    graph = load(layer(NORTH, BACK, EAST), report=told.append)
    both = [(NORTH, 11.0), (BACK, np.hypot(3, 10)), (EAST, 5.0)]
    expected = [(as_points(line[::step]), length) for line, length in both for step in (1, -1)]
    assert arcs_of(graph) == sorted(expected)
    assert (graph.n, graph.directed, graph.weight_unit, graph.crs) == (3, False, "m", PLANE)
    assert told == [
        "the GeoDataFrame: 3 lines, joined where they end, in both directions, weights are the lengths of the lines in "
        "m, EPSG:6933"
    ]
    graph.verify()


@pytest.mark.parametrize(
    ("entries", "ways"),
    [
        (["yes", "no", "-1"], (1, 0, -1)),
        ([True, False, None], (1, 0, 0)),
        ([1, 0, -1], (1, 0, -1)),
        ([1.0, float("nan"), -1.0], (1, 0, -1)),
        (["Y", "N", "-1"], (1, 0, -1)),
        (["F", "B", "T"], (1, 0, -1)),  # as Geofabrik codes them
    ],
)
def test_one_way_roads(load, entries, ways):
    lines = [NORTH, BACK, EAST]
    graph = load(layer(*lines, Oneway=entries, cost=[1, 2, 3]), weight="cost")
    steps = {1: (1,), -1: (-1,), 0: (1, -1)}
    expected = [(as_points(lines[i][::s]), i + 1) for i in range(3) for s in steps[ways[i]]]
    assert arcs_of(graph) == sorted(expected)
    assert graph.directed


def test_columns_of_ends_name_the_vertices(load):
    named = layer(NORTH, BACK, EAST, u=[70, 9, 9], v=[9, 70, 8], length=[1.5, 2.5, 3.5]).set_index(["u", "v"])
    graph = load(named)
    assert graph.names(range(3)) == ["70", "9", "8"]
    assert arcs_of(graph) == sorted((as_points(line), w) for line, w in ((NORTH, 1.5), (BACK, 2.5), (EAST, 3.5)))
    # These columns do not agree with the lines, so they are not of vertices.
    streets = layer(NORTH, BACK, EAST, **{"from": ["A", "A", "A"], "to": ["B", "C", "D"]})
    assert load(streets).labels() is None
    with pytest.raises(FormatError, match=r"row 1 \(from 0\): 'v' is missing"):
        load(layer(NORTH, EAST, a=["a", "b"], v=["b", None]), columns=["a", "v"])
    with pytest.raises(FormatError, match=r"row 1 \(from 0\): 'u' is missing; fill it in, or leave the row out"):
        load(layer(NORTH, EAST, u=[70, None], v=[9, 8]))  # of OSMnx, whose ids are wanted
    with pytest.warns(UserWarning, match=r"u and v are not read, since 9 is in several places, such as in row 1"):
        assert load(layer(NORTH, EAST, u=[70, 8], v=[9, 9])).labels() is None
    assert load(layer(NORTH, EAST, **{"from": ["A", None], "to": ["B", "C"]})).labels() is None
    assert load(layer(NORTH, EAST, a=[1, 2], b=[2, 3], t=[5, 6]), columns=["a", "b", "t"]).weights().tolist() == [5, 6]


def test_one_way_roads_of_osmnx(load):
    """OSMnx's undirected layer has a line for each edge, in the direction from -> to; its frames one per direction."""
    told = []
    edges = layer(
        NORTH, EAST, u=[1, 2], v=[2, 3], oneway=[False, True], length=[3, 4], **{"from": [1, 2], "to": [2, 3]}
    )
    graph = load(edges, report=told.append)
    assert [graph[vertex] for vertex in "123"] == [["2"], ["1", "3"], []]
    assert "1 of them one-way by oneway, the others in both directions" in told[0]
    # The street from 1 to 3 is cut off in one direction.
    lines = layer(NORTH, NORTH[::-1], EAST, [(0, 0), (8, 10)], u=[1, 2, 2, 1], v=[2, 1, 3, 3], length=[3, 3, 4, 5])
    graph = load(lines.assign(oneway=[False, False, True, True]), report=told.append)
    assert (graph.m, [graph[vertex] for vertex in "123"]) == (4, [["2", "3"], ["1", "3"], []])
    assert "a line for each direction of the others" in told[1]
    with pytest.warns(UserWarning, match=r"but 1 of these rows, such as row 3 \(from 0\), lack the other"):
        assert load(lines.assign(oneway=["no", "no", "yes", "no"])).m == 4


def test_one_way_roads_of_tables(load, tmp_path):
    told = []
    table = pandas.DataFrame(
        {"u": ["a", "b", "c"], "v": ["b", "c", "d"], "oneway": ["no", "yes", "-1"], "w": [1, 2, 3]}
    )
    graph = load(table, weight="w", report=told.append)
    assert {vertex: graph[vertex] for vertex in "abcd"} == {"a": ["b"], "b": ["a", "c"], "c": [], "d": ["c"]}
    assert graph.weights().sum() == 7
    assert "2 of them one-way by oneway, the others in both directions" in told[0]
    assert load(table, weight="w", directed=True).m == 3
    assert load(table.iloc[[0, 0]].assign(u=["a", "b"], v=["b", "a"]), weight="w").m == 2
    table.to_parquet(tmp_path / "t.parquet")
    assert load(tmp_path / "t.parquet", weight="w", report=told.append).m == 3
    assert told[1].endswith("; oneway is not read, each row leads from tail to head")
    numbers = pandas.DataFrame(
        {"source": [0, 1], "target": pandas.Series([1, 2], dtype="int32"), "oneway": [False, True]}
    )
    assert load(numbers).m == 3
    with pytest.warns(UserWarning, match=r"row 0 \(from 0\): 'oneway' is 'x', so directions are not read"):
        assert load(table.assign(oneway="x"), weight="w").m == 3


places = st.tuples(st.integers(0, 2), st.integers(0, 2))
roads = st.lists(
    st.tuples(st.lists(places, min_size=2, max_size=4), st.sampled_from(["yes", "no", "-1"]), st.integers(1, 3)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=12)
@given(roads, st.booleans(), st.booleans())
def test_any_roads_keep_their_lines_and_weights(tmp_path_factory, roads, simplify, sorted_rows):
    frame = layer(*(line for line, _, _ in roads), oneway=[way for _, way, _ in roads], w=[w for _, _, w in roads])
    arcs = []
    for line, way, weight in roads:
        arcs += [(as_points(line), weight)] if way != "-1" else []
        arcs += [(as_points(line[::-1]), weight)] if way != "yes" else []
    if simplify:
        best = {}
        for points, weight in arcs:
            ends = points[0], points[-1]
            if ends[0] != ends[1] and (ends not in best or weight < best[ends][1]):
                best[ends] = points, weight
        arcs, sorted_rows = list(best.values()), True
    path = tmp_path_factory.mktemp("roads") / "g"
    graph = import_graph(frame, path, weight="w", simplify=simplify, sorted_rows=sorted_rows)
    assert arcs_of(graph) == sorted(arcs)
    first = list(dict.fromkeys(as_points(line)[end] for line, _, _ in roads for end in (0, -1)))
    assert list(map(tuple, graph.coordinates().tolist())) == first


def test_lengths_are_geodesic_in_degrees_whatever_the_datum(load):
    told = []
    degrees = layer([(13, 52), (13, 53)], [(13, 53), (14, 53)], crs="EPSG:4258")  # of Europe, within decimetres
    graph = load(degrees, report=told.append)
    assert (graph.crs, graph.weight_unit) == ("EPSG:4326", "m")
    # Lengths of a degree on the ellipsoid: of the meridian, and of a geodesic that ends on the parallel.
    assert sorted({*graph.weights().round(-1).tolist()}) == [67140.0, 111280.0]
    assert load(layer([(0, 0), (3, 4)], crs=None)).weight_unit == ""
    assert load(layer([(0, 0), (3, 4)], crs=None), crs=PLANE).crs == PLANE
    feet = load(layer([(0, 0), (300, 400)], crs="EPSG:2263"))
    assert (feet.weight_unit, feet.weights().tolist()) == ("US survey foot", [500.0, 500.0])


def test_web_mercator_becomes_degrees_so_that_metres_are_true(load, tmp_path):
    told = []
    roads = layer([(13, 60), (13, 60.01)], [(13, 60.01), (13.01, 60.01)], crs="EPSG:4326")
    true, web = load(roads), roads.to_crs(3857)
    lengths, places = true.weights().tolist(), true.coordinates()
    for source, options in (web, {}), (web.set_crs(None, allow_override=True), {"crs": "EPSG:3857"}):
        graph = load(source, report=told.append, **options)
        assert (graph.crs, graph.weight_unit) == ("EPSG:4326", "m")
        np.testing.assert_allclose(graph.weights(), lengths, rtol=1e-6)
        assert "coordinates of Web Mercator become longitudes and latitudes" in told[-1]
    streets = nx.MultiDiGraph(crs="epsg:3857")
    for i, (x, y) in enumerate(shapely.get_coordinates(web.geometry[0]).tolist()):
        streets.add_node(i, x=x, y=y)
    streets.add_edge(0, 1, length=1114.0, geometry=web.geometry[0])
    graph = load(streets, weight="length", report=told.append)
    np.testing.assert_allclose(graph.coordinates(), places[:2])
    np.testing.assert_allclose(graph.lines().points, places[:2])
    assert (graph.crs, "coordinates of Web Mercator" in told[-1]) == ("EPSG:4326", True)


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson", ".geoparquet"])
def test_a_graph_and_its_layer_are_the_same_roads(load, tmp_path, suffix):
    crs = "EPSG:4326" if suffix == ".geojson" else PLANE
    graph = load(layer(NORTH, BACK, EAST, oneway=["yes", "yes", "no"], w=[1, 2, 3], crs=crs), weight="w")
    out = tmp_path / f"roads{suffix}"
    assert export_store(graph.path, out) == 4
    with pytest.raises(FileExistsError):
        export_store(graph.path, out)
    again = import_graph(out, tmp_path / "again", layer="arcs" if suffix == ".gpkg" else None)
    assert arcs_of(again) == arcs_of(graph)
    assert sorted(again.labels().tolist()) == ["0", "1", "2"]
    if suffix == ".gpkg":
        points = geopandas.read_file(out, layer="vertices")
        assert shapely.get_coordinates(points.geometry).tolist() == graph.coordinates().tolist()
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_undirected_graph_is_exported_by_edges(load, tmp_path):
    graph = load(layer(NORTH, BACK, EAST))
    assert export_store(graph.path, tmp_path / "e.gpkg") == 3
    again = import_graph(tmp_path / "e.gpkg", tmp_path / "again", directed=False)
    assert arcs_of(again) == arcs_of(graph)


def test_lines_follow_arcs_into_derived_graphs(load, tmp_path):
    roads = {"oneway": ["yes", "yes", "no"], "FCLASS": ["primary", None, ["path", "track"]]}
    graph = load(layer(NORTH, BACK, EAST, **roads))
    assert classes_by_weight(graph) == {11.0: "primary", np.hypot(3, 10): None, 5.0: "path"}
    assert "lines and classes of roads in EPSG" in graph.describe()
    graph.verify()
    reverse = write_reverse(graph.path, tmp_path / "reverse")
    assert arcs_of(reverse) == sorted((points[::-1], weight) for points, weight in arcs_of(graph))
    assert classes_by_weight(reverse) == classes_by_weight(graph)
    for directed in (True, False):
        graph = load(layer(NORTH, EAST), directed=directed)
        forest = write_forest(graph.path, tmp_path / f"forest-{directed}")
        assert arcs_of(forest) == arcs_of(graph)
        assert forest.crs == PLANE


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_lines_follow_arcs_into_changed_graphs(load, tmp_path, sorted_rows):
    lines = EAST, [(0, 0), (8, 10)], NORTH, BACK, NORTH
    columns = {"w": [1, 5, 2, 3, 4], "highway": ["a", "e", "b", "c", "d"]}
    graph = load(layer(*lines, **columns), weight="w", directed=True, sorted_rows=sorted_rows)
    for changed in graph.with_weights(closed=[("0", "1")]), graph.with_weights(graph.path, closed=[("0", "1")]):
        assert arcs_of(changed) == [arc for arc in arcs_of(graph) if arc[1] != 1]
        assert classes_by_weight(changed) == {2: "b", 3: "c", 4: "d", 5: "e"}
        again = changed.with_weights(closed=[("2", "0"), ("2", "1")], one_way=True)
        assert classes_by_weight(again) == {3: "c"}
        assert arcs_of(again) == [(as_points(BACK), 3)]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("simplify", [False, True])
def test_graphs_of_osmnx_keep_their_geometries(load, tmp_path, directed, simplify):
    """In memory, and as GraphML with well-known text; a line that leads from head to tail is turned around."""
    graph = (nx.MultiDiGraph if directed else nx.MultiGraph)(crs=PLANE.lower())
    for node, (x, y) in {7: (0, 0), 8: (3, 10), 9: (8, 10)}.items():
        graph.add_node(node, x=float(x), y=float(y))
    lines = {(7, 8): NORTH[:: 1 if directed else -1], (8, 9): None, (8, 7): BACK, (9, 9): [(8, 10), (9, 9), (8, 10)]}
    for i, ((u, v), line) in enumerate(lines.items()):
        graph.add_edge(u, v, length=i + 1, **({} if line is None else {"geometry": shapely.LineString(line)}))
        graph.edges[u, v, graph.number_of_edges(u, v) - 1]["highway"] = ["path", "track", "path", ["track", "path"]][i]
    straight = {"length": 9, "geometry": shapely.LineString(NORTH)}
    graph.add_edge(7, 8, **straight)
    edges = [(NORTH, 1), ([(3, 10), (8, 10)], 2), (BACK, 3), (lines[9, 9], 4), (NORTH, 9)]
    arcs = [(as_points(line[::step]), w) for line, w in edges for step in ((1,) if directed else (1, -1))]
    if simplify:
        best = {}
        for points, weight in sorted(arcs, key=lambda arc: arc[1]):
            best.setdefault((points[0], points[-1]), (points, weight))
        arcs = [arc for ends, arc in best.items() if ends[0] != ends[1]]
    found = load(graph, weight="length", simplify=simplify)
    assert found.crs == PLANE
    assert arcs_of(found) == sorted(arcs)
    classes = {1: "path", 2: "track", 3: "path", 4: "track", 9: None}
    expected = {weight: classes[weight] for _, weight in arcs}
    assert classes_by_weight(found) == expected
    for *_, data in graph.edges(data=True):
        data |= {name: str(data.get(name, "")) for name in ("geometry", "highway")}
    nx.write_graphml(graph, tmp_path / "g.graphml")
    found = load(tmp_path / "g.graphml", weight="length", simplify=simplify)
    assert (found.crs, arcs_of(found), classes_by_weight(found)) == (PLANE, sorted(arcs), expected)


def test_texts_that_are_lines():
    assert line_in_text(" linestring Z (1 2 3, -4e1 5. 6) ").tolist() == [[1, 2], [-40, 5]]
    for text in (
        "",
        "POINT (1 2)",
        "LINESTRING EMPTY",
        "LINESTRING (1 2)",
        "LINESTRING (1 2, 3)",
        "LINESTRING (1 2, a b)",
    ):
        assert line_in_text(text) is None
    assert line_in_text("LINESTRING (" + "1 2, " * 100_000 + "x") is None  # at once


def test_a_parquet_file_of_geometries_is_a_layer_unless_the_format_is_named(load, tmp_path):
    layer(NORTH, EAST, source=["a", "b"], target=["b", "c"], weight=[1, 2]).to_parquet(tmp_path / "roads.parquet")
    assert load(tmp_path / "roads.parquet").lines() is not None
    assert load(tmp_path / "roads.parquet", format="parquet").lines() is None


def test_a_crs_is_recorded_for_other_formats(load, tmp_path):
    (tmp_path / "e.csv").write_text("source,target,weight\na,b,1\n")
    (tmp_path / "xy.csv").write_text("id,lng,latitude\na,300,4\nb,302,6\n")
    graph = load(tmp_path / "e.csv", coordinates=tmp_path / "xy.csv", crs="EPSG:32633")
    assert (graph.crs, graph.coordinates().tolist()) == ("EPSG:32633", [[300, 4], [302, 6]])
    export_store(graph.path, tmp_path / "e.geojson")
    assert geopandas.read_file(tmp_path / "e.geojson").geometry.iloc[0].length < 1e-3  # metres became degrees
    with pytest.raises(ValueError, match=r"crs \(--crs\) is 'nowhere', which is no coordinate system"):
        load(tmp_path / "e.csv", crs="nowhere")


def test_layers_of_a_file(load, tmp_path):
    path = tmp_path / "two.gpkg"
    layer(NORTH).to_file(path, layer="roads")
    layer(EAST).boundary.explode().to_frame("geometry").to_file(path, layer="ends")
    assert load(path).m == 2
    layer(EAST).to_file(path, layer="rivers")
    with pytest.raises(FormatError, match=rf"{path}: 2 layers of LineString .* roads \(LineString\), ends \(Point\)"):
        load(path)
    assert load(path, layer="rivers").coordinates().tolist() == [[3, 10], [8, 10]]
    for option, says in ("paths", "there is no layer 'paths'; its layers are roads"), ("ends", "layer ends, row 0"):
        with pytest.raises(FormatError, match=says):
            load(path, layer=option)


def test_wrong_layers_are_refused(load, tmp_path):
    for name in "a.gpkg", "a.geojson", "a.geoparquet", "a.shp":
        (tmp_path / name).write_text("not a layer")
        with pytest.raises(FormatError, match=rf"{name}: cannot be read"):
            load(tmp_path / name)
    areas = layer(NORTH, edge=["a"], name=["b"])
    areas = areas.assign(geometry=areas.buffer(1))
    wrong = [
        (layer(NORTH, oneway=["maybe"]), {}, r"row 0 \(from 0\): 'oneway' is 'maybe'; write yes, no or -1"),
        (layer(NORTH, w=["fast"]), {"weight": "w"}, "column 'w' has text; weights are numbers"),
        (layer(NORTH, EAST, w=[1.0, None]), {"weight": "w"}, r"row 1 \(from 0\): 'w' is nan; correct it"),
        (layer(NORTH), {"weight": "w"}, "there is no column 'w'; columns are"),
        (layer(NORTH), {"crs": "EPSG:3857"}, "its coordinate system is EPSG:6933, not EPSG:3857"),
        (layer(NORTH, length=[1], km=[2]), {}, "it is unclear which column holds the weights; columns are length, km"),
        (layer(NORTH), {"layer": "x"}, "a GeoDataFrame is one layer"),
        (layer(NORTH), {"directed": True, "oneway": "x"}, "leave out directed"),
        (layer(NORTH), {"comment": "x"}, "has no meaning"),
        (areas, {}, "row 0 .* is a Polygon, but roads are LineS"),
        (layer(NORTH).iloc[:0], {}, "the GeoDataFrame: has no lines"),
        (layer(NORTH), {"unit": "secnods"}, r"unit \(--unit\) is 'secnods', .* did you mean 'seconds'"),
        ("none.parquet", {}, "none.parquet: there is no such file; correct the name or the folder"),
    ]
    for frame, options, says in wrong:
        with pytest.raises(FormatError, match=says):
            load(frame, **options)
    told: list[str] = []
    tolled = load(layer(NORTH, toll=[1]), weight="toll", unit="euros", report=told.append)
    assert (tolled.weight_unit, "'euros' is no unit of time or length, so it is shown" in told[-1]) == ("euros", True)
    with pytest.raises(ValueError, match=r"^unit \(--unit\) is 'min', but the unit of the network is 'euros', which"):
        od(tolled, positions([0]), unit="min")
    with pytest.raises(ValueError, match="^within is in min, but the unit of the network is 'euros', which is no unit"):
        od(tolled, positions([0]), within="2min")
    with pytest.raises(FormatError, match="none.csv: there is no such file; correct the name or the folder"):
        load(pandas.DataFrame({"source": ["a"], "target": ["b"]}), coordinates="none.csv")
    infinite = layer(NORTH)
    infinite.geometry = shapely.transform(infinite.geometry, lambda points: points + np.inf)
    with pytest.raises(FormatError, match="a point is not finite"):
        load(infinite)


def test_what_a_layer_lacks_is_said(load):
    told = []
    frame = layer(NORTH, EAST, [(50, 50), (60, 60)])
    frame.loc[1, "geometry"] = None
    frame.loc[0, "geometry"] = shapely.MultiLineString([NORTH, EAST])
    with pytest.warns(UserWarning, match=r"left out 1 row without a geometry, such as row 1 \(from 0\)"):
        assert load(frame, report=told.append).m == 6
    assert told[1:] == ["the GeoDataFrame: took lines of several parts apart: 1 lines more"]


def test_a_network_in_pieces_is_a_warning_with_the_cure(load):
    lines = [[(100.0 * i, 0.0), (100.0 * (i + 1), 0.0)] for i in range(30)]
    lines[14] = [lines[14][0], (1499.996, 0.0)]
    utm = "EPSG:25833"
    frame, small = layer(*lines, crs=utm), "strongly connected component has only 16 of 32 vertices"
    cure = r"apart by up to 0.004 m; snapping them joins components at 1 place, .*set_precision\(0.01\)"
    degrees = r"roads = roads.to_crs\(4326\); roads.geometry = roads.geometry.set_precision\(1e-07\)"
    for crs, pattern in (utm, f"{small}, since ends of lines are {cure}"), ("EPSG:3857", degrees):
        with pytest.warns(UserWarning, match=pattern):
            load(frame.to_crs(crs))
    assert load(frame.assign(geometry=frame.geometry.set_precision(0.01))).n == 31
    with pytest.warns(UserWarning, match="only 16 of 32 vertices, since roads join only where lines end; split them"):
        load(layer(*lines[:14], *lines[15:], [(0.0, 9.0), (0.0, 0.0)]))
    oneway = layer(*lines[:14], oneway=[True] * 14)
    assert load(oneway).n == 15  # few vertices
    with pytest.warns(UserWarning, match="has only 1 of 25 vertices, since many roads lead one way only; check"):
        load(layer(*[[(i, 0), (i + 1, 0)] for i in range(24)], oneway=[True] * 24))
    table = pandas.DataFrame({"source": range(24), "target": range(1, 25)})
    assert load(table).n == 25  # which need not be a network of roads
    with pytest.warns(UserWarning, match="the largest strongly connected component has only 1 of 25 vertices"):
        load(table, coordinates=np.zeros((25, 2)))


def test_doubtful_columns_are_warnings_and_others_are_named(load):
    doubts = [
        ({"cost": [3.0, -2.0]}, r"'cost' is negative in 1 row of 2, first -2.0 in row 1 \(from 0\)"),
        ({"cost": [-3, -2]}, r"'cost' is negative in 2 rows of 2, first -3 in row 0 \(from 0\)"),
        ({"cost": [0, 0]}, r"'cost' is 0 in all rows, from row 0"),
        ({"one_way": ["yes", "no"]}, r"one_way may hold directions of one-way roads, and was not read; name"),
    ]
    for columns, says in doubts:
        with pytest.warns(UserWarning, match=says):
            load(layer(NORTH, EAST, **columns))
    told = []
    load(
        layer(NORTH, EAST, u=[1, 5], v=[5, 7], osmid=[1, 2], length=[1, 2], seconds=[3, 4], name=["a", "b"]),
        report=told.append,
    )
    assert "weights from length, other numbers in seconds (weight, --weight), EPSG" in told[0]


def test_edges_of_osmnx_have_units(load):
    edges = layer(NORTH, EAST, u=[0, 5], v=[5, 7], osmid=[1, 2], length=[1, 2], travel_time=[3, 4])
    for source in edges, pandas.DataFrame(edges.drop(columns="geometry")):
        graph = load(source, weight="travel_time", also=["length"])
        assert (graph.weight_unit, graph.weighted_by("length").weight_unit) == ("s", "m")


def test_a_further_weight_has_a_unit(load):
    graph = load(layer(NORTH, EAST, time=[1, 2], far=[3, 4], toll=[5, 6]), weight="time", also="far:km, toll")
    assert [graph.weighted_by(name).weight_unit for name in ("far", "toll")] == ["km", "toll"]


def test_a_column_of_one_letter_is_no_unit(load):
    edges = layer(NORTH, EAST, u=["a", "a "], v=["b", "b"], d=[1, 2], m=[3, 4])
    for source in edges, pandas.DataFrame(edges.drop(columns="geometry"))[["u", "v", "d", "m"]]:
        graph = load(source, weight="d", columns=["u", "v"], also="m")
        assert (graph.weight_unit, graph.weight_name, graph.weighted_by("m").weight_unit) == ("", "d", "")
        assert graph.labels().tolist() == ["a", "b", "a "]
        assert load(source, columns=["u", "v", "d"]).weight_unit == ""
        assert load(source, weight="d", columns=["u", "v"], unit="d").weight_unit == "d"


def test_a_wrong_coordinate_system_is_refused(load):
    """Degrees that are called a plane, and metres that are called degrees; of lines, and of coordinates."""
    degrees, metres = [(13.4, 52.5), (13.5, 52.6)], [(391780, 5820000), (391790, 5820000)]
    arcs = {"source": ["a"], "target": ["b"], "w": [1]}
    wrong = [
        (degrees, "EPSG:25833", r"EPSG:25833, but its numbers, such as 13.4, 52.5, .*set_crs\('EPSG:4326', .*to_crs\("),
        (metres, "EPSG:4326", r"EPSG:4326, but there is no longitude 391780 with latitude 5.82e\+06; .*set_crs\(RIGHT"),
        (metres, "EPSG:4258", "EPSG:4258, but there is no longitude 391780"),
    ]
    for line, crs, says in wrong:
        with pytest.raises(FormatError, match=f"GeoDataFrame: its coordinate system is {says}"):
            load(layer(line, crs=crs), weight="geometry")
        with pytest.raises(FormatError, match="DataFrame: its coordinate system is EPSG:"):
            load(pandas.DataFrame(arcs), crs=crs, coordinates=dict(zip("ab", line, strict=True)))
    for line, crs in (
        (metres, "EPSG:25833"),
        (degrees, PLANE),
        (degrees, "EPSG:4258"),
        ([(-179.5, -17), (-179.4, -17)], "EPSG:4326"),
    ):
        load(layer(line, crs=crs))


def test_lengths_of_lines_have_units_of_length(load):
    roads = layer(NORTH, seconds=[7])
    graph = load(roads, weight="geometry", unit="miles")
    assert (graph.weights().tolist(), graph.weight_unit) == (pytest.approx([11 / 1609.344] * 2), "miles")
    further = load(roads, weight="seconds", also=["geometry:km"], unit="s").weighted_by("geometry")
    assert (further.weights().tolist(), further.weight_unit) == ([0.011] * 2, "km")
    with pytest.raises(
        FormatError, match=r"lengths of the lines are in m; name the column of times \(weight, --weight"
    ):
        load(roads, weight="geometry", unit="min")
    with pytest.warns(UserWarning, match="are the lengths of the lines, and seconds was not read; name the column"):
        assert load(roads).weight_unit == "m"


def test_a_name_that_contradicts_the_unit_warns(load):
    roads = layer(NORTH, seconds=[7], length_m=[3])
    with pytest.warns(UserWarning, match="GeoDataFrame: unit .* is 'm', but the name of the column 'seconds' says s;"):
        assert load(roads, weight="seconds", unit="m").weight_unit == "m"
    with pytest.warns(UserWarning, match="is 's', but the name of the column 'length_m' says m;"):
        load(roads, weight="seconds", unit="s", also=["length_m:s"])
    load(roads, weight="seconds", unit="s", also=["length_m:m"])


def test_weights_that_are_speeds_by_their_name_warn(load):
    roads = layer(NORTH, speed_kph=[50], seconds=[7])
    with pytest.warns(UserWarning, match="GeoDataFrame: the weights 'speed_kph' are speeds .*; choose a column"):
        assert load(roads, weight="speed_kph").weight_max == 50
    load(roads, weight="seconds", also=["speed_kph"])


def test_a_failed_write_says_how_much_of_the_disk_is_free(tmp_path, monkeypatch):
    def fail(*_arguments, **_options):
        raise pyogrio.errors.DataLayerError("no reason")

    monkeypatch.setattr(pyogrio, "write_dataframe", fail)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(ValueError, match=r"x.geojson: cannot be written \(no reason; the disk has 0 B free\); choose"):
        write_layers({"roads": layer(NORTH)}, tmp_path / "x.geojson")
    assert not list(tmp_path.iterdir())


def test_only_maps_are_exported_to_layers(tmp_path, load):
    bare = write_graph(tmp_path / "bare", np.array([0, 1, 1]), np.array([1]))
    with pytest.raises(StoreError, match="has no coordinates; import it with coordinates"):
        export_store(bare.path, tmp_path / "o.gpkg")
    unknown = load(layer([(0, 0), (300, 4)], crs=None))
    with pytest.raises(ValueError, match=r"the coordinate system of the network is not known; .* \(crs, --crs\)"):
        export_store(unknown.path, tmp_path / "o.geojson")
    assert export_store(unknown.path, tmp_path / "o.gpkg") == 1
    assert not (tmp_path / "o.geojson").exists()


def test_the_commands(tmp_path):
    layer(NORTH, EAST, crs="EPSG:4326").to_file(tmp_path / "r.geojson")
    runner = CliRunner()
    told = runner.invoke(tilepath, ["import", str(tmp_path / "r.geojson"), str(tmp_path / "g"), "--directed"])
    assert told.exit_code == 0, told.output
    assert "each in the direction of its points" in told.output
    assert "with coordinates and lines in EPSG:4326" in told.output
    told = runner.invoke(tilepath, ["export", str(tmp_path / "g"), str(tmp_path / "o.geoparquet")])
    assert told.output == f"{tmp_path / 'o.geoparquet'}: 2 rows\n"
    assert b"geo" in pq.read_schema(tmp_path / "o.geoparquet").metadata
    assert open_graph(tmp_path / "g").directed


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=12))
def test_arcs_are_stored_in_the_order_that_is_foretold(arcs):
    tails, heads, weights = np.array(arcs, np.int64).reshape(-1, 3).T
    order = stored_order(tails, heads, weights, False, True).tolist()
    assert order == sorted(range(len(arcs)), key=lambda i: arcs[i][:2])
