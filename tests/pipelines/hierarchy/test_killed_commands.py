"""`tilepath hierarchy`, `od` and `apsp --method hierarchy` killed and resumed: the bytes of an undisturbed run.

One kill of `hierarchy` and of `od` by default, when something is done and something is not; several kills of each, at
random moments, with ``pytest -m slow``. Ctrl-C ends `hierarchy` even while METIS holds the interpreter's lock.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from commands import run_command
from store_contents import contents

from pipelines import generate, synthetic_graph

OFTEN = {  # many small tasks and blocks, all recorded
    "pipelines.od_tables.plan.BLOCK_BYTES": 8 * 400,
    "pipelines.apsp.hierarchy.EDGE": 64,
    "pipelines.apsp.hierarchy.LEAST_EDGE": 64,
    "pipelines.apsp.hierarchy.TASK_BYTES": 1,
    "pipelines.workers.row_chunks.RECORD_SECONDS": 0.0,
}
COMMAND = f"""
import importlib, os, sys, time
for name, value in {OFTEN}.items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, value)
from pipelines.workers.progress import Progress
from tilepath.cli import tilepath
if "SLOWLY" in os.environ:  # or it might be over before it is killed
    Progress.advance = lambda *_: time.sleep(0.5)
print("begins", flush=True)
tilepath(sys.argv[1:])
"""
SLOW_CLOSING = """
import sys, time
import pipelines.hierarchy.building
pipelines.hierarchy.building.close_hierarchy = lambda *_, **__: time.sleep(600)
from tilepath.cli import tilepath
tilepath(sys.argv[1:])
"""
IN_A_CHILD = """
import pipelines.hierarchy.ordering
pipelines.hierarchy.ordering.AT_ONCE = 0  # vertices and arcs from which a child process orders
from tilepath.cli import main
main()
"""
SLOW_METIS = """
import ctypes, os, pathlib
CSRAdjacency = Options = lambda **_: None
def nested_dissection(*_, **__):
    pathlib.Path({note!r}).write_text(str(os.getpid()))
    ctypes.PyDLL(None).sleep(600)
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return generate(synthetic_graph("road", rows=30, columns=30, missing=0.7), tmp_path_factory.mktemp("roads") / "g")


def wait_until(ready, run):
    while not ready():
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)


def done(store):
    try:
        return json.loads((store / "zarr.json").read_text())["attributes"]["done"]
    except (FileNotFoundError, ValueError):
        return 0


def test_a_killed_command_goes_on_to_the_same_bytes(graph, tmp_path):
    out = tmp_path / "h"
    words = ["hierarchy", graph.path, str(out), "--device", "cpu"]
    run = subprocess.Popen([sys.executable, "-c", SLOW_CLOSING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: done(out) == 2, run)
    run.kill()
    run.communicate()
    for path, more in (out, ["--resume"]), (tmp_path / "calm", []):
        run_command("hierarchy", graph.path, path, "--device", "cpu", *more)
    assert contents(out) == contents(tmp_path / "calm")


@pytest.fixture(scope="module")
def inputs(graph, tmp_path_factory):
    """A folder with a hierarchy store, and a table of origins."""
    folder = tmp_path_factory.mktemp("inputs")
    run_command("hierarchy", graph.path, str(folder / "h"), "--device", "cpu")
    vertices = np.random.default_rng(1).integers(0, graph.n, 400)
    (folder / "o.csv").write_text("vertex\n" + "".join(f"{v}\n" for v in vertices))
    return folder


@pytest.fixture
def often(monkeypatch):
    for name, value in OFTEN.items():
        monkeypatch.setattr(name, value)


def command_of(what, graph, inputs, out):
    if what == "hierarchy":
        return ["hierarchy", graph.path, str(out), "--device", "cpu"]
    if what == "apsp":
        return ["apsp", graph.path, str(out), "--method", "hierarchy", "--device", "cpu"]
    return ["od", str(inputs / "h"), str(out), "--origins", str(inputs / "o.csv")]


def rows_done(out):
    """Blocks or rows that are recorded as done, 0 before anything is, None once all is."""
    journal, store = out.parent / f".{out.name}.pieces", out / "zarr.json"
    if journal.exists():
        return max(0, journal.read_text().count("\n") - 1)
    if out.is_file():
        return None
    try:
        attributes = json.loads(store.read_text())["attributes"]
    except (FileNotFoundError, ValueError):
        return 0
    return None if attributes.get("complete") else sum(stop - start for start, stop in attributes.get("done", []))


def kill(arguments, ready, **environment):
    """Run a command, and kill it once `ready`; returns whether it was killed before its end."""
    run = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout.readline() == b"begins\n"
    began = time.monotonic()
    while run.poll() is None and not ready(time.monotonic() - began):
        time.sleep(0.002)
    run.kill()
    run.communicate()
    return run.returncode == -9


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("what", ["od.parquet", pytest.param("od.zarr", marks=pytest.mark.slow)])
def test_a_killed_table_goes_on_to_the_same_bytes(graph, inputs, tmp_path, what):
    (tmp_path / "calm").mkdir()
    calm, out = tmp_path / "calm" / what, tmp_path / what
    run_command(*command_of(what, graph, inputs, calm))
    arguments = command_of(what, graph, inputs, out)
    assert kill(arguments, lambda _: (rows_done(out) or 0) > 0, SLOWLY="1"), "it was over before it was killed"
    done = rows_done(out)
    assert done is not None
    assert 0 < done < 400
    run_command(*arguments, "--resume")
    assert contents(out) == contents(calm)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("what", ["hierarchy", "od.parquet", "od.zarr", "od.csv", "od.npy", "apsp"])
def test_kills_at_random_moments(graph, inputs, tmp_path, what):
    rng = np.random.default_rng(7)
    (tmp_path / "calm").mkdir()
    calm = tmp_path / "calm" / what
    for _ in range(2):  # the first compiles
        began = time.monotonic()
        run_command(*command_of(what, graph, inputs, calm), "--overwrite")
        seconds = time.monotonic() - began
    for number in range(8):
        out = tmp_path / f"{number}-{what}"
        arguments, killed = command_of(what, graph, inputs, out), 0
        for _ in range(4):
            delay = rng.uniform(0, seconds)
            killed += kill([*arguments, "--resume"], lambda passed, delay=delay: passed > delay)
        run_command(*arguments, "--resume")
        assert contents(out) == contents(calm), f"run {number}, killed {killed} times"


@pytest.mark.usefixtures("answers_ctrl_c")
@pytest.mark.parametrize("processes", [[], pytest.param(["--workers", "1", "--processes"], marks=pytest.mark.slow)])
def test_ctrl_c_ends_metis(graph, tmp_path, processes):
    note = tmp_path / "pid"
    (tmp_path / "pymetis.py").write_text(SLOW_METIS.format(note=str(note)))
    words = ["hierarchy", graph.path, str(tmp_path / "h"), "--device", "cpu", *processes]
    run = subprocess.Popen(
        [sys.executable, "-c", IN_A_CHILD, *words],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: note.exists() and note.read_text(), run)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate()
    assert run.returncode == 130, said
    assert "Interrupted. Committed results are kept; resume with: tilepath hierarchy" in said
    with suppress(FileNotFoundError, ProcessLookupError):  # it is gone
        while Path(f"/proc/{note.read_text()}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
            time.sleep(0.05)
