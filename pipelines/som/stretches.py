"""Epochs that a worker goes through in one task (for `pipelines.som.training`).

Through Dask an epoch is two tasks of each worker and a hop in between. Here each goes on until the stretch ends, and
what it waits for are the others' sums, which a counter of each announces (`pipelines.workers.signals`). No counter says
who is done with a slot: whoever publishes the sums of an epoch has taken those of all others of the epoch before. So
with two slots nobody needs what is written over.

All workers have to end a stretch after the same epoch. The first one decides, as it has the codebooks to be written. It
says so in an element behind its sums, where the others have 0; so all find the same when they add them up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from gpuops import train_online
from pipelines.som.epoch import Judgement, MapJob, Sums, Survey, accumulate, learn, survey
from pipelines.som.schedule import Recipe
from pipelines.som.shard import Shard
from pipelines.som.start import random_rows
from pipelines.stores.codebook import CodebookWriter
from pipelines.workers.attempts import held
from pipelines.workers.device_arrays import later, synchronize
from pipelines.workers.exchange import arrived
from pipelines.workers.panels import Card, Panels, Token
from pipelines.workers.signals import Signals, patience, wait_until

SECONDS = 0.5  # after which a stretch ends
STRETCH_BYTES = 16 << 20  # of codebooks of a stretch, unless it is one epoch
PUBLISHED = 0  # the counter of the epochs whose sums a worker has published


@dataclass
class Learner:
    """What one worker holds: its share of the samples, and the codebook, which is that of all."""

    worker: int
    job: MapJob
    recipe: Recipe
    shard: Shard
    xp: Any  # NumPy or CuPy: where the samples and the codebook are
    panels: Panels
    slots: int  # of its ring
    signals: Signals
    cards: Sequence[Card]  # of all workers that have samples
    number: int = 0  # epochs done
    codebook: Any = None  # (M, d), after these
    errors: list[float] = field(default_factory=list)  # of the codebooks before
    published: int = 0  # epochs whose sums are published
    own: Any = None  # the token of the sums published last
    seconds: float = 0.0  # that it took to make them

    @property
    def over(self) -> bool:
        """Whether training has ended."""
        return self.recipe.is_over(self.number, self.errors)

    def follow(self, codebook: Any, error: float) -> None:
        """Go on to the next codebook; `error` is that of this one."""
        self.number, self.codebook, self.errors = self.number + 1, codebook, [*self.errors, error]


class Stretch(NamedTuple):
    """How far a worker is, and on the first one the codebooks that the stretch has made."""

    number: int
    errors: list[float]
    over: bool
    made: list[np.ndarray]


Step = tuple[Any, float, bool]  # the next codebook, the error of this one, and whether the stretch ends


def begin(attempt: str, out: CodebookWriter, number: int, errors: list[float]) -> None:
    """Take the codebook after `number` epochs, which is committed."""
    state = held(attempt)
    state.number, state.published, state.errors = number, number, errors
    state.codebook = state.xp.asarray(out.read(number))


def train(attempt: str, together: int, _after: Any) -> Stretch:
    """Train for a while, and on until a chunk of `together` codebooks is full.

    The call ends earlier where the sums of another worker do not come; the next one goes on from there.
    """
    state, start = held(attempt), time.monotonic()
    made: list[Callable[[], np.ndarray]] = []

    def last() -> bool:
        """Whether the epoch that is under way ends the stretch: for the first worker to say."""
        enough = time.monotonic() - start >= SECONDS or (len(made) + 1) * state.codebook.nbytes > STRETCH_BYTES
        return enough and (state.number + 2) % together == 0

    ended = False
    while not (ended or state.over):
        step = _learn_together(state, last) if state.recipe.online is None else _learn_online(state, last)
        if step is None:
            break
        codebook, error, ended = step
        state.follow(codebook, error)
        if state.worker == 0:
            made.append(later(codebook))
    return _stretch(state, made)


def publish(attempt: str, _after: Any) -> Token:
    """Publish the sums of this worker, from which all `learn_from` by way of Dask."""
    return _publish(held(attempt), lambda: True)


def learn_from(attempt: str, parts: list[Any]) -> Stretch:
    """An epoch from the sums of all workers; none if training is over."""
    state = held(attempt)
    made: list[Callable[[], np.ndarray]] = []
    if not state.over:
        own_first = parts[state.worker :] + parts[: state.worker]
        codebook, error, _ = _learn(state, reduce(add, (arrived(attempt, part) for part in own_first)))
        state.follow(codebook, error)
        if state.worker == 0:
            made.append(later(codebook))
    return _stretch(state, made)


def judge(attempt: str) -> Survey:
    """Hits and errors of the codebook, by the samples of this worker."""
    state = held(attempt)
    return survey(state.shard.pieces(), state.codebook, state.job)


def _stretch(state: Learner, made: list[Callable[[], np.ndarray]]) -> Stretch:
    return Stretch(state.number, state.errors, state.over, [codebook() for codebook in made])


def _learn_together(state: Learner, last: Callable[[], bool]) -> Step | None:
    """An epoch of all workers; None where one of them is late."""
    if state.published == state.number:
        state.own = _publish(state, last)
        state.published += 1
        state.signals.show(PUBLISHED, state.published)
    total, workers = state.panels.take(state.own), len(state.cards)
    for other in range(state.worker + 1, state.worker + workers):
        if not _wait(state, other % workers):
            return None
        total = total + state.panels.take(replace(state.own, card=state.cards[other % workers]))
    return _learn(state, total)


def _wait(state: Learner, worker: int) -> bool:
    """Wait for the sums of a worker; False where they do not come."""
    return wait_until(
        lambda: state.signals.seen(worker, PUBLISHED) > state.number,
        lambda: state.panels.over,
        patience(state.seconds),
    )


def _publish(state: Learner, last: Callable[[], bool]) -> Token:
    """Sum up the samples of this worker by their best matching units, unless training has ended; publish the sums."""
    start, slot = time.monotonic(), state.number % state.slots
    sums = state.panels.open(slot, (state.job.length + 1,), np.int64)
    if not state.over:
        accumulate(state.shard.pieces(), state.codebook, state.job).flatten(sums[:-1])
        synchronize(sums)  # `last` looks at the clock
        sums[-1] = state.worker == 0 and last()
    token = state.panels.publish(slot, state.number)
    state.seconds = time.monotonic() - start
    return token


def _learn(state: Learner, total: Any) -> Step:
    """The step that the sums of all workers make."""
    job, sigma = state.job, state.recipe.sigmas[state.number]
    unit, known = job.distance_unit(state.codebook), later(total[-1 - len(Judgement._fields) :])
    codebook = learn(Sums.of(total[:-1], job), state.codebook, job, sigma)
    *judged, ended = known().tolist()  # while the device learns
    return codebook, Judgement(*judged).quantization_error(job, unit), bool(ended)


def _learn_online(state: Learner, last: Callable[[], bool]) -> Step:
    """A step for each sample, in an order drawn for this epoch. All samples are one piece."""
    (piece,) = state.shard.pieces()
    job, steps, codebook = state.job, state.recipe.online, state.codebook
    assert steps is not None
    error = survey([piece], codebook, job).judged.quantization_error(job, job.distance_unit(codebook))
    order = random_rows(job.n, job.n, (steps.seed + state.number) % 2**64)
    sigmas, rates = steps.of_epoch(state.number)
    options = job.kernel, job.metric, job.missing
    return train_online(codebook, piece.values, order, job.grid, sigmas, rates, *options), error, last()
