"""The rows that Floyd-Warshall starts from, and the rows of its result, in memory and out of core."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.arrays import like
from gpuops.certificates import nonnegative_weights
from gpuops.minplus.adjacency import weight_rows
from gpuops.numbers import distance_limit, to_outside
from pipelines.apsp.methods import Job
from pipelines.stores.distances import DistancesWriter
from pipelines.validation.bounds import arc_pieces, refuse_overflow
from pipelines.workers.conveyor import Rows


@dataclass(frozen=True)
class Weights:
    """The rows that Floyd-Warshall starts from."""

    job: Job
    piece = 0  # rows are made in the array they are for, on a GPU too

    def read(self, rows: Rows, out: Any) -> None:
        ranges = [rows] if isinstance(rows, slice) else [slice(int(v), int(v) + 1) for v in rows]
        at = 0
        for part in ranges:
            for first, indptr, indices, weights in arc_pieces(self.job.graph, part.start, part.stop):
                if self.job.potentials is not None:
                    weights = nonnegative_weights(self.job.potentials, first, indptr, indices, weights)
                weight_rows(out[at : at + len(indptr) - 1], first, indptr, indices, weights)
                at += len(indptr) - 1


class Result:
    """The sink of the result: the array `distances`, by whole rows of square chunks.

    Each of `threads` threads compresses and writes one chunk at a time, which bounds the memory of compressed chunks.
    """

    def __init__(self, writer: DistancesWriter, threads: int):
        self.writer, self.piece, self.threads = writer, writer.chunk, threads

    @functools.cached_property
    def _write(self) -> Callable[[int, int, np.ndarray], None]:
        return self.writer.writer()

    def write(self, start: int, rows: np.ndarray) -> None:
        put, starts = self._write, range(0, self.writer.n, self.piece)
        with ThreadPoolExecutor(min(self.threads, len(starts))) as pool:
            for _ in pool.map(lambda at: put(start, at, rows[:, at : at + self.piece]), starts):
                pass


def finish(job: Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of `vertices` into rows of a distances store, in place.

    Distances that do not fit the dtype are refused, distances by potentials are shifted back, the diagonal is set to 0,
    and unreachable vertices get the value that stores have for them.
    """
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = distance_limit(job.dtype), 64  # `step` rows at a time, as sums take int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)
