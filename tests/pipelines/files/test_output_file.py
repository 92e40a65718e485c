"""Files that commands write: outside stores, where they can be written, whole or not at all."""

import errno
import fcntl
import os
import signal

import pytest
from commands import invoke

from pipelines.files.output_file import growing_file, is_complete, whole_file
from pipelines.formats import import_graph
from pipelines.stores.errors import StoreError

COMMANDS = """
export G OUT/x.csv
graph degrees G --out OUT/x.csv
graph components G --out OUT/x.csv
graph tree G OUT/x.csv
graph show G --out OUT/x.adj
picture G OUT/x.svg
picture G OUT/x.dot
od G OUT/x.csv --origins v.csv
od G OUT/x.npy --origins v.csv
sequence permutations 3 --out OUT/x.npy
""".strip().splitlines()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", ["lies within the store", "cannot be written"])
def test_every_command_refuses_a_folder_that_is_not_for_files(tmp_path, monkeypatch, command, fault):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("vertex\n0\n1\n")
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,0\n")
    (tmp_path / "ro").mkdir()
    graph = import_graph("e.csv", "G")
    before = sorted(tmp_path.rglob("*"))
    if fault == "cannot be written":
        monkeypatch.setattr("pipelines.files.output_file.os.access", lambda path, mode, **_: mode != os.W_OK)
    out = "G/indices" if "within" in fault else "ro"
    done = invoke(*command.replace("OUT", out).split())
    assert isinstance(done.exception, StoreError), (done.output, done.exception)
    assert fault in str(done.exception)
    assert str(done.exception).startswith(f"{out}/x.")
    assert sorted(tmp_path.rglob("*")) == before
    graph.verify()


def test_a_folder_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"x.csv is a folder; choose another name"):
        with growing_file("x.csv", {}, overwrite=True):
            pass


def test_a_file_in_its_place_that_is_not_durable_leaves_no_journal(tmp_path, monkeypatch):
    """Nothing would remove the journal: a run with --resume finds the file complete."""

    def fail(folder):
        if (tmp_path / "x.csv").exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO), folder)

    def write():
        with growing_file(tmp_path / "x.csv", {}) as file:
            file.path.write_text("whole")
            file.commit(1)

    monkeypatch.setattr("pipelines.stores.durable.sync_names", fail)
    with pytest.raises(StoreError, match=r"x.csv: the disk failed .*, or write elsewhere"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    """Each kill would leave another hidden file, as large as the result."""
    child = os.fork()
    if not child:
        with whole_file(tmp_path / "x.csv") as partial:
            partial.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".x.csv.")
    with whole_file(tmp_path / "x.csv") as partial:
        partial.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_a_file_is_not_written_with_the_journal_of_a_run_that_has_just_ended(tmp_path, monkeypatch):
    """Another run could write the same pieces at the same time, since the journal has no name any more."""
    lock = fcntl.flock

    def ended(journal, how):
        os.unlink(tmp_path / ".x.csv.pieces")
        lock(journal, how)

    monkeypatch.setattr(fcntl, "flock", ended)
    with pytest.raises(BlockingIOError, match=r"x.csv: another run has just written it"):
        with growing_file(tmp_path / "x.csv", {}):
            pass


def test_a_resumed_file_that_is_complete_is_kept_alone(tmp_path):
    """A kill after the last renaming left a journal; another run ended after this run had looked for the file."""
    out = tmp_path / "x.csv"
    out.write_text("whole")
    (tmp_path / ".x.csv.pieces").touch()
    assert is_complete(out)
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
    with pytest.raises(BlockingIOError, match=r"x.csv: another run has just written it; run the command again"):
        with growing_file(out, {}, resume=True):
            pass
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_a_complete_file_is_found_without_the_journal_of_a_run_that_replaces_it(tmp_path):
    out = tmp_path / "x.csv"
    out.write_text("whole")
    with growing_file(out, {}, overwrite=True) as file:
        file.path.unlink()  # as before the run makes the file, just after it has made the journal
        assert is_complete(out)
        file.path.write_text("new")
        file.commit(1)
        assert (tmp_path / ".x.csv.pieces").exists()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
