"""Names in tables have the type that the source of the network, or the table of places, gave them."""

import json
import shutil
from itertools import pairwise

import geopandas
import igraph
import networkx
import numpy as np
import pandas as pd
import pytest
import shapely

import pipelines
from pipelines import import_graph, od, open_graph, write_reverse, write_turns
from pipelines.files.tables import vertex_names
from pipelines.od_tables.write import write_od_table
from pipelines.places.points import points_from

IDS = [1_000_000_007, 1_000_000_009, 31, 42]  # along a road
EDGES = pd.DataFrame({"u": IDS[:-1], "v": IDS[1:], "length": [1.0, 2.0, 3.0]})
NODES = pd.DataFrame({"x": [0.0, 1, 2, 3], "y": [0.0, 0, 0, 0]}, index=IDS)


@pytest.fixture(scope="module")
def road(tmp_path_factory):
    path = tmp_path_factory.mktemp("road") / "g"
    return import_graph(EDGES, path, labels=True, directed=False, coordinates=dict(zip(IDS, NODES.values, strict=True)))


def lines(kind):
    shapes = [shapely.LineString([(k, 0), (k + 1, 0)]) for k in range(3)]
    return geopandas.GeoDataFrame(EDGES.astype({"u": kind, "v": kind}), geometry=shapes, crs="EPSG:6933")


def text_file(name, edges):
    def write(folder):
        edges.to_csv(folder / name, index=False)
        return folder / name

    return write


def parquet(edges):
    def write(folder):
        edges.to_parquet(folder / "edges.parquet")
        return folder / "edges.parquet"

    return write


TEXTS = EDGES.astype({"u": str, "v": str})
PAIRS = list(pairwise(IDS))


@pytest.mark.parametrize(
    ("source", "options", "integers"),
    [
        (lambda _: EDGES, {"labels": True}, True),
        (lambda _: TEXTS, {}, False),
        (lambda _: EDGES.astype({"u": str}), {}, False),
        (parquet(EDGES), {"labels": True}, True),
        (parquet(TEXTS), {}, False),
        (lambda _: lines(int), {"columns": ["u", "v"]}, True),
        (lambda _: lines(str), {"columns": ["u", "v"]}, False),
        (lambda _: networkx.Graph(PAIRS), {}, True),
        (lambda _: networkx.Graph([(str(u), v) for u, v in PAIRS]), {}, False),
        (lambda _: igraph.Graph([(0, 1)], vertex_attrs={"name": IDS[:2]}), {}, True),
        (lambda _: igraph.Graph([(0, 1)], vertex_attrs={"name": ["7", "8"]}), {}, False),
        (lambda _: networkx.Graph([(u / 2, v / 2) for u, v in PAIRS]), {}, False),
        (lambda _: PAIRS, {"labels": True}, True),
        (lambda _: {str(u): [str(v)] for u, v in PAIRS}, {}, False),
        (text_file("edges.csv", EDGES), {"labels": True}, True),  # files of text have no types
        (text_file("edges.csv", EDGES.astype({"u": str}).replace("31", "031")), {"labels": True}, False),
        (text_file("edges.csv", EDGES.astype({"u": str}).replace("31", "0x31")), {"labels": True}, False),
        (text_file("edges.csv", EDGES.astype({"u": str}).replace("31", str(2**63))), {"labels": True}, False),
        (lambda _: [(0, 1), (1, 2)], {"base": 0}, True),
        (lambda _: [(1, 2), (2, 3)], {"base": 1}, True),
    ],
)
def test_the_source_says_whether_names_are_integers(tmp_path, source, options, integers):
    graph = import_graph(source(tmp_path), tmp_path / "g", **options)
    names = vertex_names(graph).to_pylist()
    assert {type(name) for name in names} == {int if integers else str}
    assert list(map(str, names)) == graph.names(range(graph.n))


@pytest.mark.parametrize(("labels", "integers"), [(np.array(IDS), True), (np.array(IDS).astype(str), False)])
def test_labels_in_memory_keep_their_type(tmp_path, labels, integers):
    rows = np.array([0, 1, 2, 3, 3]), np.array([1, 2, 3])
    pipelines.write_graph(tmp_path / "g", *rows, labels=labels)
    assert vertex_names(open_graph(tmp_path / "g")).to_pylist() == labels.tolist()
    if not integers:
        with pipelines.graph_by_rows(tmp_path / "rows", labels=labels.tolist()) as by_rows:
            by_rows.append_rows(np.diff(rows[0]), rows[1])
        assert vertex_names(open_graph(tmp_path / "rows")).to_pylist() == labels.tolist()


def test_every_table_of_vertices_joins_with_the_table_of_nodes(road):
    closed = road.with_weights(closed=[(31, 42)])
    for table, columns in (
        (od(road, None, [42], within=4), ["origin", "destination"]),
        (od(road, None, [42], reduce="min"), ["origin"]),
        (od(road, pairs=EDGES[["u", "v"]].set_axis(["origin", "destination"], axis=1)), ["origin", "destination"]),
        (pipelines.changes(road, closed, None, [42]), ["origin", "destination"]),
        (pipelines.criticality(road, [(31, 42)]), ["source", "target"]),
        (pipelines.graph_to_gdfs(road)[0], ["vertex"]),
        (pipelines.graph_to_gdfs(road)[1], ["source", "target"]),
        (pipelines.isochrones(road, [42], 4, kind="edges"), ["source", "tail", "head"]),
        (pipelines.isochrones(road, [42], 4), ["source"]),
        (od(road, [42], None, paths=True).explode("path").astype({"path": "int64"}), ["path"]),
    ):
        assert len(table)
        for column in columns:
            assert table[column].dtype == np.int64
            assert len(table.merge(NODES, left_on=column, right_index=True)) == len(table)


def test_a_matrix_in_memory_has_the_names_of_the_nodes(road, maker, tmp_path):
    frame = pipelines.single_source_shortest_paths(maker, road, tmp_path / "paths", [42]).to_pandas()
    assert (frame.index.tolist(), frame.columns.tolist()) == ([42], IDS)


def test_an_origin_without_a_destination_keeps_exact_integers(road):
    nearest = od(road, None, [IDS[0], IDS[1]], nearest=1, within=0.5)
    assert nearest["origin"].dtype == np.int64
    assert nearest["destination"].dtype == "Int64"
    assert nearest["destination"].fillna(0).tolist() == [*IDS[:2], 0, 0]


@pytest.mark.parametrize("kind", ["int32", "uint64", "Int64", "category", "float64", "str", "datetime64[s]"])
def test_ids_of_places_keep_integer_types_and_others_are_text(road, kind):
    ids = pd.Series(["7", "8"] if kind == "str" else [7, 8], index=[7, 8]).astype(kind)
    integers = kind in ("int32", "uint64", "Int64", "category", "float64")
    homes = NODES.iloc[:2].reset_index(drop=True).assign(id=ids.to_numpy() if kind != "category" else ids.array, n=1)
    for frame in homes, homes.drop(columns="id").set_index(pd.Index(ids)):
        assert points_from(frame, road, "origin").numbered == integers
    for table in od(road, homes, homes, nearest=1), od(road, homes, homes, reduce="sum:n"):
        expected = "object" if not integers else kind if kind in ("int32", "uint64") else "int64"
        assert table["origin"].dtype == expected
        if kind == "float64":
            assert len(table.merge(homes, left_on="origin", right_on="id")) == 2
    assert points_from(homes.assign(id=[7.5, 8]), road, "origin").texts() == ["7.5", "8"]


def test_floats_and_categories_that_name_vertices_are_integers(road):
    for kind in "float64", "category":
        table = od(road, pd.DataFrame({"vertex": pd.Series(IDS[:2]).astype(kind)}), [42])
        assert table["origin"].dtype == np.int64
        assert table["origin"].tolist() == IDS[:2]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_written_table_joins_with_the_nodes(road, tmp_path, suffix):
    points = [points_from(each, road, "origin") for each in (IDS[:2], IDS)]
    write_od_table(road, *points, tmp_path / f"od.{suffix}", paths=True)
    table = getattr(pd, f"read_{suffix}")(tmp_path / f"od.{suffix}")
    assert (
        len(
            table.merge(NODES, left_on="origin", right_index=True).merge(NODES, left_on="destination", right_index=True)
        )
        == 8
    )
    assert table["destination"].tolist() == IDS * 2
    first = table["path"][2]
    assert (first if suffix == "csv" else " ".join(map(str, first))) == " ".join(map(str, IDS[:3]))


def test_derived_graphs_keep_the_type(road, tmp_path):
    write_reverse(road, tmp_path / "reversed")
    assert vertex_names(open_graph(tmp_path / "reversed")).to_pylist() == IDS
    turned = write_turns(
        road, tmp_path / "turned", pd.DataFrame({"from": IDS[:1], "via": IDS[1:2], "to": IDS[2:3], "cost": [5]})
    )
    found = od(turned, None, [42], paths=True)
    assert found["origin"].tolist() == IDS
    assert list(found["path"][0]) == IDS
    assert found["distance"][0] == 11


def test_stores_of_older_versions_have_text(road, tmp_path):
    shutil.copytree(road.path, tmp_path / "old")
    about = json.loads((tmp_path / "old" / "zarr.json").read_text())
    assert about["attributes"].pop("integer_labels") is True
    (tmp_path / "old" / "zarr.json").write_text(json.dumps(about))
    assert od(tmp_path / "old", None, [42])["origin"].tolist() == list(map(str, IDS))
