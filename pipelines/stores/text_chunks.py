"""Write an array of text, from strings or from consecutive numbers, with the same bytes as Zarr.

Zarr makes a Python object of each string, and several copies of all strings. Most formats name vertices by numbers, and
writing these names with Zarr took as long as reading the arcs.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numcodecs
import numpy as np
import zarr

from pipelines.stores.schema import TEXT, text_codecs
from pipelines.stores.whole_chunks import WRITERS, write_chunk

LENGTH_BYTES = 4  # bytes of the length before each text, and of the number of texts at the beginning of a chunk


def write_text(group: zarr.Group, name: str, texts: Sequence[str] | np.ndarray | range, rows: int) -> None:
    """Create the array `name` of `texts`, which are strings or the numbers of a range, in chunks of `rows` texts."""
    array = group.create_array(
        name,
        shape=(len(texts),),
        chunks=(rows,),
        dtype=str,
        compressors=text_codecs(),
        config={"write_empty_chunks": True},
    )
    place, compress = os.path.join(array.store.root, array.path), numcodecs.Zstd(level=0).encode

    def write(start: int) -> None:
        part = texts[start : start + rows]
        numbered = isinstance(part, range) and part.start >= 0 and part.step == 1
        encoded = [struct.pack("<I", rows), *(_of_numbers if numbered else _of_strings)(part)]  # type: ignore[arg-type]
        encoded.append(bytes(LENGTH_BYTES * (rows - len(part))))  # the array ends within the chunk
        write_chunk(os.path.join(place, array.metadata.encode_chunk_key((start // rows,))), compress(b"".join(encoded)))

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
