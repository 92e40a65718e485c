"""Where the bands of a worker are computed, and the way there from the memory of the host or a store, and back.

On a CPU bands are read where they are computed. A GPU has two streams beside the one that computes; rows of the host
reach it by way of pairs of small page-locked buffers, which threads fill and empty, or directly where the matrix itself
is registered.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from dask.system import CPU_COUNT

from gpuops.arrays import is_cupy
from pipelines.stores.row_files import page_aligned
from pipelines.workers.conveyor import Rows, Sink, Source, count, parts

COPIERS = max(1, min(6, CPU_COUNT // 2))  # threads that copy within the host's memory, a direction
PIECE_BYTES = 64 << 20  # copied at a time on the way to or from a GPU


@functools.cache
def _copiers(_direction: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(COPIERS, thread_name_prefix="tilepath-copy")


class HostMatrix:
    """An (n, n) matrix in the memory of the host, as a source and a sink; it begins with zeros.

    Parameters
    ----------
    shared : bool or str
        True: other processes of the host may have it too. They name its `place`, by which the kernel finds the memory
        as long as a process has it; nothing is left of it when all have ended, however they do.
    """

    def __init__(self, n: int, dtype: np.dtype, shared: bool | str = False):
        self.place = shared if isinstance(shared, str) else ""
        if shared is True:
            self._file = os.memfd_create("tilepath")
            os.ftruncate(self._file, max(1, n * n * dtype.itemsize))
            self.place = f"/proc/{os.getpid()}/fd/{self._file}"
            weakref.finalize(self, os.close, self._file)
        self.matrix = np.memmap(self.place, dtype, "r+", shape=(n, n)) if shared else page_aligned((n, n), dtype)
        self.whole, self.piece = self.matrix, _piece(self.matrix)
        if not isinstance(shared, str):  # pages come to many threads faster than to one
            with ThreadPoolExecutor(CPU_COUNT) as pool:
                for _ in pool.map(lambda part: self.matrix[part[1]].fill(0), parts(slice(0, n), self.piece)):
                    pass

    def columns(self, part: slice) -> HostMatrix:
        """Some columns of the same matrix, as a source and a sink."""
        some = copy.copy(self)
        some.matrix = self.matrix[:, part]
        some.piece = _piece(some.matrix)
        return some

    def read(self, rows: Rows, out: Any) -> None:
        self._copy("in", rows, lambda start, part: np.copyto(out[start : start + count(part)], self.matrix[part]))

    def write(self, start: int, rows: np.ndarray) -> None:
        def put(first: int, part: Rows) -> None:
            np.copyto(self.matrix[part], rows[first : first + count(part)])

        self._copy("out", slice(start, start + len(rows)), put)

    def _copy(self, direction: str, rows: Rows, copy: Callable[[int, Rows], None]) -> None:
        pieces = parts(rows, math.ceil(count(rows) / COPIERS) or 1)
        for _ in _copiers(direction).map(lambda piece: copy(*piece), pieces):
            pass


def _piece(matrix: np.ndarray) -> int:
    return max(1, PIECE_BYTES // max(1, matrix.shape[1] * matrix.itemsize))


class CpuLane:
    """Bands of a CPU: NumPy, read into and written from where they are computed."""

    library = np

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return page_aligned(shape, dtype)

    def load(self, source: Source, rows: Rows, out: np.ndarray) -> None:
        source.read(rows, out)

    def done(self) -> None:
        """What `store` waits for, after the work on a band."""

    def store(self, sink: Sink, start: int, band: np.ndarray, _done: Any, *, beside: bool = False) -> None:
        sink.write(start, band)


class GpuLane:
    """Bands of a GPU, and the way there from the host and back.

    Parameters
    ----------
    registered : a matrix of the host to lock its pages, so that the GPU reads and writes it directly; where the system
        does not let it, threads copy as they do elsewhere
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
        """Unlock the pages of the host that are registered."""
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
            event.synchronize()  # what was in it has left
            source.read(part, buffer[: count(part)])
            self._copy(out[start : start + count(part)], buffer[: count(part)], self._up)
            event.record(self._up)

    def done(self) -> Any:
        event = self.library.cuda.Event(disable_timing=True)
        event.record()  # on the stream that computes
        return event

    def store(self, sink: Sink, start: int, band: Any, done: Any, *, beside: bool = False) -> None:
        """Write rows after the work marked `done`; of two threads that do so at a time, one says `beside`."""
        if 0 in band.shape:
            return
        with self.device:
            self._down.wait_event(done)
            if self._is_direct(sink):
                self._copy(sink.matrix[start : start + len(band)], band, self._down)  # type: ignore[attr-defined]
                self._down.synchronize()
                return
            pair, waiting = self._pair("beside" if beside else "down", sink.piece, band), None
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
        """Two page-locked buffers of so many rows, each with the event after which it may be used again."""
        import cupyx

        shape = rows, like.shape[1]
        size = math.prod(shape) * like.itemsize
        if way not in self._buffers or len(self._buffers[way][0][0]) < size:
            event = functools.partial(self.library.cuda.Event, disable_timing=True)
            self._buffers[way] = [(cupyx.empty_pinned((size,), np.uint8), event()) for _ in range(2)]
        return [(memory[:size].view(like.dtype).reshape(shape), event) for memory, event in self._buffers[way]]

    def _copy(self, to: Any, of: Any, stream: Any) -> None:
        """Copy contiguous rows, which in the host's matrix may be some of its columns."""
        runtime = self.library.cuda.runtime
        up = is_cupy(to)
        into, start = (to.data.ptr, of.ctypes.data) if up else (to.ctypes.data, of.data.ptr)
        kind = runtime.memcpyHostToDevice if up else runtime.memcpyDeviceToHost
        width = of.shape[1] * of.itemsize
        runtime.memcpy2DAsync(into, to.strides[0], start, of.strides[0], width, len(of), kind, stream.ptr)
