"""Threads that copy rows from a worker's device and write them to a store, while the next rows are computed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from distributed import Status, get_worker, secede

from pipelines.stores.whole_chunks import WRITERS
from pipelines.workers.device_arrays import mark

SAVERS = WRITERS  # chunks that a worker writes at a time; memory holds a few copies of each
HELD = 2 * SAVERS  # chunks that may wait to be written while more rows are computed
WRITTEN_COPIES = 5  # memory of a thread that compresses and writes a chunk, in chunks
KEPT_COPIES = 5  # freed chunks that the allocator keeps for a thread, where many chunks are written while bands go by


def written_bytes(chunks: int, chunk_bytes: int, copies: int = WRITTEN_COPIES) -> int:
    """Return the bytes of the threads that write `chunks` chunks, some at a time."""
    return copies * min(chunks, SAVERS) * chunk_bytes


def let_next_begin() -> None:
    """Let this worker begin its next task while this task writes, unless the worker is closing.

    A closing worker waits for its tasks, and holds the lock that `distributed.secede` needs: both would wait for each
    other until Dask gives up, after 30 seconds.
    """
    if get_worker().status not in (Status.closing, Status.closed):
        secede()


class Savers:
    """Threads that write chunks of a store; a context manager, which waits for all chunks at its end.

    An error in a thread is raised by a later call, or at the end of the context.

    Parameters
    ----------
    waiting : how many chunks may wait to be written; their rows must be kept meanwhile
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
        """Have a thread call `write`; waits while more calls than `waiting` are unfinished."""
        self._going.append(self._pool.submit(write, *arguments))
        self._wait(self._waiting)

    def save(self, rows: Any, columns: int, write: Callable[[int, np.ndarray], None]) -> None:
        """Have a band of rows written by chunks.

        The rows are copied after all work that the GPU has been given so far; they must not change before they are
        written. Work that is given to the GPU later does not delay the copies.

        Parameters
        ----------
        rows : (r, n) array, NumPy or CuPy, with contiguous rows
        columns : width of a chunk
        write : called with the first column of a chunk, and the chunk on the host
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
    """Return a contiguous host array of (r, c) entries with contiguous rows, once the work `after` is done.

    A block of a GPU is copied to page-locked memory, on a stream of this thread. On the GPU's common stream, the copy
    would wait for work that was given since.
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
    """Return the stream of this thread, and an event to wait for its work.

    The stream and the null stream do not wait for each other. A thread that waits for the event sleeps; a thread that
    waits for a stream would keep a core busy, which other threads need to compress chunks.
    """
    if not hasattr(_own, "stream"):
        _own.stream = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(block=True, disable_timing=True)
    return _own.stream
