"""Rows of distances from parts of small boundaries on a GPU: three launches for many rows (boundary.cu).

Which columns a thread has is found on the host, in loops; tables and distances stay on the device.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._strips import SHAPES, WORDS
from gpuops.boundary import tables_cuda
from gpuops.boundary.slots import ByPart, Slots, by_part, share_out, threads_of, window_of
from gpuops.boundary.slots_numba import look_up, number_absent
from gpuops.boundary.tables_cuda import INDEX_BYTES, PACK_DEPTH, PACK_WORDS, DeviceTables, on_device

if TYPE_CHECKING:
    from gpuops.boundary import ClosedParts


_WARP = 32
_ENTRIES = "pack_among", "pack_columns", "depart", "arrive", "stay"
_PROGRAMS = {
    arithmetic: shape.program("boundary/boundary.cu", _ENTRIES, arithmetic) for arithmetic, shape in SHAPES.items()
}


class _Sources(NamedTuple):
    """Sources by part, with gaps, so that no thread has two parts.

    Attributes
    ----------
    slots : Slots
        Of one window: its columns are the rows of the result.
    used : int
        Slots that are used, a multiple of the rows of a thread.
    departure : array
        Panels: how the boundary of their part is reached.
    """

    slots: Slots
    used: int
    departure: Any


class _Targets(NamedTuple):
    """Targets in windows.

    Attributes
    ----------
    window : int
        Columns of each.
    slots : Slots
        A slot without a column has a number after those of its window, and no other slot of the window has it.
    by_part : ByPart
    arrival : array
        Panels: how they are reached from the boundary of their part.
    """

    window: int
    slots: Slots
    by_part: ByPart
    arrival: Any


def targets_bytes(part: np.ndarray, boundary_sizes: np.ndarray, dtype: np.dtype) -> int:
    """Bytes on the device of the layout of all vertices as targets (`StripTables.all_targets`)."""
    arithmetic = arithmetic_of(dtype, False)
    threads, of_thread = SHAPES[arithmetic.name].threads, WORDS * arithmetic.lanes
    window = window_of(part, len(boundary_sizes), of_thread, threads)
    count = math.ceil(len(part) / max(1, window)) * threads
    depth = math.ceil(int(boundary_sizes.max(initial=0)) / 2) * 2
    by_part = (len(boundary_sizes) + 1 + 2 * len(part)) * INDEX_BYTES
    return count * (of_thread * (depth * dtype.itemsize + 2 * INDEX_BYTES) + INDEX_BYTES) + by_part


class StripTables(DeviceTables):
    """The tables for strips."""

    def __init__(self, parts: ClosedParts):
        import cupy

        super().__init__(parts, _PROGRAMS)
        boundary = len(parts.among)
        self.shape = SHAPES[self.arithmetic]
        self.of_thread = WORDS * self.lanes  # columns
        self.depth = (boundary // self.shape.rows + 1) * self.shape.rows
        self.part_depth = math.ceil(parts.to_boundary.shape[2] / 2) * 2
        self.among = cupy.empty((self.depth // self.shape.rows, self.depth, self.shape.rows), self.word)
        self._pack("pack_among", self.among, (parts.among, np.int32(boundary), np.int32(self.depth)))

    @cached_property
    def all_sources(self) -> _Sources:
        """What `_sources` finds for all vertices."""
        return self._sources(np.arange(len(self.parts.part)))

    def distances(self, out: Any, sources: np.ndarray | None, targets: np.ndarray | None) -> None:
        import cupy

        leaving = self.all_sources if sources is None else self._sources(sources)
        strip = self.shape.threads * self.of_thread
        strips = max(1, tables_cuda.ONWARD_BYTES // (strip * self.depth * self.word.itemsize))
        onward = cupy.empty((min(strips * strip, leaving.used), self.depth), self.word)
        for first in range(0, leaving.used, strips * strip):
            count = min(strips * strip, leaving.used - first)
            slots = Slots(leaving.slots.thread_part[first // self.of_thread :], *(x[first:] for x in leaving.slots[1:]))
            self._depart(onward, slots, leaving.departure[first // strip :], count, out.device.id)
            arriving = self.laid_out(targets)  # while the device is at work
            self._arrive(out, onward, slots, count, arriving)
            self._stay(out, slots, count, arriving.by_part)

    def _depart(self, onward: Any, slots: Slots, departure: Any, count: int, device: int) -> None:
        """Distances from `count` sources to all boundary vertices."""
        grid, turns = self.shape.grid(math.ceil(count / (self.shape.threads * self.of_thread)), self.depth, device)
        self.program.launch(
            "depart",
            grid,
            {
                "onward": onward,
                "depth": np.int32(self.depth),
                "among": self.among,
                "departure": departure,
                "part_depth": np.int32(self.part_depth),
                "thread_part": slots.thread_part,
                "starts": self.starts,
                "sources": np.int32(count),
                "turns": turns,
            },
        )

    def _arrive(self, out: Any, onward: Any, slots: Slots, count: int, arriving: _Targets) -> None:
        """Their distances to the targets by way of the boundary."""
        grid, turns = self.shape.grid(len(arriving.arrival), count, out.device.id)
        self.program.launch(
            "arrive",
            grid,
            {
                "out": out,
                "stride": np.int64(out.strides[0] // out.itemsize),
                "targets": np.int32(out.shape[1]),
                "window": np.int32(arriving.window),
                "rows": slots.columns,
                "sources": np.int32(count),
                "onward": onward,
                "depth": np.int32(self.depth),
                "arrival": arriving.arrival,
                "part_depth": np.int32(self.part_depth),
                "thread_part": arriving.slots.thread_part,
                "starts": self.starts,
                "columns": arriving.slots.columns,
                "turns": turns,
            },
        )

    def _stay(self, out: Any, slots: Slots, count: int, by_part: ByPart) -> None:
        """Within a part, no distance is longer than that of paths which do not leave it."""
        self.program.launch(
            "stay",
            math.ceil(count * _WARP / self.shape.threads),
            {
                "out": out,
                "stride": np.int64(out.strides[0] // out.itemsize),
                "rows": slots.columns,
                "row_place": slots.places,
                "thread_part": slots.thread_part,
                "sources": np.int32(count),
                "target_starts": by_part.starts,
                "columns": by_part.columns,
                "column_place": by_part.places,
                "inner": self.parts.inner,
                "size": np.int32(self.parts.inner.shape[1]),
            },
        )

    def _sources(self, sources: np.ndarray) -> _Sources:
        tables, of_block = self.parts, self.shape.rows
        (part, place), parts = look_up(sources, tables.part, tables.place), len(tables.boundary_sizes)
        used = threads_of(part, parts, self.of_thread)
        threads = math.ceil(used / self.shape.threads) * self.shape.threads
        slots = share_out(part, place, parts, max(1, len(part)), self.of_thread, threads)
        slots = Slots(*on_device(*slots))
        departure = self._panels(tables.to_boundary, (1, 2), slots)
        return _Sources(slots, math.ceil(used * self.of_thread / of_block) * of_block, departure)

    def _targets(self, targets: np.ndarray) -> _Targets:
        tables, threads = self.parts, self.shape.threads
        (part, place), parts = look_up(targets, tables.part, tables.place), len(tables.boundary_sizes)
        window = window_of(part, parts, self.of_thread, threads)
        slots = share_out(part, place, parts, window, self.of_thread, threads)
        number_absent(slots.columns, threads * self.of_thread, window, len(part))  # for `arrive`
        arrays = on_device(*slots, *by_part(part, place, parts))
        slots, sorted_ = Slots(*arrays[:3]), ByPart(*arrays[3:])
        return _Targets(window, slots, sorted_, self._panels(tables.from_boundary, (2, 1), slots))

    def _panels(self, table: Any, axes: tuple[int, int], slots: Slots) -> Any:
        """Panels of the columns of a table, with the axes of places and of the depth."""
        import cupy

        steps = [stride // table.itemsize for stride in table.strides]
        strides = map(np.int64, (steps[0], *(steps[axis] for axis in axes)))
        shape = len(slots.thread_part) // self.shape.threads, self.part_depth, self.shape.threads * WORDS
        panels = cupy.empty(shape, self.word)
        sizes = np.int32(table.shape[axes[1]]), np.int32(self.part_depth)
        self._pack("pack_columns", panels, (table, *strides, slots.thread_part, slots.places, *sizes))
        return panels

    def _pack(self, entry: str, panels: Any, arguments: tuple[Any, ...]) -> None:
        count, depth, width = panels.shape
        if depth and count:
            grid = math.ceil(count * width / PACK_WORDS), math.ceil(depth / PACK_DEPTH)
            self.program.launch(entry, grid, (panels, *arguments), threads=(PACK_WORDS, PACK_DEPTH))
