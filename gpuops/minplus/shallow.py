"""Min-plus products of small depth on a GPU, whose time goes into writing C (shallow.cu)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._strips import SHAPES, WORDS

DEPTH = 32  # largest depth: deeper products are limited by arithmetic, and product.cu does more relaxations per second
_PACK = 32  # a block that packs copies a square of 32 x 32 words with 32 x 8 threads

_PROGRAMS = {
    arithmetic: shape.program("minplus/shallow.cu", ("pack_a", "pack_b", "multiply"), arithmetic)
    for arithmetic, shape in SHAPES.items()
}


def multiply(c: Any, a: Any, b: Any, nonnegative: bool) -> None:
    """Compute c = min(infinity, a (x) b); c has contiguous rows and overlaps neither a nor b."""
    import cupy

    (m, n), p = c.shape, a.shape[1]
    if not c.size:
        return
    arithmetic, lanes, word = arithmetic_of(c.dtype, nonnegative)
    program, shape = _PROGRAMS[arithmetic], SHAPES[arithmetic]
    depth, width = math.ceil(p / 2) * 2, shape.threads * WORDS
    strips = math.ceil(n / (width * lanes))
    whole = math.lcm(shape.rows, _PACK)
    panels_of_a = math.ceil(m / whole) * whole // shape.rows
    with c.device:
        panels = []
        for entry, x, length, count, row in ("pack_a", a, m, panels_of_a, shape.rows), ("pack_b", b, n, strips, width):
            panels.append(cupy.empty((count, depth, row), word))
            if depth:
                grid = count * row // _PACK, math.ceil(depth / _PACK)
                sizes = (*(stride // x.itemsize for stride in x.strides), length, p, depth)
                program.launch(entry, grid, (panels[-1], x, *map(np.int64, sizes)), threads=(_PACK, 8))
        grid, turns = shape.grid(strips, m, c.device.id)
        of_c = map(np.int64, (c.strides[0] // c.itemsize, m, n))
        program.launch("multiply", grid, (c, *of_c, *panels, np.int32(depth), turns))
