"""Roads that are closed: named by rows of tables, by the index of OSMnx, by geometries and by files."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
import shapely.ops
from commands import invoke, run_command

from pipelines import (
    NoPathError,
    build_hierarchy,
    changes,
    criticality,
    graph_to_gdfs,
    import_graph,
    isochrones,
    od,
    open_hierarchy,
    picture_graph,
    shortest_path,
    vertices_at,
)
from pipelines.stores.changed import closed_lines

AT = {"a": (13.0, 52.0), "b": (13.01, 52.0), "c": (13.02, 52.0), "d": (13.0, 52.01), "e": (13.02, 52.01)}
ROADS = [("a", "b", "primary"), ("b", "c", "primary"), ("a", "d", "service"), ("d", "e", "service"), ("e", "c", None)]
# Angle with a street in degrees, and length in metres.
NEIGHBOURS = [(3.2, 40), (7, 1), (11, 10), (16, 1), (20, 5), (45, 2), (90, 1), (-5, 30), (-10, 3), (-20, 1)]
BRIDGE = shapely.box(13.012, 51.999, 13.018, 52.001)


def one_way(arcs):
    """One of the two arcs of each street; its line closes both."""
    return arcs[arcs["source"] < arcs["target"]]


@pytest.fixture(scope="module")
def town(tmp_path_factory, maker):
    """A ring a-b-c-e-d of two-way streets, in degrees: its graph, and the path of its hierarchy."""
    both = [(u, v, kind) for u, v, kind in ROADS] + [(v, u, kind) for u, v, kind in ROADS]
    lines = [shapely.LineString([AT[u], AT[v]]) for u, v, _ in both]
    frame = gpd.GeoDataFrame(both, columns=["u", "v", "highway"], geometry=lines, crs=4326).assign(time=60)
    folder = tmp_path_factory.mktemp("town")
    graph = import_graph(frame, folder / "g", weight="time", unit="s")
    return graph, build_hierarchy(maker, graph, folder / "h").path


def test_roads_are_rows_of_a_table_or_geometries(town):
    graph, path = town
    assert repr(graph).startswith("<directed graph g: 5 vertices, 10 arcs; weights in s; EPSG:4326>\n")
    vertices, arcs = graph_to_gdfs(graph)
    assert vertices["vertex"].tolist() == list("abcde")
    assert all(each.equals(same) for each, same in zip((vertices, arcs), graph_to_gdfs(path), strict=True))
    assert list(arcs.columns) == ["source", "target", "weight", "highway", "length", "geometry"]
    osmnx = arcs.rename(columns={"source": "u", "target": "v"}).assign(key=0).set_index(["u", "v", "key"])
    row = (arcs["source"] == "b") & (arcs["target"] == "c")
    expected = graph.with_weights(closed=[("b", "c")])
    for closed in (
        arcs[row],
        pd.DataFrame({"u": ["c"], "v": ["b"]}),
        osmnx[row.to_numpy()].drop(columns="geometry"),
        BRIDGE,
        shapely.Point(13.016, 52.002),
        (13.016, 52.002),
        [13.016, 52.002],
        [(13.016, 52.002)],
        np.array([[13.016, 52.002]]),
        pd.DataFrame({"Longitude": ["13.016"], "lat": [52.002]}),
        pa.table({"x": [13.016], "y": [52.002]}),
        ("b", "c"),
        arcs[row].iloc[0],
        pd.Series({"lon": 13.016, "lat": 52.002}),
        gpd.GeoSeries([shapely.Point(13.016, 52.002)]).array,
        gpd.GeoSeries([BRIDGE], crs=4326).to_crs(32633),
        shapely.LineString([(13.015, 51.999), (13.015, 52.001)]),
    ):
        found = graph.with_weights(closed=closed)
        assert found.digest == expected.digest, closed
    main = graph.with_weights(closed=arcs[arcs["highway"] == "primary"])
    assert main.m == graph.m - 4
    near = shapely.Point(13.004, 52.003)  # 274 m from a-d and 334 m from a-b; in degrees a-b is nearer
    assert graph.with_weights(closed=near)["a"] == ["b"]


def test_a_changed_network_keeps_the_named_weights_of_its_arcs(maker, tmp_path):
    rows = [("a", "b", 3, 30.5, 0), ("b", "c", 2, 7.25, 9), ("b", "c", 7, 1.5, 6), ("a", "c", 2, 2.5, 0)]
    rows += [("c", "a", 5, 1.0, 1)]
    lines = [shapely.LineString([AT[u], AT[v]]) for u, v, *_ in rows]
    frame = gpd.GeoDataFrame(rows, columns=["u", "v", "time", "length", "toll"], geometry=lines, crs=4326)[::-1]
    for sorted_rows in (True, False):
        path, also = tmp_path / str(sorted_rows), ["length", "toll"]
        graph = import_graph(frame, path, weight="time", also=also, sorted_rows=sorted_rows)
        network = graph if sorted_rows else build_hierarchy(maker, graph, tmp_path / "h")
        closed = network.with_weights(closed=[("a", "c")], one_way=True)
        found = od(closed, ["a"], ["c"], also="time, length, toll")
        assert found.iloc[0, 2:].tolist() == [5, 5, 37.75, 9]  # of parallel roads the fastest
        assert od(closed.with_weights("length"), ["a"], ["c"]).iloc[0, 2] == 32
        for asked in ({"origins": ["a"], "destinations": ["a", "b", "c"]}, {"pairs": [["a", "a"], ["a", "c"]]}):
            longer = changes(network, closed, also="length, toll", **asked)
            assert longer.iloc[0, 4:].to_dict() == {
                "change": 3, "length_before": 2.5, "toll_before": 0, "length_after": 37.75, "toll_after": 9
            }  # fmt: skip
        cut = changes(network, closed.with_weights(closed=[("a", "b")]), ["a"], ["c"], also=["toll"])
        assert (len(cut), cut["toll_before"][0], np.isnan(cut["toll_after"][0])) == (1, 0, True)
        for wrong, message in (
            ("travel_time", "a column `travel_time` of its own"),
            ({"toll": 1}, "^also is .*toll.*;"),
        ):
            with pytest.raises(ValueError, match=message):
                changes(network, closed, ["a"], ["c"], also=wrong)
        arcs = graph_to_gdfs(closed)[1].sort_values(["source", "toll"])
        assert arcs["toll"].tolist() == [0, 6, 9, 1]
        assert arcs["length_weight"].tolist() == [30.5, 1.5, 7.25, 1]
        again = closed.with_weights({("a", "b"): 50}).with_weights(closed=[("c", "a")], one_way=True)
        assert od(again, ["a"], ["c"], also="time,toll").iloc[0, 2:].tolist() == [52, 5, 9]
        last = again if network is graph else again.graph()
        by_toll = last.weighted_by("toll")
        assert (by_toll.m, by_toll.weight_max, len(closed_lines(by_toll))) == (3, 9, 2)
        assert graph.with_weights(graph.path).weighted_by("toll").original is graph
    (tmp_path / "o.csv").write_text("vertex\na\nc\n")
    (tmp_path / "r.csv").write_text("source,target\na,c\n")
    arguments = ["what-if", graph.path, tmp_path / "t.csv", "--closed", tmp_path / "r.csv", "--one-way"]
    arguments += ["--origins", tmp_path / "o.csv", "--also", "length", "--also", "toll"]
    run_command(*arguments)
    assert pd.read_csv(tmp_path / "t.csv").iloc[:, -4:].to_numpy().tolist() == [[2.5, 0, 37.75, 9]]


def test_new_weights_have_the_unit_of_their_name(tmp_path):
    rows = [("a", "b", 3, 30.5, 2, 4), ("b", "a", 4, 31.5, 1, 5)]
    frame = gpd.GeoDataFrame(rows, columns=["u", "v", "time", "length", "toll", "night"])
    frame = frame.set_geometry([shapely.LineString([AT[u], AT[v]]) for u, v, *_ in rows], crs=4326)
    graph = import_graph(frame, tmp_path / "g", weight="time", unit="s", also=["length:km", "toll", "night:seconds"])
    arcs = graph_to_gdfs(graph)[1]
    own, toll = arcs["weight"], arcs["toll"]
    for weights, unit in (
        (own * 2, "s"),
        (toll, "toll"),
        (toll.rename(None), "s"),
        (toll.rename("slow"), "s"),
        (toll.rename("time"), "s"),
        (toll.to_numpy(), "s"),
        (arcs["length_weight"], "km"),
        (arcs, "s"),
        ({("a", "b"): 9}, "s"),
    ):
        assert graph.with_weights(weights).weight_unit == unit
    assert graph.with_weights(toll).with_weights(own.rename("time")).weight_unit == "s"
    for missing, part in (
        (toll.astype(float).mask(toll == 2), "row 0 is missing or NaN; fill it in"),
        (toll.astype(object).where(toll == 2, None)[::-1], "row 1 is missing"),
        (arcs.assign(weight=[1, np.nan]), "row 1 is missing"),
        (np.array([1, np.nan]), "entry 1 is missing"),
        ("tol", "'tol' is no store and no name of weights; the weights of .*g are time, length, toll, night$"),
    ):
        with pytest.raises(ValueError, match=f"^weights.*: {part}"):
            graph.with_weights(missing)
    for after, unit in ((graph.with_weights(toll), "toll"), (graph.with_weights("length"), "km")):
        with pytest.raises(ValueError, match=f"^after: weights are in '{unit}', and .* are in 's'; .* also='NAME:s'"):
            changes(graph, after, ["a"], ["b"])
    assert changes(graph, graph.with_weights("night"), ["a"], ["b"])["change"].tolist() == [1]
    assert changes(graph, graph.with_weights(toll.to_numpy()), ["a"], ["b"])["change"].tolist() == [-1]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("sorted_rows", [True, False])
def test_weights_are_those_of_the_rows_of_a_table(tmp_path, directed, sorted_rows):
    """Whatever the order of the rows, each arc gets the weight that the mapping of its ends gives it."""
    roads = pd.DataFrame({"tail": list("cabbcd"), "head": list("dcabad"), "weight": [5, 1, 9, 4, 2, 8]})
    places = pd.DataFrame({"id": list("abcd"), "x": [0.0, 1, 2, 3], "y": [0.0, 0, 1, 0]})
    places.to_csv(tmp_path / "places.csv", index=False)
    options = {"directed": directed, "sorted_rows": sorted_rows, "coordinates": tmp_path / "places.csv"}
    graph = import_graph(roads, tmp_path / "g", **options)
    arcs = graph_to_gdfs(graph)[1]
    arcs["weight"] = arcs["weight"] * 10 + np.arange(len(arcs))
    rows, names = graph.rows(), graph.names(np.arange(4))
    heads = [names[v] for v in rows[1]]
    tails = np.repeat(names, np.diff(rows[0])).tolist()
    expected = graph.with_weights(rows[2] * 10)
    shuffled = arcs.sample(frac=1, random_state=2)
    assert not shuffled.index.equals(arcs.index)
    whole = graph.with_weights(arcs["weight"]).rows()[2]
    assert (whole // 10).tolist() == (expected.rows()[2] // 10).tolist()
    assert {*zip(tails, heads, whole.tolist(), strict=True)} >= {
        *arcs[["source", "target", "weight"]].itertuples(index=False, name=None)
    }
    if not directed:
        assert sorted(whole.tolist()) == sorted(arcs["weight"].tolist() * 2)
    for given in (
        arcs,
        shuffled,
        shuffled["weight"],
        pa.table(arcs.drop(columns="geometry")),
        arcs.drop(columns="geometry")
        .rename(columns={"source": "u", "target": "v"})
        .assign(key=0)
        .set_index(["u", "v", "key"]),
        *([] if directed else [arcs["weight"].to_numpy()]),
    ):
        np.testing.assert_array_equal(graph.with_weights(given).rows()[2], whole)
    pairs = arcs[["source", "target"]].set_axis(["origin", "destination"], axis=1)
    expected = od(graph, pairs=pairs, also={"x": whole})
    for column in arcs["weight"], shuffled["weight"], shuffled.rename(columns={"weight": "x"}):
        pd.testing.assert_frame_equal(od(graph, pairs=pairs, also={"x": column}), expected)
    for given, says in (
        (
            shuffled.reset_index(drop=True),
            "row . leads from vertex . to vertex ., but arc . of the table leads",
        ),
        (arcs["weight"].reset_index(drop=True), "the index is not called `arc`, .* give a number for each row"),
        (shuffled.reset_index()["weight"], "the index is not called `arc`"),
        (arcs["weight"].astype(float).mask(arcs.index == 1), "row 1 is missing or NaN"),
        (arcs["weight"][1:], "the index does not have the numbers of rows from 0"),
        (arcs["weight"][:-1], rf"{len(arcs) - 1} rows, but the network has {len(arcs)}"),
        (arcs.set_index("source")["weight"], "the index does not have the numbers of rows"),
        (arcs[["source", "length"]], "no column `weight`; the columns are source, length"),
    ):
        with pytest.raises(ValueError, match=f"^weights: {says}"):
            graph.with_weights(given)
        with pytest.raises(ValueError, match=f"^also: weight: {says}"):
            od(graph, pairs=pairs, also={"weight": given})
    with pytest.raises(ValueError, match="^also is a Series; give it the name of a column"):
        od(graph, pairs=pairs, also=arcs["weight"])


def test_a_weight_called_length_is_not_the_length_in_metres(tmp_path):
    lines = [shapely.LineString([(0, 0), (0, 300)]), shapely.LineString([(0, 300), (400, 300)])]
    roads = gpd.GeoDataFrame({"time": [30, 40], "length": [3, 5]}, geometry=lines, crs=25833)
    graph = import_graph(roads, tmp_path / "g", weight="time", also=["length"], unit="s")
    columns = ["source", "target", "weight", "length_weight", "length", "geometry"]
    route = shortest_path(graph, "0", "2")
    for frame in graph_to_gdfs(graph)[1], route.to_geodataframe():
        assert list(frame.columns) == columns
        assert frame[["length_weight", "length"]].to_numpy().tolist() == [[3, 300], [5, 400]]
    assert route.length == 700
    by_length = graph_to_gdfs(graph.weighted_by("length"))[1]
    assert by_length[["weight", "time", "length"]].to_numpy().tolist() == [[3, 30, 300], [5, 40, 400]]


def test_a_frame_whose_new_weights_are_in_another_column_is_a_warning(town):
    graph, _ = town
    arcs = graph_to_gdfs(graph)[1]
    frame = arcs.assign(rush=arcs["weight"] * 2)
    says = r"so nothing changes; other weights may be in rush: rename that column to `weight`, or .* frame\['rush'\]$"
    with pytest.warns(UserWarning, match=says) as warned:
        graph.with_weights(frame)
    assert warned[0].filename == __file__
    graph.with_weights(arcs)  # no further columns
    graph.with_weights(arcs.assign(name="a"))
    for right in frame["rush"], frame.assign(weight=frame["rush"]):
        assert (graph.with_weights(right).weights() == graph.weights() * 2).all()


@pytest.mark.filterwarnings("ignore:roads. no road is named")
def test_criticality_of_no_road_and_of_a_road_from_both_of_its_ends(town):
    graph, path = town
    arcs = graph_to_gdfs(graph)[1]
    for network in (graph, path):
        for none in ([], arcs[:0], arcs[:0][["geometry"]]):
            found = criticality(network, none, ["b"], ["c"])
            assert (len(found), found.columns[-4:].tolist()) == (0, ["longer", "cut", "total", "largest"])
    rows = arcs[arcs["highway"] == "primary"]  # a-b and b-c, each in both directions
    found = criticality(graph, rows, ["b"], ["a", "c"])
    assert found[["source", "target"]].to_numpy().tolist() == rows[["source", "target"]].to_numpy().tolist()
    assert found["total"].tolist() == [180.0] * 4
    one_way = criticality(graph, rows, ["b"], ["a", "c"], one_way=True)
    assert one_way["total"].tolist() == [180.0 if each == "b" else 0.0 for each in rows["source"]]


def test_roads_of_a_name_are_closed_together(town, tmp_path):
    graph, path = town
    vertices, arcs = graph_to_gdfs(graph)
    rows = arcs[arcs["source"] < arcs["target"]].assign(name=["dam", "mole", "bridge", "dam", "bridge"])
    expected = {}
    for name, some in rows.groupby("name", sort=False):
        change = changes(graph, graph.with_weights(closed=some), vertices["vertex"])["change"]
        expected[name] = [change.count(), change.isna().sum(), change.sum(), np.nan_to_num(change.max())]
    assert sum(each[1] for each in expected.values()) > 0  # pairs that only two roads together cut off
    middles = rows.set_geometry(shapely.line_interpolate_point(rows.geometry, 0.5, normalized=True))[
        ["name", "geometry"]
    ]
    rows.drop(columns="geometry").to_csv(tmp_path / "r.csv", index=False)
    for network, given in (
        (graph, rows),
        (path, middles),
        (graph, pa.table(rows.drop(columns="geometry"))),
        (graph, tmp_path / "r.csv"),
    ):
        found = criticality(network, given, vertices["vertex"], together="name")
        assert found.columns.tolist() == ["road", "longer", "cut", "total", "largest"]
        np.testing.assert_array_equal(found["road"], [*expected])
        np.testing.assert_allclose(found.drop(columns="road"), [*expected.values()])
    told = invoke("what-if", path, tmp_path / "o.csv", "--each", "--closed", tmp_path / "r.csv", "--together", "name")
    assert "3 groups of roads, each closed alone" in told.output, told.output
    for given, column, says in (
        (rows, "ref", "roads has the columns source"),
        ([("a", "b")], "name", "roads is no table"),
        (rows.assign(name=["x", None, "y", "z", "x"]), "name", "row 2: `name` is missing"),
        (rows.assign(name=["x", "y", "", "z", ""]), "name", "row 3: `name` is empty"),
        (rows.assign(name=[["x"], ["y"], ["z"], ["x"], ["y"]]), "name", "`name` has lists"),
    ):
        with pytest.raises(ValueError, match=says):
            criticality(graph, given, together=column)
    with pytest.warns(UserWarning, match="no road is named, so all stay open"):
        graph.with_weights(closed=rows[rows["name"] == "no bridge"])


def test_closed_roads_move_no_place(town):
    """Closing (a, b) and (c, e) divides the ring into a-d-e, the larger part, and b-c."""
    graph, path = town
    near_b, near_d = (13.0099, 52.0), (13.0, 52.0099)
    for network in (graph, open_hierarchy(path)):
        closed = network.with_weights(closed=[("a", "b")]).with_weights(closed=[("c", "e")])
        found = od(closed, [near_b], [near_b, near_d])
        assert np.isnan(found["travel_time"]).tolist() == [False, True]
        assert found["origin_snapped"].tolist() == od(network, [near_b], [near_b, near_d])["origin_snapped"].tolist()
        streets = isochrones(closed, near_b, 999, kind="edges")
        assert {*streets["tail"], *streets["head"]} == {"b", "c"}
        assert vertices_at(closed, near_b).vertices.indices == graph.vertex("b")
        with pytest.raises(NoPathError):
            shortest_path(closed, near_b, near_d)


def test_rows_of_criticality_belong_to_the_given_geometries(town, tmp_path):
    _, path = town
    ce, both, ab = (
        shapely.Point(13.0201, 52.005),
        shapely.box(13.005, 51.999, 13.015, 52.001),
        shapely.Point(13.005, 52),
    )
    ends = [("c", "e"), ("a", "b"), ("b", "c"), ("a", "b")]
    named = gpd.GeoDataFrame(index=["hill", "bridge", "dam"], geometry=[ce, both, ab], crs=4326)
    for given, names in (
        (named, ["hill", "bridge", "bridge", "dam"]),
        (named.assign(ID=[7, 5, 6]), [7, 5, 5, 6]),
        ([ce, both, ab], [1, 2, 2, 3]),
    ):
        found = criticality(path, given, ["b"], ["c"])
        assert found["road"].tolist() == names
        assert list(zip(found["source"], found["target"], strict=True)) == ends
        assert found["largest"].tolist() == [0, 0, 180, 0]
    assert "road" not in criticality(path, [("a", "b")], ["b"], ["c"])
    places = pd.DataFrame({"name": ["hill", "dam"], "lon": [13.0201, 13.005], "lat": [52.005, 52]})
    places.to_csv(tmp_path / "roads.csv", index=False)
    for given, names in (
        (places, ["hill", "dam"]),
        (pa.Table.from_pandas(places), ["hill", "dam"]),
        (tmp_path / "roads.csv", ["hill", "dam"]),
        (places[["lon", "lat"]].to_numpy(), [1, 2]),
        ((13.0201, 52.005), [1]),
    ):
        found = criticality(path, given, ["b"], ["c"])
        assert found["road"].tolist() == names
        assert list(zip(found["source"], found["target"], strict=True)) == [("c", "e"), ("a", "b")][: len(names)]


def test_a_line_closes_the_roads_that_it_meets_between_their_ends(town):
    graph, _ = town
    _, arcs = graph_to_gdfs(graph)
    own = arcs.loc[(arcs["source"] == "b") & (arcs["target"] == "c"), "geometry"]
    for closed, ends in (
        (own, [("b", "c")]),  # a-b and c-e touch it at their ends
        (shapely.LineString([(13.005, 52), (13.02, 52)]), [("a", "b"), ("b", "c")]),
        (shapely.LineString([(13.005, 52), (13.005, 51)]), [("a", "b")]),  # ends on the road
        (shapely.MultiPoint([(13.005, 52), (13.0, 52.004)]), [("a", "b"), ("a", "d")]),
    ):
        assert graph.with_weights(closed=closed).digest == graph.with_weights(closed=ends).digest, closed
    with pytest.raises(ValueError, match="closed, row 1: no road meets the geometry"):
        graph.with_weights(closed=shapely.LineString([AT["b"], (13.01, 51)]))


@pytest.mark.parametrize("system", [4326, 25833])
def test_a_place_as_near_to_several_roads_is_refused(town, tmp_path, system):
    _, arcs = graph_to_gdfs(town[0])
    graph = import_graph(arcs.to_crs(system), tmp_path / "g", weight="weight")

    def without(place):
        street = shapely.box(12.999, 52.004, 13.001, 52.006)  # a-d
        return graph.with_weights(closed=gpd.GeoSeries([street, shapely.Point(place)], crs=4326))

    # A junction, another last bit of it, its coordinates rounded to 6 decimals, and a place outside of the corner.
    for place in AT["c"], (np.nextafter(13.02, 14), 52), (13.0199995, 52.0000006), (13.0204, 51.9998):
        with pytest.raises(ValueError, match=r"^closed, row 2: 2 roads .* place \(b - c, c - e\); give a place in"):
            without(place)
    for place, ends in ((13.01999, 52), ("b", "c")), ((13.02, 52.00001), ("c", "e")):  # 1 m from the junction
        assert without(place).digest == graph.with_weights(closed=[("a", "d"), ends]).digest


def test_a_place_in_the_middle_of_a_short_road_closes_it(tmp_path):
    lines = [shapely.LineString([(x, 0), (x + 0.15, 0)]) for x in (0, 0.15, 0.3)]  # in metres
    graph = import_graph(
        gpd.GeoDataFrame({"time": 1}, index=range(3), geometry=lines, crs=6933), tmp_path / "g", weight="time"
    )
    assert graph.with_weights(closed=shapely.Point(0.225, 0)).digest == graph.with_weights(closed=[(1, 2)]).digest


@pytest.mark.parametrize("system", [4326, 25833])
def test_a_line_may_be_rounded(town, tmp_path, system):
    """To 7 decimals of a degree, to millimetres, by a last bit, or by a way through another coordinate system."""
    _, arcs = graph_to_gdfs(town[0])
    graph = import_graph(arcs.to_crs(system), tmp_path / "g", weight="weight")
    _, arcs = graph_to_gdfs(graph)
    digits = 7 if system == 4326 else 3
    for own in one_way(arcs).itertuples():
        line = own.geometry
        expected = graph.with_weights(closed=[(own.source, own.target)]).digest
        rounded = shapely.transform(line, lambda at: at.round(digits))
        moved = shapely.transform(line, lambda at: np.nextafter(at, np.inf))
        for each in line, rounded, moved, gpd.GeoSeries([line], crs=system).to_crs(3857):
            assert graph.with_weights(closed=each).digest == expected, (own, each)


@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("system", [4326, 25833])
def test_the_line_of_a_street_closes_no_neighbour(tmp_path, system, count):
    """Not a stub of 1 m beside its end, and not a street that leaves the junction at an angle of 3 to 20 degrees."""
    rng = np.random.default_rng(3)
    streets, start, turn = [], np.array([400000.0, 5800000]), 2.0
    for length in rng.uniform(60, 200, count):
        for angle, beside in NEIGHBOURS:
            at = turn + np.radians(angle)
            streets.append([start, start + beside * np.array([np.cos(at), np.sin(at)])])
        end = start + length * np.array([np.cos(turn), np.sin(turn)])
        streets.append([start, end])
        start, turn = end, turn + rng.uniform(-0.5, 0.5)
    frame = gpd.GeoDataFrame({"time": 1}, index=range(len(streets)), geometry=[*map(shapely.LineString, streets)])
    graph = import_graph(frame.set_crs(25833).to_crs(system), tmp_path / "g", weight="time")
    _, arcs = graph_to_gdfs(graph)
    assert len(arcs.drop_duplicates(["source", "target"])) >= len(streets)
    for own in one_way(arcs).itertuples():
        line = own.geometry
        expected = graph.with_weights(closed=[(own.source, own.target)]).digest
        rounded = shapely.transform(line, lambda at: at.round(7 if system == 4326 else 3))
        for each in line, rounded, gpd.GeoSeries([line], crs=system).to_crs(3857):
            assert graph.with_weights(closed=each).digest == expected, (own, each)
        if line.length > (20 if system == 25833 else 20 / 67000):
            for share in (0.02, 0.1, 0.3):  # a line along the middle of the street
                part = shapely.ops.substring(line, share, 1 - share, normalized=True)
                assert graph.with_weights(closed=part).digest == expected, (own, share)


def test_a_line_beside_a_street_closes_it(town, tmp_path):
    _, arcs = graph_to_gdfs(town[0])
    graph = import_graph(arcs.to_crs(25833), tmp_path / "g", weight="weight")
    _, arcs = graph_to_gdfs(graph)
    for own in arcs.itertuples():
        expected = graph.with_weights(closed=[(own.source, own.target)]).digest
        for share in (0, 0.01, 0.45):
            part = shapely.ops.substring(own.geometry, share, 1 - share, normalized=True)
            assert graph.with_weights(closed=part.offset_curve(0.4)).digest == expected, (own, share)


def test_the_coordinates_of_geometries_are_checked_as_those_of_places(town, tmp_path):
    graph, _ = town
    _, arcs = graph_to_gdfs(graph)
    plane = import_graph(arcs.to_crs(25833), tmp_path / "plane", weight="weight")
    expected = plane.with_weights(closed=gpd.GeoSeries([BRIDGE], crs=4326)).digest
    for closed in (BRIDGE, shapely.Point(13.015, 52), shapely.LineString([(13.015, 51.999), (13.015, 52.001)])):
        with pytest.warns(UserWarning, match="closed: taken for longitudes and latitudes, as the network is in EPSG"):
            assert plane.with_weights(closed=closed).digest == expected, closed
    for closed, message in (
        (shapely.Point(52, 13.015), "closed, row 1: lon 52 with lat 13.015 is .* km from the nearest road, and with"),
        ([BRIDGE, shapely.transform(BRIDGE, lambda each: each[:, ::-1])], "closed, row 2: .* exchange them"),
        (
            shapely.Point(500000, 5800000),
            "closed, row 1: there is no longitude 500000 .*; .* name their coordinate system",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            graph.with_weights(closed=closed)
    far = shapely.Point(13.005, 51.9)
    with pytest.warns(UserWarning, match="closed: 1 place is farther than 1,000 m .* road, the worst is row 1, 11 km"):
        assert graph.with_weights(closed=far).digest == graph.with_weights(closed=[("a", "b")]).digest


def test_a_place_is_given_alone_or_as_a_list_and_with_its_coordinate_system(town, tmp_path):
    graph, path = town
    expected = od(path, [AT["b"]], [AT["e"]])
    for place in (AT["b"], [[*AT["b"]]], shapely.Point(AT["b"])):
        pd.testing.assert_frame_equal(od(path, place, [[*AT["e"]]]), expected)
    x, y = gpd.GeoSeries([shapely.Point(AT["b"])], crs=4326).to_crs(25833)[0].coords[0]
    assert shortest_path(path, (x, y), "e", crs=25833).vertices[0] == graph.vertex("b", "source")
    figure = picture_graph(graph, route=((x, y), "e"), crs=25833)
    assert figure is not None


def test_what_names_no_road_is_refused(town):
    graph, _ = town
    for closed, message in (
        (gpd.GeoSeries([BRIDGE, shapely.box(1, 1, 2, 2)]), "closed, row 2: no road meets the geometry"),
        (gpd.GeoSeries([None]), "closed, row 1: no road meets"),
        (np.array(["a"]), r"closed has the shape \(1,\); name each road by its two ends"),
        (["bridge"], "closed is .*bridge.*; a store keeps no names of streets and no ids of ways; name the two"),
        ("Main Street", "closed is 'Main Street'; a store keeps no names of streets"),
        (4711, "closed is 4711; a store keeps no names of streets and no ids of ways"),
        (graph.path, "closed is the path .*; read the file first"),
        (pd.DataFrame({"lon": [13.016]}), "closed has the columns lon; name each road by"),
        (pd.DataFrame({"lon": [13.016], "lat": [np.nan]}), "closed, row 1: `lat` is missing"),
        (pd.DataFrame({"u": ["a"], "v": ["c"]}), "closed: no arc leads from vertex a to vertex c"),
    ):
        with pytest.raises(ValueError, match=message):
            graph.with_weights(closed=closed)
    bare = import_graph([(0, 1, 2)], graph.path + "-bare")
    with pytest.raises(ValueError, match="closed: .*bare has no coordinates; name roads by their two ends"):
        bare.with_weights(closed=BRIDGE)


def test_networks_and_roads_are_given_by_paths(town, tmp_path):
    graph, path = town
    assert repr(open_hierarchy(path)) == "<hierarchy h: int32 distances of g, 5 vertices>"
    closed = graph.with_weights(closed=BRIDGE)
    changed = open_hierarchy(path).with_weights(closed=BRIDGE)
    assert repr(changed) == "<hierarchy h: int32 distances of g, 5 vertices, changed to 8 arcs>"
    expected = changes(graph, closed, ["b"], ["c"])
    assert expected["travel_time_after"].tolist() == [240]
    _, arcs = graph_to_gdfs(closed)
    other = import_graph(arcs, tmp_path / "closed", weight="weight", unit="s")
    assert graph.names(range(5)) != other.names(range(5))  # vertices of the same names are compared
    pd.testing.assert_frame_equal(changes(path, str(tmp_path / "closed"), ["b"], ["c"]), expected)
    small = import_graph([(0, 1, 2)], tmp_path / "small")
    with pytest.raises(ValueError, match="after: .*small has 2 vertices without names, and .*g has 5; name a network"):
        changes(graph, small.path, ["b"], ["c"])
    gpd.GeoSeries([BRIDGE], crs=4326).to_file(tmp_path / "bridge.geojson")
    found = criticality(path, tmp_path / "bridge.geojson", ["b"], ["c"])
    assert found.to_numpy().tolist() == [[1, "b", "c", 1, 0, 180.0, 180.0]]
    (tmp_path / "o.csv").write_text("vertex\nb\n")
    arguments = ["what-if", path, tmp_path / "c.csv", "--closed", tmp_path / "bridge.geojson"]
    arguments += ["--origins", tmp_path / "o.csv", "--destinations", tmp_path / "o.csv"]
    done = run_command(*arguments)
    assert done.output.endswith("0 of 1 pair changed, in s\n")


@pytest.fixture(scope="module")
def carriageways(tmp_path_factory, maker):
    """Vertices a and b in metres, joined by two two-way streets and two one-way streets; and a dead end from a to c."""
    bends = {("a", "b", 9): 0, ("b", "a", 9): 0, ("a", "c", 5): 300, ("a", "b", 27): 60, ("b", "a", 27): 60}
    bends |= {("a", "b", 50): 120, ("b", "a", 60): -120}
    points = {"a": (400000, 5800000), "b": (400200, 5800000), "c": (400000, 5800500)}
    lines = [shapely.LineString([points[u], (400100, 5800000 + y), points[v]]) for (u, v, _), y in bends.items()]
    frame = gpd.GeoDataFrame([*bends], columns=["u", "v", "time"], geometry=lines, crs=25833)
    folder = tmp_path_factory.mktemp("carriageways")
    graph = import_graph(frame, folder / "g", weight="time", unit="s", simplify=False, sorted_rows=False)
    return graph, build_hierarchy(maker, graph, folder / "h"), frame


def test_one_of_parallel_roads_is_closed_by_its_line_or_row(carriageways):
    graph, hierarchy, frame = carriageways
    _, arcs = graph_to_gdfs(graph)
    assert len(arcs) == graph.m == 7

    def left(closed, **how):
        weights = hierarchy.with_weights(closed=closed, **how).graph().weights().tolist()
        return sorted(each for each in weights if each != 5)

    osmnx = frame.assign(key=[0, 0, 0, 1, 1, 2, 2]).set_index(["u", "v", "key"])
    for time, y, others in (
        (9, 0, [27, 27, 50, 60]),
        (27, 60, [9, 9, 50, 60]),
        (50, 120, [9, 9, 27, 27, 60]),
        (60, -120, [9, 9, 27, 27, 50]),
    ):
        middle = shapely.Point(400100, 5800000 + y)
        row = arcs[arcs["weight"] == time].iloc[:1]
        for closed in (
            middle,
            middle.buffer(2),
            row.geometry,
            row,
            row.iloc[0],
            row.to_crs(4326),
            pd.DataFrame(row.drop(columns="geometry")),
            osmnx[osmnx["time"] == time].iloc[:1],
        ):
            assert left(closed) == others, closed
    assert left(arcs[arcs["weight"] == 9].iloc[:1], one_way=True) == [9, 27, 27, 50, 60]
    assert left(shapely.Point(400100, 5799880), one_way=True) == [9, 9, 27, 27, 50]  # leads from b to a
    with pytest.raises(ValueError, match=r"^closed, row 1: 4 roads are equally near to the place \(a - b\); "):
        graph.with_weights(closed=shapely.Point(400210, 5800000))


@pytest.mark.parametrize(("apart", "closed"), [(1e-9, 2), (0.001, 2), (0.3, 2), (40, 1)])
def test_two_directions_that_are_drawn_slightly_apart_are_one_road(tmp_path, apart, closed):
    onward, back = [(0, 0), (100, 5), (200, 0)], [(200, 0), (100, 5 + apart), (0, 0)]
    far = [(200, 0), (300, 0)]
    lines = [shapely.LineString(np.add(each, 100_000)) for each in (onward, back, far, far[::-1])]
    frame = gpd.GeoDataFrame({"u": [1, 2, 2, 3], "v": [2, 1, 3, 2], "time": 1}, geometry=lines, crs=6933)
    graph = import_graph(frame, tmp_path / "g", weight="time", directed=True)
    middle = shapely.Point(100_100, 100_005 if closed == 2 else 100_004)
    for given in frame.iloc[[0]], graph_to_gdfs(graph)[1].iloc[[0]], lines[0], middle:
        assert graph.m - graph.with_weights(closed=given).m == closed


def test_changes_and_criticality_without_one_of_parallel_roads(carriageways):
    graph, hierarchy, frame = carriageways
    _, arcs = graph_to_gdfs(graph)
    slow, fast = (arcs[arcs["weight"] == time].iloc[:1] for time in (27, 9))
    for network in (graph, hierarchy):
        assert not len(changes(network, network.with_weights(closed=slow), ["a"], ["b"]))
        assert changes(network, network.with_weights(closed=fast), ["a"], ["b"])["change"].tolist() == [18]
    each = criticality(hierarchy, pd.concat([slow, fast]))
    assert each[["longer", "cut", "total"]].to_numpy().tolist() == [[0, 0, 0], [3, 0, 54]]
    assert each.join(arcs["weight"])["weight"].tolist() == [27, 9]
    osmnx = frame.assign(key=[0, 0, 0, 1, 1, 2, 2])[frame["u"] + frame["v"] == "ab"].set_index(["u", "v", "key"])
    totals = criticality(hierarchy, osmnx)["total"]
    assert totals.to_dict() == {("a", "b", 0): 54, ("a", "b", 1): 0, ("a", "b", 2): 0}
    both = shapely.box(400099, 5799999, 400101, 5800061)
    assert sorted(criticality(hierarchy, both)["total"]) == [0, 54]


def test_two_names_close_all_roads_between_them_with_a_warning(carriageways):
    graph, hierarchy, _ = carriageways
    said = "^4 roads join 'a' and 'b'; all are closed; give a row of graph_to_gdfs or a geometry for one of them$"
    for network in (graph, hierarchy):
        with pytest.warns(UserWarning, match=said):
            assert changes(network, network.with_weights(closed=[("a", "b")]), ["a"], ["b"])["change"].isna().all()
    with pytest.warns(UserWarning, match="^3 roads join 'a' and 'b'; all are closed"):
        assert graph.with_weights(closed=("a", "b"), one_way=True).m == 4
    of_another_graph = pd.DataFrame({"u": ["a"], "v": ["b"]}, index=pd.Index([4], name="arc"))  # here 4 is b - a
    with pytest.warns(UserWarning, match="^4 roads"):
        assert graph.with_weights(closed=of_another_graph).m == 1
    with pytest.warns(UserWarning, match="^4 roads"):
        assert criticality(hierarchy, [("a", "b")])["cut"].tolist() == [3]  # c, too, is cut off from b
