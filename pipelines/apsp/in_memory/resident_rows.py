"""The rows that stay on a worker, and the tasks that update these rows; `pipelines.apsp.stage_graph` orders the tasks.

**Undirected graphs with integer weights** need only the upper half of the matrix, and half of the work.

Rows are cut into strips. In each strip only the columns from the strip's first row on are kept up to date::

    strip 0    * * * *
    strip 1      * * *        the missing columns of rows T (a pivot block) are in the columns T of the strips above
    strip 2        * *
    strip 3          *

With P the row panel of a stage, D[:, T] is P transposed, so D = min(D, P' (x) P), strip by strip. Integer sums do not
round, so the results are the same as with the whole product; float sums would be bracketed differently. Only a single
worker uses symmetry: several workers would have to send each other columns as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuops import floyd_warshall, minplus_update
from gpuops.arrays import like
from pipelines.apsp.layout import Layout
from pipelines.apsp.matrix_rows import Weights, finish
from pipelines.apsp.methods import Job
from pipelines.apsp.stage_graph import FINISH, INDEPENDENT, NEXT_PIVOTS, OTHER_ROWS, PUBLISH, SINGLY
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.device_arrays import array_library, mark, synchronize, to_host
from pipelines.workers.executors import WorkerList
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.rings import OPENED, Ring, RingAddress
from pipelines.workers.saving import Savers
from pipelines.workers.stage_graph import Task

LEAST_ROWS = 512  # least rows of a strip: narrow strips are small products, and each strip packs its panel anew

Block = tuple[int, int]


class ResidentRows:
    """The state of a worker: its rows of the matrix, (rows, n), NumPy or CuPy.

    Parameters
    ----------
    slots : for each stage, the slot of its row panel in the ring of the owner
    ring : the ring of this worker
    """

    def __init__(self, job: Job, layout: Layout, worker: int, slots: list[int], ring: Ring, matrix: Any):
        self.job, self.layout, self.worker, self.slots = job, layout, worker, slots
        self.ring, self.matrix = ring, matrix
        self.tasks = WorkerList(ring)
        self.stages = job.stages(layout)
        self._closed: Any = None  # the last independent block that was closed
        self._written: Any = None  # mark of the last row panel that was written
        self._running: Any = None  # mark of the last update that was given to the GPU

    def perform(self, task: Task, arrays: Iterator[Any]) -> None:
        """Do a task of the stage graph."""
        if task.kind == INDEPENDENT:
            self._close(task.stage)
        elif task.kind == SINGLY:
            self._multiply(task.stage)
        elif task.kind == PUBLISH:  # waits until the device has written the panel
            self.ring.publish(self.slots[task.stage], task.stage, self._written)
        elif task.kind == FINISH:
            synchronize(self.matrix)
        else:
            self._relax(task.stage, task.rows, *arrays)

    def _close(self, stage: int) -> None:
        """Independent: close the block of the pivots' rows and columns."""
        pivots, within = self._pivots(stage)
        rows = self.rows(self.stages[stage])[within]
        self._closed = floyd_warshall(self.columns(rows, pivots), nonnegative=True)

    def _multiply(self, stage: int) -> None:
        """Singly dependent: multiply the rows of the pivots by the closed block, into the slot and into the rows."""
        block, (pivots, within) = self.stages[stage], self._pivots(stage)
        rows = self.rows(block)
        panel = self.ring.open(self.slots[stage], (len(rows[within]), self.layout.n), self.job.dtype)
        first = self._read(rows[within], block, pivots, panel)
        minplus_update(panel, self._closed, panel, out=panel, nonnegative=True)
        rows[within, first:] = panel[:, first:]
        self._written = mark(self.matrix)

    def _read(self, rows: Any, block: Block, pivots: Any, panel: Any) -> int:
        """Copy the rows of the pivots of a block; returns the first column that is kept up to date in these rows."""
        panel[...] = rows
        return 0

    def _relax(self, stage: int, which: str, panel: Any) -> None:
        """Doubly dependent: update the rows of the next pivots, or all other rows.

        On a GPU, an update of other rows returns when the update of other rows before it is done. So the GPU always has
        one update to do while it is given the next.
        """
        block, following = self.stages[stage], self.stages[stage + 1 : stage + 2]
        if which == NEXT_PIVOTS:
            self._update(self.rows(*following), block, panel)
            return
        self._relax_rows(slice(None), block, panel, following if which == OTHER_ROWS else [])
        before, self._running = self._running, mark(self.matrix)
        if before is not None:
            before.synchronize()

    def _relax_rows(self, rows: slice, block: Block, panel: Any, settled: list[Block]) -> None:
        """Update a range of this worker's rows, except the rows of the blocks in `settled`."""
        if isinstance(self.job.pivots(block), slice):
            settled = [*settled, block]  # its rows are the panel itself; if it has closed vertices, all are updated
        start, stop, _ = rows.indices(len(self.matrix))
        done = sorted(self.layout.local(*b).indices(len(self.matrix))[:2] for b in settled if self._owns(b))
        for first, end in [*((a, b) for a, b in done if start <= a < stop), (stop, stop)]:
            if start < first:
                self._update(self.matrix[start:first], block, panel)
            start = end

    def _update(self, rows: Any, block: Block, panel: Any) -> None:
        column_panel = self.columns(rows, self.job.pivots(block))
        minplus_update(rows, column_panel, panel, out=rows, nonnegative=True)

    def write(self, stage: int, panel: Any, writer: DistancesWriter) -> None:
        """Do the last doubly dependent update, and write the result of each band while the next band is updated."""
        self._save(writer, True, lambda rows: self._relax_rows(rows, self.stages[stage], panel, []))

    def save(self, writer: DistancesWriter, result: bool) -> None:
        """Write the rows by chunks: copying, compressing and writing overlap."""
        self.complete()
        self._save(writer, result, lambda _rows: None)

    def _save(self, writer: DistancesWriter, result: bool, update: Callable[[slice], None]) -> None:
        write = writer.writer(result=result)
        with Savers(waiting=math.inf) as savers:  # waiting chunks take no memory, so updates need not wait for them
            for band in self.layout.bands(self.worker):
                rows = self.layout.local(*band)
                update(rows)
                if result:  # in place: this state is not used again
                    finish(self.job, self.matrix[rows], np.arange(*band))
                savers.save(self.matrix[rows], writer.chunk, partial(write, band[0]))

    def complete(self) -> None:
        """Bring all columns up to date; in this class they always are."""

    def rows(self, block: Block) -> Any:
        """Return the rows of a block, a view."""
        return self.matrix[self.layout.local(*block)]

    def columns(self, rows: Any, pivots: Any) -> Any:
        """Return a copy of the columns `pivots` of some rows, so that a product's operands never overlap its result."""
        return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]

    def _owns(self, block: Block) -> bool:
        return self.layout.owner(block[0]) == self.worker

    def _pivots(self, stage: int) -> tuple[Any, Any]:
        """Return the pivots of a stage: their numbers among all vertices, and among the rows of their block."""
        block = self.stages[stage]
        pivots = self.job.pivots(block)
        return pivots, slice(None) if isinstance(pivots, slice) else pivots - block[0]

    def rehearse(self) -> None:
        """Take zeros through the arithmetic of a stage.

        In this way all workers with a GPU load kernels and get memory at the same time. Otherwise each worker would do
        so in the first stage whose pivots it owns, one after another, while the other workers wait.
        """
        pivots = slice(0, min(self.layout.block, self.layout.n))
        panel = self.ring.open(0, (pivots.stop, self.layout.n), self.job.dtype)
        panel[...] = 0
        closed = floyd_warshall(self.columns(panel, pivots), nonnegative=True)
        for left in closed, self.columns(panel, pivots):
            minplus_update(panel, left, panel, out=panel, nonnegative=True)
        self.columns(self.matrix, pivots)  # the largest array that a stage needs in addition to the matrix
        self.ring.publish(0, OPENED)


class SymmetricRows(ResidentRows):
    """All rows of a symmetric matrix, on a single worker: only the upper half is kept up to date."""

    def _read(self, rows: Any, block: Block, pivots: Any, panel: Any) -> int:
        first = first_column(block[0], self.layout.block)
        read_symmetric(self.matrix, pivots, first, panel)
        return first

    def _relax_rows(self, _rows: slice, block: Block, panel: Any, _settled: list[Block]) -> None:
        settled = block if isinstance(self.job.pivots(block), slice) else (0, 0)
        relax_symmetric(self.matrix, panel, self.layout.block, settled)

    def write(self, stage: int, panel: Any, writer: DistancesWriter) -> None:
        self._relax_rows(slice(None), self.stages[stage], panel, [])
        self.save(writer, result=True)

    def complete(self) -> None:
        mirror(self.matrix, self.layout.block)


def is_symmetric(matrix: Any) -> bool:
    """Return whether a square matrix of integers equals its transpose; False for floats."""
    if matrix.dtype.kind != "i":
        return False
    n, step = len(matrix), LEAST_ROWS
    return all(bool((matrix[a : a + step, a:] == matrix[a:, a : a + step].T).all()) for a in range(0, n, step))


def strips(n: int, block: int) -> Iterator[tuple[int, int]]:
    """Return the rows (start, stop) of every strip; a strip has whole blocks."""
    return ((a, min(a + _strip_rows(block), n)) for a in range(0, n, _strip_rows(block)))


def _strip_rows(block: int) -> int:
    return -(-LEAST_ROWS // block) * block


def first_column(row: int, block: int) -> int:
    """Return the first column that is kept up to date in a row."""
    return row // _strip_rows(block) * _strip_rows(block)


def read_symmetric(matrix: Any, rows: Any, first: int, out: Any) -> None:
    """Write whole rows to `out`; `rows` is a slice or indices, whose columns from `first` on are up to date."""
    out[:, :first] = matrix[:first, rows].T
    out[:, first:] = matrix[rows, first:]


def relax_symmetric(matrix: Any, panel: Any, block: int, settled: tuple[int, int]) -> None:
    """Update the upper half of D to min(D, P' (x) P), except the rows of `settled` (start, stop)."""
    for start, stop in strips(len(matrix), block):
        low, high = (min(max(row, start), stop) for row in settled)
        for a, z in (start, low), (high, stop):
            if a < z:
                rows = matrix[a:z, start:]
                minplus_update(rows, panel[:, a:z].T, panel[:, start:], out=rows, nonnegative=True)


def mirror(matrix: Any, block: int) -> None:
    """Fill the lower half of a matrix from its upper half."""
    for start, stop in strips(len(matrix), block):
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T


# The tasks of Dask: each runs on the worker it is pinned to.


def load(
    attempt: str, writer: DistancesWriter, job: Job, layout: Layout, slots: list[int], worker: int, count: int
) -> tuple[RingAddress, bool]:
    """Set up this worker's ring of `count` slots, then its rows: from the last commit, or from the weights.

    Returns the address of the ring, and whether symmetry halves the work.
    """
    clear_states()
    panel_bytes = layout.block * layout.n * job.dtype.itemsize
    ring = Ring(attempt, array_library(), count, panel_bytes, shared=layout.workers > 1)
    matrix = array_library().empty((layout.rows(worker), layout.n), dtype=job.dtype)
    whole = [(0, layout.n)] if layout.workers == 1 else layout.bands(worker)
    for start, stop in layout.bands(worker) if writer.slot else whole:
        if writer.slot:
            matrix[layout.local(start, stop)] = like(matrix, writer.read_rows(start, stop))
        else:
            Weights(job).read(slice(start, stop), matrix[layout.local(start, stop)])
    half = layout.workers == 1 and is_symmetric(matrix)
    state = (SymmetricRows if half else ResidentRows)(job, layout, worker, slots, ring, matrix)
    if layout.workers > 1 and count and not isinstance(matrix, np.ndarray):
        state.rehearse()
    keep_state(attempt, state)
    return ring.address, half


def write(attempt: str, stage: int, sent: Any, writer: DistancesWriter) -> None:
    """Do the last update on this worker's rows, and write their result."""
    state = _rows(attempt)
    state.write(stage, state.ring.arrived(sent), writer)


def save(attempt: str, writer: DistancesWriter, result: bool) -> None:
    """Write this worker's rows to the result or to the next checkpoint."""
    _rows(attempt).save(writer, result)


def rows_of(attempt: str, vertices: list[int]) -> np.ndarray:
    """Return finished rows of some vertices that this worker owns."""
    state = _rows(attempt)
    state.complete()
    local = np.array([state.layout.local(v, v + 1).start for v in vertices])
    rows = to_host(state.matrix[local])
    finish(state.job, rows, np.array(vertices))
    return rows


def write_pieces(writer: DistancesWriter, start: int, pieces: list[np.ndarray], places: list[np.ndarray]) -> None:
    """Write the rows from `start` on, whose pieces stand at `places`."""
    rows = np.empty((sum(map(len, pieces)), writer.n), dtype=writer.dtype)
    for piece, place in zip(pieces, places, strict=True):
        rows[place] = piece
    writer.write_rows(start, rows)


def _rows(attempt: str) -> ResidentRows:
    return state_of(attempt)
