"""What holds of every stage graph, whoever runs it: arrays are published before they are read, and read before their
slot is written again.
"""

from collections import defaultdict

import numpy as np
import pytest

from pipelines.apsp.stage_graph import SINGLY, SLAB, FloydWarshall, SuperStages
from pipelines.som.stage_graph import ACCUMULATE, Epochs
from pipelines.sssp.stage_graph import SETTLE, SHOW, Rounds
from pipelines.workers.rings import deal_slots
from pipelines.workers.stage_graph import Need, StageGraph


def check_arrays(segment, workers, writes):
    """Follow what each task knows to be done: its own list, what it needs, and what that knew.

    `writes` are the kinds of tasks that begin to write the slots of their worker.
    """
    known, reads, written = {}, defaultdict(list), defaultdict(set)
    for array in {array for placed in segment for array in placed.task.reads}:
        tasks = [at.done for at in segment if at.worker == array.owner and at.task.kind in writes]
        written[array.owner, max(done for done in tasks if done <= array.published)].add(array.slot)
    for worker, done, task in segment:
        before = [known[need] for need in [*task.needs, Need(worker, done - 1)] if need.done]
        counts = np.max([np.zeros(workers, int), *before], axis=0)
        counts[worker] = done
        known[Need(worker, done)] = counts
        for array in task.reads:
            assert counts[array.owner] >= array.published, f"{task} reads what may not be there yet"
            reads[array.owner, array.slot].append((worker, done))
        for slot in written[worker, done]:
            for reader, read in reads[worker, slot]:
                if (reader, read) != (worker, done):
                    assert counts[reader] >= read, f"{task} writes a slot that may still be read"


def check_many(make):
    for seed in range(40):
        graph, writes = make(np.random.default_rng(seed), 2 + seed % 3)
        check_arrays(graph.segment(), graph.workers, writes)


def floyd_warshall(random, workers):
    owners = random.integers(0, workers, 12).tolist()
    slots, _ = deal_slots(owners, workers, int(random.integers(2, 7)))
    graph = FloydWarshall(owners, slots, [(2, 24)] * 12, "<f4", workers, bool(random.integers(2)))
    last = random.integers(2, size=12).astype(bool)
    for k in range(12):
        graph.stage(k, last=bool(last[k]) or k == 11)
    return graph, {SINGLY}


def super_stages(random, workers):
    graph = SuperStages(workers)
    for number in range(4):
        parts = [[slice(w, w + 1)] * int(random.integers(1, 4)) for w in range(workers)]
        graph.super_stage(number, parts, end=number == 3)
    return graph, {SLAB}


def rounds(random, workers):
    graph, posts = Rounds(workers), [[]] * workers
    for number in range(8):
        graph.round(SETTLE if random.integers(2) else SHOW, posts)
        posts = [
            [
                graph.published(sender, number, number % 2 * workers + receiver, (2, 3), "<i4")
                for sender in range(workers)
                if sender != receiver and random.integers(2)
            ]
            for receiver in range(workers)
        ]
    return graph, {SETTLE, SHOW}


def epochs(random, workers):
    graph = Epochs(workers, 5)
    for number in range(6):
        graph.epoch(number)
    return graph, {ACCUMULATE}


GRAPHS = [floyd_warshall, super_stages, rounds, epochs]


@pytest.mark.parametrize("make", GRAPHS)
def test_no_slot_is_written_before_all_have_read_it(make):
    check_many(make)


@pytest.mark.parametrize("make", [floyd_warshall, super_stages, rounds])  # epochs need nothing but what they read
def test_the_check_finds_needs_that_are_left_out(make, monkeypatch):
    """Where a task waits only for what it reads."""
    add = StageGraph.add
    monkeypatch.setattr(StageGraph, "add", lambda *task, needs=(), **options: add(*task, **options))
    with pytest.raises(AssertionError, match="may still be read"):
        check_many(make)
