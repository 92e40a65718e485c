"""`tilepath hierarchy` killed and resumed, and interrupted while METIS holds the interpreter's lock."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipelines import generate, synthetic_graph
from pipelines.hierarchy.ordering import AT_ONCE
from tilepath.cli import tilepath

SLOW_CLOSING = """
import sys, time
import pipelines.hierarchy.building
pipelines.hierarchy.building.close_hierarchy = lambda *_, **__: time.sleep(600)
from tilepath.cli import tilepath
tilepath(sys.argv[1:])
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


def contents(path):
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file() and p.parent != path}


def test_a_killed_command_goes_on_to_the_same_bytes(graph, tmp_path):
    out = tmp_path / "h"
    words = ["hierarchy", graph.path, str(out), "--device", "cpu"]
    run = subprocess.Popen([sys.executable, "-c", SLOW_CLOSING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: done(out) == 2, run)
    run.kill()
    run.communicate()
    for path, more in (out, ["--resume"]), (tmp_path / "calm", []):
        said = CliRunner().invoke(tilepath, ["hierarchy", graph.path, str(path), "--device", "cpu", *more])
        assert said.exit_code == 0, said.output
    assert contents(out) == contents(tmp_path / "calm")


@pytest.mark.parametrize("processes", [[], pytest.param(["--workers", "1", "--processes"], marks=pytest.mark.slow)])
def test_ctrl_c_ends_metis(tmp_path, processes):
    graph = generate(synthetic_graph("road", rows=600, columns=600, missing=0.95), tmp_path / "g")
    assert graph.n + graph.m > AT_ONCE
    note = tmp_path / "pid"
    (tmp_path / "pymetis.py").write_text(SLOW_METIS.format(note=str(note)))
    words = ["hierarchy", graph.path, str(tmp_path / "h"), "--device", "cpu", *processes]
    run = subprocess.Popen(
        [sys.executable, "-c", "from tilepath.cli import main; main()", *words],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: note.exists() and note.read_text(), run)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate()
    assert run.returncode == 130, said
    assert "Interrupted. Committed results are kept; resume with: tilepath hierarchy" in said
    child = Path(f"/proc/{note.read_text()}")
    while child.exists() and (child / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.05)
