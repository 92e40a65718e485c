"""What attempts at the stages of a run have in common: progress, and when the next commit is due."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipelines.apsp.methods import Request
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.interruption import asked

COMMIT_SECONDS = 60.0  # least seconds between two commits, by default
COMMIT_SHARE = 0.05  # largest share of the time that commits may take


class Staged(Attempt):
    """An attempt at the stages of a run that are not committed yet."""

    committed: DistancesWriter

    def __init__(self, run: Run, members: list[str], before: Staged | None, request: Request):
        super().__init__(run.client, members, "apsp", run.out.run_id[:8], before)
        self.job, self.shown, self.commit_seconds = request.job, run.shown, request.commit_seconds
        self.committed = run.out if before is None else before.committed
        self._last, self._cost = 0.0, 0.0  # time when the last commit ended, and seconds that it took

    def done(self) -> int:
        return self.committed.stage

    def where(self) -> str:
        return f"stage {self.committed.stage} of {self.committed.stages}"

    def start(self, stages: Sequence[tuple[int, int]]) -> None:
        """Start the progress bar and the commit clock; `stages` are already done."""
        self.shown.start(self.job.relaxations(stages))
        self._last = time.monotonic()

    def due(self, soon: float = 0.0) -> bool:
        """Return whether Ctrl-C asks for a commit, or the last will be long enough ago in `soon` seconds."""
        return asked() or time.monotonic() + soon - self._last > max(self.commit_seconds, self._cost / COMMIT_SHARE)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Time a commit, for `due`."""
        begin = time.monotonic()
        yield
        self._last = time.monotonic()
        self._cost = self._last - begin
