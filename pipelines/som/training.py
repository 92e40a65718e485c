"""Run a training for `pipelines.som.train`: segments of epochs, each written and committed while the next segment runs.

An epoch of a small map takes less time than to schedule, write or commit it. So a segment has as many epochs as take
half a second, and two segments are under way at a time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import reduce
from typing import Any

import numpy as np
from distributed import Future

from pipelines.som import learner
from pipelines.som.epoch import Judgement, MapJob, Survey
from pipelines.som.learner import Learner
from pipelines.som.plan import SomPlan
from pipelines.som.schedule import Recipe
from pipelines.som.shard import Shard
from pipelines.som.stage_graph import SLOTS, Epochs
from pipelines.som.start import Products, Steps, pick, principal_plane, products_of, random_rows, steps_for
from pipelines.stores.codebook import CodebookWriter
from pipelines.stores.samples import Samples
from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.device_arrays import array_library
from pipelines.workers.exchange import Exchange
from pipelines.workers.executors import Executor, choose_executor
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.rings import Ring, RingAddress
from pipelines.workers.saving import let_next_begin
from pipelines.workers.stage_graph import Need

AHEAD = 2  # segments under way at a time, so that no worker waits for a commit
SECONDS = 0.5  # longest time of a segment, unless one epoch takes longer
# Segments submitted in a row, before all must end: Dask remembers all earlier tasks that a task under way depends on.
CHAINED = 256
MOST_EPOCHS = 1024  # most epochs in a segment
SEGMENT_BYTES = 16 << 20  # most bytes of the codebooks of a segment, unless one codebook is larger

# A write goes on after its attempt is lost. The next attempt may write the same chunk, so it waits for that write.
_writing = threading.Lock()


class Training(Attempt):
    """An attempt to train from the last commit to the end."""

    out: CodebookWriter
    kind = "som"

    def __init__(
        self,
        run: Run,
        members: list[str],
        before: Training | None,
        samples: Samples,
        plan: SomPlan,
        job: MapJob,
        recipe: Recipe,
        coordination: str | None,
    ):
        super().__init__(run, members, before)
        self.samples, self.plan, self.job, self.recipe = samples, plan, job, recipe
        self.committed, self.errors = self.out.committed(), self.out.errors()
        self.workers = range(1 if plan.alone else len(members))  # numbers of the workers that have samples
        self.coordination = coordination

    def done(self) -> int:
        return self.committed + 1

    def where(self) -> str:
        return f"epoch {max(self.committed, 0)} of {len(self.recipe.sigmas)}"

    def run(self) -> None:
        self.bar.stage("loading")
        recipe = self.recipe._replace(given=None)
        loads = [self.submit(_load, w, self.samples, self.plan, w, self.job, recipe) for w in range(len(self.members))]
        addresses = self.results(loads)[: len(self.workers)]
        exchange = Exchange(self, addresses, "sums")
        executor = choose_executor(exchange, "epochs", AHEAD, self.coordination)
        if self.committed < 0:
            self.bar.stage("first codebook")
            self.out.write(0, self._first()[None])  # committed with the codebooks of the first segment
        self.bar.start(max(self.committed, 0) * self.samples.n)
        self.bar.stage("training")
        self._epochs(executor)
        self._judge()

    def _first(self) -> np.ndarray:
        """Return the first codebook."""
        samples = self.samples
        if self.recipe.given is not None:
            return self.recipe.given
        if self.recipe.beginning["kind"] == "random":
            rows = random_rows(samples.n, self.job.grid.units, self.recipe.beginning["seed"])
            codebook = np.empty((len(rows), samples.d), samples.dtype)
            for at, values in self.on_all(_pick, rows, samples.means):
                codebook[at] = values
            return codebook
        steps = steps_for(samples.n, samples.means, samples.minima, samples.maxima, samples.largest_weight)
        total = reduce(Products.plus, self.on_all(_products, steps))
        return principal_plane(total, steps, self.job.grid, samples.dtype)

    def _epochs(self, executor: Executor) -> None:
        """Run all epochs that are left, and commit them segment by segment.

        If training ends early, the segments still under way are skipped.
        """
        first, end = max(self.committed, 0), len(self.recipe.sigmas)
        self.wait([self.submit(learner.begin, worker, self.out, first, self.errors) for worker in self.workers])
        graph, number = Epochs(len(self.workers), self.job.length), first
        writes: deque[Future] = deque()
        written: Future | None = None  # the last write: writes follow each other, as two may change the same chunk
        over, begin, left = first == end, time.monotonic(), CHAINED
        while not over:
            stop_if_asked()
            while len(executor.under_way) < executor.ahead and number < end and left:
                stop = min(number + self._at_once(number, time.monotonic() - begin, self.committed - first), end)
                for epoch in range(number, stop):
                    graph.epoch(epoch - first)
                segment = graph.segment()
                executor.submit(segment)
                number, left = stop, left - 1
                done = max(placed.done for placed in segment if placed.worker == 0)
                written = self.submit(_write, 0, self.out, number, [executor.after(Need(0, done)), written])
                writes.append(written)
            executor.wait_oldest()
            over = self._commit(writes.popleft()) or (number == end and not executor.under_way)
            if not executor.under_way:
                executor.wait_all()
                left, written = CHAINED, None
        executor.wait_all()
        for write in [*writes, self.submit(_write, 0, self.out, end, [written])]:
            self._commit(write)  # the last write has codebooks that were late, as a worker waited too long for another

    def _at_once(self, number: int, seconds: float, epochs: int) -> int:
        """Return the number of epochs of the next segment, which ends with a full chunk of the store.

        So far `epochs` epochs took `seconds` seconds; epoch `number` is the next.
        """
        codebook, together = self.job.grid.units * self.samples.d * self.samples.dtype.itemsize, self.out.together
        most = max(1, min(MOST_EPOCHS, SEGMENT_BYTES // codebook, int(SECONDS * epochs / max(seconds, 1e-9))))
        return max(most // together, 1) * together - (number + 1) % together

    def _commit(self, write: Future) -> bool:
        """Commit the codebooks that the task `write` writes; returns whether training is over."""
        ((number, errors, over),) = self.results([write])
        if number > self.committed:
            self.errors = errors
            self.out.commit(number, errors)
            self.bar.advance((number - max(self.committed, 0)) * self.samples.n)
            self.committed = number
        return over

    def _judge(self) -> None:
        """Compute hits and errors of the last codebook, and finish the store."""
        self.bar.stage("judging")
        found: list[Survey] = self.results([self.submit(learner.judge, worker) for worker in self.workers])
        judged = reduce(Judgement.plus, (part.judged for part in found))
        unit = self.job.distance_unit(self.out.read(self.committed))
        errors = [*self.errors, judged.quantization_error(self.job, unit)]
        hits = np.sum([part.hits for part in found], axis=0)
        self.out.finish(self.committed, errors, judged.topographic_error(self.job), hits)


# The tasks.


def _load(attempt: str, samples: Samples, plan: SomPlan, worker: int, job: MapJob, recipe: Recipe) -> RingAddress:
    """Set up the ring of this worker, then load its samples; returns the address of the ring."""
    with _writing:
        clear_states()
    start, stop = plan.bounds[worker], plan.bounds[worker + 1]
    xp = array_library() if recipe.online is None else np
    slots, sums = 1 if plan.alone else SLOTS, job.length * np.dtype(np.int64).itemsize
    ring = Ring(attempt, xp, slots, sums, shared=not plan.alone)
    shard = Shard(samples, start, stop, plan.piece_rows, plan.resident, xp)
    keep_state(attempt, Learner(worker, job, recipe, shard, xp, ring))
    return ring.address


def _products(attempt: str, steps: Steps) -> Products:
    return products_of(state_of(attempt).shard.pieces(), steps)


def _pick(attempt: str, rows: np.ndarray, means: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    return pick(state_of(attempt).shard.pieces(), rows, means)


def _write(attempt: str, out: CodebookWriter, until: int, _after: Any) -> tuple[int, list[float], bool]:
    """Write the codebooks of this worker up to number `until` that are not written yet and are to be kept.

    Returns the number of the last codebook, -1 if there is none; the errors of the codebooks before; and whether
    training is over.
    """
    state: Learner = state_of(attempt)
    made = [one for one in state.made if one[0] <= until]
    del state.made[: len(made)]  # in place: a worker of several threads may append meanwhile
    if not made:
        return -1, [], state.over
    let_next_begin()
    number, errors = made[-1][0], state.errors[: made[-1][0]]
    # A chunk of several codebooks is kept or dropped whole.
    kept = made if out.keep is None or out.together > 1 else made[-out.keep :]
    with _writing:
        state_of(attempt)  # raises StateLost where the next attempt has begun
        out.write(kept[0][0], np.stack([codebook() for _, codebook in kept]))
    return number, errors, state.recipe.is_over(number, errors)
