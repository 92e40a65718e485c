"""The registry of schemas, and how often stores are opened to be read."""

import pickle
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import zarr

from gpuops import NegativeCycleError
from pipelines import StoreError, export_store, single_source_shortest_paths
from pipelines import stores as package
from pipelines.stores import contents
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.kinds import KINDS
from pipelines.stores.resuming import StoreWriter
from pipelines.stores.schema import kind_of, open_store
from pipelines.validation.negative_cycle import named_cycle

MODULES = sorted(path.stem for path in Path(package.__file__).parent.glob("*.py"))


@pytest.fixture
def opened(monkeypatch):
    """The names of the arrays that are opened for reading, one after the other."""
    names, begin = [], contents.StoredArray.__init__

    def note(array, path, name, *options, **more):
        names.append(name)
        begin(array, path, name, *options, **more)

    monkeypatch.setattr(contents.StoredArray, "__init__", note)
    return names


@pytest.fixture
def reads(monkeypatch):
    """The names of the arrays that are read, one after the other."""
    names, read = [], contents.StoredArray.__getitem__

    def note(array, selection):
        names.append(Path(array._place).name)
        return read(array, selection)

    monkeypatch.setattr(contents.StoredArray, "__getitem__", note)
    return names


def test_every_schema_and_every_writer_is_registered():
    modules = [import_module(f"pipelines.stores.{name}") for name in MODULES]
    assert sorted(KINDS) == sorted({m.DECLARED.name for m in modules if hasattr(m, "DECLARED")})
    writers = {c for m in modules for c in vars(m).values() if isinstance(c, type) and issubclass(c, StoreWriter)}
    assert {each.writer for each in KINDS.values()} - {""} == {
        f"{c.__module__.rpartition('.')[2]}:{c.__name__}" for c in writers if hasattr(c, "declared")
    }


def test_labels_are_read_once_however_many_vertices_are_named(tmp_path, opened, reads):
    labels = np.array([f"v{v}" for v in range(40)])
    graph = write_graph(tmp_path / "g", np.arange(41), np.roll(np.arange(40), -1), np.ones(40, int), labels=labels)
    del opened[:], reads[:]
    assert graph.names([7, 39, 0, 7]) == ["v7", "v39", "v0", "v7"]
    assert (graph.names([]), graph.label(3)) == ([], "v3")
    assert reads == ["labels"] * 2
    del reads[:]
    error = named_cycle(graph, NegativeCycleError("a cycle", tuple(range(30)), -1.0))
    assert "v0 -> v1 -> " in str(error)
    assert "v19 -> ... -> v0 weighs" in str(error)
    assert reads == ["labels"]
    assert opened == ["labels"]  # an opened store opens an array once
    again = pickle.loads(pickle.dumps(graph))
    assert vars(again).keys() == {each.name for each in fields(graph)}
    assert again.label(5) == "v5"
    assert opened == ["labels"] * 2


@pytest.mark.parametrize(("workers", "spread"), [("client", "sources"), ("two", "vertices")])
def test_the_mask_is_not_read_again_for_every_row(request, tmp_path, reads, workers, spread):
    tails, heads, weights = np.arange(30), np.roll(np.arange(30), -1), np.ones(30, int)
    weights[3] = -1
    through = np.arange(30) % 7 != 0
    graph = write_graph(tmp_path / "g", np.arange(31), heads, weights, through=through)
    del reads[:]
    client = request.getfixturevalue(workers)
    single_source_shortest_paths(client, graph, tmp_path / "p", tails.tolist()[:9], spread=spread)
    assert reads.count("through") <= 1 + {"client": 1, "two": 2}[workers]  # the driver, and every worker


@pytest.mark.parametrize("read", [kind_of, partial(export_store, out="x.csv")])
@pytest.mark.parametrize("schema", ["distances/1", "x/9", ""])
def test_a_store_of_an_unknown_schema_has_to_be_made_again(tmp_path, read, schema):
    zarr.open_group(tmp_path / "s", mode="w").attrs["schema"] = schema
    says = "which this version of tilepath does not know; use the version that made it, or make the store again"
    with pytest.raises(StoreError, match=f"of schema '{schema}', {says}$"):
        read(tmp_path / "s")
    with pytest.raises(StoreError, match=says):
        open_store(tmp_path / "s", "paths/1")


def test_plain_zarr_tells_what_the_dimensions_and_the_numbers_of_arrays_are(tiny_stores):
    for path in tiny_stores.iterdir():
        lengths = {}
        for name, array in zarr.open_group(path, mode="r").arrays():
            assert len(array.metadata.dimension_names) == array.ndim, (path, name)
            for dimension, length in zip(array.metadata.dimension_names, array.shape, strict=True):
                assert lengths.setdefault(dimension, length) == length, (path, name, dimension)
    for place, attributes in {
        "graph/weights": {"unit": "m"},
        "distances/distances": {"unreachable": "Infinity", "unit": "m"},
        "part-distances/checkpoint-1": {},
        "paths/distances": {"unreachable": 2**31 - 1, "unit": "m"},
        "matrix/distances": {"unreachable": "Infinity", "unit": "m"},
    }.items():
        assert zarr.open_array(tiny_stores / place, mode="r").attrs.asdict() == attributes, place
