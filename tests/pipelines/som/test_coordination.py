"""Epochs of several workers under both executors: the same map, whoever is slow, late or killed."""

import os
import signal
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from families import diagonals
from pipeline_fixtures import two_pids

from pipelines import train_som
from pipelines.som import learner, stage_graph, training
from pipelines.stores.samples import write_samples
from pipelines.workers import signals
from pipelines.workers.attempts import Attempt
from pipelines.workers.executors import WorkerList
from pipelines.workers.rings import SlotReused

EPOCHS = 16
pytestmark = pytest.mark.usefixtures("dealt_to_all")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    values = np.random.default_rng(0).normal(size=(600, 4))
    return write_samples(tmp_path_factory.mktemp("s") / "s", values)


@pytest.fixture(scope="module")
def calm(client, samples, tmp_path_factory):
    return trained(client, samples, tmp_path_factory.mktemp("calm") / "m")


def trained(client, samples, out, **options):
    return train_som(client, samples, out, 5, 6, epochs=EPOCHS, sigma_end=0.5, **options)


def assert_same_map(found, calm):
    assert found.quantization_errors == calm.quantization_errors
    for epoch in range(found.epochs + 1):
        np.testing.assert_array_equal(found.units(epoch), calm.units(epoch))
    np.testing.assert_array_equal(found.hits(), calm.hits())


@pytest.mark.parametrize(
    ("workers", "coordination"), diagonals(["two_processes", "two", "three"], ["signals", "scheduler"])
)
def test_an_epoch_is_a_task_only_for_the_scheduler(
    request, samples, calm, tmp_path, monkeypatch, workers, coordination
):
    client = request.getfixturevalue(workers)
    tasks, submit = Counter(), Attempt.submit

    def counted(self, task, *args, **options):
        tasks[task.__name__] += 1
        return submit(self, task, *args, **options)

    monkeypatch.setattr(Attempt, "submit", counted)
    monkeypatch.setattr(training, "SECONDS", 1000.0)
    assert_same_map(trained(client, samples, tmp_path / "m", coordination=coordination), calm)
    count = len(client.nthreads())
    # By signals: segments of one epoch until it is known how long that takes, then one of all others.
    lists = (training.AHEAD + 1) * count if coordination == "signals" else 0
    assert tasks["run_list"] == lists
    assert tasks["run_task"] == (0 if lists else 3 * EPOCHS * count)


@pytest.mark.parametrize("coordination", ["scheduler", "signals"])
def test_the_scheduler_forgets_epochs_that_are_over(two, samples, calm, tmp_path, monkeypatch, coordination):
    """Segments of one epoch, two of which are chained; the scheduler has a few tasks however many there were."""
    monkeypatch.setattr(training, "SECONDS", 0.0)
    monkeypatch.setattr(training, "CHAINED", 2)
    commit, known = training.Training._commit, []

    def counted(*args):
        known.append(two.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        return commit(*args)

    monkeypatch.setattr(training.Training, "_commit", counted)
    monkeypatch.setattr(training.CodebookWriter, "together", 1)
    assert_same_map(trained(two, samples, tmp_path / "m", coordination=coordination), calm)
    assert max(known) <= 4 * 8


@pytest.mark.parametrize("slow", [0, 2])
def test_all_learn_the_same_whoever_is_slow(three, samples, calm, tmp_path, monkeypatch, slow):
    learn = learner.Learner._learn

    def late(state, others):
        if state.worker == slow:
            time.sleep(0.01)
        learn(state, others)

    monkeypatch.setattr(learner.Learner, "_learn", late)
    assert_same_map(trained(three, samples, tmp_path / "m"), calm)


def test_a_worker_that_waits_too_long_goes_on_later(three, samples, calm, tmp_path, monkeypatch):
    """Waits without patience: many lists end early, at another epoch on every worker."""
    monkeypatch.setattr(signals, "PATIENCE", 0.0)
    monkeypatch.setattr(signals, "LATE", 0.0)
    found, ready = [], WorkerList.ready
    monkeypatch.setattr(WorkerList, "ready", lambda own: found.append(ready(own)) or found[-1])
    assert_same_map(trained(three, samples, tmp_path / "m"), calm)
    assert False in found


@pytest.mark.parametrize("coordination", ["scheduler", "signals"])
def test_a_map_that_settles_ends_on_all_workers(client, three, samples, tmp_path, coordination):
    options = {"tolerance": 1e-3}
    calm = trained(client, samples, tmp_path / "calm", **options)
    assert EPOCHS < calm.epochs < 2 * EPOCHS
    assert_same_map(trained(three, samples, tmp_path / "m", coordination=coordination, **options), calm)


@pytest.mark.parametrize(
    ("waits", "coordination"),
    [
        *((True, "signals"), (False, "signals"), (False, "scheduler")),
        pytest.param(True, "scheduler", marks=pytest.mark.slow),
    ],
)
def test_no_slot_is_written_while_a_slow_worker_needs_it(
    three, samples, calm, tmp_path, monkeypatch, waits, coordination
):
    """With one slot where two are needed (broken on purpose) the slow worker finds out."""
    learn = learner.Learner._learn

    def slow(state, others):
        if state.worker == 2:
            time.sleep(0.02)
        learn(state, others)

    monkeypatch.setattr(learner.Learner, "_learn", slow)
    options = {"coordination": coordination}
    if waits:
        assert_same_map(trained(three, samples, tmp_path / "m", **options), calm)
        return
    monkeypatch.setattr(stage_graph, "SLOTS", 1)
    monkeypatch.setattr(training, "SLOTS", 1)
    with pytest.raises(SlotReused, match=r"was to hold stage \d+ of .*; it was written again too early"):
        trained(three, samples, tmp_path / "m", **options)


def test_where_signals_cannot_be_mapped_the_scheduler_coordinates(two, samples, calm, tmp_path, monkeypatch, capsys):
    meet = signals.Signals.meet
    monkeypatch.setattr(signals.Signals, "meet", lambda self, found: meet(self, [replace(found[0], reason="a test")]))
    capsys.readouterr()
    assert_same_map(trained(two, samples, tmp_path / "m", progress=True), calm)
    said = capsys.readouterr().err
    assert "sums go straight from worker to worker, in shared memory" in said
    assert "epochs are coordinated by the scheduler (a test)" in said


@pytest.mark.slow
def test_a_worker_killed_within_a_list_costs_nothing_but_time(two_processes, samples, calm, tmp_path, monkeypatch):
    """kill -9 of itself, by one of two processes, while the other waits for its sums, as long as the attempt lasts."""
    two_pids(two_processes)
    members = sorted(two_processes.nthreads())
    monkeypatch.setattr(training, "SECONDS", 1000.0)
    monkeypatch.setattr(signals, "PATIENCE", 1e6)  # the driver's, which it gives with the lists
    two_processes.run(_ends_itself, 7, workers=members[1:])
    assert_same_map(trained(two_processes, samples, tmp_path / "m"), calm)
    assert set(two_processes.nthreads()) - set(members)


def _ends_itself(epoch):
    learn = learner.Learner._learn

    def ends(state, others):
        if state.number == epoch:
            os.kill(os.getpid(), signal.SIGKILL)
        learn(state, others)

    learner.Learner._learn = ends
