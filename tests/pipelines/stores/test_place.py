"""Where stores come to stand: what is never overwritten, what stays until the new one is whole, and leftovers."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from path_rows import write_rows

from pipelines.files.output_file import check_folder, whole_file
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.paths import PathsWriter, create_paths, open_paths
from pipelines.stores.place import clear_leftovers, new_store, refuse_inputs, standing
from pipelines.stores.samples import write_samples


def ring(path, **facts):
    return write_graph(path, np.arange(6), np.array([1, 2, 3, 4, 0]), np.ones(5, "int32"), **facts)


@pytest.fixture
def graph(tmp_path):
    return ring(tmp_path / "g.zarr")


def begin(path, graph, **options):
    return create_paths(path, graph, dtype="int32", sources=[4, 1, 3], chunk=1, **options)


def fill(run, rows, value=0):
    done = run.rows_done()
    for row in rows:
        write_rows(run, row, np.full((1, 5), value, "int32"), np.full((1, 5), -1, "int32"))
        done[row] = True
    run.record(done)


def finished(path, graph, value, **options):
    run = begin(path, graph, **options)
    fill(run, range(3), value)
    return run


@pytest.mark.parametrize(
    ("out", "fault"),
    [
        ("g.zarr", "is the input"),
        ("./g.zarr/", "is the input"),
        ("link", "is the input"),
        ("folder/g.zarr", "is the input"),
        ("g.zarr/d.zarr", "lies within the input"),
        ("link/a/b", "lies within the input"),
        (".", "holds the input"),
        ("round", "is the input"),
    ],
)
def test_an_output_is_not_an_input_nor_within_it_nor_around_it(tmp_path, graph, monkeypatch, out, fault):
    (tmp_path / "link").symlink_to("g.zarr")
    (tmp_path / "round").symlink_to("link")
    (tmp_path / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for overwrite in (True, False):
        with pytest.raises(StoreError, match=rf"{fault} .*g\.zarr; choose another place"):
            standing(out, "graph/1", [graph.path], resume=False, overwrite=overwrite)
    open_graph(graph.path).verify()
    refuse_inputs(tmp_path / "g.zarr2", [graph.path, tmp_path / "nothing", np.zeros(2), None])


def test_no_store_is_made_within_a_store(tmp_path, graph):
    within = tmp_path / "g.zarr" / "folder" / "within"
    with pytest.raises(StoreError, match=f"{within} lies within the store {graph.path}; choose another place"):
        write_graph(within, np.array([0, 0]), np.array([], np.int32), np.array([], np.float32))
    with pytest.raises(StoreError, match="lies within the store"):
        standing(within, "paths/1", [ring(tmp_path / "other").path], resume=False, overwrite=False)


@pytest.mark.parametrize("place", ["file/out", "file/folder/out", "/proc/out"])
def test_a_place_where_no_store_can_be_made(tmp_path, place):
    (tmp_path / "file").touch()
    out = tmp_path / place
    with pytest.raises(StoreError, match=f"{out}: cannot be written .*; choose another place"):
        write_graph(out, np.array([0, 0]), np.array([], np.int32), np.array([], np.float32))
    with pytest.raises(StoreError, match="cannot be written .*; choose another place"), whole_file(out) as partial:
        partial.write_text("text")


@pytest.mark.parametrize(
    ("out", "fault"),
    [
        ("", "the name of the output is empty"),
        ("none/..", "exists already"),
        ("broken", "broken is a link to nothing, which does not exist; remove the link"),
        ("circle", "circle is a link to circle, which does not exist; remove the link"),
    ],
)
def test_no_store_replaces_the_current_folder_or_a_broken_link(tmp_path, monkeypatch, out, fault):
    for name, target in ("broken", "nothing"), ("circle", "circle"), ("kept", "nothing else"):
        (tmp_path / name).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=fault):
        ring(out)
    if out != "none/..":
        with pytest.raises(StoreError, match=fault):
            ring(out, overwrite=True)
        with pytest.raises(StoreError, match=fault):
            check_folder(out)
        with pytest.raises(StoreError, match=fault):
            standing(out, "paths/1", [], resume=True, overwrite=False)
    assert sorted(os.listdir(tmp_path)) == ["broken", "circle", "kept"]


def test_what_would_replace_an_input_is_refused(tmp_path, graph):
    os.rename(graph.path, tmp_path / "p.new")
    with pytest.raises(StoreError, match=r"p\.new is the input"):
        standing(tmp_path / "p", "paths/1", [tmp_path / "p.new"], resume=False, overwrite=True)


def test_a_store_replaces_its_own_kind_only(tmp_path, graph):
    finished(tmp_path / "p", graph, 0)
    for make in (
        lambda: begin(graph.path, graph, overwrite=True),
        lambda: ring(tmp_path / "p", overwrite=True),
        lambda: write_samples(tmp_path / "p", np.ones((2, 2)), overwrite=True),
    ):
        with pytest.raises(
            StoreError, match=r"is a store of schema .*; only a store of schema .* may be overwritten here"
        ):
            make()
    open_graph(graph.path).verify()
    open_paths(tmp_path / "p").verify()


def test_two_runs_that_begin_at_one_moment_do_not_advise_to_overwrite(tmp_path, graph):
    begin(tmp_path / "p", graph)
    with pytest.raises(StoreError, match=r"p exists already; .* or wait until the other run .* has ended$"):
        begin(tmp_path / "p", graph)


def test_the_old_result_stays_until_the_new_one_is_whole(tmp_path, graph):
    finished(tmp_path / "p", graph, 1)
    run = begin(tmp_path / "p", graph, overwrite=True)
    fill(run, [1], 2)
    assert open_paths(tmp_path / "p").distances((0, 0)) == 1
    with pytest.raises(
        StoreError, match=rf"p\.new: unfinished, 1 of 3 rows done; .* {tmp_path / 'p'}` with its options"
    ):
        open_paths(tmp_path / "p.new")
    stands = standing(tmp_path / "p", "paths/1", [graph.path], resume=True, overwrite=False)
    assert stands == str(tmp_path / "p.new")
    fill(PathsWriter.resume(stands, graph), [0, 2], 2)
    assert sorted(os.listdir(tmp_path)) == ["g.zarr", "p"]
    found = open_paths(tmp_path / "p")
    found.verify()
    assert found.distances()[:, 0].tolist() == [2, 2, 2]
    assert standing(tmp_path / "p", "paths/1", [], resume=True, overwrite=False) == str(tmp_path / "p")
    with pytest.raises(StoreError, match=r"resume=True continues .* overwrite=True begins it again; pass one of them"):
        standing(tmp_path / "p", "paths/1", [], resume=True, overwrite=True)


def test_a_run_that_is_discarded_leaves_the_old_result(tmp_path, graph):
    finished(tmp_path / "p", graph, 1)
    begin(tmp_path / "p", graph, overwrite=True).discard()
    assert sorted(os.listdir(tmp_path)) == ["g.zarr", "p"]
    open_paths(tmp_path / "p").verify()


def test_a_run_begun_anew_replaces_the_one_that_was_to_replace_the_old_result(tmp_path, graph):
    finished(tmp_path / "p", graph, 1)
    first = begin(tmp_path / "p", graph, overwrite=True)
    fill(begin(tmp_path / "p", graph, overwrite=True), [0, 1, 2], 3)
    with pytest.raises(StoreError, match="no such store"):
        fill(first, [0, 1, 2], 2)
    assert open_paths(tmp_path / "p").distances((0, 0)) == 3


def test_a_store_of_that_name_which_replaces_nothing_is_left_alone(tmp_path, graph):
    finished(tmp_path / "p", graph, 1)
    finished(tmp_path / "p.new", graph, 2)
    with pytest.raises(StoreError, match=r"p\.new is in the way of .*; move it elsewhere"):
        begin(tmp_path / "p", graph, overwrite=True)
    assert standing(tmp_path / "p", "paths/1", [], resume=True, overwrite=False) == str(tmp_path / "p")


def test_a_result_that_could_not_take_its_place_is_kept(tmp_path, graph):
    finished(tmp_path / "p", graph, 1)
    run = begin(tmp_path / "p", graph, overwrite=True)
    os.rename(tmp_path / "p", tmp_path / "elsewhere")
    ring(tmp_path / "p")
    with pytest.raises(
        StoreError, match=r"only a store of schema paths/1 may be overwritten here.*the result is at .*p\.new"
    ):
        fill(run, [0, 1, 2], 2)
    open_graph(tmp_path / "p").verify()
    os.rename(tmp_path / "p", tmp_path / "graph")
    assert PathsWriter.resume(tmp_path / "p.new", graph).path == str(tmp_path / "p")  # complete: it takes its place now
    assert open_paths(tmp_path / "p").distances((0, 0)) == 2


def test_a_link_still_leads_to_the_store_that_was_replaced(tmp_path, graph):
    (tmp_path / "disk").mkdir()
    finished(tmp_path / "disk" / "p", graph, 1)
    (tmp_path / "p").symlink_to("disk/p")
    finished(tmp_path / "p", graph, 2, overwrite=True)
    assert (tmp_path / "p").is_symlink()
    assert open_paths(tmp_path / "disk" / "p").distances((0, 0)) == 2
    ring(tmp_path / "disk" / "h")
    (tmp_path / "h").symlink_to("disk/h")
    ring(tmp_path / "h", overwrite=True, weight_unit="km")
    assert open_graph(tmp_path / "disk" / "h").weight_unit == "km"


# Leftovers of runs that were killed

KILLED = """
import os, sys, signal, numpy as np
from pipelines.stores.graph_writer import new_graph
with new_graph(sys.argv[1], n=5, m=5, weight_dtype="int32", overwrite=True) as writer:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_import_left_is_removed_by_the_next(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "g.zarr")], timeout=120)
    assert done.returncode == -9
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".g.zarr.")
    assert left.endswith(".partial")
    ring(tmp_path / "g.zarr")
    assert os.listdir(tmp_path) == ["g.zarr"]


def test_what_is_written_after_an_error_is_removed_too(tmp_path, monkeypatch):
    """As by threads of Zarr, which write other chunks."""
    late, rmtree = [], shutil.rmtree

    def removed(folder, **options):
        rmtree(folder, **options)
        if late:
            (Path(folder) / late.pop()).mkdir(parents=True)

    def fail(path):
        with new_store(path, "graph/1"):
            late.extend([Path("a/c"), Path("b")])
            raise ZeroDivisionError

    monkeypatch.setattr(shutil, "rmtree", removed)
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "g.zarr")
    assert os.listdir(tmp_path) == []


def test_what_may_be_a_live_process_s_or_is_not_ours_stays(tmp_path):
    alive, other = os.getppid(), 2**22 + 5  # process numbers are below 2^22
    kept = [
        f".g.zarr.{alive}.partial",
        f".g.zarr.far-away.{other}.partial",
        f".g.zarr2.{other}.partial",
        f".h.g.zarr.{other}.partial",
        f".g.zarr.{other}.partial.txt",
        "g.zarr.5.partial",
    ]
    for name in [*kept, f".g.zarr.{other}.partial", f".g.zarr.{os.getpid()}.partial"]:
        (tmp_path / name).mkdir()
    ring(tmp_path / "g.zarr")
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "g.zarr"])


def test_of_two_threads_that_write_one_store_the_first_to_end_keeps_it(tmp_path):
    def write():
        with new_store(tmp_path / "g.zarr", "graph/1"):
            with ThreadPoolExecutor(1) as other:
                other.submit(ring, tmp_path / "g.zarr").result().verify()
            assert len(os.listdir(tmp_path)) == 2  # the other thread's store, and the unfinished store of this thread

    with pytest.raises(StoreError, match=r"g\.zarr exists already"):
        write()
    open_graph(tmp_path / "g.zarr").verify()
    assert os.listdir(tmp_path) == ["g.zarr"]


def test_a_store_is_put_back_that_a_killed_run_had_taken_away(tmp_path):
    graph = ring(tmp_path / "g.zarr")
    os.rename(graph.path, tmp_path / f".g.zarr.{2**22 + 5}.replaced")
    with pytest.raises(StoreError, match="exists already"):
        ring(tmp_path / "g.zarr")
    open_graph(graph.path).verify()
    ring(tmp_path / f".g.zarr.{2**22 + 5}.replaced")
    ring(tmp_path / "g.zarr", overwrite=True)
    assert os.listdir(tmp_path) == ["g.zarr"]


def test_a_resumed_run_clears_what_a_killed_run_left_for_the_new_store(tmp_path, graph):
    out, new = tmp_path / "p.zarr", tmp_path / "p.zarr.new"
    finished(out, graph, 1)
    begin(out, graph, overwrite=True)
    shutil.copytree(new, tmp_path / f".p.zarr.new.{2**22 + 5}.partial")
    for again in False, True:
        if again:  # killed while another new store was to take this place
            new.rename(tmp_path / f".p.zarr.new.{2**22 + 5}.replaced")
        assert standing(out, "paths/1", [graph.path], resume=True, overwrite=False) == str(new)
        assert sorted(os.listdir(tmp_path)) == ["g.zarr", "p.zarr", "p.zarr.new"]


def test_a_store_of_before_a_reboot_is_restored_though_its_process_number_is_given_again(tmp_path, graph, monkeypatch):
    aside = tmp_path / f".g.zarr.{os.getppid()}.replaced"
    os.rename(graph.path, aside)
    clear_leftovers(graph.path)
    assert aside.exists()  # its process may be about to put the new store there
    moved = aside.stat().st_ctime
    monkeypatch.setattr("pipelines.stores.place._boot_time", lambda: moved + 1)
    clear_leftovers(graph.path)
    open_graph(graph.path).verify()


@pytest.mark.parametrize("kind", ["partial", "replaced"])
def test_leftovers_that_another_process_clears_meanwhile_are_left_to_it(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: iter([folder / f".a.zarr.{2**22 + 5}.{kind}"]))
    clear_leftovers(tmp_path / "a.zarr")
