"""Blocked Floyd-Warshall on a played cluster: what histories keep, and that each invariant is found when broken."""

from types import SimpleNamespace

import numpy as np
import pytest
from simulation import (
    Broken,
    Cluster,
    PlayedAttempt,
    PlayedRing,
    assert_found,
    nothing,
    on_a_device_without_order,
    play_all,
    played,
    publishing_before_the_device_has_written,
    with_each,
    with_seeds,
    without_needs_of_reads,
    without_the_order_of_a_list,
)

from pipelines.apsp.in_memory import plan, resident_rows, stages
from pipelines.apsp.layout import Layout
from pipelines.apsp.methods import Job, Request
from pipelines.apsp.stage_graph import FINISH, INDEPENDENT, NEXT_PIVOTS, OTHER_ROWS, PUBLISH, SINGLY, FloydWarshall
from pipelines.workers import resident_state
from pipelines.workers.executors import ByScheduler, BySignals, WorkerList
from pipelines.workers.resident_state import clear_states, keep_state


class Writer:
    """A store that keeps the stage of each block."""

    def __init__(self, n, band, sources):
        self.n, self.dtype, self.chunk, self.options = n, np.dtype("float32"), band, {"block": 1}
        self.slot, self.stage, self.stages = None, 0, n + 1
        self.sources, self.saved, self.written, self.commits = sources, {}, {}, []

    def make_result(self):
        self.written = {}

    make_checkpoint = make_result

    def commit(self, stage):
        wrong = {block: now for block, now in self.written.items() if now != min(stage, len(self.written))}
        if wrong or len(self.written) != self.n:
            raise Broken(f"committed as stage {stage}: {self.written}")
        if self.commits and stage <= self.commits[-1]:
            raise Broken(f"committed {stage} after {self.commits}")
        self.commits.append(stage)
        self.stage, self.slot, self.saved = stage, "slot", dict(self.written)
        return self


class PlayedRows:
    """Rows of blocks of one vertex: of each the number of stages that it went through."""

    def __init__(self, attempt, writer, layout, worker, slots, ring):
        self.process = resident_state.get_worker()
        self.ring = PlayedRing(attempt, self.process, ring)
        self.tasks = WorkerList(self.ring)
        self.layout, self.worker, self.slots = layout, worker, slots
        self.blocks = {v: writer.saved.get(v, 0) for v in range(layout.n) if layout.owner(v) == worker}
        self.closed, self.mark = set(), None

    def perform(self, task, arrays):
        k, device = task.stage, self.process
        if task.kind == INDEPENDENT:
            device.give(lambda: self.close(k))
        elif task.kind == SINGLY:
            self.ring.open(self.slots[k])
            self.mark = device.give(lambda: self.multiply(k))
        elif task.kind == PUBLISH:
            self.ring.publish(self.slots[k], k, self.mark)
        elif task.kind == FINISH:
            self.finish()
        else:
            (panel,) = arrays
            device.give(lambda: self.relax(k, task.rows, panel()))

    def finish(self):
        self.process.synchronize()

    def close(self, k):
        if k in self.closed or self.blocks[k] != k:
            raise Broken(f"block {k} is closed after {self.blocks[k]} stages; before: {self.closed}")
        self.closed.add(k)

    def multiply(self, k):
        if k not in self.closed:
            raise Broken(f"panel {k} is made of a block that is not closed")
        self.ring.write(self.slots[k], k)
        self.blocks[k] = k + 1

    def relax(self, k, rows, panel):
        if panel != k:
            raise Broken(f"stage {k} reads the panel of stage {panel}")
        for block in self.blocks:
            ahead = block == k + 1 and rows in (NEXT_PIVOTS, OTHER_ROWS)
            if block != k and ahead == (rows == NEXT_PIVOTS):
                if self.blocks[block] != k:
                    raise Broken(f"stage {k} updates block {block}, which went through {self.blocks[block]} stages")
                self.blocks[block] = k + 1


def load(attempt, writer, job, layout, slots, worker, ring):
    clear_states()
    state = PlayedRows(attempt, writer, layout, worker, slots, ring)
    keep_state(attempt, state)
    return state.ring.address, False


def save(attempt, writer, result):
    state = resident_state.get_worker().tilepath_state[attempt]
    writer.written |= state.blocks


def write(attempt, stage, sent, writer):
    state = resident_state.get_worker().tilepath_state[attempt]
    panel = state.ring.arrived(sent)
    resident_state.get_worker().give(lambda: state.relax(stage, "", panel()))
    resident_state.get_worker().synchronize()
    save(attempt, writer, True)


class PlayedStages(PlayedAttempt, stages.Stages):
    def due(self, soon=0.0):
        return self.cluster.random.random() < 0.15


@pytest.fixture
def play(monkeypatch):
    """Plays a run with a seed."""

    def run(seed):
        cluster = Cluster(seed, workers=1, kills=0)
        draw = cluster.random
        workers, n = draw.randrange(1, 5), draw.randrange(1, 14)
        cluster = Cluster(seed, workers, kills=draw.choice([0, 0, 1, 2]), mapped=draw.random() < 0.8)
        coordination = draw.choice(["scheduler", "signals"]) if cluster.mapped else "scheduler"
        writer = Writer(n, band=draw.randrange(1, 4), sources=None if draw.random() < 0.5 else (0,))
        job = Job(SimpleNamespace(n=n), writer.dtype, np.ones(n, bool), None, True)
        monkeypatch.setattr(stages, "SECONDS", draw.choice([0.0, 3.0, 100.0]))
        monkeypatch.setattr(plan, "REACH", draw.choice([2, 3, 5]))
        facts = [SimpleNamespace(rate=n**2 / workers)] * workers
        request = Request(job, None, None, 60.0, facts, None, coordination=coordination)
        played(cluster, monkeypatch, PlayedStages, writer, request)
        if writer.commits[-1] != n + 1:
            raise Broken(f"{writer.commits[-1]} of {n + 1} stages are committed")

    for name, function in {"load": load, "save": save, "write": write}.items():
        monkeypatch.setattr(resident_rows, name, function)
    monkeypatch.setattr(stages.Stages, "_write_sources", lambda self: self.on_all(save, self.committed, True))
    monkeypatch.setattr(stages, "make_layout", lambda n, workers, *_: Layout(n, 1, 1, workers))
    return run


@with_seeds(500)
def test_every_history_commits_a_matrix_of_one_stage_and_ends(play, seeds):
    play_all(play, seeds)


def _without_needs_of_slots(patch):
    close = FloydWarshall._close
    patch.setattr(FloydWarshall, "_close", lambda self, k: (self._read.clear(), close(self, k)))


def _with_look_ahead_before_a_commit(patch):
    stage = FloydWarshall.stage
    count = len

    def ahead(self, k, last, update=True):
        stage(self, k, last and k + 1 == count(self._owners), update)

    patch.setattr(FloydWarshall, "stage", ahead)


def _committing_before_the_device_has_ended(patch):
    patch.setattr(PlayedRows, "finish", nothing)


def _landing_nothing_before_a_commit(patch):
    for executor in ByScheduler, BySignals:
        patch.setattr(executor, "wait_all", nothing)
        patch.setattr(executor, "wait_oldest", nothing)


@with_each(
    _without_needs_of_slots,
    without_needs_of_reads,
    without_the_order_of_a_list,
    _with_look_ahead_before_a_commit,
    publishing_before_the_device_has_written,
    _committing_before_the_device_has_ended,
    on_a_device_without_order,
    _landing_nothing_before_a_commit,
)
def test_what_is_broken_is_found(play, monkeypatch, breaks):
    assert_found(play, monkeypatch, breaks)
