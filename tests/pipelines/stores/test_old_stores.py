"""Stores that an earlier commit made (`fixtures/make_stores.py`) open with the same values, and go on to the same."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipelines import all_pairs_shortest_paths, map_samples, single_source_shortest_paths, train_som
from pipelines.stores import StoreError, open_distances, open_graph, open_paths, store_schema
from pipelines.stores.codebook import open_codebook
from pipelines.stores.mapping import open_mapping
from pipelines.stores.samples import open_samples

FIXTURES = Path(__file__).parents[2] / "fixtures"
STORES = FIXTURES / "stores-8db4b20"
NAMES = sorted(path.parent.name for path in STORES.glob("*/zarr.json"))
FINISHED = [name for name in NAMES if not name.endswith("-half")]
HALF = [name for name in NAMES if name.endswith("-half")]


def of_graph(path):
    graph = open_graph(path)
    optional = {"labels": graph.labels(), "coordinates": graph.coordinates(), "through": graph.through()}
    return graph, dict(zip(("indptr", "indices", "weights"), graph.rows(), strict=True)) | optional


def of_distances(path):
    distances = open_distances(path)
    assert distances.graph().path == str(path.parent / Path(distances.graph_path).name)
    return distances, {"distances": distances[:], "vertices": distances.row_vertices()}


def of_paths(path):
    paths = open_paths(path)
    assert paths.graph().path == str(path.parent / Path(paths.graph_path).name)
    predecessors = paths.predecessors() if paths.has_predecessors else None
    return paths, {"distances": paths.distances(), "predecessors": predecessors, "sources": paths.sources}


def of_samples(path):
    samples = open_samples(path)
    labels = {"labels": samples.labels(), "label_names": samples.label_names()} if samples.labelled else {}
    return samples, {"values": samples.values(), "weights": samples.weights(), **labels}


def of_codebook(path):
    codebook = open_codebook(path)
    units = np.stack([codebook.units(epoch) for epoch in range(codebook.epochs + 1)])
    errors = np.array(codebook.quantization_errors)
    return codebook, {"units": units, "hits": codebook.hits(), "errors": errors, "sigmas": codebook.sigmas}


def of_mapping(path):
    mapping = open_mapping(path)
    return mapping, {"units": mapping.units(), "distances": mapping.distances()}


READ = {
    "graph/1": of_graph,
    "distances/1": of_distances,
    "paths/1": of_paths,
    "samples/1": of_samples,
    "codebook/1": of_codebook,
    "mapping/1": of_mapping,
}


@pytest.fixture(scope="module")
def expected():
    with np.load(STORES / "expected.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def how():
    """How the stores were made."""
    spec = importlib.util.spec_from_file_location("make_stores", FIXTURES / "make_stores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(path, expected, name):
    """Every array recorded of the store `name` is that of the store at `path`, to the bit, and no array is new."""
    store, found = READ[store_schema(path)](path)
    store.verify()
    found = {array: np.asarray(values) for array, values in found.items() if values is not None}
    recorded = {key.split("/")[1]: values for key, values in expected.items() if key.split("/")[0] == name}
    assert set(found) == set(recorded)
    for array, values in recorded.items():
        if values.dtype.kind == "U":
            assert found[array].tolist() == values.tolist()
        else:
            assert found[array].dtype == values.dtype
            assert found[array].shape == values.shape
            assert found[array].tobytes() == values.tobytes(), array


def test_every_schema_is_there():
    assert {store_schema(STORES / name) for name in FINISHED} == set(READ)
    assert {store_schema(STORES / name) for name in HALF} == set(READ) - {"graph/1", "samples/1"}


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_store_holds_what_it_held(expected, name):
    compare(STORES / name, expected, name)


@pytest.mark.parametrize("name", HALF)
def test_a_half_written_store_goes_on_to_the_same_bits(client, expected, how, tmp_path, name):
    stores = shutil.copytree(STORES, tmp_path / "stores")
    whole = name.removesuffix("-half")
    kind, _, what = whole.partition("-")
    with pytest.raises(StoreError, match="unfinished"):
        READ[store_schema(stores / name)](stores / name)
    if kind == "distances":
        graph, options = how.DISTANCES[whole]
        all_pairs_shortest_paths(client, stores / graph, stores / name, resume=True, verify=True, **options)
    elif kind == "paths":
        graph, options = how.PATHS[whole]
        given = {"verify": options.get("predecessors", True), **options}
        single_source_shortest_paths(client, stores / graph, stores / name, how.SOURCES, resume=True, **given)
    elif kind == "codebook":
        train_som(client, stores / f"samples-{what}", stores / name, 4, 5, resume=True, **how.MAPS[what])
    else:
        map_samples(client, stores / f"codebook-{what}", stores / f"samples-{what}", stores / name, resume=True)
    compare(stores / name, expected, whole)


@pytest.mark.parametrize("name", ["distances-float-half", "distances-signed-half", "distances-short-half"])
def test_half_written_distances_go_on_without_being_told_how(client, expected, how, tmp_path, name):
    stores = shutil.copytree(STORES, tmp_path / "stores")
    whole = name.removesuffix("-half")
    all_pairs_shortest_paths(client, stores / how.DISTANCES[whole][0], stores / name, resume=True)
    compare(stores / name, expected, whole)
