"""Checkpoints of matrices larger than memory, in chunks of whole rows, read and written without the page cache.

The file of an uncompressed chunk holds rows as they lie in memory, then zeros if the last chunk extends beyond the
array, and the CRC-32C of both, as in Zarr. So rows are read directly into their destination, and written directly from
their source. Input and output bypass the page cache (O_DIRECT) where the file system and the memory allow it. A copy in
the page cache would take memory that no budget includes, and the processor often takes longer to make this copy than
the disk takes to write it.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import google_crc32c
import numpy as np

from pipelines.stores.chunk_limits import regular_size
from pipelines.stores.contents import CHECKSUM_BYTES, StoredArray
from pipelines.stores.durable import sync_file
from pipelines.stores.errors import StoreError, disk_errors, read_errors
from pipelines.stores.schema import refuse_lost

PAGE = 4096  # bytes; in direct transfers, addresses, file offsets and lengths are multiples of a page
PART_BYTES = 8 << 20  # bytes moved by one call
MOVERS = 4  # calls in flight for one chunk
ZEROS = np.zeros(1 << 18, np.uint8)


def page_aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an uninitialized array that begins at a page boundary."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(dtype).reshape(shape)


class RowFiles:
    """An uncompressed array of a store, shape (m, n), whose chunks are `piece` whole rows each.

    Rows are read and written by whole chunks, and reading checks their checksums. Rows whose memory does not begin at a
    page boundary pass through the page cache; so does the end of a chunk that does not fill a page.

    Rows are written only while the run `run_id` owns the store: another run may have resumed or replaced it meanwhile.
    """

    def __init__(self, path: str | os.PathLike[str], name: str, run_id: str = ""):
        array = StoredArray(path, name)
        if not array.raw or array.chunks[1] < array.shape[1]:
            raise StoreError(
                f"{path}: `{name}` does not hold whole rows; compute the store again with overwrite (--overwrite)"
            )
        self._store, self._place, self._run_id = os.fspath(path), os.path.join(path, name), run_id
        self.shape, self.dtype, self.piece = array.shape, array.dtype, array.chunks[0]

    def read(self, rows: slice | np.ndarray, out: np.ndarray) -> None:
        """Read a slice of rows that begins with a chunk, or rows by index, into `out`, (rows, n) and contiguous."""
        if isinstance(rows, slice):
            for start in range(rows.start, rows.stop, self.piece):
                self._read(start, out[start - rows.start : min(start + self.piece, rows.stop) - rows.start])
            return
        chunk = page_aligned((self.piece, self.shape[1]), out.dtype)
        for start in np.unique(rows // self.piece * self.piece).tolist():
            at = np.flatnonzero((rows >= start) & (rows < start + self.piece))
            self._read(start, chunk[: self.shape[0] - start])
            out[at] = chunk[rows[at] - start]

    def write(self, start: int, rows: np.ndarray) -> None:
        """Write rows, contiguous in memory, from row `start` on, where a chunk begins; their bytes are durable then."""
        for first in range(0, len(rows), self.piece):
            self._write(start + first, rows[first : first + self.piece])

    def _read(self, start: int, rows: np.ndarray) -> None:
        place = self._file(start)
        regular_size(place)
        try:
            with read_errors(place):
                checksum = self._checksum(rows, _move(place, os.O_RDONLY, rows, os.preadv))
                with open(place, "rb", buffering=0) as file:
                    file.seek(self._bytes(rows))
                    found = file.read(CHECKSUM_BYTES)
        except FileNotFoundError as error:
            raise StoreError(f"{place}: the chunk is missing; the store is damaged; recreate it") from error
        except EOFError as error:
            raise StoreError(f"{place}: the chunk is cut short; recreate the store") from error
        if checksum != found:
            raise StoreError(f"{place}: the chunk is damaged (its checksum is wrong); recreate the store")

    def _write(self, start: int, rows: np.ndarray) -> None:
        place = self._file(start)
        with disk_errors(self._store):
            if self._run_id:
                refuse_lost(self._store, self._run_id)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            checksum = self._checksum(rows, _move(place, os.O_WRONLY | os.O_CREAT, rows, os.pwritev))
            with open(place, "r+b", buffering=0) as file:
                file.seek(self._bytes(rows))
                file.write(checksum)
                sync_file(file)

    def _file(self, start: int) -> str:
        return os.path.join(self._place, "c", str(start // self.piece), "0")

    def _bytes(self, rows: np.ndarray) -> int:
        """Return the bytes of a chunk without its checksum."""
        return self.piece * self.shape[1] * rows.itemsize

    def _checksum(self, rows: np.ndarray, checksum: int) -> bytes:
        """Return the checksum of a chunk: extend the `checksum` of its rows by the zeros that fill the chunk."""
        for start in range(rows.nbytes, self._bytes(rows), len(ZEROS)):
            checksum = google_crc32c.extend(checksum, ZEROS[: self._bytes(rows) - start])
        return checksum.to_bytes(CHECKSUM_BYTES, "little")


def _move(place: str, flags: int, rows: np.ndarray, call: Callable[..., int]) -> int:
    """Read rows from the beginning of a file, or write them there, by `call`; return their checksum."""
    data = rows.reshape(-1).view(np.uint8)
    pages = len(data) // PAGE * PAGE if data.ctypes.data % PAGE == 0 else 0
    starts = [*range(0, pages, PART_BYTES), *range(pages, len(data), PART_BYTES)]
    parts = list(zip(starts, [*starts[1:], len(data)], strict=True))
    with _opened(place, flags) as cached, _opened(place, flags | os.O_DIRECT, cached) as direct:

        def move(part: tuple[int, int]) -> None:
            at, stop = part
            try:
                _transfer(call, direct if stop <= pages else cached, data, at, stop)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EFAULT):
                    raise
                # The disk needs multiples of more than a page, or cannot access this kind of memory.
                _transfer(call, cached, data, at, stop)

        def summed(moved: Iterable[Any]) -> int:
            checksum = 0
            for (at, stop), _ in zip(parts, moved, strict=True):
                checksum = google_crc32c.extend(checksum, data[at:stop])
            return checksum

        if len(parts) == 1:
            return summed(map(move, parts))
        with ThreadPoolExecutor(MOVERS) as pool:
            return summed(pool.map(move, parts))


def _transfer(call: Callable[..., int], file: int, data: np.ndarray, at: int, stop: int) -> None:
    while at < stop:
        count = call(file, [data[at:stop]], at)
        if count == 0:
            raise EOFError
        at += count


@contextmanager
def _opened(place: str, flags: int, otherwise: int | None = None) -> Iterator[int]:
    """Open a file; yield `otherwise` instead if the file system does not support `flags`."""
    try:
        file = os.open(place, flags, 0o666)
    except OSError as error:
        if otherwise is None or error.errno != errno.EINVAL:
            raise
        yield otherwise
        return
    try:
        yield file
    finally:
        os.close(file)
