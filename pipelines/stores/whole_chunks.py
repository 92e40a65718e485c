"""Write whole chunks of an array on several threads, with the same bytes as Zarr.

Zarr passes every chunk through one event loop and copies it several times. On 16 cores, Zarr reached 1 to 1.6 GB/s of
distances, while compression alone reaches 8 GB/s. This module knows only the codecs of `schema.result_codecs` and
`schema.checkpoint_codecs`; arrays with any other codecs are written by Zarr.

Of text, Zarr makes a Python object for each string, and several copies of all strings. Most formats name vertices by
numbers, and writing these names with Zarr took as long as reading the arcs. `write_text` writes the same bytes.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
import zarr
from dask.system import CPU_COUNT

from pipelines.stores.contents import CHECKSUM_BYTES, writable_array
from pipelines.stores.durable import sync_file
from pipelines.stores.errors import disk_errors
from pipelines.stores.schema import TEXT, create_array, refuse_lost

WRITERS = min(16, CPU_COUNT)  # chunks written at a time
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
LENGTH_BYTES = 4  # bytes of the length before each text, and of the number of texts at the beginning of a chunk


class WholeChunks:
    """An array of the store at `path`, written by assigning blocks that cover whole chunks.

    A block of several chunks is written by several threads. The file of a chunk is always complete or absent. Its bytes
    are durable (`pipelines.stores.durable`), unless `durable` is False for a store that is made durable as a whole.
    With `run_id`, the id of the run that writes, a chunk is written only while this run owns the store: another run may
    have resumed or replaced the store meanwhile.
    """

    def __init__(self, path: str, name: str, *, durable: bool = True, run_id: str = ""):
        self._check = partial(refuse_lost, path, run_id) if run_id else _unchecked
        self._check()
        self._array, self._durable = writable_array(path, name, durable=durable), durable
        self._place = os.path.join(path, name)
        self.shape: tuple[int, ...] = self._array.shape
        self.chunks: tuple[int, ...] = self._array.chunks
        dtype = np.dtype(self._array.dtype)
        self._dtype = dtype if dtype == TEXT else dtype.newbyteorder("<")
        self._encode = _encoder([codec.to_dict() for codec in self._array.metadata.codecs])

    def lengthen(self, rows: int) -> None:
        """Set the number of rows of the array."""
        self.shape = (rows, *self.shape[1:])
        self._array.resize(self.shape)

    def __setitem__(self, selection: tuple[slice, ...] | slice, block: np.ndarray) -> None:
        """Write a block that covers whole chunks; the last chunk may extend beyond the end of the array."""
        slices = selection if isinstance(selection, tuple) else (selection,)
        if self._encode is None:
            self._check()
            self._array[slices] = block
            return
        encode = self._encode
        starts = [part.start or 0 for part in slices] + [0] * (len(self.shape) - len(slices))
        for start, length, size, chunk in zip(starts, block.shape, self.shape, self.chunks, strict=True):
            stop = start + length
            if start % chunk or stop > size or (length % chunk and stop != size):
                raise ValueError(f"{block.shape} from {tuple(starts)} are not whole chunks of {self.chunks}")
        counts = [-(-length // chunk) for length, chunk in zip(block.shape, self.chunks, strict=True)]
        firsts = [start // chunk for start, chunk in zip(starts, self.chunks, strict=True)]

        def write(place: tuple[int, ...]) -> None:
            part = tuple(slice(i * chunk, (i + 1) * chunk) for i, chunk in zip(place, self.chunks, strict=True))
            self._write(encode, tuple(first + i for first, i in zip(firsts, place, strict=True)), block[part])

        places = list(product(*map(range, counts)))
        if len(places) == 1:
            write(places[0])
            return
        with ThreadPoolExecutor(min(WRITERS, max(1, len(places)))) as pool:
            for _ in pool.map(write, places):
                pass

    def _write(self, encode: Callable[[np.ndarray], Any], place: tuple[int, ...], values: np.ndarray) -> None:
        if values.shape != self.chunks:  # the array ends within the chunk
            whole = np.full(self.chunks, self._array.fill_value, self._dtype)
            whole[tuple(map(slice, values.shape))] = values
            values = whole
        data = encode(np.ascontiguousarray(values, self._dtype))
        path = os.path.join(self._place, self._array.metadata.encode_chunk_key(place))
        write_chunk(path, data, durable=self._durable, check=self._check)


class Appender:
    """An array that is written from pieces of any size, by whole chunks of rows: no chunk is written twice.

    The array belongs to a store that is made durable as a whole. It is lengthened if more rows are appended than it
    has.
    """

    def __init__(self, array: zarr.Array[Any]):
        self.array = array
        self._chunks = WholeChunks(str(array.store.root), array.path, durable=False)
        self._chunk = np.empty(array.chunks, array.dtype)  # the unfinished chunk, a copy: callers reuse their arrays
        self._held = self._written = 0

    def append(self, values: np.ndarray) -> None:
        """Append rows, and write the chunks that are full."""
        size = len(self._chunk)
        if self._held:
            begun = min(len(values), size - self._held)
            self._chunk[self._held : self._held + begun] = values[:begun]
            self._held, values = self._held + begun, values[begun:]
            if self._held < size:
                return
            self.finish()
        whole = len(values) // size * size
        self._write(values[:whole])
        self._held = len(values) - whole
        self._chunk[: self._held] = values[whole:]

    def finish(self) -> None:
        """Write the unfinished chunk."""
        self._write(self._chunk[: self._held])
        self._held = 0

    def _write(self, values: np.ndarray) -> None:
        if len(values):
            stop = self._written + len(values)
            if stop > self._chunks.shape[0]:
                self._chunks.lengthen(stop)
            self._chunks[self._written : stop] = values
            self._written = stop


def block_writer(path: str, name: str, run_id: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
    """Return the width of the chunks of a matrix, and a function that writes a block of whole chunks to it.

    The function takes the row and the column where the block begins, and the block. For `run_id` see `WholeChunks`.
    """
    with disk_errors(path):
        array = WholeChunks(path, name, run_id=run_id)

    def write(row: int, column: int, block: np.ndarray) -> None:
        with disk_errors(path):
            array[row : row + block.shape[0], column : column + block.shape[1]] = block

    return array.chunks[1], write


def _unchecked() -> None:
    """Make no check: other runs cannot find the store yet."""


def write_chunk(path: str, data: Any, *, durable: bool, check: Callable[[], None] = _unchecked) -> None:
    """Write the file of a chunk, with its checksum at the end, so that it is always complete or absent.

    `check` raises an error if the chunk must not be written. It is called twice: first, so that no folder of a removed
    store is made again; and before the chunk gets its name, since the file may have taken long to write.
    """
    check()
    unnamed = f"{path}.{uuid.uuid4().hex}.partial"  # `schema.leftovers` finds files with this suffix
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(unnamed, "wb") as file:
            file.write(data)
            file.write(google_crc32c.value(data).to_bytes(CHECKSUM_BYTES, "little"))
            if durable:
                sync_file(file)
        check()
        os.replace(unnamed, path)
    except BaseException:
        if os.path.exists(unnamed):
            os.unlink(unnamed)
        raise


def _encoder(codecs: list[dict[str, Any]]) -> Callable[[np.ndarray], Any] | None:
    """Return a function that encodes a contiguous chunk, without its checksum; None if a codec is unknown here."""
    if len(codecs) not in (2, 3):
        return None
    little, *middle, last = codecs
    if little != {"name": "bytes", "configuration": {"endian": "little"}} or last["name"] != "crc32c":
        return None
    if not middle:
        return lambda chunk: chunk.reshape(-1).view(np.uint8)
    (blosc,) = middle
    if blosc["name"] != "blosc":
        return None
    options = dict(blosc["configuration"])
    return numcodecs.Blosc(**options | {"shuffle": SHUFFLES[options["shuffle"]]}).encode


def write_text(
    group: zarr.Group, name: str, texts: Sequence[str] | np.ndarray | range, rows: int, **options: Any
) -> None:
    """Create the array `name` of `texts`, which are strings or the numbers of a range, in chunks of `rows` texts.

    The array belongs to a store that is made durable as a whole. `options` are those of `create_array`.
    """
    array = create_array(group, name, (len(texts),), (rows,), str, **options)
    place, compress = os.path.join(array.store.root, array.path), numcodecs.Zstd(level=0).encode

    def write(start: int) -> None:
        part = texts[start : start + rows]
        numbered = isinstance(part, range) and part.start >= 0 and part.step == 1
        encoded = [struct.pack("<I", rows), *(_of_numbers if numbered else _of_strings)(part)]  # type: ignore[arg-type]
        encoded.append(bytes(LENGTH_BYTES * (rows - len(part))))  # the array ends within the chunk
        path = os.path.join(place, array.metadata.encode_chunk_key((start // rows,)))
        write_chunk(path, compress(b"".join(encoded)), durable=False)

    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in pool.map(write, range(0, len(texts), rows)):
            pass


def _of_strings(texts: Sequence[str]) -> Iterator[bytes]:
    strings = np.array(texts, TEXT).astype(object)
    yield numcodecs.VLenUTF8().encode(strings)[LENGTH_BYTES:]


def _of_numbers(numbers: range) -> Iterator[bytes]:
    """Yield the encoded numbers; numbers with the same number of digits are encoded together."""
    at = numbers.start
    while at < numbers.stop:
        width = len(str(at))
        stop = min(numbers.stop, 10**width)
        text = np.empty((stop - at, LENGTH_BYTES + width), np.uint8)
        text[:, :LENGTH_BYTES] = tuple(width.to_bytes(LENGTH_BYTES, "little"))
        left = np.arange(at, stop)
        for column in range(LENGTH_BYTES + width - 1, LENGTH_BYTES - 1, -1):
            tenth = left // 10
            text[:, column] = left - 10 * tenth + ord("0")
            left = tenth
        yield text.tobytes()
        at = stop
