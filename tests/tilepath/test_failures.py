"""Commands while the n-th write, read, opening, renaming, making of a folder or message of Dask fails.

Whatever n is, a command ends with the right result, or with one line that names a file and the cure. What it leaves is
complete and right, or unfinished, and `tilepath info` says so; a store or file that was to be replaced is as it was.
Repeated, the command gives the same bits as without a failure. By default a few failures of every second command are
played; ``pytest -m slow -s tests/tilepath/test_failures.py`` plays all failures of all commands, and with PART=2/4 the
part 2 of the parts 0 to 3.
"""

import contextlib
import errno
import io
import json
import os
import re
import shutil
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from failures import ERRORS, Failures
from pipeline_fixtures import let_tasks_end

from tilepath.cli import main

# Zarr leaves coroutines behind when one of several writes fails.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

OFTEN = {  # several chunks and commits, even in small stores
    "pipelines.apsp.hierarchy.EDGE": 8,
    "pipelines.apsp.hierarchy.LEAST_EDGE": 8,
    "pipelines.apsp.hierarchy.TASK_BYTES": 1,
    "pipelines.apsp.commits.COMMIT_SHARE": float("inf"),
    "pipelines.sssp.plan.CHUNK_BYTES": 1,
    "pipelines.sssp.plan.BATCH": 1,
    "pipelines.workers.row_chunks.RECORD_SECONDS": 0.0,
    "pipelines.od_tables.plan.CHUNK_ROWS": 4,
    "pipelines.od_tables.plan.BLOCK_BYTES": 400,
    "pipelines.od_tables.plan.REDUCED_PAIRS": (1, 40),
}

INPUTS = """
import e.csv g --coordinates xy.csv
apsp g d
hierarchy g h
generate random large --vertices 36
generate euler-shallow loops --vertices 13
som import s.csv s --scaling zscore --label kind
som train s m --rows 3 --columns 4 --epochs 2
"""

COMMANDS = """
import IN/e.csv OUT --coordinates IN/xy.csv --labels
generate road OUT --rows 4
graph tree IN/g OUT.csv
som import IN/s.csv OUT --scaling zscore --label kind
apsp IN/g OUT --method floyd-warshall --block 4 --commit-seconds 0
apsp IN/large OUT --method out-of-core --block 4 --commit-seconds 0 --host-memory 34KB
apsp IN/g OUT --method batched
sssp IN/g OUT --source 1 --source 5 --source 7
sssp IN/g OUT --source 1 --spread vertices
betweenness IN/g OUT.csv
hierarchy IN/g OUT
od IN/h OUT.zarr --origins IN/v.csv
od IN/h OUT.parquet --origins IN/v.csv
euler IN/loops OUT
som train IN/s OUT --rows 3 --columns 4 --epochs 3
som map IN/m IN/s OUT --out OUT.csv
export IN/g OUT.mtx
export IN/d OUT.parquet
"""
MORE = """
graph turns IN/g OUT --turns IN/t.csv
flows IN/g IN/demand.csv OUT.csv
od IN/h OUT.csv --origins IN/v.csv
od IN/h OUT.csv --pairs IN/p.csv --also cost=IN/g
what-if IN/h OUT.csv --closed IN/p.csv --origins IN/v.csv
isochrones IN/h OUT.gpkg --from 0 --within 4,9
apsp IN/g OUT --method hierarchy
picture IN/g OUT.svg
som cluster IN/m OUT.csv --clusters 2
"""
SLOW_ONLY = """
graph reverse IN/g OUT
histogram IN/h OUT.csv --origins IN/v.csv
som generate chainlink OUT
od IN/h OUT.npy --origins IN/v.csv
hierarchy IN/g OUT --like IN/h
export IN/d OUT.npy
import IN/many.csv OUT --memory 1
import IN/e.csv OUT --turns IN/t.csv --labels
graph tree IN/g OUT
od IN/h OUT.csv.gz --origins IN/v.csv
od IN/h OUT.tsv --origins IN/v.csv --reduce min
isochrones IN/g OUT.geojson --from 5 --within 9 --kind edges
isochrones IN/g OUT.parquet --from 5 --within 9
picture IN/d OUT.png
som plot IN/m OUT.png
som export IN/m OUT.csv
export IN/loops OUT.csv
export IN/g OUT.parquet
"""
first, parts = os.environ.get("PART", "0/1").split("/")
PART = int(first), None, int(parts)
RESUMES = "apsp", "sssp", "hierarchy", "od", "som train", "som map"
KEPT_PIECES = ("od", ".partial"), ("od", ".pieces")
WRONG_CURES = "recreate|remove|damaged|correct the file|train the map again|compute"


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


def run(*arguments):
    """The exit code of a command, and the last line that it prints; -1 and the error if it ends with a traceback."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        patch.setattr(sys, "argv", ["tilepath", *arguments])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code
        except Exception as error:
            code = -1
            said.write(f"\n{error!r}")
    return code, (lines(said.getvalue()) or [""])[-1]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, client):
    folder = tmp_path_factory.mktemp("inputs")
    rng, n = np.random.default_rng(0), 12
    ends = [*((i, (i + 1) % n) for i in range(n)), *rng.integers(0, n, (24, 2)).tolist()]
    for name, rows in {
        "e.csv": ["source,target,weight", *(f"{a},{b},{1 + (a + b) % 7}" for a, b in ends)],
        "many.csv": ["source,target", *(f"{a},{b}" for a, b in rng.integers(0, 500, (60_000, 2)).tolist())],
        "xy.csv": ["node,x,y", *(f"{i},{i % 4},{i // 4}" for i in range(n))],
        "p.csv": ["source,target", "0,1", "4,5"],
        "t.csv": ["from,via,to,cost", "0,1,2,no", ",3,,2"],
        "demand.csv": ["origin,destination,amount", "0,7,2", "3,1,1.5"],
        "v.csv": ["vertex", *map(str, range(n))],
        "s.csv": ["x,y,kind", *(f"{x:.3f},{y:.3f},{'ab'[x > 0]}" for x, y in rng.normal(size=(40, 2)).tolist())],
    }.items():
        (folder / name).write_text("\n".join(rows) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("tilepath.cli.cluster._open_client", lambda *_: contextlib.nullcontext(client))
        for line in lines(INPUTS):
            assert run(*line.split())[0] == 0, line
    return folder


@pytest.fixture
def failures(inputs, client, tmp_path, monkeypatch):
    """Failures in the folders of inputs and results; the latter is the current one."""
    monkeypatch.setattr("tilepath.cli.cluster._open_client", lambda *_: contextlib.nullcontext(client))
    for name, value in OFTEN.items():
        monkeypatch.setattr(name, value)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Failures(monkeypatch, inputs.parent)


def content(path):
    """The bits of a file, or of a store but for its ids, times and paths, which differ from run to run."""
    if path.suffix == ".gpkg":
        with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(path)) as database:
            return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]*Z", "", "\n".join(database.iterdump())).encode()
    if path.is_file():
        return path.read_bytes()
    files = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    attributes = json.loads(files.pop("zarr.json"))["attributes"]
    files = {name: data for name, data in files.items() if not name.endswith("zarr.json")}
    return files | {name: attributes.get(name) for name in ("contents", "complete", "errors", "done")}


def holds(found, want):
    """Whether a file or store has the right bits; a store may have a checkpoint beside, until it is resumed."""
    return found == want if isinstance(want, bytes) else want.items() <= found.items()


class Sweep:
    """A command that is run again and again in the folder `here`."""

    def __init__(self, command, inputs, client, failures):
        self.words, self.failures, self.client = command.replace("IN/", f"{inputs}/").split(), failures, client
        self.outs, self.here = [word for word in self.words if word.startswith("OUT")], Path.cwd()
        self.resumes, self.kept = command.startswith(RESUMES), self.here.parent / "kept"
        failures.plan()
        assert run(*self.words)[0] == 0
        self.calls = {False: failures.count}
        self.want = {name: content(self.here / name) for name in self.outs}
        self.kept.mkdir()
        for name in self.outs:  # they will be in place before a run that overwrites
            (self.here / name).rename(self.kept / name)
            path = self.kept / name
            if path.is_dir():
                (path / "old").touch()
            else:
                path.write_text("old")
        self.old = {name: content(self.kept / name) for name in self.outs}
        assert self.begin(True)[0] == 0
        self.calls[True] = failures.count

    def begin(self, overwrite, *failure):
        """Run the command in a folder that is empty, or has old results."""
        for path in self.here.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in self.outs * overwrite:
            copy = shutil.copytree if (self.kept / name).is_dir() else shutil.copyfile
            copy(self.kept / name, self.here / name)
        self.failures.plan(*failure)
        return run(*self.words, *["--overwrite"] * overwrite)

    def play(self, overwrite, operation, n, number):
        """One failure: what becomes of the command and of its folder."""
        code, said = self.begin(overwrite, operation, n, number)
        struck = self.failures.struck
        self.failures.plan()
        if not struck:
            return "not reached"
        let_tasks_end(self.client)
        about = f"{operation} {n} {errno.errorcode[number]} at {struck}{' --overwrite' * overwrite}, said {said!r}"
        if code != 0:
            assert code == 1, about
            self.check_message(said, operation, about)
            left = self.check_folder(overwrite, operation, about)
            code, told = self.again(left)
            assert code == 0, f"{about}, then {told!r}"
        for name in self.outs:
            assert content(self.here / name) == self.want[name], about
        assert sorted(path.name for path in self.here.iterdir()) == self.outs, about
        return "ended with an error" if said.startswith("Error") else "were harmless"

    def check_message(self, said, operation, about):
        named = [*self.outs, str(self.failures._folder), "cluster"]
        assert said.startswith("Error: "), about
        assert any(each in said for each in named), about
        assert "; " in said, about
        assert not re.search(WRONG_CURES, said), about

    def check_folder(self, overwrite, operation, about):
        """Names of what is left and not yet complete."""
        begun = []
        for path in self.here.iterdir():
            name, found = path.name, None if path.name.startswith(".") else content(path)
            if overwrite and name in self.outs and found == self.old[name]:
                continue
            if path.suffix == ".replaced":  # the next run removes it, or restores it if the place is empty
                (replaced,) = (each for each in self.outs if name.startswith(f".{each}."))
                new = self.here / replaced
                assert content(path) == self.old.get(replaced), f"{about}: {replaced} is lost"
                # The place is empty only if the disk fails for good; the new store is in it if it was not made durable.
                assert operation == "change" or (new.exists() and content(new) == self.want[replaced]), about
                continue
            begun.append(name)
            if found is None:
                assert (self.words[0], Path(name).suffix) in KEPT_PIECES, f"{about}: leaves {name}"
            elif path.is_file() or found["complete"] is not False:
                assert holds(found, self.want[name.removesuffix(".new")]), f"{about}: {name} is wrong"
                if name in self.outs:
                    begun.remove(name)
            else:
                assert self.resumes, f"{about}: {name} is unfinished"
                assert not overwrite or name not in self.outs, f"{about}: {name} is lost"
            if path.is_dir():
                assert not [*path.rglob("*.partial")], f"{about}: leaves parts of chunks"
                code, told = run("info", name, "--verify")
                assert code == 0, f"{about}: {told!r}"
        return begun

    def again(self, begun):
        """Repeat the command as its message says."""
        if self.resumes and begun:
            return run(*self.words, "--resume")
        there = any((self.here / name).exists() or [*self.here.glob(f".{name}.*.replaced")] for name in self.outs)
        code, said = run(*self.words, *["--overwrite"] * there)
        if code and "exists already" in said:  # a task of the run that lost its connection has completed the result
            return run(*self.words, "--overwrite")
        return code, said


def chosen(calls, rng):
    """The last write but one, which is often of data; and the first write, the last renaming, or any other failure."""
    other = str(rng.choice([name for name in ERRORS if calls[True][name]]))
    for overwrite, places in (False, [("write", -2)]), (True, [("write", 0), ("rename", -1), (other, rng.random())]):
        operation, place = places[rng.integers(len(places))]
        count = calls[overwrite][operation]
        n = place * count if 0 <= place < 1 else max(0, count + place)
        yield overwrite, operation, int(n) + 1, int(rng.choice(ERRORS[operation]))


def one(calls, rng):
    """One of those that `chosen` chooses."""
    yield [*chosen(calls, rng)][rng.integers(2)]


def every(calls, _rng):
    """All failures; errors, and whether there are old results, take turns."""
    for operation, numbers in ERRORS.items():
        for n in range(1, max(calls[True][operation], calls[False][operation]) + 1):
            yield bool(n // len(numbers) % 2), operation, n, numbers[n % len(numbers)]
            if n > min(calls[True][operation], calls[False][operation]) - 3:
                yield not n // len(numbers) % 2, operation, n, numbers[n % len(numbers)]


FEW = [
    pytest.param(command, chosen if command.startswith(RESUMES) else one, id=f"few-{command}")
    for command in lines(COMMANDS)[::2]
]
FEW += [pytest.param(command, one, id=f"one-{command}") for command in lines(MORE)[::2]]
SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]
ALL = [pytest.param(command, every, id=f"all-{command}", marks=SLOW) for command in lines(COMMANDS + MORE + SLOW_ONLY)]


@pytest.mark.parametrize(("command", "failing"), FEW + ALL)
def test_a_failure_is_told_and_leaves_nothing_half_written(command, failing, inputs, client, failures):
    sweep, counts, wrong = Sweep(command, inputs, client, failures), Counter(), []
    part = slice(*PART) if failing is every else slice(None)
    for failure in [*failing(sweep.calls, np.random.default_rng(len(command)))][part]:
        try:
            counts[sweep.play(*failure)] += 1
        except AssertionError as error:
            wrong.append(str(error).partition("\nassert")[0])
    print(f"\n{command}: {dict(counts)}")
    assert not wrong, f"{len(wrong)} of {counts.total() + len(wrong)}\n" + "\n".join(wrong[:9])
    assert counts.total() > counts["not reached"]


def test_a_run_that_replaces_a_store_and_its_table_goes_on(inputs, client, failures):
    sweep = Sweep("som map IN/m IN/s OUT --out OUT.csv", inputs, client, failures)
    for n in range(sweep.calls[True]["write"], 0, -1):  # the last write that leaves the store unfinished
        sweep.begin(True, "write", n, errno.ENOSPC)
        failures.plan()
        if (sweep.here / "OUT.new").exists():
            break
    assert (sweep.here / "OUT.new").exists()
    assert run(*sweep.words, "--resume")[0] == 0
    assert {name: content(sweep.here / name) for name in sweep.outs} == sweep.want


@pytest.mark.parametrize("what", ["inputs", "result"])
@pytest.mark.parametrize("start", ["import", "apsp", "sssp", "som train"])
def test_a_folder_that_vanishes_is_told(start, what, inputs, failures):
    command = next(each for each in lines(COMMANDS) if each.startswith(start))
    own, here = Path.cwd().parent / "own", Path.cwd()
    shutil.copytree(inputs, own)
    words = command.replace("IN/", f"{own}/").split()
    operation = "change" if what == "result" else "read"
    failures.plan()
    assert run(*words)[0] == 0
    n = failures.count[operation] // 2
    for path in here.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    failures.plan(operation, n, vanishes=[own] if what == "inputs" else [here / "OUT", *here.glob(".OUT*")])
    code, said = run(*words)
    assert failures.struck
    assert code in (0, 1), said
    if code:
        assert re.match("Error: .*(OUT|own).*(; |no such store)", said), said
    for path in here.iterdir():
        code, said = run("info", path.name)
        assert code in (0, 1), said
