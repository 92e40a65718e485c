"""Roads that are closed: named by rows of tables, by the index of OSMnx, by geometries and by files."""

import geopandas as gpd
import pandas as pd
import pytest
import shapely
from click.testing import CliRunner

from pipelines import build_hierarchy, changes, criticality, graph_to_gdfs, import_graph, open_hierarchy
from tilepath.cli import tilepath

AT = {"a": (13.0, 52.0), "b": (13.01, 52.0), "c": (13.02, 52.0), "d": (13.0, 52.01), "e": (13.02, 52.01)}
ROADS = [("a", "b", "primary"), ("b", "c", "primary"), ("a", "d", "service"), ("d", "e", "service"), ("e", "c", None)]
BRIDGE = shapely.box(13.012, 51.999, 13.018, 52.001)


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
        gpd.GeoSeries([BRIDGE], crs=4326).to_crs(32633),
        shapely.LineString([(13.015, 51.999), (13.015, 52.001)]),
    ):
        found = graph.with_weights(closed=closed)
        assert found.digest == expected.digest, closed
    main = graph.with_weights(closed=arcs[arcs["highway"] == "primary"])
    assert main.m == graph.m - 4
    near = shapely.Point(13.004, 52.003)  # 274 m from a-d and 334 m from a-b; in degrees a-b is nearer
    assert graph.with_weights(closed=near)["a"] == ["b"]


def test_what_names_no_road_is_refused(town):
    graph, _ = town
    for closed, message in (
        (gpd.GeoSeries([BRIDGE, shapely.box(1, 1, 2, 2)]), "closed, row 2: no road meets the geometry"),
        (gpd.GeoSeries([None]), "closed, row 1: no road meets"),
        (["bridge"], r"closed has the shape \(1,\); name each road by its two ends"),
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
    assert found.to_numpy().tolist() == [["b", "c", 1, 0, 180.0, 180.0]]
    (tmp_path / "o.csv").write_text("vertex\nb\n")
    arguments = ["what-if", path, tmp_path / "c.csv", "--closed", tmp_path / "bridge.geojson"]
    arguments += ["--origins", tmp_path / "o.csv", "--destinations", tmp_path / "o.csv"]
    done = CliRunner().invoke(tilepath, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert done.output.endswith("0 of 1 pair changed, in s\n")
