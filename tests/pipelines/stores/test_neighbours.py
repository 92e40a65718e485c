"""A graph in the hand: neighbours by name, iteration, the reverse graph."""

import pickle

import numpy as np
import pytest

from pipelines.stores import neighbours
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph

ARCS = [(0, 2), (0, 1), (0, 1), (2, 2), (3, 0)]  # parallel arcs, a loop, a vertex without arcs out


def written(path, n=4, arcs=ARCS, **facts):
    tails, heads = np.array(arcs, np.int64).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return write_graph(path, indptr, heads.astype("int32"), np.arange(len(arcs)), **facts)


@pytest.fixture(params=[1, 3, 1 << 16])
def _rows(request, monkeypatch):
    monkeypatch.setattr(neighbours, "ROWS", request.param)


@pytest.mark.usefixtures("_rows")
def test_neighbours_by_name_in_the_order_of_the_arcs(tmp_path):
    labels = np.array(["a", "b", "#0", "d"])
    graph = written(tmp_path / "g", labels=labels, sorted_rows=False)
    assert graph["a"] == ["#0", "b", "b"]
    assert graph["#0"] == ["#0"]  # the label takes precedence over the index of that form
    assert graph["#3"] == ["a"]
    assert list(graph) == [("a", ["#0", "b", "b"]), ("b", []), ("#0", ["#0"]), ("d", ["a"])]
    assert len(graph) == 4
    plain = written(tmp_path / "plain")
    assert plain["0"] == plain[0] == ["1", "1", "2"]
    assert (np.int64(3) in plain, 4 in plain) == (True, False)
    assert [name for name, _ in plain] == ["0", "1", "2", "3"]


def test_what_is_in_a_graph(tmp_path):
    graph = written(tmp_path / "g", labels=np.array(["a", "b", "b", "d"]))
    assert [name in graph for name in ("a", "b", "e", "#1", 3, np.int64(0))] == [True, False, False, True, False, False]
    assert [name in graph for name in (4, -1, None, 1.0, ("a",))] == [False] * 5
    with pytest.raises(StoreError, match="there is no vertex 'e'; give a label, such as 'a'"):
        graph["e"]
    with pytest.raises(StoreError, match="2 vertices are labelled 'b'"):
        graph["b"]
    with pytest.raises(StoreError, match="there is no vertex labelled -1; give a label, such as 'a'"):
        graph[-1]


def test_a_graph_without_vertices_is_a_graph(tmp_path):
    graph = written(tmp_path / "g", 0, [])
    assert graph
    assert (len(graph), list(graph), list(graph.reverse)) == (0, [], [])


@pytest.mark.usefixtures("_rows")
def test_the_reverse_is_made_once_and_knows_its_arcs(tmp_path):
    graph = written(tmp_path / "g", labels=np.array(list("abcd")), sorted_rows=False)
    turned = graph.reverse
    assert graph.reverse is turned
    assert turned.reverse is graph
    assert list(turned) == [("a", ["d"]), ("b", ["a", "a"]), ("c", ["a", "c"]), ("d", [])]
    assert turned["c"] == ["a", "c"]
    assert (len(turned), "d" in turned, "e" in turned) == (4, True, False)
    np.testing.assert_array_equal(turned.weights(), graph.weights()[turned.arcs])
    tails = np.repeat(np.arange(4), np.diff(graph.indptr()))
    np.testing.assert_array_equal(turned.indices(), tails[turned.arcs])
    np.testing.assert_array_equal(turned.weights(1, 3), turned.weights()[1:3])


def test_the_reverse_is_not_pickled(tmp_path):
    graph = written(tmp_path / "g")
    before = pickle.dumps(graph)
    assert graph.reverse.m == 5
    assert pickle.dumps(graph) == before
    assert pickle.loads(before) == graph == open_graph(graph.path)
    assert pickle.loads(before).reverse["0"] == ["3"]
