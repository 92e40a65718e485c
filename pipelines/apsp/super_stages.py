"""Super-stages of blocked Floyd-Warshall on bands of rows that pass through the workers (`gpuops.minplus.super_stage`).

Between two super-stages the matrix lies in the memory of the host, where they change it in place; or in the store, from
one slot of which every super-stage writes to the other, so that each is a commit (without commits, in place). The first
reads the weights, the last writes the result. Every worker takes the slab through its stages itself, which needs no
exchange, and then passes the chunk rows of the matrix that are its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Client, Future

from gpuops.minplus.super_stage import Panel, panel_bytes, pass_rows, pass_slab
from pipelines.apsp.band_rows import Result, Weights
from pipelines.apsp.finished_rows import finish
from pipelines.apsp.methods import Job
from pipelines.apsp.schedule import Staged, relaxations, stages_of
from pipelines.apsp.windows import Windows
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.row_files import RowFiles
from pipelines.workers.attempts import StateLost, clear, held, keep
from pipelines.workers.conveyor import Rows, Sink, Source, convey, count, parts
from pipelines.workers.device_arrays import array_library, synchronize
from pipelines.workers.interruption import asked, stop_if_asked
from pipelines.workers.lanes import CpuLane, GpuLane, HostMatrix
from pipelines.workers.progress import Progress

Blocks = Sequence[tuple[int, int]]


class SuperStages(Staged):
    """One life of a run out of core: super-stages and commits, for `workers.attempts.run_attempts`."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: SuperStages | None,
        job: Job,
        windows: Windows,
        writer: DistancesWriter,
        shown: Progress,
        commit_seconds: float,
    ):
        super().__init__(client, members, before, job, writer, shown, commit_seconds)
        self.windows = windows
        self.stages = stages_of(windows.layout, job)

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self.shown.stage("loading")
        workers = range(len(self.members))
        (shared,) = self.results([self.submit(_begin, 0, self.job, self.windows, 0, len(workers), True)])
        self.wait([self.submit(_begin, w, self.job, self.windows, w, len(workers), shared) for w in workers[1:]])
        self.start(self.stages[: self.committed.stage])
        super_stages = self.windows.super_stages(self.stages, self.committed.stage)
        for number, (first, stop) in enumerate(super_stages, 1):
            if first == self.committed.stage:
                stop_if_asked()
            left = len(super_stages) - number
            following = self.windows.window(self.stages[stop][0]) if left else (0, 0)
            self.shown.stage(f"stages {first + 1} to {stop} of {len(self.stages)}")
            blocks = self.stages[first:stop]
            self._all(_pass_slab, self.committed, blocks)
            if left == 0:
                self.committed.make_slot(result=True)
            elif not self.windows.resident:
                self.committed.make_row_slot()
            self._all(_pass_bands, self.committed, following, left == 0)
            self.shown.advance(relaxations(self.job, blocks))
            if left == 0:
                self.committed = self.committed.commit(self.committed.stages)
            elif not self.windows.resident:
                # Without commits on the way one slot is enough, until the result needs the other.
                if asked() or left == 1 or self.commit_seconds < math.inf:
                    self.committed = self.committed.commit(stop)
            elif self.due():
                with self.committing():
                    self.committed.make_row_slot()
                    self._all(_save, self.committed)
                    self.committed = self.committed.commit(stop)

    def _all(self, task: Any, *arguments: Any) -> None:
        tokens: list[Future] = [self.submit(task, w, *arguments) for w in range(len(self.members))]
        self.wait(tokens)
        self.futures = []  # Dask would remember their lineage forever


# The tasks. State on a worker: buffers for the slab, the panels and the bands, and the matrix where the host holds it.


@dataclass
class _Resident:
    job: Job
    windows: Windows
    worker: int
    workers: int
    lane: Any
    slab: Any  # (width, n)
    panel_memory: Any  # uint8
    bands: list[Any]  # (chunk, n) each
    matrix: HostMatrix | None
    newest: HostMatrix | RowFiles | None = None  # what the last super-stage wrote its rows to
    window: tuple[int, int] = (0, 0)
    panels: Sequence[Panel] = ()
    ready: set[int] = field(default_factory=set)  # first rows of the bands of the next window that the slab holds

    def own(self, total: int) -> range:
        """The first rows of this worker's chunk rows."""
        return range(self.worker * self.windows.chunk, total, self.workers * self.windows.chunk)

    def in_window(self, rows: Rows) -> np.ndarray:
        """bool: which of some rows are in the slab."""
        vertices = _vertices(rows)
        return (vertices >= self.window[0]) & (vertices < self.window[1])


def _begin(attempt: str, job: Job, windows: Windows, worker: int, workers: int, shared: bool | str) -> str:
    """Set up the buffers, and the matrix in the host's memory if it is there; returns where the others find that."""
    clear()
    gpu = array_library() is not np
    n, dtype = windows.n, job.dtype
    try:
        matrix = HostMatrix(n, dtype, shared if workers > 1 else False) if windows.resident else None
    except FileNotFoundError as error:
        raise StateLost("the worker that holds the matrix is gone") from error
    lane: Any = CpuLane()
    if gpu:
        lane = GpuLane(None if matrix is None or not windows.registered else matrix.matrix)
        lane.library.get_default_memory_pool().free_all_blocks()
    blocks = [slice(a, b) for a, b in windows.layout.blocks() if b <= windows.width]
    state = _Resident(
        job,
        windows,
        worker,
        workers,
        lane,
        lane.empty((min(windows.width, n), n), dtype),
        lane.empty((sum(panel_bytes(blocks or [slice(0, n)], n, dtype, gpu)),), np.uint8),
        [lane.empty((min(windows.chunk, n), n), dtype) for _ in range(windows.BANDS)],
        matrix,
    )
    keep(attempt, state)
    return "" if matrix is None else matrix.place


def _pass_slab(attempt: str, writer: DistancesWriter, blocks: Blocks) -> None:
    """Take the rows of a window through the stages of these blocks, and keep the panels."""
    state = held(attempt)
    if not blocks:
        state.window, state.panels = (0, 0), ()
        return
    start, stop = state.window = state.windows.window(blocks[0][0])
    slab, source = state.slab[: stop - start], _source(state, writer)
    for at, rows in parts(slice(start, stop), state.windows.chunk):
        if start + at not in state.ready:
            state.lane.load(source, rows, slab[at : at + count(rows)])
    state.ready = set()
    state.panels = pass_slab(slab, start, [state.job.pivots(block) for block in blocks], state.panel_memory)
    synchronize(slab)


def _pass_bands(attempt: str, writer: DistancesWriter, following: tuple[int, int], end: bool) -> None:
    """Take this worker's rows through the stages, and write them to the next place: at the end, the result.

    The rows of the window come first. They leave the slab, which then gets those of the window that follows.
    """
    state = held(attempt)
    source, kept = _source(state, writer), writer.sources if end else None
    newest = None if end else state.matrix or writer.row_files(writer.other_slot)
    sink: Sink = newest or Result(writer, state.windows.savers)
    total = state.windows.n if kept is None else len(kept)

    def rows_from(start: int) -> Rows:
        part = slice(start, min(start + state.windows.chunk, total))
        return part if kept is None else np.asarray(kept[part])

    def load(start: int, buffer: Any) -> Any:
        rows = rows_from(start)
        band = buffer[: count(rows)]
        if not state.in_window(rows).all():
            state.lane.load(source, rows, band)
        return band

    def work(start: int, band: Any) -> tuple[Any, Any]:
        rows = rows_from(start)
        inside, first = state.in_window(rows), state.window[0]
        if not inside.all():
            pass_rows(band, state.panels)
        if isinstance(rows, slice):  # a window is whole bands
            if inside.all():
                band[...] = state.slab[rows.start - first : rows.stop - first]
        else:
            for at in np.flatnonzero(inside):
                band[at] = state.slab[rows[at] - first]
        if not end and _within(start, following):
            state.slab[start - following[0] : start - following[0] + len(band)] = band
            state.ready.add(start)
        if end:
            finish(state.job, band, _vertices(rows))
        return band, state.lane.done()

    items = list(state.own(total))
    if not end:
        items.sort(key=lambda start: (not _within(start, state.window), not _within(start, following)))
    convey(items, state.bands, load, work, lambda start, made: state.lane.store(sink, start, *made))
    state.newest = newest
    synchronize(state.slab)


def _save(attempt: str, writer: DistancesWriter) -> None:
    """Write this worker's rows of the matrix in memory to a checkpoint."""
    state = held(attempt)
    files = writer.row_files(writer.other_slot)
    for start in state.own(writer.n):
        files.write(start, state.matrix.matrix[start : start + state.windows.chunk])


def _within(row: int, window: tuple[int, int]) -> bool:
    return window[0] <= row < window[1]


def _vertices(rows: Rows) -> np.ndarray:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _source(state: _Resident, writer: DistancesWriter) -> Source:
    """Where the rows are: where the last super-stage wrote them, in the committed slot, or still in the graph."""
    return state.newest or (writer.row_files(writer.slot) if writer.slot else Weights(state.job))
