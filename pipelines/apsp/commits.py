"""The rows that Floyd-Warshall starts from, the rows of its result, and when it commits: in memory and out of core."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.arrays import like
from gpuops.certificates import nonnegative_weights
from gpuops.minplus.adjacency import weight_rows
from gpuops.numbers import distance_limit, to_outside
from pipelines.apsp.methods import Job, Request
from pipelines.stores.commit_clock import CommitClock
from pipelines.stores.distances import DistancesWriter
from pipelines.validation.bounds import arc_pieces, refuse_overflow
from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.conveyor import Rows
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
        self.shown.start(self.job.relaxations(stages))
        self.clock.restart()

    def due(self, soon: float = 0.0) -> bool:
        """Return whether Ctrl-C asks for a commit, or the last will be long enough ago in `soon` seconds."""
        return asked() or self.clock.due(soon)


@dataclass(frozen=True)
class Weights:
    """The rows that Floyd-Warshall starts from."""

    job: Job
    piece = 0  # rows are made in the array they are for, on a GPU too

    def read(self, rows: Rows, out: Any) -> None:
        ranges = [rows] if isinstance(rows, slice) else [slice(int(v), int(v) + 1) for v in rows]
        at = 0
        for part in ranges:
            for first, indptr, indices, weights in arc_pieces(self.job.graph, part.start, part.stop):
                if self.job.potentials is not None:
                    weights = nonnegative_weights(self.job.potentials, first, indptr, indices, weights)
                weight_rows(out[at : at + len(indptr) - 1], first, indptr, indices, weights)
                at += len(indptr) - 1


class Result:
    """The sink of the result: the array `distances`, by whole rows of square chunks.

    Each of `threads` threads compresses and writes one chunk at a time, which bounds the memory of compressed chunks.
    """

    def __init__(self, writer: DistancesWriter, threads: int):
        self.writer, self.piece, self.threads = writer, writer.chunk, threads

    @functools.cached_property
    def _write(self) -> Callable[[int, int, np.ndarray], None]:
        return self.writer.writer()

    def write(self, start: int, rows: np.ndarray) -> None:
        put, starts = self._write, range(0, self.writer.n, self.piece)
        with ThreadPoolExecutor(min(self.threads, len(starts))) as pool:
            for _ in pool.map(lambda at: put(start, at, rows[:, at : at + self.piece]), starts):
                pass


def finish(job: Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of `vertices` into rows of a distances store, in place.

    Distances that do not fit the dtype are refused, distances by potentials are shifted back, the diagonal is set to 0,
    and unreachable vertices get the value that stores have for them.
    """
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = distance_limit(job.dtype), 64  # `step` rows at a time, as sums take int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)
