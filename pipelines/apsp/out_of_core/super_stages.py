"""Super-stages of blocked Floyd-Warshall on bands of rows that pass through the workers (`gpuops.minplus.super_stage`).

Between two super-stages the matrix lies in the memory of the host or in the store. In memory, super-stages change it in
place. In the store, every super-stage reads one slot and writes the other, so that each super-stage is a commit;
without commits, it changes one slot in place. The first super-stage reads the weights, the last writes the result. Each
worker owns some chunk rows, and takes them through the stages after the slab.

Several workers that have the matrix in the memory of their host *share* the slab: each worker takes some columns of the
slab, and the square (the columns of the window's own vertices), through its stages; then the workers exchange their
parts of the panels. Otherwise every worker takes the whole slab through its stages, without any exchange.
"""

from __future__ import annotations

import math

from gpuops.minplus import packed_place
from gpuops.minplus.super_stage import column_parts, pivot_count
from pipelines.apsp import stage_graph
from pipelines.apsp.commits import Staged
from pipelines.apsp.layout import Windows
from pipelines.apsp.methods import Request
from pipelines.apsp.out_of_core import passing_rows
from pipelines.workers.attempts import Run
from pipelines.workers.exchange import Exchange
from pipelines.workers.executors import Executor, choose_executor
from pipelines.workers.interruption import asked, stop_if_asked


class SuperStages(Staged):
    """An attempt at Floyd-Warshall out of core: super-stages and commits."""

    def __init__(self, run: Run, members: list[str], before: SuperStages | None, request: Request, windows: Windows):
        super().__init__(run, members, before, request)
        self.windows = windows.shared_by(len(members))
        self.stages = self.job.stages(windows.layout)

    def run(self) -> None:
        """Do all super-stages after the last commit; the last one writes the result."""
        if self.committed.stage == self.committed.stages:
            return
        executor, gpu = self._load()
        graph = stage_graph.SuperStages(len(self.members))
        super_stages = self.windows.super_stages(self.stages, self.committed.stage)
        for number, (first, stop) in enumerate(super_stages, 1):
            if first == self.committed.stage:
                stop_if_asked()
            left = len(super_stages) - number
            self.bar.stage(self.named(first, stop if left else self.committed.stages))
            blocks = self.stages[first:stop]
            if left == 0:
                self.committed.make_result()
            elif not self.windows.resident:
                self.committed.make_row_checkpoint()
            graph.super_stage(first, self._parts(blocks, gpu), end=left == 0)
            executor.submit(graph.segment())
            executor.wait_all()
            self.bar.advance(self.job.relaxations(blocks))
            if left == 0:
                self.committed = self.committed.commit(self.committed.stages)
            elif not self.windows.resident:
                # Without commits before the end one slot is enough: it is committed only before the result is written.
                if asked() or left == 1 or self.commit_seconds < math.inf:
                    self._commit(stop)
            elif self.due():
                with self.clock.committing():
                    self.committed.make_row_checkpoint()
                    self.on_all(passing_rows.save)
                    self._commit(stop)

    def _load(self) -> tuple[Executor, bool]:
        """Set up the workers; returns the executor, and whether the workers have GPUs.

        If workers share slabs, the matrix is filled first, as each worker reads rows of other workers.
        """
        self.bar.stage("loading")
        workers = len(self.members)
        setup = self.committed, self.job, self.windows
        first = self.results([self.submit(passing_rows.begin, 0, *setup, 0, workers, True)])
        handle = first[0][0]
        others = [self.submit(passing_rows.begin, w, *setup, w, workers, handle) for w in range(1, workers)]
        addresses = [address for _, address in first + self.results(others)]
        shares = self.windows.sharers > 1
        if shares and len({address.gpu for address in addresses}) > 1:
            raise ConnectionError("workers of different kinds cannot share the work; run again with resume (--resume)")
        exchange = Exchange(self, addresses, "parts of row panels")
        if shares:
            self.on_all(passing_rows.fill)
        self.start(self.stages[: self.committed.stage])
        return choose_executor(exchange, "super-stages", ahead=1, hidden=True), addresses[0].gpu

    def _parts(self, blocks: list[tuple[int, int]], gpu: bool) -> list[list[slice]]:
        """Return, by worker and block, where the worker's part of a row panel lies in its slot; empty if not shared."""
        if self.windows.sharers == 1:
            return []
        n, dtype, pivots = self.windows.n, self.job.dtype, [pivot_count(self.job.pivots(block)) for block in blocks]
        return [
            [packed_place(count, columns, dtype, gpu) for count in pivots]
            for columns in column_parts(n, len(self.members), dtype, gpu)
        ]

    def _commit(self, stage: int) -> None:
        self.committed = self.committed.commit(stage)
        self.on_all(passing_rows.go_on_from, self.committed)
