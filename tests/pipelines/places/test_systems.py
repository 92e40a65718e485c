"""Places in other coordinate systems than the network: which system is taken, and what is said of it."""

import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from commands import run_command
from pyproj import Transformer

from pipelines import StoreError, criticality, isochrones, od, picture_graph, shortest_path, vertices_at, write_graph

PLANE = "EPSG:32633"
NUMBERS = [1, 2, 3]  # an index as the numbers of places without one


@pytest.fixture(scope="module")
def degrees():
    """Longitudes and latitudes of three vertices near Potsdam."""
    return np.array([[13.05, 52.40], [13.06, 52.40], [13.06, 52.41]])


@pytest.fixture(scope="module")
def roads(degrees, tmp_path_factory):
    """Function that returns a ring of three vertices in metres, with or without the name of its coordinate system."""
    places = np.stack(Transformer.from_crs(4326, PLANE, always_xy=True).transform(*degrees.T), axis=1)
    folder = tmp_path_factory.mktemp("roads")
    rows = np.array([0, 1, 2, 3]), np.array([1, 2, 0]), np.array([5, 6, 7])
    named = write_graph(folder / "named", *rows, coordinates=places, crs=PLANE, weight_unit="s")
    return {"named": named, "": write_graph(folder / "plain", *rows, coordinates=places)}


def near(degrees):
    return degrees + np.array([0.0002, 0.0001])


@pytest.mark.parametrize("kind", ["tuples", "array", "xy", "geo", "points"])
def test_what_is_plainly_longitude_and_latitude_is_taken_for_it_and_a_warning_says_so(roads, degrees, kind):
    at = near(degrees)
    given = {
        "tuples": [*map(tuple, at.tolist())],
        "array": at,
        "xy": pd.DataFrame(at, columns=["x", "y"]),
        "points": list(gpd.points_from_xy(*at.T)),
        "geo": gpd.GeoSeries(gpd.points_from_xy(*at.T)),
    }[kind]
    taken = r"the origins: taken for longitudes and latitudes, as the network is in EPSG:32633; crs=.EPSG:4326. says so"
    with pytest.warns(UserWarning, match=taken):
        found = od(roads["named"], given, [0])
    assert found["travel_time"].tolist() == [0, 13, 7]
    assert found["origin_snapped"].between(15, 20).all()  # metres


def test_who_names_the_system_is_not_warned(roads, degrees):
    at = near(degrees)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = od(roads["named"], pd.DataFrame(at, NUMBERS, ["lon", "lat"]), [0])
        pd.testing.assert_frame_equal(od(roads["named"], at, [0], crs="EPSG:4326"), expected)
        web = gpd.GeoSeries(gpd.points_from_xy(*at.T), NUMBERS, crs=4326).to_crs(3857)
        pd.testing.assert_frame_equal(od(roads["named"], web, [0]), expected)
        pairs = pd.DataFrame({"origin_x": web.x, "origin_y": web.y, "destination": [0, 0, 0]})
        rows = od(roads["named"], pairs=pairs, crs=3857)
        assert rows["travel_time"].tolist() == expected["travel_time"].tolist()
        own = roads["named"].coordinates() + 3
        assert od(roads["named"], own, [0])["origin_snapped"].round(2).tolist() == [4.24] * 3
        assert vertices_at(roads["named"], tuple(at[2]), crs=4326).vertices.indices == 2
    with pytest.warns(UserWarning, match="taken for longitudes"):
        areas = isochrones(roads["named"], tuple(at[1]), 20)
    assert areas["moved"].between(15, 20).all()


def test_what_does_not_fit_is_refused(roads, degrees):
    lonlat = pd.DataFrame(degrees, columns=["lon", "lat"])
    points = gpd.GeoSeries(gpd.points_from_xy(*degrees.T), crs=4326)
    unknown = "and the coordinates of .*plain are in no known system; name it when the network is imported"
    for network, given, crs, message in (
        ("", degrees, None, f"the origins look like longitudes and latitudes, {unknown}"),
        ("", lonlat, None, f"the origins are longitudes and latitudes, {unknown}"),
        ("", degrees, 3857, f"the origins are in EPSG:3857, {unknown}"),
        ("named", lonlat, 3857, "columns lon and lat are longitudes and latitudes, but .* EPSG:3857; name"),
        ("named", points, 3857, "their coordinate system is EPSG:4326, not 3857; leave out crs"),
        ("named", degrees, "EPSG:x", r"crs \(--crs\) is 'EPSG:x', which is no coordinate system"),
        ("named", degrees[:, ::-1], 4326, "row 1: x 52.4 with y 13.05 is .* the two numbers exchanged"),
        ("named", lonlat.assign(lat=95.0), None, "index 0: there is no longitude 13.05 with latitude 95"),
    ):
        with pytest.raises(ValueError, match=message):
            od(roads[network], given, [0], crs=crs)


def test_the_named_system_is_that_of_places_which_do_not_say_theirs(roads, degrees):
    at = near(degrees)
    points = gpd.GeoSeries(gpd.points_from_xy(*at.T), NUMBERS, crs=4326)
    web, lonlat = points.to_crs(3857), pd.DataFrame(at, NUMBERS, ["lon", "lat"])
    expected = od(roads["named"], lonlat)
    for origins, destinations in ((points, web.get_coordinates()), (web.get_coordinates().to_numpy(), lonlat)):
        found = od(roads["named"], origins, destinations, crs=3857)
        pd.testing.assert_frame_equal(found, expected)
    road = web.get_coordinates().to_numpy()[:1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tables = [criticality(roads["named"], each, lonlat, crs=3857) for each in (road, tuple(road[0]), list(web[:1]))]
    assert tables[0].iloc[:, 1:3].to_numpy().tolist() == [[0, 2]]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])
    with pytest.warns(UserWarning, match="the origins, the destinations: taken for longitudes") as caught:
        od(roads["named"], at, at)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="the route ends: taken for longitudes") as caught:
        picture_graph(roads["named"], route=(tuple(at[0]), tuple(at[1])))
    assert len(caught) == 1


def test_the_commands_do_the_same(roads, degrees, tmp_path):
    def run(*arguments):
        return " ".join(run_command(*arguments).output.split())  # lines are wrapped

    told = run("path", roads["named"].path, "13.0502,52.4001", "2")
    assert "moved 17.6 m to vertex 0; taken for longitudes and latitudes, as the network is in EPSG:32633" in told
    pd.DataFrame(near(degrees), columns=["x", "y"]).to_csv(tmp_path / "at.csv", index=False)
    out = tmp_path / "od.csv"
    told = run("od", roads["named"].path, out, "--origins", tmp_path / "at.csv")
    assert "taken for longitudes and latitudes, as the network is in EPSG:32633; --crs EPSG:4326 says so" in told
    told = run("od", roads["named"].path, out, "--origins", tmp_path / "at.csv", "--crs", "EPSG:4326", "--overwrite")
    assert "taken for" not in told
    assert pd.read_csv(out)["travel_time"].tolist() == [0, 5, 11, 13, 0, 6, 7, 12, 0]


def test_whole_numbers_are_places_too(roads, degrees):
    graph = roads["named"]
    near = graph.coordinates()[:2].round().astype(int)
    expected = od(graph, near.astype(float), [2, 0])
    pairs = [*map(tuple, near.tolist())]
    for given in near, near.astype("uint32"), pairs, [*near], near.tolist(), tuple(pairs):
        pd.testing.assert_frame_equal(od(graph, given, [2, 0]), expected)
    one = expected[:2]
    for given in (pairs[0], near[0].astype(float), [pairs[0]], tuple(near[0])):
        pd.testing.assert_frame_equal(od(graph, given, [2, 0]), one)
    assert od(graph, [2, 0], near.tolist()[0:1])["destination"].tolist() == [1, 1]
    with pytest.raises(StoreError, match="there is no vertex"):
        od(graph, near[0].tolist(), [2, 0])  # a flat list names vertices
    assert isochrones(graph, pairs[0], 20)["moved"].max() < 1
    road = tuple(((near[0] + near[1]) // 2).tolist())
    expected = graph.with_weights(closed=[(0, 1)]).digest
    for closed in road, [road], np.array([road]), (0, 1), np.array([[0, 1]]):
        assert graph.with_weights(closed=closed).digest == expected


def test_a_place_far_outside_of_the_network_is_refused(roads, degrees):
    at = near(degrees)
    lonlat = pd.DataFrame(at, columns=["lon", "lat"])
    other = gpd.GeoSeries(gpd.points_from_xy(*at.T), crs=4326).to_crs(32632).get_coordinates()
    large = "farther than the network is large .1,3.. m."
    with pytest.raises(
        ValueError, match=f"the origins, index 0: ... km from .*{large}; so are 2 other rows; name the coord"
    ):
        od(roads["named"], other, [0])
    with pytest.raises(ValueError, match="the destinations, index 1: .* km from the nearest vertex"):
        od(roads["named"], [0], lonlat.assign(lon=[13.05, 0, 13.06]))
    with pytest.raises(ValueError, match="the source .*: .* km from the nearest vertex"):
        shortest_path(roads["named"], tuple(other.to_numpy()[0]), 0)
    with pytest.raises(ValueError, match=f"closed, row 1: ... km from the nearest road, {large}; name"):
        roads["named"].with_weights(closed=other[:1])
    with pytest.warns(UserWarning, match="farther than 1,000 m"):
        od(roads["named"], lonlat.assign(lon=13.5), [0])  # some 30 km
