"""Work on pieces of a source by threads, a few pieces ahead of whoever takes the results."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numba

_MOST = 8  # threads, and so pieces in memory: a reader feeds no more

Item = TypeVar("Item")
Result = TypeVar("Result")


def threads_ahead() -> int:
    """How many threads `in_turn` uses: NUMBA_NUM_THREADS, but no more than a reader feeds."""
    return min(numba.config.NUMBA_NUM_THREADS, _MOST)


def in_turn(step: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``map(step, items)`` by threads, for steps that let go of the GIL and do not call this again.

    Results come in the order of the items, and so do errors: one that `items` raises comes after the results, or the
    error, of all items before.
    """
    threads = threads_ahead()
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
        # Nothing is waited for: an iterator that was given up may end in any thread, whenever garbage is collected.
        for future in waiting:
            future.cancel()
    if failure is not None:
        raise failure


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="formats")


# A forked process has the pool's books but not its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
