"""The stages of blocked Floyd-Warshall on rows that stay on the workers (`pipelines.apsp.in_memory.resident_rows`).

The driver adds stages to the stage graph (`pipelines.apsp.stage_graph`), a segment at a time, and gives each segment to
an executor (`pipelines.workers.executors`). Before each segment the driver looks at the commit clock and at Ctrl-C, and
decides whether a commit follows the segment.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

import numpy as np
from distributed import Client

from pipelines.apsp.commits import Staged
from pipelines.apsp.in_memory import resident_rows
from pipelines.apsp.in_memory.plan import WINDOW, deal_panels, estimate, scheduler_hides
from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Estimate, Method, Request
from pipelines.apsp.stage_graph import DOUBLY, INDEPENDENT, SINGLY, FloydWarshall
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Run
from pipelines.workers.exchange import Exchange
from pipelines.workers.executors import ByScheduler, BySignals, Executor, choose_executor
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.progress import Progress

SECONDS = 0.5  # seconds that the stages of a segment take by signals; a single stage may take longer


class Stages(Staged):
    """An attempt at Floyd-Warshall in memory: load the rows, do the stages, commit."""

    def __init__(self, run: Run, members: list[str], before: Stages | None, request: Request):
        super().__init__(run, members[: len(request.facts)], before, request)
        writer = self.committed
        self.layout = make_layout(writer.n, len(self.members), writer.dtype.itemsize, writer.options["block"])
        # The bands of a resumed run follow the chunks of its store, however many workers began it.
        self.layout = Layout(writer.n, self.layout.block, writer.chunk, len(self.members))
        self.stages = self.job.stages(self.layout)
        self.slots, self.rings = deal_panels(self.layout, self.job)
        self.rate = max(1.0, sum(fact.rate for fact in request.facts))
        self.coordination = request.coordination

    def run(self) -> None:
        """Do all stages after the last commit, and write the result."""
        if self.committed.stage == self.committed.stages:
            return
        executor, graph = self._load()
        under_way: deque[tuple[int, int]] = deque()
        kinds: Counter[str] = Counter()
        at_once = max(1, int(SECONDS / self._seconds)) if isinstance(executor, BySignals) else 1
        k, end = self.committed.stage, len(self.stages)
        writes = self.committed.sources is None and k < end  # bands of the result are written during the last stage
        while k < end:
            if k == self.committed.stage:
                stop_if_asked()
            due = k + 1 < end and self.due(sum(stop - start for start, stop in under_way) * self._seconds)
            stop = k + 1 if due else min(k + at_once, end)
            for stage in range(k, stop):
                last = (due or stop == end) and stage + 1 == stop
                graph.stage(stage, last, update=not (writes and stage + 1 == end))
            segment = graph.segment()
            kinds.update(placed.task.kind for placed in segment)
            executor.submit(segment)
            under_way.append((k, stop))
            k = stop
            if writes and k == end:
                self.committed.make_result()  # while the workers compute
            while len(under_way) >= (1 if due or k == end else executor.ahead):
                self._wait_oldest(executor, *under_way.popleft())
            if due or k == end:
                executor.wait_all()
            if due:
                with self.clock.committing():
                    self._commit(k)
        if isinstance(executor, ByScheduler):
            counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in (INDEPENDENT, SINGLY, DOUBLY))
            self.bar.note(f"tasks of the scheduler: {counts}")
        self.bar.stage("writing the result")
        if writes:
            self._write(executor.exchange, graph)
        self._commit(end + 1, written=writes)

    @property
    def _seconds(self) -> float:
        """The time that a stage is expected to take."""
        return self.layout.n**2 * self.layout.block / self.rate

    def _load(self) -> tuple[Executor, FloydWarshall]:
        """Load the rows, have the workers map each other's memory, and choose the executor."""
        self.bar.stage("loading")
        same = self.committed, self.job, self.layout, self.slots
        addresses, halves = zip(*self.on_all(resident_rows.load, *same, each=list(enumerate(self.rings))), strict=True)
        exchange = Exchange(self, addresses, "pivot rows")
        if any(halves):
            self.bar.note("undirected, with integer weights: half of the work, by symmetry")
        gpu, itemsize = addresses[0].gpu, self.job.dtype.itemsize
        hidden = scheduler_hides(self.layout, itemsize, self.rate / len(addresses), gpu, exchange.mapped)
        how = self.coordination, hidden, self._seconds
        executor = choose_executor(exchange, "stages", WINDOW, *how)
        self.start(self.stages[: self.committed.stage])
        owners = [self.layout.owner(start) for start, _ in self.stages]
        shapes = [(int(self.job.through[start:stop].sum()), self.layout.n) for start, stop in self.stages]
        graph = FloydWarshall(owners, self.slots, shapes, self.job.dtype.str, len(addresses), gpu)
        return executor, graph

    def _wait_oldest(self, executor: Executor, start: int, stop: int) -> None:
        """Wait for the oldest segment under way, which has the stages `start` to `stop` (excluded)."""
        self.bar.stage(self.named(start, start + 1))
        executor.wait_oldest()
        self.bar.advance(self.job.relaxations(self.stages[start:stop]))

    def _write(self, exchange: Exchange, graph: FloydWarshall) -> None:
        """Do the last doubly dependent update, and write the result of each band while the next band is updated."""
        stage = len(self.stages) - 1
        workers = range(len(self.members))
        sent = exchange.sent(workers, graph.panel(stage))
        self.on_all(resident_rows.write, stage, each=[(sent[worker], self.committed) for worker in workers])

    def _commit(self, stage: int, written: bool = False) -> None:
        """Commit the state or, at the last stage, the result; write it first, unless it is `written` already."""
        result = stage == self.committed.stages
        if not written:
            (self.committed.make_result if result else self.committed.make_checkpoint)()
        if result and self.committed.sources is not None:
            self._write_sources()
        elif not written:
            self.on_all(resident_rows.save, self.committed, result)
        self.committed = self.committed.commit(stage)

    def _write_sources(self) -> None:
        """Collect the rows of the sources in whole chunks of the result; each chunk is written by one worker."""
        sources = np.asarray(self.committed.sources)
        owners = np.array([self.layout.owner(int(s)) for s in sources])
        writes = []
        for start in range(0, len(sources), self.committed.chunk):
            part = slice(start, start + self.committed.chunk)
            pieces, places = [], []
            for w in np.unique(owners[part]):
                at = np.flatnonzero(owners[part] == w)
                places.append(at)
                pieces.append(self.submit(resident_rows.rows_of, int(w), sources[part][at].tolist()))
            w = start // self.committed.chunk % len(self.members)
            writes.append(
                self.submit(resident_rows.write_pieces, w, self.committed, start, pieces, places, stateless=True)
            )
        self.wait(writes)


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, bar: Progress) -> None:
    """Run the stages that are not done."""
    request = replace(request, facts=request.facts[: estimate.plan.layout.workers])
    Run(client, [fact.address for fact in request.facts], writer, bar).attempts(Stages, request)


FLOYD_WARSHALL = Method("floyd-warshall", "Floyd-Warshall", "Floyd-Warshall", estimate, execute)
