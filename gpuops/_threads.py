"""Numba kernels on all cores: a thread pool that calls compiled functions which release the GIL.

Numba's `parallel=True` would do the same, but compiling would take four times as long. Numba's "workqueue" threading
layer, the only one on some platforms, also aborts the process when two threads enter it at once, as Dask's threads do.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

# Fewest relaxations for which waking another thread saves time, about 100 microseconds of work.
_SERIAL_RELAXATIONS = 2**22
# Parts of an array that threads share: more than there are threads, so that none waits long for the last part.
_PARTS = 64

Result = TypeVar("Result")


def for_all(step: Callable[[Any], Any], tasks: Iterable[Any], relaxations: int) -> None:
    """Call `step` with every task, on as many threads as have enough to do, NUMBA_NUM_THREADS at most.

    `relaxations` is the work of all tasks, in relaxations of a dense matrix. A nested call, made by a step that runs on
    one of several threads, uses one thread only: the outermost call has the cores.
    """
    waiting = list(tasks)
    remaining = iter(waiting)  # next(remaining) is atomic, so that each task goes to one thread
    threads = min(threads_for(relaxations), len(waiting))
    if threads < 2:
        for task in remaining:
            step(task)
        return

    helpers: list[Future[None]] = []
    # The caller works too, so that it never only waits for a pool that is busy with another call.
    _work(step, remaining, helpers, threads)
    for helper in helpers:  # the list grows: a thread appends the threads that it wakes before it ends itself
        if not helper.cancel():
            helper.result()


def _work(step: Callable[[Any], Any], remaining: Iterator[Any], helpers: list[Future[None]], threads: int) -> None:
    """Work as one of some threads, and wake the others: each wakes about half of them, which wake the rest.

    A function within `for_all` would refer to itself, and keep the arrays of `step` until garbage is collected.
    """
    while threads > 1:
        helpers.append(_pool().submit(_work, step, remaining, helpers, threads // 2))
        threads -= threads // 2
    _here.busy = True
    try:
        for task in remaining:
            step(task)
    finally:
        _here.busy = False


def threads_for(relaxations: int) -> int:
    """Return how many threads `for_all` would use for this work, if there are enough tasks."""
    if getattr(_here, "busy", False):
        return 1
    return max(1, min(_most(), relaxations // _SERIAL_RELAXATIONS))


def by_parts(step: Callable[[slice], Result], size: int, relaxations: int) -> list[Result]:
    """Cut `size` elements into parts, call `step` with each part by `for_all`, and return its results in order."""
    count = _PARTS if relaxations >= _SERIAL_RELAXATIONS else 1
    cuts = [size * i // count for i in range(count + 1)]
    parts = [slice(a, b) for a, b in pairwise(cuts) if a < b]
    found: dict[int, Result] = {}

    def work(i: int) -> None:
        found[i] = step(parts[i])

    for_all(work, range(len(parts)), relaxations)
    return [found[i] for i in range(len(parts))]


_here = threading.local()  # busy: this thread works on a call of `for_all` that several threads share


@functools.cache
def _most() -> int:
    """Return how many threads Numba is set to use."""
    import numba  # takes a quarter of a second, which an operation on a GPU need not spend

    return int(numba.config.NUMBA_NUM_THREADS)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_most(), thread_name_prefix="gpuops")


# A forked process inherits the pool object without its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
