"""Stretches of stages, which workers go through by signals of each other."""

import time
from collections import Counter
from itertools import cycle

import numpy as np
import pytest
from oracles import random_arcs, store_arcs

from pipelines import all_pairs_shortest_paths
from pipelines.apsp import stretches
from pipelines.apsp.schedule import Staged
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Attempt
from pipelines.workers.panels import SlotReused

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
    monkeypatch.setattr("pipelines.apsp.stages.PATIENCE", 0.0)
    monkeypatch.setattr("pipelines.apsp.stages.LATE", 0.0)
    monkeypatch.setattr("pipelines.apsp.stages.SECONDS", 0.0)
    due, commit, committed = cycle([False] * 9 + [True]), DistancesWriter.commit, []
    monkeypatch.setattr(Staged, "due", lambda _: next(due))
    monkeypatch.setattr(DistancesWriter, "commit", lambda *args: committed.append(args[1]) or commit(*args))
    found, relax_stage = [], stretches._relax_stage

    def noted(*args):
        done = relax_stage(*args)
        found.append(done)
        return done

    monkeypatch.setattr(stretches, "_relax_stage", noted)
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
