"""Closures of matrices of middle size on a GPU in one launch (middle_closure.cu)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._cuda import Program, multiprocessors, struct
from gpuops.minplus import pack, relax, relax_each, small_closure
from gpuops.minplus.small_closure import TILES

STAGE = 64  # pivots
_SIDE = 128  # of a tile
_BLOCKS = 2  # on a multiprocessor
# The kernels, by arithmetic. Two blocks, each with 48 KiB of shared memory and 128 registers a thread, fit on a
# multiprocessor: 132 multiprocessors run a block for each of the 256 tiles of 2,048 vertices, and one that closes.
_PROGRAMS = {
    arithmetic: Program(
        "minplus/middle_closure.cu",
        ("close_middle",),
        (
            *(f"ELEMENT={TILES[name][0]}", f"TILE={STAGE}", f"NONNEGATIVE={int('Non' in arithmetic)}"),
            *(f"ARITHMETIC={arithmetic}", "THREAD_ROWS=8", "THREAD_WORDS=8"),
        ),
        threads=256,
        blocks=_BLOCKS,
    )
    for arithmetic, name in (("Float32", "float32"), ("NonnegativeFloat32", "float32"), ("Int32", "int32"))
}
_PIECES = 49  # as in middle_closure.cu
_ARRIVALS = struct("minplus/middle_closure.cu", "Arrivals").itemsize


def close(d: Any, tolerance: float, nonnegative: bool) -> None:
    """Close the CuPy matrix `d`, whose rows are contiguous, in place; d[i, i] counts as min(d[i, i], 0)."""
    tiles = math.ceil(len(d) / _SIDE)
    if 1 < tiles and tiles * math.ceil(tiles / _BLOCKS) < multiprocessors(d.device.id):
        _close_at_once(d, tolerance, nonnegative)
    else:
        _close_by_stages(d, tolerance, nonnegative)


def _close_at_once(d: Any, tolerance: float, nonnegative: bool) -> None:
    """Close `d` on a device that runs a block for each tile, and one that closes, at once."""
    import cupy

    n = len(d)
    stages = math.ceil(n / STAGE)
    program = _PROGRAMS[arithmetic_of(d.dtype, nonnegative)[0]]
    with d.device:
        scratch = cupy.empty((_ARRIVALS + stages * _PIECES * STAGE * _SIDE * d.itemsize,), np.uint8)
        scratch.data.memset_async(0, _ARRIVALS)
        sizes = np.int64(d.strides[0] // d.itemsize), np.int32(n)
        program.launch_cooperative("close_middle", (d, *sizes, np.float64(tolerance), scratch))


def _close_by_stages(d: Any, tolerance: float, nonnegative: bool) -> None:
    """Close `d` by the same stages in many launches: the same bits on a device that is too small."""
    for start in range(0, len(d), STAGE):
        stop = min(start + STAGE, len(d))
        rows = d[start:stop]
        closed = rows[:, start:stop]
        small_closure.close(closed, tolerance, nonnegative)
        for columns in rows[:, :start], rows[:, stop:]:
            relax(columns, closed, columns, nonnegative)
        relax_each([(c, c[:, start:stop]) for c in (d[:start], d[stop:])], pack(rows, nonnegative, met_by=len(d)))
