"""State that stays on the workers between tasks, and the watch over those workers.

A pipeline keeps its matrix or its samples on the workers and changes them in place: a Dask future per tile would cost
more to schedule than to compute, and Dask keeps the lineage of every future forever. Tasks therefore name the state
they work on by *attempt* and return small tokens. A worker that was restarted has no state; a task that finds none
raises `StateLost`, the driver drops the attempt and a new one, with new keys, reloads the last commit on all workers.
Redoing part of an attempt on half-changed state would give other roundings; reloading gives the same bits.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import Any, Protocol, TypeVar

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker, wait

from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.progress import Progress

POLL_SECONDS = 0.5  # how often a silent cluster is asked which workers it has
RECOVERIES = 5  # without progress in between, before a run gives up
KEYS = "tilepath-"  # the keys of all tasks begin so


class StateLost(RuntimeError):
    """A task found no state of its attempt: its worker was restarted."""


class WorkersChanged(RuntimeError):
    """A worker that holds state is gone; the attempt cannot go on."""


class ResidentState(WorkerPlugin):
    """Gives every worker, including one restarted later, a place to keep state."""

    name = "tilepath-resident"
    idempotent = True

    def setup(self, worker: Any) -> None:
        worker.tilepath_state = {}
        logging.getLogger("distributed.worker").addFilter(_worth_logging)

    def teardown(self, worker: Any) -> None:
        worker.tilepath_state.clear()


def _worth_logging(record: logging.LogRecord) -> bool:
    """Drop log records of failed tasks: the driver raises the error, so the log would repeat it."""
    if not (isinstance(record.msg, str) and record.msg.startswith("Compute Failed")):
        return True
    return not (isinstance(record.args, tuple) and str(record.args[0]).startswith(KEYS))


def keep(attempt: str, state: Any) -> None:
    """Keep `state` on this worker (from a task)."""
    get_worker().tilepath_state[attempt] = state


def held(attempt: str) -> Any:
    """The state this worker keeps for `attempt` (from a task); raises StateLost."""
    worker = get_worker()
    try:
        return worker.tilepath_state[attempt]
    except KeyError:
        raise StateLost(f"no state of attempt {attempt} on worker {worker.address}") from None


def clear() -> None:
    """Forget the state of all attempts on this worker (from a task), to make room for the next one's."""
    get_worker().tilepath_state.clear()


def forget(attempt: str, dask_worker: Any) -> None:
    """Forget the state of `attempt` on a worker (for `Client.run`)."""
    dask_worker.tilepath_state.pop(attempt, None)


def has_gpu() -> bool:
    """Whether this worker computes on a GPU. Such workers are started with the Dask resource ``GPU``."""
    return bool(get_worker().state.total_resources.get("GPU"))


def _without_locals(task: Callable[..., Any], *args: Any) -> Any:
    """Call a task; if it fails, nothing its frames refer to stays.

    A worker keeps the error of a task in a cycle, with its traceback, until some garbage collection. So the state the
    task worked on, which may fill the memory, would outlive its attempt.
    """
    try:
        return task(*args)
    except BaseException as error:
        link: BaseException | None = error
        while link is not None:
            traceback.clear_frames(link.__traceback__)
            link = link.__cause__ or link.__context__
        raise


class Attempt:
    """One lifetime of the state on the workers. Its keys are unique; its futures and state end with it.

    Parameters
    ----------
    members : addresses of the workers
    kind : begins the keys of its tasks
    run : what all attempts of a run are called; with their number it ends the keys, and the state goes by it
    before : the attempt before this one, None at first
    """

    def __init__(self, client: Client, members: list[str], kind: str, run: str, before: Attempt | None = None):
        self.client, self.members, self.kind = client, members, kind
        self.number: int = 0 if before is None else before.number + 1
        self.name = f"{run}-{self.number}"
        self.futures: list[Future] = []
        self._serial = 0

    def submit(
        self, task: Callable[..., Any], worker: int, *args: Any, priority: int = 0, stateless: bool = False
    ) -> Future:
        """Run `task` on a worker, by number; its first argument is the name of the attempt unless it is `stateless`."""
        self._serial += 1
        future = self.client.submit(
            _without_locals,
            task,
            *(() if stateless else (self.name,)),
            *args,
            key=f"{KEYS}{self.kind}-{task.__name__.strip('_')}-{self._serial}-{self.name}",
            workers=[self.members[worker]],
            allow_other_workers=False,
            priority=priority,
            pure=False,
        )
        self.futures.append(future)
        return future

    def wait(self, futures: Iterable[Future], limit: float = math.inf) -> None:
        """Wait until all are done; raises like `wait_all`."""
        wait_all(self.client, futures, self.members, limit)

    def results(self, futures: list[Future], limit: float = math.inf) -> list[Any]:
        """Wait, and fetch what the tasks returned; raises like `wait_all`, also if a result is lost on its way here."""
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
                if fetched.done():  # it was the connection that took too long
                    fetched = self._fetch(future)
            except (concurrent.futures.CancelledError, KilledWorker, StateLost) as error:
                raise WorkersChanged(f"{future.key}: {error or future.status}") from None

    def drop_done(self) -> None:
        """Release the futures that are done; callers that need a result keep their own reference."""
        self.futures = [future for future in self.futures if not future.done()]

    def cancel(self) -> None:
        """Drop all unfinished tasks, and the state."""
        # Released, not cancelled: cancelling a task fails in the scheduler if no client wants its dependents any more,
        # and breaks the client's connection.
        for future in self.futures:
            future.release()
        self.futures = []
        alive = [address for address in self.members if address in self.client.nthreads()]
        if alive:
            self.client.run(forget, self.name, workers=alive, on_error="ignore")


class Resumable(Protocol):
    """A run within one attempt, for `run_attempts`."""

    def run(self) -> None: ...

    def cancel(self) -> None: ...

    def done(self) -> int:
        """How much is committed; it only grows."""

    def where(self) -> str:
        """The same, as text for the user."""


A = TypeVar("A", bound=Resumable)
T = TypeVar("T")


def run_attempts(
    client: Client,
    members: list[str],
    begin: Callable[[list[str], A | None], A],
    shown: Progress,
    resumes: bool = True,
) -> A:
    """Run to the end, in a new attempt whenever the workers change; returns the last one.

    Parameters
    ----------
    begin : makes an attempt of the members and of the attempt before, None at first
    resumes : False: a run commits nothing before its end, so it cannot be resumed, and Ctrl-C stops it at once

    Raises
    ------
    ConnectionError
        Workers were lost `RECOVERIES` times while nothing was committed.
    pipelines.workers.interruption.Interrupted
        Ctrl-C on the command line stopped the run; what is done is committed.
    """
    latest: A | None = None

    def once(members: list[str]) -> A:
        nonlocal latest
        latest = begin(members, latest)
        try:
            latest.run()
            return latest
        finally:
            latest.cancel()

    def lost() -> None:
        shown.note("a worker was lost; resuming" + (f" from {latest.where()}" if latest else ""))

    with boundaries() if resumes else nullcontext():
        return attempts(client, once, members, lambda: latest.done() if latest else 0, lost, resumes)


def attempts(
    client: Client,
    attempt: Callable[[list[str]], T],
    members: list[str] | None = None,
    done: Callable[[], int] = lambda: 0,
    lost: Callable[[], None] = lambda: None,
    resumes: bool = False,
) -> T:
    """Call `attempt` with the current workers, and again whenever it raises WorkersChanged; returns its result.

    Parameters
    ----------
    members : the workers to begin with; default: the current ones
    done : how much is committed
    lost : called after the loss of a worker
    resumes : whether a run that gave up can be resumed; for messages

    Raises
    ------
    ConnectionError
        Workers were lost `RECOVERIES` times while `done` stayed the same.
    """
    again = "run again with --resume" if resumes else "run again"
    members = members or await_return(client, 1, again)
    failures = 0
    while True:
        before = done()
        try:
            _make_room(client)
            return attempt(members)
        except WorkersChanged as change:
            failures = failures + 1 if done() == before else 1
            if failures > RECOVERIES:
                raise ConnectionError(
                    f"workers were lost {failures} times{' without a commit in between' if resumes else ''} "
                    f"({change}); look at their logs, then {again}"
                ) from change
            lost()
            members = await_return(client, len(members), again)


def _make_room(client: Client) -> None:
    """Give the workers a place to keep state."""
    try:
        client.register_plugin(ResidentState())
    except OSError as error:
        raise WorkersChanged(f"a worker is gone: {error}") from error


def workers_of(client: Client) -> list[str]:
    """Addresses of the workers, in an order that only a change of membership changes."""
    return sorted(client.nthreads())


def wait_all(client: Client, futures: Iterable[Future], members: list[str], limit: float = math.inf) -> None:
    """Wait until all futures are done, as long as all `members` live, and for at most `limit` seconds.

    Raises
    ------
    WorkersChanged
        A member is gone or has lost its state. (A task pinned to a dead worker would wait forever.)
    TimeoutError
        The time is up.
    Exception
        Whatever a task raised.
    """
    deadline = time.monotonic() + limit
    pending = set(futures)
    while pending:
        _done, pending = wait_any(client, pending, members, deadline)


def wait_any(
    client: Client, pending: set[Future], members: list[str], deadline: float = math.inf
) -> tuple[set[Future], set[Future]]:
    """Wait until some of the futures are finished: those, and the others. Raises as `wait_all`."""
    while True:
        done = client.sync(_ended, client, pending)
        pending = pending - done
        for future in done:
            if future.status == "finished":
                continue
            error = future.exception() if future.status == "error" else None
            if error is None or isinstance(error, StateLost | KilledWorker):
                raise WorkersChanged(f"{future.key}: {error or future.status}")
            raise error
        if done:
            return done, pending
        if not set(members) <= set(client.nthreads()):
            raise WorkersChanged("a worker is gone")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(pending)} tasks took too long")


async def _ended(client: Client, pending: set[Future]) -> set[Future]:
    """Those that are finished, or failed, or cancelled; after `POLL_SECONDS` there may be none."""
    # As current, else the latest client of this process waits, in a loop that is not theirs.
    with client.as_current(), suppress(TimeoutError, concurrent.futures.CancelledError):
        await wait(pending, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
    return {future for future in pending if future.done()}


async def _value(future: Future) -> Any:
    """What a task returned. It is waited for without a limit: the client fetches several results in one transfer, and
    where a limit cuts that off, the others fail with an error that its `sync` does not know.
    """
    return await future


def await_return(client: Client, count: int, again: str, timeout: float = 60) -> list[str]:
    """Wait until there are `count` workers again; after `timeout` seconds continue with those that are there.

    Raises TimeoutError when not a single one came back.
    """
    deadline = time.monotonic() + timeout
    while True:
        stop_if_asked()
        members = workers_of(client)
        if len(members) >= count or (members and time.monotonic() > deadline):
            return members
        if time.monotonic() > deadline:
            raise TimeoutError(f"no worker came back within {timeout:.0f} s; start some and {again}")
        time.sleep(POLL_SECONDS / 5)
