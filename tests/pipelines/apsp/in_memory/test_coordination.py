"""Both executors of the stages of Floyd-Warshall on real workers: equal bits, and what the scheduler sees of them."""

import time
from collections import Counter
from itertools import cycle, pairwise

import numpy as np
import pytest
from oracles import random_arcs, store_arcs

from pipelines import all_pairs_shortest_paths
from pipelines.apsp.commits import Staged
from pipelines.apsp.in_memory.plan import scheduler_hides
from pipelines.apsp.in_memory.resident_rows import ResidentRows
from pipelines.apsp.layout import Layout
from pipelines.apsp.methods import Job
from pipelines.apsp.stage_graph import DOUBLY, INDEPENDENT, SINGLY, FloydWarshall
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Attempt
from pipelines.workers.executors import EVENTS, WorkerList
from pipelines.workers.mapped_memory import CannotMap
from pipelines.workers.rings import OPENED, Ring, SlotReused, Token

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


def transitions(dask_scheduler):
    """The keys whose tasks were given to a worker, and those that were done, as they followed each other."""
    return [(entry[0], entry[2]) for entry in dask_scheduler.transition_log if entry[2] in ("processing", "memory")]


def test_the_scheduler_sees_every_task_in_the_order_of_the_algorithm(three, graph, calm, tmp_path):
    """The three kinds with their dependencies; the owner's look-ahead comes before the rest of its rows."""
    before = len(three.run_on_scheduler(transitions))
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d", coordination="scheduler"), calm)
    given, done = {}, {}  # by kind, stage, worker and rows
    for at, (key, state) in enumerate(three.run_on_scheduler(transitions)[before:]):
        if isinstance(key, tuple):
            (given if state == "processing" else done)[key[0].split("-")[0], *key[1:]] = at
    kinds = Counter(kind for kind, *_ in done)
    assert kinds[INDEPENDENT] == kinds[SINGLY] == kinds["publish"] == STAGES
    assert kinds[DOUBLY] == (STAGES - 1) * (3 + 1)  # of three workers, one in two parts; the last as it writes
    owner = {stage: worker for kind, stage, worker, _ in done if kind == INDEPENDENT}
    for k in range(STAGES - 1):
        (panel, w), publish = (k + 1, owner[k + 1]), ("publish", k + 1, owner[k + 1], "")
        ahead = [(DOUBLY, k, w, "next pivots"), (INDEPENDENT, panel, w, ""), (SINGLY, panel, w, ""), publish]
        for one, following in pairwise([*ahead, (DOUBLY, k, w, "other rows")]):
            assert done[one] < given[following]
        assert all(done[publish] < at for which, at in given.items() if which[:2] == (DOUBLY, panel))


def test_by_signals_a_stage_is_no_task_and_is_logged(three, graph, calm, tmp_path, monkeypatch):
    """The scheduler has as many tasks as workers and segments, however many stages there are."""
    tasks, submit = Counter(), Attempt.submit

    def counted(self, task, *args, **options):
        tasks[task.__name__] += 1
        return submit(self, task, *args, **options)

    monkeypatch.setattr(Attempt, "submit", counted)
    monkeypatch.setattr("pipelines.apsp.in_memory.stages.SECONDS", 1000.0)
    before = len(three.get_events(EVENTS))
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d"), calm)
    assert (tasks["run_list"], tasks["run_task"]) == (3, 0)
    logged = [kind for _, log in three.get_events(EVENTS)[before:] for kind, *_ in log]
    assert Counter(logged)[INDEPENDENT] == STAGES
    assert Counter(logged)[DOUBLY] == (STAGES - 1) * (3 + 1)


def test_workers_that_wait_too_long_go_on_later(three, graph, calm, tmp_path, monkeypatch):
    """Waits without patience: nearly all lists end early. Every tenth stage is committed."""
    monkeypatch.setattr("pipelines.workers.signals.PATIENCE", 0.0)
    monkeypatch.setattr("pipelines.workers.signals.LATE", 0.0)
    monkeypatch.setattr("pipelines.apsp.in_memory.stages.SECONDS", 0.0)
    due, commit, committed = cycle([False] * 9 + [True]), DistancesWriter.commit, []
    monkeypatch.setattr(Staged, "due", lambda *_: next(due))
    monkeypatch.setattr(DistancesWriter, "commit", lambda *args: committed.append(args[1]) or commit(*args))
    found, ready, close = [], WorkerList.ready, ResidentRows._close
    monkeypatch.setattr(WorkerList, "ready", lambda own: found.append(ready(own)) or found[-1])
    monkeypatch.setattr(ResidentRows, "_close", lambda *args: time.sleep(0.02) or close(*args))
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d"), calm)
    assert committed == [10, 20, STAGES + 1]
    assert False in found


@pytest.fixture
def slow(monkeypatch):
    """One worker takes its time, and slots are written again as soon as may be."""
    monkeypatch.setattr("pipelines.apsp.in_memory.plan.REACH", 2)
    relax = ResidentRows._relax

    def slowly(rows, *args):
        if rows.worker == 2:
            time.sleep(0.02)
        relax(rows, *args)

    monkeypatch.setattr(ResidentRows, "_relax", slowly)


@pytest.mark.parametrize("coordination", ["scheduler", "signals"])
def test_a_slow_worker_changes_no_bit(three, graph, calm, tmp_path, slow, coordination):
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d", coordination=coordination), calm)


def test_a_slot_that_is_written_too_early_is_found(three, graph, tmp_path, slow, monkeypatch):
    """The needs of slots are left out, on purpose."""
    close = FloydWarshall._close
    monkeypatch.setattr(FloydWarshall, "_close", lambda graph, k: (graph._read.clear(), close(graph, k)))
    with pytest.raises(SlotReused, match="written again too early"):
        solved(three, graph, tmp_path / "d", coordination="signals")


def test_without_counters_the_scheduler_coordinates(three, graph, calm, tmp_path, monkeypatch, capsys):
    def refuse(_count):
        raise CannotMap("for a test")

    monkeypatch.setattr("pipelines.workers.signals.HostMemory", refuse)
    np.testing.assert_array_equal(solved(three, graph, tmp_path / "d", progress=True), calm)
    assert "are coordinated by the scheduler (for a test)" in capsys.readouterr().err
    with pytest.raises(
        ValueError, match="cannot be coordinated by signals \\(for a test\\); use the scheduler, and resume"
    ):
        solved(three, graph, tmp_path / "e", coordination="signals")


def test_who_coordinates_is_checked(client, graph, tmp_path):
    with pytest.raises(ValueError, match="coordination is 'nobody'; pass 'scheduler' or 'signals', or leave it out"):
        solved(client, graph, tmp_path / "d", coordination="nobody")


@pytest.mark.parametrize(
    ("n", "block", "rate", "gpu", "hidden"),
    [
        (65_536, 2048, 16.9e12, True, True),
        (32_768, 2048, 16.9e12, True, True),
        (16_384, 1024, 16.9e12, True, False),
        (8_192, 512, 12e9, False, True),
        (2_048, 128, 12e9, False, False),
    ],
)
def test_the_scheduler_coordinates_where_its_messages_are_hidden(n, block, rate, gpu, hidden):
    layout = Layout(n, block, block, 2)
    assert scheduler_hides(layout, 4, rate, gpu, mapped=True) == hidden


@pytest.mark.parametrize(("n", "block"), [(100, 16), (10, 64)])
def test_a_rehearsal_changes_nothing(n, block):
    layout, job = Layout(n, block, block, 2), Job(None, np.dtype("float32"), np.ones(n, bool), None, True)
    matrix = np.random.default_rng(0).random((layout.rows(0), n), dtype="float32")
    before, ring = matrix.copy(), Ring("a", np, 1, 4 * block * n)
    rows = ResidentRows(job, layout, 0, [0] * len(layout.blocks()), ring, matrix)
    rows.rehearse()
    np.testing.assert_array_equal(rows.matrix, before)
    opened = Token(ring.address, OPENED, 0, (), "uint8").header()
    assert ring._bytes[: len(opened)].tobytes() == opened  # as others expect it when they map the ring
