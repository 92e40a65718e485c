"""A worker's share of the samples: resident on its device, or streamed from the store in pieces, read ahead."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.workers.ahead import in_turn
from pipelines.workers.device_arrays import synchronize

if TYPE_CHECKING:  # the estimator has its samples in memory, and does not load zarr
    from pipelines.stores.samples import Samples

PIECE_BYTES = 256 << 20  # bytes of a piece of samples on a GPU by default
HOST_PIECE_BYTES = 64 << 20  # the same on a CPU, which needs no more samples at a time to be busy
AHEAD = 2  # pieces that are read while another piece is worked on


class Piece(NamedTuple):
    """Some samples on a device."""

    first: int  # number of the first row among all samples
    values: Any  # (k, d)
    weights: Any  # (k), or None if all samples count the same


def usual_piece_rows(row_bytes: int, gpu: bool) -> int:
    """Return the number of samples of a piece by default."""
    return max(1, (PIECE_BYTES if gpu else HOST_PIECE_BYTES) // row_bytes)


@functools.cache
def _reading_stream(cupy: Any) -> Any:
    """Return the stream on which this process reads pieces: CuPy reuses the freed memory of a stream for it alone."""
    return cupy.cuda.Stream(non_blocking=True)


class Shard:
    """The rows from `start` to `stop` (excluded) of `samples`, in pieces of at most `piece_rows`.

    Parameters
    ----------
    resident : read the rows once and keep them; else every pass over `pieces` reads them again
    xp : NumPy or CuPy
    """

    def __init__(self, samples: Samples, start: int, stop: int, piece_rows: int, resident: bool, xp: Any):
        self._samples, self._stop, self._xp = samples, stop, xp
        self._starts, self._piece_rows = range(start, stop, piece_rows), piece_rows
        self._stream: Any = None if xp is np else _reading_stream(xp)
        self._kept: list[Piece] | None = None
        if resident:
            # On a CPU, a second reader would take memory and no less time: Zarr expands ten chunks at a time for one.
            self._kept = list(self._read_all(1 if xp is np else AHEAD))

    def pieces(self) -> Iterator[Piece]:
        """Yield all pieces in order. On a GPU, the next streamed piece is yielded when work on the last piece ended."""
        if self._kept is not None:
            yield from self._kept
            return
        for piece in self._read_all(AHEAD):
            yield piece
            # Its memory goes back to the stream that loads pieces and may overwrite it, so no kernel may still read it.
            synchronize(piece.values)

    def _read_all(self, readers: int) -> Iterator[Piece]:
        return in_turn(self._read, self._starts, readers)

    def _read(self, start: int) -> Piece:
        stop = min(start + self._piece_rows, self._stop)
        weights = self._samples.weights(start, stop)
        if self._stream is None:
            return Piece(start, self._samples.values(start, stop), weights)
        return Piece(
            start,
            self._to_device(lambda out: self._samples.values(start, stop, out), (stop - start, self._samples.d)),
            None if weights is None else self._to_device(lambda out: np.copyto(out, weights), weights.shape),
        )

    def _to_device(self, fill: Callable[[np.ndarray], Any], shape: tuple[int, ...]) -> Any:
        """Return a device array with the values that `fill` writes to page-locked memory.

        The copy runs on a separate stream, at the same time as other work of the device.
        """
        import cupyx

        pinned = cupyx.empty_pinned(shape, self._samples.dtype)
        fill(pinned)
        with self._stream:
            device = self._xp.empty(shape, pinned.dtype)
            device.set(pinned, stream=self._stream)
        self._stream.synchronize()
        return device
