"""When Floyd-Warshall commits, in memory and out of core."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.apsp.methods import Request
from pipelines.stores.commit_clock import CommitClock
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.interruption import asked

COMMIT_SECONDS = 60.0  # least seconds between two commits, by default
COMMIT_SHARE = 0.05  # largest share of the time that commits may take


class Staged(Attempt):
    """An attempt at the stages of a run that are not committed yet."""

    kind = "apsp"
    committed: DistancesWriter

    def __init__(self, run: Run, members: list[str], before: Staged | None, request: Request):
        super().__init__(run, members, before)
        self.job, self.commit_seconds = request.job, request.commit_seconds
        self.committed = run.out if before is None else before.committed
        self.clock = CommitClock(request.commit_seconds, COMMIT_SHARE)

    def done(self) -> int:
        return self.committed.stage

    def where(self) -> str:
        return f"stage {self.committed.stage} of {self.committed.stages}"

    def named(self, first: int, stop: int) -> str:
        """Return the stages from `first` to `stop` (excluded) as text; the last of all stages writes the result."""
        stages = f"stage {first + 1}" if stop == first + 1 else f"stages {first + 1} to {stop}"
        return f"{stages} of {self.committed.stages}"

    def start(self, stages: Sequence[tuple[int, int]]) -> None:
        """Start the progress bar and the commit clock; `stages` are already done."""
        self.bar.start(self.job.relaxations(stages))
        self.clock.restart()

    def due(self, soon: float = 0.0) -> bool:
        """Return whether Ctrl-C asks for a commit, or the last will be long enough ago in `soon` seconds."""
        return asked() or self.clock.due(soon)
