"""Searches spread by vertices: all workers do one search at a time, each with the arcs that leave a range of vertices.

1. Load: the ranges are cut so that about the same number of arcs leaves each range (`pipelines.sssp.vertex_ranges`
   describes a worker's part of a search).
2. Rounds: every worker searches its own arcs. Then it sends the distances that improved, if the vertices belong to
   another worker: straight from worker to worker (`pipelines.sssp.packets`), or through Dask if one worker cannot map
   the other worker's memory. The search is over when no worker has distances to send or vertices left to search from.
3. Final distances are sent once. Predecessors are found by rounds too; without ties, one round finds them all.
4. One worker writes the chunk, the next worker the next chunk.

A negative cycle within a piece is found by the search of that piece. A negative cycle through several pieces would keep
rounds going forever. So after 16, 32, 64, ... rounds, the arcs that leave the vertices reached so far are checked for a
negative cycle, with exact sums (`gpuops.certificates.negative_cycle`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from distributed import Future

from gpuops import NegativeCycleError, csr
from gpuops.certificates import find_negative_cycle
from gpuops.errors import WeightRangeError
from gpuops.numbers import outside_infinity
from pipelines.sssp.plan import SearchPlan
from pipelines.sssp.searches import BlockWriter, SearchWriter, sources_of
from pipelines.sssp.stage_graph import ATTACH, COMPLETE, PREDECESSORS, SETTLE, SHOW, TAKE, Rounds
from pipelines.sssp.vertex_ranges import Seeds, VertexRange, seeds_of
from pipelines.workers.attempts import Run
from pipelines.workers.device_arrays import array_library
from pipelines.workers.exchange import Exchange
from pipelines.workers.executors import ByScheduler
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.rings import RingAddress, Token
from pipelines.workers.row_chunks import RowsAttempt
from pipelines.workers.stage_graph import Array

FIRST_CHECK = 16  # rounds before the first check for a negative cycle; the number doubles after each check


class ByVertices(RowsAttempt):
    """An attempt of searches spread by vertices."""

    out: SearchWriter
    kind = "sssp"

    def __init__(self, run: Run, members: list[str], before: ByVertices | None, plan: SearchPlan):
        super().__init__(run, members, before)
        self.job, self.plan = plan.job, plan
        self.ranges = plan.job.graph.ranges(len(members))
        self.graph = Rounds(len(members))

    def run(self) -> None:
        todo = self.tasks_to_do()
        if not todo:
            return
        workers = range(len(self.members))
        self.bar.stage(f"laying out {self.job.graph.m // len(workers):,} arcs a worker")
        addresses = self.on_all(_load, self.plan, self.ranges, each=[(w,) for w in workers])
        self.executor = ByScheduler(Exchange(self, addresses, "distances"), ahead=1)
        self.bar.start(self.done())
        try:
            for number, rows in enumerate(todo):
                stop_if_asked()
                found = [self._search(row, roots) for row, roots in enumerate(sources_of(self.out, rows), rows.start)]
                one = number % len(self.members)
                self.wait([self.submit(_write, one, self.out.for_tasks(), rows.start, found, stateless=True)])
                self.futures.clear()
                del found  # whose parts would stay on the workers while they search for the next chunk
                self.note_written(rows)
        finally:
            self.record()

    def _search(self, row: int, sources: tuple[int, ...]) -> tuple[list[Future], list[Future]]:
        """Search for one row; returns the parts of its distances and predecessors, in the order of the ranges."""
        seeds = seeds_of(self.job, sources)
        self.on_all(_begin, seeds)
        posts: list[list[Array]] = [[] for _ in self.members]
        rounds, check = 0, FIRST_CHECK
        while True:
            found = self.results(self._round(SETTLE, posts))
            rounds += 1
            sent = sum(token.shape[-1] for _, tokens in found for token in tokens if token)
            self.bar.stage(f"row {row + 1} of {self.out.rows}, round {rounds}: {sent:,} distances to exchange")
            if not sent and not any(left for left, _ in found):
                break
            posts = self._posts([tokens for _, tokens in found])
            if rounds == check and self.job.graph.weight_min < 0:
                self._look_for_cycle(seeds.sources)
                check *= 2
            if rounds > self.job.graph.n:  # a shortest path crosses from one piece to another fewer than n times
                raise WeightRangeError(
                    f"{self.job.graph.path}: rounded to {self.job.dtype}, distances along a cycle of weight 0 fall "
                    "forever; use integer weights, or another dtype (--dtype)"
                )
        if seeds.heads and self.job.graph.weight_min < 0:
            self._look_for_cycle(seeds.sources)  # searches go around a cycle through a closed source only once
        shown = self.results(self._round(SHOW))
        distances = self._round(COMPLETE, self._posts([[token] * len(self.members) for token in shown]))
        return distances, self._attach() if self.job.predecessors else []

    def _attach(self) -> list[Future]:
        """Find predecessors by rounds; returns them by range."""
        posts: list[list[Array]] = [[] for _ in self.members]
        for rounds in count():
            counts = self.results(self._round(TAKE, posts))
            if not sum(lacking for _, lacking in counts):
                break
            if rounds > 1 and not sum(taken for taken, _ in counts):
                raise RuntimeError("internal error: a vertex has a distance, but no tight arc leads there")
            posts = self._posts(self.results(self._round(ATTACH)))
        return self._round(PREDECESSORS)

    def _round(self, kind: str, posts: Sequence[Sequence[Array]] = ()) -> list[Future]:
        """Do a round, given the arrays that each worker's task reads; returns the future of each task."""
        needs = self.graph.round(kind, posts or [()] * len(self.members))
        self.executor.submit(self.graph.segment())
        futures = [self.executor.after(need) for need in needs]
        self.executor.wait_all()
        return futures

    def _posts(self, tokens: list[list[Token | None]]) -> list[list[Array]]:
        """Return the arrays for each worker, given the tokens that every worker published in the last round."""
        posts: list[list[Array]] = [[] for _ in self.members]
        for sender, sent in enumerate(tokens):
            for receiver, token in enumerate(sent):
                if token is not None and receiver != sender:
                    array = self.graph.published(sender, token.stage, token.slot, token.shape, token.dtype)
                    posts[receiver].append(array)
        return posts

    def _look_for_cycle(self, sources: tuple[int, ...]) -> None:
        """Raise NegativeCycleError if the search can go around a negative cycle: O(m) work in this process."""
        known = np.concatenate(self.on_all(_own))
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


# The tasks of Dask: each runs on the worker it is pinned to.


def _load(attempt: str, plan: SearchPlan, ranges: list[tuple[int, int]], worker: int) -> RingAddress:
    clear_states()
    part = VertexRange(attempt, plan, ranges, worker, array_library())
    keep_state(attempt, part)
    return part.ring.address


def _begin(attempt: str, seeds: Seeds) -> None:
    state_of(attempt).begin(seeds)


def _own(attempt: str) -> np.ndarray:
    return state_of(attempt).own()


def _write(writer: BlockWriter, start: int, rows: list[tuple[list[np.ndarray], list[np.ndarray]]]) -> None:
    for name, parts in zip(("distances", "predecessors"), zip(*rows, strict=True), strict=True):
        if parts[0]:
            _, write = writer.opened(name)
            write(start, 0, np.stack([np.concatenate(of_row) for of_row in parts]))
