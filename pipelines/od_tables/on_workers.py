"""Reduced tables made by workers: every worker has the tables of the store in memory, and gets blocks of origins."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client

from pipelines.hierarchy.plan import answers
from pipelines.od_tables.blocks import DistancesTo, Reducing
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.schema import store_bytes
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import WorkerFacts, measure_workers
from pipelines.workers.device_arrays import array_library
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.row_chunks import DealtRows, RowsInMemory, RowTasks

AHEAD = 6  # blocks that a worker has at a time, as a GPU takes less time for a block than Dask to hand one out


def reduce_on_workers(
    client: Client,
    store: HierarchyStore,
    reducing: Reducing,
    origins: np.ndarray,
    starts: range,
    write: Callable[[int, np.ndarray], None],
    bar: Progress,
) -> None:
    """Let the workers compute the blocks of origins that begin at `starts`, which are written in this order.

    `write` is a function of the first origin of a block and the values of the block.
    """
    facts = measure_workers(client, None)
    refuse_what_cannot_fit(store, reducing, facts)
    tasks = RowTasks(
        "od",
        load=(_load, store, reducing),
        work=lambda rows: (_reduce, origins[rows]),
        receive=in_order(starts, write),
        unit="origins",
        stage="distances",
        amount=len(reducing.targets),
        ahead=AHEAD,
    )
    rows = RowsInMemory(len(origins), starts.step, done=starts.start)
    Run(client, [fact.address for fact in facts], rows, bar).attempts(DealtRows, tasks)


def in_order(starts: Sequence[int], write: Callable[[int, Any], None]) -> Callable[[int, Any], None]:
    """Return a function that is given blocks in any order, and writes them in the order of their `starts`."""
    left, waiting = deque(starts), dict[int, Any]()

    def receive(start: int, block: Any) -> None:
        waiting[start] = block
        while left and left[0] in waiting:
            first = left.popleft()
            write(first, waiting.pop(first))

    return receive


def refuse_what_cannot_fit(store: HierarchyStore, reducing: Reducing, facts: list[WorkerFacts]) -> None:
    """Raise DoesNotFitError if the memory of the workers is too small."""
    gpu, hierarchy = any(fact.gpu for fact in facts), store.hierarchy
    block = reducing.rows_on_gpu if gpu else reducing.rows, len(reducing.targets)
    needs = answers(hierarchy.structure, store.dtype, store_bytes(store.path), hierarchy.fits, block, facts, rows=False)
    cure = "Give fewer workers (--workers)" + (", or reduce on the CPU (device='cpu', --device cpu)" if gpu else "")
    needs.refuse_memory(f"to answer from {store.path}, the workers", facts, cure)


def _load(attempt: str, store: HierarchyStore, reducing: Reducing) -> None:
    clear_states()
    on_cpu = array_library() is np
    keep_state(attempt, reducing.of(DistancesTo(store, reducing.targets)) if on_cpu else reducing.on_gpu(store))


def _reduce(attempt: str, origins: np.ndarray) -> Any:
    return state_of(attempt)(origins)
