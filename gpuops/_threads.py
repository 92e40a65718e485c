"""Numba kernels on all cores: threads of our own that call compiled functions which let go of the GIL.

Numba's `parallel=True` would do the same, but multiplies the time to compile by four, and its "workqueue" threading
layer, the only one on some platforms, aborts the process when two threads enter at once, as Dask's do.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numba

# A thread that has fewer relaxations to do (about 100 microseconds) takes longer to wake than it helps.
_SERIAL_RELAXATIONS = 2**22
_PARTS = 64  # of an array: more than threads, so that none is waited for long

Result = TypeVar("Result")


def for_all(step: Callable[[Any], Any], tasks: Iterable[Any], relaxations: int) -> None:
    """Call `step` with every task, on as many threads as have enough to do, NUMBA_NUM_THREADS at most.

    Within a step there is one thread: what is outermost takes the cores.
    """
    waiting = list(tasks)
    remaining = iter(waiting)  # next() on it is atomic, so that each task goes to one thread
    threads = min(numba.config.NUMBA_NUM_THREADS, len(waiting), relaxations // _SERIAL_RELAXATIONS)
    if threads < 2 or getattr(_here, "busy", False):
        for task in remaining:
            step(task)
        return

    def work() -> None:
        _here.busy = True
        try:
            for task in remaining:
                step(task)
        finally:
            _here.busy = False

    helpers = [_pool().submit(work) for _ in range(threads - 1)]
    work()  # the caller works too: with a pool busy for someone else it would wait for nothing
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def by_parts(step: Callable[[slice], Result], size: int, relaxations: int) -> list[Result]:
    """What `step` returns for each of the parts that `size` elements are cut into, in order, on as many threads."""
    cuts = [size * i // _PARTS for i in range(_PARTS + 1)]
    parts = [slice(a, b) for a, b in pairwise(cuts) if a < b]
    found: dict[int, Result] = {}

    def work(i: int) -> None:
        found[i] = step(parts[i])

    for_all(work, range(len(parts)), relaxations)
    return [found[i] for i in range(len(parts))]


_here = threading.local()  # busy: this thread works on a task of several threads


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS, thread_name_prefix="gpuops")


# A forked process has the pool's books but not its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
