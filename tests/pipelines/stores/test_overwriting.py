"""What pipelines do with a store that stands where their result is to go."""

import os

import numpy as np
import pytest
import zarr

from gpuops import NegativeCycleError
from pipelines import all_pairs_shortest_paths, generate, single_source_shortest_paths
from pipelines.formats.graphs import import_graph
from pipelines.formats.samples import import_samples
from pipelines.generators.random_graphs import RMat
from pipelines.som.map_samples import map_samples
from pipelines.som.train import train_som
from pipelines.stores.codebook import open_codebook
from pipelines.stores.distances import DistancesWriter, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.paths import open_paths
from pipelines.stores.samples import open_samples, write_samples


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "g.zarr", np.arange(6), np.array([1, 2, 3, 4, 0]), np.ones(5, "int32"))


@pytest.fixture
def samples(tmp_path):
    return write_samples(tmp_path / "s.zarr", np.random.default_rng(0).random((20, 2)))


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_no_pipeline_overwrites_what_it_reads(client, graph, samples, tmp_path):
    codebook = train_som(client, samples, tmp_path / "m.zarr", 2, 2, epochs=1)
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    (tmp_path / "link").symlink_to("g.zarr")
    write_graph(tmp_path / "holds", np.arange(2), np.zeros(1, int), np.ones(1))
    (tmp_path / "holds" / "edges.txt").write_text("0 1\n1 2\n")
    write_samples(tmp_path / "rows", np.ones((2, 2)))
    (tmp_path / "rows" / "rows.csv").write_text("a,b\n1,2\n2,3\n")
    before = contents(tmp_path)
    for run in (
        lambda: all_pairs_shortest_paths(client, graph, tmp_path / "link", overwrite=True),
        lambda: all_pairs_shortest_paths(client, graph, tmp_path / "g.zarr" / "d", overwrite=True),
        lambda: single_source_shortest_paths(client, graph, tmp_path / "link", [0], overwrite=True),
        lambda: train_som(client, samples, samples.path, 2, 2, overwrite=True),
        lambda: train_som(client, samples, codebook.path, 2, 2, initial=codebook, overwrite=True),
        lambda: train_som(client, samples, codebook.path, 2, 2, initial=codebook.path, overwrite=True),
        lambda: map_samples(client, codebook, samples, codebook.path, overwrite=True),
        lambda: map_samples(client, codebook, samples, samples.path, overwrite=True),
        lambda: import_graph(tmp_path / "holds" / "edges.txt", tmp_path / "holds", overwrite=True),
        lambda: import_samples(tmp_path / "rows" / "rows.csv", tmp_path / "rows", overwrite=True),
    ):
        with pytest.raises(
            StoreError, match=r"(is|lies within|holds) the input .*; choose another place for the result"
        ):
            run()
    with pytest.raises(StoreError, match="is a file, not a store; import it first"):
        import_graph(tmp_path / "edges.txt", tmp_path / "edges.txt", overwrite=True)
    assert contents(tmp_path) == before


def test_no_pipeline_overwrites_another_kind_of_store(client, graph, samples, tmp_path):
    codebook = train_som(client, samples, tmp_path / "m.zarr", 2, 2, epochs=1)
    other = write_graph(tmp_path / "other", np.arange(2), np.zeros(1, int), np.ones(1)).path
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n2,3\n")
    before = contents(tmp_path)
    for run in (
        lambda: all_pairs_shortest_paths(client, graph, other, overwrite=True),
        lambda: single_source_shortest_paths(client, graph, other, [0], overwrite=True),
        lambda: train_som(client, samples, other, 2, 2, overwrite=True),
        lambda: map_samples(client, codebook, samples, other, overwrite=True),
        lambda: import_samples(tmp_path / "rows.csv", other, overwrite=True),
        lambda: import_graph(tmp_path / "edges.txt", samples.path, overwrite=True),
        lambda: generate(RMat(4), samples.path, overwrite=True),
    ):
        with pytest.raises(
            StoreError, match=r"is a store of schema .*only a store of schema .* may be overwritten here"
        ):
            run()
    assert contents(tmp_path) == before


def test_the_old_paths_survive_a_negative_cycle(client, graph, tmp_path):
    single_source_shortest_paths(client, graph, tmp_path / "p", [0, 2])
    before = contents(tmp_path / "p")
    cycle = write_graph(tmp_path / "c", np.array([0, 1, 2]), np.array([1, 0]), np.array([1, -2], "int32"))
    with pytest.raises(NegativeCycleError):
        single_source_shortest_paths(client, cycle, tmp_path / "p", [0], overwrite=True)
    assert contents(tmp_path / "p") == before
    assert sorted(os.listdir(tmp_path)) == ["c", "g.zarr", "p"]


@pytest.mark.parametrize("stage", [0, 1])
def test_the_old_distances_stay_until_the_new_ones_are_whole(client, tmp_path, monkeypatch, stage):
    rng = np.random.default_rng(0)
    old = write_graph(tmp_path / "g", np.arange(0, 801, 4), rng.integers(0, 200, 800), rng.integers(1, 9, 800))
    all_pairs_shortest_paths(client, old, tmp_path / "d", block=64)
    before, commit = contents(tmp_path / "d"), DistancesWriter.commit

    def fail(run, number):
        if number > stage:
            raise RuntimeError("the plug is pulled")
        return commit(run, number)

    with monkeypatch.context() as patch:
        patch.setattr(DistancesWriter, "commit", fail)
        options = {"method": "floyd-warshall", "dtype": "float32", "commit_seconds": 0}
        with pytest.raises(RuntimeError, match="plug"):
            all_pairs_shortest_paths(client, old, tmp_path / "d", block=64, overwrite=True, **options)
    assert contents(tmp_path / "d") == before
    with pytest.raises(
        StoreError,
        match=rf"{stage} of 5 stages done; repeat `tilepath apsp .*/g {tmp_path}/d`",
    ):
        open_distances(tmp_path / "d.new")
    found = all_pairs_shortest_paths(client, old, tmp_path / "d", dtype="float32", resume=True, verify=True)
    assert (found.dtype, found.path) == (np.float32, str(tmp_path / "d"))
    assert sorted(os.listdir(tmp_path)) == ["d", "g"]
    found.verify()


def test_a_store_of_an_unknown_schema_may_be_overwritten(client, graph, tmp_path):
    zarr.open_group(tmp_path / "d", mode="w").attrs["schema"] = "distances/1"
    for options in {}, {"resume": True}:
        with pytest.raises(StoreError, match="exists already|does not know"):
            all_pairs_shortest_paths(client, graph, tmp_path / "d", **options)
    all_pairs_shortest_paths(client, graph, tmp_path / "d", overwrite=True).verify()


def test_overwriting_replaces_stores_of_the_same_kind(client, graph, samples, tmp_path):
    out = {name: tmp_path / name for name in "dpmu"}
    for overwrite in (False, True, True):
        all_pairs_shortest_paths(client, graph, out["d"], overwrite=overwrite)
        single_source_shortest_paths(client, graph, out["p"], [0], overwrite=overwrite)
        codebook = train_som(client, samples, out["m"], 2, 2, epochs=2, overwrite=overwrite)
        map_samples(client, codebook, samples, out["u"], overwrite=overwrite)
    assert sorted(os.listdir(tmp_path)) == ["d", "g.zarr", "m", "p", "s.zarr", "u"]
    open_distances(out["d"]).verify()
    open_paths(out["p"]).verify()
    open_codebook(out["m"]).verify()
    open_graph(graph.path).verify()
    open_samples(samples.path).verify()
