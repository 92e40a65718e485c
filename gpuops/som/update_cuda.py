"""Learning of self-organizing maps on a GPU: the CUDA half of `gpuops.som.update`, with the kernels of update.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS = 128
_ROWS = 4  # rows of a product that a thread of `mix` computes
_ENOUGH_THREADS = 1 << 18  # threads of `accumulate` that keep a GPU busy

_SUMS = {
    "float32": Program("som/update.cu", ("accumulate", "means"), ("FLOAT=float",)),
    "float64": Program("som/update.cu", ("accumulate", "mix", "means"), ("FLOAT=double",)),
}


def accumulate(samples: Any, units: Any, count: int, weights: Any, missing: bool, scale: Any, validate: bool) -> Any:
    """Return sums (M, d) and counts (M,) or (M, d) in fixed point, int64, and the first row at fault, or None."""
    import cupy

    n, d = samples.shape
    with samples.device:
        sums, counts = (cupy.zeros((count, width), np.int64) for width in (d, d if missing else 1))
        fault = cupy.zeros((1,), np.uint64)
        if n and d:
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
            _SUMS[samples.dtype.name].function("accumulate")((blocks,), (_THREADS,), arguments)
        first = int(fault.get()[0]) if validate else 0
    return sums, counts if missing else counts[:, 0], 2**62 - first if first else None


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
            _SUMS["float64"].function("mix")(grid, (_THREADS,), (result, factors, values, *sizes))
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
            function = _SUMS[codebook.dtype.name].function("means")
            function((math.ceil(result.size / _THREADS),), (_THREADS,), (result, mixed, known, *sizes))
    return result
