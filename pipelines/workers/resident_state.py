"""State that stays on a worker between tasks.

A pipeline keeps its matrix or its samples on the workers and changes them in place: a Dask future per tile would cost
more to schedule than to compute, and Dask keeps the lineage of every future forever. Tasks therefore name the state
they work on by *attempt* (`pipelines.workers.attempts`) and return small tokens. A worker that was restarted has no
state, and a task that finds no state raises `StateLost`.
"""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin, get_worker

from pipelines.workers.task_errors import log_less


class StateLost(RuntimeError):
    """A task found no state of its attempt: its worker was restarted."""


class ResidentState(WorkerPlugin):
    """Gives every worker a place to keep state, including workers that are restarted later."""

    name = "tilepath-resident"
    idempotent = True

    def setup(self, worker: Any) -> None:
        worker.tilepath_state = {}
        log_less()

    def teardown(self, worker: Any) -> None:
        worker.tilepath_state.clear()


def keep_state(attempt: str, state: Any) -> None:
    """Keep `state` on this worker (from a task)."""
    get_worker().tilepath_state[attempt] = state


def state_of(attempt: str) -> Any:
    """Return the state that this worker keeps for `attempt` (from a task); raises StateLost if there is none."""
    worker = get_worker()
    try:
        return worker.tilepath_state[attempt]
    except KeyError:
        raise StateLost(f"no state of attempt {attempt} on worker {worker.address}") from None


def clear_states() -> None:
    """Forget the state of all attempts on this worker (from a task), to make room for the next state."""
    get_worker().tilepath_state.clear()


def forget_state(attempt: str, dask_worker: Any) -> None:
    """Forget the state of `attempt` on a worker (for `Client.run`)."""
    dask_worker.tilepath_state.pop(attempt, None)


def has_gpu() -> bool:
    """Return whether this worker computes on a GPU: such workers are started with the Dask resource ``GPU``."""
    return bool(get_worker().state.total_resources.get("GPU"))
