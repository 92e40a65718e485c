"""Results computed by chunks of rows, in any order: chunks are dealt to free workers, and the store records them.

A row does not depend on other rows, so the tasks of a lost worker are done again with the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from distributed import Future

from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.interruption import stop_if_asked

AHEAD = 2  # tasks that a worker is given at a time, so that it never waits for the next
RECORD_SECONDS = 1.0  # least seconds between two records of the rows that are done
RECORD_COST = 0.05  # seconds; after a record that took k times as long, the next one waits k times `RECORD_SECONDS`


class RowChunksWriter(Protocol):
    """An unfinished store whose rows are written by chunks."""

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


class RowsInMemory:
    """Rows whose values are sent to this process, in place of a store; the first `done` rows need not be computed."""

    def __init__(self, rows: int, chunk: int, done: int = 0):
        self.rows, self.chunk = rows, chunk
        self._done = np.arange(rows) < done

    def rows_done(self) -> np.ndarray:
        """Return which rows are done, bool (rows)."""
        return self._done.copy()

    def record(self, done: np.ndarray) -> None:
        """Record which rows are done, for the next attempt."""
        self._done = done.copy()


class RowsAttempt(Attempt):
    """An attempt of a run that computes the rows of a store.

    Attributes
    ----------
    unit : name of the rows, for the user
    step : rows of a task
    amount : units of progress of a row
    """

    out: RowChunksWriter
    unit, amount = "rows", 1

    def __init__(self, run: Run, members: list[str], before: RowsAttempt | None):
        super().__init__(run, members, before)
        self.step = self.out.chunk
        self.written = self.out.rows_done()
        self._recorded, self._last, self._wait = int(self.written.sum()), time.monotonic(), RECORD_SECONDS

    def done(self) -> int:
        return int(self.written.sum())

    def where(self) -> str:
        return f"{self.done():,} of {self.out.rows:,} {self.unit}"

    def tasks_to_do(self) -> list[slice]:
        """Return the rows of each task that is not done."""
        rows = self.out.rows
        tasks = (slice(start, min(start + self.step, rows)) for start in range(0, rows, self.step))
        return [task for task in tasks if not self.written[task].all()]

    def note_written(self, task: slice) -> None:
        """Note that the rows of a task are written."""
        rows = self.written[task]
        self.bar.advance((len(rows) - int(rows.sum())) * self.amount)
        rows[:] = True
        if time.monotonic() - self._last > self._wait:
            self.record()

    def record(self) -> None:
        """Record in the store which rows are done, if there are more than at the last record."""
        if self.done() > self._recorded:
            begin = time.monotonic()
            self._recorded = self.done()  # if the disk fails, it is not asked again: rows may be lost
            self.out.record(self.written)
            self._last = time.monotonic()
            self._wait = RECORD_SECONDS * max(1.0, (self._last - begin) / RECORD_COST)


@dataclass(frozen=True, eq=False)
class RowTasks:
    """The tasks of a run that computes rows in any order.

    Attributes
    ----------
    kind, unit, amount : as for `Attempt` and `RowsAttempt`
    load : the task that prepares a worker, and its arguments after the name of the attempt
    work : function of some rows; returns the task that computes these rows, and its arguments
    receive : takes the first row and the result of each task that has ended; None if tasks write their rows themselves
    stage : name of the work, for the user
    chunks : number of chunks of a task
    ahead : tasks that a worker is given at a time
    """

    kind: str
    load: tuple[Any, ...]
    work: Callable[[slice], tuple[Any, ...]]
    receive: Callable[[int, Any], None] | None = None
    unit: str = "rows"
    stage: str = "searching"
    amount: int = 1
    chunks: int = 1
    ahead: int = AHEAD


class DealtRows(RowsAttempt):
    """An attempt that deals tasks to the workers: a worker that is free gets the next task."""

    def __init__(self, run: Run, members: list[str], before: DealtRows | None, tasks: RowTasks):
        self.kind, self.unit, self.amount, self.tasks = tasks.kind, tasks.unit, tasks.amount, tasks
        super().__init__(run, members, before)
        self.step = tasks.chunks * self.out.chunk

    def run(self) -> None:
        left = self.tasks_to_do()[::-1]
        if not left:
            return
        self.bar.stage("loading")
        workers = range(min(len(self.members), len(left)))
        load, *arguments = self.tasks.load
        self.wait([self.submit(load, worker, *arguments) for worker in workers])
        self.bar.start(self.done() * self.amount)
        self.bar.stage(self.tasks.stage)
        running: dict[Future, tuple[int, slice]] = {}

        def give(worker: int) -> None:
            if left:
                rows = left.pop()
                task, *arguments = self.tasks.work(rows)
                running[self.submit(task, worker, *arguments)] = worker, rows

        for _ in range(self.tasks.ahead):
            for worker in workers:
                give(worker)
        try:
            while running:
                stop_if_asked()
                ended = {}
                for future in self.wait_any(set(running)):
                    worker, ended[future] = running.pop(future)
                    give(worker)
                self._receive(ended)
                for future, rows in ended.items():
                    self.futures.remove(future)
                    self.note_written(rows)
        finally:
            self.record()

    def _receive(self, ended: dict[Future, slice]) -> None:
        """Take the results of tasks that have ended; none is kept while the next tasks run."""
        if self.tasks.receive is not None:
            for rows, result in zip(ended.values(), self.results(list(ended)), strict=True):
                self.tasks.receive(rows.start, result)
