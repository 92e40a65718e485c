"""Compaction and prefix sums on a GPU: the CUDA half of `gpuops.distinct`, kernels in compaction.cu.

Prefix sums are CuPy's, that is CCCL's, which move at the speed of a copy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS, _ITEMS = 256, 12  # as in compaction.cu

_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
# Keys of one byte have a table and are never sorted.
_PROGRAMS = {
    size: Program("distinct/compaction.cu", ("compact", "heads")[:size], (f"WORD={word}",), threads=_THREADS)
    for size, word in _WORDS.items()
}
_COUNT = (1 << 62) - 1  # the bits of a state that are a number


def compact(x: Any, keep: Any) -> Any:
    """The words of `x` that `keep` has; both (n,) and contiguous."""
    import cupy

    with x.device:
        kept = cupy.empty((len(x),), x.dtype)
        count = _launch(x, "compact", (x, keep.view(np.uint8), np.int64(len(x)), kept))
        return kept[:count].copy()  # so that what is left over is free again


def heads(x: Any, placed: bool) -> tuple[Any, Any]:
    """The first of each run of equal words, and where these are, or None."""
    import cupy

    with x.device:
        kept = cupy.empty((len(x),), x.dtype)
        places = cupy.empty((len(x) if placed else 1,), np.int64)
        count = _launch(x, "heads", (x, np.int64(len(x)), kept, places, np.int32(placed)))
        return kept[:count].copy(), places[:count].copy() if placed else None


def _launch(x: Any, entry: str, arguments: tuple[Any, ...]) -> int:
    """Launch `entry`; returns how many elements are kept."""
    import cupy

    program = _PROGRAMS[x.dtype.itemsize]
    tiles = math.ceil(len(x) / (program.threads * _ITEMS))
    if tiles == 0:
        return 0
    states = cupy.zeros((tiles + 1,), np.uint64)
    program.launch(entry, tiles, (*arguments, states))
    return int(states[tiles]) & _COUNT


def scan(x: Any, shift: int, dtype: np.dtype) -> Any:
    """Prefix sums of x (n,), contiguous; with `shift` 1 without the own element."""
    import cupy

    with x.device:
        if not shift:
            return cupy.cumsum(x, dtype=dtype)
        result = cupy.zeros((len(x),), dtype)
        if len(x) > 1:
            cupy.cumsum(x[:-1], dtype=dtype, out=result[1:])
        return result
