"""The stages of blocked Floyd-Warshall on rows that stay on the workers (`pipelines.apsp.resident_rows`).

Where all workers can map each other's memory they get a *stretch* of stages at a time and go through it by signals
(`pipelines.apsp.stretches`). Elsewhere every stage is tasks of its own, which wait for each other by way of Dask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from distributed import Client, Future

from pipelines.apsp import resident_rows, stretches
from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Job
from pipelines.apsp.schedule import Staged, relaxations, stages_of
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import run_attempts
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.exchange import Exchange
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.panels import deal_slots
from pipelines.workers.progress import Progress
from pipelines.workers.signals import patience

WINDOW = 3  # stages in flight, by way of Dask: enough to hide the scheduler, few enough to bound the panels in memory
REACH = WINDOW + 2  # stages until a slot is written again: that of k + 1 is while k - 2 .. k are read, and one to spare
SECONDS = 0.5  # of a stretch, or one stage
IN_FLIGHT = 2  # stretches in flight at a time, so that no worker waits for the driver


def ring_sizes(layout: Layout, job: Job) -> list[int]:
    """How many row panels each worker's ring holds."""
    return _deal(layout, job)[1]


def _deal(layout: Layout, job: Job) -> tuple[list[int], list[int]]:
    owners = [layout.owner(start) for start, _ in stages_of(layout, job)]
    return deal_slots(owners, layout.workers, REACH if layout.workers > 1 else 1)


def run_stages(
    client: Client, job: Job, writer: DistancesWriter, shown: Progress, facts: list[WorkerFacts], commit_seconds: float
) -> None:
    """Run attempts until the result is committed; a new one begins whenever the workers change."""

    def begin(members: list[str], before: Stages | None) -> Stages:
        return Stages(client, members[: len(facts)], before, job, writer, shown, commit_seconds, facts)

    run_attempts(client, [fact.address for fact in facts], begin, shown)


class _Flight(NamedTuple):
    """Stages that were submitted together: `start` to `stop`, and the tasks that end them."""

    start: int
    stop: int
    last: bool
    written: bool
    tokens: list[Future]


class Stages(Staged, Exchange):
    """One life of the resident state: load, stages, commits. Its futures die with it."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: Stages | None,
        job: Job,
        writer: DistancesWriter,
        shown: Progress,
        commit_seconds: float,
        facts: Sequence[WorkerFacts],
    ):
        super().__init__(client, members, before, job, writer, shown, commit_seconds)
        self.layout = make_layout(writer.n, len(members), writer.dtype.itemsize, writer.options["block"])
        # The bands of a resumed run follow the chunks of its store, whatever the number of workers then was.
        self.layout = Layout(writer.n, self.layout.block, writer.chunk, len(members))
        self.stages = stages_of(self.layout, job)
        self.slots, self.rings = _deal(self.layout, job)
        self._seconds = self.layout.n**2 * self.layout.block / max(1.0, sum(fact.rate for fact in facts))  # of a stage
        self._signalled = False  # whether workers get stretches of stages, and wait for signals of each other

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self._load()
        tokens = self._tokens()
        panel: list[Future] = []  # of the stage to come, if its pivot ran ahead: as each worker gets it
        flights: list[_Flight] = []
        written, k = False, self.committed.stage
        while k < len(self.stages):
            if k == self.committed.stage:
                stop_if_asked()
            due = self.due() and k + 1 < len(self.stages)
            stop = k + 1 if due or not self._signalled else min(k + self._stretch, len(self.stages))
            last = due or stop == len(self.stages)
            if stop == len(self.stages) and self.committed.sources is None:
                self.committed.make_slot(result=True)
                written = True
            if self._signalled:
                tokens = self._relax_stages(stop, tokens, last, written)
            else:
                tokens, panel = self._stage(k, tokens, panel, last, written)
            flights.append(_Flight(k, stop, last, written, tokens))
            k = stop
            if len(flights) == (IN_FLIGHT if self._signalled else WINDOW):
                self._land(flights)
            if due:
                while flights:
                    self._land(flights)
                with self.committing():
                    self._commit(k)
                    # Futures from before the commit are released: Dask would remember their lineage forever.
                    tokens, self.futures = self._tokens(), []
        while flights:
            self._land(flights)
        self.shown.stage("writing the result")
        if written:
            self.committed = self.committed.commit(len(self.stages) + 1)
        else:
            self._commit(len(self.stages) + 1)

    @property
    def _stretch(self) -> int:
        """How many stages a worker gets as one task."""
        return max(1, int(SECONDS / self._seconds))

    def _load(self) -> None:
        """Load the rows, and have the workers map each other's memory."""
        self.shown.stage("loading")
        workers = range(len(self.members))
        loads = [
            self.submit(resident_rows.load, w, self.committed, self.layout, w, self.slots, self.rings[w], self.job)
            for w in workers
        ]
        cards, signals, halves = zip(*self.results(loads), strict=True)
        self.meet(cards, "pivot rows", self.shown)
        self._signalled = len(cards) == 1 or self.meet_signals(cards, signals, "stages", self.shown)
        if any(halves):
            self.shown.note("undirected, with integer weights: half of the work, by symmetry")
        self.start(self.stages[: self.committed.stage])

    def _tokens(self) -> list[Future]:
        """Tokens that depend on nothing."""
        return [self.submit(resident_rows.token, w) for w in range(len(self.members))]

    def _relax_stages(self, stop: int, tokens: list[Future], last: bool, write: bool) -> list[Future]:
        """Submit the stages before `stop`: one task for each worker, after those of `tokens`."""
        writer, limit = self.committed if write else None, patience(self._seconds)
        return [
            self.submit(stretches.relax_stages, w, stop, last, writer, limit, token) for w, token in enumerate(tokens)
        ]

    def _stage(
        self, k: int, tokens: list[Future], panel: list[Future], last: bool, write: bool
    ) -> tuple[list[Future], list[Future]]:
        """Submit stage k by way of Dask, after the tasks of `tokens`.

        Returns its tokens and, if looking ahead, the next stage's panel. With `write`, the last stage of all, bands are
        written as they are done.

        The `last` stage before a commit, or of all, does not look ahead, and neither does one worker alone: a pivot
        closed twice may round otherwise than one closed once.
        """
        following_panel: list[Future] = []
        if not panel:
            owner = self.layout.owner(self.stages[k][0])
            panel = self.sent(owner, self.submit(resident_rows.pivot, owner, k, None, tokens[owner], priority=10))
        if not last:
            owner = self.layout.owner(self.stages[k + 1][0])
            ahead = self.submit(resident_rows.pivot, owner, k + 1, panel[owner], tokens[owner], priority=10)
            following_panel = self.sent(owner, ahead)
            tokens = [ahead if w == owner else token for w, token in enumerate(tokens)]
        if write:
            return [
                self.submit(resident_rows.relax_and_save, w, k, panel[w], self.committed, token)
                for w, token in enumerate(tokens)
            ], []
        after = [
            self.submit(resident_rows.relax, w, k, not last, last, panel[w], token) for w, token in enumerate(tokens)
        ]
        return after, following_panel

    def _land(self, flights: list[_Flight]) -> None:
        """Wait for the oldest stages in flight."""
        start, stop, last, written, tokens = flights.pop(0)
        self.shown.stage(f"stage {start + 1} of {len(self.stages)}")
        self.wait(tokens)
        # A worker that waited too long goes on with the next stretch it has, or gets the same one again.
        while self._signalled and not flights and min(self.results(tokens)) < stop:
            tokens = self._relax_stages(stop, tokens, last, written)
        self.shown.advance(relaxations(self.job, self.stages[start:stop]))
        self.drop_done()

    def _commit(self, stage: int) -> None:
        """Write the state, or the result at the last stage, to the free slot and name it."""
        result = stage == self.committed.stages
        self.committed.make_slot(result=result)
        if result and self.committed.sources is not None:
            self._write_sources()
        else:
            self.wait([self.submit(resident_rows.save, w, self.committed, result) for w in range(len(self.members))])
        self.committed = self.committed.commit(stage)

    def _write_sources(self) -> None:
        """Collect the rows of the sources by whole chunks of the result, each written by one worker."""
        sources = np.asarray(self.committed.sources)
        owners = np.array([self.layout.owner(int(s)) for s in sources])
        writes = []
        for start in range(0, len(sources), self.committed.chunk):
            part = slice(start, start + self.committed.chunk)
            pieces, places = [], []
            for w in np.unique(owners[part]):
                at = np.flatnonzero(owners[part] == w)
                places.append(at)
                pieces.append(self.submit(resident_rows.rows_of, int(w), sources[part][at].tolist(), self.committed))
            w = start // self.committed.chunk % len(self.members)
            writes.append(
                self.submit(resident_rows.write_pieces, w, self.committed, start, pieces, places, stateless=True)
            )
        self.wait(writes)
