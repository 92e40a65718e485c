"""The rows that stay on a worker, and the tasks that take them through the stages (for `pipelines.apsp.stages`).

A task runs on the worker it is pinned to, changes that worker's rows in place and returns a token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gpuops import floyd_warshall, minplus_update
from gpuops.arrays import like
from pipelines.apsp import symmetric
from pipelines.apsp.band_rows import Weights
from pipelines.apsp.finished_rows import finish
from pipelines.apsp.layout import Layout
from pipelines.apsp.methods import Job
from pipelines.apsp.schedule import stages_of
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import clear, held, keep
from pipelines.workers.device_arrays import array_library, mark, synchronize, to_host
from pipelines.workers.exchange import arrived
from pipelines.workers.panels import OPENED, Card, Panels, Token
from pipelines.workers.saving import Savers
from pipelines.workers.signals import Signals, SignalsCard

Block = tuple[int, int]
# Counters that a worker shows the others: up to which stage it has published its panels, and done its rows.
PUBLISHED, DONE = 0, 1


@dataclass
class Slab:
    """The rows one worker holds."""

    job: Job
    layout: Layout
    worker: int
    slots: list[int]  # by stage, in the ring of its owner
    panels: Panels
    signals: Signals
    cards: Sequence[Card]  # of all workers
    matrix: Any  # (rows, n), NumPy or CuPy
    symmetric: bool  # whether the matrix is, and only its upper half is kept up to date
    stage: int  # the next one for these rows (this and what follows are for `pipelines.apsp.stretches`)
    closed: int  # of the stages before it, this worker has closed the pivots that it owns,
    published: int  # and before this one, published their panels
    written: Any = None  # the mark of the panel written last
    running: Any = None  # the update given to the GPU last
    stages: list[Block] = field(init=False)

    def __post_init__(self) -> None:
        self.stages = stages_of(self.layout, self.job)

    def owns(self, block: Block) -> bool:
        return self.layout.owner(block[0]) == self.worker

    def complete(self) -> None:
        """Bring all of the matrix up to date."""
        if self.symmetric:
            symmetric.mirror(self.matrix, self.layout.block)

    def rows(self, block: Block) -> Any:
        """The rows of a block, a view."""
        return self.matrix[self.layout.local(*block)]

    def columns(self, rows: Any, pivots: Any) -> Any:
        """Those columns of some rows: a copy, so that a product's operands never overlap its result."""
        return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]

    def panel_shape(self, stage: int) -> tuple[int, int]:
        """The shape of the row panel of a stage: its pivots, and all vertices."""
        start, stop = self.stages[stage]
        return int(self.job.through[start:stop].sum()), self.layout.n


def load(
    attempt: str, writer: DistancesWriter, layout: Layout, worker: int, slots: list[int], ring: int, job: Job
) -> tuple[Card, SignalsCard, bool]:
    """Set up this worker's ring, then its rows: of the committed checkpoint, or of the weights.

    Returns where the ring and the signals are, and whether symmetry halves the work.
    """
    clear()
    panel_bytes = layout.block * layout.n * job.dtype.itemsize
    panels = Panels(attempt, array_library(), ring, panel_bytes, shared=layout.workers > 1)
    matrix = array_library().empty((layout.rows(worker), layout.n), dtype=job.dtype)
    whole = [(0, layout.n)] if layout.workers == 1 else layout.bands(worker)
    for start, stop in layout.bands(worker) if writer.slot else whole:
        if writer.slot:
            matrix[layout.local(start, stop)] = like(matrix, writer.read_rows(start, stop))
        else:
            Weights(job).read(slice(start, stop), matrix[layout.local(start, stop)])
    half = layout.workers == 1 and symmetric.is_symmetric(matrix)
    signals, at = Signals([writer.stage] * 2), writer.stage
    slab = Slab(job, layout, worker, slots, panels, signals, [panels.card], matrix, half, at, at, at)
    if layout.workers > 1 and ring and not isinstance(matrix, np.ndarray):
        _rehearse(slab)
    keep(attempt, slab)
    return panels.card, signals.card, half


def _rehearse(slab: Slab) -> None:
    """Take zeros through the arithmetic of a stage.

    So all workers with a GPU load kernels and get memory at the same time. Within the stages they would do so one after
    another, each when it first owns pivots, and the others would wait.
    """
    pivots = slice(0, min(slab.layout.block, slab.layout.n))
    panel = slab.panels.open(0, (pivots.stop, slab.layout.n), slab.job.dtype)
    panel[...] = 0
    closed = floyd_warshall(slab.columns(panel, pivots), nonnegative=True)
    for left in closed, slab.columns(panel, pivots):
        minplus_update(panel, left, panel, out=panel, nonnegative=True)
    slab.columns(slab.matrix, pivots)  # the largest array that a stage needs beside the matrix
    slab.panels.publish(0, OPENED)


def pivot(attempt: str, stage: int, sent: Any, _after: Any) -> Token:
    """Close the independent block of a stage and publish its row panel; `sent` is that of the stage before, or None."""
    slab = held(attempt)
    close_pivots(slab, stage, None if sent is None else arrived(attempt, sent))
    return slab.panels.publish(slab.slots[stage], stage)


def close_pivots(slab: Slab, stage: int, before: Any) -> None:
    """Close the independent block and write the singly dependent row panel, (pivots, n), to its slot.

    Running ahead, first do the doubly dependent update of these rows for the stage before, whose panel is `before`.
    """
    block = slab.stages[stage]
    rows = slab.rows(block)
    if before is not None:
        _update(slab, rows, slab.stages[stage - 1], before)
    pivots = slab.job.pivots(block)
    within = slice(None) if isinstance(pivots, slice) else pivots - block[0]
    panel = slab.panels.open(slab.slots[stage], slab.panel_shape(stage), slab.job.dtype)
    first = symmetric.first_column(block[0], slab.layout.block) if slab.symmetric else 0
    if slab.symmetric:
        symmetric.read_rows(slab.matrix, pivots, first, panel)
    else:
        panel[...] = rows[within]
    closed = floyd_warshall(slab.columns(panel, pivots), nonnegative=True)
    minplus_update(panel, closed, panel, out=panel, nonnegative=True)
    rows[within, first:] = panel[:, first:]


def relax(attempt: str, stage: int, ahead: bool, last: bool, sent: Any, _after: Any) -> None:
    """Doubly dependent update of this worker's other rows; `ahead`: the pivots of the next stage are closed already.

    The `last` one ends when it is done on the device too.
    """
    slab = held(attempt)
    relax_others(slab, stage, ahead, arrived(attempt, sent))
    if last:
        synchronize(slab.matrix)


def relax_others(slab: Slab, stage: int, ahead: bool, panel: Any) -> None:
    """Doubly dependent update of this worker's other rows.

    On a GPU it ends when the one before has: so the GPU has work while more is sent.
    """
    if slab.symmetric:
        _relax_half(slab, slab.stages[stage], panel)
    else:
        settled = [slab.stages[stage + 1]] if ahead else []
        _relax_rows(slab, slice(0, len(slab.matrix)), slab.stages[stage], panel, settled)
    before, slab.running = slab.running, mark(slab.matrix)
    if before is not None:
        before.synchronize()


def relax_and_save(attempt: str, stage: int, sent: Any, writer: DistancesWriter, _after: Any) -> None:
    """The last stage, and the result of each band while the next is updated."""
    relax_and_write(held(attempt), stage, arrived(attempt, sent), writer)


def relax_and_write(slab: Slab, stage: int, panel: Any, writer: DistancesWriter) -> None:
    """The last stage, and the result of each band while the next is updated."""
    block = slab.stages[stage]
    if slab.symmetric:
        _relax_half(slab, block, panel)
        slab.complete()
    with Savers(waiting=math.inf) as savers:  # rows stay where they are, and nothing holds up the updates
        for band in slab.layout.bands(slab.worker):
            rows = slab.layout.local(*band)
            if not slab.symmetric:
                _relax_rows(slab, rows, block, panel, [])
            finish(slab.job, slab.matrix[rows], np.arange(*band))  # in place: nothing else is asked of this state
            _save_band(savers, slab, writer, band)


def _relax_half(slab: Slab, block: Block, panel: Any) -> None:
    """The update of a symmetric matrix, on one side of its diagonal."""
    settled = block if isinstance(slab.job.pivots(block), slice) else (0, 0)
    symmetric.relax(slab.matrix, panel, slab.layout.block, settled)


def _relax_rows(slab: Slab, rows: slice, block: Block, panel: Any, settled: list[Block]) -> None:
    """Doubly dependent update of a range of this worker's rows, but for those of blocks that are settled."""
    if isinstance(slab.job.pivots(block), slice):
        settled = [*settled, block]  # rows of the panel itself; where some are no pivots, all are updated
    start, stop, _ = rows.indices(len(slab.matrix))
    done = sorted(slab.layout.local(*b).indices(len(slab.matrix))[:2] for b in settled if slab.owns(b))
    for first, end in [*((a, b) for a, b in done if start <= a < stop), (stop, stop)]:
        if start < first:
            _update(slab, slab.matrix[start:first], block, panel)
        start = end


def _update(slab: Slab, rows: Any, block: Block, panel: Any) -> None:
    column_panel = slab.columns(rows, slab.job.pivots(block))
    minplus_update(rows, column_panel, panel, out=rows, nonnegative=True)


def save(attempt: str, writer: DistancesWriter, result: bool) -> None:
    """Write this worker's rows to the slot being written, a chunk at a time: copying, compressing, writing overlap."""
    slab = held(attempt)
    slab.complete()
    bands = slab.layout.bands(slab.worker)
    if result:  # in place: the result is the last that is asked of this state
        for band in bands:
            finish(slab.job, slab.matrix[slab.layout.local(*band)], np.arange(*band))
    with Savers() as savers:
        for band in bands:
            _save_band(savers, slab, writer, band)


def _save_band(savers: Savers, slab: Slab, writer: DistancesWriter, band: Block) -> None:
    savers.save(slab.matrix[slab.layout.local(*band)], writer.chunk, partial(writer.writer(), band[0]))


def rows_of(attempt: str, vertices: list[int], writer: DistancesWriter) -> np.ndarray:
    """Finished rows of some vertices this worker owns."""
    slab = held(attempt)
    slab.complete()
    local = np.array([slab.layout.local(v, v + 1).start for v in vertices])
    rows = to_host(slab.matrix[local])
    finish(slab.job, rows, np.array(vertices))
    return rows


def write_pieces(writer: DistancesWriter, start: int, pieces: list[np.ndarray], places: list[np.ndarray]) -> None:
    rows = np.empty((sum(map(len, pieces)), writer.n), dtype=writer.dtype)
    for piece, place in zip(pieces, places, strict=True):
        rows[place] = piece
    writer.write_rows(start, rows)


def token(attempt: str) -> None:
    """A token that depends on nothing."""
