"""A worker out of core: its state, and its tasks in the order of `pipelines.apsp.stage_graph`.

The state has buffers for the slab, the panels and the bands, and the matrix if the host's memory holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from distributed import get_worker

from gpuops.minplus import super_stage
from gpuops.minplus.super_stage import Part, column_parts, panel_bytes
from pipelines.apsp.layout import Windows
from pipelines.apsp.methods import Job
from pipelines.apsp.out_of_core.slab import Bands, Slab
from pipelines.apsp.stage_graph import PUBLISH, SLAB, STORE_SLAB
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.conveyor import Conveyor, count, parts
from pipelines.workers.device_arrays import array_library, mark, synchronize
from pipelines.workers.executors import WorkerList
from pipelines.workers.host_matrix import HostMatrix
from pipelines.workers.mapped_memory import CannotMap
from pipelines.workers.resident_state import StateLost, clear_states, keep_state, state_of
from pipelines.workers.rings import Ring, RingAddress
from pipelines.workers.stage_graph import Task
from pipelines.workers.transfers import CpuTransfers, GpuTransfers

_last: WeakValueDictionary[str, Conveyor] = WeakValueDictionary()  # conveyors of latest attempts, by worker id


class PassingRows:
    """The state of a worker.

    Bands refer to the slab, never the reverse: a reference cycle would delay freeing the buffers.

    Parameters
    ----------
    conveyor : has the buffers of the bands, (chunk, n) each
    writer : the store, at the commit that the next super-stage begins with
    """

    def __init__(self, slab: Slab, conveyor: Conveyor, writer: DistancesWriter):
        self.slab, self.conveyor, self.writer, self.ring = slab, conveyor, writer, slab.ring
        self.tasks = WorkerList(slab.ring)
        self._stages = slab.job.stages(slab.windows.layout)
        self._bands: Bands | None = None  # the bands of this super-stage

    def perform(self, task: Task, arrays: Iterator[Any]) -> None:
        """Do a task of the stage graph."""
        slab = self.slab
        if task.kind == SLAB:
            self._pass_slab(task.stage)
        elif task.kind == PUBLISH:
            for slot in range(len(slab.memory)):
                self.ring.publish(slot, task.stage + slot)
        elif task.kind == STORE_SLAB:
            slab.store(mark(slab.rows))
        else:
            self._pass_bands(arrays)

    def _pass_slab(self, first: int) -> None:
        """Take the slab of a window through its stages, from stage `first` on, and keep the row panels."""
        slab = self.slab
        _, end = slab.windows.super_stages(self._stages, first)[0]
        blocks, following = self._stages[first:end], (0, 0)
        if end < len(self._stages):
            following = slab.windows.window(self._stages[end][0])
        start, stop = slab.window = slab.windows.window(blocks[0][0]) if blocks else (0, 0)
        source = slab.source(self.writer)
        for at, rows in parts(slice(start, stop), slab.windows.chunk):
            if start + at not in slab.ready:
                slab.load(source, start + at, start + at + count(rows))
        slab.ready = set()
        self.conveyor.settle()
        last = end == len(self._stages)
        self._bands = Bands(slab, self.writer, source, following, last)
        if not (last and slab.shares):  # else the rows of the window must be stored in the matrix first
            self._bands.begin(self.conveyor)
        pivots = [slab.job.pivots(block) for block in blocks]
        sizes = panel_bytes(pivots, slab.windows.n, slab.job.dtype, slab.transfers.library is not np)
        slab.memory = [slab.ring.open(slot, (size,), np.uint8) for slot, size in enumerate(sizes)]
        part = Part(slab.columns, slab.windows.n, slab.square(slab.window)) if slab.shares else None
        slab.row_panels = super_stage.pass_slab(slab.rows[: stop - start], start, pivots, slab.memory, part)
        synchronize(slab.rows)

    def _pass_bands(self, arrays: Iterator[Any]) -> None:
        """Take this worker's rows through the stages and write them; in the last super-stage, as rows of the result."""
        for _part in arrays:  # taking a part of a panel puts it in its place
            pass
        assert self._bands is not None
        self._bands.run(self.conveyor)
        self.slab.newest = self._bands.newest
        synchronize(self.slab.rows)


# The tasks of Dask: each runs on the worker it is pinned to.


def begin(
    attempt: str,
    writer: DistancesWriter,
    job: Job,
    windows: Windows,
    worker: int,
    workers: int,
    shared: bool | bytes,
) -> tuple[bytes, RingAddress]:
    """Set up the buffers, and the matrix if the host's memory holds it.

    Returns the handle for other workers to map the matrix, and the address of the ring of panels.
    """
    _end_last()
    clear_states()
    gpu = array_library() is not np
    n, dtype = windows.n, job.dtype
    try:
        matrix = HostMatrix(n, dtype, shared if workers > 1 else False) if windows.resident else None
    except CannotMap as error:
        if isinstance(error.__context__, FileNotFoundError | ProcessLookupError):
            raise StateLost("the worker that holds the matrix is gone") from error
        raise OSError(f"the matrix of {n:,} vertices cannot be shared: {error}") from error  # nor would it be again
    transfers: Any = CpuTransfers()
    if gpu:
        transfers = GpuTransfers(None if matrix is None or not windows.registered else matrix.matrix)
        transfers.library.get_default_memory_pool().free_all_blocks()
    shares, width, block = windows.sharers > 1, min(windows.width, n), min(windows.block, n)
    columns = column_parts(n, workers, dtype, gpu)[worker] if shares else slice(0, n)
    (capacity,) = panel_bytes([slice(0, block)], n, dtype, gpu)
    slab = Slab(
        job,
        windows,
        worker,
        workers,
        transfers,
        columns,
        transfers.empty((width, columns.stop - columns.start), dtype),
        transfers.empty((width * width if shares else 0,), dtype),
        Ring(attempt, transfers.library, -(-width // block), capacity, shared=shares, gathers=True),
        matrix,
    )
    conveyor = Conveyor([transfers.empty((min(windows.chunk, n), n), dtype) for _ in range(windows.BANDS)])
    keep_state(attempt, PassingRows(slab, conveyor, writer))
    _last[get_worker().id] = conveyor
    return b"" if matrix is None else matrix.handle, slab.ring.address


def _end_last() -> None:
    """Wait for the last band of a lost attempt: until it is stored, all memory of that attempt is in use."""
    conveyor = _last.get(get_worker().id)
    if conveyor is not None:
        conveyor.stop()


def fill(attempt: str) -> None:
    """Put this worker's rows into the matrix: from the weights, or from the last commit."""
    state: PassingRows = state_of(attempt)
    slab, n = state.slab, state.slab.windows.n
    source, matrix = slab.source(state.writer), slab.matrix
    assert matrix is not None

    def load(start: int, buffer: Any) -> Any:
        rows = slice(start, min(start + slab.windows.chunk, n))
        slab.transfers.load(source, rows, buffer[: count(rows)])
        return buffer[: count(rows)]

    def store(start: int, band_done: tuple[Any, Any]) -> None:
        slab.transfers.store(matrix, start, *band_done)

    state.conveyor.convey(slab.own(n), load, lambda _start, band: (band, mark(band)), store)
    slab.newest = matrix


def save(attempt: str) -> None:
    """Write this worker's rows of the matrix in memory to a checkpoint."""
    state: PassingRows = state_of(attempt)
    state.conveyor.settle()
    slab, writer = state.slab, state.writer
    assert slab.matrix is not None
    files = writer.row_files(writer.other_slot)
    for start in slab.own(writer.n):
        files.write(start, slab.matrix.matrix[start : start + slab.windows.chunk])


def go_on_from(attempt: str, writer: DistancesWriter) -> None:
    """Take over the writer of a new commit; from then on rows are written to the other slot."""
    state_of(attempt).writer = writer
