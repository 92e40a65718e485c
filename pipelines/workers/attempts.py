"""Attempts at a result: the tasks of one life of the state on the workers, and a new attempt after workers are lost.

A task that finds no state on its worker (`pipelines.workers.resident_state`) shows that the worker was restarted. Then
the driver drops the attempt, and a new attempt, with new keys, reloads the last commit on all workers. Repeating part
of an attempt on half-changed state would round differently; reloading gives the same bits.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from distributed import Client, Future, KilledWorker, wait

from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import ResidentState, StateLost, forget_state
from pipelines.workers.task_errors import KEYS, log_less, without_locals

if TYPE_CHECKING:
    from pipelines.workers.exchange import Exchange

POLL_SECONDS = 0.5  # seconds between two checks for lost workers, while no task ends
ALL_SECONDS = 20.0  # seconds that a run waits for all lost workers to come back; then it goes on with fewer
RETURN_SECONDS = 60.0  # seconds that a run waits for a worker to come back
RECOVERIES = 5  # losses of workers without progress in between that a run survives


class WorkersChanged(RuntimeError):
    """A worker that holds state is gone; the attempt cannot go on."""


class Attempt:
    """One lifetime of the state on the workers. The keys of its tasks are unique; its futures and state end with it.

    Parameters
    ----------
    members : addresses of the workers; by default those of the run
    before : the attempt before this one, None for the first

    Attributes
    ----------
    kind : beginning of the keys of its tasks
    name : the name of the run, and the attempt's number; workers keep the state under it, and the keys of tasks end
        with it
    """

    kind = "task"

    def __init__(self, run: Run, members: list[str] | None = None, before: Attempt | None = None):
        self.client, self.out, self.bar = run.client, run.out, run.bar
        self.members = run.members if members is None else members
        self.number: int = 0 if before is None else before.number + 1
        self.name = f"{run.name}-{self.number}"
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
            without_locals,
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
            self.client.run(forget_state, self.name, workers=alive, on_error="ignore")


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
    name : text in the names of its attempts
    """

    client: Client
    members: list[str]
    out: Any = None
    bar: Progress = field(default_factory=lambda: Progress(1, "", show=False))
    resumes: bool = True
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

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
                    self.bar.note("a worker was lost; resuming" + (f" from {latest.where()}" if latest else ""))
                    members = await_return(self.client, len(members), again)


class _Call(Attempt):
    """An attempt that calls a function."""

    def __init__(self, run: Run, members: list[str], before: _Call | None, kind: str, call: Callable[[Attempt], Any]):
        super().__init__(run, members, before)
        self.kind, self._call = kind, call

    def run(self) -> None:
        self.result = self._call(self)


def retried(client: Client, kind: str, call: Callable[[Attempt], T]) -> T:
    """Call `call` with an attempt on the current workers, and again whenever it raises WorkersChanged.

    Returns the result of `call`; `kind` is the beginning of the keys of its tasks. Raises ConnectionError if workers
    are lost more than `RECOVERIES` times.
    """
    run = Run(client, await_return(client, 1, "run again"), resumes=False)
    result: T = run.attempts(_Call, kind, call).result
    return result


def _make_room(client: Client) -> None:
    """Give the workers a place to keep state."""
    log_less()
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
