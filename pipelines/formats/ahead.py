"""Work on pieces of a source by threads, a few pieces ahead of whoever takes the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numba

_MOST = 8  # threads, and so pieces in memory: a reader feeds no more

Item = TypeVar("Item")
Result = TypeVar("Result")


def threads_ahead() -> int:
    return min(numba.config.NUMBA_NUM_THREADS, _MOST)


def in_turn(step: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``map(step, items)`` by up to NUMBA_NUM_THREADS threads, for steps that let go of the GIL.

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
    pool = ThreadPoolExecutor(threads, thread_name_prefix="formats")
    try:
        while True:
            while not ended and len(waiting) <= threads:
                try:
                    waiting.append(pool.submit(step, next(source)))
                except StopIteration:
                    ended = True
                except Exception as error:
                    failure, ended = error, True
            if not waiting:
                break
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure
