"""Closures of small matrices on a GPU in one launch (small_closure.cu), and checks of arc lengths (lengths.cu)."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gpuops._cuda import Program, struct

# The type of an element in CUDA and the side of a tile, by dtype.
TILES = {"float32": ("float", 64), "float64": ("double", 32), "int32": ("int", 64), "int16": ("short", 64)}
# The kernels, by dtype and by whether no value is negative, which only float32 makes use of. Two blocks, each with
# 47 KiB of shared memory, fit on a multiprocessor: 132 multiprocessors run a block for each of the 256 tiles of 1,024
# vertices, and one that closes.
_PROGRAMS = {
    (name, nonnegative): Program(
        "minplus/small_closure.cu",
        ("close_small",),
        (f"ELEMENT={element}", f"TILE={tile}", f"NONNEGATIVE={int(nonnegative)}"),
        threads=(tile // 4) ** 2,
        blocks=128 // tile,  # two blocks of 256 threads; float64: four of 64
    )
    for name, (element, tile) in TILES.items()
    for nonnegative in ((False, True) if name == "float32" else (False,))
}
_LENGTHS = {
    np.dtype(name): Program("minplus/lengths.cu", ("clear_diagonal", "look_over"), (f"ELEMENT={element}",), threads=256)
    for name, (element, _) in TILES.items()
}
MOST = 1024  # vertices that `close` closes at once
_TELLING = 5  # as in small_closure.cu
_ARRIVALS = struct("minplus/small_closure.cu", "Arrivals").itemsize


def close(d: Any, tolerance: float, nonnegative: bool) -> None:
    """Close the CuPy matrix `d`, whose rows are contiguous, in place; d[i, i] counts as min(d[i, i], 0)."""
    import cupy

    n = len(d)
    if n == 0:
        return
    program, tile = _closing(d.dtype, nonnegative)
    count = math.ceil(n / tile) ** 2
    with d.device:
        side = math.isqrt(count)
        row = side * tile * tile * d.itemsize  # bytes of a row of published tiles
        scratch = cupy.cuda.alloc(_ARRIVALS + (_TELLING + 3 * side) * row)
        sizes = np.int64(d.strides[0] // d.itemsize), np.int32(n)
        arguments = (d, *sizes, np.float64(tolerance), scratch)
        if count == 1:  # a single block waits for nothing
            return program.launch("close_small", 1, arguments)
        scratch.memset_async(0xFF if d.dtype.kind == "f" else 0x7F, _ARRIVALS + _TELLING * row)  # MISSING
        program.launch_cooperative("close_small", arguments, most=count + program.blocks)


@functools.cache
def _closing(dtype: np.dtype, nonnegative: bool) -> tuple[Program, int]:
    """Return the program and the side of its tiles."""
    name = dtype.name
    return _PROGRAMS[name, nonnegative and (name, True) in _PROGRAMS], TILES[name][1]


def clear_diagonal(d: Any) -> None:
    """Set d[..., i, i] to min(d[..., i, i], 0) for all i; d is (n, n) or (batch, n, n)."""
    matrix_stride, down, across = _strides(d)
    vertices, program = math.prod(d.shape[:-1]), _LENGTHS[d.dtype]
    if vertices:
        sizes = matrix_stride, down + across, np.int32(d.shape[-1]), np.int64(vertices)
        with d.device:
            program.launch("clear_diagonal", math.ceil(vertices / program.threads), (d, *sizes))


def look_over(d: Any) -> tuple[bool, bool, bool]:
    """Return whether `d`, (n, n) or (batch, n, n), contains NaN, -inf, and a negative value; waits for the device.

    CuPy's minimum would do, but takes seconds to compile.
    """
    import cupy

    rows = math.prod(d.shape[:-1])
    with d.device:
        found = cupy.zeros((3,), np.int32)
        arguments = (d, *_strides(d), np.int32(d.shape[-1]), np.int64(rows), found)
        _LENGTHS[d.dtype].launch("look_over", min(rows, 4096), arguments)
        nan, minus_infinity, negative = found.get().tolist()
    return bool(nan), bool(minus_infinity), bool(negative)


def _strides(d: Any) -> tuple[np.int64, ...]:
    """Return the strides of matrices, rows and columns, in elements."""
    steps = (0, *d.strides) if d.ndim == 2 else d.strides
    return tuple(np.int64(step // d.itemsize) for step in steps)
