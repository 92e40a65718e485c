"""The slab of a worker out of core: the rows of a window, or some of their columns, and the row panels."""

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
from pipelines.workers.rings import Ring


@dataclass
class Slab:
    """The arrays of a worker, except its bands. They have the job's dtype and are on the worker's device."""

    job: Job
    windows: Windows
    worker: int
    workers: int
    lane: Any
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
        """Keep a band of the next window, which is computed, in the slab."""
        at = slice(start - window[0], start - window[0] + len(band))
        self.rows[at] = band[:, self.columns]
        if self.shares:
            self.square(window)[at] = band[:, slice(*window)]
        self.ready.add(start)

    def source(self, writer: DistancesWriter) -> Source:
        """Return the source of the rows: where the last super-stage wrote, else the last commit, else the graph."""
        return self.newest or (writer.row_files(writer.slot) if writer.slot else Weights(self.job))


def within(row: int, window: tuple[int, int]) -> bool:
    """Return whether a window of rows, (first, end), has the row."""
    return window[0] <= row < window[1]


def vertices_of(rows: Rows) -> np.ndarray:
    """Return the vertices of rows."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
