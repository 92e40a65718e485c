"""Arrays of a single plain chunk, so that all processes of a host that read an array map the same memory.

The memory is the file, in the page cache of the system. Loading checks every byte: the checksum of the chunk shows
whether the chunk is damaged, and the record of the store (`pipelines.stores.contents`) whether it is the chunk that was
written there. So the values need no check: they are the values that the writer computed.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Mapping

import google_crc32c
import numpy as np
import zarr

from pipelines.stores.chunk_limits import regular_size
from pipelines.stores.contents import CHECKSUM_BYTES, StoredArray, compare_contents
from pipelines.stores.declared import Array
from pipelines.stores.errors import StoreError, disk_errors, read_errors
from pipelines.stores.schema import checkpoint_codecs, missing_chunk
from pipelines.stores.whole_chunks import WholeChunks


def write_arrays(path: str, group: zarr.Group, arrays: Iterable[Array], values: Mapping[str, np.ndarray]) -> None:
    """Create and write arrays, which a commit then records. Arrays without values are left out."""
    with disk_errors(path):
        for each in arrays:
            if each.name not in values:
                continue
            value = np.ascontiguousarray(values[each.name])
            group.create_array(
                each.name,
                shape=value.shape,
                chunks=tuple(max(1, length) for length in value.shape),
                dtype=value.dtype,
                compressors=checkpoint_codecs(),
                dimension_names=each.lengths,
                overwrite=True,
            )
            if value.size:
                WholeChunks(path, each.name)[tuple(slice(0, length) for length in value.shape)] = value


def load_arrays(path: str, group: zarr.Group, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Map arrays; raises StoreError unless every byte is as it was written."""
    opened = {name: StoredArray(path, name) for name in names}
    arrays = {name: map_array(path, name, array) for name, array in opened.items()}
    compare_contents(path, group, {name: array.places() for name, array in opened.items()})
    return arrays


def map_array(path: str, name: str, array: StoredArray) -> np.ndarray:
    """Map an array, opened as `array`, after a check of its checksum.

    The array can be written to, but other processes do not see the changes, and the file stays as it is: compiled
    functions take arrays that can be written to.
    """
    places, expected = array.places(), int(np.prod(array.shape)) * array.dtype.itemsize
    if not array.raw or len(places) > 1:
        raise StoreError(f"{path}: the array `{name}` is not one plain chunk; recreate the store")
    if not places:
        return np.empty(array.shape, array.dtype)
    place = os.path.join(path, name, places[0])
    regular_size(place)
    try:
        with read_errors(place), open(place, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    except (FileNotFoundError, IsADirectoryError):
        raise missing_chunk(os.path.join(path, name), places[0]) from None
    found = np.frombuffer(memory, np.uint8)
    data, checksum = found[:expected], found[expected:].tobytes()
    if len(checksum) != CHECKSUM_BYTES or google_crc32c.value(data).to_bytes(CHECKSUM_BYTES, "little") != checksum:
        raise StoreError(f"{place}: the chunk is damaged (its checksum is wrong); recreate the store")
    return data.view(array.dtype).reshape(array.shape)
