"""Distinct values on a GPU: the CUDA half of `gpuops.compaction`, kernels in distinct.cu and compaction.cu.

Keys are sorted by CuPy, which uses CCCL's radix sort.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._copies_cuda import copied
from gpuops._cuda import Program, Told, multiprocessors
from gpuops.compaction.compaction_cuda import heads

_THREADS = 512
_BLOCKS = 4  # blocks for each multiprocessor
_SAMPLE = 4096  # elements of the sample
_SPARE = 2**16  # a table may have four bytes for every element, plus this many bytes
# Most bytes of a table for each byte of a key. A larger table exceeds the cache, and sorting is faster than marking.
_CACHED = 2**23

_SHARED_FLAGS, _SHARED_COUNTS = 32768, 8192  # as in distinct.cu
_NOTHING_OUTSIDE = 2**64 - 1, 0

_ENTRIES = ("order_floats", "restore_floats", "guess", "flag", "count", "place_first", "list", "look_up")
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
    np.dtype(dtype): Program("compaction/distinct.cu", _ENTRIES, (f"KEY={name}",), threads=_THREADS)
    for dtype, name in _TYPES.items()
}


def keys(x: Any) -> Any:
    """Return an integer for each number: integers are equal or ordered as the numbers are."""
    import cupy

    if x.dtype.kind != "f":
        return x.view(np.uint8) if x.dtype == np.bool_ else x
    with x.device:
        bits = x.view(f"u{x.itemsize}")
        result = cupy.empty((len(x),), bits.dtype)
        _launch("order_floats", bits, result)
        return result


def numbers(keys: Any, dtype: np.dtype) -> Any:
    """Return the numbers that have these keys, in the memory of `keys`."""
    if dtype.kind == "f" and len(keys):
        with keys.device:
            _launch("restore_floats", keys)
    return keys.view(dtype)


def distinct(keys: Any, counted: bool, inverse: bool, first: bool) -> tuple[Any, Any, Any]:
    """Return values, counts (if `counted`) and inverse (if `inverse`), for at least one key, contiguous."""
    import cupy

    with keys.device:
        (least, largest), listed = _in_shared_memory(keys, counted, listed=not (inverse or first))
        if listed is not None:
            return *listed, None
        place = 8 if counted or first else 1  # bytes
        most = 4 * len(keys) + _SPARE
        if not (inverse or first):  # if so, sorting has to sort places with the keys, which takes far longer
            most = min(most, _CACHED * keys.itemsize)
        while True:
            if (largest - least) * place >= most:
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


def _in_shared_memory(keys: Any, counted: bool, listed: bool) -> tuple[tuple[int, int], tuple[Any, Any] | None]:
    """Guess the range of the keys from a sample, and list their values if a table of that range is small.

    The host does not wait for the range: the next launches fill a table that fits in shared memory, and list its values
    if `listed`. Returns the range as numbers in unsigned order, widened if keys were found outside; and the values and
    counts, or None if not `listed`, if the table was too large, or if a key lay outside.
    """
    import cupy

    room = 0 if not listed else _SHARED_COUNTS if counted else _SHARED_FLAGS
    table, places = cupy.empty((5,), np.uint64), cupy.empty((room,), np.uint64 if counted else np.uint8)
    values, counts = cupy.empty((room,), keys.dtype), cupy.empty((room if counted else 0,), np.int64)
    lower, upper = map(np.uint64, _limits(keys.dtype))
    step, words = np.int64(max(len(keys) // _SAMPLE, 1)), np.int64(places.nbytes // 8)
    told = Told(5)
    _launch("guess", keys, step, lower, upper, table, places, words, told.address, blocks=1)
    if listed:
        _launch("count" if counted else "flag", keys, table, places, np.uint64(room))
        _launch_on(keys, "list", 1, (table, places, np.uint64(room), values, counts, np.int32(counted), told.address))
    least, size, lowest, highest, found = told.read()
    expected = least, least + size - 1
    if not listed or size > room:
        return expected, None
    if lowest <= highest:
        return (min(least, lowest), max(expected[1], highest)), None
    return expected, (values[:found].copy(), counts[:found].copy() if counted else None)


def _limits(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min) + _shift(dtype), int(limits.max) + _shift(dtype)


def _shift(dtype: np.dtype) -> int:
    """Return the difference between a key's number in unsigned order and the key."""
    return 1 << 63 if dtype.kind == "i" else 0


class _Table:
    """A table with a place for each of `size` values, from the value with the number `least` in unsigned order on."""

    def __init__(self, keys: Any, least: int, size: int):
        self.keys, self.least, self.size = keys, least, size

    def filled(self, entry: str) -> tuple[Any, int, int]:
        """Return the places filled by `entry`, and the least and the largest number outside (least > largest: none)."""
        import cupy

        table = cupy.asarray(np.array([self.least, self.size, *_NOTHING_OUTSIDE, 0], np.uint64))
        places = cupy.zeros((self.size,), np.uint8 if entry == "flag" else np.uint64)
        if entry == "place_first":
            places[...] = len(self.keys)
        _launch(entry, self.keys, table, places, np.uint64(self.size))
        _, _, low, high, _ = map(int, table.get())
        return places, low, high

    def read(self, entry: str, table: Any, counted: bool, inverse: bool) -> tuple[Any, Any, Any, Any]:
        """Return ascending values, and counts, first places and ranks if wanted."""
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
    """Return ascending values, and counts, first places and ranks if wanted."""
    import cupy

    n = len(keys)
    order = cupy.argsort(keys) if inverse or first else None  # stable, like all sorts of CuPy
    values, starts = heads(_sorted(keys) if order is None else keys[order], counted or order is not None)
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


def _sorted(keys: Any) -> Any:
    """Return a sorted copy."""
    result = copied(keys)
    result.sort()
    return result


def _launch(entry: str, keys: Any, *arguments: Any, blocks: int = 0) -> None:
    most = _BLOCKS * multiprocessors(keys.device.id)
    blocks = blocks or min(math.ceil(len(keys) / _THREADS), most)
    _launch_on(keys, entry, blocks, (keys, np.int64(len(keys)), *arguments))


def _launch_on(keys: Any, entry: str, blocks: int, arguments: tuple[Any, ...]) -> None:
    _PROGRAMS[keys.dtype].launch(entry, blocks, arguments)
