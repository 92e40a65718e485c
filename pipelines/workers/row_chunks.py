"""A result computed by chunks of rows in any order: which are done, their record in the store, and who does the next.

A row does not depend on any other, so the tasks of a lost worker are done again with the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from distributed import Client, Future

from pipelines.workers.attempts import Attempt, wait_any
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.progress import Progress

IN_HAND = 2  # tasks a worker has at a time: it never waits for the next
RECORD_SECONDS = 1.0  # at least this long between two records of what is done


class RowChunksWriter(Protocol):
    """A store being written, whose rows are written by chunks."""

    @property
    def run_id(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def chunk(self) -> int: ...

    def rows_done(self) -> np.ndarray:
        """bool (rows)"""

    def record(self, done: np.ndarray) -> None: ...


def together(out: RowChunksWriter, most: int, workers: int) -> int:
    """Chunks of a task: at most so many, and some tasks for every worker."""
    return max(1, min(most, out.rows // (2 * workers * out.chunk)))


class RowsAttempt(Attempt):
    """An attempt, for `workers.attempts.run_attempts`, that does rows of `out`.

    `unit` is what they are called, `work` what is done to them; a task does `together` chunks. A row is `amount` units
    of the progress, and a worker has `in_hand` tasks at a time.
    """

    unit, work, together, amount, in_hand = "rows", "searching", 1, 1, IN_HAND

    def __init__(
        self,
        client: Client,
        members: list[str],
        kind: str,
        before: RowsAttempt | None,
        out: RowChunksWriter,
        shown: Progress,
    ):
        super().__init__(client, members, kind, out.run_id[:8], before)
        self.out, self.shown = out, shown
        self.whole = out.rows_done()
        self._recorded, self._last = int(self.whole.sum()), time.monotonic()

    def run(self) -> None:
        """Do all rows that are not done."""
        raise NotImplementedError

    def done(self) -> int:
        return int(self.whole.sum())

    def where(self) -> str:
        return f"{self.done():,} of {self.out.rows:,} {self.unit}"

    @property
    def step(self) -> int:
        """Rows of a task."""
        return self.together * self.out.chunk

    def tasks_to_do(self) -> list[int]:
        """The first rows of the tasks that are not done."""
        return [
            start for start in range(0, self.out.rows, self.step) if not self.whole[start : start + self.step].all()
        ]

    def receive(self, tasks: dict[int, Future]) -> None:
        """Take the results of tasks that have ended, by their first rows.

        By default there are none, as tasks write their rows themselves.
        """

    def land(self, start: int) -> None:
        """The rows of the task from row `start` are written."""
        rows = self.whole[start : start + self.step]
        self.shown.advance((len(rows) - int(rows.sum())) * self.amount)
        rows[:] = True
        if time.monotonic() - self._last > RECORD_SECONDS:
            self.record()

    def record(self) -> None:
        """Record what is done, if that has changed."""
        if self.done() > self._recorded:
            self.out.record(self.whole)
            self._recorded, self._last = self.done(), time.monotonic()

    def deal(self, load: Callable[[int], Future], work: Callable[[int, int], Future]) -> None:
        """Deal out what is to do: `load` prepares a worker, `work` does a task; a free worker gets the next."""
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
                landed, _ = wait_any(self.client, set(flying), self.members)
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
