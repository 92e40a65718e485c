"""One meaning of resuming, whatever the schema: what is refused, what is returned as it is, whose a store then is."""

import json
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from distributed import Client
from path_rows import write_rows

from gpuops.som.grid import Grid
from pipelines import all_pairs_shortest_paths, map_samples, single_source_shortest_paths, train_som
from pipelines.stores.codebook import CodebookWriter, create_codebook, open_codebook
from pipelines.stores.contents import record
from pipelines.stores.distances import DistancesWriter, create_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.mapping import MappingWriter, create_mapping
from pipelines.stores.paths import PathsWriter, create_paths
from pipelines.stores.samples import write_samples
from tilepath.cli.describe import store_facts, store_info

# Of no cluster: these runs are refused before they use it.
CLIENT = Mock(spec=Client, status="running", scheduler=Mock(address="tcp://none:0"))
KINDS = ("distances", "paths", "codebook", "mapping")


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "g", np.arange(6), np.array([1, 2, 3, 4, 0]), np.ones(5, "int32"))


@pytest.fixture
def samples(tmp_path):
    values = np.array([[1.0, 2], [3, 4], [5, 7], [2, 2]])
    return write_samples(tmp_path / "s", values, chunk_rows=2, source="made")


def train(path, samples, *, end=True):
    writer = create_codebook(path, samples, Grid(1, 2), metric="euclidean", sigmas=[1.0], options={"epochs": 1})
    for epoch in range(2 if end else 1):
        writer.write(epoch, np.ones((1, 2, 2)))
        writer.commit(epoch, [1.0] * epoch)
    if end:
        writer.finish(1, [1.0, 1.0], 0.0, np.array([2, 2]))
    return writer


@pytest.fixture
def begin(tmp_path, graph, samples):
    """Begins a store: its writer, what commits something, what commits all, what resumes, a call with other options."""
    out = tmp_path / "out"

    def distances():
        options = {"method": "batched", "block": None}
        writer = create_distances(out, graph, dtype="int32", chunk=5, stages=1, options=options)
        other = partial(all_pairs_shortest_paths, CLIENT, graph, out, dtype="float64", resume=True)

        def commit():
            writer.make_result()
            writer.write_rows(0, np.ones((5, 5), "int32"))
            writer.commit(1)

        return writer, commit, partial(DistancesWriter.resume, source=graph), other

    def paths():
        writer = create_paths(out, graph, dtype="int32", sources=[3], chunk=1)
        other = partial(single_source_shortest_paths, CLIENT, graph, out, [2], resume=True)

        def commit():
            write_rows(writer, 0, np.ones((1, 5), "int32"), np.zeros((1, 5), "int32"))
            writer.record(np.array([True]))

        return writer, commit, partial(PathsWriter.resume, source=graph), other

    def codebook():
        writer = train(out, samples, end=False)
        other = partial(train_som, CLIENT, samples, out, 1, 2, metric="taxicab", resume=True)

        def commit():
            writer.write(1, np.ones((1, 2, 2)))
            writer.commit(1, [1.0])
            writer.finish(1, [1.0, 1.0], 0.0, np.array([2, 2]))

        return writer, commit, partial(CodebookWriter.resume, source=samples, options={"epochs": 1}), other

    def mapping():
        train(tmp_path / "m", samples)
        codebook = open_codebook(tmp_path / "m")
        writer = create_mapping(out, samples, codebook)
        others = write_samples(tmp_path / "others", np.ones((4, 2)), chunk_rows=2, source="made")
        other = partial(map_samples, CLIENT, codebook, others, out, resume=True)

        def commit():
            writer.write(0, np.tile(np.array([0, 1], "int32"), (4, 1)), np.ones((4, 2)))
            writer.record(np.ones(4, bool))

        return writer, commit, partial(MappingWriter.resume, source=samples, options={"codebook": codebook}), other

    return {"distances": distances, "paths": paths, "codebook": codebook, "mapping": mapping}


def files_in(path):
    return {file: file.read_bytes() for file in Path(path).rglob("*") if file.is_file()}


def leave(path):
    """What killed runs leave in a store: partial stores within it and partial files of chunks, in any folder."""
    left = [Path(path, ".inner.zarr.host.123.partial"), Path(path, "zarr.json.1f.partial")]
    (left[0] / "c").mkdir(parents=True)
    for file in left[1], left[0] / "c" / "0.2f.partial":
        file.write_text("begun")
    return left


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_refused_takes_nothing_over(kind, begin):
    _, commit, _, other = begin[kind]()
    with pytest.raises(StoreError, match="was begun with"):
        other()
    commit()  # by the run that had the store before, and has it still


@pytest.mark.parametrize("kind", KINDS)
def test_an_unfinished_store_belongs_to_the_run_that_resumed_it(kind, begin):
    writer, commit, resume, _ = begin[kind]()
    assert not writer.finished
    left = leave(writer.path)
    assert not resume(writer.path).finished
    assert not any(each.exists() for each in left)
    before = files_in(writer.path)
    with pytest.raises(StoreError, match="another run took this store over"):
        commit()
    assert files_in(writer.path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_under_way_does_not_take_the_store_back(kind, begin):
    """The attributes that a run opened before it lost the store have its own id."""
    writer, _, resume, _ = begin[kind]()
    late = writer.owned()
    again = resume(writer.path)
    with pytest.raises(StoreError, match="another run took this store over"):
        record(writer.path, late, {"more": 1})
    assert again.owned().attrs["run_id"] == again.run_id


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_whose_store_was_removed_does_not_make_it_again(kind, begin):
    writer, commit, *_ = begin[kind]()
    shutil.rmtree(writer.path)
    with pytest.raises(StoreError, match="no such store|was removed while it was written; remove the rest"):
        commit()
    assert not Path(writer.path).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_store_is_returned_as_it_is(kind, begin):
    writer, commit, resume, _ = begin[kind]()
    commit()
    again = resume(writer.path)
    assert (again.finished, again.path, again.run_id) == (True, writer.path, "")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_killed_run_left_in_a_finished_store_is_reported_and_removed(kind, begin):
    writer, commit, resume, _ = begin[kind]()
    commit()
    assert "remains" not in "".join(store_info(writer.path))
    left = leave(writer.path)
    if kind == "distances":  # killed between the mark of completion and the removal of the last checkpoint
        left.append(Path(writer.path, "checkpoint-0"))
        shutil.copytree(Path(writer.path, "distances"), left[-1])
    told = "".join(store_info(writer.path, verify=True))
    assert f"are left over from a killed run ({left[-1].name} and {len(left) - 1} more); " in told
    assert sorted(store_facts(writer.path)["leftovers"]) == sorted(str(each.relative_to(writer.path)) for each in left)
    assert resume(writer.path).finished
    assert not any(each.exists() for each in left)
    assert "remains" not in "".join(store_info(writer.path, verify=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_whose_attributes_were_changed_is_not_resumed(kind, begin):
    """A run that took it over would commit the changed attributes, and `info --verify` would pass."""
    writer, _, resume, _ = begin[kind]()
    file = Path(writer.path, "zarr.json")
    entries = json.loads(file.read_text())
    entries["attributes"] |= {"replaces": "another"}
    file.write_text(json.dumps(entries))
    before = file.read_bytes()
    with pytest.raises(StoreError, match="out: the attributes differ from those recorded; recreate the store"):
        resume(writer.path)
    assert file.read_bytes() == before
