"""Rows on their way from a worker's device to a store: threads copy and write them while what follows is computed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from pipelines.stores.whole_chunks import WRITERS
from pipelines.workers.device_arrays import mark

SAVERS = WRITERS  # chunks a worker writes at a time; each is held in a few copies
HELD = 2 * SAVERS  # chunks handed over and not written yet, while more is computed


class Savers:
    """Threads that write chunks of a store; a context manager, which waits for them in the end.

    What raises in a thread is raised by a later call, or in the end.

    Parameters
    ----------
    waiting : how many chunks may wait to be written, while their rows are kept
    """

    def __init__(self, waiting: float = HELD) -> None:
        self._waiting = waiting
        self._pool = ThreadPoolExecutor(SAVERS)
        self._going: deque[Future[None]] = deque()

    def __enter__(self) -> Savers:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                self._wait(0)
        finally:
            self._pool.shutdown(cancel_futures=True)

    def submit(self, write: Callable[..., None], *arguments: Any) -> None:
        """Have a thread write something; waits where too much is not written yet."""
        self._going.append(self._pool.submit(write, *arguments))
        self._wait(self._waiting)

    def save(self, rows: Any, columns: int, write: Callable[[int, np.ndarray], None]) -> None:
        """Have a band of rows written by chunks.

        It is written as the GPU leaves it with the work that it has by now, and must stay so until it is written; work
        that is given later does not delay the copies.

        Parameters
        ----------
        rows : (r, n) array, NumPy or CuPy, with contiguous rows
        columns : width of a chunk
        write : is given the first column of a chunk, and the chunk on the host
        """
        after = mark(rows)

        def one(column: int) -> None:
            write(column, _on_host(rows[:, column : column + columns], after))

        for column in range(0, rows.shape[1], columns):
            self.submit(one, column)

    def _wait(self, left: float) -> None:
        while len(self._going) > left:
            self._going.popleft().result()


def _on_host(block: Any, after: Any) -> np.ndarray:
    """A contiguous copy on the host of (r, c) entries with contiguous rows, once the work `after` is done.

    From a GPU in page-locked memory, by a stream of this thread: on the common one, the copy would be behind the work
    that was given in the meantime.
    """
    if isinstance(block, np.ndarray):
        return np.ascontiguousarray(block)
    import cupy
    import cupyx

    found = cupyx.empty_pinned(block.shape, block.dtype)
    if found.size:
        stream, done = _stream(cupy)
        stream.wait_event(after)
        kind, width = cupy.cuda.runtime.memcpyDeviceToHost, found.strides[0]
        source, pitch = block.data.ptr, max(block.strides[0], width)
        cupy.cuda.runtime.memcpy2DAsync(found.ctypes.data, width, source, pitch, width, len(found), kind, stream.ptr)
        done.record(stream)
        done.synchronize()
    return found


_own = threading.local()


def _stream(cupy: Any) -> tuple[Any, Any]:
    """The stream of this thread, and an event by which to wait for it.

    The stream and the null stream do not wait for each other. A thread that waits for the event sleeps; one that waits
    for a stream would keep a core from those that compress.
    """
    if not hasattr(_own, "stream"):
        _own.stream = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(block=True, disable_timing=True)
    return _own.stream
