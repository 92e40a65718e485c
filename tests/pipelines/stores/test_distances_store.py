import shutil

import dask.array as da
import numpy as np
import pytest
import zarr
from damage import flip

from pipelines.stores.distances import DistancesWriter, create_distances, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from tilepath.cli.describe import store_facts, store_info


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "g.zarr", np.arange(6), np.array([1, 2, 3, 4, 0]), np.ones(5, "float32"))


def fill(run, values, *, result, step=2):
    (run.make_result if result else run.make_checkpoint)()
    for start in range(0, len(values), step):
        run.write_rows(start, values[start : start + step], result=result)


def begin(path, graph, **options):
    facts = {"dtype": "float32", "chunk": 2, "stages": 3, "options": {"block": 2}} | options
    return create_distances(path, graph, **facts)


def matrices_in(out):
    return sorted(p.name for p in out.iterdir() if p.is_dir())


def test_commits_alternate_between_two_slots_and_the_last_names_the_result(tmp_path, graph):
    out = tmp_path / "d.zarr"
    run = begin(out, graph)
    assert (run.stage, run.slot, DistancesWriter.begun(out).progress()) == (0, None, (0, 3))
    matrices = [np.full((5, 5), float(i), dtype="float32") for i in range(3)]
    for stage in (1, 2):
        fill(run, matrices[stage - 1], result=False)
        before = run.slot
        run = run.commit(stage)
        assert run.slot != before
        np.testing.assert_array_equal(run.read_rows(0, 5), matrices[stage - 1])
    fill(run, matrices[2], result=True)  # not committed: the checkpoint is still what counts
    assert matrices_in(out) == [run.slot, "distances"]  # the disk never holds three matrices
    assert DistancesWriter.begun(out).progress() == (2, 3)
    again = DistancesWriter.resume(out, graph)
    np.testing.assert_array_equal(again.read_rows(1, 4), matrices[1][1:4])
    fill(again, matrices[2], result=True)
    again.commit(3)
    result = open_distances(out)
    np.testing.assert_array_equal(result[:], matrices[2])
    result.verify()
    assert matrices_in(out) == ["distances"]


def test_other_programs_open_the_result_under_its_name(tmp_path, graph):
    matrix = np.arange(10, dtype="float32").reshape(2, 5)
    run = begin(tmp_path / "d", graph, sources=[4, 1], stages=1)
    fill(run, matrix, result=True)
    run.commit(1)
    np.testing.assert_array_equal(da.from_zarr(str(tmp_path / "d"), component="distances").compute(), matrix)
    group = zarr.open_group(tmp_path / "d", mode="r")
    assert sorted(name for name, _ in group.arrays()) == ["distances", "source", "sources"]
    assert group["distances"].metadata.dimension_names == ("source", "target")
    assert group["source"][:].tolist() == [4, 1]


@pytest.mark.parametrize("killed", ["writing", "before the record", "after the record"])
def test_a_run_that_is_killed_at_its_last_commit_resumes(tmp_path, graph, monkeypatch, killed):
    out, state, end = tmp_path / "d", np.full((5, 5), 2, "float32"), np.full((5, 5), 3, "float32")
    run = begin(out, graph)
    fill(run, state, result=False)
    run = run.commit(1)
    run.make_result()
    run.write_rows(0, end[:2])
    if killed != "writing":
        run.write_rows(2, end[2:])
        step = {"before the record": "record", "after the record": "remove_leftovers"}[killed]
        with monkeypatch.context() as patched:
            patched.setattr(f"pipelines.stores.distances.{step}", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                run.commit(3)
    assert matrices_in(out) == ["checkpoint-1", "distances"]
    run = DistancesWriter.resume(out, graph)
    assert run.finished == (killed == "after the record")
    if not run.finished:
        np.testing.assert_array_equal(run.read_rows(0, 5), state)
        fill(run, state, result=False)  # a resumed run may commit again
        assert matrices_in(out) == ["checkpoint-0", "checkpoint-1"]
        run = run.commit(2)
        fill(run, end, result=True)
        run.commit(3)
    assert matrices_in(out) == ["distances"]
    result = open_distances(out)
    result.verify()
    np.testing.assert_array_equal(result[:], end)


def test_an_unfinished_store_says_how_to_go_on(tmp_path, graph):
    run = begin(tmp_path / "d", graph)
    with pytest.raises(
        StoreError,
        match=r"0 of 3 stages done; repeat `tilepath apsp .*g\.zarr .*d` with",
    ):
        open_distances(tmp_path / "d")
    fill(run, np.zeros((5, 5), "float32"), result=False)
    run.commit(2)
    with pytest.raises(StoreError, match="2 of 3 stages done"):
        open_distances(tmp_path / "d")


@pytest.mark.parametrize("method", ["batched", "hierarchy"])
def test_results_made_row_by_row_say_how_many_rows_are_done(tmp_path, graph, method):
    path = tmp_path / "d"
    run = begin(path, graph, stages=1, options={"method": method, "block": None})
    fill(run, np.zeros((5, 5), "float32"), result=True)
    for done in 0, 2, 5:  # all rows, and the run ends before it commits the store
        run.record(np.arange(5) < done)
        assert store_info(path)[0].endswith(f"unfinished distances, {done} of 5 rows done; continue with --resume")
        facts = store_facts(path)
        assert [facts[name] for name in ("complete", "done", "total", "unit")] == [False, done, 5, "rows"]
        with pytest.raises(StoreError, match=f"{done} of 5 rows done; repeat"):
            open_distances(path)
    run.commit(1)
    facts = store_facts(path)
    assert [facts[name] for name in ("complete", "done", "total")] == [True, 5, 5]


@pytest.mark.parametrize("rows", [False, True], ids=["blocks", "rows"])
@pytest.mark.parametrize("how", ["resumed", "replaced"])
def test_a_run_that_lost_its_store_writes_nothing_to_it(tmp_path, graph, how, rows):
    out, values = tmp_path / "d", np.zeros((5, 5), "float32")

    def writing(run):
        """What makes the next checkpoint, and what writes it."""
        if rows:
            return run.make_row_checkpoint, lambda: run.row_files(run.other_slot).write(0, values)
        return run.make_checkpoint, lambda: run.write_rows(0, values, result=False)

    first = begin(out, graph)
    make, write = writing(first)
    make()
    write()
    if how == "replaced":
        shutil.rmtree(out)
    second = DistancesWriter.resume(out, graph) if how == "resumed" else begin(out, graph)
    again, more = writing(second)
    again()
    more()
    second = second.commit(1)
    for late in write, make, lambda: first.commit(1), first.make_result:
        with pytest.raises(StoreError, match="another run took this store over, or replaced it; stop one of the two"):
            late()
    assert second.verify()
    assert matrices_in(out) == [second.slot]


def test_chunks_of_nothing_but_infinity_are_stored_all_the_same(tmp_path, graph):
    run = begin(tmp_path / "d", graph, stages=1)
    fill(run, np.full((5, 5), np.inf, "float32"), result=True)
    run.commit(1)
    open_distances(tmp_path / "d").verify()


def test_rows_of_sources_and_the_graph_they_belong_to(tmp_path, graph):
    run = begin(tmp_path / "d", graph, sources=[4, 1], dtype="int32", stages=1)
    fill(run, np.arange(10, dtype="int32").reshape(2, 5), result=True)
    run.commit(1)
    result = open_distances(tmp_path / "d")
    assert result.shape == (2, 5)
    assert result.row(1).tolist() == [5, 6, 7, 8, 9]
    assert result.graph().digest == graph.digest
    with pytest.raises(StoreError, match="vertex 0 is not among them"):
        result.row(0)
    with pytest.raises(StoreError, match="no vertex 9"):
        result.row(9)


def test_the_graph_is_found_after_both_were_moved_and_a_wrong_one_is_refused(tmp_path, graph):
    (tmp_path / "old").mkdir()
    graph = write_graph(tmp_path / "old/g.zarr", np.array([0, 1, 1]), np.array([1]), np.ones(1, "float32"))
    run = begin(tmp_path / "old/d.zarr", graph, stages=1)
    fill(run, np.zeros((2, 2), "float32"), result=True)
    run.commit(1)
    (tmp_path / "old").rename(tmp_path / "new")
    assert open_distances(tmp_path / "new/d.zarr").graph().digest == graph.digest
    (tmp_path / "new/g.zarr").rename(tmp_path / "elsewhere.zarr")
    moved = open_distances(tmp_path / "new/d.zarr")
    with pytest.raises(StoreError, match="no longer at .*--graph"):
        moved.graph()
    assert moved.graph(tmp_path / "elsewhere.zarr").n == 2
    with pytest.raises(StoreError, match="computed from another graph"):
        moved.graph(tmp_path / "g.zarr")
    changed = moved.graph(tmp_path / "elsewhere.zarr").with_weights(np.full(1, 2.0))
    run = begin(tmp_path / "c.zarr", changed, stages=1)
    fill(run, np.zeros((2, 2), "float32"), result=True)
    run.commit(1)
    with pytest.raises(StoreError, match="from a graph that was changed in memory, .*; in Python, make the same"):
        open_distances(tmp_path / "c.zarr").graph()
    assert open_distances(tmp_path / "c.zarr").graph(changed).digest == changed.digest


def test_damage_is_found_and_named(tmp_path, graph):
    run = begin(tmp_path / "d", graph, stages=1)
    fill(run, np.random.default_rng(0).random((5, 5), dtype="float32"), result=True)
    run = run.commit(1)
    result = open_distances(tmp_path / "d")
    chunk = tmp_path / "d" / "distances" / "c" / "0" / "0"
    flip(chunk, at=-9)
    with pytest.raises(StoreError, match="a chunk is damaged"):
        result.verify()
    chunk.unlink()
    with pytest.raises(StoreError, match="1 of 9 chunks are missing"):
        result.verify()
