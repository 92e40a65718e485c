"""Closures of small matrices on a GPU in one launch (small_closure.cu): a launch costs as much as a tile of pivots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

# By dtype: the type of an element, and the side of a tile.
TILES = {"float32": ("float", 64), "float64": ("double", 32), "int32": ("int", 64), "int16": ("short", 64)}
# Two blocks on a multiprocessor, with tiles of 37 KiB in shared memory each, make one for every tile of 1,024 vertices
# on 132 multiprocessors.
_PROGRAMS = {
    name: Program(
        "minplus/small_closure.cu",
        ("close_small", "clear_diagonal", "look_over"),
        (f"ELEMENT={element}", f"TILE={tile}"),
        threads=(tile // 4) ** 2,
        blocks=128 // tile,
    )
    for name, (element, tile) in TILES.items()
}


def close(d: Any, tolerance: float) -> None:
    """Close the CuPy matrix `d`, whose rows are contiguous, in place."""
    import cupy

    tile, n = TILES[d.dtype.name][1], len(d)
    tiles = math.ceil(n / tile)
    with d.device:
        panels, arrived = cupy.empty((2 * tiles * tile * tile,), d.dtype), cupy.zeros((1,), np.uint32)
        sizes = np.int64(d.strides[0] // d.itemsize), np.int32(n)
        arguments = (d, *sizes, np.float64(tolerance), panels, panels[tiles * tile * tile :], arrived)
        _PROGRAMS[d.dtype.name].launch_cooperative("close_small", arguments, most=tiles**2)


def clear_diagonal(d: Any) -> None:
    """min(d[..., i, i], 0) for all i, in place; d is (n, n) or (batch, n, n)."""
    matrix_stride, down, across = _strides(d)
    vertices, program = math.prod(d.shape[:-1]), _PROGRAMS[d.dtype.name]
    if vertices:
        sizes = matrix_stride, down + across, np.int32(d.shape[-1]), np.int64(vertices)
        with d.device:
            program.launch("clear_diagonal", math.ceil(vertices / program.threads), (d, *sizes))


def look_over(d: Any) -> tuple[bool, bool, bool]:
    """Is there NaN, -inf, anything below 0 in (n, n) or (batch, n, n)? Waits; CuPy's minimum compiles for seconds."""
    import cupy

    rows = math.prod(d.shape[:-1])
    with d.device:
        found = cupy.zeros((3,), np.int32)
        arguments = (d, *_strides(d), np.int32(d.shape[-1]), np.int64(rows), found)
        _PROGRAMS[d.dtype.name].launch("look_over", min(rows, 4096), arguments)
        nan, minus_infinity, negative = found.get().tolist()
    return bool(nan), bool(minus_infinity), bool(negative)


def _strides(d: Any) -> tuple[np.int64, ...]:
    """Of matrices, rows and columns, in elements."""
    steps = (0, *d.strides) if d.ndim == 2 else d.strides
    return tuple(np.int64(step // d.itemsize) for step in steps)
