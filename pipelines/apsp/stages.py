"""The stages of blocked Floyd-Warshall on rows that stay on the workers: attempts, commits, and the tasks."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.system import CPU_COUNT
from distributed import Client, Future

from gpuops import floyd_warshall, minplus_update
from gpuops.arrays import like
from gpuops.certificates import nonnegative_weights
from gpuops.minplus.adjacency import weight_rows
from gpuops.numbers import distance_limit, to_outside
from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Job
from pipelines.stores.distances import DistancesWriter
from pipelines.validation.bounds import arc_pieces, refuse_overflow
from pipelines.workers.attempts import (
    Attempt,
    clear,
    held,
    keep,
    run_attempts,
)
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.device_arrays import array_library, synchronize, to_host
from pipelines.workers.interruption import asked, stop_if_asked
from pipelines.workers.progress import Progress

COMMIT_SECONDS = 60.0  # at least this long between two commits by default,
COMMIT_SHARE = 0.05  # and at most this share of the time spent in them
SAVERS = min(8, CPU_COUNT)  # chunks a worker writes at a time; each is held in a few copies
WINDOW = 3  # stages in flight: enough to hide the scheduler, few enough to bound the panels in memory


def stages_of(layout: Layout, job: Job) -> list[tuple[int, int]]:
    """The pivot blocks that hold a vertex which may lie inside a path."""
    return [(start, stop) for start, stop in layout.blocks() if job.through[start:stop].any()]


def relaxations_done(layout: Layout, job: Job, writer: DistancesWriter | None) -> int:
    """Relaxations that the commits of `writer` have behind them."""
    if writer is None:
        return 0
    return sum(layout.n**2 * int(job.through[a:b].sum()) for a, b in stages_of(layout, job)[: writer.stage])


def run_stages(
    client: Client, job: Job, writer: DistancesWriter, shown: Progress, facts: list[WorkerFacts], commit_seconds: float
) -> None:
    """Run attempts until the result is committed; a new one begins whenever the workers change."""

    def begin(members: list[str], before: Stages | None) -> Stages:
        number = 0 if before is None else before.number + 1
        return Stages(
            client, job, writer if before is None else before.committed, shown, members, number, commit_seconds
        )

    run_attempts(client, [fact.address for fact in facts], begin, shown)


class Stages(Attempt):
    """One life of the resident state: load, stages, commits. Its futures die with it."""

    def __init__(
        self,
        client: Client,
        job: Job,
        writer: DistancesWriter,
        shown: Progress,
        members: list[str],
        number: int,
        commit_seconds: float,
    ):
        super().__init__(client, members, "apsp", f"{writer.run_id[:8]}-{number}")
        self.number, self.job, self.committed, self.shown = number, job, writer, shown
        self.layout = make_layout(writer.n, len(members), writer.dtype.itemsize, writer.options["block"])
        # The bands of a resumed run follow the chunks of its store, whatever the number of workers then was.
        self.layout = Layout(writer.n, self.layout.block, writer.chunk, len(members))
        self.stages = stages_of(self.layout, job)
        self.commit_seconds = commit_seconds

    def done(self) -> int:
        return self.committed.stage

    def where(self) -> str:
        return f"stage {self.committed.stage} of {self.committed.stages}"

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self.shown.stage("loading")
        workers = range(len(self.members))
        tokens = [self.submit(_load, w, self.committed, self.layout, w, self.job) for w in workers]
        self.wait(tokens)
        self.shown.start(relaxations_done(self.layout, self.job, self.committed))

        last_commit, commit_cost = time.monotonic(), 0.0
        panel: Future | None = None  # of the stage to come, if its pivot ran ahead
        flights: list[tuple[int, list[Future]]] = []
        for k in range(self.committed.stage, len(self.stages)):
            if k == self.committed.stage:
                stop_if_asked()
            pause = max(self.commit_seconds, commit_cost / COMMIT_SHARE)
            due = (asked() or time.monotonic() - last_commit > pause) and k + 1 < len(self.stages)
            tokens, panel = self._stage(k, tokens, panel, look_ahead=not due and len(self.members) > 1)
            flights.append((k, tokens))
            if len(flights) == WINDOW:
                self._land(flights)
            if due:
                while flights:
                    self._land(flights)
                begin = time.monotonic()
                self._commit(k + 1)
                # Futures from before the commit are released: Dask would remember their lineage forever.
                tokens, self.futures = [self.submit(_token, w) for w in workers], []
                last_commit, commit_cost = time.monotonic(), time.monotonic() - begin
        while flights:
            self._land(flights)
        self.shown.stage("writing the result")
        self._commit(len(self.stages) + 1)

    def _stage(
        self, k: int, tokens: list[Future], panel: Future | None, look_ahead: bool
    ) -> tuple[list[Future], Future | None]:
        """Submit stage k after the tasks of `tokens`; returns its tokens and, if looking ahead, the next stage's panel.

        A commit comes after a stage without look-ahead: a pivot closed twice may round otherwise than one closed once.
        """
        block, following, following_panel = self.stages[k], None, None
        if panel is None:
            owner = self.layout.owner(block[0])
            panel = self.submit(_pivot, owner, block, None, None, tokens[owner], priority=10)
        if look_ahead and k + 1 < len(self.stages):
            following = self.stages[k + 1]
            owner = self.layout.owner(following[0])
            following_panel = self.submit(_pivot, owner, following, block, panel, tokens[owner], priority=10)
            tokens = [following_panel if w == owner else token for w, token in enumerate(tokens)]
        after = [self.submit(_relax, w, block, following, panel, token) for w, token in enumerate(tokens)]
        return after, following_panel

    def _land(self, flights: list[tuple[int, list[Future]]]) -> None:
        """Wait for the oldest stage in flight."""
        k, tokens = flights.pop(0)
        start, stop = self.stages[k]
        self.shown.stage(f"stage {k + 1} of {len(self.stages)}")
        self.wait(tokens)
        self.shown.advance(self.layout.n**2 * int(self.job.through[start:stop].sum()))
        self.drop_done()

    def _commit(self, stage: int) -> None:
        """Write the state, or the result at the last stage, to the free slot and name it."""
        result = stage == self.committed.stages
        self.committed.make_slot(result=result)
        if result and self.committed.sources is not None:
            self._write_sources()
        else:
            self.wait([self.submit(_save, w, self.committed, result) for w in range(len(self.members))])
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
                pieces.append(self.submit(_rows_of, int(w), sources[part][at].tolist(), self.committed))
            w = start // self.committed.chunk % len(self.members)
            writes.append(self.submit(_write_pieces, w, self.committed, start, pieces, places, stateless=True))
        self.wait(writes)


# The tasks: each runs on the worker it is pinned to, changes that worker's rows in place and returns a token.


@dataclass
class _Slab:
    """The rows one worker holds."""

    job: Job
    layout: Layout
    worker: int
    matrix: Any  # (rows, n), NumPy or CuPy

    def rows(self, block: tuple[int, int]) -> Any:
        """The rows of a block, a view."""
        return self.matrix[self.layout.local(*block)]

    def pivots(self, block: tuple[int, int]) -> Any:
        """The vertices of the block that may lie inside a path: a slice, or their indices where some may not."""
        start, stop = block
        inside = self.job.through[start:stop]
        return slice(start, stop) if inside.all() else np.flatnonzero(inside) + start

    def columns(self, rows: Any, pivots: Any) -> Any:
        """Those columns of some rows: a copy, so that a product's operands never overlap its result."""
        return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]


def _load(attempt: str, writer: DistancesWriter, layout: Layout, worker: int, job: Job) -> None:
    """Set up this worker's rows: of the committed checkpoint, or of the weights."""
    clear()
    matrix = array_library().empty((layout.rows(worker), layout.n), dtype=job.dtype)
    whole = [(0, layout.n)] if layout.workers == 1 else layout.bands(worker)
    for start, stop in layout.bands(worker) if writer.slot else whole:
        if writer.slot:
            matrix[layout.local(start, stop)] = like(matrix, writer.read_rows(start, stop))
            continue
        for first, indptr, indices, weights in arc_pieces(job.graph, start, stop):
            if job.potentials is not None:
                weights = nonnegative_weights(job.potentials, first, indptr, indices, weights)
            weight_rows(matrix[layout.local(first, first + len(indptr) - 1)], first, indptr, indices, weights)
    keep(attempt, _Slab(job, layout, worker, matrix))


def _pivot(attempt: str, block: tuple[int, int], before: tuple[int, int] | None, panel: Any, _after: Any) -> Any:
    """Close the independent block and return the singly dependent row panel, (pivots, n).

    Running ahead, it first does the doubly dependent update of these rows for the stage `before`, from its panel.
    """
    slab = held(attempt)
    rows = slab.rows(block)
    if before is not None:
        _update(slab, rows, before, panel)
    pivots = slab.pivots(block)
    within = slice(None) if isinstance(pivots, slice) else pivots - block[0]
    panel = rows[within].copy()
    closed = floyd_warshall(slab.columns(panel, pivots), nonnegative=True)
    panel = minplus_update(panel, closed, panel, out=panel, nonnegative=True)
    rows[within] = panel
    synchronize(panel)
    return panel


def _relax(attempt: str, block: tuple[int, int], following: tuple[int, int] | None, panel: Any, _after: Any) -> None:
    """Doubly dependent update of this worker's other rows."""
    slab = held(attempt)
    settled = [following] if following else []
    if isinstance(slab.pivots(block), slice):
        settled.append(block)  # rows of the panel itself; where some are no pivots, all are updated
    done = sorted(slab.layout.local(*b).indices(len(slab.matrix))[:2] for b in settled if _owns(slab, b))
    start = 0
    for first, last in [*done, (len(slab.matrix), len(slab.matrix))]:
        if start < first:
            _update(slab, slab.matrix[start:first], block, panel)
        start = last


def _owns(slab: _Slab, block: tuple[int, int]) -> bool:
    return slab.layout.owner(block[0]) == slab.worker


def _update(slab: _Slab, rows: Any, block: tuple[int, int], panel: Any) -> None:
    column_panel = slab.columns(rows, slab.pivots(block))
    minplus_update(rows, column_panel, panel, out=rows, nonnegative=True)
    synchronize(rows)


def _save(attempt: str, writer: DistancesWriter, result: bool) -> None:
    """Write this worker's rows to the slot being written, a chunk at a time: copying, compressing, writing overlap."""
    slab = held(attempt)
    write = writer.writer()

    def save(corner: tuple[int, int, int]) -> None:
        start, stop, column = corner
        rows = slab.matrix[slab.layout.local(start, stop)]
        write(start, column, to_host(rows[:, column : column + writer.chunk]))

    bands = slab.layout.bands(slab.worker)
    if result:  # in place: the result is the last that is asked of this state
        for band in bands:
            finish(slab.job, slab.matrix[slab.layout.local(*band)], np.arange(*band))
    with ThreadPoolExecutor(SAVERS) as pool:
        for _ in pool.map(save, [(*band, column) for band in bands for column in range(0, writer.n, writer.chunk)]):
            pass


def _rows_of(attempt: str, vertices: list[int], writer: DistancesWriter) -> np.ndarray:
    """Finished rows of some vertices this worker owns."""
    slab = held(attempt)
    local = np.array([slab.layout.local(v, v + 1).start for v in vertices])
    rows = to_host(slab.matrix[local])
    finish(slab.job, rows, np.array(vertices))
    return rows


def _write_pieces(writer: DistancesWriter, start: int, pieces: list[np.ndarray], places: list[np.ndarray]) -> None:
    rows = np.empty((sum(map(len, pieces)), writer.n), dtype=writer.dtype)
    for piece, place in zip(pieces, places, strict=True):
        rows[place] = piece
    writer.write_rows(start, rows)


def _token(attempt: str) -> None:
    """A token that depends on nothing."""


def finish(job: Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of some vertices, as they are inside operations, into rows as they stand in stores, in place."""
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = distance_limit(job.dtype), 64  # rows at a time, as the sums are in int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)
