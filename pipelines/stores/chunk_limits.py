"""Refuse files of chunks that would take far more memory than their array says, before they are decompressed.

The header of a compressed chunk states how many bytes it expands to, and a decoder allocates as many. In a damaged or
hostile store a few megabytes may expand to gigabytes, and a link may lead to a device that never ends.
"""

from __future__ import annotations

import math
import os
import stat
from typing import Any

from gpuops.memory import available_memory
from pipelines.stores.errors import StoreError
from pipelines.stores.schema import TEXT

HEADER_BYTES = 32  # bytes at the beginning of a chunk that `ChunkLimits.check_header` needs
_SPARE = 4096  # bytes of headers and checksums
_BLOSC_SIZE = slice(4, 8)  # where Blosc states the size of the uncompressed bytes
_ZSTD_SIZES = (0, 2, 4, 8)  # bytes of the size that a Zstandard frame states, by the first two bits of its descriptor


class ChunkLimits:
    """Limits of the bytes of a chunk: of its file, and of its contents when decompressed."""

    def __init__(self, array: Any):
        self._codecs = {codec.to_dict()["name"] for codec in array.metadata.codecs}
        self._text = array.dtype == TEXT
        # Texts have any length; memory alone limits them.
        self._most = available_memory() if self._text else math.prod(array.chunks) * array.dtype.itemsize

    def check_file(self, place: str | os.PathLike[str]) -> None:
        """Raise StoreError if the file of a chunk is too large or no file (a device, a pipe); a missing one passes."""
        size = regular_size(place)
        if size is not None and size > self._most + self._most // 16 + _SPARE:
            raise self._error(place, f"has {size:,} bytes")

    def check_header(self, place: str | os.PathLike[str], content: bytes) -> None:
        """Raise StoreError if a chunk that begins with `content` expands to too many bytes."""
        stated: int | None = self._most
        if "blosc" in self._codecs:
            stated = int.from_bytes(content[_BLOSC_SIZE], "little")
        elif "zstd" in self._codecs:
            stated = _zstd_size(content)
        if stated is None or stated > self._most:
            amount = "an unknown number of" if stated is None else f"{stated:,}"
            raise self._error(place, f"would expand to {amount} bytes")

    def _error(self, place: str | os.PathLike[str], fault: str) -> StoreError:
        most = f"{self._most:,} are free" if self._text else f"its array has {self._most:,} in a chunk"
        return StoreError(f"{place}: the chunk is damaged: it {fault}, but {most}; recreate the store")


def regular_size(place: str | os.PathLike[str]) -> int | None:
    """Return the bytes of a file; None if it is missing. Raises StoreError if it is a device, a pipe or a socket."""
    try:
        found = os.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise StoreError(f"{place}: is a device or a pipe, not a file; the store is damaged; recreate it")
    return found.st_size


def _zstd_size(content: bytes) -> int | None:
    """Return the size that the first frame of Zstandard states; None if it states none."""
    descriptor = content[4] if len(content) > 4 else 0
    single, width = descriptor >> 5 & 1, _ZSTD_SIZES[descriptor >> 6]
    width = width or single
    start = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    field = content[start : start + width]
    return int.from_bytes(field, "little") + 256 * (width == 2) if width and len(field) == width else None
