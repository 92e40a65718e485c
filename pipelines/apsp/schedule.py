"""The stages of a run, how many relaxations they are, and when the next commit is due."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from distributed import Client

from pipelines.apsp.layout import Layout
from pipelines.apsp.methods import Job
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Attempt
from pipelines.workers.interruption import asked
from pipelines.workers.progress import Progress

COMMIT_SECONDS = 60.0  # at least this long between two commits by default,
COMMIT_SHARE = 0.05  # and at most this share of the time spent in them


def stages_of(layout: Layout, job: Job) -> list[tuple[int, int]]:
    """The pivot blocks that hold a vertex which may lie inside a path."""
    return [(start, stop) for start, stop in layout.blocks() if job.through[start:stop].any()]


def relaxations(job: Job, stages: Sequence[tuple[int, int]]) -> int:
    """Relaxations of some stages."""
    return job.graph.n**2 * sum(int(job.through[start:stop].sum()) for start, stop in stages)


def relaxations_done(layout: Layout, job: Job, writer: DistancesWriter | None) -> int:
    """Relaxations that the commits of `writer` have behind them."""
    return 0 if writer is None else relaxations(job, stages_of(layout, job)[: writer.stage])


class Staged(Attempt):
    """An attempt at the stages of a run, of which some are committed.

    Parameters
    ----------
    before : the attempt before this one, None at first
    writer : the store as the run found it
    commit_seconds : least time between two commits
    """

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: Staged | None,
        job: Job,
        writer: DistancesWriter,
        shown: Progress,
        commit_seconds: float,
    ):
        super().__init__(client, members, "apsp", writer.run_id[:8], before)
        self.job, self.shown, self.commit_seconds = job, shown, commit_seconds
        self.committed: DistancesWriter = writer if before is None else before.committed
        self._last, self._cost = 0.0, 0.0  # when the last commit ended, and how long it took

    def done(self) -> int:
        return self.committed.stage

    def where(self) -> str:
        return f"stage {self.committed.stage} of {self.committed.stages}"

    def start(self, stages: Sequence[tuple[int, int]]) -> None:
        """The rows are loaded, as they are after these stages."""
        self.shown.start(relaxations(self.job, stages))
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether a commit was asked for, or the last is long enough ago."""
        return asked() or time.monotonic() - self._last > max(self.commit_seconds, self._cost / COMMIT_SHARE)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """A commit, timed."""
        begin = time.monotonic()
        yield
        self._last = time.monotonic()
        self._cost = self._last - begin
