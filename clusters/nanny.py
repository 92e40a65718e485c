"""A nanny that bounds the start of its worker and leaves the environment of its own process as it found it.

Variables that a worker's libraries read when they are imported must be set before the worker is spawned, and
Dask's nanny does that in its own process: here, in the process of the client, and for good. Numba looks at
``NUMBA_NUM_THREADS`` again at every compilation and fails if it changed while its threads run, so starting
worker processes would break Numba in the client's process.

Ctrl-C goes to every process of a terminal. It is the client's to answer, so it is blocked for worker processes: they
would die with a traceback each, in the middle of what the client goes on to commit. A process inherits the signals that
the thread blocks which starts it, and so does that thread: here that of the event loop, in which Python handles none.

Dask's own bound (``death_timeout``) closes a nanny whose worker is still starting, which waits forever up to
2026.7.1, the version dask-cuda 26.10 asks for. Killing the process instead is a death like any other.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from distributed import Nanny


class TidyNanny(Nanny):
    """`distributed.Nanny` that kills a worker process which does not come up within `start_timeout` seconds."""

    def __init__(self, *args: Any, start_timeout: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._start_timeout = start_timeout

    async def instantiate(self) -> Any:
        if threading.current_thread() is not threading.main_thread():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        watchdog = asyncio.create_task(self._kill_late_worker())
        try:
            with _restored(self.pre_spawn_env):
                return await super().instantiate()
        finally:
            watchdog.cancel()

    def kill_at_once(self) -> None:
        """Kill the worker process, for good."""
        self.close_gracefully("killed")  # so that no other one is started
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)

    async def _kill_late_worker(self) -> None:
        await asyncio.sleep(self._start_timeout)
        while not self.pid:
            await asyncio.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)


def start_resource_tracker() -> None:
    """Start Python's tracker of semaphores, before nannies start their workers.

    It would report the semaphores of every worker that was killed, although it removes them itself. And it unblocks
    Ctrl-C in the thread that starts it, which must not be that of a nanny.
    """
    with _restored(["PYTHONWARNINGS"]):
        os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker"
        resource_tracker.ensure_running()


# Nannies of a cluster start their workers at the same time: the first to set a variable saves it, the last of
# them restores all.
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
