"""Where the bands of a run out of core come from and go to, beside the host's memory: the weights, and the store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.certificates import nonnegative_weights
from gpuops.minplus.adjacency import weight_rows
from pipelines.apsp.methods import Job
from pipelines.stores.contents import StoredArray
from pipelines.stores.distances import DistancesWriter
from pipelines.validation.bounds import arc_pieces
from pipelines.workers.conveyor import Rows
from pipelines.workers.saving import SAVERS


@dataclass(frozen=True)
class Weights:
    """The rows that Floyd-Warshall starts from."""

    job: Job
    piece = 0  # on a GPU they are made there

    def read(self, rows: Rows, out: Any) -> None:
        ranges = [rows] if isinstance(rows, slice) else [slice(int(v), int(v) + 1) for v in rows]
        at = 0
        for part in ranges:
            for first, indptr, indices, weights in arc_pieces(self.job.graph, part.start, part.stop):
                if self.job.potentials is not None:
                    weights = nonnegative_weights(self.job.potentials, first, indptr, indices, weights)
                weight_rows(out[at : at + len(indptr) - 1], first, indptr, indices, weights)
                at += len(indptr) - 1


class Slot:
    """Rows of a store: read from the committed slot, written to the other, by whole rows of chunks.

    A few threads read or write a chunk each, which bounds what Zarr holds beside the rows.
    """

    def __init__(self, writer: DistancesWriter, columns: int):
        self.writer, self.piece, self.columns = writer, writer.chunk, columns

    @functools.cached_property
    def _stored(self) -> StoredArray:
        return self.writer.checkpoint()

    @functools.cached_property
    def _write(self) -> Callable[[int, int, np.ndarray], None]:
        return self.writer.writer()

    def read(self, rows: Rows, out: Any) -> None:
        stored = self._stored

        def read(start: int) -> None:
            part = slice(start, start + stored.chunks[1])
            out[:, part] = stored[rows, part]

        self._by_chunks(read, stored.chunks[1])

    def write(self, start: int, rows: np.ndarray) -> None:
        put = self._write
        self._by_chunks(lambda at: put(start, at, rows[:, at : at + self.columns]), self.columns)

    def _by_chunks(self, move: Callable[[int], None], columns: int) -> None:
        starts = range(0, self.writer.n, columns)
        with ThreadPoolExecutor(min(SAVERS, len(starts))) as pool:
            for _ in pool.map(move, starts):
                pass
