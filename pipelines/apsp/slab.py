"""The slab of a worker out of core: the rows of a window, or some of their columns, and what comes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuops.minplus.super_stage import Panel
from pipelines.apsp.band_rows import Weights
from pipelines.apsp.methods import Job
from pipelines.apsp.windows import Windows
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.row_files import RowFiles
from pipelines.workers.conveyor import Rows, Source, count, parts
from pipelines.workers.lanes import HostMatrix
from pipelines.workers.panels import Panels


@dataclass
class Slab:
    """All that a worker has but its bands. Arrays are of the job's dtype, on its device."""

    job: Job
    windows: Windows
    worker: int
    workers: int
    lane: Any
    columns: slice  # of the slab, that this worker takes through its stages: all, unless workers share it
    rows: Any  # (width, columns)
    squares: Any  # (width * width) if they share it: the columns of the window's own vertices
    panels: Panels  # a slot for each stage of a window
    matrix: HostMatrix | None
    newest: HostMatrix | RowFiles | None = None  # what the last super-stage wrote its rows to
    window: tuple[int, int] = (0, 0)
    memory: Sequence[Any] = ()  # uint8: what each slot holds,
    row_panels: Sequence[Panel] = ()  # of the stages of the window
    ready: set[int] = field(default_factory=set)  # first rows of the bands of the next window that the slab holds

    @property
    def shares(self) -> bool:
        return self.windows.sharers > 1

    def own(self, total: int) -> range:
        """The first rows of this worker's chunk rows."""
        return range(self.worker * self.windows.chunk, total, self.workers * self.windows.chunk)

    def in_window(self, rows: Rows) -> np.ndarray:
        """bool: which of some rows are in the slab."""
        vertices = vertices_of(rows)
        return (vertices >= self.window[0]) & (vertices < self.window[1])

    def square(self, window: tuple[int, int]) -> Any:
        """Of a window, (rows, rows)."""
        rows = window[1] - window[0]
        return self.squares[: rows * rows].reshape(rows, rows)

    def load(self, source: Source, start: int, stop: int) -> None:
        """Load rows of the window."""
        some, at = slice(start, stop), slice(start - self.window[0], stop - self.window[0])
        if self.matrix is not None and self.shares:
            self.lane.load(self.matrix.columns(self.columns), some, self.rows[at])
            self.lane.load(self.matrix.columns(slice(*self.window)), some, self.square(self.window)[at])
        else:
            self.lane.load(source, some, self.rows[at])

    def store(self, done: Any) -> None:
        """Write the columns of the slab to the matrix, after the work marked `done`."""
        assert self.matrix is not None
        start, stop = self.window
        for at, rows in parts(slice(start, stop), self.windows.chunk):
            self.lane.store(
                self.matrix.columns(self.columns), start + at, self.rows[at : at + count(rows)], done, beside=True
            )

    def keep_for(self, window: tuple[int, int], start: int, band: Any) -> None:
        """Rows of the next window, which are computed, stay here."""
        at = slice(start - window[0], start - window[0] + len(band))
        self.rows[at] = band[:, self.columns]
        if self.shares:
            self.square(window)[at] = band[:, slice(*window)]
        self.ready.add(start)

    def source(self, writer: DistancesWriter) -> Source:
        """Where the rows are: where the last super-stage wrote them, in the committed slot, or still in the graph."""
        return self.newest or (writer.row_files(writer.slot) if writer.slot else Weights(self.job))


def within(row: int, window: tuple[int, int]) -> bool:
    return window[0] <= row < window[1]


def vertices_of(rows: Rows) -> np.ndarray:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
