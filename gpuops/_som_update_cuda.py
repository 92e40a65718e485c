"""Learning of self-organizing maps on a GPU: the CUDA half of `gpuops.som_update`, kernels in kernels/som_update.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS = 128
_ROWS = 4  # of a product that a thread of `mix` computes
_ENOUGH_THREADS = 1 << 18

_SUMS = {
    "float32": Program("som_update.cu", ("accumulate",), ("FLOAT=float",)),
    "float64": Program("som_update.cu", ("accumulate", "mix"), ("FLOAT=double",)),
}


def accumulate(samples: Any, units: Any, count: int, weights: Any, missing: bool, scale: Any) -> Any:
    """Sums (M, d) and counts (M,) or (M, d) in fixed point, int64, and the first row at fault, or None."""
    import cupy

    n, d = samples.shape
    with samples.device:
        sums, counts = (cupy.zeros((count, width), np.int64) for width in (d, d if missing else 1))
        fault = cupy.zeros((1,), np.uint64)
        if n and d:
            # Samples of one unit that follow each other are added up by one thread, the more the more there are.
            strip = min(max(n * d // _ENOUGH_THREADS, 1), 256)
            strides = (stride // x.itemsize for x in (samples, units) for stride in x.strides)
            weighted = weights is not None
            weights = weights if weighted else samples
            weight_stride = weights.strides[0] // weights.itemsize
            sizes = (*map(np.int64, (*strides, weight_stride, n, count)), *map(np.int32, (d, strip, weighted, missing)))
            blocks = math.ceil(math.ceil(n / strip) * d / _THREADS)
            arguments = (sums, counts, fault, samples, units, weights, *sizes, *map(np.float64, scale))
            _SUMS[samples.dtype.name].function("accumulate")((blocks,), (_THREADS,), arguments)
        first = int(fault.get()[0])
    return sums, counts if missing else counts[:, 0], 2**62 - first if first else None


def mix(h: np.ndarray, values: Any, start: Any) -> Any:
    """start[b, i, :] + sum over j, in order, of h[i, j] values[b, j, :]; all float64, (b, i or j, c); h in NumPy."""
    import cupy

    with values.device:
        result, values = start.copy(order="C"), cupy.ascontiguousarray(values)
        if result.size:
            batch, rows, width = result.shape
            grid = (math.ceil(width / _THREADS), math.ceil(rows / _ROWS), batch)
            factors = cupy.asarray(np.ascontiguousarray(h, np.float64))
            sizes = map(np.int32, (rows, h.shape[1], width))
            _SUMS["float64"].function("mix")(grid, (_THREADS,), (result, factors, values, *sizes))
    return result
