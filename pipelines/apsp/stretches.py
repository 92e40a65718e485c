"""Stages that a worker goes through in one task, by signals of the others (for `pipelines.apsp.stages`).

Through Dask a stage has two hops of some 5 ms and a task for each worker. Here each worker knows all stages, and what
it waits for are counters of the others (`pipelines.workers.signals`): how far they have published their row panels, and
how far they are done with the stages. So a slot is written again only when nobody needs what it holds.
"""

from __future__ import annotations

from typing import Any

from pipelines.apsp.resident_rows import DONE, PUBLISHED, Slab, close_pivots, relax_and_write, relax_others
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import held
from pipelines.workers.device_arrays import mark, synchronize
from pipelines.workers.panels import Token
from pipelines.workers.signals import wait_until


def relax_stages(attempt: str, stop: int, last: bool, writer: DistancesWriter | None, limit: float, _after: Any) -> int:
    """Take this worker's rows through the stages before `stop`; returns the first that they did not go through.

    That is `stop`, unless something did not come from another worker within `limit` seconds. The next call goes on
    from there.

    Parameters
    ----------
    last : whether the rows are read afterwards; then the pivots of stage `stop` are not closed ahead, and the call
        waits for the device
    writer : the store to which the last stage of all writes the result, each band as it is done
    """
    slab = held(attempt)
    while slab.stage < stop and _relax_stage(slab, last and slab.stage + 1 == stop, writer, limit):
        slab.stage += 1
        slab.signals.show(DONE, slab.stage)
    if last:
        synchronize(slab.matrix)
    return slab.stage


def _relax_stage(slab: Slab, last: bool, writer: DistancesWriter | None, limit: float) -> bool:
    """One stage, and the pivots of the next if they are this worker's; False where the limit was reached."""
    k, workers = slab.stage, slab.layout.workers
    owner = slab.layout.owner(slab.stages[k][0])
    following = None if last or workers == 1 else slab.layout.owner(slab.stages[k + 1][0])
    if owner == slab.worker:
        if not _close(slab, k, None, limit):
            return False
        _publish(slab)
    elif not _wait(slab, owner, PUBLISHED, k, limit):
        return False
    token = Token(slab.cards[owner], k, slab.slots[k], slab.panel_shape(k), slab.job.dtype.str)
    panel = slab.panels.take(token)
    if following == slab.worker:
        if not _close(slab, k + 1, panel, limit):
            return False
        if slab.written is None:
            _publish(slab)  # now: a CPU has written it, and would do all other rows before it came to publish
        panel = slab.panels.take(token)  # checks that its slot is not the one that was written
    if last and writer is not None:
        relax_and_write(slab, k, panel, writer)
    else:
        relax_others(slab, k, following == slab.worker, panel)
    _publish(slab)  # which waits for the panel, while a GPU has other rows to do
    return True


def _close(slab: Slab, stage: int, before: Any, limit: float) -> bool:
    """Close the pivots of a stage unless that is done; False where the limit was reached."""
    if stage < slab.closed:
        return True
    held_before = _stage_before(slab, stage)
    others = [worker for worker in range(slab.layout.workers) if worker != slab.worker]
    if not all(_wait(slab, worker, DONE, held_before, limit) for worker in others):
        return False
    close_pivots(slab, stage, before)
    slab.written, slab.closed = mark(slab.matrix), stage + 1
    return True


def _publish(slab: Slab) -> None:
    """Publish the panel that was written last, unless that is done."""
    if slab.published < slab.closed:
        stage = slab.closed - 1
        slab.panels.publish(slab.slots[stage], stage, slab.written)
        slab.published = slab.closed
        slab.signals.show(PUBLISHED, slab.published)


def _wait(slab: Slab, worker: int, counter: int, stage: int, limit: float) -> bool:
    """Wait until a counter of a worker is beyond a stage; False where the limit was reached."""
    return wait_until(lambda: slab.signals.seen(worker, counter) > stage, lambda: slab.panels.over, limit)


def _stage_before(slab: Slab, stage: int) -> int:
    """The stage whose panel was in the same slot before, -1 if there was none."""
    same = (k for k in range(stage - 1, -1, -1) if slab.slots[k] == slab.slots[stage] and slab.owns(slab.stages[k]))
    return next(same, -1)
