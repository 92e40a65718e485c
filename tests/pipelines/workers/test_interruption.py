"""Ctrl-C while the command `tilepath` works: what is committed, what is said, and that --resume gives the same bits."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from families import one_in

from pipelines.apsp.commits import COMMIT_SECONDS
from pipelines.stores.codebook import open_codebook
from pipelines.stores.distances import open_distances
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.mapping import open_mapping
from pipelines.stores.paths import open_paths
from pipelines.stores.samples import write_samples
from pipelines.workers.interruption import Interrupted, asked, boundaries, handling, stop_if_asked
from pipelines.workers.progress import Progress
from tilepath.cli import main, tilepath
from tilepath.cli.command import _command_to_go_on

ROOT = Path(__file__).parents[3]

# Small chunks make many boundaries, and what is shown tells how far the run is. COMMAND is a file: workers import it.
OFTEN = {
    "pipelines.workers.progress.LINE_SECONDS": 0.0,
    "pipelines.sssp.plan.CHUNK_BYTES": 1,
    "pipelines.sssp.plan.BATCH": 1,
    "pipelines.apsp.batched.EDGE": 32,
    "pipelines.apsp.in_memory.stages.SECONDS": 0.0,
    "pipelines.som.plan.MOST_TOGETHER": 1,
    "pipelines.som.training.SECONDS": 0.0,
    "pipelines.stores.mapping.LEAST_ROWS": 1,
}
COMMAND = f"""
import importlib, os, re, sys, time
for name, value in {OFTEN}.items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, value)
if "SLOW" in os.environ:
    import pipelines.apsp.in_memory.resident_rows
    pipelines.apsp.in_memory.resident_rows.ResidentRows._relax = lambda *_: time.sleep(100)
if "UNTIL" in os.environ:  # goes on from there when it is interrupted: a fast run would be over
    from pipelines.workers.interruption import asked
    from pipelines.workers.progress import Progress
    refresh = Progress._refresh
    def refreshed(shown):
        refresh(shown)
        while re.search(os.environ["UNTIL"], f"{{shown._stage}}: {{shown._facts()}}") and not asked():
            time.sleep(0.01)
    Progress._refresh = refreshed
from tilepath.cli import main
if __name__ == "__mp_main__" and "NEVER" in os.environ:
    time.sleep(600)  # a worker process that never starts
if __name__ == "__main__":
    if "SAY" in os.environ:
        print("begins", flush=True)
    main()
"""


class Command:
    """`tilepath` in a process group of its own, as in a terminal: a signal goes to its worker processes too."""

    def __init__(self, folder, *arguments, **environment):
        script = folder / "command.py"
        script.write_text(COMMAND)
        self.process = subprocess.Popen(
            [sys.executable, script, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # Tests that run in the background of a shell are to ignore Ctrl-C, and so would this command.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.said = []

    def read_until(self, pattern):
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if re.search(pattern, line):
                return
        raise AssertionError("\n".join(self.said))

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        """Seconds until it has ended, and what it said meanwhile."""
        began = time.monotonic()
        rest, _ = self.process.communicate(timeout=120)
        self.ended = time.monotonic()
        return self.ended - began, [line for line in rest.splitlines() if line]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(3)
    n, m = 1200, 6_000
    tails = np.sort(rng.integers(0, n, m))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    graph = write_graph(folder / "g.zarr", indptr, rng.integers(0, n, m), rng.random(m).astype("float32"))
    samples = write_samples(folder / "s.zarr", rng.normal(size=(20_000, 8)))
    return graph.path, samples.path


CASES = {  # what to do, when to interrupt, an array of the result
    "stages": (
        "apsp {graph} {out} --method floyd-warshall --block 16 --commit-seconds 1000",
        "stage 9 of",
        lambda out: open_distances(out)[:],
    ),
    "batched rows": ("apsp {graph} {out} --method batched", "^searching: [1-9]", lambda out: open_distances(out)[:]),
    "by sources": (
        "sssp {graph} {out} " + " ".join(f"--source {v}" for v in range(120)),
        "^searching: [1-9]",
        lambda out: open_paths(out).distances(),
    ),
    "by vertices": (
        "sssp {graph} {out} --spread vertices " + " ".join(f"--source {v}" for v in range(12)),
        "^row [3-9] of",
        lambda out: open_paths(out).distances(),
    ),
    "epochs": (
        "som train {samples} {out} --rows 12 --columns 12 --epochs 40",
        "^training: [1-9]",
        lambda out: open_codebook(out).units(),
    ),
    "map rows": (
        "som map {map} {samples} {out}",
        "^searching: [1-9]",
        lambda out: open_mapping(out).units(),
    ),
}


COMMITTED = {"stages": "committed", "epochs": "committed"}  # attributes that say how much is; "done" of rows


@pytest.fixture(scope="module")
def codebook(inputs, tmp_path_factory):
    out = tmp_path_factory.mktemp("map") / "m.zarr"
    tilepath(["som", "train", inputs[1], str(out), *"--rows 40 --columns 40 --epochs 1".split()], standalone_mode=False)
    return out


PROCESSES = "--workers 2 --processes"


def words_of(command, inputs, codebook, out, workers=""):
    """The words of a command of CASES."""
    filled = command.format(graph=inputs[0], samples=inputs[1], map=codebook, out=out)
    return f"{filled} --device cpu {workers}".split()


@pytest.mark.parametrize(
    ("pipeline", "workers"),
    [
        *(pytest.param(name, "", marks=pytest.mark.slow) for name in CASES),
        ("stages", PROCESSES),
        pytest.param("by sources", PROCESSES, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_commits_at_the_next_boundary_and_names_the_command_to_go_on_with(
    inputs, codebook, tmp_path, pipeline, workers
):
    command, moment, result = CASES[pipeline]

    def words(out, workers=""):
        return words_of(command, inputs, codebook, tmp_path / out, workers)

    run = Command(tmp_path, *words("interrupted", workers), "--overwrite", UNTIL=moment)
    run.read_until(moment)
    run.interrupt()
    seconds, said = run.end()
    assert run.process.returncode == 130, said
    assert seconds < 60  # the rest of what was in hand, and the end of the workers
    unit = {"stages": "stage", "by vertices": "row|loading", "epochs": "training"}.get(pipeline, "searching")
    *before, last = said
    assert all(re.match(unit, line) for line in before), said
    assert last.startswith("Interrupted. Committed results are kept; resume with: tilepath "), said
    go_on = shlex.split(last.split("resume with: tilepath ")[1])
    assert go_on == [*words("interrupted", workers), "--resume"]

    facts = json.loads((tmp_path / "interrupted" / "zarr.json").read_text())["attributes"]
    assert facts[COMMITTED.get(pipeline, "done")]  # more than nothing,
    assert not facts.get("complete")  # and less than all
    tilepath([*words("interrupted"), "--resume"], standalone_mode=False)  # by however many workers
    tilepath(words("calm"), standalone_mode=False)
    np.testing.assert_array_equal(result(tmp_path / "interrupted"), result(tmp_path / "calm"))


@pytest.mark.usefixtures("answers_ctrl_c")
@pytest.mark.parametrize("pipeline", one_in(2, ["by sources", "epochs"]))
def test_ctrl_c_in_a_process_with_its_workers_commits_at_the_next_boundary(
    inputs, codebook, tmp_path, monkeypatch, capsys, pipeline
):
    command, _, result = CASES[pipeline]
    interrupted, calm = (words_of(command, inputs, codebook, tmp_path / out) for out in ("interrupted", "calm"))
    advance, moments = Progress.advance, iter([signal.SIGINT])

    def interrupt(shown, units):
        advance(shown, units)
        for number in moments:  # once: a second time would end the run at once
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        for name, value in OFTEN.items():
            patch.setattr(name, value)
        patch.setattr(Progress, "advance", interrupt)
        patch.setattr("tilepath.cli.command._end_quietly", lambda: None)  # this process goes on
        patch.setattr(sys, "argv", ["tilepath", *interrupted])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 130
    assert capsys.readouterr().err.rstrip().endswith(f"resume with: tilepath {shlex.join(interrupted)} --resume")
    facts = json.loads((tmp_path / "interrupted" / "zarr.json").read_text())["attributes"]
    assert facts[COMMITTED.get(pipeline, "done")]
    assert not facts.get("complete")
    tilepath([*interrupted, "--resume"], standalone_mode=False)
    tilepath(calm, standalone_mode=False)
    np.testing.assert_array_equal(result(tmp_path / "interrupted"), result(tmp_path / "calm"))


@pytest.mark.parametrize("workers", ["", pytest.param(PROCESSES, marks=pytest.mark.slow)])
def test_a_second_ctrl_c_stops_at_once(inputs, tmp_path, workers):
    command = f"apsp {inputs[0]} {tmp_path / 'd'} --method floyd-warshall --device cpu {workers}"
    run = Command(tmp_path, *command.split(), SLOW="1")
    run.read_until("^stage 1 of")
    run.interrupt()
    time.sleep(0.5)
    assert run.process.poll() is None  # the boundary is far away
    run.interrupt()
    seconds, said = run.end()
    assert run.process.returncode == 130
    assert seconds < 60  # a stage takes more
    assert said == [f"Interrupted. Committed results are kept; resume with: tilepath {command.strip()} --resume"]


def test_ctrl_c_while_workers_start_is_one_line(inputs, tmp_path):
    run = Command(tmp_path, "sssp", inputs[0], tmp_path / "d", "--source", "1", *PROCESSES.split(), NEVER="1")
    deadline = time.monotonic() + 60
    while len(_children(run.process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    run.interrupt()
    _, said = run.end()
    assert said == ["Interrupted."], "\n".join(said)
    assert not (tmp_path / "d").exists()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_interruptions_end_in_seconds_and_leave_no_process(inputs, tmp_path):
    """At any moment of a run, its start and its end included; half of them twice."""
    rng, out = np.random.default_rng(200), tmp_path / "d"
    words = f"apsp {inputs[0]} {out} --method floyd-warshall --block 16 --device cpu".split()
    tilepath([*words, "--overwrite"], standalone_mode=False)
    calm = open_distances(out)[:]
    began = time.monotonic()
    Command(tmp_path, *words, "--overwrite", *PROCESSES.split()).end()
    length = time.monotonic() - began
    for number in range(200):
        shutil.rmtree(out)
        run = Command(tmp_path, *words, *PROCESSES.split(), SAY="1")
        run.read_until("^begins")
        for delay in rng.uniform(0, length), *([rng.uniform(0, 1)] * (number % 2)):
            time.sleep(delay)
            with suppress(ProcessLookupError):
                run.interrupt()
        seconds, said = run.end()
        assert seconds < 10, (number, said)
        assert run.process.returncode in (0, 130, -signal.SIGINT), (number, said)
        assert not any("Traceback" in line for line in said), "\n".join(said)
        while _in_group(run.process.pid):
            assert time.monotonic() < run.ended + 10, number
            time.sleep(0.05)
        tilepath([*words, "--resume"], standalone_mode=False)
        np.testing.assert_array_equal(open_distances(out)[:], calm)


def _in_group(group):
    """Processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _parent, its_group = stat.read_text().rsplit(")", 1)[1].split()[:3]
            found += [stat.parent.name] * (int(its_group) == group and state != "Z")
    return found


def _children(pid):
    return [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


@pytest.mark.usefixtures("answers_ctrl_c")
def test_only_a_run_puts_ctrl_c_off():
    with handling():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with boundaries():
            stop_if_asked()
            signal.raise_signal(signal.SIGINT)
            assert asked()
            with pytest.raises(Interrupted):
                stop_if_asked()
            with pytest.raises(Interrupted):
                signal.raise_signal(signal.SIGINT)
        assert not asked()
    with boundaries(), pytest.raises(KeyboardInterrupt):  # as from Python
        signal.raise_signal(signal.SIGINT)


def test_a_command_without_resume_does_not_speak_of_it(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "g.csv").write_text("0,1,5\n")
    monkeypatch.setattr("pipelines.formats.graphs.import_graph", interrupted)
    monkeypatch.setattr("tilepath.cli.command._end_quietly", lambda: None)  # this process goes on
    monkeypatch.setattr(sys, "argv", ["tilepath", "import", str(tmp_path / "g.csv"), str(tmp_path / "g.zarr")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert capsys.readouterr().err.split() == ["Interrupted."]


def test_the_command_to_go_on_with():
    assert _command_to_go_on(["sssp", "g", "a b", "--overwrite"]) == "tilepath sssp g 'a b' --resume"
    assert _command_to_go_on(["som", "map", "--resume", "--", "-m", "-s"]) == "tilepath som map --resume -- -m -s"


def test_commit_seconds_of_the_command_line_are_those_of_the_call():
    (option,) = (option for option in tilepath.commands["apsp"].params if option.name == "commit_seconds")
    assert option.default == COMMIT_SECONDS
