"""Bands of rows that pass through a worker: one is loaded and one stored while one is computed."""

from __future__ import annotations

import threading
from collections import deque
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


class Conveyor:
    """Buffers in which items are loaded, worked on and stored; each step by a thread of its own, in order.

    Nothing waits inside these threads: an item is loaded when a buffer is free for it.
    """

    def __init__(self, buffers: Sequence[Any]):
        self._free = list(buffers)
        self._left: deque[Any] = deque()  # items that have no buffer yet
        self._count = 0  # of items that are not worked on yet
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
        """Load the first items while the caller does something else; `load` returns what `work` gets.

        All items before are stored (`settle`).
        """
        assert not self._going
        self._load, self._count = load, len(items)
        self._left.extend(items)
        self._feed()

    def run(self, work: Callable[[T, Any], Any], store: Callable[[T, Any], None]) -> None:
        """Work on all items, on this thread, and store them; `work` returns what `store` gets.

        The last may be stored later. After an error nothing is under way, and no more can be done.
        """
        try:
            for _ in range(self._count):
                while not self._coming:
                    self._going.popleft().result()  # which leaves a buffer
                item, buffer, loaded = self._coming.popleft()
                made = work(item, loaded.result())
                self._going.append(self._storer.submit(self._store, store, item, made, buffer))
                while self._going and self._going[0].done():
                    self._going.popleft().result()
        except BaseException:
            self.stop()
            raise

    def settle(self, but: int = 0) -> None:
        """Wait until all items are stored but so many of the last."""
        try:
            while len(self._going) > but:
                self._going.popleft().result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        with self._lock:
            self._left.clear()
        for pool in self._loader, self._storer:
            pool.shutdown(cancel_futures=True)
        self._coming.clear()
        self._going.clear()  # whose errors would keep this object alive

    def _store(self, store: Callable[[T, Any], None], item: T, made: Any, buffer: Any) -> None:
        try:
            store(item, made)
        except BaseException:
            del self  # whom the error, which has this frame, would keep alive if nobody asked for it
            raise
        self._free.append(buffer)
        self._feed()

    def _feed(self) -> None:
        """Load as many items as there are buffers."""
        with self._lock:
            while self._free and self._left:
                assert self._load is not None
                item, buffer = self._left.popleft(), self._free.pop()
                self._coming.append((item, buffer, self._loader.submit(self._load, item, buffer)))
