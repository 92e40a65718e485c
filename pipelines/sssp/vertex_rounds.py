"""Searches spread by vertices: all workers on one search at a time, each with the arcs that leave a range of vertices.

1. Load: the ranges are cut so that as many arcs leave each (`pipelines.sssp.vertex_ranges` says what a worker does).
2. Rounds: every worker settles its own arcs, then the distances that improved and belong to another worker travel
   there, only those, straight from worker to worker (`pipelines.sssp.packets`), or by way of Dask where one cannot map
   the other's memory. The search is over when nobody has anything to send, or left.
3. Final distances travel once, predecessors are found the same way: by rounds, of which there is one but for ties.
4. One worker writes the chunk, the next one the next.

A negative cycle within a piece is found by the search there. One that runs through several would keep rounds going
forever, so after 16, 32, 64, ... of them the arcs that leave vertices reached so far are searched for one, with exact
sums (`gpuops.certificates.negative_cycle`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Client, Future

from gpuops import NegativeCycleError, csr
from gpuops.certificates import find_negative_cycle
from gpuops.numbers import outside_infinity
from pipelines.sssp.searches import BlockWriter, SearchAttempt, SearchJob, SearchWriter
from pipelines.sssp.vertex_ranges import Seeds, VertexRange, seeds_of
from pipelines.validation.bounds import WeightRangeError
from pipelines.workers.attempts import clear, held, keep
from pipelines.workers.device_arrays import array_library
from pipelines.workers.exchange import Exchange
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.panels import Card, Token
from pipelines.workers.progress import Progress

FIRST_CHECK = 16  # rounds before negative cycles are looked for; doubles each time


class ByVertices(SearchAttempt, Exchange):
    """An attempt of searches spread by vertices, for `pipelines.workers.attempts.run_attempts`."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: SearchAttempt | None,
        job: SearchJob,
        out: SearchWriter,
        shown: Progress,
        pieces: int,
        transposed: bool,
    ):
        super().__init__(client, members, "sssp", before, job, out, shown)
        self.pieces, self.transposed = pieces, transposed
        self.ranges = job.graph.ranges(len(members))

    def run(self) -> None:
        todo = self.tasks_to_do()
        if not todo:
            return
        workers = range(len(self.members))
        self.shown.stage(f"laying out {self.job.graph.m // len(workers):,} arcs a worker")
        load = self.job, self.ranges
        cards = self.results([self.submit(_load, w, *load, w, self.pieces, self.transposed) for w in workers])
        self.meet(cards, "distances", self.shown)
        self.shown.start(self.done())
        try:
            for number, start in enumerate(todo):
                stop_if_asked()
                rows = [self._search(row, sources) for row, sources in enumerate(self.sources_of(start), start)]
                one = number % len(self.members)
                self.wait([self.submit(_write, one, self.out.writer(), start, rows, stateless=True)])
                self.futures.clear()
                self.land(start)
        finally:
            self.record()

    def _search(self, row: int, sources: tuple[int, ...]) -> tuple[list[Future], list[Future]]:
        """One row, as the parts of its distances and predecessors in the order of the ranges."""
        workers = range(len(self.members))
        seeds = seeds_of(self.job, sources)
        self.wait([self.submit(_begin, w, seeds) for w in workers])
        posts: list[list[Any]] = [[] for _ in workers]
        rounds, check = 0, FIRST_CHECK
        while True:
            found = self.results([self.submit(_settle, w, posts[w]) for w in workers])
            rounds += 1
            sent = sum(token.shape[-1] for _, tokens in found for token in tokens if token)
            self.shown.stage(f"row {row + 1} of {self.out.rows}, round {rounds}: {sent:,} distances to exchange")
            if not sent and not any(left for left, _ in found):
                break
            posts = self._post([tokens for _, tokens in found])
            if rounds == check and self.job.graph.weight_min < 0:
                self._look_for_cycle(seeds.sources)
                check *= 2
            if rounds > self.job.graph.n:  # a path crosses from one piece to another less often than that
                raise WeightRangeError(
                    f"{self.job.graph.path}: rounded to {self.job.dtype}, distances along a cycle of weight 0 fall "
                    "forever; use integer weights, or another --dtype"
                )
        if seeds.heads and self.job.graph.weight_min < 0:
            self._look_for_cycle(seeds.sources)  # one through a closed source is gone around once only
        if not self.job.predecessors:
            return self._complete(), []
        return self._complete(), self._attach()

    def _post(self, tokens: list[list[Any]]) -> list[list[Any]]:
        """Send packets, given the tokens of each worker for each; returns what each of them receives."""
        self.drop_done()
        posts: list[list[Any]] = [[] for _ in self.members]
        for sender, sent in enumerate(tokens):
            for receiver, token in enumerate(sent):
                if token is not None:
                    posts[receiver].append(self.sent_to(receiver, sender, token))
        return posts

    def _complete(self) -> list[Future]:
        """Make the final distances known everywhere; returns them by ranges."""
        workers = range(len(self.members))
        tokens = self.results([self.submit(_show, w) for w in workers])
        shown = [self.sent(w, token) if token else [None] for w, token in enumerate(tokens)]
        distances = [self.submit(_finish, w, [parts[w] for parts in shown]) for w in workers]
        self.wait(distances)
        return distances

    def _attach(self) -> list[Future]:
        """The predecessors by ranges, by rounds."""
        workers = range(len(self.members))
        posts: list[list[Any]] = [[] for _ in workers]
        rounds = 0
        while True:
            counts = self.results([self.submit(_take, w, posts[w]) for w in workers])
            if not sum(lacking for _, lacking in counts):
                break
            if rounds > 1 and not sum(taken for taken, _ in counts):
                raise RuntimeError("internal error: a vertex has a distance, but no tight arc leads there")
            posts = self._post(self.results([self.submit(_attach, w, rounds == 0) for w in workers]))
            rounds += 1
        predecessors = [self.submit(_predecessors, w) for w in workers]
        self.wait(predecessors)
        return predecessors

    def _look_for_cycle(self, sources: tuple[int, ...]) -> None:
        """Raise NegativeCycleError if a cycle that the search can go around is negative: O(m), in this process."""
        known = np.concatenate(self.results([self.submit(_own, w) for w in range(len(self.members))]))
        job = self.job
        pushes = known != outside_infinity(job.dtype)
        if job.through is not None:
            pushes &= job.through
        pushes[list(sources)] = True
        indptr, indices, weights = job.arcs(0, job.graph.n)
        tails = csr.tails(indptr, len(indices), np.int64)
        kept = pushes[tails]
        offsets = csr.row_starts(tails[kept], job.graph.n)
        found = find_negative_cycle(offsets, indices[kept], weights[kept], job.through)
        if found is not None:
            vertices, weight = found
            raise NegativeCycleError(f"the vertices {vertices} form a cycle of weight {weight:g}", vertices, weight)


# The tasks: each runs on the worker it is pinned to, and changes that worker's range in place.


def _load(
    attempt: str, job: SearchJob, ranges: list[tuple[int, int]], worker: int, pieces: int, transposed: bool
) -> Card:
    clear()
    part = VertexRange(attempt, job, ranges, worker, pieces, transposed, array_library())
    keep(attempt, part)
    return part.panels.card


def _begin(attempt: str, seeds: Seeds) -> None:
    held(attempt).begin(seeds)


def _settle(attempt: str, packets: list[Any]) -> tuple[int, list[Token | None]]:
    """Receive and search: what is left to do, and tokens of what there is for each worker."""
    part = held(attempt)
    for packet in packets:
        part.receive(packet)
    return part.settle(), part.collect_news()


def _show(attempt: str) -> Token | None:
    return held(attempt).show()


def _own(attempt: str) -> np.ndarray:
    return held(attempt).own()


def _finish(attempt: str, shown: list[Any]) -> np.ndarray:
    """The own distances once all are final and cut."""
    part = held(attempt)
    part.complete(shown)
    return part.own()


def _take(attempt: str, packets: list[Any]) -> tuple[int, int]:
    return held(attempt).take(packets)


def _attach(attempt: str, first: bool) -> list[Token | None]:
    return held(attempt).attach(first)


def _predecessors(attempt: str) -> np.ndarray:
    return held(attempt).own_predecessors()


def _write(writer: BlockWriter, start: int, rows: list[tuple[list[np.ndarray], list[np.ndarray]]]) -> None:
    for name, parts in zip(("distances", "predecessors"), zip(*rows, strict=True), strict=True):
        if parts[0]:
            _, write = writer.opened(name)
            write(start, 0, np.stack([np.concatenate(of_row) for of_row in parts]))
