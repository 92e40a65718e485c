"""A nanny that bounds the start of its worker and leaves the environment of its own process as it found it.

Variables that a worker's libraries read when they are imported must be set before the worker is spawned, and
Dask's nanny does that in its own process: here, in the process of the client, and for good. Numba looks at
``NUMBA_NUM_THREADS`` again at every compilation and fails if it changed while its threads run, so starting
worker processes would break Numba in the client's process.

Dask's own bound (``death_timeout``) closes a nanny whose worker is still starting, which waits for ever up to
2026.7.1, the version dask-cuda 26.10 asks for. Killing the process instead is a death like any other.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Nanny


class TidyNanny(Nanny):
    """`distributed.Nanny`, with a worker process killed that does not come up within `start_timeout` seconds."""

    def __init__(self, *args: Any, start_timeout: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._start_timeout = start_timeout

    async def instantiate(self) -> Any:
        watchdog = asyncio.create_task(self._kill_late_worker())
        try:
            with _restored(self.pre_spawn_env):
                return await super().instantiate()
        finally:
            watchdog.cancel()

    async def _kill_late_worker(self) -> None:
        await asyncio.sleep(self._start_timeout)
        while not self.pid:
            await asyncio.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)


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
