"""The run of a training, for `pipelines.som.train`: stretches of epochs, each committed, and the tasks on the workers.

Where all workers can map each other's memory, or one has all samples, a stretch is one task of each worker. It goes
through epochs for a while (`pipelines.som.stretches`), as one of a small map is sooner done than scheduled, written or
committed. Elsewhere a stretch is one epoch, in which the sums of the workers travel by way of Dask.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from distributed import Client, Future, secede

from pipelines.som import stretches
from pipelines.som.epoch import Judgement, MapJob, Survey
from pipelines.som.plan import SLOTS, SomPlan
from pipelines.som.schedule import Recipe
from pipelines.som.shard import Shard
from pipelines.som.start import Products, Steps, pick, principal_plane, products_of, random_rows, steps_for
from pipelines.som.stretches import Learner, Stretch
from pipelines.stores.codebook import CodebookWriter
from pipelines.stores.samples import Samples
from pipelines.workers.attempts import clear, held, keep
from pipelines.workers.device_arrays import array_library
from pipelines.workers.exchange import Exchange
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.panels import Card, Panels
from pipelines.workers.progress import Progress
from pipelines.workers.signals import Signals, SignalsCard

UNDER_WAY = 2  # stretches under way at a time, so that no worker waits for a commit


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
        # Those that have samples; and whether they get stretches of epochs, and wait for signals of each other.
        self.workers = range(1 if plan.alone else len(members))
        self._signalled = plan.alone

    def done(self) -> int:
        return self.committed + 1

    def where(self) -> str:
        return f"epoch {max(self.committed, 0)} of {len(self.recipe.sigmas)}"

    def run(self) -> None:
        self.shown.stage("loading")
        recipe = self.recipe._replace(given=None)
        loads = [self.submit(_load, w, self.samples, self.plan, w, self.job, recipe) for w in range(len(self.members))]
        cards, signals = zip(*self.results(loads), strict=True)
        if not self.plan.alone:
            self.meet(cards, "sums", self.shown)
            self._signalled = self.meet_signals(cards, signals, "epochs", self.shown)
        if self.committed < 0:
            self.shown.stage("first codebook")
            self.out.write(0, self._first()[None])  # committed with those of the first stretch
        self.shown.start(max(self.committed, 0) * self.samples.n)
        self.shown.stage("training")
        self._epochs()
        self._judge()

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

    def _epochs(self) -> None:
        """All epochs to come, committed stretch by stretch.

        It may turn out that training is over: what is under way then does nothing.
        """
        begin = max(self.committed, 0)
        done = [self.submit(stretches.begin, worker, self.out, begin, self.errors) for worker in self.workers]
        under_way: deque[tuple[list[Future], Future]] = deque()
        while True:
            stop_if_asked()
            while len(under_way) < UNDER_WAY:
                done = self._stretch(done)
                under_way.append((done, self.submit(_write, 0, self.out, done[0])))
            stretch, written = under_way.popleft()
            self.wait([*stretch, written])  # an error of any worker, for whose sums the others wait, ends the run
            ((number, self.errors, over),) = self.results([written])
            if number > self.committed:
                self.out.commit(number, self.errors)
                self.shown.advance((number - max(self.committed, 0)) * self.samples.n)
                self.committed = number
            self.drop_done()
            # A worker that gave up waiting for another is behind, and goes on with the next stretch.
            if over and all(each.over for each in self.results(stretch[1:])):
                return

    def _stretch(self, done: list[Future]) -> list[Future]:
        """The next epochs of every worker that has samples, after those of `done`.

        Every worker gets the sums of all and learns the next codebook from them, the same one: that is sooner done
        than sent.
        """
        if self._signalled:
            return [self.submit(stretches.train, w, self.out.together, after) for w, after in enumerate(done)]
        sums = [self.submit(stretches.publish, worker, after) for worker, after in enumerate(done)]
        parts = list(zip(*(self.sent(worker, token) for worker, token in enumerate(sums)), strict=True))
        return [self.submit(stretches.learn_from, worker, list(parts[worker])) for worker in self.workers]

    def _judge(self) -> None:
        """Hits and errors of the last codebook, and the end."""
        self.shown.stage("judging")
        found: list[Survey] = self.results([self.submit(stretches.judge, worker) for worker in self.workers])
        judged = Judgement(0, 0)
        for part in found:
            judged = judged.plus(part.judged)
        unit = self.job.distance_unit(self.out.read(self.committed))
        errors = [*self.errors, judged.quantization_error(self.job, unit)]
        apart = judged.topographic_error() if self.job.grid.units > 1 else None
        self.out.finish(self.committed, errors, apart, np.sum([part.hits for part in found], axis=0))


# The tasks.


def _load(
    attempt: str, samples: Samples, plan: SomPlan, worker: int, job: MapJob, recipe: Recipe
) -> tuple[Card, SignalsCard]:
    """Set up this worker's ring, then its share of the samples; returns where the ring and the signals are."""
    clear()
    start, stop = plan.bounds[worker], plan.bounds[worker + 1]
    xp = array_library() if recipe.online is None else np
    slots, sums = 1 if plan.alone else SLOTS, (job.length + 1) * np.dtype(np.int64).itemsize
    panels, signals = Panels(attempt, xp, slots, sums, shared=not plan.alone), Signals([0])
    shard = Shard(samples, start, stop, plan.piece_rows, plan.resident, xp)
    keep(attempt, Learner(worker, job, recipe, shard, xp, panels, slots, signals, [panels.card]))
    return panels.card, signals.card


def _products(attempt: str, steps: Steps) -> Products:
    return products_of(held(attempt).shard.pieces(), steps)


def _pick(attempt: str, rows: np.ndarray, means: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    return pick(held(attempt).shard.pieces(), rows, means)


def _write(attempt: str, out: CodebookWriter, done: Stretch) -> tuple[int, list[float], bool]:
    """Write the codebooks of a stretch that are to be kept, while the worker goes on; how far training is."""
    held(attempt)
    secede()
    # A chunk of several codebooks is kept or dropped whole.
    made = done.made if out.keep is None or out.together > 1 else done.made[-out.keep :]
    if made:
        out.write(done.number + 1 - len(made), np.stack(made))
    return done.number, done.errors, done.over
