"""Graphs from lines, pairs and dicts of Python."""

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.formats.graphs import FormatError, import_graph, python_objects

INFINITY = float("inf")


def arcs_of(graph):
    tails = np.repeat(np.arange(graph.n), np.diff(graph.indptr()))
    return list(zip(tails.tolist(), graph.indices().tolist(), graph.weights().tolist(), strict=True))


def test_lines_are_read_as_the_lines_of_a_file(load, tmp_path):
    lines = ["# rays", "a -> b, c", '"Ulm, Donau" -> a, a', "", "d"]
    (tmp_path / "g.adj").write_text("\n".join(lines))
    expected = load(tmp_path / "g.adj")
    for source in lines, tuple(lines), iter(lines), [f"{line}\n" for line in lines], [f"{line}\r\n" for line in lines]:
        graph = load(source)
        assert (graph.digest, graph.labels().tolist()) == (expected.digest, ["a", "b", "c", "Ulm, Donau", "d"])
        assert graph.source == "a list of lines"
    with open(tmp_path / "g.adj") as file:
        assert load(file).digest == expected.digest
    assert load(["a -> b, c, d, e"]).reverse["b"] == ["a"]  # the published rays
    assert load(["0 -> 2, 1"], labels=False, directed=False)["1"] == ["0"]


@pytest.mark.parametrize("piece", [1, 2, 1 << 18])
def test_dicts_are_their_lines(load, monkeypatch, piece):
    monkeypatch.setattr(python_objects, "PIECE", piece)
    expected = load(["a -> b, c", "b", "c -> a, a"])
    for source in (
        {"a": ["b", "c"], "b": [], "c": ("a", "a")},
        {"a": {"c", "b"}, "b": {}, "c": iter("aa")},
        {"a": np.array(["b", "c"]), "b": (), "c": ["a", "a"]},
    ):
        graph = load(source)
        assert (graph.digest, graph.labels().tolist()) == (expected.digest, ["a", "b", "c"])
    several = load({"a": set("hgfedcb")})
    assert several.labels().tolist() == list("abcdefgh")
    weighted = load({"a": {"b": 1.5, "c": 2}, "b": {}, "c": {"a": -1}}, unit="km")
    assert arcs_of(weighted) == [(0, 1, 1.5), (0, 2, 2.0), (2, 0, -1.0)]
    assert (weighted.weight_dtype, weighted.weight_unit) == ("float64", "km")
    assert load({"a": {"b": 1}}, directed=False)["b"] == ["a"]


@pytest.mark.parametrize("piece", [1, 2, 1 << 18])
def test_pairs_and_triples(load, monkeypatch, piece):
    monkeypatch.setattr(python_objects, "PIECE", piece)
    graph = load([("b", "a"), ("b", "b"), ["b", "a"]])
    assert (list(graph), graph.weight_dtype) == ([("b", ["b", "a", "a"]), ("a", [])], "int32")
    triples = load(zip([2, 0, 0], np.array([0, 1, 2]), [3, 2**40, 4], strict=True))
    assert arcs_of(triples) == [(0, 1, 2**40), (0, 2, 4), (2, 0, 3)]
    assert (triples.weight_dtype, "labels" in triples.optional) == ("int64", False)
    mixed = load([(0, 1, 1), (1, 0, 0.5)])
    assert (arcs_of(mixed), mixed.weight_dtype) == ([(0, 1, 1.0), (1, 0, 0.5)], "float64")


def test_numbers_are_positions_or_names_as_in_an_edge_list(load, tmp_path):
    (tmp_path / "g.txt").write_text("1 3\n3 2\n")
    for options in {"base": 1}, {"labels": True}, {"base": 0}, {"vertices": 9}, {"base": 1, "vertices": 5}:
        expected = load(tmp_path / "g.txt", **options)
        labels = None if "labels" not in expected.optional else expected.labels().tolist()
        for source in [(1, 3), (3, 2)], {1: [3], 3: [2]}:
            graph = load(source, **options)
            assert graph.digest == expected.digest
            assert (None if "labels" not in graph.optional else graph.labels().tolist()) == labels
    for source in [(1, 3), (3, 2)], {1: [3], 3: [2]}:
        with pytest.raises(FormatError, match=re.escape("smallest number of a vertex is 1; pass base=1")):
            load(source)
    assert load({0: [], 1: [3], 5: []}).n == 6  # 0 and 5 are there, without arcs
    assert load({"a": [5], 5: ["a"]})["5"] == ["a"]  # among names, a number is its text
    assert load([(5, "a"), (7, 5)])[5] == ["a"]
    assert load([], vertices=3).n == load({}, vertices=3).n == 3


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-9, 9)), min_size=1, max_size=30))
@settings(max_examples=20)
def test_random_triples_are_those_of_networkx(tmp_path_factory, triples):
    folder = tmp_path_factory.mktemp("triples")
    other = nx.MultiDiGraph()
    other.add_weighted_edges_from((str(u), str(v), w) for u, v, w in triples)
    expected, found = import_graph(other, folder / "other"), import_graph(triples, folder / "g", labels=True)
    assert found.labels().tolist() == expected.labels().tolist()
    assert sorted(arcs_of(found)) == sorted(arcs_of(expected))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["a -> b", "b -> -> c"], "the list, line 2: 'b -> -> c' has more than one arrow"),
        (["a -> b", 5], "the list, line 2: 5 is not text"),
        (["a -> b", "c\nd"], r"the list, line 2: 'c\nd' has a line break; give each line its own entry"),
        (["a -> b", "c\0"], "the list, line 2: holds a zero byte"),
        (["a -> \ud800"], "is not valid Unicode"),
        ([("a", "b"), "ab"], "the list, entry 1 (from 0): 'ab' is not (tail, head), as the first entry is"),
        ([("a", "b", 1), ("b", "c")], "the list, entry 1 (from 0): ('b', 'c') is not (tail, head, weight), as the"),
        ([("a", "b"), ("b", None)], "the list, entry 1 (from 0): a vertex is None; name vertices by text or whole"),
        ([(0, 1), (1, 2.0)], "the list, entry 1 (from 0): a vertex is 2.0;"),
        ([(0, 1), (True, 0)], "the list, entry 1 (from 0): a vertex is True;"),
        ([(0, 1), (0, -1)], "the list, entry 1 (from 0): there is no vertex -1; vertices are 0 and up"),
        ([(0, 1), (0, 10**30)], "there is no vertex 1000000000000000000000000000000; vertices are 0 and up"),
        ([(0, 1), (0, "a")], "the list, entry 1 (from 0): 'a' is text among whole numbers; pass labels=True"),
        ([(0, 1, 2), (1, 0, None)], "entry 1 (from 0): the arc 1 -> 0 has the weight None; give every arc a finite"),
        ([(0, 1, None)], "entry 0 (from 0): the arc 0 -> 1 has the weight None; give every arc a finite number"),
        ([("a", "b", INFINITY)], "entry 0 (from 0): the arc 'a' -> 'b' has the weight inf; give every arc a finite"),
        ([(0, 1, 2**63)], "the arc 0 -> 1 has the weight 9223372036854775808; integers have at most 64 bits"),
        ([(0, 10**9)], "implies 1000000001 vertices"),
        ([1, 2], "the list, entry 0 (from 0): 1 is neither a line of text nor (tail, head) nor"),
        ([], "the list is empty; if the graph has no arcs, pass the number of its vertices"),
        ({"a": "bc"}, "the neighbours of 'a' are 'bc'; give a list, such as ['bc']"),
        ({"a": 5}, "the neighbours of 'a' are 5; give a list, such as [5]"),
        ({"a": {"b": 1}, "b": ["a"]}, "the neighbours of 'b' have no weights, but those before have weights; give"),
        ({"a": ["b"], "b": {"a": 1}}, "the neighbours of 'b' have weights, but those before have none; give"),
        ({"a": {"b": None}}, "the neighbours of 'a': the arc 'a' -> 'b' has the weight None; give every arc a finite"),
        ({"a": {"b": {"weight": 1}}}, "the arc 'a' -> 'b' has the weight {'weight': 1}; give every arc a finite"),
        ({"a": [("b", 1)]}, "the neighbours of 'a': a vertex is ('b', 1); name vertices by text or whole numbers"),
    ],
)
def test_what_is_refused(load, tmp_path, source, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        load(source)
    assert list(tmp_path.iterdir()) == []


def test_options_that_are_refused(load):
    for source, options, message in (
        ([("a", "b")], {"columns": [0, 1]}, "a list of arcs: columns=[0, 1] has no meaning for read_pairs"),
        ([(0, 1), (0, 5)], {"vertices": 3}, "entry 1 (from 0): there is no vertex 5; vertices are 0 to 2 (vertices=)"),
        ([("a", "b")], {"vertices": 3}, "the vertices have names, so their number is not an option"),
        ([("a", "b")], {"base": 1}, "the vertices have names, which have no first number; leave out base (--base)"),
    ):
        with pytest.raises(FormatError, match=re.escape(message)):
            load(source, **options)
