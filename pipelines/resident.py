"""State that stays on the workers between tasks, and the watch over those workers.

A pipeline keeps its matrix or its samples on the workers and changes them in place: a Dask future per tile would cost
more to schedule than to compute, and Dask keeps the lineage of every future for ever. Tasks therefore name the state
they work on by *epoch* and return small tokens. A worker that was restarted has no state; a task that finds none raises
`StateLost`, the driver drops the epoch and a new one, with new keys, reloads the last commit on all workers. Redoing
part of an epoch on half-changed state would give other roundings; reloading gives the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker, wait

POLL_SECONDS = 0.5  # how often a silent cluster is asked which workers it has


class StateLost(RuntimeError):
    """A task found no state of its epoch: its worker was restarted."""


class WorkersChanged(RuntimeError):
    """A worker that holds state is gone; the epoch cannot go on."""


class ResidentState(WorkerPlugin):
    """Gives every worker, also one restarted later, a place to keep state."""

    name = "tilepath-resident"
    idempotent = True

    def setup(self, worker: Any) -> None:
        worker.tilepath_state = {}

    def teardown(self, worker: Any) -> None:
        worker.tilepath_state.clear()


def keep(epoch: str, state: Any) -> None:
    """Keep `state` on this worker (from a task)."""
    get_worker().tilepath_state[epoch] = state


def held(epoch: str) -> Any:
    """The state this worker keeps for `epoch` (from a task); raises StateLost."""
    worker = get_worker()
    try:
        return worker.tilepath_state[epoch]
    except KeyError:
        raise StateLost(f"no state of epoch {epoch} on worker {worker.address}") from None


def clear() -> None:
    """Forget the state of all epochs on this worker (from a task), to make room for the next one's."""
    get_worker().tilepath_state.clear()


def forget(epoch: str, dask_worker: Any) -> None:
    """Forget the state of `epoch` on a worker (for `Client.run`)."""
    dask_worker.tilepath_state.pop(epoch, None)


def has_gpu() -> bool:
    """Does this worker compute on a GPU? Such workers are started with the Dask resource ``GPU``."""
    return bool(get_worker().state.total_resources.get("GPU"))


def workers_of(client: Client) -> list[str]:
    """Addresses of the workers, in an order that only a change of membership changes."""
    return sorted(client.nthreads())


def wait_all(client: Client, futures: Iterable[Future], members: list[str]) -> None:
    """Wait until all futures are done, as long as all `members` live.

    Raises
    ------
    WorkersChanged
        A member is gone or has lost its state. (A task pinned to a dead worker would wait for ever.)
    Exception
        Whatever a task raised.
    """
    pending = set(futures)
    while pending:
        try:
            done, pending = wait(pending, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        except TimeoutError:
            done = set()
        for future in done:
            if future.status == "finished":
                continue
            error = future.exception() if future.status == "error" else None
            if error is None or isinstance(error, StateLost | KilledWorker):
                raise WorkersChanged(f"{future.key}: {error or future.status}")
            raise error
        if not done and not set(members) <= set(client.nthreads()):
            raise WorkersChanged("a worker is gone")


def await_return(client: Client, count: int, timeout: float = 60) -> list[str]:
    """Wait until `count` workers are there again; after `timeout` seconds go on with those that are.

    Raises TimeoutError when not a single one came back.
    """
    deadline = time.monotonic() + timeout
    while True:
        members = workers_of(client)
        if len(members) >= count or (members and time.monotonic() > deadline):
            return members
        if time.monotonic() > deadline:
            raise TimeoutError(f"no worker came back within {timeout:.0f} s; start some and run again with --resume")
        time.sleep(POLL_SECONDS / 5)
