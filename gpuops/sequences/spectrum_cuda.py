"""Cyclic spectra on a GPU: the CUDA half of `gpuops.sequences.spectrum`, kernels in spectrum.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS, _LENGTHS, _RESULTS = 256, 32, 16  # as in spectrum.cu; _RESULTS for each thread of `expand`
_PROGRAM = Program("sequences/spectrum.cu", ("sums", "counts", "expand"), threads=_THREADS)


def sums(prefix: Any) -> Any:
    """Return 0, the masses of pieces by length and beginning, and the total, from prefix sums of two turns (2 n,)."""
    import cupy

    n = len(prefix) // 2
    with prefix.device:
        result = cupy.empty((n * (n - 1) + 2,), np.int64)
        _PROGRAM.launch("sums", _grid(n, n - 1), (prefix, np.int64(n), result))
        return result


def counts(prefix: Any, total: int) -> Any:
    """Return how often each sum from 0 to `total` occurs; no mass is negative."""
    import cupy

    n = len(prefix) // 2
    with prefix.device:
        table = cupy.zeros((total + 1,), np.uint64)
        if n > 1:
            _PROGRAM.launch("counts", _grid(n, n // 2), (prefix, np.int64(n), table))
        result = table.view(np.int64)
        result[0] += 1
        result[total] += 1
        return result


def _grid(n: int, lengths: int) -> tuple[int, int]:
    return math.ceil(n / _PROGRAM.threads), max(1, math.ceil(lengths / _LENGTHS))


def expanded(counts: Any, size: int) -> Any:
    """Return each number as often as it is counted, ascending, (size,)."""
    import cupy

    with counts.device:
        ends, result = cupy.cumsum(counts), cupy.empty((size,), np.int64)
        blocks = math.ceil(size / (_PROGRAM.threads * _RESULTS))
        _PROGRAM.launch("expand", blocks, (ends, np.int64(len(ends)), np.int64(size), result))
        return result
