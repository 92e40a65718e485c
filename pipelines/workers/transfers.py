"""Copies of bands between the host's memory or a store and the device that computes them.

A CPU computes bands where they are read to. A GPU has two streams for copies, apart from the stream that computes. Rows
of the host pass through pairs of small page-locked buffers, which threads fill and empty. If the pages of the host's
matrix are locked (registered), ranges of rows are copied directly.
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import numpy as np

from gpuops.arrays import is_cupy
from pipelines.stores.row_files import page_aligned
from pipelines.workers.conveyor import Rows, Sink, Source, count, parts


class CpuTransfers:
    """Bands of a CPU: NumPy arrays, read and written where they are computed."""

    library = np

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return page_aligned(shape, dtype)

    def load(self, source: Source, rows: Rows, out: np.ndarray) -> None:
        source.read(rows, out)

    def store(self, sink: Sink, start: int, band: np.ndarray, _done: Any, *, second: bool = False) -> None:
        sink.write(start, band)


class GpuTransfers:
    """Bands of a GPU, copied from and to the host.

    Parameters
    ----------
    registered : a matrix of the host. Its pages are locked, so that the GPU reads and writes it directly; if the system
        refuses to lock them, threads copy rows through buffers, as for any other source and sink.
    """

    def __init__(self, registered: np.ndarray | None = None):
        import cupy

        self._registered: np.ndarray | None = None
        self.library: Any = cupy
        self.device = cupy.cuda.Device()
        self._up, self._down = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
        self._buffers: dict[str, list[tuple[np.ndarray, Any]]] = {}
        if registered is not None:
            with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
                cupy.cuda.runtime.hostRegister(registered.ctypes.data, registered.nbytes, 0)
                self._registered = registered

    def close(self) -> None:
        """Unlock the pages of the registered matrix."""
        if self._registered is not None:
            self.library.cuda.runtime.hostUnregister(self._registered.ctypes.data)
            self._registered = None

    __del__ = close

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.library.empty(shape, dtype)

    def load(self, source: Source, rows: Rows, out: Any) -> None:
        if 0 in out.shape:
            return
        with self.device, self._up:
            if source.piece == 0:
                source.read(rows, out)
            elif self._is_direct(source) and isinstance(rows, slice):
                self._copy(out, source.matrix[rows], self._up)  # type: ignore[attr-defined]
            else:
                self._load(source, rows, out)
            self._up.synchronize()

    def _load(self, source: Source, rows: Rows, out: Any) -> None:
        pair = self._pair("up", source.piece, out)
        for number, (start, part) in enumerate(parts(rows, source.piece)):
            buffer, event = pair[number % 2]
            event.synchronize()  # the rows that were in this buffer have been copied
            source.read(part, buffer[: count(part)])
            self._copy(out[start : start + count(part)], buffer[: count(part)], self._up)
            event.record(self._up)

    def store(self, sink: Sink, start: int, band: Any, done: Any, *, second: bool = False) -> None:
        """Write rows to a sink, after the work marked `done` (`pipelines.workers.device_arrays.mark`).

        With `second`, the second pair of staging buffers is used: for a second thread that writes at the same time.
        """
        if 0 in band.shape:
            return
        with self.device:
            self._down.wait_event(done)
            if self._is_direct(sink):
                self._copy(sink.matrix[start : start + len(band)], band, self._down)  # type: ignore[attr-defined]
                self._down.synchronize()
                return
            pair, waiting = self._pair("second" if second else "down", sink.piece, band), None
            for number, (first, part) in enumerate(parts(slice(0, len(band)), sink.piece)):
                buffer, event = pair[number % 2]
                self._copy(buffer[: count(part)], band[part], self._down)
                event.record(self._down)
                if waiting is not None:
                    self._arrive(sink, *waiting)
                waiting = start + first, buffer[: count(part)], event
            if waiting is not None:
                self._arrive(sink, *waiting)

    @staticmethod
    def _arrive(sink: Sink, start: int, rows: np.ndarray, event: Any) -> None:
        event.synchronize()
        sink.write(start, rows)

    def _is_direct(self, end: Any) -> bool:
        return self._registered is not None and getattr(end, "whole", None) is self._registered

    def _pair(self, way: str, rows: int, like: Any) -> list[tuple[np.ndarray, Any]]:
        """Return two page-locked buffers of `rows` rows, each with an event: the buffer may be used again after it."""
        import cupyx

        shape = rows, like.shape[1]
        size = math.prod(shape) * like.itemsize
        if way not in self._buffers or len(self._buffers[way][0][0]) < size:
            event = functools.partial(self.library.cuda.Event, disable_timing=True)
            self._buffers[way] = [(cupyx.empty_pinned((size,), np.uint8), event()) for _ in range(2)]
        return [(memory[:size].view(like.dtype).reshape(shape), event) for memory, event in self._buffers[way]]

    def _copy(self, to: Any, of: Any, stream: Any) -> None:
        """Copy rows with contiguous entries; on the host they may be some columns of a matrix."""
        runtime = self.library.cuda.runtime
        up = is_cupy(to)
        into, start = (to.data.ptr, of.ctypes.data) if up else (to.ctypes.data, of.data.ptr)
        kind = runtime.memcpyHostToDevice if up else runtime.memcpyDeviceToHost
        width = of.shape[1] * of.itemsize
        runtime.memcpy2DAsync(into, to.strides[0], start, of.strides[0], width, len(of), kind, stream.ptr)
