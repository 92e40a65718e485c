"""A route as analysts use it: between places, with names, a unit, and its geometry."""

import pickle

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from commands import invoke

import pipelines
from pipelines import (
    StoreError,
    build_hierarchy,
    import_graph,
    k_shortest_paths,
    od,
    shortest_path,
    tree_path,
    write_turns,
)

HOME, SCHOOL = (13.0001, 52.0001), shapely.Point(13.0199, 52.0101)


@pytest.fixture(scope="module", params=["EPSG:4326", "EPSG:32633"])
def town(request, tmp_path_factory):
    """Streets a-b-c with a bend, and a footway c-a; in longitudes and latitudes, or in metres."""
    lines = gpd.GeoDataFrame(
        {"u": ["a", "b", "c"], "v": ["b", "c", "a"], "time": [60, 90, 500], "highway": ["primary", None, "footway"]},
        geometry=[
            shapely.LineString([(13, 52), (13.01, 52)]),
            shapely.LineString([(13.01, 52), (13.01, 52.01), (13.02, 52.01)]),
            shapely.LineString([(13.02, 52.01), (13, 52)]),
        ],
        crs=4326,
    )
    folder = tmp_path_factory.mktemp("town")
    graph = import_graph(lines.to_crs(request.param), folder / "g", weight="time", unit="s")
    return graph, lines


@pytest.mark.filterwarnings("ignore:.*taken for longitudes")
def test_a_route_between_places_is_a_frame_and_a_line(town):
    graph, lines = town
    route = shortest_path(graph, HOME, SCHOOL)
    assert (route.names, route.distance, route.unit, len(route)) == (["a", "b", "c"], 150, "s", 2)
    assert repr(route) == "<route from a to c: 150 s over 2 arcs>"
    assert (route.weights, route.total) == ((60, 90), 150)
    frame = route.to_geodataframe()
    assert frame[["source", "target", "weight"]].to_numpy().tolist() == [["a", "b", 60], ["b", "c", 90]]
    assert (frame["highway"][0], frame["highway"].isna().tolist()) == ("primary", [False, True])
    expected = lines.geometry[:2].to_crs(32633).length
    np.testing.assert_allclose(frame["length"], expected, rtol=1e-3)  # metres; the plane is true to scale up to 0.04 %
    assert route.length == pytest.approx(frame["length"].sum())
    with pytest.MonkeyPatch.context() as patch:  # the rows were read once
        patch.setattr("pipelines.routes.route.RoadsAlong", None)
        assert route.length == pytest.approx(frame["length"].sum())
        assert pickle.loads(pickle.dumps(route)) == route
    assert frame.to_crs(4326).geometry.iloc[1].equals_exact(lines.geometry[1], 1e-9)
    back = shortest_path(graph, "c", "b").to_geodataframe().to_crs(4326).geometry.iloc[0]
    assert back.equals_exact(lines.geometry[2], 1e-9)
    shape = shapely.geometry.shape(route.__geo_interface__["geometry"])
    assert shape.equals_exact(shapely.LineString([(13, 52), (13.01, 52), (13.01, 52.01), (13.02, 52.01)]), 1e-9)
    assert route.__geo_interface__["properties"] == {"source": "a", "target": "c", "distance": 150, "unit": "s"}
    (again, *_) = k_shortest_paths(graph, HOME, SCHOOL, 2)
    assert again == route
    homes = pd.DataFrame([["Ann", *HOME], ["Bob", 13.0101, 52.0]], columns=["name", "lon", "lat"])
    rows = gpd.GeoDataFrame(homes, geometry=gpd.points_from_xy(homes.lon, homes.lat))[["name", "geometry"]]
    for frame in homes, homes.rename(columns={"lon": "x", "lat": "y"}), rows:
        assert shortest_path(graph, frame.loc[0], frame.loc[1]).names == ["a", "b"]


@pytest.mark.parametrize("turns", [False, True])
def test_tables_of_paths_have_the_lengths_of_the_routes(town, tmp_path, turns):
    graph, _ = town
    if turns:
        table = pd.DataFrame([["a", "b", "c", 5]], columns=["from", "via", "to", "cost"])
        graph = write_turns(graph, tmp_path / "turned", table)
    names = ["b", "a", "c"]
    found = od(graph, names, paths=True)
    routes = [
        shortest_path(graph, start, end) for start, end in zip(found["origin"], found["destination"], strict=True)
    ]
    assert found["length"].tolist() == [route.length for route in routes]
    rows = od(graph, pairs=found[["origin", "destination"]], paths=True)
    pd.testing.assert_series_equal(rows["length"], found["length"])
    lines = od(graph, pairs=found[["origin", "destination"]].iloc[::-1], paths="lines")[::-1]
    assert lines.crs == graph.crs
    pd.testing.assert_frame_equal(pd.DataFrame(lines.drop(columns="geometry")), rows)
    for line, route in zip(lines.to_crs(4326).geometry, routes, strict=True):
        if len(route):
            assert line.equals_exact(shapely.geometry.shape(route.__geo_interface__["geometry"]), 1e-9)
        else:
            assert line is None
    command = ["od", graph.path, str(tmp_path / "od.csv"), "--paths", "--origins", str(tmp_path / "o.csv")]
    pd.DataFrame({"vertex": names}).to_csv(tmp_path / "o.csv")
    assert invoke(*command).exit_code == 0
    assert pd.read_csv(tmp_path / "od.csv")["length"].tolist() == found["length"].round(1).tolist()


@pytest.mark.parametrize("town", ["EPSG:4326"], indirect=True)
def test_a_frame_of_one_row_is_a_place(town):
    graph, _ = town
    lonlat = pd.DataFrame([[*HOME], [13.0101, 52.0]], columns=["lon", "lat"])
    metres = gpd.GeoDataFrame(geometry=gpd.points_from_xy(lonlat.lon, lonlat.lat, crs=4326)).to_crs(32633)
    for frame in lonlat, metres, metres.geometry, pd.DataFrame({"vertex": ["a", "b"]}):
        assert shortest_path(graph, frame.iloc[[0]], frame.iloc[[1]]).names == ["a", "b"]
        assert k_shortest_paths(graph, frame.iloc[[0]], "c", 1)[0].names == ["a", "b", "c"]
        with pytest.raises(ValueError, match="^the source is a table of 2 rows; give one row, as frame"):
            shortest_path(graph, frame, "a")
    assert pipelines.picture_graph(graph, source=metres.iloc[[0]]) is not None
    with pytest.raises(
        ValueError, match="the target .*no longitude 3627.* name their coordinate system .* crs=frame.crs"
    ):
        shortest_path(graph, "a", metres.iloc[0])
    assert pipelines.vertices_at(graph, metres.iloc[0], crs=metres.crs).moved.max() < 20


@pytest.mark.parametrize("town", ["EPSG:32633"], indirect=True)
def test_a_route_without_arcs(town):
    route = shortest_path(town[0], "a", "a")
    assert (len(route), bool(route), len(route.to_geodataframe()), route.length) == (0, True, 0, 0.0)
    assert len(route.__geo_interface__["geometry"]["coordinates"]) == 2


@pytest.mark.parametrize("town", ["EPSG:32633"], indirect=True)
def test_routes_of_other_stores(town, client, tmp_path):
    graph, _ = town
    expected = shortest_path(graph, "a", "c").to_geodataframe()
    hierarchy = build_hierarchy(client, graph, tmp_path / "h")
    trees = pipelines.single_source_shortest_paths(client, graph, tmp_path / "t", ["a"])
    turns = pd.DataFrame([["a", "b", "c", 5]], columns=["from", "via", "to", "cost"])
    turned = write_turns(graph, tmp_path / "turned", turns)
    near = tuple(graph.coordinates()[0] + 1e-6)
    for route in (
        shortest_path(hierarchy, near, "c"),
        tree_path(trees, near, "c"),
        shortest_path(turned, near, "c"),
    ):
        assert route.names == ["a", "b", "c"]
        assert route.to_geodataframe().drop(columns="weight").equals(expected.drop(columns="weight"))


def test_who_has_no_places_is_told(tmp_path):
    bare = pipelines.import_graph([(0, 1, 2.5)], tmp_path / "g")
    with pytest.raises(StoreError, match="has no coordinates"):
        od(bare, [0], [1], paths="lines")
    with pytest.raises(ValueError, match="paths is 'line'; give True, False or 'lines'"):
        od(bare, [0], [1], paths="line")
    missing = pipelines.write_graph(tmp_path / "m", [0, 1, 2, 2], [1, 2], coordinates=[[0, 0], [1, 0], [np.nan] * 2])
    lines = od(missing, ["0"], ["1", "2", "0"], paths="lines")
    assert lines.geometry.isna().tolist() == [False, True, True]
    assert od(missing, ["2"], ["0"], paths="lines").geometry.isna().all()  # no path leads there
    assert repr(shortest_path(bare, 0, 1)) == "<route from 0 to 1: 2.5 over 1 arc>"
    with pytest.raises(StoreError, match=r"g has no coordinates; import it with coordinates"):
        shortest_path(bare, 0, 1).to_geodataframe()
    with pytest.raises(ValueError, match="has no coordinates; name vertices, or import it with coordinates"):
        shortest_path(bare, (0.5, 1), 1)
