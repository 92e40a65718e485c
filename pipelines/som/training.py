"""The run of a training, for `pipelines.som.train`: epochs of tasks on the workers, each committed, and the tasks."""

from __future__ import annotations

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

IN_HAND = 2  # epochs under way at a time, so that no worker waits for a commit


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
        self.number: int = 0 if before is None else before.number + 1
        super().__init__(client, members, "som", f"{out.run_id[:8]}-{self.number}")
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
                self.submit(_load, worker, self.samples, self.plan, worker, self.job, self.recipe.online)
                for worker in range(len(self.members))
            ]
        )
        if self.recipe.online is None:
            self.meet(cards, "sums", self.shown)
        if self.committed < 0:
            self.shown.stage("first codebook")
            self.out.write(0, self._first())
            self.out.commit(0, [])
            self.committed = 0
        self.shown.start(self.committed * self.samples.n)
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
        """All epochs to come, committed one by one; the last codebook, on every worker.

        Every worker gets the sums of all and learns the next codebook from them, the same one: that is sooner done
        than sent.
        """
        workers = range(len(self.members))
        codebooks = [self.submit(_read, worker, self.out, self.committed) for worker in workers]
        if self._settled():  # a run that was killed before it could say so
            return codebooks
        learnt: deque[tuple[int, list[Future], Future]] = deque()
        ahead = IN_HAND if self.recipe.tolerance is None else 1  # else it may turn out that there is no next epoch
        epoch = self.committed
        while epoch < len(self.recipe.sigmas) or learnt:
            stop_if_asked()
            while epoch < len(self.recipe.sigmas) and len(learnt) < ahead:
                if self.recipe.online is not None:
                    codebooks = [self.submit(_learn_online, 0, codebooks[0], epoch)] * len(workers)
                else:
                    sums = [self.submit(_accumulate, worker, codebooks[worker], epoch) for worker in workers]
                    parts = list(zip(*(self.sent(worker, token) for worker, token in enumerate(sums)), strict=True))
                    sigma = self.recipe.sigmas[epoch]
                    codebooks = [
                        self.submit(_learn, worker, codebooks[worker], list(parts[worker]), sigma) for worker in workers
                    ]
                epoch += 1
                learnt.append((epoch, codebooks, self.submit(_write, 0, self.out, epoch, codebooks[0])))
            number, last, written = learnt.popleft()
            (error,) = self.results([written])
            self.errors = [*self.errors[: number - 1], error]
            self.out.commit(number, self.errors)
            self.committed = number
            self.shown.advance(self.samples.n)
            self.drop_done()
            if self._settled():
                return last
        return codebooks

    def _settled(self) -> bool:
        return settled(self.errors, self.recipe.sigmas, self.recipe.tolerance)

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
    online: OnlineSteps | None
    xp: Any  # NumPy or CuPy: where the samples are


class _Learnt(NamedTuple):
    codebook: np.ndarray
    error: float  # of the codebook before


def _load(attempt: str, samples: Samples, plan: SomPlan, worker: int, job: MapJob, online: OnlineSteps | None) -> Card:
    """Set up this worker's ring, then its share of the samples; returns where the ring is."""
    clear()
    start, stop = plan.bounds[worker], plan.bounds[worker + 1]
    xp = array_library() if online is None else np
    slots, shared = 0 if online is not None else SLOTS, len(plan.bounds) > 2
    panels = Panels(attempt, xp, slots, job.length * np.dtype(np.int64).itemsize, shared)
    keep(attempt, _State(panels, Shard(samples, start, stop, plan.piece_rows, plan.resident, xp), job, online, xp))
    return panels.card


def _products(attempt: str, steps: Steps) -> Products:
    return products_of(held(attempt).shard.pieces(), steps)


def _pick(attempt: str, rows: np.ndarray, means: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    return pick(held(attempt).shard.pieces(), rows, means)


def _read(attempt: str, out: CodebookWriter, number: int) -> _Learnt:
    held(attempt)
    return _Learnt(out.read(number), float("nan"))


def _accumulate(attempt: str, last: _Learnt, epoch: int) -> Token:
    """Sum up the samples of this worker by their best matching units, and publish the sums."""
    state = held(attempt)
    sums = accumulate(state.shard.pieces(), state.xp.asarray(last.codebook), state.job)
    sums.flatten(state.panels.open(epoch % SLOTS, (state.job.length,), np.int64))
    return state.panels.publish(epoch % SLOTS, epoch)


def _learn(attempt: str, last: _Learnt, parts: list[Any], sigma: float) -> _Learnt:
    """The next codebook from the sums of all workers."""
    state = held(attempt)
    flat = arrived(attempt, parts[0]).copy()
    for part in parts[1:]:
        flat += arrived(attempt, part)
    total = Sums.of(flat, state.job)
    error = total.judged.quantization_error(state.job, last.codebook)
    return _Learnt(learn(total, last.codebook, state.job, sigma, state.xp), error)


def _learn_online(attempt: str, last: _Learnt, number: int) -> _Learnt:
    """The next codebook from a step for each sample, in an order drawn for this epoch. All samples are one piece."""
    state = held(attempt)
    (piece,) = state.shard.pieces()
    job, error = state.job, _survey(attempt, last).judged.quantization_error(state.job, last.codebook)
    order = random_rows(job.n, job.n, (state.online.seed + number) % 2**64)
    sigmas, rates = state.online.of_epoch(number)
    options = job.kernel, job.metric, job.missing
    return _Learnt(train_online(last.codebook, piece.values, order, job.grid, sigmas, rates, *options), error)


def _write(attempt: str, out: CodebookWriter, number: int, learnt: _Learnt) -> float:
    """Write a codebook, while the worker goes on; the error of the one before is the token."""
    held(attempt)
    secede()
    out.write(number, learnt.codebook)
    return learnt.error


def _survey(attempt: str, last: _Learnt) -> Survey:
    state = held(attempt)
    return survey(state.shard.pieces(), state.xp.asarray(last.codebook), state.job)
