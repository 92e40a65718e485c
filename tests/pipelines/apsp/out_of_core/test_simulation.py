"""Super-stages on a played cluster: what histories keep, and that each invariant is found when broken."""

import math
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
    play_all,
    played,
    with_each,
    with_seeds,
    without_the_order_of_a_list,
)

from pipelines.apsp import stage_graph
from pipelines.apsp.layout import Windows
from pipelines.apsp.methods import Job, Request
from pipelines.apsp.out_of_core import passing_rows, super_stages
from pipelines.apsp.stage_graph import PUBLISH, SLAB, STORE_SLAB
from pipelines.workers.executors import ByScheduler, WorkerList
from pipelines.workers.resident_state import clear_states, get_worker, keep_state, state_of
from pipelines.workers.stage_graph import Placed

STAGES = [(v, v + 1) for v in range(14)]


class Rows:
    """Rows of a matrix: the number of stages that each part of the columns of each row went through."""

    def __init__(self, parts=1):
        self.parts, self.cells = parts, {}

    def read(self, row, stage):
        found = [self.cells.get((row, part)) for part in range(self.parts)]
        if found != [stage] * self.parts:
            raise Broken(f"row {row} went through {found} stages where {stage} are expected")

    def write(self, row, stage, parts=None):
        self.cells |= {(row, part): stage for part in (range(self.parts) if parts is None else parts)}


class Weights(Rows):
    def read(self, row, stage):
        if stage != 0:
            raise Broken(f"row {row} is read from the weights in stage {stage}")


class Writer:
    """A store at a commit; `slots`, and the result, are shared by all of its writers, also of earlier commits."""

    def __init__(self, n, sources, slots, commits, stage=0, slot=None):
        self.n, self.dtype, self.stages = n, np.dtype("float32"), n + 1
        self.sources, self.slots, self.commits, self.stage, self.slot = sources, slots, commits, stage, slot
        self.other_slot = "b" if slot == "a" else "a"

    def make_result(self):
        self.slots["result"] = Rows()
        self.slots.pop(self.other_slot, None)  # to free its disk space

    def make_row_checkpoint(self):
        self.slots.setdefault(self.other_slot, Rows())

    def row_files(self, slot):
        return self.slots[slot]

    def commit(self, stage):
        rows = range(self.n) if stage < self.stages or self.sources is None else range(len(self.sources))
        slot = "result" if stage == self.stages else self.other_slot
        for row in rows:
            self.slots[slot].read(row, min(stage, self.n))
        if self.commits and stage <= self.commits[-1]:
            raise Broken(f"committed {stage} after {self.commits}")
        self.commits.append(stage)
        return Writer(self.n, self.sources, self.slots, self.commits, stage, slot)


class PlayedPassingRows:
    """A worker whose chunks and pivot blocks have one row each."""

    def __init__(self, attempt, writer, windows, worker, workers, matrix):
        self.process, self.writer, self.windows, self.matrix = get_worker(), writer, windows, matrix
        self.ring = PlayedRing(attempt, self.process, windows.width)
        self.tasks = WorkerList(self.ring)
        self.worker, self.workers, self.newest = worker, workers, None
        self.shares = windows.sharers > 1

    @property
    def source(self):
        return self.newest or (self.writer.slots[self.writer.slot] if self.writer.slot else Weights())

    def own(self, total):
        return range(self.worker, total, self.workers)

    def perform(self, task, arrays):
        first = task.stage
        _, stop = self.windows.super_stages(STAGES[: self.windows.n], first)[0]
        window = range(*self.windows.window(first))
        if task.kind == SLAB:
            self.pass_slab(first, stop, window)
        elif task.kind == PUBLISH:
            for stage in range(first, stop):
                self.ring.publish(stage - first, stage)
        elif task.kind == STORE_SLAB:
            self.store_slab(window, stop)
        else:
            others = [w % self.workers for w in range(self.worker + 1, self.worker + self.workers)]
            expected = [(stage, owner) for owner in others for stage in range(first, stop)] if self.shares else []
            if (found := [array() for array in arrays]) != expected:
                raise Broken(f"the parts of panels are {found}, not {expected}")
            self.pass_bands(first, stop, window)

    def pass_slab(self, first, stop, window):
        self.process.synchronize()  # until the last band is stored
        for row in window:
            self.source.read(row, first)
        for stage in range(first, stop):
            self.ring.open(stage - first)
            self.ring.write(stage - first, (stage, self.worker))

    def store_slab(self, window, stop):
        for row in window:
            self.matrix.write(row, stop, [self.worker])

    def pass_bands(self, first, stop, window):
        n = self.windows.n
        source, end = self.source, stop == n
        if end:
            kept = range(n) if self.writer.sources is None else self.writer.sources
            for place in self.own(len(kept)):
                row = kept[place]
                if self.shares or row not in window:
                    source.read(row, stop if row in window else first)
                self.writer.slots["result"].write(place, stop)
            return
        self.newest = self.matrix or self.writer.slots[self.writer.other_slot]
        if self.shares:
            self.store_slab(window, stop)
        following = range(*self.windows.window(stop))
        rows = [row for row in self.own(n) if not (self.shares and row in window)]
        last = self.last_band([row for row in rows if row not in window and row not in following])
        for row in rows:
            if row not in window:
                source.read(row, first)
            if row == last:
                self.process.give(lambda row=row, newest=self.newest: newest.write(row, stop))
            else:
                self.newest.write(row, stop)

    def last_band(self, plain):
        """The row that may be stored while the next super-stage begins."""
        return plain[-1] if plain and self.matrix and (self.shares or self.workers == 1) else None


def begin(attempt, writer, job, windows, worker, workers, shared):
    clear_states()
    matrix = None
    if windows.resident:
        matrix = Rows(windows.sharers) if worker == 0 else shared
    state = PlayedPassingRows(attempt, writer, windows, worker, workers, matrix)
    keep_state(attempt, state)
    return matrix, state.ring.address


def fill(attempt):
    state = state_of(attempt)
    for row in state.own(state.windows.n):
        state.source.read(row, state.writer.stage)
        state.matrix.write(row, state.writer.stage)
    state.newest = state.matrix


def save(attempt):
    state = state_of(attempt)
    state.process.synchronize()
    for row in state.own(state.windows.n):
        (stage,) = {state.matrix.cells[row, part] for part in range(state.matrix.parts)}
        state.writer.slots[state.writer.other_slot].write(row, stage)


class PlayedSuperStages(PlayedAttempt, super_stages.SuperStages):
    def due(self, soon=0.0):
        return self.cluster.random.random() < 0.3


@pytest.fixture
def play(monkeypatch):
    """Plays a run with a seed."""

    def run(seed):
        draw = Cluster(seed, workers=1).random
        workers, n = draw.randrange(1, 5), draw.randrange(1, 14)
        cluster = Cluster(seed, workers, kills=draw.choice([0, 0, 1, 2]), mapped=draw.random() < 0.8)
        resident = draw.random() < 0.6
        sharers = workers if resident and draw.random() < 0.7 else 1
        windows = Windows(n, 1, 1, draw.randrange(1, n + 1), resident, sharers=sharers)
        sources = None if draw.random() < 0.5 else tuple(sorted(draw.sample(range(n), draw.randrange(1, n + 1))))
        writer = Writer(n, sources, {}, [])
        job = Job(SimpleNamespace(n=n), writer.dtype, np.ones(n, bool), None, True)
        request = Request(job, sources, None, draw.choice([60.0, math.inf]), [], None)
        played(cluster, monkeypatch, PlayedSuperStages, writer, request, windows)
        if writer.commits[-1] != n + 1:
            raise Broken(f"{writer.commits[-1]} of {n + 1} stages are committed")

    for name, function in {"begin": begin, "fill": fill, "save": save}.items():
        monkeypatch.setattr(passing_rows, name, function)
    monkeypatch.setitem(globals(), "get_worker", lambda: PlayedSuperStages.cluster.now)
    return run


@with_seeds(500)
def test_every_history_commits_a_matrix_of_one_stage_and_ends(play, seeds):
    play_all(play, seeds)


def _without_needs_of(kind):
    def breaks(patch):
        segment = stage_graph.SuperStages.segment

        def without(self):
            return [
                Placed(worker, done, task._replace(needs=()) if task.kind == kind else task)
                for worker, done, task in segment(self)
            ]

        patch.setattr(stage_graph.SuperStages, "segment", without)

    breaks.__name__ = f"without_needs_of_{kind}"
    return breaks


def _with_the_last_band_in_the_next_window(patch):
    patch.setattr(PlayedPassingRows, "last_band", lambda self, plain: self.worker if self.matrix else None)


def _storing_the_last_band_though_others_read_it(patch):
    patch.setattr(PlayedPassingRows, "last_band", lambda self, plain: plain[-1] if plain else None)


def _going_on_with_the_writer_of_an_earlier_commit(patch):
    patch.setattr(passing_rows, "go_on_from", nothing)


def _landing_nothing_before_a_commit(patch):
    patch.setattr(ByScheduler, "wait_all", nothing)


@with_each(  # not the needs of a slab, as the driver waits for the super-stage before
    _without_needs_of(STORE_SLAB),
    _without_needs_of(stage_graph.DOUBLY),
    _with_the_last_band_in_the_next_window,
    _storing_the_last_band_though_others_read_it,
    _going_on_with_the_writer_of_an_earlier_commit,
    _landing_nothing_before_a_commit,
    without_the_order_of_a_list,
)
def test_what_is_broken_is_found(play, monkeypatch, breaks):
    assert_found(play, monkeypatch, breaks)
