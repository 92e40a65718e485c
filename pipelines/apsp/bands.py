"""The bands of a worker in a super-stage: its rows apart from the slab, from where the matrix lies and back."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from gpuops.minplus.super_stage import pass_rows
from pipelines.apsp.band_rows import Result
from pipelines.apsp.finished_rows import finish
from pipelines.apsp.slab import Slab, vertices_of, within
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.conveyor import Conveyor, Rows, Sink, Source, count


class Bands:
    """The rows of a worker in a super-stage, apart from the slab: all of the matrix, or at the end those of the result.

    Rows of the window come late, as they leave the slab, and those of the next one after them, as they come to it. If
    workers share it, each writes its part beside the bands, or has done so if this is the end.
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
        """Load the first bands; while the slab is computed, but at the end of those that share it."""
        conveyor.begin(self._items, self._load)

    def run(self, conveyor: Conveyor) -> None:
        """Take all bands through the stages, whose row panels are there."""
        slab = self._slab
        if self._end and slab.shares:
            self.begin(conveyor)
        with ThreadPoolExecutor(1) as thread:
            if self._beside:
                self._storing = thread.submit(slab.store, slab.lane.done())
            conveyor.run(self._work, self._store)
        if self._storing is not None:
            self._storing.result()
        # The next super-stage waits for the last band, if nobody else reads it before. Workers that do not share may:
        # for a result of some sources, they load rows of others while these are at their slabs.
        tail = not self._end and slab.matrix is not None and (slab.shares or slab.workers == 1)
        conveyor.settle(1 if tail and self._items and not self._to_keep(self._items[-1]) else 0)

    def _in_order(self) -> list[int]:
        """The first rows of the bands, in their order."""
        items = [start for start in self._slab.own(self._total) if not (self._beside and self._in_window(start))]
        if self._end:
            return items
        items.sort(key=lambda start: 2 * self._to_keep(start) + self._in_window(start))
        # The last is one of neither: nobody waits for it.
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
            self._slab.lane.load(self._source, rows, band)
        return band

    def _work(self, start: int, band: Any) -> tuple[Any, Any]:
        slab, rows = self._slab, self._rows(start)
        inside, first = np.flatnonzero(slab.in_window(rows)), slab.window[0]
        if isinstance(rows, slice) and len(inside):  # all: a window is whole bands
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
        return band, slab.lane.done()

    def _store(self, start: int, made: tuple[Any, Any]) -> None:
        self._slab.lane.store(self._sink, start, *made)


class Filling:
    """The rows of a worker on their way to the matrix of the host: the weights, or what is committed."""

    def __init__(self, slab: Slab, source: Source):
        self._slab, self._source = slab, source

    def run(self, conveyor: Conveyor) -> None:
        conveyor.convey(self._slab.own(self._slab.windows.n), self._load, self._work, self._store)

    def _load(self, start: int, buffer: Any) -> Any:
        rows = slice(start, min(start + self._slab.windows.chunk, self._slab.windows.n))
        self._slab.lane.load(self._source, rows, buffer[: count(rows)])
        return buffer[: count(rows)]

    def _work(self, _start: int, band: Any) -> tuple[Any, Any]:
        return band, self._slab.lane.done()

    def _store(self, start: int, made: tuple[Any, Any]) -> None:
        assert self._slab.matrix is not None
        self._slab.lane.store(self._slab.matrix, start, *made)
