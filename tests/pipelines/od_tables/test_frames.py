"""Tables in memory, beside the files that `tilepath od` writes of the same points."""

import uuid
import warnings

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shapely
from commands import invoke, run_command

import pipelines
from gpuops import memory
from pipelines import StoreError, build_hierarchy, generate, od, positions
from pipelines.generators import Grid, Road
from pipelines.od_tables import plan
from pipelines.od_tables.write import write_od_table
from pipelines.places.points import points_from

# The homes are far from the streets of so small a network.
pytestmark = pytest.mark.filterwarnings("ignore:.*farther than", "ignore:within is 6 in s")

HOMES = pd.DataFrame({"id": [70, 3, 11], "x": [0.2, 5.1, 7.8], "y": [1.1, 6.7, 0.3], "people": [4, 1, 2]})
SCHOOLS = pd.DataFrame({"id": ["north", "south"], "vertex": [5, 60], "seats": [30.5, 12.0]})


@pytest.fixture(scope="module")
def roads(maker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roads")
    graph = generate(Road(9, missing=0.3, seed=2), folder / "graph")
    build_hierarchy(maker, graph, folder / "hierarchy")
    return folder


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("graph", {}),
        ("graph", {"nearest": 1}),
        ("hierarchy", {"within": 6.0}),
        ("hierarchy", {"paths": True}),
        ("hierarchy", {"reduce": "sum:seats", "within": 8}),
        ("graph", {"reduce": "min"}),
    ],
    ids=str,
)
def test_a_frame_has_the_rows_of_the_file(roads, tmp_path, monkeypatch, network, options):
    monkeypatch.setattr(plan, "BLOCK_BYTES", 16)  # several blocks
    graph = pipelines.open_graph(roads / "graph")
    for name, frame in ("homes", HOMES), ("schools", SCHOOLS):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    read = [
        points_from(tmp_path / "homes.parquet", graph, "origin"),
        points_from(tmp_path / "schools.parquet", graph, "destination", ["seats"]),
    ]
    opened = graph if network == "graph" else pipelines.open_hierarchy(roads / "hierarchy")
    write_od_table(opened, *read, tmp_path / "od.parquet", **options)
    expected = pd.read_parquet(tmp_path / "od.parquet")
    found = od(roads / network, HOMES, SCHOOLS, **options)
    expected["origin"] = expected["origin"].astype("int64")  # their ids are integers
    if "destination" in expected:
        expected["destination"] = expected["destination"].astype("object")
    if "path" in found:
        for frame in found, expected:
            frame["path"] = frame["path"].map(list)
    pd.testing.assert_frame_equal(found, expected, check_categorical=False)
    assert found.merge(HOMES, left_on="origin", right_on="id")["people"].notna().all()
    assert "unit" not in found.attrs


@pytest.mark.parametrize(
    "origins",
    [
        HOMES,
        pl.from_pandas(HOMES),
        pa.Table.from_pandas(HOMES, preserve_index=False),
        HOMES.rename(columns={"x": " X", "y": "Y"}),
    ],
    ids=["pandas", "polars", "arrow", "renamed"],
)
def test_frames_of_every_library_are_points(roads, origins):
    expected = od(roads / "hierarchy", HOMES[["x", "y"]].to_numpy(), [5, "60"])
    found = od(roads / "hierarchy", origins, positions([5, 60]))
    assert expected["origin"].tolist() == [1, 1, 2, 2, 3, 3]
    assert found["origin"].tolist() == [70, 70, 3, 3, 11, 11]
    assert found["destination"].tolist() == [*map(int, expected["destination"])] == [5, 60] * 3
    pd.testing.assert_series_equal(found["distance"], expected["distance"])
    pd.testing.assert_series_equal(found["origin_snapped"], expected["origin_snapped"])


def test_origins_are_the_destinations_by_default(roads):
    found = od(roads / "hierarchy", [5, 60, 7])
    assert found["destination"].tolist() == [5, 60, 7] * 3
    assert (found["distance"][found["origin"] == found["destination"]] == 0).all()


def test_what_cannot_be_is_said(roads, monkeypatch):
    hierarchy = roads / "hierarchy"
    for options, message in (
        ({"within": -1}, "^within is -1; give a distance of 0 or more"),
        ({"within": "2min"}, "^within is in min, but the unit of the network is not known; import"),
        ({"reduce": "sum"}, "reduce is 'sum'; give count"),
        ({"reduce": "mean:name"}, "the destinations: no column `name`; its columns are id, vertex, seats"),
        ({"reduce": "sum:jobs"}, "the destinations: no column `jobs`; its columns are id, vertex, seats"),
        ({"reduce": "count", "paths": True}, "paths .* does not go with reduce"),
    ):
        with pytest.raises(ValueError, match=message):
            od(hierarchy, HOMES, SCHOOLS, **options)
    with pytest.raises(ValueError, match="graph is a graph itself; leave out graph"):
        od(roads / "graph", HOMES, SCHOOLS, graph=roads / "graph")
    with pytest.raises(ValueError, match="the origins, index 1: `y`"):
        od(hierarchy, HOMES.assign(y=[1.0, None, 2.0]), SCHOOLS)
    with pytest.raises(ValueError, match="the origins: no column `origin` or `vertex`, nor `lon`"):
        od(hierarchy, HOMES[["id", "people"]], SCHOOLS)
    with pytest.raises(StoreError, match="there is no vertex 81; give a position from 0 to 80"):
        od(hierarchy, [80, 81])
    with pytest.raises(ValueError, match=r"the origins, index 0: 9,991\.7.* more than the limit of 1"):
        od(hierarchy, HOMES.assign(x=1e4), SCHOOLS, snap_limit=1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        od(hierarchy, HOMES.assign(x=[0.2, 5.1, 18]), SCHOOLS)
    assert any("the origins" in str(each.message) for each in caught)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    monkeypatch.setattr(memory, "_SMALL", 10)
    with pytest.raises(ValueError, match="a table of 81 origins takes .* write it to a file in pieces"):
        od(hierarchy, positions(np.arange(81)))


def test_the_unit_of_a_network_is_an_attribute(tmp_path):
    graph = generate(Grid(4, seed=1), tmp_path / "plain")
    indptr, heads, weights = graph.rows()
    named = pipelines.write_graph(tmp_path / "g", indptr, heads, weights, weight_unit="s")
    assert od(named, [0, 1]).attrs == {"unit": "s"}
    # A column of weights without a unit has a name, which is no unit.
    (tmp_path / "e.csv").write_text("source,target,weight\na,b,3\n")
    toll = pipelines.import_graph(tmp_path / "e.csv", tmp_path / "e", columns=["source", "target", "weight"])
    assert od(toll, ["a"]).attrs == {}
    assert pipelines.shortest_path(toll, "a", "b").unit == ""
    (tmp_path / "a.csv").write_text("vertex\na\n")
    for command, says in (
        (f"od {toll.path} {tmp_path}/t.csv --origins {tmp_path}/a.csv", "1 row; "),
        (f"path {toll.path} a b --json", '"unit": ""'),
    ):
        assert says in invoke(*command.split()).output


def test_points_are_files_of_layers_arrays_and_rows(roads, tmp_path):
    hierarchy, places = roads / "hierarchy", HOMES.iloc[:2]
    at = geopandas.points_from_xy(places.x, places.y)
    points = geopandas.GeoDataFrame(places.drop(columns=["x", "y"]), geometry=at)
    expected = od(hierarchy, places, SCHOOLS)
    points.set_crs(4326).to_file(tmp_path / "homes.gpkg")
    points.set_crs(4326).to_parquet(tmp_path / "homes.parquet")
    own = ["origin", "destination", "distance"]
    for given in tmp_path / "homes.gpkg", str(tmp_path / "homes.parquet"), points:
        pd.testing.assert_frame_equal(od(hierarchy, given, SCHOOLS)[own], expected[own])
    first = expected[expected["origin"] == 70].reset_index(drop=True)
    for row in places.iloc[0], points.iloc[0]:
        found = od(hierarchy, row, SCHOOLS)  # a row of numbers alone has floats
        pd.testing.assert_frame_equal(found.astype({"origin": int}), first)
    for pair in (0.2, 1.1), [0.2, 1.1], np.array([0.2, 1.1]), points.geometry.array[:1]:
        assert od(hierarchy, pair, SCHOOLS)["distance"].tolist() == first["distance"].tolist()
    ids = [uuid.UUID(int=k) for k in range(2)]
    assert od(hierarchy, places.assign(id=ids), SCHOOLS)["origin"].unique().tolist() == [*map(str, ids)]
    empty = points.set_geometry([shapely.Point(), shapely.Point(1, 2)])
    for given, options, message in (
        (places, {"nearest": "3"}, "nearest is '3'; give a whole number from 1"),
        (places, {"nearest": 2.5}, "nearest is 2.5; give a whole number from 1"),
        (places, {"unit": 5}, "unit .* is 5, which is no unit"),
        (places, {"snap_limit": "-1"}, "snap_limit .* is -1; give a distance of 0 or more"),
        (places, {"snap_limit": "1km"}, "snap_limit .* is in km, but the unit"),
        (empty, {}, "the origins, index 0: the geometry is empty; leave the row out"),
    ):
        with pytest.raises(ValueError, match=message):
            od(hierarchy, given, SCHOOLS, **options)


def test_limits_and_scales_may_have_a_unit(roads, tmp_path):
    places = pipelines.open_graph(roads / "graph")
    indptr, heads, weights = places.rows()
    named = pipelines.write_graph(
        tmp_path / "g", indptr, heads, weights, coordinates=places.coordinates(), weight_unit="s"
    )
    for text, number in (("0.1min", 6.0), ("6", 6.0), ("6000 ms", 6.0)):
        same = od(named, HOMES, SCHOOLS, within=number)
        assert 0 < len(same) < len(HOMES) * len(SCHOOLS)
        pd.testing.assert_frame_equal(od(named, HOMES, SCHOOLS, within=text), same)
        minutes = od(named, HOMES, SCHOOLS, within=f"{text}s" if text == "6" else text, unit="min")
        assert minutes["travel_time"].tolist() == pytest.approx((same["travel_time"] / 60).tolist())
    for how, options in (("decay:{}:seats", {}), ("count", {"within": "0.1min", "decay": "linear"})):
        same = od(named, HOMES, SCHOOLS, reduce=how.format(6), **options)
        pd.testing.assert_frame_equal(od(named, HOMES, SCHOOLS, reduce=how.format("0.1min"), **options), same)
    HOMES.to_csv(tmp_path / "homes.csv")
    run_command("od", named.path, tmp_path / "t.csv", "--origins", tmp_path / "homes.csv", "--within", "0.1min")
    assert len(pd.read_csv(tmp_path / "t.csv")) == len(od(named, HOMES, within=6.0))
    for options, message in (
        ({"unit": "minuts"}, r"unit \(--unit\) is 'minuts', which is no unit; did you mean 'minutes'"),
        ({"within": "2 minuts"}, "is in 'minuts', which is no unit; did you mean 'minutes'"),
        ({"within": "2km"}, "is in km, but distances are in s; choose one of ms, s, min"),
        ({"within": [1, 2]}, r"is \[1, 2\]; give one limit, or several with reduce"),
        ({"within": "nan"}, "is nan; give a distance of 0 or more"),
        ({"reduce": "decay:near"}, "SCALE of reduce .* is 'near'; give numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            od(named, HOMES, SCHOOLS, **options)


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        (pd.DataFrame({"origin": ["5", "60"]}), ["5", "60"]),
        (pd.DataFrame({"origin": [5, 60]}), [5, 60]),
        (pa.table({"vertex": ["5", "60"]}), ["5", "60"]),
        (pa.table({"ID": ["a", "b"], "X": [0.2, 5.1], "y": [1.1, 6.7]}), ["a", "b"]),
        (pd.DataFrame({" Id ": [8, 9], "X": [0.2, 5.1], "y": [1.1, 6.7]}), [8, 9]),
        (pd.DataFrame({"x": [0.2, 5.1], "y": [1.1, 6.7]}), [0, 1]),
        (["5", "60"], ["5", "60"]),
        (positions([5, 60]), [5, 60]),
    ],
    ids=str,
)
def test_names_keep_their_type(roads, origins, expected):
    found = od(roads / "hierarchy", origins)  # which are the destinations, too
    assert found["origin"].tolist() == [expected[0], expected[0], *[expected[1]] * 2]
    assert found["destination"].tolist() == expected * 2


def test_names_in_csv_are_text_and_places_are_numbered(roads, tmp_path):
    HOMES[["id", "x", "y"]].to_csv(tmp_path / "named.csv", index=False)
    HOMES[["x", "y"]].to_csv(tmp_path / "places.csv", index=False)
    assert od(roads / "hierarchy", tmp_path / "named.csv", [5])["origin"].tolist() == ["70", "3", "11"]
    assert od(roads / "hierarchy", tmp_path / "places.csv", [5])["origin"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("run", ["od", "shortest_path", "picture_graph", "distances_between", "open_graph"])
def test_a_frame_is_no_graph(run):
    edges = pd.DataFrame({"source": [0], "target": [1]})
    arguments = {"od": [[0]], "shortest_path": [0, 1], "distances_between": [[0], [1]]}.get(run, [])
    with pytest.raises(ValueError, match=r"a DataFrame is no graph store.*import_graph\(edges, 'graph.zarr'\)"):
        getattr(pipelines, run)(edges, *arguments)
