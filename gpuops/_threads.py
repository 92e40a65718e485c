"""Numba kernels on all cores: threads of our own that call compiled functions which let go of the GIL.

Numba's `parallel=True` would do the same, but multiplies the time to compile by four, and its "workqueue" threading
layer, the only one on some platforms, aborts the process when two threads enter at once, as Dask's do.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba

# Below this many relaxations (about 100 microseconds) waking other threads takes longer than doing without them.
_SERIAL_RELAXATIONS = 2**22


def for_all(step: Callable[[Any], Any], tasks: Iterable[Any], relaxations: int) -> None:
    """Call `step` with every task, on NUMBA_NUM_THREADS threads where there is enough to do."""
    remaining = iter(list(tasks))  # next() on it is atomic, so that each task goes to one thread

    def work() -> None:
        for task in remaining:
            step(task)

    others = numba.config.NUMBA_NUM_THREADS - 1 if relaxations > _SERIAL_RELAXATIONS else 0
    helpers = [_pool().submit(work) for _ in range(others)]
    work()  # the caller works too: with a pool busy for someone else it would wait for nothing
    for helper in helpers:
        if not helper.cancel():
            helper.result()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS, thread_name_prefix="gpuops")


# A forked process has the pool's books but not its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
