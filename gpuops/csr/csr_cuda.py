"""Compressed sparse rows on a GPU: the CUDA half of `gpuops.csr`, kernels in csr.cu.

Nothing here waits for the device.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS, _ITEMS = 256, 11  # as in csr.cu

_TYPES = {"int32": "int", "int64": "long long"}
_PROGRAMS = {
    (offset, vertex): Program("csr/csr.cu", ("cut", "expand"), (f"OFFSET={_TYPES[offset]}", f"VERTEX={_TYPES[vertex]}"))
    for offset, vertex in product(_TYPES, repeat=2)
}


def tails(indptr: Any, arcs: int, dtype: np.dtype) -> Any:
    """The tail of every arc, (arcs,) of `dtype`."""
    import cupy

    n = len(indptr) - 1
    program = _PROGRAMS[indptr.dtype.name, dtype.name]
    tiles = math.ceil((n + arcs) / (_THREADS * _ITEMS))
    sizes = np.int64(n), np.int64(arcs)
    with indptr.device:
        result = cupy.empty((arcs,), dtype)
        if arcs:
            rows = cupy.empty((tiles + 1,), dtype)
            blocks = math.ceil((tiles + 1) / _THREADS)
            program.function("cut")((blocks,), (_THREADS,), (indptr, *sizes, np.int64(tiles), rows))
            program.function("expand")((tiles,), (_THREADS,), (indptr, rows, *sizes, result))
        return result


def transpose(indptr: Any, indices: Any) -> tuple[Any, Any, Any]:
    """`gpuops.csr.transpose`: a stable radix sort of the heads."""
    import cupy

    n, m = len(indptr) - 1, len(indices)
    with indptr.device:
        if m == 0:
            return cupy.zeros((n + 1,), indptr.dtype), cupy.empty((0,), indices.dtype), cupy.empty((0,), indptr.dtype)
        order = cupy.argsort(indices)  # stable, like all sorts of CuPy
        starts = cupy.searchsorted(indices[order], cupy.arange(n + 1, dtype=indices.dtype))
        sources = tails(indptr, m, indices.dtype)[order]
        return starts.astype(indptr.dtype), sources, order.astype(indptr.dtype)


def gather(values: Any, places: Any) -> Any:
    """``values[places]``."""
    return values[places]
