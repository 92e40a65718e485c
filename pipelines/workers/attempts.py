"""State that stays on the workers between tasks, and new attempts after workers are lost.

A pipeline keeps its matrix or its samples on the workers and changes them in place: a Dask future per tile would cost
more to schedule than to compute, and Dask keeps the lineage of every future forever. Tasks therefore name the state
they work on by *attempt* and return small tokens. A worker that was restarted has no state, and a task that finds no
state raises `StateLost`. Then the driver drops the attempt, and a new attempt, with new keys, reloads the last commit
on all workers. Repeating part of an attempt on half-changed state would round differently; reloading gives the same
bits.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import pickle
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker, wait
from distributed.comm import CommClosedError

from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.progress import Progress

if TYPE_CHECKING:
    from pipelines.workers.exchange import Exchange

POLL_SECONDS = 0.5  # seconds between two checks for lost workers, while no task ends
ALL_SECONDS = 20.0  # seconds that a run waits for all lost workers to come back; then it goes on with fewer
RETURN_SECONDS = 60.0  # seconds that a run waits for a worker to come back
RECOVERIES = 5  # losses of workers without progress in between that a run survives
KEYS = "-tilepath-"  # part of the keys of all tasks


class StateLost(RuntimeError):
    """A task found no state of its attempt: its worker was restarted."""


class WorkersChanged(RuntimeError):
    """A worker that holds state is gone; the attempt cannot go on."""


class ResidentState(WorkerPlugin):
    """Gives every worker a place to keep state, including workers that are restarted later."""

    name = "tilepath-resident"
    idempotent = True

    def setup(self, worker: Any) -> None:
        worker.tilepath_state = {}
        _log_less()

    def teardown(self, worker: Any) -> None:
        worker.tilepath_state.clear()


# How Dask's log records about failed tasks begin; their first argument is the key.
_OF_TASKS = ("Compute Failed", "Task %s marked as failed because")
# How Dask's log records about lost workers, and about workers that end slowly, begin.
_OF_LOSSES = (
    "Restarting worker",
    "Worker process still alive after",
    "Worker stream died during communication",
    "failed during get data with",
    "broadcast to ",
    "Couldn't gather keys",
    "Removing worker ",
)


def _log_less() -> None:
    """Filter Dask's logs in this process by `_worth_logging`; a second call has no effect."""
    for name in ("distributed.worker", "distributed.scheduler", "distributed.nanny", "asyncio"):
        logging.getLogger(name).addFilter(_worth_logging)


def _worth_logging(record: logging.LogRecord) -> bool:
    """Return False for log records of failed tasks and lost workers.

    The driver raises the error of a failed task, and says that it resumes after the loss of a worker.
    """
    text = str(record.msg)
    if text.startswith(_OF_TASKS):
        return not (isinstance(record.args, tuple) and KEYS in str(record.args[0]))
    if "exception was never retrieved" in text:  # comes when a connection to a lost worker is given up
        return not (record.exc_info and isinstance(record.exc_info[1], TimeoutError | CommClosedError))
    return not text.startswith(_OF_LOSSES)


def keep(attempt: str, state: Any) -> None:
    """Keep `state` on this worker (from a task)."""
    get_worker().tilepath_state[attempt] = state


def held(attempt: str) -> Any:
    """Return the state that this worker keeps for `attempt` (from a task); raises StateLost if there is none."""
    worker = get_worker()
    try:
        return worker.tilepath_state[attempt]
    except KeyError:
        raise StateLost(f"no state of attempt {attempt} on worker {worker.address}") from None


def clear() -> None:
    """Forget the state of all attempts on this worker (from a task), to make room for the next state."""
    get_worker().tilepath_state.clear()


def forget(attempt: str, dask_worker: Any) -> None:
    """Forget the state of `attempt` on a worker (for `Client.run`)."""
    dask_worker.tilepath_state.pop(attempt, None)


def has_gpu() -> bool:
    """Return whether this worker computes on a GPU: such workers are started with the Dask resource ``GPU``."""
    return bool(get_worker().state.total_resources.get("GPU"))


def _without_locals(task: Callable[..., Any], *args: Any) -> Any:
    """Call a task; if it fails, clear the local variables of all frames in the traceback.

    A worker keeps the error of a failed task, with its traceback, in a reference cycle until some garbage collection.
    The frames refer to the state that the task worked on. That state may fill the memory, and would outlive its
    attempt.

    A cause that cannot be pickled, as some of Zarr's errors, is dropped. Dask would send the text of the error alone.
    """
    try:
        return task(*args)
    except BaseException as error:
        link: BaseException | None = error
        while link is not None:
            traceback.clear_frames(link.__traceback__)
            cause = link.__cause__ or link.__context__
            if cause is not None and not _can_be_pickled(cause):
                link.__cause__ = link.__context__ = cause = None
            link = cause
        raise


def _can_be_pickled(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class raises
        return False
    return True


class Attempt:
    """One lifetime of the state on the workers. The keys of its tasks are unique; its futures and state end with it.

    Parameters
    ----------
    members : addresses of the workers
    kind : beginning of the keys of its tasks
    run : name of the run. The name of the attempt is this name and the attempt's number; workers keep the state under
        that name, and the keys of tasks end with it.
    before : the attempt before this one, None for the first
    """

    def __init__(self, client: Client, members: list[str], kind: str, run: str, before: Attempt | None = None):
        self.client, self.members, self.kind = client, members, kind
        self.number: int = 0 if before is None else before.number + 1
        self.name = f"{run}-{self.number}"
        self.futures: list[Future] = []
        self.exchange: Exchange | None = None  # passes arrays between the workers, if the attempt needs that
        self._serial = 0

    def run(self) -> None:
        """Do the work that is not committed yet; `Run` calls this in every attempt."""
        raise NotImplementedError

    def done(self) -> int:
        """Return how much is committed, which only grows: by default nothing, as the attempt has no commits."""
        return 0

    def where(self) -> str:
        """Return how much is committed, as text for the user."""
        return "the beginning"

    def submit(
        self,
        task: Callable[..., Any],
        worker: int,
        *args: Any,
        priority: int = 0,
        stateless: bool = False,
        name: Sequence[str | int] = (),
    ) -> Future:
        """Run `task` on the worker of that number; returns the future.

        Parameters
        ----------
        task : gets the name of the attempt as its first argument, unless it is `stateless`
        name : the name that the dashboard shows, followed by whatever distinguishes this task from other tasks of that
            name; by default the name of the function
        """
        self._serial += 1
        shown, *which = name or (f"{self.kind}-{task.__name__.strip('_')}",)
        key = f"{shown}-{self._serial}{KEYS}{self.name}"
        future = self.client.submit(
            _without_locals,
            task,
            *(() if stateless else (self.name,)),
            *args,
            key=(key, *which) if which else key,
            workers=[self.members[worker]],
            allow_other_workers=False,
            priority=priority,
            pure=False,
        )
        self.futures.append(future)
        return future

    def on_all(self, task: Callable[..., Any], *args: Any, each: Sequence[Sequence[Any]] = ()) -> list[Any]:
        """Run `task` on every worker, with the further arguments ``each[w]`` on worker w; returns results by worker."""
        own = each or [()] * len(self.members)
        return self.results([self.submit(task, w, *args, *own[w]) for w in range(len(self.members))])

    def wait(self, futures: Iterable[Future], limit: float = math.inf) -> None:
        """Wait until all futures are done, as long as all members live, and for at most `limit` seconds.

        Raises
        ------
        WorkersChanged
            A member is gone or has lost its state. (A task pinned to a dead worker would wait forever.)
        TimeoutError
            The futures are not done within `limit` seconds.
        Exception
            The error that a task raised.
        """
        deadline = time.monotonic() + limit
        pending = set(futures)
        while pending:
            pending -= self.wait_any(pending, deadline)

    def wait_any(self, pending: set[Future], deadline: float = math.inf) -> set[Future]:
        """Wait until some of the futures are finished; returns the finished ones. Raises as `wait`."""
        while True:
            done = self.client.sync(_ended, self.client, pending)
            for future in done:
                if future.status == "finished":
                    continue
                error = future.exception() if future.status == "error" else None
                if error is None or isinstance(error, StateLost | KilledWorker):
                    raise WorkersChanged(f"{future.key}: {error or future.status}")
                raise error
            if done:
                return done
            if not set(self.members) <= set(self.client.nthreads()):
                raise WorkersChanged("a worker is gone")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(pending)} tasks took too long")

    def results(self, futures: list[Future], limit: float = math.inf) -> list[Any]:
        """Return the results of tasks; raises as `wait`, also if a result is lost on its way to the driver."""
        self.wait(futures, limit)
        fetched = [self._fetch(future) for future in futures]
        return [self._result(future, result) for future, result in zip(futures, fetched, strict=True)]

    def _fetch(self, future: Future) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(_value(future), self.client.loop.asyncio_loop)

    def _result(self, future: Future, fetched: concurrent.futures.Future[Any]) -> Any:
        while True:
            try:
                return fetched.result(POLL_SECONDS)
            except TimeoutError:
                if not set(self.members) <= set(self.client.nthreads()):
                    raise WorkersChanged("a worker is gone") from None
                if fetched.done():  # the fetch itself timed out, on the connection
                    fetched = self._fetch(future)
            except (concurrent.futures.CancelledError, KilledWorker, StateLost) as error:
                raise WorkersChanged(f"{future.key}: {error or future.status}") from None

    def drop_done(self) -> None:
        """Release the futures that are done; a caller that still needs a result keeps a reference to its future."""
        self.futures = [future for future in self.futures if not future.done()]

    def cancel(self) -> None:
        """Drop all unfinished tasks, and the state on the workers."""
        # Futures are released, not cancelled: if no client wants the dependents of a task any more, cancelling it fails
        # in the scheduler and breaks the client's connection.
        for future in self.futures:
            future.release()
        self.futures = []
        alive = [address for address in self.members if address in self.client.nthreads()]
        if alive:
            if self.exchange is not None:
                self.exchange.end(alive)
            self.client.run(forget, self.name, workers=alive, on_error="ignore")


A = TypeVar("A", bound=Attempt)
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Run:
    """A run: the client, the store and the progress that all attempts at one result share.

    Parameters
    ----------
    members : addresses of the workers to begin with
    out : the store that is written
    resumes : whether the run commits before its end. If not, it cannot be resumed, and Ctrl-C stops it at once.
    """

    client: Client
    members: list[str]
    out: Any
    shown: Progress
    resumes: bool = True

    def attempts(self, make: Callable[..., A], *arguments: Any) -> A:
        """Run to the end, in a new attempt whenever the workers change; returns the last attempt.

        Each attempt is ``make(run, members, before, *arguments)``, where `before` is the attempt before it, None at
        first.

        Raises
        ------
        ConnectionError
            Workers were lost more than `RECOVERIES` times without a commit in between.
        pipelines.workers.interruption.Interrupted
            Ctrl-C on the command line stopped the run; the store keeps the last commit.
        """
        again = "run again with resume (--resume)" if self.resumes else "run again"
        latest: A | None = None
        members, failures, committed = self.members, 0, 0
        with boundaries() if self.resumes else nullcontext():
            while True:
                try:
                    _make_room(self.client)
                    latest = make(self, members, latest, *arguments)
                    try:
                        latest.run()
                        return latest
                    finally:
                        latest.cancel()
                except WorkersChanged as change:
                    before, committed = committed, latest.done() if latest else 0
                    failures = failures + 1 if committed == before else 1
                    if failures > RECOVERIES:
                        raise ConnectionError(
                            f"workers were lost {failures} times"
                            f"{' without a commit in between' if self.resumes else ''} ({change}); look at their logs, "
                            f"then {again}"
                        ) from change
                    self.shown.note("a worker was lost; resuming" + (f" from {latest.where()}" if latest else ""))
                    members = await_return(self.client, len(members), again)


class _Call(Attempt):
    """An attempt that calls a function."""

    def __init__(self, run: Run, members: list[str], before: _Call | None, kind: str, call: Callable[[Attempt], Any]):
        super().__init__(run.client, members, kind, uuid.uuid4().hex[:8], before)
        self._call = call

    def run(self) -> None:
        self.result = self._call(self)


def retried(client: Client, kind: str, call: Callable[[Attempt], T]) -> T:
    """Call `call` with an attempt on the current workers, and again whenever it raises WorkersChanged.

    Returns the result of `call`; `kind` is the beginning of the keys of its tasks. Raises ConnectionError if workers
    are lost more than `RECOVERIES` times.
    """
    run = Run(client, await_return(client, 1, "run again"), None, Progress(1, "", show=False), resumes=False)
    result: T = run.attempts(_Call, kind, call).result
    return result


def _make_room(client: Client) -> None:
    """Give the workers a place to keep state."""
    _log_less()
    try:
        client.register_plugin(ResidentState())
    except OSError as error:
        raise WorkersChanged(f"a worker is gone: {error}") from error


def workers_of(client: Client) -> list[str]:
    """Return the addresses of the workers, sorted, so that the order changes only when the workers do."""
    return sorted(client.nthreads())


async def _ended(client: Client, pending: set[Future]) -> set[Future]:
    """Return the futures that are finished, failed or cancelled; after `POLL_SECONDS` possibly an empty set."""
    # `wait` takes the current client. By default that is the latest client of this process, whose event loop may differ
    # from the event loop of these futures.
    with client.as_current(), suppress(TimeoutError, concurrent.futures.CancelledError):
        await wait(pending, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
    return {future for future in pending if future.done()}


async def _value(future: Future) -> Any:
    """Return the result of a task, without a time limit.

    The client fetches several results in one transfer. If a limit cut off one result, the other results would fail with
    an error that the client's `sync` does not know.
    """
    return await future


def await_return(client: Client, count: int, again: str) -> list[str]:
    """Wait until there are `count` workers again, or after `ALL_SECONDS` at least one; returns their addresses.

    Raises TimeoutError if there is no worker after `RETURN_SECONDS`.
    """
    begin = time.monotonic()
    while True:
        stop_if_asked()
        members, waited = workers_of(client), time.monotonic() - begin
        if len(members) >= count or (members and waited > ALL_SECONDS):
            return members
        if waited > RETURN_SECONDS:
            raise TimeoutError(f"no worker came back within {RETURN_SECONDS:.0f} s; start some and {again}")
        time.sleep(POLL_SECONDS / 5)
