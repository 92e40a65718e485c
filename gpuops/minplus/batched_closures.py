"""Closures of batches of small matrices: plain Floyd-Warshall on a CPU, tiles on a GPU (batched_closures.cu).

Blocked Floyd-Warshall also has to close its smallest blocks of pivots. A CPU closes such a block as a batch of one
matrix; a GPU uses `small_closure`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gpuops._cuda import Program
from gpuops._threads import for_all
from gpuops.minplus.small_closure import TILES, clear_diagonal

# --- CPU: one matrix at a time, in cache ------------------------------------------------------------------------------

_TASK = 2**20  # relaxations for which small matrices are grouped into one task of a thread


def close_numpy(d: np.ndarray, sizes: np.ndarray | None, tolerance: float) -> None:
    """Close the matrices (batch, n, n) in place.

    A row of `sizes` has the size of a matrix and the number of its pivots; None: n and n. Diagonal entries count as
    min(d[i, i], 0).
    """
    n = d.shape[1]
    sizes = np.full((len(d), 2), n, np.int32) if sizes is None else sizes
    close = _compile(d.dtype)
    task = max(1, _TASK // max(n**3, 1))
    for_all(
        lambda first: close(d[first : first + task], sizes[first : first + task], tolerance),
        range(0, len(d), task),
        len(d) * n**3,
    )


@functools.cache
def _compile(dtype: np.dtype) -> Any:
    import numba
    from numba import types

    from gpuops._compiled_numba import compiled

    batch, sizes = types.Array(numba.from_dtype(dtype), 3, "A"), types.Array(types.int32, 2, "A", readonly=True)
    return compiled(types.void(batch, sizes, types.float64), _close)


def _close(batch, sizes, tolerance):
    for b in range(len(batch)):
        n, inside = sizes[b]
        d = batch[b, :n, :n]
        closed = d + d.dtype.type(0)  # a contiguous copy without -0.0
        for k in range(n):
            closed[k, k] = min(closed[k, k], d.dtype.type(0))
        pivot_row = np.empty(n, d.dtype)
        # Arrays are copied in loops: with the text of its errors, a copy by slices takes seconds to compile.
        for k in range(inside):
            # d[k, k] counts as 0 in step k. It can be less than 0 by rounding, which must not accumulate, or because of
            # a negative cycle, whose negative value is put back after the step.
            cycle = closed[k, k]
            closed[k, k] = 0
            for j in range(n):
                pivot_row[j] = closed[k, j]
            for i in range(n):
                row, to_pivot = closed[i], closed[i, k]
                for j in range(n):
                    # Numba adds integers as int64: wrap the sum, as storing it does, before it is compared.
                    candidate = d.dtype.type(to_pivot + pivot_row[j])
                    row[j] = candidate if candidate < row[j] else row[j]
            closed[k, k] = cycle
        for k in range(n):
            if -tolerance <= closed[k, k] < 0:
                closed[k, k] = 0
        for i in range(n):
            for j in range(n):
                d[i, j] = closed[i, j]


# --- CUDA: tile_closures.cu, batched_closures.cu ----------------------------------------------------------------------

_PROGRAMS = {
    name: Program(
        "minplus/batched_closures.cu",
        ("relax_panels", "relax_rest"),
        (f"ELEMENT={element}", f"TILE={tile}"),
        threads=(tile // 4) ** 2,
    )
    for name, (element, tile) in TILES.items()
}
_TILE_PROGRAMS = {
    name: Program(
        "minplus/tile_closures.cu",
        ("close_tiles",),
        (f"ELEMENT={element}", f"TILE={tile}", f"OWN={tile // 8}"),
        threads=64,
        blocks=6,
    )
    for name, (element, tile) in TILES.items()
}
_NULL = np.uintp(0)  # a null pointer
_LAUNCH = 2**15  # most matrices in a launch: a grid has fewer than 2^16 layers
_PANEL_BYTES = 2**28  # most bytes of the panels of a launch


def close_cuda(d: Any, sizes: np.ndarray | None, tolerance: float) -> None:
    """Close the matrices in place on a GPU, like `close_numpy`; the kernels run on the current stream."""
    import cupy

    n, name = d.shape[1], d.dtype.name
    tile = TILES[name][1]
    tiles = math.ceil(n / tile)
    matrix_stride, stride = (np.int64(step // d.itemsize) for step in d.strides[:2])
    with d.device:
        on_device = None if sizes is None else cupy.asarray(np.ascontiguousarray(sizes, np.int32))
        if tiles <= 1:
            shape = _NULL if on_device is None else on_device
            matrices = (d, matrix_stride, stride, np.int32(n), shape)
            if d.size:
                _TILE_PROGRAMS[name].launch("close_tiles", len(d), (*matrices, np.float64(tolerance)))
            return
        clear_diagonal(d)
        program = _PROGRAMS[name]
        pivot_tiles = math.ceil((n if sizes is None else int(sizes[:, 1].max(initial=0))) / tile)
        batch = max(1, min(_LAUNCH, _PANEL_BYTES // (2 * tiles * tile * tile * d.itemsize)))
        for first in range(0, len(d), batch):
            part = d[first : first + batch]
            shape = _NULL if on_device is None else on_device[first : first + batch]
            matrices = (part, matrix_stride, stride, np.int32(n), shape)
            row_panel, column_panel = cupy.empty((2, len(part), tiles, tile, tile), d.dtype)
            for pivots in map(np.int32, range(pivot_tiles)):
                panels = (row_panel, column_panel)
                grid = (2 * tiles, 1, len(part))
                program.launch("relax_panels", grid, (*matrices, pivots, np.float64(tolerance), *panels))
                program.launch("relax_rest", (tiles, tiles, len(part)), (*matrices, pivots, *panels))
