"""Bands of rows that pass through a worker: one is loaded and one stored while one is computed."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np

Rows = slice | np.ndarray  # of a matrix: a range, or some
T = TypeVar("T")


def count(rows: Rows) -> int:
    """How many rows."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def parts(rows: Rows, size: int) -> Iterator[tuple[int, Rows]]:
    """Pieces of at most so many rows: the position of each, and its rows."""
    for start in range(0, count(rows), size):
        stop = min(start + size, count(rows))
        yield start, slice(rows.start + start, rows.start + stop) if isinstance(rows, slice) else rows[start:stop]


class Source(Protocol):
    """Where rows come from."""

    @property
    def piece(self) -> int:
        """Rows to ask for at a time; 0: the source fills arrays of any library, whole."""

    def read(self, rows: Rows, out: Any) -> None: ...


class Sink(Protocol):
    """Where rows go."""

    @property
    def piece(self) -> int:
        """Rows to give at a time."""

    def write(self, start: int, rows: np.ndarray) -> None: ...


def convey(
    items: Sequence[T],
    buffers: Sequence[Any],
    load: Callable[[T, Any], Any],
    work: Callable[[T, Any], Any],
    store: Callable[[T, Any], None],
) -> None:
    """Load, work on and store every item; each step by a thread of its own, in order.

    Parameters
    ----------
    buffers : what items are loaded into; an item has one until it is stored
    load : returns what `work` gets
    work : returns what `store` gets; runs on the calling thread
    """
    free: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for buffer in buffers:
        free.put(buffer)

    def loaded(item: T) -> tuple[Any, Any]:
        buffer = free.get()
        return buffer, None if buffer is None else load(item, buffer)

    def stored(item: T, buffer: Any, result: Any) -> None:
        try:
            store(item, result)
        finally:
            free.put(buffer)

    with ThreadPoolExecutor(1) as loader, ThreadPoolExecutor(1) as storer:
        coming = [loader.submit(loaded, item) for item in items]
        going: list[Future[None]] = []
        try:
            for item, future in zip(items, coming, strict=True):
                buffer, band = future.result()
                going.append(storer.submit(stored, item, buffer, work(item, band)))
                while going and going[0].done():
                    going.pop(0).result()
            for last in going:
                last.result()
        finally:
            for future in coming:
                future.cancel()
            free.put(None)  # a loader that waits for a buffer ends
