"""A cluster that is played: drivers, executors and lists of workers are the real ones, time is an order of events.

Tasks of Dask are delayed and taken in any order that their futures allow; waits of workers end too early; a GPU does
what it was given at any later time, in order; workers are killed between any two tasks. There are no threads and no
sleep, so a seed is a history.
"""

import random
from collections import deque
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from pipelines.workers import exchange, executors, resident_state
from pipelines.workers.attempts import WorkersChanged
from pipelines.workers.executors import ByScheduler
from pipelines.workers.resident_state import state_of
from pipelines.workers.rings import RingAddress, SlotReused, Token
from pipelines.workers.stage_graph import StageGraph


class Broken(AssertionError):
    """An invariant does not hold."""


FAULTS = Broken, SlotReused


class PlayedFuture:
    def __init__(self, task, arguments, worker):
        self.task, self.arguments, self.worker = task, arguments, worker
        self.finished, self.value, self.steps = False, None, None
        self.seceded = False  # from its worker, which goes on with other tasks

    def done(self):
        return self.finished

    def release(self):
        pass


class PlayedWorker:
    """A process with a GPU: what is given to the device is done later, in order, and surely by `synchronize`."""

    def __init__(self, cluster, number):
        self.cluster, self.address, self.tilepath_state = cluster, f"worker-{number}", {}
        self.alive, self.running, self.device = True, None, deque()
        self.ending = []  # calls that the running task makes after it has seceded

    def give(self, work):
        self.device.append(work)
        return work

    def synchronize(self, mark=None):
        while self.device and (mark is None or mark in self.device):
            self.device.popleft()()

    def log_event(self, topic, message):
        pass

    def wait_for_seceded(self):
        """Play the tasks that have seceded from this worker to their ends."""
        for task in [task for task in self.cluster.tasks if task.seceded and task.worker is self]:
            while not task.finished:
                self.cluster.step(task)


class Cluster:
    """Workers, and the tasks that they were given."""

    def __init__(self, seed, workers, kills=0, mapped=True):
        self.random = random.Random(seed)
        self.workers = [PlayedWorker(self, number) for number in range(workers)]
        self.tasks, self.kills, self.mapped = [], kills, mapped
        self.now = None  # the worker whose task is going on
        self.rings = {}

    @property
    def members(self):
        return [worker.address for worker in self.workers if worker.alive]

    def worker(self, address):
        return next(worker for worker in self.workers if worker.address == address)

    @contextmanager
    def on(self, worker):
        before, self.now = self.now, worker
        yield
        self.now = before

    def event(self):
        """Something happens somewhere."""
        if self.kills and len(self.members) > 1 and self.random.random() < 0.01:
            self.kills -= 1
            victim = self.worker(self.random.choice(self.members))
            victim.alive = False
            self.tasks = [task for task in self.tasks if task.worker is not victim]
            return
        busy = [worker for worker in self.workers if worker.alive and worker.device]
        ready = [task for task in self.tasks if self._can_go_on(task)]
        if not busy and not ready:
            raise Broken("nothing can happen any more")
        chosen = self.random.choice([*busy, *ready])
        if isinstance(chosen, PlayedWorker):
            chosen.device.popleft()()
        else:
            self.step(chosen)

    def _can_go_on(self, task):
        free = task.seceded or task.worker.running in (None, task)
        return free and all(future.finished for future in futures_in(task.arguments))

    def step(self, future):
        """A task is done or goes a step further: a list of tasks by one task, one that has seceded to its end."""
        worker = future.worker
        if not future.seceded:
            worker.running = future
        with self.on(worker):
            if future.steps is None:
                arguments = filled(future.arguments)
                future.steps = (
                    played_list(*arguments) if future.task is executors.run_list else once(future.task, arguments)
                )
            try:
                future.seceded = next(future.steps)
                if future.seceded:
                    worker.running = None
                return
            except StopIteration as end:
                future.value = end.value
        future.finished = True
        if not future.seceded:
            worker.running = None
        self.tasks.remove(future)


def once(task, arguments):
    value = task(*arguments)
    ending, resident_state.get_worker().ending = resident_state.get_worker().ending, []
    for work in ending:
        for _ in range(resident_state.get_worker().cluster.random.randrange(1, 30)):
            yield True
        work()
    return value


def played_list(attempt, first, tasks, limit, _after):
    """`executors.run_list` but for its waits, which end at any time."""
    state = state_of(attempt)
    own = state.tasks
    own.extend(first, tasks)
    patience = resident_state.get_worker().cluster.random.randrange(1, 40)
    while not own.empty:
        if own.ready():
            own.step(state)
        elif (patience := patience - 1) < 0:
            break
        yield False
    return own.done


def futures_in(arguments):
    for argument in arguments:
        if isinstance(argument, PlayedFuture):
            yield argument
        elif type(argument) in (list, tuple):
            yield from futures_in(argument)


def filled(argument):
    if isinstance(argument, PlayedFuture):
        return argument.value
    return type(argument)(map(filled, argument)) if type(argument) in (list, tuple) else argument


class PlayedAttempt:
    """In place of `Attempt`'s methods that talk to Dask."""

    cluster = None

    def submit(self, task, worker, *arguments, priority=0, stateless=False, name=()):
        own = [] if stateless else [self.name]
        future = PlayedFuture(task, [*own, *arguments], self.cluster.worker(self.members[worker]))
        if future.worker.alive:
            self.cluster.tasks.append(future)
        self.futures.append(future)
        return future

    def wait(self, futures, limit=None):
        while not all(future.finished for future in futures):
            if not set(self.members) <= set(self.cluster.members):
                raise WorkersChanged("a worker is gone")
            self.cluster.event()

    def results(self, futures, limit=None):
        self.wait(futures)
        return [future.value for future in futures]

    def cancel(self):
        self.futures = []
        self.cluster.tasks = [task for task in self.cluster.tasks if task.seceded]  # they end by themselves
        for worker in self.cluster.workers:
            worker.running = None
            worker.tilepath_state.clear()


class PlayedRing:
    """`Ring` whose slots hold what the device has written by now, and a label."""

    def __init__(self, attempt, worker, slots):
        self.worker, self.slots, self.over = worker, slots, False
        self.labels, self.holds = [None] * slots, [None] * slots
        self.signals = PlayedSignals()
        name = f"{attempt} {worker.address}"
        self.address = RingAddress(attempt, name, "host", True, slots, 1, None, None, self.signals)
        worker.cluster.rings[self.address.ring] = self

    def meet(self, addresses):
        cluster = self.worker.cluster
        return [None if cluster.mapped or address is self.address else "for a test" for address in addresses]

    def open(self, slot, *_):
        self.labels[slot] = None

    def write(self, slot, value):
        """To be called by the device."""
        self.holds[slot] = value

    def publish(self, slot, stage, written=None):
        self.worker.synchronize(written)
        self.labels[slot] = stage

    def take(self, token):
        """What a slot holds now, or as the device finds it where it is read in place."""
        ring = self.worker.cluster.rings[token.address.ring]
        if ring.labels[token.slot] != token.stage:
            raise SlotReused(f"slot {token.slot} holds stage {ring.labels[token.slot]}, not {token.stage}")
        if ring is self:
            return lambda: ring.holds[token.slot]
        value = ring.holds[token.slot]
        return lambda: value

    def arrived(self, sent, slot=0, start=0):
        return self.take(sent) if isinstance(sent, Token) else (lambda: sent)


class PlayedSignals:
    """Counters that all see at once; messages that are late are played by waits that end too early."""

    def __init__(self):
        self.value, self.others = 0, []

    def meet(self, addresses):
        self.others = addresses

    def show(self, count):
        self.value = count

    def seen(self, worker):
        return self.others[worker].value


def played(cluster, patch, make, out, *arguments):
    """Attempts on `cluster` that write the store `out`, until one comes to its end.

    `make` gets what `Run.attempts` gives: a run, the workers that are left, the attempt before, and the arguments.
    Tasks find the worker that they run on.
    """
    patch.setattr(PlayedAttempt, "cluster", cluster)
    run = SimpleNamespace(client=None, out=out, bar=shown(), name="run")
    for module in resident_state, executors:
        patch.setattr(module, "get_worker", lambda: cluster.now)
    patch.setattr(exchange, "_array", _array)
    before = None
    while True:
        before = make(run, cluster.members, before, *arguments)
        try:
            return before.run()
        except WorkersChanged:
            continue
        finally:
            before.cancel()


def _array(attempt, token, on_host, _after):
    resident_state.get_worker().synchronize()
    taken = state_of(attempt).ring.take(token)
    return taken() if callable(taken) else taken


def shown():
    """In place of `Progress`."""
    return SimpleNamespace(**dict.fromkeys(("note", "stage", "start", "advance"), lambda *_: None))


def play_all(play, seeds):
    """Play a history for each seed; an error names its seed."""
    for seed in seeds:
        try:
            play(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def assert_found(play, patch, breaks):
    """Break an invariant; a few hundred histories must find it."""
    breaks(patch)
    with pytest.raises(FAULTS):
        play_all(play, range(300))


def with_seeds(count):
    """Run a test with so many seeds and, if slow tests are run, with the seeds up to 10,000."""
    return pytest.mark.parametrize("seeds", [range(count), pytest.param(range(count, 10_000), marks=pytest.mark.slow)])


def with_each(*breaks):
    """Run a test with each function that breaks an invariant."""
    return pytest.mark.parametrize("breaks", breaks, ids=lambda function: function.__name__.strip("_"))


# What several pipelines break on purpose.


def nothing(*_arguments, **_options):
    """In place of a function that has no result."""


def without_needs_of_reads(patch):
    add = StageGraph.add

    def without(self, worker, kind, stage, rows="", needs=(), reads=()):
        need = add(self, worker, kind, stage, rows, needs, reads)
        last = self._segment[-1]
        kept = last.task._replace(needs=tuple(need for need in needs if need.worker != worker))
        self._segment[-1] = last._replace(task=kept)
        return need

    patch.setattr(StageGraph, "add", without)


def without_the_order_of_a_list(patch):
    submit = ByScheduler.submit

    def without(self, segment):
        submit(self, [placed._replace(done=10 * placed.done) for placed in segment])

    patch.setattr(ByScheduler, "submit", without)


def publishing_before_the_device_has_written(patch):
    patch.setattr(PlayedRing, "publish", lambda self, slot, stage, written=None: self.labels.__setitem__(slot, stage))


def on_a_device_without_order(patch):
    give = PlayedWorker.give

    def shuffled(self, work):
        give(self, work)
        self.device.rotate(self.cluster.random.randrange(3))
        return work

    patch.setattr(PlayedWorker, "give", shuffled)
