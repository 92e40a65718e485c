"""Compressed sparse rows on a GPU: the CUDA half of `gpuops.csr`, kernels in csr.cu.

Only `bounds` waits for the device.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from gpuops._copies_cuda import argsort
from gpuops._cuda import Program, struct

_THREADS, _ITEMS = 256, 11  # as in csr.cu

_TYPES = {np.dtype("int32"): "int", np.dtype("int64"): "long long"}
_ENTRIES = ("cut", "expand", "look_over")
_PROGRAMS = {
    (offset, vertex): Program("csr/csr.cu", _ENTRIES, (f"OFFSET={_TYPES[offset]}", f"VERTEX={_TYPES[vertex]}"))
    for offset, vertex in product(_TYPES, repeat=2)
}


_MOST_BLOCKS = 1024
_BOUNDS = struct("csr/csr.cu", "Bounds")


def bounds(indptr: Any, indices: Any) -> tuple[bool, int, int]:
    """Check the rows and bound the heads, in one kernel: CuPy takes seconds to compile its first reduction.

    Returns
    -------
    rises : bool
        Whether `indptr` rises from 0 to the number of arcs.
    least, largest : int
        The least head, but at most 0, and the largest head, but at least -1.
    """
    import cupy

    indptr, indices = (x if x.dtype in _TYPES else x.astype(np.int64) for x in (indptr, indices))
    indptr, indices = (x if x.flags.c_contiguous else x.copy() for x in (indptr, indices))
    n, m = len(indptr) - 1, len(indices)
    program = _PROGRAMS[indptr.dtype, indices.dtype]
    with indptr.device:
        result = cupy.zeros((_BOUNDS.itemsize,), np.uint8)
        blocks = min(_MOST_BLOCKS, math.ceil(max(n, m, 1) / _THREADS))
        arguments = indptr, indices, np.int64(n), np.int64(m), result
        program.launch("look_over", blocks, arguments, threads=_THREADS)
        found = result.get().view(_BOUNDS)[0]
    rises = not found["falls"] and found["first"] == 0 and found["last"] == m
    return bool(rises), -int(found["below"]), int(found["most"]) - 1


def tails(indptr: Any, arcs: int, dtype: np.dtype) -> Any:
    """Return the tail of every arc, (arcs,) of `dtype`."""
    import cupy

    n = len(indptr) - 1
    program = _PROGRAMS[indptr.dtype, dtype]
    tiles = math.ceil((n + arcs) / (_THREADS * _ITEMS))
    sizes = np.int64(n), np.int64(arcs)
    with indptr.device:
        result = cupy.empty((arcs,), dtype)
        if arcs:
            rows = cupy.empty((tiles + 1,), dtype)
            blocks = math.ceil((tiles + 1) / _THREADS)
            program.launch("cut", blocks, (indptr, *sizes, np.int64(tiles), rows), threads=_THREADS)
            program.launch("expand", tiles, (indptr, rows, *sizes, result), threads=_THREADS)
        return result


def transpose(indptr: Any, indices: Any) -> tuple[Any, Any, Any]:
    """Return `gpuops.csr.transpose` of a graph, by a stable radix sort of the heads."""
    import cupy

    n, m = len(indptr) - 1, len(indices)
    with indptr.device:
        if m == 0:
            return cupy.zeros((n + 1,), indptr.dtype), cupy.empty((0,), indices.dtype), cupy.empty((0,), indptr.dtype)
        order = argsort(indices)  # stable
        starts = cupy.searchsorted(indices[order], cupy.arange(n + 1, dtype=indices.dtype))
        sources = tails(indptr, m, indices.dtype)[order]
        return starts.astype(indptr.dtype), sources, order.astype(indptr.dtype)
