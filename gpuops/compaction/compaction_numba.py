"""Compaction and prefix sums on a CPU: the Numba half of `gpuops.compaction`.

Both pass twice over blocks of a fixed size. The first pass counts the kept elements of each block, or adds up each
block. The second pass, which then knows the total of the blocks before, stores the kept elements or the prefix sums.
"""

from __future__ import annotations

import numba
import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import for_all

_BLOCK = 2**16  # elements, which stay in the second-level cache
# With this many threads or fewer, two passes over words take longer than one pass on one thread at the speed of memory.
_FEW = 2
_STREAM = 4  # cost of an element, in relaxations of a dense matrix


def compact(x: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the words of `x` where `keep` is true; both are (n,) and contiguous."""
    flags = keep.view(np.uint8)
    blocks = range(0, len(x), _BLOCK)
    places = np.zeros(len(blocks) + 1, np.int64)

    def count(first: int) -> None:
        places[first // _BLOCK + 1] = np.count_nonzero(keep[first : first + _BLOCK])

    for_all(count, blocks, _STREAM * len(x))
    np.cumsum(places, out=places)
    result = np.empty(int(places[-1]), x.dtype)

    def move(first: int) -> None:
        to = result[places[first // _BLOCK] : places[first // _BLOCK + 1]]
        if len(to) == len(x[first : first + _BLOCK]):
            to[...] = x[first : first + _BLOCK]
        elif len(to):
            _move(x[first : first + _BLOCK], flags[first : first + _BLOCK], to)

    for_all(move, blocks, _STREAM * len(x))
    return result


@entry
def _move(x, keep, result):
    """Store every element, and advance the place only if it is kept: no branch for a processor to predict."""
    i = place = np.uint64(0)
    size = np.uint64(result.size)
    while place < size:
        result[place] = x[i]
        place += np.uint64(keep[i])
        i += np.uint64(1)


def scan(x: np.ndarray, shift: int, dtype: np.dtype) -> np.ndarray:
    """Return prefix sums in `dtype` of x (n,), contiguous; inclusive with `shift` 0, exclusive with `shift` 1."""
    result = np.empty(len(x), dtype)
    if x.dtype == dtype and dtype.kind in "iu" and numba.config.NUMBA_NUM_THREADS <= _FEW:
        result[:shift] = 0
        np.cumsum(x[: len(x) - shift], out=result[shift:])
        return result
    numbers = x.view(np.uint8) if x.dtype == np.bool_ else x
    blocks = range(0, len(x), _BLOCK)
    before = np.zeros(len(blocks) + 1, dtype)
    zero = dtype.type(0)

    def add_up(first: int) -> None:
        before[first // _BLOCK + 1] = _total(numbers[first : first + _BLOCK], zero)

    if len(blocks) > 1:
        for_all(add_up, blocks, _STREAM * len(x))
        np.cumsum(before, out=before)

    def fill(first: int) -> None:
        last = first + _BLOCK
        _prefixes(numbers[first:last], before[first // _BLOCK], shift, result[first:last])

    for_all(fill, blocks, _STREAM * len(x))
    return result


@entry
def _total(x, zero):
    """Return the sum of x, from 8 partial sums that a processor adds at once; a compiler may not reorder floats."""
    sums = np.full(8, zero)
    whole = x.size // 8 * 8
    for i in range(0, whole, 8):
        for j in range(8):
            sums[j] += x[i + j]
    for i in range(whole, x.size):
        sums[i - whole] += x[i]
    total = zero
    for j in range(8):
        total += sums[j]
    return total


@entry
def _prefixes(x, total, shift, result):
    if shift:
        for i in range(x.size):
            result[i] = total
            total += result.dtype.type(x[i])
    else:
        for i in range(x.size):
            total += result.dtype.type(x[i])
            result[i] = total
