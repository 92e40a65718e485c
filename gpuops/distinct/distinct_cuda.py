"""Distinct values on a GPU: the CUDA half of `gpuops.distinct`, kernels in distinct.cu and compaction.cu.

What needs to be sorted is sorted by CuPy, that is by CCCL's radix sort.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program, multiprocessors
from gpuops.distinct.compaction_cuda import heads

_THREADS = 512
_BLOCKS = 4  # on a multiprocessor
_SAMPLE = 4096
_SPARE = 2**16  # bytes that a table may have besides four for every value

_ENTRIES = ("order_floats", "sample", "flag", "count", "place_first", "look_up")
_TYPES = {
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
}
_PROGRAMS = {
    dtype: Program("distinct/distinct.cu", _ENTRIES, (f"KEY={name}",), threads=_THREADS)
    for dtype, name in _TYPES.items()
}


def keys(x: Any) -> Any:
    """Integers in the order of the numbers, equal where they are equal."""
    import cupy

    if x.dtype.kind != "f":
        return x.view(np.uint8) if x.dtype == np.bool_ else x
    with x.device:
        bits = x.view(f"u{x.itemsize}")
        result = cupy.empty((len(x),), bits.dtype)
        _launch("order_floats", bits, result)
        return result


def numbers(keys: Any, dtype: np.dtype) -> Any:
    """What has these keys."""
    import cupy

    if dtype.kind != "f":
        return keys.view(dtype)
    sign = keys.dtype.type(1 << (8 * dtype.itemsize - 1))
    return cupy.where(keys & sign != 0, keys ^ sign, ~keys).view(dtype)


def distinct(keys: Any, counted: bool, inverse: bool, first: bool) -> tuple[Any, Any, Any]:
    """Values, counts and inverse, the last two where they are wanted; at least one key, contiguous."""
    import cupy

    with keys.device:
        least, largest = _guess(keys)
        place = 8 if counted or first else 1  # bytes
        while True:
            if (largest - least) * place >= 4 * len(keys) + _SPARE:
                found = _by_sorting(keys, counted, inverse, first)
                break
            table = _Table(keys, least, largest - least + 1)
            entry = "place_first" if first else "count" if counted else "flag"
            places_or_flags, low, high = table.filled(entry)
            if low > high:
                found = table.read(entry, places_or_flags, counted, inverse)
                break
            least, largest = min(low, least), max(high, largest)
        values, counts, places, ranks = found
        if first:
            order = cupy.argsort(places)
            position = cupy.empty((len(order),), np.int64)
            position[order] = cupy.arange(len(order), dtype=np.int64)
            values, counts = values[order], counts if counts is None else counts[order]
            ranks = ranks if ranks is None else position[ranks]
        return values, counts, ranks


def _guess(keys: Any) -> tuple[int, int]:
    """The range of a sample, wider by an eighth on each side, as numbers in unsigned order."""
    extent = _no_extent()
    _launch("sample", keys, np.int64(max(len(keys) // _SAMPLE, 1)), extent, blocks=1)
    least, largest = map(int, extent.get())
    more, (lowest, highest) = (largest - least) // 8 + 64, _limits(keys.dtype)
    return max(least - more, lowest), min(largest + more, highest)


def _limits(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min) + _shift(dtype), int(limits.max) + _shift(dtype)


def _shift(dtype: np.dtype) -> int:
    """From a key to its number in unsigned order."""
    return 1 << 63 if dtype.kind == "i" else 0


def _no_extent() -> Any:
    import cupy

    return cupy.asarray(np.array([2**64 - 1, 0], np.uint64))


class _Table:
    """A place for every value from the one with the number `least` in unsigned order."""

    def __init__(self, keys: Any, least: int, size: int):
        self.keys, self.least, self.size = keys, least, size

    def filled(self, entry: str) -> tuple[Any, int, int]:
        """The table that `entry` fills, the least and the largest number outside; if there is none, least > largest."""
        import cupy

        extent = _no_extent()
        table = cupy.zeros((self.size,), np.uint8 if entry == "flag" else np.uint64)
        if entry == "place_first":
            table[...] = len(self.keys)
        _launch(entry, self.keys, np.uint64(self.least), np.uint64(self.size), table, extent)
        low, high = map(int, extent.get())
        return table, low, high

    def read(self, entry: str, table: Any, counted: bool, inverse: bool) -> tuple[Any, Any, Any, Any]:
        """Values ascending; counts, first places and ranks where they are wanted."""
        import cupy

        there = table < len(self.keys) if entry == "place_first" else table != 0
        offsets, dtype = cupy.flatnonzero(there), self.keys.dtype
        unsigned = np.dtype(f"u{dtype.itemsize}")
        least = unsigned.type((self.least - _shift(dtype)) % (1 << (8 * dtype.itemsize)))
        values = (offsets.astype(unsigned) + least).view(dtype)
        counts = places = ranks = None
        if counted:
            counts = (table if entry == "count" else self.filled("count")[0])[offsets].astype(np.int64)
        if entry == "place_first":
            places = table[offsets].astype(np.int64)
        if inverse:
            ranks = cupy.empty((len(self.keys),), np.int64)
            _launch("look_up", self.keys, np.uint64(self.least), cupy.cumsum(there, dtype=np.int64) - 1, ranks)
        return values, counts, places, ranks


def _by_sorting(keys: Any, counted: bool, inverse: bool, first: bool) -> tuple[Any, Any, Any, Any]:
    """Values ascending; counts, first places and ranks where they are wanted."""
    import cupy

    n = len(keys)
    order = cupy.argsort(keys) if inverse or first else None  # stable, like all sorts of CuPy
    values, starts = heads(cupy.sort(keys) if order is None else keys[order], counted or order is not None)
    counts = ranks = None
    if counted:
        counts = cupy.empty((len(starts),), np.int64)
        counts[:-1] = starts[1:] - starts[:-1]
        counts[-1:] = n - starts[-1:]
    if inverse:
        steps = cupy.zeros((n,), np.int64)
        steps[starts[1:]] = 1
        ranks = cupy.empty((n,), np.int64)
        ranks[order] = cupy.cumsum(steps)
    return values, counts, None if order is None or not first else order[starts], ranks


def _launch(entry: str, keys: Any, *arguments: Any, blocks: int = 0) -> None:
    most = _BLOCKS * multiprocessors(keys.device.id)
    blocks = blocks or min(math.ceil(len(keys) / _THREADS), most)
    _PROGRAMS[keys.dtype.name].launch(entry, blocks, (keys, np.int64(len(keys)), *arguments))
