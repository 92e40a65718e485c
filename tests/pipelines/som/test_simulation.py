"""Batch training on a played cluster: what histories keep, and that each invariant is found when broken."""

from types import SimpleNamespace

import numpy as np
import pytest
from simulation import (
    Broken,
    Cluster,
    PlayedAttempt,
    PlayedRing,
    assert_found,
    on_a_device_without_order,
    play_all,
    played,
    publishing_before_the_device_has_written,
    with_each,
    with_seeds,
    without_needs_of_reads,
    without_the_order_of_a_list,
)

from pipelines.som import learner, stage_graph, training
from pipelines.som.learner import Learner
from pipelines.som.schedule import Recipe, sigma_schedule
from pipelines.som.stage_graph import Epochs
from pipelines.workers import resident_state
from pipelines.workers.executors import BySignals
from pipelines.workers.resident_state import clear_states, keep_state, state_of


class Writer:
    """A store of codebooks in chunks. A task that writes a part of a chunk reads it before and stores it later."""

    def __init__(self, together, keep):
        self.together, self.keep = together, keep
        self.chunks, self.commits, self.recorded = {}, [], []

    def committed(self):
        return self.commits[-1] if self.commits else -1

    def errors(self):
        return self.recorded

    def read(self, number):
        return self.chunks[number // self.together][number]

    def write(self, first, codebooks):
        changed = {}
        for number, codebook in enumerate(codebooks, start=first):
            if codebook != number:
                raise Broken(f"what is written as codebook {number} has learnt from {codebook} epochs")
            chunk = number // self.together
            changed.setdefault(chunk, dict(self.chunks.get(chunk, {})))[number] = codebook
        process = resident_state.get_worker()
        if process is None:
            self.chunks |= changed
        else:
            process.ending.append(lambda: self.chunks.update(changed))

    def commit(self, number, errors):
        if number <= self.committed() or len(errors) != number:
            raise Broken(f"committed {number} with {len(errors)} errors after {self.commits}")
        first = 0 if self.keep is None else max(0, number + 1 - self.keep) // self.together * self.together
        for each in range(first, number + 1):
            if each not in self.chunks.get(each // self.together, {}):
                raise Broken(f"committed {number} without codebook {each}: {self.chunks}")
        self.commits.append(number)
        self.recorded = errors


class PlayedSums:
    """The sums of this worker in its slot, and the arrays that were added."""

    def __init__(self, ring, slot, added=()):
        self.ring, self.slot, self.added = ring, slot, added

    def __add__(self, array):
        return PlayedSums(self.ring, self.slot, (*self.added, array))

    def write(self, value):
        self.ring.write(self.slot, value)

    def read(self):
        return [self.ring.holds[self.slot], *(array() for array in self.added)]


class SumsRing(PlayedRing):
    def open(self, slot, *_):
        super().open(slot)
        return PlayedSums(self, slot)


class PlayedLearner(Learner):
    """A codebook is the number of epochs that it has learnt from; of sums it is known whose and of which they are."""

    def _batch(self, total):
        number, device, codebook = self.number, resident_state.get_worker(), np.full(1, -1)

        def judge():
            if sorted(total.read(), key=str) != [(worker, number) for worker in range(self.job.workers)]:
                raise Broken(f"epoch {number} learns from {total.read()}")

        judged = device.give(judge)
        device.give(lambda: codebook.put(0, number + 1))
        device.synchronize(judged)
        return codebook, self.job.errors[number]


class PlayedSamples:
    """In place of `accumulate`, of the samples of a worker."""

    def __init__(self, worker, codebook, _job):
        self.worker, self.codebook = worker, codebook

    def flatten(self, sums):
        resident_state.get_worker().give(lambda: sums.write((self.worker, int(self.codebook[0]))))


def load(attempt, _samples, plan, worker, job, recipe):
    process = resident_state.get_worker()
    process.wait_for_seceded()
    clear_states()
    ring = SumsRing(attempt, process, 1 if plan.alone else training.SLOTS)
    state = PlayedLearner(worker, job, recipe, SimpleNamespace(pieces=lambda: worker), np, ring)
    keep_state(attempt, state)
    return ring.address


def later(codebook):
    process, copy = resident_state.get_worker(), np.empty(1, int)
    copied = process.give(lambda: copy.put(0, codebook))
    return lambda: process.synchronize(copied) or copy


def last(attempt):
    return state_of(attempt).number


class PlayedTraining(PlayedAttempt, training.Training):
    def _at_once(self, number, _seconds, epochs):
        return super()._at_once(number, self.cluster.random.choice([0.0, 1.0, 2.0]), epochs)

    def _judge(self):
        if self.results([self.submit(last, worker) for worker in self.workers]) != [self.committed] * len(self.workers):
            raise Broken(f"{self.committed} is committed as the last")


@pytest.fixture
def play(monkeypatch):
    """Plays a run with a seed."""

    def run(seed):
        draw = Cluster(seed, 1).random
        cluster = Cluster(seed, draw.randrange(1, 5), kills=draw.choice([0, 0, 1, 2]), mapped=draw.random() < 0.8)
        coordination = draw.choice(["scheduler", "signals"]) if cluster.mapped else "scheduler"
        tolerance, alone = draw.choice([None, 1e-3]), draw.random() < 0.1
        sigmas = sigma_schedule(draw.randrange(1, 9), draw.choice([1.0, 2.0]), 1.0, tolerance=tolerance)
        settled = draw.randrange(len(sigmas))
        errors = [2.0 ** -min(number, settled) for number in range(len(sigmas))]
        recipe = Recipe(sigmas, {}, np.zeros(1, int), tolerance, None)
        writer = Writer(together=draw.randrange(1, 5), keep=draw.choice([None, 1, 3]))
        samples = SimpleNamespace(n=1, d=1, dtype=np.dtype("float64"))
        monkeypatch.setattr(training, "CHAINED", draw.choice([2, 5, 256]))
        slots = draw.choice([2, 3]) if stage_graph.SLOTS > 1 else 1
        for module in training, stage_graph:
            monkeypatch.setattr(module, "SLOTS", slots)

        def make(run, members, before):
            workers = 1 if alone else len(members)
            job = SimpleNamespace(length=1, workers=workers, errors=errors, grid=SimpleNamespace(units=1))
            plan = SimpleNamespace(alone=workers == 1)
            return PlayedTraining(run, members, before, samples, plan, job, recipe, coordination)

        played(cluster, monkeypatch, make, writer)
        end = next(number for number in range(1, len(sigmas) + 1) if recipe.is_over(number, errors[:number]))
        if writer.commits[-1] != end:
            raise Broken(f"{writer.commits[-1]} of {end} epochs are committed")

    monkeypatch.setattr(training, "_load", load)
    monkeypatch.setattr(training, "let_next_begin", lambda: None)
    monkeypatch.setattr(learner, "accumulate", PlayedSamples)
    monkeypatch.setattr(learner, "later", later)
    return run


@with_seeds(150)
def test_every_history_commits_all_epochs_once_and_ends(play, seeds):
    play_all(play, seeds)


def _with_one_slot(patch):
    patch.setattr(stage_graph, "SLOTS", 1)


def _without_the_sums_of_one_worker(patch):
    add = Epochs.add
    patch.setattr(Epochs, "add", lambda self, *task, needs=(), reads=(): add(self, *task, needs=needs, reads=reads[1:]))


def _with_late_workers_that_are_not_sent_again(patch):
    patch.setattr(BySignals, "_late", lambda self: [])


def _learning_after_the_end(patch):
    patch.setattr(Learner, "over", False)


def _with_two_writers_of_a_chunk(patch):
    submit = PlayedTraining.submit

    def apart(self, task, worker, *arguments, **options):
        if task is training._write:
            *arguments, (*after, _) = arguments
            arguments = [*arguments, after]
        return submit(self, task, worker, *arguments, **options)

    patch.setattr(PlayedTraining, "submit", apart)


def _committing_what_is_committed(patch):
    def commit(self, write):
        ((number, errors, over),) = self.results([write])
        self.out.commit(number, errors)
        return over

    patch.setattr(PlayedTraining, "_commit", commit)


def _writing_before_the_device_has_learnt(patch):
    patch.setattr(learner, "later", lambda codebook: lambda: codebook.copy())


@with_each(
    _with_one_slot,
    without_needs_of_reads,
    _without_the_sums_of_one_worker,
    without_the_order_of_a_list,
    publishing_before_the_device_has_written,
    on_a_device_without_order,
    _with_late_workers_that_are_not_sent_again,
    _learning_after_the_end,
    _with_two_writers_of_a_chunk,
    _committing_what_is_committed,
    _writing_before_the_device_has_learnt,
)
def test_what_is_broken_is_found(play, monkeypatch, breaks):
    assert_found(play, monkeypatch, breaks)
