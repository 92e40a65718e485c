"""`kill -9` of `tilepath partition`, `od` and `apsp --method boundary`, then --resume: the bytes of an undisturbed run.

One kill of each by default, where something is done and something is not; at random moments, and again and again, with
``pytest -m slow`` and this file.
"""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from pipelines import generate, synthetic_graph
from tilepath.cli import tilepath

OFTEN = {  # many small tasks and blocks, all recorded
    "pipelines.stores.boundary.CHUNK_BYTES": 1,
    "pipelines.boundary.stages.TASK_BYTES": 1,
    "pipelines.apsp.boundary.TASK_BYTES": 1,
    "pipelines.workers.row_chunks.RECORD_SECONDS": 0.0,
    "pipelines.answers.od_tables.BLOCK_BYTES": 8 * 400,
}
COMMAND = f"""
import importlib, sys
for name, value in {OFTEN}.items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, value)
from tilepath.cli import tilepath
print("begins", flush=True)
tilepath(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A graph, a boundary store of it, and a table of places."""
    folder = tmp_path_factory.mktemp("inputs")
    graph = generate(synthetic_graph("road", rows=40, columns=40, missing=0.9), folder / "g")
    invoke("partition", graph.path, str(folder / "b"), "--parts", "30", "--device", "cpu")
    vertices = np.random.default_rng(1).integers(0, graph.n, 400)
    (folder / "o.csv").write_text("vertex\n" + "".join(f"{v}\n" for v in vertices))
    return folder


def invoke(*arguments):
    said = CliRunner().invoke(tilepath, list(arguments))
    assert said.exit_code == 0, (said.output, said.exception)


def command_of(what, inputs, out):
    if what == "partition":
        return ["partition", str(inputs / "g"), str(out), "--parts", "60", "--device", "cpu"]
    if what == "apsp":
        return ["apsp", str(inputs / "g"), str(out), "--method", "boundary", "--device", "cpu"]
    return ["od", str(inputs / "b"), str(out), "--origins", str(inputs / "o.csv")]


def progress(out):
    """Parts or rows that are recorded as done, 0 before anything is, None once all is."""
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


def contents(path):
    """All bytes of a file, or of the arrays of a store."""
    if path.is_file():
        return path.read_bytes()
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file() and p.parent != path}


def kill(arguments, ready):
    """Run a command, and kill it once `ready`; returns whether it was killed before its end."""
    run = subprocess.Popen([sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout.readline() == b"begins\n"
    began = time.monotonic()
    while run.poll() is None and not ready(time.monotonic() - began):
        time.sleep(0.002)
    run.kill()
    run.communicate()
    return run.returncode == -9


@pytest.fixture
def often(monkeypatch):
    for name, value in OFTEN.items():
        monkeypatch.setattr(name, value)


CASES = ["partition", "od.parquet", pytest.param("od.zarr", marks=pytest.mark.slow)]


@pytest.mark.parametrize("what", CASES)
def test_a_killed_command_goes_on_to_the_same_bytes(inputs, tmp_path, often, what):
    (tmp_path / "calm").mkdir()
    calm, out = tmp_path / "calm" / what, tmp_path / what
    invoke(*command_of(what, inputs, calm))
    arguments = command_of(what, inputs, out)
    assert kill(arguments, lambda _: (progress(out) or 0) > 0), "it was over before it was killed"
    done = progress(out)
    assert done is not None
    assert 0 < done < (60 if what == "partition" else 400)
    invoke(*arguments, "--resume")
    assert contents(out) == contents(calm)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", ["partition", "od.parquet", "od.zarr", "od.csv", "od.npy", "apsp"])
def test_kills_at_random_moments(inputs, tmp_path, often, what):
    rng = np.random.default_rng(7)
    (tmp_path / "calm").mkdir()
    calm = tmp_path / "calm" / what
    for _ in range(2):  # the first compiles
        began = time.monotonic()
        invoke(*command_of(what, inputs, calm), "--overwrite")
        seconds = time.monotonic() - began
    for number in range(8):
        out = tmp_path / f"{number}-{what}"
        arguments, killed = command_of(what, inputs, out), 0
        for _ in range(4):
            delay = rng.uniform(0, seconds)
            killed += kill([*arguments, "--resume"], lambda passed, delay=delay: passed > delay)
        invoke(*arguments, "--resume")
        assert contents(out) == contents(calm), f"run {number}, killed {killed} times"
