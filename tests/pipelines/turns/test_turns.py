"""Graphs with turns as users have them: tables, angles, names, paths, pictures; and the errors of tables."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from turn_networks import by_brute_force, networks, rows_of_turns

import pipelines
from gpuops.numbers import outside_infinity
from pipelines import PathFinder, StoreError, build_hierarchy, distances_between, import_graph, write_turns
from pipelines.exports.layers import arcs_frame
from pipelines.pictures.drawing import RED
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.lines import Lines
from pipelines.stores.road_network import road_network
from pipelines.turns.angles import read_angle_costs

STREETS = [("a", "b", 1), ("b", "c", 2), ("b", "d", 5), ("d", "c", 1), ("b", "e", 4)]


def table(*rows, columns=("from", "via", "to", "cost")):
    return pd.DataFrame([row.split() if isinstance(row, str) else row for row in rows], columns=list(columns))


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    return import_graph(STREETS, tmp_path_factory.mktemp("streets") / "g", directed=False)


@pytest.fixture
def turned(streets, tmp_path):
    return lambda *rows, **options: write_turns(streets, tmp_path / "turned", table(*rows), overwrite=True, **options)


def route(graph, source, target):
    path = PathFinder(graph).path(source, target)
    assert sum(path.weights) == path.total == path.distance
    return "".join(graph.names(path.vertices)), path.distance


def test_a_forbidden_turn_is_avoided_and_the_junction_keeps_its_name(turned):
    graph = turned("a b c no")
    assert route(graph, "a", "c") == ("abdc", 7)
    assert route(graph, "a", "b") == ("ab", 1)
    assert route(graph, "b", "c") == ("bc", 2)
    assert route(graph, "b", "b") == ("b", 0)
    assert route(graph, "c", "a") == ("cba", 3)
    assert "turns at 1 junction, for which 8 vertices were added" in graph.describe()


def test_an_only_turn_forbids_the_others_and_several_allow_a_turn_each(turned):
    assert route(turned("a b e only"), "a", "c") == ("abebc", 11)
    assert route(turned("a b e only", "a b d only"), "a", "c") == ("abdc", 7)
    assert route(turned("a b e only", "e b c no"), "a", "c") == ("abebdc", 15)


def test_costs_of_several_rows_are_added_and_an_equal_row_counts_once(streets, tmp_path):
    light = pd.DataFrame({"from": [None, "a", "a"], "via": ["b"] * 3, "to": ["", "c", "c"], "cost": [3, 1.5, 1.5]})
    graph = write_turns(streets.path, tmp_path / "turned", light)
    assert route(graph, "a", "c") == ("abc", 7.5)
    assert route(graph, "a", "e") == ("abe", 8)
    assert graph.weight_dtype == np.float64  # as 1.5 is no integer
    path = PathFinder(graph).path("a", "c")
    assert path.weights == (1, 6.5)  # the turn counts with the arc behind it


def test_parallel_arcs_are_chosen_by_their_numbers(tmp_path):
    graph = import_graph([("a", "b", 1), ("a", "b", 3), ("b", "c", 1), ("b", "c", 9)], tmp_path / "g")
    columns = ("from", "via", "to", "cost", "from_arc", "to_arc")
    other = write_turns(graph, tmp_path / "t", table(["a", "b", "c", "no", 0, 2], columns=columns))
    assert route(other, "a", "c") == ("abc", 4)
    other = write_turns(graph, tmp_path / "t", table(["a", "b", "c", "no", 0, None], columns=columns), overwrite=True)
    assert route(other, "a", "c") == ("abc", 4)
    other = write_turns(graph, tmp_path / "t", table(["", "b", "", "no", None, 2], columns=columns), overwrite=True)
    assert route(other, "a", "c") == ("abc", 10)
    assert len(set(other.labels())) == other.n


def test_a_loop_is_walked_and_shown(tmp_path):
    graph = import_graph([("a", "b", 1), ("b", "b", 2), ("b", "c", 1)], tmp_path / "g")
    assert route(write_turns(graph, tmp_path / "t", table("a b c no")), "a", "c") == ("abbc", 4)


ERRORS = {
    "x b c no": "turns, row 2: .*no vertex 'x'",
    "a x c no": "turns, row 2: .*no vertex 'x'",
    "a b x no": "turns, row 2: .*no vertex 'x'",
    "c a b no": "turns, row 2: no arc leads from vertex c to vertex a; name three vertices along two arcs",
    "b a c no": "turns, row 2: no arc leads from vertex a to vertex c; name three vertices along two arcs",
    "a b c -1": "turns, row 2: `cost` is '-1'; give a number of 0 or more, `no` or `only`",
    "a b c nan": "turns, row 2: `cost` is 'nan'; give a number",
    "a b c never": "turns, row 2: `cost` is 'never'; give a number",
    "a b d 2": "turns, row 2: the turn has another cost than in row 1; leave one of the two rows out",
    "a b d only": "turns, row 2: the turn has another cost than in row 1",
    ("a", "b c", "d", "no"): "turns, row 2: `via` is 'b c', several vertices; a turn is at one vertex",
}


@pytest.mark.parametrize("row", ERRORS)
def test_an_error_names_the_row(turned, row):
    with pytest.raises(ValueError, match=ERRORS[row]):
        turned("a b d no", row)


def test_what_cannot_be_is_refused(streets, turned, tmp_path):
    columns = ("from", "via", "to", "cost", "from_arc")
    for arc, fault in (
        (5, "arc 5 does not lead from vertex a to vertex b"),
        (0.5, "`from_arc` is 0.5; give the number"),
    ):
        with pytest.raises(ValueError, match=f"turns, row 1: {fault}"):
            write_turns(streets, tmp_path / "t", table(["a", "b", "c", "no", arc], columns=columns))
    with pytest.raises(ValueError, match="no column `via`"):
        write_turns(streets, tmp_path / "t", table(columns=("from", "to", "cost")))
    with pytest.raises(ValueError, match="give a table of turns"):
        write_turns(streets, tmp_path / "t")
    with pytest.raises(StoreError, match="has turns already"):
        write_turns(turned("a b c no"), tmp_path / "t", table("a b c no"))
    with pytest.raises(ValueError, match=r"a cost of 3e\+09 does not fit the weights, which are int32"):
        turned("a b c 3000000000")
    closed = write_graph(tmp_path / "c", streets.indptr(), streets.indices(), through=np.arange(5) != 1)
    with pytest.raises(ValueError, match="row 1: no path passes through vertex 1, which is closed"):
        write_turns(closed, tmp_path / "t", table("0 1 2 no"))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_stores_answer_as_the_search_over_arcs(seed, tmp_path, client):
    rng = np.random.default_rng(seed)
    bounds, indptr, heads, weights, through = networks(rng)
    rows, n = rows_of_turns(rng, indptr, heads, through), len(through)
    names = np.array([f"v{i}" for i in rng.permutation(n)], object)
    plain = write_graph(tmp_path / "g", indptr, heads, weights.astype("int32"), labels=names, through=through)
    expected = by_brute_force(bounds, indptr, heads, weights, through, rows)
    columns = {"from": rows.tails, "via": rows.vias, "to": rows.heads}
    columns = {name: np.where(each < 0, None, names[each]) for name, each in columns.items()}
    columns["cost"] = np.where(rows.only, "only", np.where(np.isinf(rows.costs), "no", rows.costs.astype(str)))
    columns |= {"from_arc": np.where(rows.entering < 0, np.nan, rows.entering)}
    columns |= {"to_arc": np.where(rows.leaving < 0, np.nan, rows.leaving)}
    graph = write_turns(plain, tmp_path / "t", pd.DataFrame(columns))

    roads = road_network(graph)
    for name in ("indptr", "indices", "weights", "labels", "through"):
        np.testing.assert_array_equal(getattr(roads, name)(), getattr(plain, name)(), err_msg=name)
    hierarchy = build_hierarchy(client, graph, tmp_path / "h")
    for store in graph, hierarchy:
        found = distances_between(store, names, names)
        np.testing.assert_array_equal(np.where(found == outside_infinity(found.dtype), -1, found), expected)
    pairs = np.argwhere(expected >= 0)
    walks = pipelines.paths_of_pairs(graph, names[pairs])
    found = pipelines.od(hierarchy, list(names), list(names), paths=True)
    assert walks["distance"].to_pylist() == expected[tuple(pairs.T)].tolist()
    some = rng.permutation(n)[:9]
    nearest = pipelines.od(graph, None, list(names[some]), nearest=1)
    least = np.where(expected[:, some] < 0, np.inf, expected[:, some]).min(axis=1)
    assert nearest["origin"].tolist() == list(names)
    assert nearest["distance"].fillna(np.inf).tolist() == least.tolist()
    within = pipelines.od(graph, None, list(names[some]), within=5)
    assert len(within) == ((expected[:, some] >= 0) & (expected[:, some] <= 5)).sum()
    paths = walks["path"].to_pylist()
    assert paths == list(map(list, found["path"][expected.ravel() >= 0]))
    assert [(path[0], path[-1]) for path in paths] == list(map(tuple, names[pairs]))
    roads = {(tail, head) for tail, heads in plain for head in heads}
    assert all(set(pairwise(path)) <= roads for path in paths)
    assert walks["hops"].to_pylist() == [len(path) - 1 for path in paths]
    assert max(map(len, paths)) > 3


# A crossing: west, south, east and north of the middle m. From the north comes a road that bends, and arrives at m from
# the north-east. From e a road goes on to the north, and ends at d.
PLACES = {"m": (0, 0), "w": (-2, 0), "s": (0, -2), "e": (2, 0), "n": (0, 2), "d": (2, 2)}
BEND = [(0.0, 2.0), (1.0, 1.0), (0.0, 0.0)]
ANGLES = table(
    "left 20 180 4", "right -180 -20 2", ["u-turn", None, None, 9], columns=("turn", "least", "most", "cost")
)


@pytest.fixture(scope="module")
def crossing(tmp_path_factory):
    names = list(PLACES)
    ends = [(names.index(u), names.index(v)) for u, v in ("mw", "ms", "me", "mn", "ed")]
    arcs = sorted((*ends, *((v, u) for u, v in ends)))
    indptr = np.searchsorted([u for u, _ in arcs], np.arange(len(names) + 1))
    bends = {(4, 0): 1, (0, 4): -1}
    return write_graph(
        tmp_path_factory.mktemp("crossing") / "g",
        indptr,
        np.array([v for _, v in arcs]),
        np.full(len(arcs), 60, "int32"),
        labels=np.array(names, object),
        coordinates=np.array([*PLACES.values()], float),
        lines=Lines(np.array([bends.get(arc, 0) for arc in arcs]), np.array([0, 3]), np.array(BEND)),
        crs="EPSG:3857",
        weight_unit="s",
    )


def test_angles_follow_the_bends_of_lines(crossing, tmp_path):
    graph = write_turns(crossing, tmp_path / "t", angles=ANGLES)
    costs = {"we": 0, "ws": 2, "sw": 4, "se": 2, "ew": 0, "es": 4, "wn": 4, "sn": 2, "en": 2, "ns": 4}
    costs |= {"nw": 2, "ne": 4}  # the bend arrives from the north-east: to the west is a turn of 45 degrees
    walks = pipelines.paths_of_pairs(graph, [*map(list, costs), ["w", "d"]]).to_pydict()
    assert list(map("".join, walks["path"])) == [*(f"{begin}m{end}" for begin, end in costs), "wmed"]
    assert walks["distance"] == [*(120 + cost for cost in costs.values()), 180]  # at e there are only two roads
    usual = write_turns(crossing, tmp_path / "usual", angles="usual")
    found = distances_between(usual, ["w", "s", "n"], ["s", "w"])
    assert found[[0, 1, 2], [0, 1, 1]].tolist() == [123, 127, 123]  # to the right, to the left, and by 45 degrees


def test_u_turns_cost_or_are_forbidden_but_at_a_dead_end(crossing, tmp_path):
    only = table("w m e only")
    graph = write_turns(crossing, tmp_path / "t", only, angles=ANGLES)
    assert route(graph, "w", "s") == ("wmems", 240 + 9 + 4)  # back at e, where two roads meet
    ban = table(["U-Turn", "", "", "no"], columns=ANGLES.columns)
    graph = write_turns(crossing, tmp_path / "none", only, angles=ban)
    assert route(graph, "w", "s") == ("wmedems", 360)
    assert route(graph, "d", "e") == ("de", 60)


def test_a_sharp_turn_to_another_vertex_is_no_u_turn(tmp_path):
    places = np.array([[0, 0], [2, 0], [1, 0], [3, 0]], float)  # two roads to the west of 1, and one to the east
    indptr, heads = np.array([0, 1, 4, 5, 6]), np.array([1, 0, 2, 3, 1, 1])
    graph = write_graph(tmp_path / "g", indptr, heads, np.full(6, 60), coordinates=places, crs="EPSG:3857")
    turned = write_turns(graph, tmp_path / "t", angles=ANGLES)
    assert distances_between(turned, ["0"], ["2", "3"]).tolist() == [[124, 120]]


def test_the_usual_costs_are_times(crossing, tmp_path):
    indptr, indices, places = crossing.indptr(), crossing.indices(), crossing.coordinates()
    minutes = write_graph(tmp_path / "g", indptr, indices, coordinates=places, weight_unit="minutes")
    assert read_angle_costs("usual", minutes).costs.tolist() == [7 / 60, 3 / 60]
    with pytest.raises(ValueError, match="the weights are in km, and the usual costs of turns are seconds"):
        write_turns(write_graph(tmp_path / "km", indptr, indices, weight_unit="km"), tmp_path / "t", angles="usual")
    with pytest.raises(ValueError, match="has no coordinates, from which angles are computed"):
        write_turns(write_graph(tmp_path / "s", indptr, indices, weight_unit="s"), tmp_path / "t", angles="usual")


@pytest.mark.parametrize(
    ("row", "fault"),
    {
        "left 90 45 1": "row 2: angles from 90 to 45; give `least` and `most` in degrees, rising",
        "left 45 181 1": "row 2: angles from 45 to 181",
        "left -20 30 1": "row 2: has angles in common with row 1",
        "left 45 90 -1": "row 2: `cost` is '-1'",
        "left 45 90 only": "row 2: `cost` is 'only', which has no meaning for angles",
        "left x 90 1": "row 2: `least` is 'x', not a number",
    }.items(),
)
def test_an_error_names_the_row_of_angles(crossing, tmp_path, row, fault):
    given = table("right -180 -10 3", row, columns=ANGLES.columns)
    with pytest.raises(ValueError, match=f"angles, {re.escape(fault)}"):
        write_turns(crossing, tmp_path / "t", angles=given)


def test_places_isochrones_and_layers_show_the_roads_alone(crossing, tmp_path):
    gpd = pytest.importorskip("geopandas")
    graph = write_turns(crossing, tmp_path / "t", table("s m n no", "s m w 30"))
    assert graph.names(pipelines.vertices_at(graph, (0.1, 0.1)).vertices) == ["m"]
    found = pipelines.isochrones(graph, ["s"], 120, kind="edges").set_index(["tail", "head"])
    assert found.geometry.length.min() > 0
    assert ("m", "n") not in found.index
    assert found.loc[("m", "w"), "end"] == 120
    np.testing.assert_allclose(found.geometry[("m", "w")].length, 1)  # half of its 2, as the turn took 30 of 60
    assert found.loc[("m", "w"), "begin"] == 90
    found = pipelines.isochrones(graph, ["w"], 120, kind="edges", reverse=True).set_index(["tail", "head"])
    assert found.loc[("s", "m"), ["begin", "end"]].tolist() == [120, 90]  # before the turn
    assert "s" not in pipelines.isochrones(graph, ["n"], 120, kind="edges", reverse=True)["tail"].tolist()
    pipelines.export_store(graph.path, tmp_path / "arcs.gpkg")
    arcs, plain = gpd.read_file(tmp_path / "arcs.gpkg", layer="arcs"), arcs_frame(crossing)
    assert arcs[["source", "target", "weight"]].equals(plain[["source", "target", "weight"]])
    assert arcs.geometry.geom_equals(plain.geometry).all()


def test_measures_and_pictures_of_distances_leave_the_added_vertices_out(crossing, tmp_path, client):
    graph = write_turns(crossing, tmp_path / "t", table("s m n no", "s m w 30"))
    matrix = pipelines.all_pairs_shortest_paths(client, graph, tmp_path / "d")
    own = matrix[:6, :6].astype(float)
    found = pipelines.measures(matrix)
    assert (found.n, found.diameter, found.mean_distance) == (6, own.max(), own.sum() / 30)
    tree = pipelines.single_source_shortest_paths(client, graph, tmp_path / "p", ["s"])
    assert graph.names(pipelines.tree_path(tree, "s", "w").vertices) == ["s", "m", "w"]
    assert pipelines.tree_paths_of_pairs(tree, [["s", "w"]])["path"].to_pylist() == [["s", "m", "w"]]
    pipelines.picture_graph(graph, tmp_path / "map.dot", distances=matrix, route=("s", "w"))
    drawn = (tmp_path / "map.dot").read_text()
    assert (drawn.count(" -> "), drawn.count(RED)) == (10, 2)  # roads, and two of them on the route
    paths = pipelines.k_shortest_paths(graph, "s", "w", 3)
    assert graph.names(paths[0].vertices) == ["s", "m", "w"]
    assert [path.distance for path in paths] == [sum(path.weights) for path in paths]
    assert paths[0] == pipelines.shortest_path(matrix, "s", "w")
    for refused in (
        lambda: pipelines.betweenness(client, graph),
        lambda: pipelines.eccentricities(graph),
        lambda: pipelines.link_flows(client, graph, {"origin": ["s"], "destination": ["w"], "amount": [1]}),
    ):
        with pytest.raises(ValueError, match="has turns, with which .* not defined"):
            refused()


def test_closed_roads_reversal_and_other_weights(crossing, tmp_path):
    graph = write_turns(crossing, tmp_path / "t", table("s m n no", "s m w 30"))
    turned = pipelines.write_reverse(graph, tmp_path / "r")
    assert route(turned, "w", "s") == ("wms", 150)
    assert route(turned, "n", "s")[1] == 240  # one way round of several
    metres = write_graph(tmp_path / "m", crossing.indptr(), crossing.indices(), np.arange(10), labels=crossing.labels())
    column = pd.Series(range(10), pd.RangeIndex(10, name="arc"))[::-1]
    also = pipelines.od(graph, ["s"], ["n", "w"], also={"metres": metres, "column": column}, paths=True)
    length = dict(zip([(tail, head) for tail, heads in metres for head in heads], range(10), strict=True))
    assert also["metres"].tolist() == [sum(length[pair] for pair in pairwise(path)) for path in also["path"]]
    assert also["column"].equals(also["metres"])
    without = graph.with_weights(closed=[("m", "w")], one_way=True)
    assert distances_between(without, ["s", "w"], ["w"]).ravel().tolist() == [np.iinfo("int32").max, 0]
    assert distances_between(graph.with_weights({("m", "w"): 5}), ["s"], ["w"]) == 95
    lost = pipelines.criticality(graph, [["m", "w"], ["e", "d"]], one_way=True)
    assert lost["cut"].tolist() == [5, 5]
