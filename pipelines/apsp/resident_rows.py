"""The rows that stay on a worker, and the tasks that take them through the stages (for `pipelines.apsp.stages`).

A task runs on the worker it is pinned to, changes that worker's rows in place and returns a token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuops import floyd_warshall, minplus_update
from gpuops.arrays import like
from gpuops.minplus.super_stage import pass_rows, pass_slab
from pipelines.apsp import symmetric
from pipelines.apsp.band_rows import Weights
from pipelines.apsp.finished_rows import finish
from pipelines.apsp.layout import Layout
from pipelines.apsp.methods import Job
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import clear, held, keep
from pipelines.workers.device_arrays import array_library, mark, synchronize, to_host
from pipelines.workers.exchange import arrived
from pipelines.workers.panels import Card, Panels, Token
from pipelines.workers.saving import Savers

Block = tuple[int, int]


@dataclass
class _Slab:
    """The rows one worker holds."""

    job: Job
    layout: Layout
    worker: int
    panels: Panels
    matrix: Any  # (rows, n), NumPy or CuPy
    symmetric: bool  # whether the matrix is, and only its upper half is kept up to date
    running: Any = None  # the update given to the GPU last

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


def load(attempt: str, writer: DistancesWriter, layout: Layout, worker: int, slots: int, job: Job) -> tuple[Card, bool]:
    """Set up this worker's ring, then its rows: of the committed checkpoint, or of the weights.

    Returns where the ring is, and whether symmetry halves the work.
    """
    clear()
    panel_bytes = layout.block * layout.n * job.dtype.itemsize
    panels = Panels(attempt, array_library(), slots, panel_bytes, shared=layout.workers > 1)
    matrix = array_library().empty((layout.rows(worker), layout.n), dtype=job.dtype)
    whole = [(0, layout.n)] if layout.workers == 1 else layout.bands(worker)
    for start, stop in layout.bands(worker) if writer.slot else whole:
        if writer.slot:
            matrix[layout.local(start, stop)] = like(matrix, writer.read_rows(start, stop))
        else:
            Weights(job).read(slice(start, stop), matrix[layout.local(start, stop)])
    half = layout.workers == 1 and symmetric.is_symmetric(matrix)
    keep(attempt, _Slab(job, layout, worker, panels, matrix, half))
    return panels.card, half


def pivot(
    attempt: str,
    stage: int,
    slot: int,
    block: Block,
    before: Block | None,
    sent: Any,
    _after: Any,
) -> Token:
    """Close the independent block and publish the singly dependent row panel, (pivots, n).

    Running ahead, it first does the doubly dependent update of these rows for the stage `before`, from its panel.
    """
    slab = held(attempt)
    rows = slab.rows(block)
    if before is not None:
        _update(slab, rows, before, arrived(attempt, sent))
    pivots = slab.job.pivots(block)
    within = slice(None) if isinstance(pivots, slice) else pivots - block[0]
    panel = slab.panels.open(slot, (int(slab.job.through[block[0] : block[1]].sum()), slab.layout.n), slab.job.dtype)
    first = symmetric.first_column(block[0], slab.layout.block) if slab.symmetric else 0
    if slab.symmetric:
        symmetric.read_rows(slab.matrix, pivots, first, panel)
    else:
        panel[...] = rows[within]
    closed = floyd_warshall(slab.columns(panel, pivots), nonnegative=True)
    minplus_update(panel, closed, panel, out=panel, nonnegative=True)
    rows[within, first:] = panel[:, first:]
    return slab.panels.publish(slot, stage)


def relax(attempt: str, block: Block, following: Block | None, last: bool, sent: Any, _after: Any) -> None:
    """Doubly dependent update of this worker's other rows.

    On a GPU it ends when the one before has, and only the `last` when it is done itself: so the GPU has work while the
    scheduler sends more.
    """
    slab, panel = held(attempt), arrived(attempt, sent)
    if slab.symmetric:
        _relax_half(slab, block, panel)
    else:
        _relax_rows(slab, slice(0, len(slab.matrix)), block, panel, [following] if following else [])
    before, slab.running = slab.running, mark(slab.matrix)
    if before is not None:
        before.synchronize()
    if last:
        synchronize(slab.matrix)


def relax_and_save(attempt: str, block: Block, sent: Any, writer: DistancesWriter, _after: Any) -> None:
    """The last stage, and the result of each band while the next is updated."""
    slab, panel = held(attempt), arrived(attempt, sent)
    if slab.symmetric:
        _relax_half(slab, block, panel)
        slab.complete()

    def update(rows: slice) -> None:
        if not slab.symmetric:
            _relax_rows(slab, rows, block, panel, [])

    _save_bands(slab, writer, slab.layout.bands(slab.worker), update)


def relax_last_and_save(attempt: str, blocks: Sequence[Block], writer: DistancesWriter, _after: Any) -> None:
    """The last stages of a worker alone as a super-stage, and the result of each band while the next goes through it.

    Their pivots are the last rows of the matrix: those are done first, and written first.
    """
    slab, first = held(attempt), blocks[0][0]
    panels = pass_slab(slab.matrix[first:], first, [slab.job.pivots(block) for block in blocks])

    def update(rows: slice) -> None:
        if rows.start < first:
            pass_rows(slab.matrix[rows.start : min(rows.stop, first)], panels)

    _save_bands(slab, writer, slab.layout.bands(slab.worker)[::-1], update)


def _save_bands(slab: _Slab, writer: DistancesWriter, bands: Sequence[Block], update: Callable[[slice], None]) -> None:
    """Bring bands up to date, one after another, and have them written; nothing else is asked of this state."""
    with Savers(waiting=math.inf) as savers:  # rows that stay where they are
        for band in bands:
            rows = slab.layout.local(*band)
            update(rows)
            finish(slab.job, slab.matrix[rows], np.arange(*band))
            _save_band(savers, slab, writer, band)


def _relax_half(slab: _Slab, block: Block, panel: Any) -> None:
    """The update of a symmetric matrix, on one side of its diagonal."""
    settled = block if isinstance(slab.job.pivots(block), slice) else (0, 0)
    symmetric.relax(slab.matrix, panel, slab.layout.block, settled)


def _relax_rows(slab: _Slab, rows: slice, block: Block, panel: Any, settled: list[Block]) -> None:
    """Doubly dependent update of a range of this worker's rows, but for those of blocks that are settled."""
    if isinstance(slab.job.pivots(block), slice):
        settled = [*settled, block]  # rows of the panel itself; where some are no pivots, all are updated
    start, stop, _ = rows.indices(len(slab.matrix))
    done = sorted(slab.layout.local(*b).indices(len(slab.matrix))[:2] for b in settled if _owns(slab, b))
    for first, end in [*((a, b) for a, b in done if start <= a < stop), (stop, stop)]:
        if start < first:
            _update(slab, slab.matrix[start:first], block, panel)
        start = end


def _owns(slab: _Slab, block: Block) -> bool:
    return slab.layout.owner(block[0]) == slab.worker


def _update(slab: _Slab, rows: Any, block: Block, panel: Any) -> None:
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


def _save_band(savers: Savers, slab: _Slab, writer: DistancesWriter, band: Block) -> None:
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
