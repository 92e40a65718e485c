"""Reductions on a GPU: the CUDA half of `gpuops.reduction`, kernels in reduction.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program, multiprocessors

_THREADS = 256
_TILE = 16 * _THREADS  # elements of a row that a block reduces at a time
_ROUNDS_OF_BLOCKS = 16  # most blocks launched for each multiprocessor; 8 run at once

# In the order of the enumeration in reduction.cu.
OPERATORS = (
    *("sum", "minimum", "maximum", "argmin", "argmax", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("product", "all", "any"),
)

_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
_PROGRAMS = {
    np.dtype(dtype): Program(
        "reduction/reduction.cu", ("reduce", "reduce_short_rows"), (f"VALUE={name}",), threads=_THREADS
    )
    for dtype, name in _TYPES.items()
}


def empty(x: Any, size: int, dtype: np.dtype) -> Any:
    """Return an uninitialized array (size,) on the device of `x`."""
    import cupy

    with x.device:
        return cupy.empty((size,), dtype)


def reduce(x: Any, operator: str, result: Any) -> None:
    """Reduce the rows of `x`, (rows, length) and contiguous, both at least 1, to `result`, (rows,)."""
    import cupy

    rows, length = x.shape
    program, operation = _PROGRAMS[x.dtype], np.int32(OPERATORS.index(operator))
    with x.device:
        if length <= _THREADS:
            blocks = _blocks(x, math.ceil(rows * 32 / _THREADS))
            program.launch("reduce_short_rows", blocks, (operation, x, np.int64(rows), np.int64(length), result))
            return
        before, later = result, False
        while True:
            tiles = math.ceil(length / _TILE)
            # A state is at most a key and an index. The last launch stores only results, no states.
            states = cupy.empty((rows * tiles, 2), np.int64) if tiles > 1 else result
            sizes = np.int64(rows), np.int64(length)
            arguments = (operation, x, before, np.int32(later), *sizes, states, result)
            program.launch("reduce", _blocks(x, rows * tiles), arguments)
            if tiles == 1:
                return
            before, later, length = states, True, tiles


def _blocks(x: Any, tasks: int) -> int:
    return min(tasks, _ROUNDS_OF_BLOCKS * multiprocessors(x.device.id))
