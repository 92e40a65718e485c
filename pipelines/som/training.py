"""The run of a training, for `pipelines.som.train`: stretches of epochs, each committed, and the tasks on the workers.

A stretch is one epoch where several workers have samples, who need each other's sums. Where one has them all, it is
what that worker does in `SECONDS` without asking anybody, to the end of a chunk of the store: an epoch of a small map
is sooner done than scheduled, written or committed.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future, secede

from gpuops import train_online
from pipelines.som.epoch import Judgement, MapJob, Sums, Survey, accumulate, learn, survey
from pipelines.som.plan import SLOTS, SomPlan
from pipelines.som.schedule import OnlineSteps, settled
from pipelines.som.shard import Shard
from pipelines.som.start import Products, Steps, pick, principal_plane, products_of, random_rows, steps_for
from pipelines.stores.codebook import CodebookWriter
from pipelines.stores.samples import Samples
from pipelines.workers.attempts import clear, held, keep
from pipelines.workers.device_arrays import array_library
from pipelines.workers.exchange import Exchange, arrived
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.panels import Card, Panels, Token
from pipelines.workers.progress import Progress

IN_HAND = 2  # stretches under way at a time, so that no worker waits for a commit
SECONDS = 0.5  # after which a stretch ends
STRETCH_BYTES = 16 << 20  # of codebooks of a stretch, unless it is one epoch


class Recipe(NamedTuple):
    """How a map is trained.

    `beginning` says what the first codebook is, `given` is that codebook where it was given. `online` are the steps of
    online training, None for epochs of batch learning with the reaches `sigmas`.
    """

    sigmas: list[float]
    beginning: dict[str, Any]
    given: np.ndarray | None
    tolerance: float | None
    online: OnlineSteps | None


class Training(Exchange):
    """An attempt, for `pipelines.workers.attempts.run_attempts`: training from the last commit on."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: Training | None,
        samples: Samples,
        plan: SomPlan,
        job: MapJob,
        recipe: Recipe,
        out: CodebookWriter,
        shown: Progress,
    ):
        super().__init__(client, members, "som", out.run_id[:8], before)
        self.samples, self.plan, self.job, self.recipe, self.out, self.shown = samples, plan, job, recipe, out, shown
        self.committed, self.errors = out.committed(), out.errors()

    def done(self) -> int:
        return self.committed + 1

    def where(self) -> str:
        return f"epoch {max(self.committed, 0)} of {len(self.recipe.sigmas)}"

    def run(self) -> None:
        self.shown.stage("loading")
        cards = self.results(
            [
                self.submit(_load, worker, self.samples, self.plan, worker, self.job, self.recipe._replace(given=None))
                for worker in range(len(self.members))
            ]
        )
        if not self.plan.alone:
            self.meet(cards, "sums", self.shown)
        if self.committed < 0:
            self.shown.stage("first codebook")
            self.out.write(0, self._first()[None])  # committed with those of the first stretch
        self.shown.start(max(self.committed, 0) * self.samples.n)
        self.shown.stage("training")
        self._judge(self._epochs())

    def _first(self) -> np.ndarray:
        """The codebook to begin with."""
        samples, workers = self.samples, range(len(self.members))
        if self.recipe.given is not None:
            return self.recipe.given
        if self.recipe.beginning["kind"] == "random":
            rows = random_rows(samples.n, self.job.grid.units, self.recipe.beginning["seed"])
            codebook = np.empty((len(rows), samples.d), samples.dtype)
            for at, values in self.results([self.submit(_pick, w, rows, samples.means) for w in workers]):
                codebook[at] = values
            return codebook
        steps = steps_for(samples.n, samples.means, samples.minima, samples.maxima, samples.largest_weight)
        first, *others = self.results([self.submit(_products, worker, steps) for worker in workers])
        for part in others:
            first = first.plus(part)
        return principal_plane(first, steps, self.job.grid, samples.dtype)

    def _epochs(self) -> list[Future]:
        """All epochs to come, committed stretch by stretch; the last codebook, for every worker.

        It may turn out that training is over: what is under way then does nothing.
        """
        workers = range(1 if self.plan.alone else len(self.members))
        begin = max(self.committed, 0)
        codebooks = [self.submit(_read, worker, self.out, begin, self.errors) for worker in workers]
        under_way: deque[tuple[list[Future], Future]] = deque()
        while True:
            stop_if_asked()
            while len(under_way) < IN_HAND:
                codebooks = self._stretch(codebooks)
                under_way.append((codebooks, self.submit(_write, 0, self.out, codebooks[0])))
            last, written = under_way.popleft()
            ((number, self.errors, over),) = self.results([written])
            if number > self.committed:
                self.out.commit(number, self.errors)
                self.shown.advance((number - max(self.committed, 0)) * self.samples.n)
                self.committed = number
            self.drop_done()
            if over:
                return last * len(self.members) if self.plan.alone else last

    def _stretch(self, codebooks: list[Future]) -> list[Future]:
        """The next codebook, on every worker that has samples.

        Every worker gets the sums of all and learns the next codebook from them, the same one: that is sooner done
        than sent.
        """
        if self.plan.alone:
            return [self.submit(_train, 0, codebooks[0], self.out.together)]
        sums = [self.submit(_accumulate, worker, last) for worker, last in enumerate(codebooks)]
        parts = list(zip(*(self.sent(worker, token) for worker, token in enumerate(sums)), strict=True))
        return [self.submit(_learn, worker, last, list(parts[worker])) for worker, last in enumerate(codebooks)]

    def _judge(self, codebooks: list[Future]) -> None:
        """Hits and errors of the last codebook, and the end."""
        self.shown.stage("judging")
        workers = range(len(self.members))
        found: list[Survey] = self.results([self.submit(_survey, worker, codebooks[worker]) for worker in workers])
        judged = Judgement(0, 0)
        for part in found:
            judged = judged.plus(part.judged)
        errors = [*self.errors, judged.quantization_error(self.job, self.out.read(self.committed))]
        apart = judged.topographic_error() if self.job.grid.units > 1 else None
        self.out.finish(self.committed, errors, apart, np.sum([part.hits for part in found], axis=0))


# The tasks.


class _State(NamedTuple):
    panels: Panels
    shard: Shard
    job: MapJob
    recipe: Recipe
    xp: Any  # NumPy or CuPy: where the samples are

    def over(self, last: _Learnt) -> bool:
        """Is there no next epoch?"""
        sigmas = self.recipe.sigmas
        return last.number == len(sigmas) or settled(last.errors, sigmas, self.recipe.tolerance)


class _Learnt(NamedTuple):
    """The codebook after `number` epochs, the errors of all before, and those of this stretch, that one the last."""

    number: int
    codebook: np.ndarray
    errors: list[float]
    made: list[np.ndarray]

    def followed_by(self, codebook: np.ndarray, error: float, made: list[np.ndarray]) -> _Learnt:
        """`error` is that of this one."""
        return _Learnt(self.number + 1, codebook, [*self.errors, error], [*made, codebook])


def _load(attempt: str, samples: Samples, plan: SomPlan, worker: int, job: MapJob, recipe: Recipe) -> Card:
    """Set up this worker's ring, then its share of the samples; returns where the ring is."""
    clear()
    start, stop = plan.bounds[worker], plan.bounds[worker + 1]
    xp = array_library() if recipe.online is None else np
    slots = 0 if plan.alone else SLOTS
    panels = Panels(attempt, xp, slots, job.length * np.dtype(np.int64).itemsize, shared=not plan.alone)
    keep(attempt, _State(panels, Shard(samples, start, stop, plan.piece_rows, plan.resident, xp), job, recipe, xp))
    return panels.card


def _products(attempt: str, steps: Steps) -> Products:
    return products_of(held(attempt).shard.pieces(), steps)


def _pick(attempt: str, rows: np.ndarray, means: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    return pick(held(attempt).shard.pieces(), rows, means)


def _read(attempt: str, out: CodebookWriter, number: int, errors: list[float]) -> _Learnt:
    held(attempt)
    return _Learnt(number, out.read(number), errors, [])


def _accumulate(attempt: str, last: _Learnt) -> Token:
    """Sum up the samples of this worker by their best matching units, if there is an epoch; publish the sums."""
    state, slot = held(attempt), last.number % SLOTS
    sums = state.panels.open(slot, (state.job.length,), np.int64)
    if not state.over(last):
        _sums(state, last).flatten(sums)
    return state.panels.publish(slot, last.number)


def _learn(attempt: str, last: _Learnt, parts: list[Any]) -> _Learnt:
    """The next codebook from the sums of all workers; the same one if there is no next epoch."""
    state = held(attempt)
    if state.over(last):
        return last._replace(made=[])
    flat = arrived(attempt, parts[0]).copy()
    for part in parts[1:]:
        flat += arrived(attempt, part)
    return _next(state, last, Sums.of(flat, state.job), [])


def _train(attempt: str, last: _Learnt, together: int) -> _Learnt:
    """Epochs by the one worker that has all samples, for a while, until a chunk of `together` codebooks is full."""
    state, end = held(attempt), time.monotonic() + SECONDS
    last = last._replace(made=[])
    while not state.over(last):
        steps = state.recipe.online
        last = _next_online(state, last, steps) if steps else _next(state, last, _sums(state, last), last.made)
        enough = time.monotonic() >= end or len(last.made) * last.codebook.nbytes > STRETCH_BYTES
        if enough and (last.number + 1) % together == 0:
            break
    return last


def _sums(state: _State, last: _Learnt) -> Sums:
    return accumulate(state.shard.pieces(), state.xp.asarray(last.codebook), state.job)


def _next(state: _State, last: _Learnt, total: Sums, made: list[np.ndarray]) -> _Learnt:
    sigma = state.recipe.sigmas[last.number]
    error = total.judged.quantization_error(state.job, last.codebook)
    return last.followed_by(learn(total, last.codebook, state.job, sigma, state.xp), error, made)


def _next_online(state: _State, last: _Learnt, steps: OnlineSteps) -> _Learnt:
    """From a step for each sample, in an order drawn for this epoch. All samples are one piece."""
    (piece,) = state.shard.pieces()
    job, judged = state.job, survey([piece], last.codebook, state.job).judged
    order = random_rows(job.n, job.n, (steps.seed + last.number) % 2**64)
    sigmas, rates = steps.of_epoch(last.number)
    options = job.kernel, job.metric, job.missing
    codebook = train_online(last.codebook, piece.values, order, job.grid, sigmas, rates, *options)
    return last.followed_by(codebook, judged.quantization_error(job, last.codebook), last.made)


def _write(attempt: str, out: CodebookWriter, last: _Learnt) -> tuple[int, list[float], bool]:
    """Write the codebooks of a stretch that are to be kept, while the worker goes on; how far training is."""
    state = held(attempt)
    secede()
    # A chunk of several codebooks is kept or dropped whole.
    made = last.made if out.keep is None or out.together > 1 else last.made[-out.keep :]
    if made:
        out.write(last.number + 1 - len(made), np.stack(made))
    return last.number, last.errors, state.over(last)


def _survey(attempt: str, last: _Learnt) -> Survey:
    state = held(attempt)
    return survey(state.shard.pieces(), state.xp.asarray(last.codebook), state.job)
