"""Searches by vertices on a played cluster: what histories keep, and that each invariant is found when broken.

Ranges of vertices, their searches and their packets are the real ones, on a CPU.
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from oracles import dijkstra
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
)

from gpuops import csr
from gpuops.numbers import outside_infinity
from pipelines.sssp import packets, vertex_rounds
from pipelines.sssp.job import SearchJob
from pipelines.sssp.packets import Outbox
from pipelines.sssp.stage_graph import Rounds
from pipelines.sssp.vertex_ranges import VertexRange
from pipelines.workers import resident_state
from pipelines.workers.rings import Token

INFINITY = outside_infinity(np.dtype("int32"))


class Arcs:
    """A graph in memory."""

    path, directed = "a graph", True

    def __init__(self, n, tails, heads, weights, through):
        order = np.argsort(tails, kind="stable")
        self.n, self.m, self.weight_min = n, len(tails), min(weights, default=0)
        self.indptr, self.heads, self.lengths = csr.row_starts(tails[order], n), heads[order], weights[order]
        self._through = through

    def through(self):
        return self._through

    def rows(self, first, last):
        arcs = slice(self.indptr[first], self.indptr[last])
        return self.indptr[first : last + 1] - self.indptr[first], self.heads[arcs], self.lengths[arcs]

    def rows_in(self, _library, dtype, first, last):
        indptr, heads, weights = self.rows(first, last)
        return indptr, heads.copy(), weights.astype(dtype)

    def ranges(self, count, first=0, last=None):
        cuts = np.linspace(first, self.n if last is None else last, count + 1).astype(int).tolist()
        return list(pairwise(cuts))


class ArraysRing(PlayedRing):
    """A ring on a CPU, whose slots are written at once."""

    def __init__(self, attempt, _xp, slots, _capacity, shared):
        super().__init__(attempt, resident_state.get_worker(), slots)

    def open(self, slot, shape, dtype):
        super().open(slot)
        self.holds[slot] = np.empty(shape, dtype)
        return self.holds[slot]

    def publish(self, slot, stage, written=None):
        super().publish(slot, stage)
        return Token(self.address, stage, slot, self.holds[slot].shape, self.holds[slot].dtype.str)

    def take(self, token):
        return super().take(token)().copy()

    def arrived(self, sent, slot=0, start=0):
        return self.take(sent) if isinstance(sent, Token) else sent


class Writer:
    """A store of paths in memory."""

    rows = 2

    def __init__(self, sources, chunk, columns):
        self.sources, self.chunk, self.columns = sources, chunk, columns
        self.arrays = {"distances": {}, "predecessors": {}}
        self.recorded = np.zeros(self.rows, bool)

    def row_sources(self, row):
        return (self.sources[row],)

    def rows_done(self):
        return self.recorded.copy()

    def record(self, done):
        for row in np.flatnonzero(done):
            if row not in self.arrays["distances"]:
                raise Broken(f"row {row} is recorded before it is written")
        self.recorded = done.copy()

    def for_tasks(self):
        return self

    def opened(self, name):
        return self.columns, lambda start, _column, values: self.arrays[name].update(enumerate(values, start))


class PlayedByVertices(PlayedAttempt, vertex_rounds.ByVertices):
    pass


@pytest.fixture
def play(monkeypatch):
    """Plays searches from two sources; raises Broken if a distance or a predecessor is wrong."""

    def run(seed):
        draw = Cluster(seed, workers=1).random
        workers, n = draw.randrange(1, 5), draw.randrange(1, 12)
        cluster = Cluster(seed, workers, kills=draw.choice([0, 0, 1]), mapped=draw.random() < 0.8)
        rng = np.random.default_rng(seed)
        m = draw.randrange(0, 3 * n)
        tails, heads, weights = rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 9, m)
        some_closed = draw.random() < 0.3
        through = rng.random(n) < 0.7 if some_closed else np.ones(n, bool)
        heights = np.zeros(n, int) if some_closed else rng.integers(0, 9, n)  # make some weights negative
        lengths = (weights + heights[tails] - heights[heads]).astype(np.int32)
        graph = Arcs(n, tails, heads.astype(np.int32), lengths, through)
        sources = [draw.randrange(n), draw.randrange(n)]
        writer = Writer(sources, chunk=draw.choice([1, 2]), columns=n)
        job = SearchJob(graph, np.dtype("int32"), batched=False)
        plan = SimpleNamespace(job=job, pieces=draw.randrange(1, 3), transposed=draw.random() < 0.5)
        played(cluster, monkeypatch, PlayedByVertices, writer, plan)
        for row, source in enumerate(sources):
            expected = dijkstra(n, tails, heads, weights, through, source) + heights[source] - heights
            expected = np.where(np.isinf(expected), INFINITY, expected)
            distances, predecessors = writer.arrays["distances"][row], writer.arrays["predecessors"][row]
            if distances.tolist() != expected.tolist():
                raise Broken(f"distances from {source} are {distances}, not {expected}")
            arcs = set(zip(tails, heads, lengths, strict=True))
            for v in np.flatnonzero((distances != INFINITY) & (np.arange(n) != source)):
                tail = predecessors[v]
                if (tail, v, distances[v] - distances[tail]) not in arcs:
                    raise Broken(f"{tail} is no predecessor of {v}")

    monkeypatch.setattr(packets, "Ring", ArraysRing)
    monkeypatch.setattr(vertex_rounds, "array_library", lambda: np)
    monkeypatch.setattr(vertex_rounds, "stop_if_asked", nothing)
    return run


@with_seeds(100)
def test_every_history_finds_the_shortest_paths(play, seeds):
    play_all(play, seeds)


def _with_one_slot_for_two_rounds(patch):
    patch.setattr(Outbox, "_slot", lambda self, receiver: receiver - (receiver > self.worker))


def _reading_packets_of_the_round_before(patch):
    published = Rounds.published
    patch.setattr(
        Rounds,
        "published",
        lambda self, owner, stage, slot, *of: published(self, owner, stage - 1, slot, *of),
    )


def _sending_news_to_nobody(patch):
    collect = VertexRange._collect_news
    patch.setattr(VertexRange, "_collect_news", lambda self: [None] * len(collect(self)))


def _without_waiting_for_the_written_rows(patch):
    submit = PlayedAttempt.submit

    def without(self, task, *arguments, **options):
        if task is vertex_rounds._write:
            return SimpleNamespace(finished=True, value=None)
        return submit(self, task, *arguments, **options)

    patch.setattr(PlayedAttempt, "submit", without)


@with_each(
    _with_one_slot_for_two_rounds,
    _reading_packets_of_the_round_before,
    _sending_news_to_nobody,
    _without_waiting_for_the_written_rows,
)
def test_what_is_broken_is_found(play, monkeypatch, breaks):
    assert_found(play, monkeypatch, breaks)
