"""Plans without runs: they are those that the runs state, and nothing is written."""

import errno
import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from commands import invoke
from oracles import random_arcs, store_arcs

from gpuops.memory import size
from pipelines import (
    DoesNotFitError,
    Plan,
    all_pairs_shortest_paths,
    build_hierarchy,
    euler_circuits,
    map_samples,
    planned,
    single_source_shortest_paths,
    train_som,
    write_samples,
)
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.errors import DiskFullError
from pipelines.stores.schema import store_bytes


@pytest.fixture
def graph(tmp_path):
    """A directed cycle with chords, which has an Euler circuit."""
    n = 60
    tails = np.concatenate([np.arange(n), np.arange(n)])
    heads = np.concatenate([np.roll(np.arange(n), -1), np.roll(np.arange(n), -7)])
    return store_arcs(tmp_path / "g", n, tails, heads, np.ones(2 * n), "float32")


def _map_of(client, folder):
    """The path of a map of the samples of a folder."""
    if not (folder / "map").exists():
        train_som(client, folder / "samples", folder / "map", 3, 4, epochs=1, progress=False)
    return folder / "map"


RUNS = {
    "floyd-warshall": lambda call, graph, client, out: call(
        all_pairs_shortest_paths, client, graph, out, method="floyd-warshall", progress=True
    ),
    "out-of-core": lambda call, graph, client, out: call(
        all_pairs_shortest_paths, client, graph, out, method="out-of-core", progress=True
    ),
    "hierarchy": lambda call, graph, client, out: call(
        all_pairs_shortest_paths, client, graph, out, method="hierarchy", progress=True
    ),
    "batched": lambda call, graph, client, out: call(
        all_pairs_shortest_paths, client, graph, out, method="batched", progress=True
    ),
    "tables": lambda call, graph, client, out: call(build_hierarchy, client, graph, out, progress=True),
    "by vertices": lambda call, graph, client, out: call(
        single_source_shortest_paths, client, graph, out, [0, 5], spread="vertices", progress=True
    ),
    "stages": lambda call, graph, client, out: call(euler_circuits, client, graph, out, progress=True),
    "chunks of samples": lambda call, graph, client, out: call(
        map_samples, client, _map_of(client, out.parent), out.parent / "samples", out, progress=True
    ),
    "batch": lambda call, graph, client, out: call(
        train_som, client, out.parent / "samples", out, 3, 4, epochs=2, progress=True
    ),
}


@pytest.mark.parametrize("method", RUNS)
def test_a_plan_is_that_of_the_run_and_writes_nothing(client, graph, tmp_path, capsys, method):
    write_samples(tmp_path / "samples", np.random.default_rng(0).normal(size=(50, 3)))
    _map_of(client, tmp_path)
    before, out = sorted(tmp_path.iterdir()), tmp_path / "out"
    plan = RUNS[method](planned, graph, client, out)
    assert isinstance(plan, Plan)
    assert str(plan) == repr(plan) == plan.text  # as the command line prints it
    assert plan.method == method
    assert plan.memory_bytes > 0
    assert plan.disk_bytes > 0
    assert sorted(tmp_path.iterdir()) == before
    capsys.readouterr()
    RUNS[method](lambda run, *arguments, **options: run(*arguments, **options), graph, client, out)
    said = capsys.readouterr().err
    assert plan.text.split(": memory")[0].split(" (")[0] in said


@pytest.mark.parametrize("short", ["memory", "disk"])
@pytest.mark.parametrize("method", RUNS)
def test_a_run_that_does_not_fit_is_refused_with_its_plan(client, graph, tmp_path, monkeypatch, method, short):
    write_samples(tmp_path / "samples", np.random.default_rng(0).normal(size=(50, 3)))
    fits = RUNS[method](planned, graph, client, tmp_path / "out")
    if short == "memory":
        monkeypatch.setattr("pipelines.workers.capacity.MEMORY_SHARE", 0.0)
        monkeypatch.setattr("pipelines.sssp.plan.MEMORY_SHARE", 0.0)
        monkeypatch.setattr("pipelines.hierarchy.solve.refuse_ordering", lambda *_: None)  # it comes before the plan
    else:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(DoesNotFitError) as refused:
        RUNS[method](planned, graph, client, tmp_path / "out")
    plan = refused.value.plan
    assert (plan.method, plan.refusal) == (method, str(refused.value))
    assert (plan.disk_bytes, plan.memory_bytes > 0, plan.text != "") == (fits.disk_bytes, True, True)
    assert not (tmp_path / "out").exists()


def test_no_plan_takes_over_a_store(client, graph, tmp_path):
    with pytest.raises(ValueError, match="leave out resume"):
        planned(all_pairs_shortest_paths, client, graph, tmp_path / "out", resume=True)


def test_what_states_no_plan_is_not_called():
    calls = []
    with pytest.raises(ValueError, match="append states no plan"):
        planned(calls.append, 1)
    assert calls == []


@pytest.mark.parametrize("method", ["out-of-core", "batch", "by vertices"])
def test_the_plan_names_the_disk_of_a_result_that_is_replaced(client, graph, tmp_path, method):
    write_samples(tmp_path / "samples", np.random.default_rng(0).normal(size=(50, 3)))
    out = tmp_path / "out"
    first = RUNS[method](planned, graph, client, out)
    RUNS[method](lambda run, *arguments, **options: run(*arguments, **options), graph, client, out)
    again = RUNS[method](partial(planned, overwrite=True), graph, client, out)
    kept = f"; {out} keeps its {size(store_bytes(out))} of disk until the new store replaces it"
    assert (kept in again.text, kept in first.text) == (True, False)


def test_checkpoints_take_the_disk_that_was_stated(client, tmp_path, monkeypatch):
    """Chunks of a checkpoint are whole squares: two chunks a side take almost twice the side of 1,100 vertices."""
    graph = store_arcs(tmp_path / "g", 1100, *random_arcs(1100, 4000), "float32")
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", np.inf)
    taken, commit = [], DistancesWriter.commit

    def measured(writer, stage):
        taken.append(sum(each.stat().st_blocks * 512 for each in (tmp_path / "d").rglob("c/**/*")))
        return commit(writer, stage)

    monkeypatch.setattr(DistancesWriter, "commit", measured)
    options = {"method": "floyd-warshall", "commit_seconds": 0.0}
    stated = planned(all_pairs_shortest_paths, client, graph, tmp_path / "d", **options).disk_bytes
    all_pairs_shortest_paths(client, graph, tmp_path / "d", **options)
    assert len(taken) > 2
    assert 0.9 * stated < max(taken) < 1.01 * stated


def test_a_run_after_a_plan_runs(client, graph, tmp_path):
    planned(single_source_shortest_paths, client, graph, tmp_path / "out", [0])
    assert single_source_shortest_paths(client, graph, tmp_path / "out", [0]).distances(0)[1] == 1


def test_the_commands_print_plans(tmp_path):
    store_arcs(tmp_path / "g", 30, *random_arcs(30, 90), "float32")

    def call(*options):
        return invoke("apsp", tmp_path / "g", tmp_path / "d", "--device", "cpu", *options)

    said = call("--dry-run", "--method", "floyd-warshall").output
    assert "Floyd-Warshall, as asked for: n = 30 float32" in said
    found = json.loads(call("--dry-run", "--json", "--method", "floyd-warshall").output)
    assert found["method"] == "floyd-warshall"
    assert found["disk_bytes"] == 30 * 30 * 4
    assert found["refusal"] is None
    refused = call("--dry-run", "--json", "--method", "out-of-core", "--host-memory", "10KB")
    found = json.loads(refused.stdout)
    assert found["method"] == "out-of-core"
    assert found["memory_bytes"] > 10_000
    assert found["refusal"] == str(refused.exception)
    assert "limit of host_memory (--host-memory) is 9.8 KiB" in found["refusal"]
    assert "give both" in call("--json").output
    assert "leave out" in str(call("--dry-run", "--resume").exception)
    assert not (tmp_path / "d").exists()


def test_a_full_disk_is_told_with_what_the_run_takes_and_what_is_free(client, graph, tmp_path, monkeypatch):
    out = tmp_path / "out"
    needed = planned(all_pairs_shortest_paths, client, graph, out, method="batched", progress=False).disk_bytes

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipelines.stores.whole_chunks.write_chunk", full)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=3 << 20))
    with pytest.raises(DiskFullError) as told:
        all_pairs_shortest_paths(client, graph, out, method="batched", progress=False)
    assert str(told.value).startswith(
        f"{out}: the disk is full (3.0 MiB free; the run takes up to {size(needed)} in all); free some space and run "
    )
