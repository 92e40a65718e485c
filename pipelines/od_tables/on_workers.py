"""Reduced tables made by workers: every worker has the tables of the store in memory, and gets blocks of origins."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future

from pipelines.hierarchy.plan import answers
from pipelines.od_tables.blocks import DistancesTo, Reducing
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.schema import store_bytes
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import WorkerFacts, measure_workers
from pipelines.workers.device_arrays import array_library
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import clear, held, keep
from pipelines.workers.row_chunks import RowsAttempt

IN_HAND = 6  # blocks that a worker has at a time, as a GPU takes less time for a block than Dask to hand one out


class Landing:
    """Blocks of origins that arrive in any order, and are written in the order of the origins.

    `RowsAttempt` uses it like a store that is written.

    Parameters
    ----------
    origins, step : number of origins, and number of origins in a block
    starts : the first origins of the blocks that are not written, ascending
    write : function of the first origin of a block and the values of the block
    """

    def __init__(self, origins: int, step: int, starts: Sequence[int], write: Callable[[int, np.ndarray], None]):
        self.run_id = uuid.uuid4().hex
        self.rows, self.chunk = origins, step
        self._left, self._write = list(starts), write
        self._waiting: dict[int, np.ndarray] = {}

    def rows_done(self) -> np.ndarray:
        """Return which origins have their values, bool (origins)."""
        done = np.ones(self.rows, bool)
        for start in self._left:
            done[start : start + self.chunk] = start in self._waiting
        return done

    def record(self, done: np.ndarray) -> None:
        """Do nothing: `write` commits each block."""

    def put(self, start: int, values: np.ndarray) -> None:
        """Take the values of a block, and write it once all earlier blocks are written."""
        self._waiting[start] = values
        while self._left and self._left[0] in self._waiting:
            first = self._left.pop(0)
            self._write(first, self._waiting.pop(first))


def reduce_on_workers(
    client: Client, store: HierarchyStore, reducing: Reducing, origins: np.ndarray, landing: Landing, shown: Progress
) -> None:
    """Let the workers compute all blocks that are not written yet."""
    facts = measure_workers(client, None)
    refuse_what_cannot_fit(store, reducing, facts)
    Run(client, [fact.address for fact in facts], landing, shown).attempts(Blocks, store, reducing, origins)


def refuse_what_cannot_fit(store: HierarchyStore, reducing: Reducing, facts: list[WorkerFacts]) -> None:
    """Raise DoesNotFitError if the memory of the workers is too small."""
    gpu, hierarchy = any(fact.gpu for fact in facts), store.hierarchy
    block = reducing.rows_on_gpu if gpu else reducing.rows, len(reducing.targets)
    needs = answers(hierarchy.structure, store.dtype, store_bytes(store.path), hierarchy.fits, block, facts, rows=False)
    cure = "Give fewer workers (--workers)" + (", or reduce on the CPU (device='cpu', --device cpu)" if gpu else "")
    needs.refuse_memory(f"to answer from {store.path}, the workers", facts, cure)


class Blocks(RowsAttempt):
    """An attempt to compute the blocks that are left."""

    out: Landing
    kind, unit, work, in_hand = "od", "origins", "distances", IN_HAND

    def __init__(
        self,
        run: Run,
        members: list[str],
        before: Blocks | None,
        store: HierarchyStore,
        reducing: Reducing,
        origins: np.ndarray,
    ):
        super().__init__(run, members, before)
        self.store, self.reducing, self.origins = store, reducing, origins
        self.amount = len(reducing.targets)

    def run(self) -> None:
        self.deal(
            lambda worker: self.submit(_load, worker, self.store, self.reducing),
            lambda worker, start: self.submit(_reduce, worker, self.origins[start : start + self.step]),
        )

    def receive(self, tasks: dict[int, Future]) -> None:
        for start, values in zip(tasks, self.results(list(tasks.values())), strict=True):
            self.out.put(start, values)


def _load(attempt: str, store: HierarchyStore, reducing: Reducing) -> None:
    clear()
    on_cpu = array_library() is np
    keep(attempt, reducing.of(DistancesTo(store, reducing.targets)) if on_cpu else reducing.on_gpu(store))


def _reduce(attempt: str, origins: np.ndarray) -> Any:
    return held(attempt)(origins)
