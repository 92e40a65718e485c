"""The state of a worker while a map is trained, and the tasks of an epoch (see `pipelines.som.stage_graph`).

All workers find after the same epoch that training is over. The tasks of later epochs are then skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from pipelines.som.epoch import Judgement, MapJob, Sums, Survey, accumulate, learn, learn_online, survey
from pipelines.som.schedule import Recipe
from pipelines.som.shard import Shard
from pipelines.som.stage_graph import ACCUMULATE, PUBLISH
from pipelines.stores.codebook import CodebookWriter
from pipelines.workers.device_arrays import later
from pipelines.workers.executors import WorkerList
from pipelines.workers.resident_state import state_of
from pipelines.workers.rings import Ring
from pipelines.workers.stage_graph import Task


class Learner:
    """A worker's share of the samples, and the codebook, which is the same on all workers.

    Parameters
    ----------
    xp : NumPy or CuPy, the library of the samples and the codebook
    ring : the ring of this worker
    """

    def __init__(self, worker: int, job: MapJob, recipe: Recipe, shard: Shard, xp: Any, ring: Ring):
        self.worker, self.job, self.recipe, self.shard, self.xp, self.ring = worker, job, recipe, shard, xp, ring
        self.tasks = WorkerList(ring)
        self.number = 0  # epochs done
        self.codebook: Any = None  # (M, d), after `number` epochs
        self.errors: list[float] = []  # quantization errors of the earlier codebooks
        self.made: list[tuple[int, Callable[[], np.ndarray]]] = []  # on the first worker: codebooks to be written
        self._sums: Any = None  # int64: the sums of this worker, in their slot of the ring

    @property
    def over(self) -> bool:
        """Whether training has ended."""
        return self.recipe.is_over(self.number, self.errors)

    def perform(self, task: Task, arrays: Iterator[Any]) -> None:
        """Do a task of the stage graph."""
        slot = task.stage % self.ring.slots
        if task.kind == ACCUMULATE:
            self._accumulate(slot)
        elif task.kind == PUBLISH:
            self.ring.publish(slot, task.stage)
        else:
            self._learn(arrays)

    def _accumulate(self, slot: int) -> None:
        """Sum up the samples of this worker by their best matching units."""
        self._sums = self.ring.open(slot, (self.job.length,), np.int64)
        if not (self.over or self.recipe.online):
            accumulate(self.shard.pieces(), self.codebook, self.job).flatten(self._sums)

    def _learn(self, others: Iterator[Any]) -> None:
        """Replace the codebook by the next one, learnt from the sums of all workers."""
        if self.over:
            return
        codebook, error = self._online() if self.recipe.online else self._batch(reduce(add, others, self._sums))
        self.number, self.codebook, self.errors = self.number + 1, codebook, [*self.errors, error]
        if self.worker == 0:
            self.made.append((self.number, later(codebook)))

    def _batch(self, total: Any) -> tuple[Any, float]:
        """Return the next codebook, learnt from the sums of all samples, and the error of the current codebook."""
        unit, known = self.job.distance_unit(self.codebook), later(total[-len(Judgement._fields) :])
        codebook = learn(Sums.of(total, self.job), self.codebook, self.job, self.recipe.sigmas[self.number])
        judged = Judgement(*known().tolist())  # the device learns meanwhile
        return codebook, judged.quantization_error(self.job, unit)

    def _online(self) -> tuple[Any, float]:
        """Return the codebook and the error as `_batch`, after a step for each sample; all samples are one piece."""
        (piece,) = self.shard.pieces()
        assert self.recipe.online is not None
        return learn_online(piece, self.codebook, self.job, self.recipe.online, self.number)


# The tasks of Dask.


def begin(attempt: str, out: CodebookWriter, number: int, errors: list[float]) -> None:
    """Read the committed codebook after `number` epochs, to train on from it."""
    state: Learner = state_of(attempt)
    state.number, state.errors = number, errors
    state.codebook = state.xp.asarray(out.read(number))


def judge(attempt: str) -> Survey:
    """Return hits and sums of errors of the codebook, by the samples of this worker."""
    state: Learner = state_of(attempt)
    return survey(state.shard.pieces(), state.codebook, state.job)
