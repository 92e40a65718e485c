"""Super-stages of blocked Floyd-Warshall on bands of rows that pass through the workers (`gpuops.minplus.super_stage`).

Between two super-stages the matrix lies in the memory of the host, where they change it in place; or in the store, from
one slot of which every super-stage writes to the other, so that each is a commit (without commits, in place). The first
reads the weights, the last writes the result. Each worker has chunk rows of its own, which it passes after the slab.

Several workers that have the matrix in the memory of their host *share* the slab: each takes some columns of it, and
the square, through its stages, and then they give each other their parts of the panels. Elsewhere every worker takes
all of the slab through its stages itself, which needs no exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from distributed import Client, Future

from gpuops.minplus import packed_place
from gpuops.minplus.super_stage import column_parts, pivot_count
from pipelines.apsp import passing_rows
from pipelines.apsp.methods import Job
from pipelines.apsp.passing_rows import Blocks, Sent
from pipelines.apsp.schedule import Staged, relaxations, stages_of
from pipelines.apsp.windows import Windows
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.exchange import Exchange
from pipelines.workers.interruption import asked, stop_if_asked
from pipelines.workers.panels import Card, Token
from pipelines.workers.progress import Progress


class SuperStages(Staged, Exchange):
    """One life of a run out of core: super-stages and commits, for `workers.attempts.run_attempts`."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: SuperStages | None,
        job: Job,
        windows: Windows,
        writer: DistancesWriter,
        shown: Progress,
        commit_seconds: float,
    ):
        super().__init__(client, members, before, job, writer, shown, commit_seconds)
        self.windows = windows.shared_by(len(members))
        self.stages = stages_of(windows.layout, job)
        self._cards: list[Card] = []
        self.by_host = True  # the plan of a GPU has no room for arrays beside those it counts

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self._load()
        super_stages = self.windows.super_stages(self.stages, self.committed.stage)
        for number, (first, stop) in enumerate(super_stages, 1):
            if first == self.committed.stage:
                stop_if_asked()
            left = len(super_stages) - number
            following = self.windows.window(self.stages[stop][0]) if left else (0, 0)
            self.shown.stage(f"stages {first + 1} to {stop} of {len(self.stages)}")
            blocks = self.stages[first:stop]
            if left == 0:
                self.committed.make_slot(result=True)
            elif not self.windows.resident:
                self.committed.make_row_slot()
            self._super_stage(first, blocks, following, left == 0)
            self.shown.advance(relaxations(self.job, blocks))
            if left == 0:
                self.committed = self.committed.commit(self.committed.stages)
            elif not self.windows.resident:
                # Without commits on the way one slot is enough, until the result needs the other.
                if asked() or left == 1 or self.commit_seconds < math.inf:
                    self.committed = self.committed.commit(stop)
            elif self.due():
                with self.committing():
                    self.committed.make_row_slot()
                    self._all(passing_rows.save, self.committed)
                    self.committed = self.committed.commit(stop)

    @property
    def _shares(self) -> bool:
        return self.windows.sharers > 1

    def _load(self) -> None:
        """Set up the workers; if they share slabs, the matrix too, of which each then reads what others wrote."""
        self.shown.stage("loading")
        workers = len(self.members)
        first = self.results([self.submit(passing_rows.begin, 0, self.job, self.windows, 0, workers, True)])
        place = first[0][0]
        others = [
            self.submit(passing_rows.begin, w, self.job, self.windows, w, workers, place) for w in range(1, workers)
        ]
        self._cards = [card for _, card in first + self.results(others)]
        if self._shares:
            if len({card.gpu for card in self._cards}) > 1:
                raise ConnectionError("workers of different kinds cannot share the work; run again with --resume")
            self.meet(self._cards, "parts of row panels", self.shown)
            self._all(passing_rows.fill, self.committed)
        self.start(self.stages[: self.committed.stage])

    def _super_stage(self, first: int, blocks: Blocks, following: tuple[int, int], end: bool) -> None:
        """Take all rows through some stages. No row of the window changes before all workers have read it."""
        arguments = self.committed, first, blocks, following, end
        if len(self.members) == 1:
            self._all(passing_rows.pass_all, *arguments)
            return
        self._all(passing_rows.pass_slab, *arguments)
        if end and self._shares:
            self._all(passing_rows.store_slab)
        self._all(passing_rows.pass_bands, each=self._sent_parts(first, blocks))

    def _sent_parts(self, first: int, blocks: Blocks) -> list[Sent]:
        """What each worker gets of the row panels of these stages: the parts of all others, its neighbour's first."""
        if not self._shares:
            return [[] for _ in self.members]
        n, dtype, gpu, workers = self.windows.n, self.job.dtype, self._cards[0].gpu, len(self.members)
        tokens: list[list[tuple[Token, list[Any]]]] = [[] for _ in self.members]  # by owner; and as each worker gets it
        for owner, columns in enumerate(column_parts(n, workers, dtype, gpu)):
            for slot, block in enumerate(blocks):
                place = packed_place(pivot_count(self.job.pivots(block)), columns, dtype, gpu)
                shape = (place.stop - place.start,)
                token = Token(self._cards[owner], first + slot, slot, shape, "uint8", place.start)
                tokens[owner].append((token, self.sent(owner, token)))
        others = [[(worker + step) % workers for step in range(1, workers)] for worker in range(workers)]
        return [
            [(token, sent[worker]) for owner in owners for token, sent in tokens[owner]]
            for worker, owners in enumerate(others)
        ]

    def _all(self, task: Any, *arguments: Any, each: Sequence[Any] | None = None) -> None:
        """Have every worker do a task; `each` is one more argument, of which each has its own."""
        last = [()] * len(self.members) if each is None else [(own,) for own in each]
        tokens: list[Future] = [self.submit(task, w, *arguments, *own) for w, own in enumerate(last)]
        self.wait(tokens)
        self.futures = []  # Dask would remember their lineage forever
