"""The rows of a worker in a super-stage: the slab, and the bands that go through the stages after it.

The slab has the rows of a window, or some of their columns, and the row panels. Bands have the worker's rows outside
the slab, which are read from the matrix and written back.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuops.minplus.super_stage import Panel, pass_rows
from pipelines.apsp.layout import Windows
from pipelines.apsp.matrix_rows import Result, Weights, finish
from pipelines.apsp.methods import Job
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.row_files import RowFiles
from pipelines.workers.conveyor import Conveyor, Rows, Sink, Source, count, parts
from pipelines.workers.device_arrays import mark
from pipelines.workers.host_matrix import HostMatrix
from pipelines.workers.rings import Ring


@dataclass
class Slab:
    """The arrays of a worker, except its bands. They have the job's dtype and are on the worker's device."""

    job: Job
    windows: Windows
    worker: int
    workers: int
    transfers: Any
    columns: slice  # columns that this worker takes through the stages: all, unless workers share the slab
    rows: Any  # (width, columns), the slab
    squares: Any  # (width * width), the columns of the window's own vertices if workers share the slab, else empty
    ring: Ring  # with a slot for each stage of a window
    matrix: HostMatrix | None
    newest: HostMatrix | RowFiles | None = None  # where the last super-stage wrote its rows
    window: tuple[int, int] = (0, 0)
    memory: Sequence[Any] = ()  # uint8, the array of each slot
    row_panels: Sequence[Panel] = ()  # the row panels of the stages of the window
    ready: set[int] = field(default_factory=set)  # first rows of the next window's bands that the slab already holds

    @property
    def shares(self) -> bool:
        return self.windows.sharers > 1

    def own(self, total: int) -> range:
        """Return the first row of each chunk row of this worker, out of `total` rows."""
        return range(self.worker * self.windows.chunk, total, self.workers * self.windows.chunk)

    def in_window(self, rows: Rows) -> np.ndarray:
        """Return which of some rows are in the slab, bool (rows)."""
        vertices = vertices_of(rows)
        return (vertices >= self.window[0]) & (vertices < self.window[1])

    def square(self, window: tuple[int, int]) -> Any:
        """Return the square of a window, (rows, rows), a view."""
        rows = window[1] - window[0]
        return self.squares[: rows * rows].reshape(rows, rows)

    def load(self, source: Source, start: int, stop: int) -> None:
        """Load rows of the window."""
        some, at = slice(start, stop), slice(start - self.window[0], stop - self.window[0])
        if self.matrix is not None and self.shares:
            self.transfers.load(self.matrix.columns(self.columns), some, self.rows[at])
            self.transfers.load(self.matrix.columns(slice(*self.window)), some, self.square(self.window)[at])
        else:
            self.transfers.load(source, some, self.rows[at])

    def store(self, done: Any) -> None:
        """Write the columns of the slab to the matrix, after the work marked `done`."""
        assert self.matrix is not None
        start, stop = self.window
        for at, rows in parts(slice(start, stop), self.windows.chunk):
            self.transfers.store(
                self.matrix.columns(self.columns), start + at, self.rows[at : at + count(rows)], done, second=True
            )

    def keep_for(self, window: tuple[int, int], start: int, band: Any) -> None:
        """Keep a band of the next window, which is computed, in the slab."""
        at = slice(start - window[0], start - window[0] + len(band))
        self.rows[at] = band[:, self.columns]
        if self.shares:
            self.square(window)[at] = band[:, slice(*window)]
        self.ready.add(start)

    def source(self, writer: DistancesWriter) -> Source:
        """Return the source of the rows: where the last super-stage wrote, else the last commit, else the graph."""
        return self.newest or (writer.row_files(writer.slot) if writer.slot else Weights(self.job))


class Bands:
    """The bands of a worker in a super-stage: its rows of the matrix or, in the last super-stage, of the result.

    Bands of the window come late, when their rows leave the slab. Bands of the next window come after them, since their
    rows replace them in the slab. If workers share the slab, each writes its columns of the slab to the matrix, in
    another thread while the bands are computed; in the last super-stage it has written them before.
    """

    def __init__(self, slab: Slab, writer: DistancesWriter, source: Source, following: tuple[int, int], end: bool):
        self._slab, self._source, self._following, self._end = slab, source, following, end
        self._kept = writer.sources if end else None
        self.newest = None if end else slab.matrix or writer.row_files(writer.other_slot)
        self._sink: Sink = self.newest or Result(writer, slab.windows.savers)
        self._total = slab.windows.n if self._kept is None else len(self._kept)
        self._beside = slab.shares and not end
        self._storing: Future[None] | None = None
        self._items = self._in_order()

    def begin(self, conveyor: Conveyor) -> None:
        """Start loading the first bands while the slab is computed.

        In the last super-stage, workers that share the slab start only when the slab is stored in the matrix.
        """
        conveyor.begin(self._items, self._load)

    def run(self, conveyor: Conveyor) -> None:
        """Take all bands through the stages; the slab must have the row panels."""
        slab = self._slab
        if self._end and slab.shares:
            self.begin(conveyor)
        with ThreadPoolExecutor(1) as thread:
            if self._beside:
                self._storing = thread.submit(slab.store, mark(slab.rows))
            conveyor.run(self._work, self._store)
        if self._storing is not None:
            self._storing.result()
        # The last band may still be stored when this returns, as the next super-stage waits for it, but only if no
        # other worker reads it before. Workers that do not share the slab may do that: for the result of some sources,
        # they load rows of other workers while those compute their slabs.
        tail = not self._end and slab.matrix is not None and (slab.shares or slab.workers == 1)
        conveyor.settle(1 if tail and self._items and not self._to_keep(self._items[-1]) else 0)

    def _in_order(self) -> list[int]:
        """Return the first rows of the bands, in the order of computation."""
        items = [start for start in self._slab.own(self._total) if not (self._beside and self._in_window(start))]
        if self._end:
            return items
        items.sort(key=lambda start: 2 * self._to_keep(start) + self._in_window(start))
        # The last band is of neither window: its storing may last into the next super-stage.
        plain = sum(not self._to_keep(start) and not self._in_window(start) for start in items)
        return items[: plain - 1] + items[plain:] + items[plain - 1 : plain] if plain else items

    def _in_window(self, start: int) -> bool:
        return within(start, self._slab.window)

    def _to_keep(self, start: int) -> bool:
        return not self._end and within(start, self._following)

    def _rows(self, start: int) -> Rows:
        part = slice(start, min(start + self._slab.windows.chunk, self._total))
        return part if self._kept is None else np.asarray(self._kept[part])

    def _load(self, start: int, buffer: Any) -> Any:
        rows = self._rows(start)
        band = buffer[: count(rows)]
        if self._slab.shares or not self._slab.in_window(rows).all():
            self._slab.transfers.load(self._source, rows, band)
        return band

    def _work(self, start: int, band: Any) -> tuple[Any, Any]:
        slab, rows = self._slab, self._rows(start)
        inside, first = np.flatnonzero(slab.in_window(rows)), slab.window[0]
        if isinstance(rows, slice) and len(inside):  # all rows are in the window, as it consists of whole bands
            if not slab.shares:
                band[...] = slab.rows[rows.start - first : rows.stop - first]
        else:
            done = [band[at].copy() if slab.shares else slab.rows[vertices_of(rows)[at] - first] for at in inside]
            if len(inside) < len(band):
                pass_rows(band, slab.row_panels)
            for at, row in zip(inside, done, strict=True):
                band[at] = row
        if self._to_keep(start):
            if self._storing is not None:
                self._storing.result()
            slab.keep_for(self._following, start, band)
        if self._end:
            finish(slab.job, band, vertices_of(rows))
        return band, mark(band)

    def _store(self, start: int, made: tuple[Any, Any]) -> None:
        self._slab.transfers.store(self._sink, start, *made)


def within(row: int, window: tuple[int, int]) -> bool:
    """Return whether a window of rows, (first, end), has the row."""
    return window[0] <= row < window[1]


def vertices_of(rows: Rows) -> np.ndarray:
    """Return the vertices of rows."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
