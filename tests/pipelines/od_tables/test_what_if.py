"""Closed roads and other weights, against stores of the changed graph and the brute force over all distances."""

import numpy as np
import pandas as pd
import pytest
from commands import invoke, run_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparse_rows import all_distances

from pipelines import build_hierarchy, changes, criticality, od, open_graph, positions, write_graph
from pipelines.stores.arcs_of_roads import closed_arcs

N = 60
FIXED = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def distances(network):
    found = od(network, positions(np.arange(N)))["travel_time"].to_numpy(float)
    return np.where(np.isnan(found), np.inf, found).reshape(N, N)


def tails_of(graph):
    return np.repeat(np.arange(N), np.diff(graph.indptr()))


@pytest.mark.filterwarnings("ignore:closed. no road is named")
@FIXED
@given(st.data())
def test_distances_without_roads_and_with_other_weights(source, graph, data):
    indptr, indices, weights = graph.rows()
    tails = tails_of(graph)
    roads = data.draw(st.lists(st.integers(0, graph.m - 1), max_size=4))
    one_way, factor = data.draw(st.booleans()), data.draw(st.sampled_from([None, 3, 1.5]))
    given = None if factor is None else weights * np.asarray(factor, "int32" if factor == 3 else "float64")
    ends = [(f"v{tails[arc]}", f"v{indices[arc]}") for arc in roads]
    found = source.with_weights(given, closed=ends, one_way=one_way)
    values = (weights if given is None else given).astype(float)
    for arc in roads:
        values[(tails == tails[arc]) & (indices == indices[arc])] = np.inf
        if not one_way:
            values[(tails == indices[arc]) & (indices == tails[arc])] = np.inf
    kept = np.isfinite(values)
    starts = np.concatenate([[0], np.cumsum(kept)])[indptr]
    np.testing.assert_array_equal(distances(found), all_distances(starts, indices[kept], values[kept]))
    opened = found if source is graph else found.graph()
    assert opened.m == kept.sum()
    assert opened.digest != graph.digest


def test_weights_by_the_ends_of_their_arcs(source, graph):
    indptr, indices, weights = graph.rows()
    tails, values = tails_of(graph), weights.astype(float)
    parallel = (tails == 3) & (indices == 4)
    assert parallel.sum() > 1
    values[parallel] = 70
    values[(tails == 0) & (indices == 1)] = 0.5
    assert ((tails == 0) & (indices == 1)).sum() == 1
    with pytest.warns(UserWarning, match="^weights: 2 arcs lead from 'v3' to 'v4', and each gets .*each arc$") as said:
        found = source.with_weights({("v0", "v1"): 0.5, ("v3", "v4"): 70})
    assert [each.filename for each in said] == [__file__]
    np.testing.assert_array_equal(distances(found), all_distances(indptr, indices, values))
    whole = source.with_weights({("v0", "v1"): 70})
    assert (whole if source is graph else whole.graph()).weight_dtype == "int32"


def test_another_graph_is_another_metric(source, graph, tmp_path):
    indptr, indices, weights = graph.rows()
    metres = (weights * 2.5).astype("float64")
    other = write_graph(tmp_path / "m.zarr", indptr, indices, metres, weight_unit="m")
    found = od(source.with_weights(other.path), positions([3, 9]))
    assert found["distance"].tolist() == od(other, positions([3, 9]))["distance"].tolist()
    assert found.attrs == {"unit": "m"}


def test_an_undirected_road_is_closed_in_both_directions(tmp_path):
    path = write_graph(
        tmp_path / "g.zarr", np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.array([2, 2, 3, 3]), directed=False
    )
    assert closed_arcs(path, path.rows()[:2], [("1", "2")]).tolist() == [2, 3]
    with pytest.raises(ValueError, match="g.zarr is undirected, so its roads are closed in both directions; leave"):
        path.with_weights(closed=[("1", "2")], one_way=True)
    changed = path.with_weights({("2", "1"): 7})
    assert changed.rows()[2].tolist() == [2, 2, 7, 7]
    np.testing.assert_array_equal(od(changed, [0, 2])["distance"], [0, 9, 9, 0])


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_changes_are_the_pairs_that_differ(source, graph, matrix, pairs, dtype):
    closed = [("v5", "v6"), ("v20", "v21"), ("v55", "v5")]
    source = source.with_weights(graph.rows()[2].astype(dtype))
    after = source.with_weights(closed=closed)
    expected = distances(after)
    assert (expected != matrix).sum() > 50
    assert (np.isinf(expected) & np.isfinite(matrix))[[4, 5, 55]].any()
    asked = [positions([4, 5, 55]), positions(np.arange(N))]
    i, j = np.repeat([4, 5, 55], N), np.tile(np.arange(N), 3)
    options = {"pairs": positions(np.stack([i, j], axis=1))} if pairs else {}
    found = changes(source, after, *([] if pairs else asked), unit="min", **options)
    differ = matrix[i, j] != expected[i, j]
    assert list(found) == ["origin", "destination", "travel_time_before", "travel_time_after", "change"]
    assert found["origin"].tolist() == [f"v{v}" for v in i[differ]]
    assert found["destination"].tolist() == [f"v{v}" for v in j[differ]]
    np.testing.assert_array_equal(found["travel_time_before"], matrix[i, j][differ] / 60)
    later = np.where(np.isinf(expected), np.nan, expected)[i, j][differ]
    np.testing.assert_array_equal(found["travel_time_after"], later / 60)
    np.testing.assert_allclose(found["change"], (later - matrix[i, j][differ]) / 60)
    assert len(changes(source, source, *asked)) == 0


def test_equal_negative_distances_have_not_changed(maker, tmp_path):
    arcs = np.array([0, 1, 2, 2]), np.array([1, 2])
    before, after = (
        build_hierarchy(maker, write_graph(tmp_path / f"{i}.zarr", *arcs, np.array([-1.25, last])), tmp_path / f"{i}.h")
        for i, last in enumerate([-2.5, -2.0])
    )
    assert changes(before, after, [0, 1], [1, 2])["change"].tolist() == [0.5, 0.5]  # 0 to 1 is -1.25 in both


@pytest.mark.parametrize("one_way", [False, True])
def test_criticality_is_what_closing_each_road_changes(source, graph, matrix, one_way):
    tails, indices = tails_of(graph), graph.rows()[1]
    some = np.arange(0, graph.m, 13)
    roads = pd.DataFrame({"source": [f"v{v}" for v in tails[some]], "target": [f"v{v}" for v in indices[some]]})
    found = criticality(source, roads, one_way=one_way)
    assert found.attrs == {"unit": "s"}
    pd.testing.assert_frame_equal(found[["source", "target"]], roads, check_dtype=False)
    seen = set()
    for row, road in zip(found.itertuples(), roads.itertuples(index=False), strict=True):
        after = distances(graph.with_weights(closed=[tuple(road)], one_way=one_way))
        grown = np.isfinite(after) & (after > matrix)
        growths = after[grown] - matrix[grown]
        expected = grown.sum(), (np.isinf(after) & np.isfinite(matrix)).sum(), growths.sum(), growths.max(initial=0)
        assert (row.longer, row.cut, row.total, row.largest) == expected
        seen.add((bool(row.longer), bool(row.cut)))
    assert len(seen) > 1
    few = criticality(source, roads, ["v4"], ["v9"], unit="min")
    assert few["longer"].max() <= 1


def test_what_cannot_be_is_said(source, graph):
    for weights, options, message in (
        (None, {"closed": [("v0", "v7")]}, "closed: no arc leads from vertex v0 to vertex v7"),
        (None, {"closed": [("v1", "v0")], "one_way": True}, "closed: no arc leads from vertex v1 to vertex v0"),
        (None, {"closed": positions([999])}, "closed: there is no arc 999; arcs are 0 to 159"),
        (None, {"closed": ["v1"]}, "closed is .*v1.*; a store keeps no names of streets .*; name the two ends"),
        ([1, 2], {}, "give one number for each of the 160 arcs"),
        ({("v0", "v7"): 3}, {}, "weights: no arc leads from vertex v0"),
        ({("v0", "v1"): "a"}, {}, "weights: a weight is not a number"),
        ({("v3", "v4", 0): 3}, {}, r"weights: \('v3', 'v4', 0\) is not a pair \(tail, head\); for one of"),
        ({("v0", "v1"): 2**40}, {}, "does not fit int32"),
    ):
        with pytest.raises(ValueError, match=message):
            source.with_weights(weights, **options)
    if source is not graph:
        with pytest.raises(ValueError, match="a weight is negative; make a hierarchy store"):
            source.with_weights({("v0", "v1"): -1})


def test_the_command_writes_the_same_tables(source, graph, tmp_path):
    (tmp_path / "r.csv").write_text("source,target\nv5,v6\nv20,v21\n")
    (tmp_path / "o.csv").write_text("vertex\nv4\nv5\n")
    arguments = ["what-if", source.path, str(tmp_path / "c.csv"), "--closed", str(tmp_path / "r.csv")]
    points = ["--origins", str(tmp_path / "o.csv"), "--unit", "min"]
    done = run_command(*arguments, *points)
    assert "of 4 pairs" in done.output
    after = graph.with_weights(closed=[("v5", "v6"), ("v20", "v21")])
    expected = changes(source, after, ["v4", "v5"], unit="min")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "c.csv"), expected, check_dtype=False)
    done = run_command(*arguments, *points, "--each", "--overwrite")
    expected = criticality(source, tmp_path / "r.csv", ["v4", "v5"], unit="min")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "c.csv"), expected, check_dtype=False)
    again = invoke(*arguments, *points)
    assert "exists already" in str(again.exception)
    assert open_graph(graph.path).m == graph.m
