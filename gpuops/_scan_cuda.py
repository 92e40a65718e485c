"""Prefix sums on a GPU, kernel in compaction/scan.cu, for all operations.

CuPy's cumsum first copies its argument by a kernel that is compiled at first use.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS = 256
_ITEMS = 16  # elements of a thread, as in scan.cu

_INTEGERS = {
    **{"i1": "signed char", "u1": "unsigned char", "i2": "short", "u2": "unsigned short"},
    **{"i4": "int", "u4": "unsigned", "u8": "unsigned long long"},
}
_SUMS = {
    **{kind: (name, "unsigned long long") for kind, name in _INTEGERS.items()},
    **{"f4": ("float", "float"), "f8": ("double", "double")},
}
_SCANS = {
    kind: Program("compaction/scan.cu", ("scan",), (f"ELEMENT={element}", f"SUM={total}"), threads=_THREADS)
    for kind, (element, total) in _SUMS.items()
}


def scan(x: Any, shift: int, dtype: np.dtype) -> Any:
    """Return prefix sums in `dtype` of x (n,), contiguous; inclusive with `shift` 0, exclusive with `shift` 1."""
    import cupy

    with x.device:
        kind = "u8" if x.dtype.kind == "i" and x.itemsize == 8 else f"{x.dtype.kind}{x.itemsize}".replace("b", "u")
        program, result = _SCANS[kind], cupy.empty((len(x),), dtype)
        tiles, states = tiles_of(program, len(x), _ITEMS, words=2)
        if tiles:
            program.launch("scan", tiles, (x, np.int64(len(x)), np.int32(shift), result, states))
        return result


def tiles_of(program: Program, n: int, items: int, words: int = 1) -> tuple[int, Any]:
    """Return the number of tiles of n elements, and the zeroed states of the look-back with `words` words a tile."""
    import cupy

    tiles = math.ceil(n / (program.threads * items))
    return tiles, cupy.zeros((words * (tiles + 1),), np.uint64)
