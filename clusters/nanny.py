"""A nanny that limits the start time of its worker and restores the environment variables that it sets.

Environment variables that a worker's libraries read at import must be set before the worker is spawned. Dask's nanny
sets them in the process it runs in, here the client's process, and does not reset them. Numba reads
``NUMBA_NUM_THREADS`` again at every compilation and fails if the value has changed while its threads run, so starting
worker processes would break Numba in the client's process.

Ctrl-C reaches every process of a terminal. The client handles it, so worker processes block it: else each worker would
die with a traceback while the client still commits its results. A worker process inherits its blocked signals from the
thread that starts it. That is the thread of the event loop, where blocking is harmless: Python handles signals in the
main thread only.

Dask's own limit (``death_timeout``) closes a nanny while its worker is still starting. Up to version 2026.7.1, which
dask-cuda 26.10 requires, that waits forever. This nanny kills the worker process instead, which Dask handles like any
other death of a worker.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

from distributed import Nanny, Status

from clusters.errors import ClusterError

STARTS = 3  # attempts to start a worker process that is killed while it starts


class TidyNanny(Nanny):
    """A `distributed.Nanny` that restarts a killed worker process even while the cluster starts.

    A worker process that has not started within `start_timeout` seconds is killed.
    """

    def __init__(self, *args: Any, start_timeout: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._start_timeout = start_timeout
        self._exitcode = 0  # exit code of the last worker process that ended

    async def instantiate(self) -> Any:
        if threading.current_thread() is not threading.main_thread():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        watchdog = asyncio.create_task(self._kill_late_worker())
        try:
            with _restored(self.pre_spawn_env):
                for _ in range(STARTS):
                    status = await super().instantiate()
                    # Dask restarts a worker process itself only after its first successful start.
                    if status in (Status.running, Status.failed) or self.status != Status.init:
                        return status
                    if self._exitcode >= 0 or watchdog.done():
                        raise ClusterError(f"a worker process ended with status {self._exitcode} while it started")
                raise ClusterError(
                    f"a worker process was killed by signal {-self._exitcode} while it started, {STARTS} times"
                )
        finally:
            watchdog.cancel()

    def _on_worker_exit_sync(self, exitcode: int) -> None:
        self._exitcode = exitcode
        super()._on_worker_exit_sync(exitcode)

    def kill_at_once(self) -> None:
        """Kill the worker process and do not restart it."""
        self.close_gracefully("killed")  # prevents a restart
        with suppress(AttributeError, ValueError, ProcessLookupError):  # the process has ended in the meantime
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)

    async def _kill_late_worker(self) -> None:
        await asyncio.sleep(self._start_timeout)
        while not self.pid:
            await asyncio.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)


def start_resource_tracker() -> None:
    """Start Python's resource tracker, silenced, before nannies start their workers.

    The tracker would report the semaphores of every killed worker, although it removes them itself. Starting it also
    unblocks Ctrl-C in the calling thread, so it must not be started in a nanny's thread.
    """
    with _restored(["PYTHONWARNINGS"]):
        os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker"
        resource_tracker.ensure_running()


# The nannies of a cluster start their workers at the same time. The first nanny that sets a variable saves its value;
# the last nanny restores all variables.
_lock = threading.Lock()
_starting = 0
_saved: dict[str, str | None] = {}


@contextmanager
def _restored(names: Iterable[str]) -> Iterator[None]:
    global _starting
    with _lock:
        _starting += 1
        for name in names:
            _saved.setdefault(name, os.environ.get(name))
    try:
        yield
    finally:
        with _lock:
            _starting -= 1
            if _starting == 0:
                for name, value in _saved.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value
                _saved.clear()
