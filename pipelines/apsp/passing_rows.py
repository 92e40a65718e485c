"""What a worker does out of core (for `pipelines.apsp.super_stages`): its state, and the tasks.

It has buffers for the slab, the panels and the bands, and the matrix where the host holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from distributed import get_worker

from gpuops.minplus import super_stage
from gpuops.minplus.super_stage import Part, column_parts, panel_bytes
from pipelines.apsp.bands import Bands, Filling
from pipelines.apsp.methods import Job
from pipelines.apsp.slab import Slab
from pipelines.apsp.windows import Windows
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import StateLost, clear, held, keep
from pipelines.workers.conveyor import Conveyor, count, parts
from pipelines.workers.device_arrays import array_library, synchronize
from pipelines.workers.lanes import CpuLane, GpuLane, HostMatrix
from pipelines.workers.panels import Card, Panels, Token

Blocks = Sequence[tuple[int, int]]
Sent = list[tuple[Token, Any]]  # parts of row panels of other workers: what they are, and how they get here

_last: WeakValueDictionary[str, Conveyor] = WeakValueDictionary()  # by worker: that of its latest attempt


@dataclass
class Resident:
    """What a worker has. Bands know the slab, which knows nothing of them: in a circle, memory would be freed late."""

    slab: Slab
    conveyor: Conveyor  # of buffers, (chunk, n) each
    bands: Bands | None = None  # of this super-stage

    @property
    def panels(self) -> Panels:
        return self.slab.panels


def begin(attempt: str, job: Job, windows: Windows, worker: int, workers: int, shared: bool | str) -> tuple[str, Card]:
    """Set up the buffers, and the matrix in the host's memory if it is there.

    Returns where the others find that, and the ring of panels.
    """
    _end_last()
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
    shares, width, block = windows.sharers > 1, min(windows.width, n), min(windows.block, n)
    columns = column_parts(n, workers, dtype, gpu)[worker] if shares else slice(0, n)
    (capacity,) = panel_bytes([slice(0, block)], n, dtype, gpu)
    slab = Slab(
        job,
        windows,
        worker,
        workers,
        lane,
        columns,
        lane.empty((width, columns.stop - columns.start), dtype),
        lane.empty((width * width if shares else 0,), dtype),
        Panels(attempt, lane.library, -(-width // block), capacity, shared=shares, buffered=False),
        matrix,
    )
    conveyor = Conveyor([lane.empty((min(windows.chunk, n), n), dtype) for _ in range(windows.BANDS)])
    keep(attempt, Resident(slab, conveyor))
    _last[get_worker().id] = conveyor
    return "" if matrix is None else matrix.place, slab.panels.card


def _end_last() -> None:
    """Wait for the last band of a lost attempt: as long as it is stored, all of that attempt's memory is taken."""
    conveyor = _last.get(get_worker().id)
    if conveyor is not None:
        conveyor.stop()


def fill(attempt: str, writer: DistancesWriter) -> None:
    """Put this worker's rows into the matrix: the weights, or what is committed."""
    state = held(attempt)
    Filling(state.slab, state.slab.source(writer)).run(state.conveyor)
    state.slab.newest = state.slab.matrix


def pass_all(
    attempt: str, writer: DistancesWriter, first: int, blocks: Blocks, following: tuple[int, int], end: bool
) -> None:
    """A whole super-stage of one worker."""
    pass_slab(attempt, writer, first, blocks, following, end)
    pass_bands(attempt, [])


def pass_slab(
    attempt: str, writer: DistancesWriter, first: int, blocks: Blocks, following: tuple[int, int], end: bool
) -> None:
    """Take the rows of a window through the stages of these blocks, from stage `first` on, and keep the panels."""
    state = held(attempt)
    slab = state.slab
    start, stop = slab.window = slab.windows.window(blocks[0][0]) if blocks else (0, 0)
    source = slab.source(writer)
    for at, rows in parts(slice(start, stop), slab.windows.chunk):
        if start + at not in slab.ready:
            slab.load(source, start + at, start + at + count(rows))
    slab.ready = set()
    state.conveyor.settle()
    state.bands = Bands(slab, writer, source, following, end)
    if not (end and slab.shares):  # whose rows of the window are not in the matrix yet
        state.bands.begin(state.conveyor)
    pivots = [slab.job.pivots(block) for block in blocks]
    sizes = panel_bytes(pivots, slab.windows.n, slab.job.dtype, slab.lane.library is not np)
    slab.memory = [slab.panels.open(slot, (size,), np.uint8) for slot, size in enumerate(sizes)]
    part = Part(slab.columns, slab.windows.n, slab.square(slab.window)) if slab.shares else None
    slab.row_panels = super_stage.pass_slab(slab.rows[: stop - start], start, pivots, slab.memory, part)
    for slot in range(len(blocks)):
        slab.panels.publish(slot, first + slot)
    synchronize(slab.rows)


def store_slab(attempt: str) -> None:
    """Write this worker's part of the slab to the matrix, when nobody reads the rows of the window any more."""
    slab = held(attempt).slab
    slab.store(slab.lane.done())


def pass_bands(attempt: str, sent: Sent) -> None:
    """Take this worker's rows through the stages, and write them to the next place: at the end, the result."""
    state = held(attempt)
    slab = state.slab
    for token, part in sent:
        _take_part(slab, token, part)
    state.bands.run(state.conveyor)
    slab.newest = state.bands.newest
    synchronize(slab.rows)


def _take_part(slab: Slab, token: Token, part: Token | Any) -> None:
    """Put another worker's part of a row panel where it belongs: fetched, or as it came through Dask."""
    memory = slab.memory[token.slot][token.start : token.start + token.size]
    if isinstance(part, Token):
        slab.panels.fetch(part, memory)
    elif slab.panels.xp is np:
        memory[...] = part
    else:
        memory.set(part)


def save(attempt: str, writer: DistancesWriter) -> None:
    """Write this worker's rows of the matrix in memory to a checkpoint."""
    state = held(attempt)
    state.conveyor.settle()
    slab, files = state.slab, writer.row_files(writer.other_slot)
    for start in slab.own(writer.n):
        files.write(start, slab.matrix.matrix[start : start + slab.windows.chunk])
