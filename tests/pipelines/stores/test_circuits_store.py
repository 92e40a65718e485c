"""The circuits store: what is written comes back, and what is damaged is named."""

import pickle
import re
import shutil

import numpy as np
import pytest
import zarr
from damage import flip

from pipelines.stores.circuits import open_circuits, write_circuits
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.schema import store_schema
from tilepath.cli.describe import store_info

ARCS = np.array([0, 2, 1, 3, 4], np.int32)


@pytest.fixture
def graph(tmp_path):
    """0 <-> 1, 0 <-> 2, and a loop at 3."""
    indptr, indices = np.array([0, 2, 3, 4, 5]), np.array([1, 2, 0, 0, 3])
    return write_graph(tmp_path / "g.zarr", indptr, indices, np.ones(5, "int32"))


@pytest.fixture
def circuits(tmp_path, graph):
    facts = {"path_from": None, "directed": True, "method": "stages"}
    return write_circuits(tmp_path / "c.zarr", graph, ARCS, np.array([0, 4, 5]), **facts)


def test_walks_come_back_and_the_store_pickles_as_its_path(tmp_path, graph, circuits):
    assert store_schema(tmp_path / "c.zarr") == "circuits/1"
    for opened in (circuits, open_circuits(tmp_path / "c.zarr"), pickle.loads(pickle.dumps(circuits))):
        assert (opened.length, opened.count, opened.path_from, opened.directed) == (5, 2, None, True)
        assert opened.method == "stages"
        np.testing.assert_array_equal(opened.arcs(), ARCS)
        assert opened.arcs().dtype == np.int32
        assert opened.arcs(1, 3).tolist() == [2, 1]
        assert opened.offsets().tolist() == [0, 4, 5]
        assert opened.graph().digest == graph.digest
    circuits.verify()
    lines = list(store_info(tmp_path / "c.zarr", verify=True))
    assert lines[0] == f"{tmp_path}/c.zarr: 2 Euler circuits along 5 arcs of {tmp_path}/g.zarr"
    assert lines[-1].startswith("checked")


@pytest.mark.parametrize(
    ("facts", "offsets", "text"),
    [
        ({"path_from": 3}, [0, 4, 5], "1 Euler circuit and an Euler path along 5 arcs of"),
        ({"path_from": 3}, [0, 5], ": an Euler path along 5 arcs of"),
        (
            {"directed": False, "method": "hierholzer"},
            [0, 5],
            r": 1 Euler circuit along 5 edges of .*, by Hierholzer's",
        ),
    ],
)
def test_what_it_is_told_as(tmp_path, graph, facts, offsets, text):
    facts = {"path_from": None, "directed": True, "method": "stages"} | facts
    opened = write_circuits(tmp_path / "d.zarr", graph, ARCS, np.array(offsets), **facts)
    assert opened.path_from == facts["path_from"]
    line = store_info(tmp_path / "d.zarr")[0]
    assert re.search(text, line), line


def test_nothing_walked(tmp_path):
    empty = write_graph(tmp_path / "e.zarr", np.zeros(3, int), np.empty(0, int), np.empty(0, "f4"))
    facts = {"path_from": None, "directed": True, "method": "stages"}
    opened = write_circuits(tmp_path / "c.zarr", empty, np.empty(0, np.int32), np.zeros(1, int), **facts)
    opened.verify()
    assert (opened.length, opened.count, opened.arcs().tolist(), opened.offsets().tolist()) == (0, 0, [], [0])
    assert "0 Euler circuits along 0 arcs" in store_info(tmp_path / "c.zarr")[0]


def put(path, name, values):
    zarr.open_array(path / name, mode="r+")[:] = values


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: put(path, "arcs", [0, 2, 1, 1, 4]), "an arc is walked along twice"),
        (lambda path: put(path, "arcs", [0, 2, 1, 5, 4]), "arcs: holds -?[0-9], but its values run from 0 to 4"),
        (lambda path: put(path, "arcs", [0, 2, 1, -1, 4]), "arcs: holds -?[0-9], but its values run from 0 to 4"),
        (lambda path: put(path, "offsets", [0, 5, 5]), "a walk has no arc"),
        (lambda path: put(path, "offsets", [0, 3, 4]), "offsets: does not rise from 0 to 5"),
        (lambda path: shutil.rmtree(path / "arcs" / "c"), "1 of 1 chunks are missing"),
    ],
)
def test_damage_is_noticed(tmp_path, circuits, spoil, message):
    spoil(tmp_path / "c.zarr")
    with pytest.raises(StoreError, match=message):
        open_circuits(tmp_path / "c.zarr").verify()


def test_a_chunk_that_does_not_decode(tmp_path, circuits):
    flip(tmp_path / "c.zarr" / "arcs" / "c" / "0")
    with pytest.raises(StoreError, match="a chunk is damaged"):
        circuits.arcs()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda group: group.attrs.__delitem__("graph"), "the attribute `graph` is missing"),
        (lambda group: group.attrs.__delitem__("length"), "the attribute `length` is missing; .*compute it again"),
        (lambda group: group.attrs.update(length=4), "array `arcs` is int32 .5,., expected int32 or int64 .4,."),
        (
            lambda group: group.attrs.update(graph_arcs=-5),
            r"c\.zarr: the attributes are damaged \(.*walks of 5 arcs in a graph of -5.*\); recreate the store",
        ),
        (lambda group: group.attrs.update(count=5), "array `offsets` is int64 .3,., expected int64 .6,."),
        (
            lambda group: group.attrs.update(schema="paths/1"),
            "is a paths store .*, but a circuits store .*is needed; .tilepath euler.*makes one",
        ),
    ],
)
def test_foreign_stores_are_refused(tmp_path, circuits, change, message):
    change(zarr.open_group(tmp_path / "c.zarr", mode="r+"))
    with pytest.raises(StoreError, match=message):
        open_circuits(tmp_path / "c.zarr")


def test_the_graph_is_found_when_both_were_moved(tmp_path, graph, circuits):
    (tmp_path / "moved").mkdir()
    for name in ("g.zarr", "c.zarr"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    opened = open_circuits(tmp_path / "moved" / "c.zarr")
    assert opened.graph().path == str(tmp_path / "moved" / "g.zarr")
    shutil.rmtree(tmp_path / "moved" / "g.zarr")
    with pytest.raises(StoreError, match="its graph is no longer at"):
        open_circuits(tmp_path / "moved" / "c.zarr").graph()
    other = write_graph(tmp_path / "o.zarr", np.array([0, 1]), np.zeros(1, int), np.ones(1, "i4"))
    with pytest.raises(StoreError, match="computed from another graph"):
        opened.graph(other.path)


def test_other_names_of_the_same_graph_are_told(tmp_path, graph, circuits):
    for names in list("abcd"), list("abdc"):
        arrays = graph.indptr(), graph.indices(), graph.weights()
        named = write_graph(tmp_path / f"{''.join(names)}.zarr", *arrays, labels=names)
        with pytest.warns(UserWarning, match=f"vertices of {named.path} had other names when .*/c.zarr was computed"):
            circuits.graph(named.path)
    facts = {"path_from": None, "directed": True, "method": "stages"}
    write_circuits(tmp_path / "d.zarr", named, ARCS, np.array([0, 4, 5]), **facts).graph(named.path)


def test_a_store_that_exists_is_kept(tmp_path, graph, circuits):
    facts = {"path_from": None, "directed": True, "method": "stages"}
    with pytest.raises(StoreError, match="exists already"):
        write_circuits(tmp_path / "c.zarr", graph, ARCS[::-1], np.array([0, 5]), **facts)
    np.testing.assert_array_equal(circuits.arcs(), ARCS)
    write_circuits(tmp_path / "c.zarr", graph, ARCS[::-1], np.array([0, 5]), overwrite=True, **facts)
    np.testing.assert_array_equal(open_circuits(circuits.path).arcs(), ARCS[::-1])
