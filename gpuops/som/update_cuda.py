"""Learning of self-organizing maps on a GPU: the CUDA half of `gpuops.som.update`, with the kernels of update.cu."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gpuops._cuda import Program, multiprocessors, shared_of_block

_THREADS = 128
_ROWS = 4  # rows of a product that a thread of `mix` computes
_ENOUGH_THREADS = 1 << 18  # threads of `accumulate` that keep a GPU busy

_OF_BLOCK = 1024  # threads of a block of `accumulate_in_blocks`
# The least samples of a block for each unit, and the most parts of the columns. With fewer samples or more parts, the
# sums of all blocks, or reading samples several times, would take longer than adding in global memory.
_FEWEST, _MOST = 4, 4

_ENTRIES = ("accumulate", "accumulate_in_blocks", "means")
_SUMS = {
    np.dtype("float32"): Program("som/update.cu", _ENTRIES, ("FLOAT=float",)),
    np.dtype("float64"): Program("som/update.cu", (*_ENTRIES, "mix"), ("FLOAT=double",)),
}


def accumulate(samples: Any, units: Any, count: int, weights: Any, missing: bool, scale: Any, validate: bool) -> Any:
    """Return sums (M, d) and counts (M,) or (M, d) in fixed point, int64, and the first row at fault, or None."""
    import cupy

    n, d = samples.shape
    with samples.device:
        sums, counts = (cupy.zeros((count, width), np.int64) for width in (d, d if missing else 1))
        fault = cupy.zeros((1,), np.uint64)
        in_blocks = _in_blocks(samples.device.id, n, count, d) if weights is None and not missing else None
        if in_blocks:
            grid, width, shared = in_blocks
            columns = cupy.asarray(scale.columns(d))
            steps = (np.int64(stride // x.itemsize) for x in (samples, units) for stride in x.strides)
            arguments = (sums, counts, fault, samples, units, columns, *steps, np.int64(n))
            function = _SUMS[samples.dtype].function("accumulate_in_blocks")
            function.max_dynamic_shared_size_bytes = shared_of_block(samples.device.id)
            function(grid, (_OF_BLOCK,), (*arguments, *map(np.int32, (count, d, width))), shared_mem=shared)
        elif n and d:
            # A thread takes a strip of successive samples, and adds successive samples of one unit before it stores.
            strip = min(max(n * d // _ENOUGH_THREADS, 1), 256)
            strides = (stride // x.itemsize for x in (samples, units) for stride in x.strides)
            weighted = weights is not None
            weights = weights if weighted else samples
            weight_stride = weights.strides[0] // weights.itemsize
            sizes = (*map(np.int64, (*strides, weight_stride, n, count)), *map(np.int32, (d, strip, weighted, missing)))
            blocks = math.ceil(math.ceil(n / strip) * d / _THREADS)
            columns = cupy.asarray(scale.columns(d))
            bounds = map(np.float64, (scale.counts, scale.largest_weight))
            arguments = (sums, counts, fault, samples, units, weights, columns, *sizes, *bounds)
            _SUMS[samples.dtype].launch("accumulate", blocks, arguments, threads=_THREADS)
        first = int(fault.get()[0]) if validate else 0
    return sums, counts if missing else counts[:, 0], 2**62 - first if first else None


@functools.lru_cache(64)
def _in_blocks(device: int, n: int, m: int, d: int) -> tuple[tuple[int, int], int, int] | None:
    """Return the grid, the columns of a block and its shared memory, or None if there are many units or few samples."""
    room = shared_of_block(device)
    width = min(d, (room // (4 * m) - 1) // 2)
    if width < 1:
        return None
    parts = math.ceil(d / width)
    width = math.ceil(d / parts)
    shares = max(multiprocessors(device) // parts, 1)
    return ((shares, parts), width, 4 * m * (2 * width + 1)) if parts <= _MOST and n >= _FEWEST * shares * m else None


def mix(h: np.ndarray, values: Any, start: Any = None) -> Any:
    """Return start[b, i, :] (or 0) + sum over j, in order, of h[i, j] values[b, j, :]; float64; h is a NumPy array."""
    import cupy

    with values.device:
        values = cupy.ascontiguousarray(values)
        batch, depth, width = values.shape
        rows = len(h)
        result = cupy.empty((batch, rows, width), np.float64) if start is None else start.copy(order="C")
        if result.size:
            grid = (math.ceil(width / _THREADS), math.ceil(rows / _ROWS), batch)
            factors = cupy.asarray(np.ascontiguousarray(h, np.float64))
            sizes = map(np.int32, (rows, depth, width, start is not None))
            _SUMS[values.dtype].launch("mix", grid, (result, factors, values, *sizes), threads=_THREADS)
    return result


def means(mixed: Any, codebook: Any, least: float) -> Any:
    """Return the first d columns of `mixed` (M, d + 1 or 2 d) divided by its last 1 or d columns.

    Where the divisor is `least` or less, return the entry of `codebook`.
    """
    import cupy

    with codebook.device:
        result, known = cupy.empty(codebook.shape, codebook.dtype), cupy.ascontiguousarray(codebook)
        if result.size:
            d = codebook.shape[1]
            sizes = np.int64(result.size), np.int32(d), np.int32(mixed.shape[1]), np.float64(least)
            blocks = math.ceil(result.size / _THREADS)
            _SUMS[codebook.dtype].launch("means", blocks, (result, mixed, known, *sizes), threads=_THREADS)
    return result
