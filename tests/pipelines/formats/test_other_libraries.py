"""Graphs of igraph, OSMnx and GraphML, and edges in data frames: what comes back, and what is refused."""

import gzip
import re

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import shortest_path
from pipelines.analysis.derived_graphs import write_reverse
from pipelines.formats.graphs import FormatError, graphml, import_graph


@pytest.fixture
def written(tmp_path):
    def written(text, name="city.graphml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / name

    return written


def arcs_of(graph):
    graph.verify()
    indptr, indices, weights = graph.rows()
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    return list(zip(tails.tolist(), indices.tolist(), weights.tolist(), strict=True))


def labels_of(graph):
    return None if graph.labels() is None else graph.labels().tolist()


def street_graph():
    """A graph as OSMnx makes it: a MultiDiGraph of OSM ids, x and y, lengths and geometries; one street twice."""
    graph = nx.MultiDiGraph(crs="epsg:4326", simplified=True)
    for node, x, y in ((4001, 12.5, 41.9), (17, 12.6, 41.8), (99, 12.55, 41.85)):
        graph.add_node(node, x=x, y=y, street_count=2)
    for u, v, length in ((4001, 17, 120.5), (4001, 17, 80.25), (17, 99, 60.0), (99, 4001, 10.0), (99, 99, 5.0)):
        graph.add_edge(u, v, osmid=[u, v], highway="residential", oneway=True, length=length, travel_time=length / 10)
    return graph


STREETS = [(0, 1, 80.25), (0, 1, 120.5), (1, 2, 60.0), (2, 0, 10.0), (2, 2, 5.0)]
PLACES = [[12.5, 41.9], [12.6, 41.8], [12.55, 41.85]]


def check_streets(graph, unit="length"):
    assert sorted(arcs_of(graph)) == STREETS
    assert labels_of(graph) == ["4001", "17", "99"]
    np.testing.assert_array_equal(graph.coordinates(), PLACES)
    assert graph.weight_unit == unit


# --- NetworkX, OSMnx --------------------------------------------------------------------------------------------------


def test_a_graph_of_osmnx(load):
    check_streets(load(street_graph(), weight="length"))
    assert sorted(arcs_of(load(street_graph(), weight="travel_time")))[0] == (0, 1, 8.025)
    remarks = []
    says = r"Graph: weights are 1 for each arc; the edges have length, travel_time: choose one \(weight, --weight\)$"
    with pytest.warns(UserWarning, match=says):
        load(street_graph(), report=remarks.append)
    assert not remarks
    named = nx.Graph([(0, 1, {"highway": "primary", "oneway": True, "osmid": 7})])
    load(named, report=remarks.append)  # without numbers that may be weights: a remark
    assert remarks == [
        "edges have no attribute 'weight', so each arc counts 1; other attributes are highway, oneway, osmid (weight=)"
    ]
    with pytest.raises(
        FormatError, match=re.escape("no attribute 'traveltime'; choose another (weight=): highway, one")
    ):
        load(named, weight="traveltime")


def test_attribution_and_coordinate_system_of_osmnx_are_kept(load, tmp_path):
    graph = street_graph()
    graph.graph["created_with"] = "OSMnx 2.1.1"
    nx.set_edge_attributes(graph, "several", "osmid")  # GraphML has no lists
    nx.write_graphml(graph, tmp_path / "city.graphml")
    osm = "\u00a9 OpenStreetMap contributors"
    for source in graph, tmp_path / "city.graphml":
        found = load(source, weight="length")
        assert (found.crs, found.attribution, osm in found.describe()) == ("EPSG:4326", osm, True)
        assert found.integer_labels
        assert (found.weight_unit, load(source, weight="length", unit="km").weight_unit) == ("m", "km")
        assert load(source, weight="length", attribution="").attribution == ""
        assert load(source, weight="length", attribution="\u00a9 Town", crs="EPSG:6933").crs == "EPSG:6933"
    roads = load(graph, weight="length")
    assert (roads.road_classes, roads.classes().of_arcs.tolist()) == (("residential",), [0] * 5)
    closed = load(graph, weight="length").with_weights(closed=[("17", "99")])
    derived = write_reverse(load(graph, weight="length"), tmp_path / "reverse"), closed
    assert [each.attribution for each in derived] == [osm, osm]
    assert load(street_graph(), weight="length").attribution == ""


def test_an_edge_without_the_attribute_is_named(load):
    graph = street_graph()
    del graph[17][99][0]["length"]
    with pytest.raises(FormatError, match="the edge 17 - 99 has 'length' = None"):
        load(graph, weight="length")


def test_nodes_without_positions_have_none(load):
    graph = street_graph()
    del graph.nodes[17]["x"]
    assert np.isnan(load(graph, weight="length").coordinates()).tolist() == [[False] * 2, [True] * 2, [False] * 2]
    graph.nodes[99]["x"] = "east"
    assert load(graph, weight="length").coordinates() is None


# --- igraph -----------------------------------------------------------------------------------------------------------


def test_a_graph_of_igraph(load):
    graph = igraph.Graph([(0, 1), (0, 1), (1, 2), (2, 0), (2, 2)], directed=True)
    assert arcs_of(load(graph)) == [(u, v, 1) for u, v, _ in STREETS]
    assert labels_of(load(graph)) is None
    graph.es["length"] = [120.5, 80.25, 60.0, 10.0, 5.0]
    graph.vs["name"] = ["4001", "17", "99"]
    graph.vs["x"], graph.vs["y"] = zip(*PLACES, strict=True)
    check_streets(load(graph, weight="length"))
    undirected = igraph.Graph([(0, 1)], edge_attrs={"weight": [7]})
    assert arcs_of(load(undirected)) == [(0, 1, 7), (1, 0, 7)]
    assert load(undirected).rows()[2].dtype == np.int32
    assert arcs_of(load(igraph.Graph(3))) == []
    costs = igraph.Graph([(0, 1)], edge_attrs={"cost": [2.5], "oneway": [True], "name": ["a"], "id": [4]})
    with pytest.warns(UserWarning, match="igraph graph: weights are 1 for each arc; the edges have cost: choose one"):
        assert arcs_of(load(costs)) == [(0, 1, 1), (1, 0, 1)]


def test_what_igraph_graphs_lack_is_named(load):
    graph = igraph.Graph([(0, 1)], edge_attrs={"cost": [None]})
    with pytest.raises(FormatError, match=re.escape("no attribute 'length'; choose another (weight=): cost")):
        load(graph, weight="length")
    with pytest.raises(FormatError, match="the edge 0 - 1 has 'cost' = None; give every edge a finite number"):
        load(graph, weight="cost")


# --- Data frames ------------------------------------------------------------------------------------------------------


def street_frames():
    """Nodes and edges as `osmnx.graph_to_gdfs` has them, with bytes for the geometries that GeoPandas would write."""
    graph = street_graph()
    nodes = pd.DataFrame.from_dict(dict(graph.nodes(data=True)), orient="index")
    nodes.index.name = "osmid"
    rows = [{"u": u, "v": v, "key": k, **d, "geometry": b"\0"} for u, v, k, d in graph.edges(keys=True, data=True)]
    return nodes, pd.DataFrame(rows).set_index(["u", "v", "key"])


def test_the_two_tables_of_geopandas(load, tmp_path):
    nodes, edges = street_frames()
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    graph = load(tmp_path / "edges.parquet", weight="length", coordinates=tmp_path / "nodes.parquet")
    check_streets(graph, "m")
    check_streets(load(edges, weight="length", coordinates=tmp_path / "nodes.parquet"), "m")
    check_streets(load(edges, weight="length", coordinates=nodes[::-1]), "m")  # by the index, not by the order of rows
    check_streets(load(edges, weight="length", coordinates=nodes[["x", "y"]][::-1].reset_index()), "m")
    nodes.iloc[1:].to_parquet(tmp_path / "fewer.parquet")
    pd.concat([nodes, nodes.iloc[:1].rename(index={nodes.index[0]: 7})]).to_parquet(tmp_path / "more.parquet")
    for name, told in (
        ("fewer", f"fewer.parquet: no position of 1 of {len(nodes)} vertices"),
        ("more", f"more.parquet: left out 1 of {len(nodes) + 1} nodes, without an edge"),
    ):
        said = []
        load(edges, weight="length", coordinates=tmp_path / f"{name}.parquet", report=said.append)
        assert told in "".join(said)
    with pytest.raises(FormatError, match="unclear which column holds the weights"):
        load(tmp_path / "edges.parquet", coordinates=tmp_path / "nodes.parquet")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_of_data_frames_are_found_by_their_names(load, kind):
    frame = pd.DataFrame({"id": [7, 8, 9], "target": ["b", "c", "a"], "source": ["a", "b", "c"], "cost": [3, 4, 5]})
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "arrow":
        frame = pa.Table.from_pandas(frame)
    remarks = []
    graph = load(frame, report=remarks.append)
    assert arcs_of(graph) == [(0, 1, 3), (1, 2, 4), (2, 0, 5)]
    assert labels_of(graph) == ["a", "b", "c"]
    assert remarks == [
        f"the {type(frame).__name__}: tails from column 2 (source), heads from column 1 (target), "
        "weights from column 3 (cost)"
    ]
    assert arcs_of(load(frame, columns=("source", "target"), directed=False))[0] == (0, 1, 1)


def test_numbers_in_data_frames_are_vertices(load):
    frame = pd.DataFrame({"u": [0, 2], "v": [1, 0], "length": [0.5, 1.5]})
    assert arcs_of(load(frame)) == [(0, 1, 0.5), (2, 0, 1.5)]
    assert arcs_of(load(frame + 1, base=1, vertices=5)) == [(0, 1, 1.5), (2, 0, 2.5)]


def test_ids_in_data_frames_name_vertices_and_a_stray_large_number_does_not(load):
    u, v, w = (
        np.array([25_400_010, 10_004_200, 9_930_071_152]),
        np.array([10_004_200, 9_930_071_152, 7]),
        [1.0, 2.0, 4.0],
    )
    edges, remarks = pd.DataFrame({"u": u, "v": v, "length": w}), []
    graph = load(edges, columns=("u", "v", "length"), report=remarks.append)
    assert graph.labels().tolist() == ["25400010", "10004200", "9930071152", "7"]
    assert shortest_path(graph, u[0], 7).total == 7
    assert graph.vertices(edges.v).tolist() == [1, 2, 3]
    assert "they become labels" in remarks[-1]
    stray = pd.DataFrame({"u": np.arange(9), "v": np.append(np.arange(8), 10_004_200)})
    for frame, options in ((stray, {}), (edges.drop(index=2).assign(v=1), {"base": 1})):
        with pytest.raises(FormatError, match=r"vertices.*pass labels=True \(--labels\)"):
            load(frame, **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"u": [0, 1], "v": [1, 0], "w": [1.0, np.nan]}, "the DataFrame, row 1 (from 0): 'w' is null; fill or remove"),
        ({"u": [0, 1], "v": [1, 0], "w": [np.inf, 1]}, "the DataFrame, row 0 (from 0): arc 0 -> 1, weight inf"),
        ({"u": [0, 1], "v": [1, 0], "w": ["1", "x"]}, "the DataFrame: column 'w' holds"),
        ({"u": [0, "a"], "v": [1, 0], "w": [1, 2]}, "the DataFrame: columns 'u', 'v', 'w' cannot be read"),
        ({"u": [7, 1], "v": [1, np.nan], "w": [1, 2]}, "the DataFrame, row 1 (from 0): 'v' is missing; fill it in, or"),
        ({"u": ["a", None], "v": ["b", "a"], "w": [1, 2]}, "the DataFrame, row 1 (from 0): 'u' is missing; fill it"),
        ({"u": [0.5, 1], "v": [1, 0], "w": [1, 2]}, "the DataFrame: tails and heads are double and int64"),
        ({"a": [0], "b": [1], "c": [2], "d": [3]}, "the DataFrame: has 4 columns"),
    ],
)
def test_frames_that_are_refused(load, columns, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        load(pd.DataFrame(columns))


def test_a_table_of_nodes_without_positions(load, tmp_path):
    pq.write_table(pa.table({"osmid": [1], "lon": [0.5]}), tmp_path / "nodes.parquet")
    with pytest.raises(FormatError, match=re.escape("columns are osmid, lon; rename them")):
        load(pd.DataFrame({"u": [1], "v": [1]}), coordinates=tmp_path / "nodes.parquet")
    with pytest.raises(FormatError, match=re.escape("columns are osmid, lon; rename them")):
        load(pd.DataFrame({"u": [1], "v": [1]}), coordinates=pd.DataFrame({"osmid": [1], "lon": [0.5]}))
    with pytest.raises(FormatError, match="the dict is empty"):
        load({})


# --- GraphML ----------------------------------------------------------------------------------------------------------

GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="x" attr.type="double"/>
  <key id="d1" for="node" attr.name="y" attr.type="double"/>
  <key id="d2" for="edge" attr.name="length" attr.type="string"/>
  <key id="d3" for="edge" attr.name="lanes" attr.type="int"><default>2</default></key>
  <graph edgedefault="directed">
    <node id="4001"><data key="d0">12.5</data><data key="d1">41.9</data></node>
    <node id="17"><data key="d0">12.6</data><data key="d1">41.8</data></node>
    <edge source="4001" target="17" id="0"><data key="d2">120.5</data></edge>
    <edge source="4001" target="17" id="1"><data key="d2">80.25</data><data key="d3">3</data></edge>
    <edge source="17" target="99"><data key="d2">60.0</data></edge>
    <node id="99"><data key="d0">12.55</data><data key="d1">41.85</data></node>
    <edge source="99" target="4001"><data key="d2">1e1</data></edge>
    <edge source="99" target="99"><data key="d2">5</data></edge>
  </graph>
</graphml>
"""


@pytest.mark.parametrize("piece", [1, 1 << 16])
def test_graphml(load, written, piece, monkeypatch):
    monkeypatch.setattr(graphml, "_PIECE_ARCS", piece)
    monkeypatch.setattr(graphml, "_BLOCK_BYTES", 100 if piece == 1 else 1 << 20)
    check_streets(load(written(GRAPHML), weight="length"))
    check_streets(load(written(gzip.compress(GRAPHML.encode()), "city.graphml.gz"), weight="length"))
    lanes = load(written(GRAPHML), weight="lanes")
    assert arcs_of(lanes) == [(0, 1, 2), (0, 1, 3), (1, 2, 2), (2, 0, 2), (2, 2, 2)]
    assert lanes.rows()[2].dtype == np.int32
    remarks = []
    with pytest.warns(UserWarning, match="are 1 for each arc; the edges have length, lanes: choose one .weight, --we"):
        assert {weight for *_, weight in arcs_of(load(written(GRAPHML), report=remarks.append))} == {1}
    assert not remarks
    texts = GRAPHML.replace(">60.0<", ">sixty<").replace("lanes", "osmid")
    load(written(texts), report=remarks.append)
    assert "so each arc counts 1; other attributes are length, osmid (weight, --weight)" in remarks[0]
    undirected = load(written(GRAPHML.replace('"directed"', '"undirected"')), weight="length")
    assert len(arcs_of(undirected)) == 10


@given(
    st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(-9, 9) | st.floats(-1e9, 1e9)), max_size=12),
    st.booleans(),
)
@settings(max_examples=20)
def test_graphml_of_networkx_is_its_graph(tmp_path_factory, kind, edges, named):
    folder = tmp_path_factory.mktemp("graphml")
    graph = kind()
    graph.add_nodes_from(range(7))
    graph.add_weighted_edges_from(edges)
    if named:
        graph = nx.relabel_nodes(graph, {node: f'<{node}&"é' for node in graph})
    nx.write_graphml_xml(graph, folder / "x.graphml", named_key_ids=named)
    ours = import_graph(folder / "x.graphml", folder / "ours")
    theirs = import_graph(graph, folder / "theirs")
    assert arcs_of(ours) == arcs_of(theirs)
    assert labels_of(ours) == labels_of(theirs)
    assert ours.directed == theirs.directed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</graph>", "", "not valid XML (mismatched tag)"),
        ('target="99"', 'target="98"', "line 12: an edge ends at the node '98', which the file does not have"),
        ('<node id="99">', '<node id="17">', "line 13: there is a second node '17'"),
        ('<node id="99">', "<node>", "line 13: a <node> has no id"),
        ('source="17" ', "", "line 12: an <edge> has no source"),
        (">60.0<", ">wide<", "line 12: the edge '17' - '99' has 'length' = 'wide'; give it a finite number"),
        (">60.0<", ">nan<", "line 12: the edge '17' - '99' has 'length' = 'nan'; give it a finite number"),
        ('<data key="d2">60.0</data>', "", "line 12: the edge '17' - '99' has no 'length'; give it a number"),
        (">41.8<", ">north<", "line 9: the y of a node is 'north'; write a number"),
        ('attr.name="length"', 'attr.name="cost"', "edges have no attribute 'length'"),
        ('edgedefault="directed"', 'edgedefault="both"', "line 7: edgedefault of <graph> is 'both'"),
        ('edgedefault="directed"', 'default="directed"', "line 7: edgedefault of <graph> is missing"),
        ("  <graph", '  <node id="1"/><graph', "line 7: a <node> is not within <graph>"),
        ("  <graph", '  <edge source="17" target="17"/><graph', "line 7: a <edge> is not within <graph>"),
        ('<node id="99">', '<key id="d4" for="edge"/><node id="99">', "line 13: a <key> comes after <graph>"),
        ('for="edge"', 'for="edg2"', "line 5: a <key> is for 'edg2'; write one of all, graph, node, edge"),
        ('<key id="d2" for', "<key for", "line 5: a <key> has no id"),
        ('<data key="d2">60.0', "<data>60.0", "line 12: a <data> has no key"),
        (">60.0<", ">6_0<", "line 12: the edge '17' - '99' has 'length' = '6_0'; give it a finite number"),
        (">41.8<", ">4_1.8<", "line 9: the y of a node is '4_1.8'; write a number"),
        ('encoding="', 'encoding="x', "the text cannot be decoded (unknown encoding"),
        ('target="99">', 'target="99" directed="false">', "line 12: one edge is directed and others are not"),
        ('<node id="99">', '<hyperedge/><node id="99">', "line 13: a <hyperedge> joins more than two nodes"),
        ('<node id="99">', '<node id="99"><graph edgedefault="directed"/>', "line 13: there is a second <graph>"),
        ("<graphml x", '<!DOCTYPE a [<!ENTITY b "c">]><graphml x', "line 2: the file declares an entity"),
        ("graph ", "grape ", "line 8: a <node> is not within <graph>"),
    ],
)
def test_graphml_that_is_refused(load, written, old, new, message):
    assert old in GRAPHML
    with pytest.raises(FormatError, match=f"city.graphml.*{re.escape(message)}"):
        load(written(GRAPHML.replace(old, new, 1)), weight="length")


def test_graphml_that_is_cut_or_something_else(load, written):
    zipped = gzip.compress(GRAPHML.encode())
    for content, message in [
        (zipped[:-20], "damaged"),
        (GRAPHML[:700].encode(), "not valid XML"),
        (b"", "not valid XML (no element found)"),
        (b"<svg/>", "has no <graph>"),
        (b"a,b,c", "not valid XML"),
    ]:
        with pytest.raises(FormatError, match=re.escape(message)):
            load(written(content))
    with pytest.raises(FormatError, match="no vertices"):
        load(written("<graphml><graph edgedefault='directed'/></graphml>"))
    with pytest.raises(FormatError, match="cannot be read"):
        load("missing.graphml")
