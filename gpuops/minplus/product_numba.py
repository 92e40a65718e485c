"""Min-plus products on a CPU: panels stay in cache, and a tile of C stays in vector registers while p runs.

Loops that Numba compiles keep C in memory, and on AVX-512 machines LLVM vectorizes them for 256-bit registers, half of
the width; together that costs half of the speed. So the innermost loop is written in LLVM IR with explicit vectors.
Where the machine has narrower registers, LLVM splits the vectors, and the result is the same.

K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpuops._compiled_numba import compiled
from gpuops._threads import for_all
from gpuops._vectors_numba import ROWS, VECTOR_BYTES
from gpuops.minplus.packed import Packed
from gpuops.numbers import infinity

_VECTORS = 2

# A task relaxes 128 rows and 16 panels of columns of C, 128 values of p at a time. With AVX-512 and float32 that is 512
# columns: the task's block of A (64 KiB) stays in the second-level cache, and each panel of B (16 KiB) in the first.
TASK_A_PANELS = 128 // ROWS
TASK_B_PANELS = 16
_DEPTH = 128

LINE = 64  # bytes of a cache line; vector loads that cross into the next line run at half speed


def relax(c: np.ndarray, a: np.ndarray, b: np.ndarray, _nonnegative: bool | None) -> None:
    """Compute c = min(c, a (x) b) in place."""
    relax_each([(c, a)], pack(b, False, len(c), None), None)


def multiply(c: np.ndarray, a: np.ndarray, b: np.ndarray, nonnegative: bool | None) -> None:
    """Compute c = min(infinity, a (x) b); c overlaps neither a nor b."""
    if c.size:
        c[...] = infinity(c.dtype)
        relax(c, a, b, nonnegative)


def relax_and_pack(rows: np.ndarray, a: np.ndarray, nonnegative: bool) -> Packed:
    """Compute rows = min(rows, a (x) rows) in place and return them packed."""
    if rows.size:
        relax(rows, a, rows, nonnegative)
    return pack(rows, nonnegative, None, None)


def relax_each(pairs: Sequence[tuple[np.ndarray, np.ndarray]], b: Packed, beside: Callable[[], None] | None) -> None:
    """Compute c = min(c, a (x) b) in place for every pair (c, a), while one thread calls `beside`."""
    p = b.rows
    packings, tiles, work = [], [] if beside is None else [beside], 0
    for c, a in pairs:
        pack_panels, relax_tiles = compile_for(c.dtype)
        a_panels = _aligned_empty((math.ceil(len(c) / ROWS), p, ROWS), c.dtype)
        starts = range(0, len(a_panels), TASK_B_PANELS)
        packings += [functools.partial(pack_panels, a_panels, a.T, start) for start in starts]
        corners = product(range(0, len(a_panels), TASK_A_PANELS), range(0, len(b.panels), TASK_B_PANELS))
        tiles += [functools.partial(relax_tiles, c, a_panels, b.panels, *corner) for corner in corners]
        work += c.size * p
    for_all(_call, packings, work)
    for_all(_call, tiles, work)


def pack(b: np.ndarray, nonnegative: bool, met_by: int | None, memory: np.ndarray | None) -> Packed:
    """Pack rows b; None as `memory`: into a new array."""
    p, n = b.shape
    pack_panels, _ = compile_for(b.dtype)
    packed = packed_rows(memory, p, n, b.dtype, nonnegative)
    tasks = range(0, len(packed.panels), TASK_B_PANELS)
    for_all(functools.partial(pack_panels, packed.panels, b), tasks, n * p * (met_by or n))
    return packed


def packed_rows(memory: np.ndarray | None, p: int, n: int, dtype: np.dtype, _nonnegative: bool) -> Packed:
    """Return the packed rows (p, n) in `memory`."""
    width = panel_columns(dtype)
    return Packed(_aligned_empty((math.ceil(n / width), p, width), dtype, memory), p, n, None)


def panel_columns(dtype: np.dtype) -> int:
    """Return the number of columns in a panel of packed rows, and of C in a register tile."""
    return _VECTORS * VECTOR_BYTES // dtype.itemsize


def panel_depth(p: int) -> int:
    """Return the depth of a panel of p rows."""
    return p


def _call(task: Callable[[], None]) -> None:
    task()


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype, memory: np.ndarray | None = None) -> np.ndarray:
    """Return an array that starts on a cache line, in `memory` if given."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + LINE, np.uint8) if memory is None else memory
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(dtype).reshape(shape)


# --- Loops --------------------------------------------------------------------------------------------------------


@functools.cache
def compile_for(dtype: np.dtype) -> tuple[Any, Any]:
    """Return `_pack` and `_relax_tiles` compiled for a dtype.

    One signature serves every layout; otherwise each combination of contiguous and strided arrays would be compiled.
    """
    scalar = numba.from_dtype(dtype)
    matrix, operand = types.Array(scalar, 2, "A"), types.Array(scalar, 2, "A", readonly=True)
    panels, index = types.Array(scalar, 3, "C"), types.intp
    return (
        compiled(types.void(panels, operand, index), _pack),
        compiled(types.void(matrix, panels, panels, index, index), _relax_tiles),
    )


def _pack(panels, x, first):
    """Copy columns of x (depth, any) into TASK_B_PANELS of `panels` (count, depth, width), from panel `first` on."""
    count, depth, width = panels.shape
    for panel in range(first, min(first + TASK_B_PANELS, count)):
        start = panel * width
        inside = min(width, x.shape[1] - start)
        for p in range(depth):
            for s in range(inside):
                panels[panel, p, s] = x[p, start + s] + 0  # turns -0.0 into +0.0
            for s in range(inside, width):
                panels[panel, p, s] = 0  # padding: sums with it are not stored


def _relax_tiles(c, a_panels, b_panels, first_i, first_j):
    """Compute c = min(c, a (x) b) for one task, from row panel `first_i` and column panel `first_j` on."""
    m, n = c.shape
    depth, columns = b_panels.shape[1:]
    edge = np.zeros((ROWS, columns), c.dtype)
    for first in range(0, max(depth, 1), _DEPTH):
        last = min(first + _DEPTH, depth)
        for j in range(first_j, min(first_j + TASK_B_PANELS, b_panels.shape[0])):
            width = min(columns, n - j * columns)
            for i in range(first_i, min(first_i + TASK_A_PANELS, a_panels.shape[0])):
                height = min(ROWS, m - i * ROWS)
                tile = c[i * ROWS :, j * columns :]
                if height == ROWS and width == columns:
                    relax_register_tile(tile, a_panels[i], b_panels[j], first, last)
                    continue
                for r in range(height):
                    for s in range(width):
                        edge[r, s] = tile[r, s]
                relax_register_tile(edge, a_panels[i], b_panels[j], first, last)
                for r in range(height):
                    for s in range(width):
                        tile[r, s] = edge[r, s]


@intrinsic
def relax_register_tile(typingctx, c, a, b, first, last):
    """Return a nopython function that computes c = min(c, a (x) b) on one tile, for p in [first, last).

    c : (ROWS, columns) view, unit inner stride
    a : (depth, ROWS) packed, the rows of A side by side
    b : (depth, columns) packed
    """

    def codegen(context, builder, signature, arguments):
        c, a, b = (
            context.make_array(array_type)(context, builder, value)
            for array_type, value in zip(signature.args[:3], arguments[:3], strict=True)
        )
        element_type = signature.args[0].dtype
        element = context.get_data_type(element_type)
        itemsize = element_type.bitwidth // 8
        lanes = VECTOR_BYTES // itemsize
        vector = ir.VectorType(element, lanes)
        index = ir.IntType(64)

        def load(pointer, type_):
            return builder.load(builder.bitcast(pointer, type_.as_pointer()), align=itemsize)

        def broadcast(scalar):
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
            order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
            return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), order)

        def add(x, y):
            return builder.fadd(x, y) if isinstance(element_type, types.Float) else builder.add(x, y)

        def less(x, y):
            is_float = isinstance(element_type, types.Float)
            return builder.fcmp_ordered("<", x, y) if is_float else builder.icmp_signed("<", x, y)

        row_bytes = cgutils.unpack_tuple(builder, c.strides)[0]
        start = builder.ptrtoint(c.data, index)
        pointers, tile = {}, {}
        for r, v in product(range(ROWS), range(_VECTORS)):
            offset = builder.add(builder.mul(row_bytes, index(r)), index(v * VECTOR_BYTES))
            pointers[r, v] = builder.inttoptr(builder.add(start, offset), vector.as_pointer())
            # Adding 0 turns -0.0 into +0.0. LLVM promotes the stack slots to registers.
            zero = ir.Constant(vector, [0] * lanes)
            tile[r, v] = cgutils.alloca_once_value(builder, add(load(pointers[r, v], vector), zero))

        with cgutils.for_range_slice(builder, *arguments[3:], index(1)) as (p, _):
            b_row = builder.gep(b.data, [builder.mul(p, index(_VECTORS * lanes))])
            b_vectors = [load(builder.gep(b_row, [index(v * lanes)]), vector) for v in range(_VECTORS)]
            a_column = builder.gep(a.data, [builder.mul(p, index(ROWS))])
            for r in range(ROWS):
                a_vector = broadcast(load(builder.gep(a_column, [index(r)]), element))
                for v in range(_VECTORS):
                    best = builder.load(tile[r, v])
                    candidate = add(a_vector, b_vectors[v])
                    # In this order of operands the selection is exactly vminps, infinities included.
                    shorter = builder.select(less(candidate, best), candidate, best)
                    builder.store(shorter, tile[r, v])

        for key, pointer in pointers.items():
            builder.store(builder.load(tile[key]), pointer, align=itemsize)
        return context.get_dummy_value()

    return types.void(c, a, b, types.intp, types.intp), codegen
