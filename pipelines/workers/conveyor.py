"""Bands of rows that pass through a worker: while one band is computed, the next is loaded and the last is stored."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np

Rows = slice | np.ndarray  # rows of a matrix: a range, or an array of row numbers
T = TypeVar("T")


def count(rows: Rows) -> int:
    """Return the number of rows."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def parts(rows: Rows, size: int) -> Iterator[tuple[int, Rows]]:
    """Cut rows into pieces of at most `size` rows; yields the position of each piece, and its rows."""
    for start in range(0, count(rows), size):
        stop = min(start + size, count(rows))
        yield start, slice(rows.start + start, rows.start + stop) if isinstance(rows, slice) else rows[start:stop]


class Source(Protocol):
    """A source of rows of a matrix."""

    @property
    def piece(self) -> int:
        """Rows to ask for at a time; 0 if the source fills a whole array at once, of NumPy or CuPy."""

    def read(self, rows: Rows, out: Any) -> None: ...


class Sink(Protocol):
    """A sink of rows of a matrix."""

    @property
    def piece(self) -> int:
        """Rows to give at a time."""

    def write(self, start: int, rows: np.ndarray) -> None: ...


class Conveyor:
    """Loads, works on and stores items, in order, in a fixed number of buffers.

    One thread loads, another stores, and the caller's thread does the work between. The loading thread never waits for
    a buffer: it gets an item only when a buffer is free.
    """

    def __init__(self, buffers: Sequence[Any]):
        self._free = list(buffers)
        self._left: deque[Any] = deque()  # items that have no buffer yet
        self._count = 0  # number of items given to `begin`
        self._load: Callable[[Any, Any], Any] | None = None
        self._coming: deque[tuple[Any, Any, Future[Any]]] = deque()
        self._going: deque[Future[None]] = deque()
        self._lock = threading.Lock()
        self._loader, self._storer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    def convey(
        self,
        items: Sequence[T],
        load: Callable[[T, Any], Any],
        work: Callable[[T, Any], Any],
        store: Callable[[T, Any], None],
    ) -> None:
        """Load, work on and store all items."""
        self.begin(items, load)
        self.run(work, store)
        self.settle()

    def begin(self, items: Sequence[T], load: Callable[[T, Any], Any]) -> None:
        """Start loading the first items, while the caller does something else; `load` returns what `work` gets.

        All items of an earlier call must be stored (`settle`).
        """
        assert not self._going
        self._load, self._count = load, len(items)
        self._left.extend(items)
        self._feed()

    def run(self, work: Callable[[T, Any], Any], store: Callable[[T, Any], None]) -> None:
        """Work on all items, on this thread, and have them stored; `work` returns what `store` gets.

        The last items may not be stored yet when this returns. After an error the conveyor has stopped for good.
        """
        try:
            for _ in range(self._count):
                while not self._coming:
                    self._going.popleft().result()  # a stored item frees its buffer
                item, buffer, loaded = self._coming.popleft()
                made = work(item, loaded.result())
                self._going.append(self._storer.submit(self._store, store, item, made, buffer))
                while self._going and self._going[0].done():
                    self._going.popleft().result()
        except BaseException:
            self.stop()
            raise

    def settle(self, but: int = 0) -> None:
        """Wait until at most `but` items, the last ones, are not stored yet."""
        try:
            while len(self._going) > but:
                self._going.popleft().result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Drop all items that are not begun, and wait for the loading and storing that is under way."""
        with self._lock:
            self._left.clear()
        for pool in self._loader, self._storer:
            pool.shutdown(cancel_futures=True)
        self._coming.clear()
        self._going.clear()  # errors in these futures would keep this object alive

    def _store(self, store: Callable[[T, Any], None], item: T, made: Any, buffer: Any) -> None:
        try:
            store(item, made)
        except BaseException:
            del self  # else the error, whose traceback has this frame, keeps this object alive until it is fetched
            raise
        self._free.append(buffer)
        self._feed()

    def _feed(self) -> None:
        """Load an item into every free buffer."""
        with self._lock:
            while self._free and self._left:
                assert self._load is not None
                item, buffer = self._left.popleft(), self._free.pop()
                self._coming.append((item, buffer, self._loader.submit(self._load, item, buffer)))
