"""Stretches of epochs, which workers go through by signals of each other."""

import os
import signal
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pipelines import train_som
from pipelines.som import stretches, training
from pipelines.stores.codebook import CodebookWriter
from pipelines.stores.samples import write_samples
from pipelines.workers import signals
from pipelines.workers.attempts import Attempt
from pipelines.workers.panels import SlotReused

EPOCHS = 24


@pytest.fixture(autouse=True)
def dealt_to_all(monkeypatch):
    """The samples of these tests are few: one worker would have them all."""
    monkeypatch.setattr("pipelines.som.plan.FEW", 0)


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


@pytest.fixture
def commits(monkeypatch):
    """The epochs that are committed."""
    found, commit = [], CodebookWriter.commit
    monkeypatch.setattr(CodebookWriter, "commit", lambda run, *done: (found.append(done[0]), commit(run, *done)))
    return found


@pytest.mark.parametrize("workers", ["two", "three", "two_processes"])
def test_an_epoch_is_no_task(request, samples, calm, tmp_path, monkeypatch, workers):
    """The scheduler has as many tasks as workers and stretches, however many epochs there are."""
    client = request.getfixturevalue(workers)
    tasks, submit = Counter(), Attempt.submit

    def counted(self, task, *args, **options):
        tasks[task.__name__] += 1
        return submit(self, task, *args, **options)

    monkeypatch.setattr(Attempt, "submit", counted)
    if workers == "two_processes":
        client.run(_set, stretches, "SECONDS", 1000.0)
    monkeypatch.setattr(stretches, "SECONDS", 1000.0)
    assert_same_map(trained(client, samples, tmp_path / "m"), calm)
    count = len(client.nthreads())
    assert tasks["train"] == training.UNDER_WAY * count  # the second finds that all is done
    assert not tasks["publish"] + tasks["learn_from"]


def _set(module, name, value):
    setattr(module, name, value)


@pytest.mark.parametrize("slow", [0, 2])
def test_all_end_a_stretch_after_the_epoch_that_the_first_worker_says(
    three, samples, calm, tmp_path, monkeypatch, commits, slow
):
    """Whoever is slow, and whatever clocks say."""
    numbers, learn, stretch = [], stretches._learn, stretches._stretch

    def late(state, total):
        if state.worker == slow:
            time.sleep(0.01)
        return learn(state, total)

    def noted(state, made):
        numbers.append((state.worker, state.number))
        return stretch(state, made)

    monkeypatch.setattr(stretches, "SECONDS", 0.05)
    monkeypatch.setattr(stretches, "_learn", late)
    monkeypatch.setattr(stretches, "_stretch", noted)
    assert_same_map(trained(three, samples, tmp_path / "m"), calm)
    ends = [{number for worker, number in numbers if worker == w} for w in range(3)]
    assert ends[0] == ends[1] == ends[2]
    assert 2 < len(ends[0]) < EPOCHS
    assert set(commits) == ends[0]


def test_a_worker_that_waits_too_long_goes_on_later(three, samples, calm, tmp_path, monkeypatch):
    """Waits without patience: many stretches end early, at another epoch on every worker."""
    monkeypatch.setattr(signals, "PATIENCE", 0.0)
    monkeypatch.setattr(signals, "LATE", 0.0)
    found, wait = [], stretches._wait

    def noted(*args):
        found.append(wait(*args))
        return found[-1]

    monkeypatch.setattr(stretches, "_wait", noted)
    assert_same_map(trained(three, samples, tmp_path / "m"), calm)
    assert False in found


def test_a_map_that_settles_ends_on_all_workers(client, three, samples, tmp_path):
    options = {"tolerance": 1e-3}
    calm = trained(client, samples, tmp_path / "calm", **options)
    assert EPOCHS < calm.epochs < 2 * EPOCHS
    assert_same_map(trained(three, samples, tmp_path / "m", **options), calm)


@pytest.mark.parametrize("slots", [1, 2])
def test_no_slot_is_written_while_a_slow_worker_needs_it(three, samples, calm, tmp_path, monkeypatch, slots):
    """With a single slot (broken on purpose) the slow worker finds out."""
    monkeypatch.setattr(training, "SLOTS", slots)
    wait = stretches._wait

    def slow(state, worker):
        ready = wait(state, worker)
        if state.worker == 2:
            time.sleep(0.02)
        return ready

    monkeypatch.setattr(stretches, "_wait", slow)
    if slots == 2:
        assert_same_map(trained(three, samples, tmp_path / "m"), calm)
        return
    with pytest.raises(SlotReused, match=r"was to hold stage \d+ of .*; it was written again too early"):
        trained(three, samples, tmp_path / "m")


def test_where_signals_cannot_be_mapped_epochs_are_tasks(two, samples, calm, tmp_path, monkeypatch, capsys):
    meet = stretches.Signals.meet
    monkeypatch.setattr(stretches.Signals, "meet", lambda self, cards: meet(self, [replace(cards[0], reason="a test")]))
    capsys.readouterr()
    assert_same_map(trained(two, samples, tmp_path / "m", progress=True), calm)
    said = capsys.readouterr().err
    assert "sums go straight from worker to worker, in shared memory" in said
    assert "epochs are scheduled one by one (a test)" in said


def test_a_worker_killed_within_a_stretch_costs_nothing_but_time(two_processes, samples, calm, tmp_path):
    """kill -9 of itself, by one of two processes, while the other waits for its sums, as long as the attempt lasts."""
    two_processes.wait_for_workers(2)
    members = sorted(two_processes.nthreads())
    two_processes.run(_set, stretches, "SECONDS", 1000.0)
    two_processes.run(_set, signals, "PATIENCE", 1e6)
    two_processes.run(_ends_itself, 7, workers=members[1:])
    assert_same_map(trained(two_processes, samples, tmp_path / "m"), calm)
    assert set(two_processes.nthreads()) - set(members)


def _ends_itself(epoch):
    learn = stretches._learn

    def ends(state, total):
        if state.number == epoch:
            os.kill(os.getpid(), signal.SIGKILL)
        return learn(state, total)

    stretches._learn = ends
