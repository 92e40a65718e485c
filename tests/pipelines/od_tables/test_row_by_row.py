"""Tables of pairs, what adds up along paths, and units, against the matrix of all distances and against the paths."""

import warnings
from itertools import pairwise

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from commands import invoke, run_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapely.geometry import LineString

from pipelines import changes, od, positions, write_graph
from pipelines.od_tables import row_by_row

N = 60
FIXED = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def lengths(graph, tmp_path_factory):
    """The same arcs with lengths in metres, which are no multiple of the times."""
    indptr, indices, weights = graph.rows()
    metres = np.random.default_rng(8).uniform(1, 300, len(weights)).astype("float32")
    return write_graph(tmp_path_factory.mktemp("also") / "l.zarr", indptr, indices, metres, weight_unit="m")


def names(vertices):
    return [f"v{v}" for v in vertices]


@FIXED
@given(st.data())
def test_rows_are_answered_one_by_one(source, matrix, monkeypatch, data):
    monkeypatch.setattr(row_by_row, "TOGETHER", data.draw(st.integers(1, 4)))
    monkeypatch.setattr(row_by_row, "WASTE", data.draw(st.sampled_from([0, 64])))
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, N - 1)] * 2), min_size=1, max_size=40))
    pairs = pd.DataFrame({"origin": names(o for o, _ in rows), "destination": names(d for _, d in rows)})
    pairs.index = np.arange(len(pairs))[::-1] + 7
    found = od(source, pairs=pairs)
    assert list(found) == ["origin", "destination", "travel_time"]
    assert found.index.equals(pairs.index)
    pd.testing.assert_frame_equal(found[["origin", "destination"]], pairs, check_dtype=False)
    np.testing.assert_array_equal(found["travel_time"].fillna(np.inf), [matrix[row] for row in rows])


def lightest(indptr, indices, weights, path, values):
    """The sum of the values of the lightest arcs along a path of names."""
    total = 0
    vertices = [int(name[1:]) for name in path]
    for u, v in pairwise(vertices):
        arcs = np.arange(indptr[u], indptr[u + 1])
        arcs = arcs[indices[arcs] == v]
        total += values[arcs[np.argmin(weights[arcs])]]
    return total


@pytest.mark.parametrize("options", [{}, {"nearest": 4}, {"within": 70.0}, {"pairs": True}], ids=str)
def test_sums_are_those_along_the_path(source, graph, lengths, options):
    tolls = np.random.default_rng(9).integers(0, 5, graph.m)
    also = {"length": lengths, "toll": tolls, "time": graph.path}
    origins, destinations = positions(np.arange(0, N, 4)), positions(np.arange(3, N, 4))
    asked = [origins, destinations]
    if options == {"pairs": True}:
        asked, options = [], {"pairs": positions(np.stack([origins.indices, destinations.indices], axis=1))}
    found = od(source, *asked, paths=True, also=also, **options)
    assert list(found)[2:] == ["travel_time", "length", "toll", "time", "path"]
    reached, graph_rows = found["path"].notna(), graph.rows()
    assert reached.sum() < len(found) or options
    for column, values in ("length", lengths.rows()[2].astype(float)), ("toll", tolls):
        expected = [lightest(*graph_rows, path, values) for path in found["path"][reached]]
        np.testing.assert_array_equal(found[column][reached], expected)
        assert found[column][~reached].isna().all()
    np.testing.assert_array_equal(found["time"], found["travel_time"])
    sums = od(source, *asked, also=also, **options)
    pd.testing.assert_frame_equal(sums, found.drop(columns="path"))


def test_places_and_ids_of_pairs(source, graph, matrix):
    lon, lat = graph.coordinates()[:50].T
    homes = pd.DataFrame({"id": [70, 3], "lon": lon[[4, 9]], "lat": lat[[4, 9]]})
    schools = pd.DataFrame({"id": ["north", "south"], "lon": lon[[20, 30]], "lat": lat[[20, 30]]})
    trips = pd.DataFrame({"origin": [3, 70, 3], "destination": ["north", "north", "south"]})
    found = od(source, homes, schools, pairs=trips)
    expected = [matrix[9, 20], matrix[4, 20], matrix[9, 30]]
    assert found["travel_time"].tolist() == expected
    assert found["origin"].tolist() == [3, 70, 3]
    assert found["origin_snapped"].max() < 1e-6
    ends = {"origin_lon": lon[[9, 4]], "origin_lat": lat[[9, 4]], "destination": names([20, 20])}
    found = od(source, pairs=pd.DataFrame(ends))
    assert found["travel_time"].tolist() == expected[:2]
    assert found["origin"].tolist() == [0, 1]
    assert list(found) == ["origin", "destination", "travel_time", "origin_snapped"]
    both = pd.DataFrame(ends).assign(origin=names([1, 2]))
    assert od(source, pairs=both)["travel_time"].tolist() == expected[:2]
    assert od(source, positions([1, 2]), positions([20]), pairs=both)["origin"].tolist() == names([1, 2])


def test_the_points_of_one_side_are_those_of_both(source, graph, matrix, tmp_path):
    lon, lat = graph.coordinates()[:50].T
    homes = pd.DataFrame({"id": [0, 1, 2], "lon": lon[[4, 9, 30]], "lat": lat[[4, 9, 30]]})
    trips = pd.DataFrame({"origin": [0, 1, 2], "destination": [1, 2, 2]})
    doubled = source.with_weights(graph.weights() * 2)
    expected = od(source, homes, homes, pairs=trips)
    assert expected["travel_time"].tolist() == [matrix[4, 9], matrix[9, 30], 0]
    for sides in (homes, None), (None, homes):
        pd.testing.assert_frame_equal(od(source, *sides, pairs=trips), expected)
        found = changes(source, doubled, *sides, pairs=trips)
        assert found["change"].tolist() == [matrix[4, 9], matrix[9, 30]]
        with pytest.raises(ValueError, match="the pairs, row 1: the .* have no id '7'"):
            od(source, *sides, pairs=pd.DataFrame({"origin": [1], "destination": [7]}))
    homes.to_csv(tmp_path / "h.csv", index=False)
    trips.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["--origins", tmp_path / "h.csv", "--pairs", tmp_path / "t.csv"]
    run_command("od", source.path, tmp_path / "o.csv", *arguments)
    assert pd.read_csv(tmp_path / "o.csv")["travel_time"].tolist() == expected["travel_time"].tolist()
    placed = {"origin": [1], "destination_lon": lon[[20]], "destination_lat": lat[[20]]}
    assert od(source, homes, pairs=pd.DataFrame(placed))["travel_time"].tolist() == [matrix[9, 20]]


def test_units(source, matrix):
    asked = positions(np.arange(N))
    seconds, minutes = od(source, asked), od(source, asked, unit="minutes")
    assert (seconds.attrs, minutes.attrs) == ({"unit": "s"}, {"unit": "min"})
    np.testing.assert_array_equal(minutes["travel_time"], seconds["travel_time"].astype(float) / 60)
    near = od(source, asked, unit="min", within=0.5)
    assert len(near) == (matrix <= 30).sum()
    decayed = od(source, asked, unit="h", reduce="decay:0.01")["decay"]
    np.testing.assert_allclose(decayed, np.exp(-matrix / 36).sum(1))
    nearest = od(source, ["v0"], ["v5", "v9"], unit="min", reduce="min")["min"]
    assert nearest.tolist() == [min(matrix[0, 5], matrix[0, 9]) / 60]


def test_points_of_geopandas(source, graph):
    at = graph.coordinates()[[4, 9]] + 0.001
    frame = gpd.GeoDataFrame({"id": [70, 3], "lon": ["?", "?"]}, geometry=gpd.points_from_xy(*at.T), crs=4326)
    expected = od(source, pd.DataFrame({"id": [70, 3], "lon": at[:, 0], "lat": at[:, 1]}), ["v3"])
    pd.testing.assert_frame_equal(od(source, frame, ["v3"]), expected)
    projected = od(source, frame.to_crs(3857), ["v3"])
    pd.testing.assert_frame_equal(projected, expected)
    assert od(source, frame.geometry, ["v3"])["travel_time"].tolist() == expected["travel_time"].tolist()
    with pytest.raises(ValueError, match=r"the origins, index 0: the geometry is LineString; give points"):
        od(source, frame.set_geometry([LineString(at)] * 2), ["v3"])
    with pytest.raises(ValueError, match="index 1: the geometry is missing; leave the row out"):
        od(source, frame.set_geometry([frame.geometry[0], None]), ["v3"])


def test_points_in_degrees_need_a_network_in_degrees(tmp_path):
    plain = write_graph(
        tmp_path / "g.zarr", np.array([0, 1, 2]), np.array([1, 0]), np.array([1, 1]),
        coordinates=np.array([[1000.0, 0], [0, 5000]]),
    )  # fmt: skip
    points = gpd.GeoSeries(gpd.points_from_xy([0.0], [4999.0]))
    assert od(plain, points, [0])["distance"].tolist() == [1]
    with pytest.raises(ValueError, match="are longitudes and latitudes, and the coordinates of .* no known system"):
        od(plain, gpd.GeoSeries(gpd.points_from_xy([0.0], [49.0]), crs=4326), [0])


def test_points_are_brought_to_the_system_of_the_network(tmp_path):
    plane = write_graph(
        tmp_path / "g.zarr", np.array([0, 1, 2]), np.array([1, 0]), np.array([1, 1]),
        coordinates=np.array([[1_000_000.0, 6_000_000], [1_000_000, 6_005_000]]), crs="EPSG:3857",
    )  # fmt: skip
    points = gpd.GeoSeries(gpd.points_from_xy([1_000_000.0], [6_004_999.0]), crs=3857).to_crs(4326)
    assert od(plane, points, [0])["distance"].tolist() == [1]


def test_no_pairs_are_a_table_without_rows(source):
    for pairs in pd.DataFrame({"origin": ["v1"], "destination": ["v2"]})[:0], positions(np.empty((0, 2), int)):
        with pytest.warns(UserWarning, match="the origins, the destinations: none is named"):
            assert not len(od(source, pairs=pairs, paths=True))
        with pytest.warns(UserWarning, match="the origins, the destinations: none is named"):
            assert not len(changes(source, source, pairs=pairs))


def test_what_cannot_be_is_said(source, graph, lengths, tmp_path):
    def refused(message, *asked, **options):
        with pytest.raises(ValueError, match=message):
            od(source, *asked, **options)

    pair = pd.DataFrame({"origin": ["v1"], "destination": ["v2"]})
    refused(r"nothing is asked for; give origins .*, or pairs \(--pairs\)$")
    refused(r"needs within \(--within\) above 0", ["v1"], reduce="count", within=0, decay="linear")
    refused(r"nearest \(--nearest\) does not go with pairs", pairs=pair, nearest=1)
    refused(r"pairs \(--pairs\) does not go with reduce", pairs=pair, reduce="count")
    refused("the pairs: no column `destination`, nor `destination_lon`", pairs=pair[["origin"]])
    (tmp_path / "none.csv").write_text("origin,destination\n")
    refused("none.csv: no rows; give at least one pair", pairs=tmp_path / "none.csv")
    refused(r"pairs have the shape \(3,\)", pairs=[1, 2, 3])
    refused(r"there is no vertex '1180591620717411303424'", pd.DataFrame({"origin": [2**70, 1]}))
    refused("the pairs, row 1: the origins have no id 'v1'", pd.DataFrame({"id": ["a"], "vertex": ["v1"]}), pairs=pair)
    refused("first rows 1 and 2 with .v1", pd.DataFrame({"id": ["v1", "v1"], "vertex": ["v1", "v2"]}), pairs=pair)
    refused("unit .* is 'km', and the network is in s; choose ms, s, min, h, d", ["v1"], unit="km")
    refused("no weights called 'toll'; its weights have no names", ["v1"], also="toll")
    refused("also is .*; name weights of the graph, or give each column a graph", ["v1"], also=[1])
    refused("column `path` of its own", ["v1"], also={"path": graph})
    refused(r"also: t is int64 of shape \(2,\); give one number for each of the 160 arcs", ["v1"], also={"t": [1, 2]})
    indptr, indices, weights = graph.rows()
    other = write_graph(tmp_path / "o.zarr", indptr, indices[::-1].copy(), weights)
    refused("does not have the arcs of .* import both from the same file", ["v1"], also={"t": other})


def test_the_command_writes_the_same_tables(source, graph, lengths, tmp_path):
    pairs = pd.DataFrame({"origin": names([1, 5, 1]), "destination": names([2, 55, 9])})
    pairs.to_csv(tmp_path / "p.csv", index=False)
    arguments = ["--pairs", tmp_path / "p.csv", "--also", f"length={lengths.path}", "--paths", "--unit", "min"]
    done = run_command("od", source.path, tmp_path / "o.parquet", *arguments)
    assert "3 pairs, 3 rows, distances in min" in done.output
    expected = od(source, pairs=pairs, also={"length": lengths}, paths=True, unit="min")
    found = pd.read_parquet(tmp_path / "o.parquet")
    for frame in found, expected:
        frame["path"] = frame["path"].map(lambda path: None if path is None else list(path))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_categorical=False)
    wrong = invoke("od", source.path, tmp_path / "p.parquet", "--origins", tmp_path / "p.csv", "--also", "length=")
    assert "--also length=: give NAME or NAME=GRAPH" in str(wrong.exception)


def test_warnings_come_once(source, graph):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        od(source, np.array([[30.0, 50.0]]), positions([1]))
    assert sum("the origins" in str(each.message) for each in caught) == 1
