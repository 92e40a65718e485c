"""A matrix in the memory of the host: several threads read and write its rows."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from dask.system import CPU_COUNT

from pipelines.stores.row_files import page_aligned
from pipelines.workers.conveyor import Rows, count, parts
from pipelines.workers.mapped_memory import HostMapping, HostMemory

COPIERS = max(1, min(6, CPU_COUNT // 2))  # threads for each direction that copy within the host's memory
PIECE_BYTES = 64 << 20  # bytes copied at a time to or from a GPU


@functools.cache
def _copiers(_direction: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(COPIERS, thread_name_prefix="tilepath-copy")


class HostMatrix:
    """An (n, n) matrix of zeros in the memory of the host, as a source and a sink.

    Parameters
    ----------
    shared : bool or bytes
        True: make a matrix that other processes of the host can map. Bytes: map the matrix with this `handle`, with the
        values it has.

    Raises
    ------
    pipelines.workers.mapped_memory.CannotMap
        The process that made the matrix has ended, or memory cannot be shared.
    """

    def __init__(self, n: int, dtype: np.dtype, shared: bool | bytes = False):
        self.handle, size = shared if isinstance(shared, bytes) else b"", n * n * dtype.itemsize
        if shared is True:
            self._memory = HostMemory(max(size, 1), reserved=False)
            self.handle, found = self._memory.handle, self._memory.bytes
        elif shared:
            found = HostMapping(shared, max(size, 1), writable=True).bytes
        else:
            found = page_aligned((size,), np.uint8)
        self.matrix = found[:size].view(dtype).reshape(n, n)
        self.whole, self.piece = self.matrix, _piece(self.matrix)
        if not isinstance(shared, bytes):  # many threads get pages from the system faster than one
            with ThreadPoolExecutor(CPU_COUNT) as pool:
                for _ in pool.map(lambda part: self.matrix[part[1]].fill(0), parts(slice(0, n), self.piece)):
                    pass

    def columns(self, part: slice) -> HostMatrix:
        """Return some columns of this matrix, as a source and a sink; a view."""
        some = copy.copy(self)
        some.matrix = self.matrix[:, part]
        some.piece = _piece(some.matrix)
        return some

    def read(self, rows: Rows, out: Any) -> None:
        self._copy("in", rows, lambda at, part: np.copyto(out[at : at + count(part)], self.matrix[part]))

    def write(self, start: int, rows: np.ndarray) -> None:
        whole = slice(start, start + len(rows))
        self._copy("out", whole, lambda at, part: np.copyto(self.matrix[part], rows[at : at + count(part)]))

    def _copy(self, direction: str, rows: Rows, copy: Callable[[int, Rows], None]) -> None:
        pieces = parts(rows, math.ceil(count(rows) / COPIERS) or 1)
        for _ in _copiers(direction).map(lambda piece: copy(*piece), pieces):
            pass


def _piece(matrix: np.ndarray) -> int:
    return max(1, PIECE_BYTES // max(1, matrix.shape[1] * matrix.itemsize))
