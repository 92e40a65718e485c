"""Two executors, which have workers do the tasks of a stage graph (`pipelines.workers.stage_graph`).

Neither executor knows an algorithm, and both do the list of a worker in its order, so the result has the same bits.

*By the scheduler*: every task is a task of Dask, and its needs are futures. The dashboard shows the kinds of tasks and
their dependencies, and workers may be on several hosts. A task starts about 5 ms after the task that it waits for has
ended, sometimes later.

*By signals*: a worker gets its list of a segment as one task of Dask. A counter, which all other workers map
(`pipelines.workers.signals`), says how many tasks of the list are done. A need is met when a counter has reached a
number, which is seen within 0.2 ms. All workers must map each other's memory. A worker waits for a limited time; then
its task of Dask ends, returns how many tasks are done, and is sent again.

The state that a worker keeps for the attempt has three attributes. `ring` is its ring. `tasks` is a `WorkerList`,
which signals need. `perform` does a task, given the arrays that the task reads; it uses each array before it takes the
next. Work that a task gives to a GPU may go on after the task has ended.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from distributed import Future, get_worker

from pipelines.workers.exchange import Exchange, token_of
from pipelines.workers.progress import duration
from pipelines.workers.resident_state import state_of
from pipelines.workers.rings import Ring, RingAddress, Token
from pipelines.workers.signals import patience, wait_until
from pipelines.workers.stage_graph import Array, Need, Placed, Task

LISTS = 2  # lists that a worker is given at a time, so that it does not wait for the driver
LOGGED = 100  # tasks of a list that are logged at most: the scheduler keeps 1,000 events
EVENTS = "tilepath-tasks"  # the topic under which workers log the tasks they did by signals


class Performs(Protocol):
    """The state that a worker keeps for an attempt."""

    ring: Ring
    tasks: WorkerList

    def perform(self, task: Task, arrays: Iterator[Any]) -> Any: ...


class WorkerList:
    """The list of one worker: how many tasks are done and, if signals coordinate, the tasks that are left."""

    def __init__(self, ring: Ring):
        self.ring, self.signals = ring, ring.signals
        self.done = 0
        self._addresses: Sequence[RingAddress] = [ring.address]
        self._left: deque[Task] = deque()

    def meet(self, addresses: Sequence[RingAddress]) -> str | None:
        """Map the counters of all workers, and keep the addresses of their rings; returns why that failed, or None."""
        self._addresses = addresses
        return self.signals.meet([address.signals for address in addresses])

    def extend(self, first: int, tasks: Sequence[Task]) -> None:
        """Append tasks, except the tasks that the list has already; `first` is the number of the first task."""
        self._left.extend(tasks[self.done + len(self._left) - first :])

    @property
    def empty(self) -> bool:
        return not self._left

    def ready(self) -> bool:
        """Return whether all needs of the next task are met."""
        return all(self.signals.seen(need.worker) >= need.done for need in self._left[0].needs)

    def step(self, state: Performs) -> Task:
        """Do the next task, which must be ready."""
        task = self._left[0]
        state.perform(task, (self.ring.take(token_of(self._addresses, array)) for array in task.reads))
        self._left.popleft()
        self.done += 1
        self.signals.show(self.done)
        return task


class Executor:
    """The driver's side of the coordination; `ahead` is how many segments may be under way."""

    def __init__(self, exchange: Exchange, ahead: int):
        self.attempt, self.exchange, self.ahead = exchange.attempt, exchange, ahead
        self.under_way: deque[Any] = deque()  # for each segment, the futures or keys that `wait_oldest` waits for

    def submit(self, segment: Sequence[Placed]) -> None:
        """Give a segment to the workers."""
        raise NotImplementedError

    def wait_oldest(self) -> None:
        """Wait for the oldest segment that is under way."""
        raise NotImplementedError

    def after(self, need: Need) -> Future | None:
        """Return a future for another task of Dask to wait for until `need` is met; None if it is met already.

        By the scheduler, the result of the future is the result of the task that `need` names.
        """
        raise NotImplementedError

    def wait_all(self) -> None:
        """Wait for all segments, and release their futures: Dask would keep their lineage forever."""
        while self.under_way:
            self.wait_oldest()


class ByScheduler(Executor):
    """Every task is a task of Dask."""

    def __init__(self, exchange: Exchange, ahead: int):
        super().__init__(exchange, ahead)
        # Tasks that were not waited for, by worker and number in its list.
        self._futures: dict[tuple[int, int], Future] = {}

    def submit(self, segment: Sequence[Placed]) -> None:
        readers: defaultdict[Array, set[int]] = defaultdict(set)
        for worker, _, task in segment:
            for array in task.reads:
                readers[array].add(worker)
        sent: dict[Array, dict[int, Token | Future]] = {}
        for worker, done, task in segment:
            for array in set(task.reads) - sent.keys():
                published = self._futures.get((array.owner, array.published))
                sent[array] = self.exchange.sent(readers[array], array, published)
            arrays = [sent[array][worker] for array in task.reads]
            needs = [self._futures[key] for key in [*task.needs, (worker, done - 1)] if key in self._futures]
            self._futures[worker, done] = self.attempt.submit(
                run_task, worker, task, arrays, needs, name=(task.kind, task.stage, worker, task.rows)
            )
        self.under_way.append([(worker, done) for worker, done, _ in segment])

    def wait_oldest(self) -> None:
        keys = self.under_way.popleft()
        self.attempt.wait([self._futures[key] for key in keys])
        for key in keys:  # later tasks that need this one have no future to wait for: it is done
            del self._futures[key]
        self.attempt.drop_done()

    def after(self, need: Need) -> Future | None:
        return self._futures.get(need)


class BySignals(Executor):
    """A worker's list of a segment is one task of Dask.

    Parameters
    ----------
    limit : seconds that a worker waits for other workers before its task of Dask ends
    """

    def __init__(self, exchange: Exchange, ahead: int, limit: float):
        super().__init__(exchange, ahead)
        self._limit, workers = limit, len(exchange.addresses)
        self._latest: list[Future | None] = [None] * workers
        self._counts = [0] * workers  # number of tasks that each worker was given

    def submit(self, segment: Sequence[Placed]) -> None:
        lists: dict[int, list[Task]] = {}
        for worker, _, task in segment:
            lists.setdefault(worker, []).append(task)
        self.under_way.append([self._submit(worker, tasks) for worker, tasks in lists.items()])

    def wait_oldest(self) -> None:
        self.attempt.wait(self.under_way.popleft())
        # A worker that waited too long goes on when its next list begins. A worker without another list gets an empty
        # one.
        while not self.under_way and (late := self._late()):
            self.attempt.wait([self._submit(worker, []) for worker in late])
        self.attempt.drop_done()

    def after(self, need: Need) -> Future | None:
        return self._latest[need.worker]

    def wait_all(self) -> None:
        super().wait_all()
        self._latest = [None] * len(self._latest)

    def _submit(self, worker: int, tasks: list[Task]) -> Future:
        name = "list of tasks", tasks[0].stage if tasks else "late", worker
        arguments = self._counts[worker], tasks, self._limit, self._latest[worker]
        future = self._latest[worker] = self.attempt.submit(run_list, worker, *arguments, name=name)
        self._counts[worker] += len(tasks)
        return future

    def _late(self) -> list[int]:
        """Return the workers that have not done all tasks they were given."""
        given = [(worker, future) for worker, future in enumerate(self._latest) if future is not None]
        done = self.attempt.results([future for _, future in given])
        return [worker for (worker, _), count in zip(given, done, strict=True) if count < self._counts[worker]]


def check_coordination(asked: Any) -> None:
    """Raise ValueError unless `asked` names an executor or is None."""
    if asked not in (None, "scheduler", "signals"):
        raise ValueError(f"coordination is {asked!r}; pass 'scheduler' or 'signals', or leave it out")


def choose_executor(
    exchange: Exchange,
    what: str,
    ahead: int,
    asked: str | None = None,
    hidden: bool = False,
    seconds: float = 0.0,
) -> Executor:
    """Return the executor that was `asked` for, "scheduler" or "signals"; by default by signals where possible.

    Parameters
    ----------
    what : name of the stages in messages
    ahead : segments that may be under way
    hidden : whether the work of a stage is expected to hide the time that the scheduler takes. If so, the scheduler
        coordinates the workers unless signals are asked for.
    seconds : time that a stage is expected to take; 0 if unknown

    Raises
    ------
    ValueError
        Signals are asked for, but not possible: for example, workers do not map each other's memory.
    """
    workers, bar = len(exchange.addresses), exchange.attempt.bar
    chosen, obstacle = asked or ("scheduler" if hidden and workers > 1 else "signals"), None
    if chosen == "signals" and workers > 1:
        obstacle = exchange.meet_signals()
        if obstacle and asked:
            why = f"{what} cannot be coordinated by signals ({obstacle})"
            raise ValueError(f"{why}; use the scheduler, and resume (--resume) the run if it was begun")
    if workers > 1:
        way = "the scheduler" if chosen == "scheduler" or obstacle else "signals between workers"
        length = f" of about {duration(seconds)}" if seconds else ""
        bar.note(f"{what}{length} are coordinated by {way}" + (f" ({obstacle})" if obstacle else ""))
    if chosen == "scheduler" or obstacle:
        return ByScheduler(exchange, ahead)
    return BySignals(exchange, min(ahead, LISTS), patience(seconds))


# The tasks of Dask.


def run_task(attempt: str, task: Task, sent: Sequence[Any], _needs: Sequence[Any]) -> Any:
    """Do a task, given the arrays that it reads: as tokens, or as arrays that came through Dask."""
    state: Performs = state_of(attempt)
    reads = zip(sent, task.reads, strict=True)
    return state.perform(task, (state.ring.arrived(array, one.slot, one.start) for array, one in reads))


def run_list(attempt: str, first: int, tasks: Sequence[Task], limit: float, _after: Any) -> int:
    """Do tasks; `first` is the number of the first task. Returns how many tasks of its list this worker has done.

    The call ends early if the needs of the next task are not met within `limit` seconds. The next call goes on with
    that task.
    """
    state: Performs = state_of(attempt)
    own, log = state.tasks, []
    own.extend(first, tasks)
    while not own.empty and wait_until(own.ready, lambda: own.ring.over, limit):
        begin = time.time()
        task = own.step(state)
        log.append((task.kind, task.stage, task.rows, begin, time.time()))
    get_worker().log_event(EVENTS, log[:LOGGED])
    return own.done
