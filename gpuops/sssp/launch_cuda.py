"""The parts that all searches on a GPU share: macros, first kernel arguments, and the control block (search.cuh)."""

from __future__ import annotations

import itertools
import operator
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import Program, struct

_PIECES = {size: struct("sssp/search.cuh", "Piece", Word=np.dtype(f"i{size}")) for size in (4, 8)}


def declare(
    file: str, entries: tuple[str, ...], dtype: np.dtype, signed: bool, *macros: str, most_threads: int = 768
) -> Program:
    """Declare the program of a file that includes search.cuh; `macros` are those of the file alone.

    A block has the most threads that registers allow, and a multiprocessor one block. Each kernel is a separate
    program, so that a first search compiles only the kernel that it launches.
    """
    shared = f"DISTANCE={dtype.name.capitalize()}", f"SIGNED={int(signed)}", "UNROLL=2", "PIECE=512"
    threads = 512 if dtype == "float64" else most_threads
    return Program(file, entries, (*shared, *macros), threads=threads, blocks=1)


def arcs(graph: Any, inward: bool) -> dict[str, Any]:
    """Return the first arguments of all kernels; a transpose that is absent or not requested is never read."""
    return {
        "indptr": graph.indptr,
        "indices": graph.indices,
        "weights": graph.weights,
        "in_indptr": graph.in_indptr if inward else graph.indptr,
        "in_indices": graph.in_indices if inward else graph.indices,
        "in_weights": graph.in_weights if inward else graph.weights,
    }


def pieces(graph: Any, program: Program) -> Any:
    """Return memory for two lists of the pieces of all long rows."""
    import cupy

    size = _PIECES[graph.dtype.itemsize].itemsize
    return cupy.empty((2, 2 * graph.m // int(program.macro("PIECE")) + 1, size), np.uint8)


class Statistics(NamedTuple):
    """Counts of a search, for tuning."""

    rounds: int = 0
    windows: int = 0
    pulls: int = 0
    touched: int = 0  # arcs read

    def plus(self, other: Statistics) -> Statistics:
        return Statistics(*map(operator.add, self, other))


CONTROL = struct("sssp/search.cuh", "Control", Tally=struct("sssp/search.cuh", "Tally"))
_EMPTY = np.zeros(1, CONTROL)
_EMPTY["tallies"]["due"] = 2**63 - 1  # never
_EMPTY_BYTES = _EMPTY.view(np.uint8)
_RESULTS = CONTROL[[*Statistics._fields, "finished", "overflow"]]


class Control:
    """A control block of the kernels, followed by the host arrays that a launch takes.

    Both lie in pinned memory on the host and in memory on the device; successive launches use the same memory.
    """

    def __init__(self, dtype: np.dtype) -> None:
        import cupy

        self.kinds = dtype, np.dtype(np.int32), np.dtype(np.int32)
        self.copied = cupy.cuda.Event(disable_timing=True)  # the device has what `begin` copied
        self._take(4096)

    def _take(self, size: int) -> None:
        import cupy

        self.host = np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)
        self.device = cupy.empty((size,), np.uint8)
        self.block, self.memory = self.host[: CONTROL.itemsize], self.device[: CONTROL.itemsize]
        self.data, self.address, self.host_address = self.device.data, self.device.data.ptr, self.host.ctypes.data
        self.results = self.block.view(_RESULTS)
        self.layouts: dict[tuple[int, ...], tuple[list[Any], list[Any], int]] = {}

    def begin(self, *beside: np.ndarray) -> list[Any]:
        """Clear the block, copy it and some arrays to the device, and return the arrays as bytes on the device.

        The arrays are starting distances, sources and targets, in this order; the last arrays may be absent.
        """
        sizes = tuple(map(len, beside))
        if sizes not in self.layouts:
            bytes_of = [size * kind.itemsize for size, kind in zip(sizes, self.kinds, strict=False)]
            ends = list(itertools.accumulate(-(-size // 16) * 16 for size in (CONTROL.itemsize, *bytes_of)))
            if ends[-1] > len(self.host) or len(self.layouts) == 64:
                self._take(max(2 * ends[-1], len(self.host)))
            parts = zip(ends, bytes_of, self.kinds, strict=False)
            places = [self.host[a : a + size].view(kind) for a, size, kind in parts]
            views = [self.device[a:b] for a, b in itertools.pairwise(ends)]
            self.layouts[sizes] = places, views, ends[-1]
        places, views, size = self.layouts[sizes]
        self.block[:] = _EMPTY_BYTES
        for place, array in zip(places, beside, strict=True):
            place[:] = array
        self.data.copy_from_host_async(self.host_address, size)
        self.copied.record()
        return views

    def get(self) -> tuple[Statistics, bool]:
        """Wait for the device, and return the counts of the launch and whether it finished.

        Raises
        ------
        OverflowError
            int32 distances that would reach 2^31 - 1.
        """
        import cupy

        self.data.copy_to_host_async(self.host_address, CONTROL.itemsize)
        cupy.cuda.get_current_stream().synchronize()
        *counts, finished, overflow = self.results.item()
        if overflow == 2:
            raise OverflowError("distances exceed int32; use float64")
        return Statistics(*counts), bool(finished)
