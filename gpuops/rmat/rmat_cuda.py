"""R-MAT edges on a GPU: the CUDA half of `gpuops.rmat`, kernels in rmat.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program, struct

_THREADS = 256
_VALUES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
_PROGRAMS = {
    np.dtype(name): Program(
        "rmat/rmat.cu", ("edges", "count_arcs", "place_arcs"), (f"VALUE={value}",), threads=_THREADS
    )
    for name, value in _VALUES.items()
}

_DRAWING = struct("rmat/rmat.cu", "Drawing")


def edges(drawing: Any, start: int, stop: int) -> tuple[Any, Any, Any]:
    """Return the edges numbered `start` to `stop` - 1."""
    import cupy

    size = stop - start
    tails, heads = cupy.empty((size,), np.int32), cupy.empty((size,), np.int32)
    weights = cupy.empty((size,), drawing.dtype)
    _launch(drawing, "edges", size, np.uint64(start), np.uint64(size), tails, heads, weights)
    return tails, heads, weights


def rows(drawing: Any, first: int, last: int) -> tuple[Any, Any, Any]:
    """Return the arcs out of the vertices `first` to `last` - 1, in CSR."""
    import cupy

    count, size = last - first, drawing.edges
    given = np.uint64(size), np.uint32(first), np.uint32(count)
    degrees, indptr = cupy.zeros((count,), np.int32), cupy.zeros((count + 1,), np.int64)
    _launch(drawing, "count_arcs", size, *given, degrees)
    indptr[1:] = degrees.cumsum(dtype=np.int64)
    del degrees
    m = int(indptr[-1])
    indices, weights = cupy.empty((m,), np.int32), cupy.empty((m,), drawing.dtype)
    _launch(drawing, "place_arcs", size, *given, indptr[:-1].copy().view(np.uint64), indices, weights)
    return indptr, indices, weights


def _launch(drawing: Any, entry: str, size: int, *arguments: Any) -> None:
    import cupy

    if not size:
        return
    facts = np.zeros(1, _DRAWING)
    facts["seed"], facts["limits"], facts["scale"] = drawing.seed, drawing.limits, drawing.scale
    facts["scrambles"], facts["integers"], facts["both"] = (
        len(drawing.scramble) > 0,
        drawing.integers,
        drawing.symmetric,
    )
    if drawing.scramble:
        facts["scrambled"], facts["shift"] = drawing.scramble, (drawing.scale + 1) // 2
    facts["bits"] = np.finfo(drawing.dtype).nmant + 1 if drawing.dtype.kind == "f" else 0
    program = _PROGRAMS[drawing.dtype]
    program.launch(entry, math.ceil(size / program.threads), (cupy.asarray(facts.view(np.uint8)), *arguments))
