"""Stretches of stages, which workers go through by signals of each other."""

import time
from collections import Counter
from itertools import cycle

import numpy as np
import pytest
from oracles import random_arcs, store_arcs

from pipelines import all_pairs_shortest_paths
from pipelines.apsp import stretches
from pipelines.apsp.layout import Layout
from pipelines.apsp.methods import Job
from pipelines.apsp.resident_rows import Slab, _rehearse
from pipelines.apsp.schedule import Staged
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Attempt
from pipelines.workers.mapped_memory import CannotMap
from pipelines.workers.panels import OPENED, Panels, SlotReused, Token
from pipelines.workers.signals import Signals

N, STAGES = 400, 25


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    tails, heads, weights = random_arcs(N, 2000)
    return store_arcs(tmp_path_factory.mktemp("g") / "g", N, tails, heads, weights / 7, "float32")


@pytest.fixture(scope="module")
def calm(client, graph, tmp_path_factory):
    return solved(client, graph, tmp_path_factory.mktemp("calm") / "d")


def solved(client, graph, out, **options):
    return all_pairs_shortest_paths(client, graph, out, method="floyd-warshall", block=N // STAGES, **options)[:]


def test_a_stage_is_no_task(three, graph, calm, tmp_path, monkeypatch):
    """The scheduler has as many tasks as workers and stretches, however many stages there are."""
    tasks, submit = Counter(), Attempt.submit

    def counted(self, task, *args, **options):
        tasks[task.__name__] += 1
        return submit(self, task, *args, **options)

    monkeypatch.setattr(Attempt, "submit", counted)
    monkeypatch.setattr("pipelines.apsp.stages.SECONDS", 1000.0)
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d"), calm)
    assert sum(count for name, count in tasks.items() if "relax" in name or "pivot" in name) == 3


def test_workers_that_wait_too_long_go_on_later(three, graph, calm, tmp_path, monkeypatch):
    """Waits without patience: nearly all tasks end early. Every tenth stage is committed."""
    monkeypatch.setattr("pipelines.workers.signals.PATIENCE", 0.0)
    monkeypatch.setattr("pipelines.workers.signals.LATE", 0.0)
    monkeypatch.setattr("pipelines.apsp.stages.SECONDS", 0.0)
    due, commit, committed = cycle([False] * 9 + [True]), DistancesWriter.commit, []
    monkeypatch.setattr(Staged, "due", lambda _: next(due))
    monkeypatch.setattr(DistancesWriter, "commit", lambda *args: committed.append(args[1]) or commit(*args))
    found, relax_stage, close_pivots = [], stretches._relax_stage, stretches.close_pivots

    def noted(*args):
        done = relax_stage(*args)
        found.append(done)
        return done

    def slowly(*args):
        time.sleep(0.02)
        close_pivots(*args)

    monkeypatch.setattr(stretches, "_relax_stage", noted)
    monkeypatch.setattr(stretches, "close_pivots", slowly)
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d"), calm)
    assert committed == [10, 20, STAGES + 1]
    assert False in found


@pytest.mark.parametrize("waits", [True, False])
def test_no_slot_is_written_while_a_slow_worker_needs_it(three, graph, calm, tmp_path, monkeypatch, waits):
    """Without the wait for it (broken on purpose) the slow worker finds out."""
    monkeypatch.setattr("pipelines.apsp.stages.REACH", 2)
    relax, wait = stretches.relax_others, stretches._wait

    def slow(slab, *args):
        if slab.worker == 2:
            time.sleep(0.02)
        relax(slab, *args)

    def broken(slab, worker, counter, *args):
        return counter == stretches.DONE or wait(slab, worker, counter, *args)

    monkeypatch.setattr(stretches, "relax_others", slow)
    if waits:
        np.testing.assert_array_equal(solved(three, graph, tmp_path / "d"), calm)
        return
    monkeypatch.setattr(stretches, "_wait", broken)
    with pytest.raises(SlotReused, match="written again too early"):
        solved(three, graph, tmp_path / "d")


def test_without_counters_stages_are_scheduled_one_by_one(three, graph, calm, tmp_path, monkeypatch, capsys):
    def refuse(_count):
        raise CannotMap("for a test")

    monkeypatch.setattr("pipelines.workers.signals.HostMemory", refuse)
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d", progress=True), calm)
    assert "stages are scheduled one by one (for a test)" in capsys.readouterr().err


@pytest.mark.parametrize(("n", "block"), [(100, 16), (10, 64)])
def test_a_rehearsal_changes_nothing(n, block):
    layout, job = Layout(n, block, block, 2), Job(None, np.dtype("float32"), np.ones(n, bool), None, True)
    matrix = np.random.default_rng(0).random((layout.rows(0), n), dtype="float32")
    before, panels = matrix.copy(), Panels("a", np, 1, 4 * block * n)
    slots = [0] * len(layout.blocks())
    slab = Slab(job, layout, 0, slots, panels, Signals([0]), [panels.card], matrix, False, 0, 0, 0)
    _rehearse(slab)
    np.testing.assert_array_equal(slab.matrix, before)
    opened = Token(panels.card, OPENED, 0, (), "uint8").header()
    assert panels._bytes[: len(opened)].tobytes() == opened  # as others expect it when they map the ring
