"""Writes whole chunks of an array, the same bytes as Zarr, on the threads that ask for it.

Zarr passes every chunk through one event loop, and copies it several times: on 16 cores that was 1 to 1.6 GB/s of
distances, where compression alone does 8. Only the codecs of `schema.result_codecs` and `schema.checkpoint_codecs` are
known here; an array with others is written by Zarr.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
from dask.system import CPU_COUNT

from pipelines.stores.contents import CHECKSUM_BYTES, writable_array

WRITERS = min(16, CPU_COUNT)  # chunks that are written at a time
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


class WholeChunks:
    """An array of the store at `path` to whose whole chunks blocks are assigned.

    A block of several chunks is written by several threads. A chunk is there whole or not at all.
    """

    def __init__(self, path: str, name: str):
        self._array = writable_array(path, name)
        self._place = os.path.join(path, name)
        self.shape: tuple[int, ...] = self._array.shape
        self.chunks: tuple[int, ...] = self._array.chunks
        self._dtype = np.dtype(self._array.dtype).newbyteorder("<")
        self._compress = _compressor([codec.to_dict() for codec in self._array.metadata.codecs])

    def __setitem__(self, selection: tuple[slice, ...] | slice, block: np.ndarray) -> None:
        """Write a block that covers whole chunks, but where the array ends."""
        slices = selection if isinstance(selection, tuple) else (selection,)
        if self._compress is None:
            self._array[slices] = block
            return
        starts = [part.start or 0 for part in slices] + [0] * (len(self.shape) - len(slices))
        for start, length, size, chunk in zip(starts, block.shape, self.shape, self.chunks, strict=True):
            stop = start + length
            if start % chunk or stop > size or (length % chunk and stop != size):
                raise ValueError(f"{block.shape} from {tuple(starts)} are not whole chunks of {self.chunks}")
        counts = [-(-length // chunk) for length, chunk in zip(block.shape, self.chunks, strict=True)]
        firsts = [start // chunk for start, chunk in zip(starts, self.chunks, strict=True)]

        def write(place: tuple[int, ...]) -> None:
            part = tuple(slice(i * chunk, (i + 1) * chunk) for i, chunk in zip(place, self.chunks, strict=True))
            self._write(tuple(first + i for first, i in zip(firsts, place, strict=True)), block[part])

        places = list(product(*map(range, counts)))
        if len(places) == 1:
            write(places[0])
            return
        with ThreadPoolExecutor(min(WRITERS, max(1, len(places)))) as pool:
            for _ in pool.map(write, places):
                pass

    def _write(self, place: tuple[int, ...], values: np.ndarray) -> None:
        if values.shape != self.chunks:  # the array ends within the chunk
            whole = np.full(self.chunks, self._array.fill_value, self._dtype)
            whole[tuple(map(slice, values.shape))] = values
            values = whole
        data = self._compress(np.ascontiguousarray(values, self._dtype))  # type: ignore[misc]
        write_chunk(os.path.join(self._place, self._array.metadata.encode_chunk_key(place)), data)


def write_chunk(path: str, data: Any) -> None:
    """Write the file of a chunk, and its checksum behind: whole or not at all."""
    partial = f"{path}.{uuid.uuid4().hex}.partial"  # `schema.remove_leftovers` knows them
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.write(google_crc32c.value(data).to_bytes(CHECKSUM_BYTES, "little"))
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def _compressor(codecs: list[dict[str, Any]]) -> Callable[[np.ndarray], Any] | None:
    """What makes bytes of a contiguous chunk, before the checksum; None if it is not known how."""
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
    encode: Callable[[np.ndarray], Any] = numcodecs.Blosc(**options | {"shuffle": SHUFFLES[options["shuffle"]]}).encode
    return encode
