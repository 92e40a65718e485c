"""Results computed by chunks of rows, in any order: chunks are dealt to free workers, and the store records them.

A row does not depend on other rows, so the tasks of a lost worker are done again with the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from distributed import Future

from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.interruption import stop_if_asked

IN_HAND = 2  # tasks that a worker is given at a time, so that it never waits for the next
RECORD_SECONDS = 1.0  # least seconds between two records of the rows that are done
RECORD_COST = 0.05  # seconds; after a record that took k times as long, the next one waits k times `RECORD_SECONDS`


class RowChunksWriter(Protocol):
    """An unfinished store whose rows are written by chunks."""

    @property
    def run_id(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def chunk(self) -> int: ...

    def rows_done(self) -> np.ndarray:
        """Return which rows are done, bool (rows)."""

    def record(self, done: np.ndarray) -> None: ...


def chunks_of_task(out: RowChunksWriter, most: int, workers: int) -> int:
    """Return the number of chunks of a task: at most `most`, and few enough that every worker gets about two tasks."""
    return max(1, min(most, out.rows // (2 * workers * out.chunk)))


class RowsAttempt(Attempt):
    """An attempt of a run that computes the rows of a store.

    Attributes
    ----------
    kind : beginning of the keys of its tasks
    unit, work : names of the rows and of the work on them, for the user
    together : chunks of a task
    amount : units of progress of a row
    in_hand : tasks that a worker is given at a time
    """

    out: RowChunksWriter
    kind, unit, work, together, amount, in_hand = "rows", "rows", "searching", 1, 1, IN_HAND

    def __init__(self, run: Run, members: list[str], before: RowsAttempt | None):
        super().__init__(run.client, members, self.kind, run.out.run_id[:8], before)
        self.out, self.shown = run.out, run.shown
        self.whole = self.out.rows_done()
        self._recorded, self._last, self._wait = int(self.whole.sum()), time.monotonic(), RECORD_SECONDS

    def done(self) -> int:
        return int(self.whole.sum())

    def where(self) -> str:
        return f"{self.done():,} of {self.out.rows:,} {self.unit}"

    @property
    def step(self) -> int:
        """The number of rows of a task."""
        return self.together * self.out.chunk

    def tasks_to_do(self) -> list[int]:
        """Return the first row of each task that is not done."""
        return [
            start for start in range(0, self.out.rows, self.step) if not self.whole[start : start + self.step].all()
        ]

    def receive(self, tasks: dict[int, Future]) -> None:
        """Take the results of tasks that have ended, by the first row of each task.

        By default there are no results to take, as tasks write their rows themselves.
        """

    def land(self, start: int) -> None:
        """Note that the rows of the task from row `start` on are written."""
        rows = self.whole[start : start + self.step]
        self.shown.advance((len(rows) - int(rows.sum())) * self.amount)
        rows[:] = True
        if time.monotonic() - self._last > self._wait:
            self.record()

    def record(self) -> None:
        """Record in the store which rows are done, if there are more than at the last record."""
        if self.done() > self._recorded:
            begin = time.monotonic()
            self._recorded = self.done()  # if the disk fails, it is not asked again: rows may be lost
            self.out.record(self.whole)
            self._last = time.monotonic()
            self._wait = RECORD_SECONDS * max(1.0, (self._last - begin) / RECORD_COST)

    def deal(self, load: Callable[[int], Future], work: Callable[[int, int], Future]) -> None:
        """Deal the tasks that are not done to the workers; a worker that is free gets the next task.

        Parameters
        ----------
        load : submits the task that prepares a worker
        work : submits to a worker the task that begins with a row
        """
        left = self.tasks_to_do()[::-1]
        if not left:
            return
        self.shown.stage("loading")
        workers = range(min(len(self.members), len(left)))
        self.wait([load(worker) for worker in workers])
        self.shown.start(self.done() * self.amount)
        self.shown.stage(self.work)
        flying: dict[Future, tuple[int, int]] = {}

        def give(worker: int) -> None:
            if left:
                start = left.pop()
                flying[work(worker, start)] = worker, start

        for _ in range(self.in_hand):
            for worker in workers:
                give(worker)
        try:
            while flying:
                stop_if_asked()
                landed = self.wait_any(set(flying))
                ended = {}
                for future in landed:
                    worker, start = flying.pop(future)
                    ended[start] = future
                    give(worker)
                self.receive(ended)
                for start, future in ended.items():
                    self.futures.remove(future)
                    self.land(start)
        finally:
            self.record()
