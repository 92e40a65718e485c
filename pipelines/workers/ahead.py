"""Read, make or process pieces by threads, a few pieces ahead of the consumer of the results."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numba

_MOST = 8  # most threads, and so pieces in memory: a reader does not keep more threads busy

Item = TypeVar("Item")
Result = TypeVar("Result")


def threads_ahead() -> int:
    """Return the number of threads that `in_turn` uses: NUMBA_NUM_THREADS, but at most 8."""
    return min(numba.config.NUMBA_NUM_THREADS, _MOST)


def in_turn(step: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> Iterator[Result]:
    """Yield the results of ``map(step, items)``, computed by `threads` threads, by default `threads_ahead()`.

    While the consumer has a result, at most `threads` further items are taken.

    `step` must release the GIL, and must not call `in_turn`. Results and errors come in the order of the items: an
    error that `items` raises comes after the results, or the first error, of all earlier items.
    """
    threads = threads or threads_ahead()
    if threads == 1:
        yield from map(step, items)
        return
    source, waiting = iter(items), deque[Future[Result]]()
    failure: Exception | None = None
    ended = False
    try:
        while True:
            while not ended and len(waiting) <= threads:
                try:
                    waiting.append(_pool(threads).submit(step, next(source)))
                except StopIteration:
                    ended = True
                except Exception as error:
                    failure, ended = error, True
            if not waiting:
                break
            yield waiting.popleft().result()
    finally:
        # Do not wait: garbage collection may close an abandoned iterator in any thread, at any time.
        for future in waiting:
            future.cancel()
    if failure is not None:
        raise failure


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="ahead")


# A forked process inherits the cached pool object, but not the pool's threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
