"""The stages of blocked Floyd-Warshall on rows that stay on the workers (`pipelines.apsp.resident_rows`)."""

from __future__ import annotations

import numpy as np
from distributed import Client, Future

from pipelines.apsp import resident_rows
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

WINDOW = 3  # stages in flight: enough to hide the scheduler, few enough to bound the panels in memory
LAST = 3  # stages that one GPU does band by band, whose panels it keeps: bands are written while others are computed
REACH = WINDOW + 2  # stages until a slot is written again: that of k + 1 is while k - 2 .. k are read, and one to spare


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

    together = LAST if len(facts) == 1 and facts[0].gpu else 1  # the cores of a CPU have enough to do

    def begin(members: list[str], before: Stages | None) -> Stages:
        return Stages(client, members[: len(facts)], before, job, writer, shown, commit_seconds, together)

    run_attempts(client, [fact.address for fact in facts], begin, shown)


class Stages(Staged, Exchange):
    """One life of the resident state: load, stages, commits. Its futures die with it.

    A worker alone may do the last stages `together`, without a commit between them.
    """

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: Stages | None,
        job: Job,
        writer: DistancesWriter,
        shown: Progress,
        commit_seconds: float,
        together: int = 1,
    ):
        super().__init__(client, members, before, job, writer, shown, commit_seconds)
        self.together = together
        self.layout = make_layout(writer.n, len(members), writer.dtype.itemsize, writer.options["block"])
        # The bands of a resumed run follow the chunks of its store, whatever the number of workers then was.
        self.layout = Layout(writer.n, self.layout.block, writer.chunk, len(members))
        self.stages = stages_of(self.layout, job)
        self.slots, self.rings = _deal(self.layout, job)

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self.shown.stage("loading")
        workers = range(len(self.members))
        loads = [
            self.submit(resident_rows.load, w, self.committed, self.layout, w, self.rings[w], self.job) for w in workers
        ]
        cards, halves = zip(*self.results(loads), strict=True)
        self.meet(cards, "pivot rows", self.shown)
        if any(halves):
            self.shown.note("undirected, with integer weights: half of the work, by symmetry")
        tokens = [self.submit(resident_rows.token, w) for w in workers]
        self.start(self.stages[: self.committed.stage])

        panel: list[Future] = []  # of the stage to come, if its pivot ran ahead: as each worker gets it
        flights: list[tuple[int, int, list[Future]]] = []
        written = False
        for first, stop in self._steps(any(halves)):
            if first == self.committed.stage:
                stop_if_asked()
            end = stop == len(self.stages)
            due = self.due() and not end
            if end and self.committed.sources is None:
                self.committed.make_slot(result=True)
                written = True
            tokens, panel = self._stage(first, stop, tokens, panel, due or end, written)
            flights.append((first, stop, tokens))
            if len(flights) == WINDOW:
                self._land(flights)
            if due:
                while flights:
                    self._land(flights)
                with self.committing():
                    self._commit(stop)
                    # Futures from before the commit are released: Dask would remember their lineage forever.
                    tokens, self.futures = [self.submit(resident_rows.token, w) for w in workers], []
        while flights:
            self._land(flights)
        self.shown.stage("writing the result")
        if written:
            self.committed = self.committed.commit(len(self.stages) + 1)
        else:
            self._commit(len(self.stages) + 1)

    def _steps(self, half: bool) -> list[tuple[int, int]]:
        """The stages (first, stop) of each step that is left: one, and the last ones together if all rows are written
        and none by symmetry."""
        done, stages = self.committed.stage, len(self.stages)
        together = self.together if self.committed.sources is None and not half else 1
        last = max(done, stages - together)
        return [*((k, k + 1) for k in range(done, last)), *([(last, stages)] if last < stages else [])]

    def _stage(
        self, k: int, stop: int, tokens: list[Future], panel: list[Future], last: bool, write: bool
    ) -> tuple[list[Future], list[Future]]:
        """Submit stage k after the tasks of `tokens`; returns its tokens and, if looking ahead, the next stage's panel.

        With `write`, the last stage of all, or the last ones until `stop`, bands are written as they are done.

        The `last` stage before a commit, or of all, does not look ahead, and neither does one worker alone: a pivot
        closed twice may round otherwise than one closed once.
        """
        if stop > k + 1:
            blocks = self.stages[k:stop]
            return [self.submit(resident_rows.relax_last_and_save, 0, blocks, self.committed, tokens[0])], []
        block, following, following_panel = self.stages[k], None, []
        if not panel:
            owner = self.layout.owner(block[0])
            panel = self.sent(
                owner,
                self.submit(
                    resident_rows.pivot, owner, k, self.slots[k], block, None, None, tokens[owner], priority=10
                ),
            )
        if not last and len(self.members) > 1:
            following = self.stages[k + 1]
            owner = self.layout.owner(following[0])
            ahead = self.submit(
                resident_rows.pivot,
                owner,
                k + 1,
                self.slots[k + 1],
                following,
                block,
                panel[owner],
                tokens[owner],
                priority=10,
            )
            following_panel = self.sent(owner, ahead)
            tokens = [ahead if w == owner else token for w, token in enumerate(tokens)]
        if write:
            return [
                self.submit(resident_rows.relax_and_save, w, block, panel[w], self.committed, token)
                for w, token in enumerate(tokens)
            ], []
        after = [
            self.submit(resident_rows.relax, w, block, following, last, panel[w], token)
            for w, token in enumerate(tokens)
        ]
        return after, following_panel

    def _land(self, flights: list[tuple[int, int, list[Future]]]) -> None:
        """Wait for the oldest step in flight."""
        first, stop, tokens = flights.pop(0)
        self.shown.stage(f"stage {stop} of {len(self.stages)}")
        self.wait(tokens)
        self.shown.advance(relaxations(self.job, self.stages[first:stop]))
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
