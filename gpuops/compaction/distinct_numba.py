"""Distinct values on a CPU: the Numba half of `gpuops.compaction`.

Before values are sorted, they are dealt to buckets by value. A bucket stays in a cache while NumPy sorts it, and
threads sort different buckets. A bucket with more than a quarter of the values is dealt again, over its own range.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import by_parts, for_all

_BLOCK = 4096  # values whose range is found before they are marked; they stay in the first-level cache
_SAMPLE = 1024  # values of the sample
_SPARE = 2**16  # a table may have four places for every element, plus this many places
_BUCKET = 2**14  # values of a bucket, about
_BUCKETS = 11  # bits of the number of a bucket; 2^11 buckets can be appended to at once
_STREAM, _SORT = 4, 100  # cost of passing over a value and of sorting it, in relaxations of a dense matrix

_FLAG, _COUNT, _PLACE = range(3)  # content of a table: whether, how often, or where first each value occurs
_TABLES = {_FLAG: np.uint8, _COUNT: np.int64, _PLACE: np.int64}

# Bits of floats, by their size in bytes: the sign, infinity, and the NaN that stands for every NaN.
_FLOATS = {2: (0x8000, 0x7C00, 0x7E00), 4: (0x80000000, 0x7F800000, 0x7FC00000), 8: (1 << 63, 0x7FF << 52, 0xFFF << 51)}


def keys(x: np.ndarray) -> np.ndarray:
    """Return an integer for each number: integers are equal or ordered as the numbers are."""
    if x.dtype.kind != "f":
        return x.view(np.uint8) if x.dtype == np.bool_ else x
    unsigned = np.dtype(f"u{x.itemsize}")
    bits, result = x.view(unsigned), np.empty(len(x), unsigned)
    sign, infinity, nan = map(unsigned.type, _FLOATS[x.itemsize])
    nan = unsigned.type(nan & ~sign)
    by_parts(lambda part: _ordered(bits[part], sign, infinity, nan, result[part]), len(x), _STREAM * len(x))
    return result


def numbers(keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the numbers that have these keys."""
    if dtype.kind != "f":
        return keys.view(dtype)
    sign = keys.dtype.type(_FLOATS[dtype.itemsize][0])
    return np.where(keys & sign, keys ^ sign, ~keys).view(dtype)


@entry
def _ordered(bits, sign, infinity, nan, keys):
    for i in range(bits.size):
        b = bits[i]
        magnitude = b & ~sign
        if magnitude > infinity:
            b = nan
        elif magnitude == 0:
            b = magnitude
        keys[i] = ~b if b & sign else b | sign


def distinct(
    keys: np.ndarray, counted: bool, inverse: bool, first: bool
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return values, counts (if `counted`) and inverse (if `inverse`), for at least one key, contiguous."""
    least, largest = _guess(keys)
    while True:
        if int(largest) - int(least) >= 4 * len(keys) + _SPARE:
            found = _by_sorting(keys, *_extent(keys), counted, inverse, first)
            break
        table = _Table(keys, least, largest, _PLACE if first else _FLAG)
        low, high = table.fill()
        if low >= least and high <= largest:
            found = table.read(counted, inverse)
            break
        least, largest = keys.dtype.type(low), keys.dtype.type(high)
    values, counts, places, ranks = found
    if first:
        position = _positions(places, len(keys))
        values = np.empty_like(values)
        values[position] = keys[places]
        if counts is not None:
            counts[position] = counts.copy()
        if ranks is not None:
            ranks = _looked_up(position, ranks, np.int64(0))
    return values, counts, ranks


def _positions(places: np.ndarray, n: int) -> np.ndarray:
    """Return for each of some distinct places, all below n, how many of the places are smaller."""
    if len(places) < n // 16:
        position = np.empty_like(places)
        position[np.argsort(places)] = np.arange(len(places))
        return position
    there = np.zeros(n, np.bool_)
    there[places] = True
    return (np.cumsum(there) - 1)[places]


def _guess(keys: np.ndarray) -> tuple[Any, Any]:
    """Return the range of a sample, widened on each side by an eighth of itself plus 64: enough for uniform values."""
    sample = keys[:: max(len(keys) // _SAMPLE, 1)]
    least, largest = int(sample.min()), int(sample.max())
    more, limits = (largest - least) // 8 + 64, np.iinfo(keys.dtype)
    return keys.dtype.type(max(least - more, limits.min)), keys.dtype.type(min(largest + more, limits.max))


def _extent(keys: np.ndarray) -> tuple[Any, Any]:
    ends = by_parts(lambda part: (keys[part].min(), keys[part].max()), len(keys), _STREAM * len(keys))
    return min(low for low, _ in ends), max(high for _, high in ends)


# --- Tables ---------------------------------------------------------------------------------------------------------


class _Table:
    """A table with a place for every value from `least` to `largest`: whether it occurs, or where it occurs first."""

    def __init__(self, keys: np.ndarray, least: Any, largest: Any, kind: int):
        self.keys, self.least, self.kind = keys, least, kind
        self.size = int(largest) - int(least) + 1

    def fill(self) -> tuple[Any, Any]:
        """Fill the table, and return the least and the largest value; it is complete if it has places for both."""
        self.table, ends = self._filled(self.kind)
        return min(low for low, _ in ends), max(high for _, high in ends)

    def _filled(self, kind: int) -> tuple[np.ndarray, list[tuple[Any, Any]]]:
        """Fill one table for each thread and combine the tables; their number is limited by the number of keys."""
        n = len(self.keys)
        count = max(1, min(numba.config.NUMBA_NUM_THREADS, 8 * n // self.size))
        cuts = [n * i // count for i in range(count + 1)]
        tables = np.full((count, self.size), n if kind == _PLACE else 0, _TABLES[kind])
        ends: list[tuple[Any, Any]] = []

        def fill(i: int) -> None:
            ends.append(_mark(self.keys, cuts[i], cuts[i + 1], self.least, self.size, kind, tables[i]))

        for_all(fill, range(count), _STREAM * n)
        combine = {_FLAG: np.bitwise_or, _COUNT: np.add, _PLACE: np.minimum}[kind]
        return tables[0] if count == 1 else combine.reduce(tables, axis=0), ends

    def read(self, counted: bool, inverse: bool) -> tuple[Any, Any, Any, Any]:
        """Return ascending values, and counts, first places and ranks if wanted."""
        there = self.table < len(self.keys) if self.kind == _PLACE else self.table.view(np.bool_)
        offsets = np.flatnonzero(there)
        unsigned = np.dtype(f"u{self.keys.itemsize}")
        values = (offsets.astype(unsigned) + self.least.view(unsigned)).view(self.keys.dtype)
        counts = self._filled(_COUNT)[0][offsets] if counted else None
        places = self.table[offsets] if self.kind == _PLACE else None
        ranks = None
        if inverse:
            ranks = _looked_up(np.cumsum(there) - 1, self.keys, self.least)
        return values, counts, places, ranks


@entry
def _mark(keys, first, last, least, size, kind, table):
    low, high = keys[first], keys[first]
    for start in range(first, last, _BLOCK):
        block = keys[start : min(start + _BLOCK, last)]  # a separate view, so that the loops are vectorized
        block_low, block_high = block[0], block[0]
        for i in range(block.size):
            block_low = min(block_low, block[i])
            block_high = max(block_high, block[i])
        low, high = min(low, block_low), max(high, block_high)
        # Differences are unsigned, as they may not fit a signed value.
        if block_low < least or np.uint64(block_high) - np.uint64(least) >= np.uint64(size):
            continue
        if kind == _FLAG:
            for i in range(block.size):
                table[np.uint64(block[i]) - np.uint64(least)] = 1
        elif kind == _COUNT:
            for i in range(block.size):
                table[np.uint64(block[i]) - np.uint64(least)] += 1
        else:
            for i in range(block.size):
                place = np.uint64(block[i]) - np.uint64(least)
                if table[place] > start + i:
                    table[place] = start + i
    return low, high


def _looked_up(table: np.ndarray, keys: np.ndarray, least: Any) -> np.ndarray:
    result = np.empty(len(keys), np.int64)
    by_parts(lambda part: _look_up(table, keys[part], least, result[part]), len(keys), _STREAM * len(keys))
    return result


@entry
def _look_up(table, keys, least, result):
    for i in range(keys.size):
        result[i] = table[np.uint64(keys[i]) - np.uint64(least)]


# --- Sorting --------------------------------------------------------------------------------------------------------


def _by_sorting(
    keys: np.ndarray, low: Any, high: Any, counted: bool, inverse: bool, first: bool
) -> tuple[Any, Any, Any, Any]:
    """Return ascending values, and counts, first places and ranks if wanted."""
    n, tracked = len(keys), inverse or first
    buckets = _dealt_until_even(keys, np.arange(n) if tracked else None, low, high)
    values: list[Any] = [None] * len(buckets)
    heads: list[Any] = [None] * len(buckets)
    places: list[Any] = [None] * len(buckets)

    def sort(b: int) -> None:
        bucket, owners = buckets[b]
        if tracked:
            order = np.argsort(bucket)
            bucket, owners = bucket[order], owners[order]
            buckets[b] = bucket, owners
        else:
            bucket.sort()
        heads[b] = _heads(bucket)
        values[b] = bucket[heads[b]]
        if first:
            places[b] = np.minimum.reduceat(owners, heads[b])

    for_all(sort, range(len(buckets)), _SORT * n)
    sizes = np.array([len(part) for part in values])
    ranks = None
    if inverse:
        ranks, starts = np.empty(n, np.int64), np.cumsum(sizes) - sizes
        for_all(lambda b: _rank(heads[b], starts[b], buckets[b][1], ranks), range(len(buckets)), _SORT * n)
    counts = None
    if counted:
        counts = np.concatenate(
            [np.diff(head, append=len(bucket)) for head, (bucket, _) in zip(heads, buckets, strict=True)]
        )
    return np.concatenate(values), counts, np.concatenate(places) if first else None, ranks


def _dealt_until_even(keys: np.ndarray, owners: np.ndarray | None, low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Deal keys, with their owners (if given), to buckets in ascending order, none empty; repeat for large buckets."""
    result = []
    for bucket in _deal(keys, owners, low, high):
        part = bucket[0]
        if len(part) > max(len(keys) // 4, 4 * _BUCKET) and len(keys) > 4 * _BUCKET:
            low, high = _extent(part)
            if low < high:
                result += _dealt_until_even(*bucket, low, high)
                continue
        result.append(bucket)
    return result


def _deal(keys: np.ndarray, owners: np.ndarray | None, low: Any, high: Any) -> list[tuple[Any, Any]]:
    n = len(keys)
    bits = min(max((n // _BUCKET).bit_length(), 1), _BUCKETS)  # a shift is below 64
    shift = max((int(high) - int(low)).bit_length() - bits, 0)
    lists = ((int(high) - int(low)) >> shift) + 1
    threads = max(1, min(numba.config.NUMBA_NUM_THREADS, n // _BUCKET))
    cuts = [n * i // threads for i in range(threads + 1)]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    places = np.zeros((threads, lists), np.int64)
    for_all(lambda i: _count(keys[parts[i]], low, np.uint64(shift), places[i]), range(threads), _STREAM * n)
    ends = np.cumsum(places.T.ravel())
    starts = (ends - places.T.ravel()).reshape(lists, threads).T.copy()
    dealt, dealt_owners = np.empty_like(keys), None if owners is None else np.empty_like(owners)

    def move(i: int) -> None:
        if owners is None:
            _move(keys[parts[i]], low, np.uint64(shift), starts[i], dealt)
        else:
            _move_with_owners(keys[parts[i]], owners[parts[i]], low, np.uint64(shift), starts[i], dealt, dealt_owners)

    for_all(move, range(threads), _SORT * n)
    edges = [0, *ends[threads - 1 :: threads].tolist()]
    return [(dealt[a:b], None if dealt_owners is None else dealt_owners[a:b]) for a, b in pairwise(edges) if a < b]


@entry
def _count(keys, low, shift, counts):
    for i in range(keys.size):
        counts[(np.uint64(keys[i]) - np.uint64(low)) >> shift] += 1


@entry
def _move(keys, low, shift, places, dealt):
    for i in range(keys.size):
        bucket = (np.uint64(keys[i]) - np.uint64(low)) >> shift
        place = places[bucket]
        places[bucket] = place + 1
        dealt[np.uint64(place)] = keys[i]


@entry
def _move_with_owners(keys, owners, low, shift, places, dealt, dealt_owners):
    for i in range(keys.size):
        bucket = (np.uint64(keys[i]) - np.uint64(low)) >> shift
        place = places[bucket]
        places[bucket] = place + 1
        dealt[np.uint64(place)] = keys[i]
        dealt_owners[np.uint64(place)] = owners[i]


@entry
def _heads(keys):
    """Return the places where a new value begins in sorted keys, at least one."""
    count = 1
    for i in range(1, keys.size):
        count += keys[i] != keys[i - 1]
    heads = np.empty(count + 1, np.int64)  # one more element, because the loop may store a place behind the last head
    heads[0] = 0
    place = 1
    for i in range(1, keys.size):
        heads[place] = i
        place += keys[i] != keys[i - 1]
    return heads[:count]


@entry
def _rank(heads, first, owners, ranks):
    for h in range(heads.size):
        end = heads[h + 1] if h + 1 < heads.size else owners.size
        for i in range(heads[h], end):
            ranks[owners[i]] = first + h
