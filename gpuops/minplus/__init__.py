"""Min-plus (tropical) products of dense matrices, the inner step of blocked Floyd-Warshall.

    (A (x) B)[i, j] = min over p of  A[i, p] + B[p, j]        C := min(C, A (x) B)

Both halves go the same way:

1. Copy A, transposed, and B into panels as wide as a tile of C, the last one filled up. From here on nothing
   overlaps C, loads are contiguous and no index is tested.
2. For every tile of C: hold it in registers, let p run, one addition and one minimum per relaxation.

A candidate is a single addition and min is exact, so the order of relaxations does not show, and the NumPy and the
CUDA half agree bit for bit. One exception: CuPy compiles with -ftz=true, so subnormal numbers are zero on a GPU.
-0.0 counts as +0.0, in operands and in results. NaN is not looked for, and its results are undefined.

B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, sections 4.1 and 4.2.
"""

from __future__ import annotations

import functools
import math
from itertools import product
from typing import Any

import numpy as np

from gpuops._cuda import Program, multiprocessors
from gpuops._threads import for_all
from gpuops.arrays import check_matrices, has_contiguous_rows, is_cupy, library_of, same_view
from gpuops.minplus.product_numba import ROWS, TASK_A_PANELS, TASK_B_PANELS, compile_for, tile_columns
from gpuops.minplus.product_numba import relax_register_tile as relax_register_tile  # the limit of a CPU, to benchmarks
from gpuops.numbers import infinity


def minplus_update(c: Any, a: Any, b: Any, *, out: Any = None, nonnegative: bool | None = None) -> Any:
    """Return ``min(c, a (x) b)``.

    Parameters
    ----------
    c : (m, n) array
    a : (m, p) array
    b : (p, n) array
        All NumPy or all CuPy, all float32, float64, int32 or int16. Unreachable is +inf, or for integers the
        inside infinity of `gpuops.numbers`, whose bound on distances applies: then no sum overflows, and no
        result exceeds infinity where `c` does not.
    out : (m, n) array, optional
        Receives the result. It may be `c`, and it may overlap any argument.
    nonnegative : bool, optional
        Only float32 and int16 on a GPU take notice: where no value is negative, other instructions do more
        relaxations per second. None looks, which costs a pass over the arguments and a wait for the device;
        True is the caller's word for it; False takes the general path.

    Raises
    ------
    TypeError
        Arrays of different libraries or dtypes, or of another dtype.
    ValueError
        Shapes that do not fit, or arrays on different devices.
    """
    matrices = {"c": c, "a": a, "b": b} | ({} if out is None else {"out": out})
    check_matrices(**matrices)
    (m, n), p = c.shape, a.shape[1]
    expected = {"c": (m, n), "a": (m, p), "b": (p, n), "out": (m, n)}
    for name, matrix in matrices.items():
        if matrix.shape != expected[name]:
            raise ValueError(
                f"{name} has shape {matrix.shape}; with c {c.shape} and a {a.shape} it must be {expected[name]}"
            )

    in_place = out is not None and same_view(c, out) and has_contiguous_rows(out)
    result = out if in_place else c.copy(order="C")
    relax(result, a, b, nonnegative)
    if out is None or in_place:
        return result
    out[...] = result
    return out


def minplus_product(a: Any, b: Any, *, out: Any = None, nonnegative: bool | None = None) -> Any:
    """Return ``a (x) b``, at most infinity: integers that stand for "unreachable" do not add up to more.

    Parameters
    ----------
    a : (m, p) array
    b : (p, n) array
        As for `minplus_update`.
    out : (m, n) array, optional
        Receives the result; it may overlap `a` and `b`. Without p, infinity.
    nonnegative : bool, optional
        As for `minplus_update`.

    Raises
    ------
    TypeError, ValueError
        As for `minplus_update`.
    """
    check_matrices(**({"a": a, "b": b} | ({} if out is None else {"out": out})))
    (m, p), n = a.shape, b.shape[1]
    if len(b) != p:
        raise ValueError(f"b has shape {b.shape}; with a {a.shape} it must have {p} rows")
    if out is not None and out.shape != (m, n):
        raise ValueError(f"out has shape {out.shape}; with a {a.shape} and b {b.shape} it must be {(m, n)}")
    apart = out is not None and has_contiguous_rows(out) and not library_of(out).may_share_memory(out, a)
    apart = apart and not library_of(out).may_share_memory(out, b)
    result = out if apart else library_of(a).empty((m, n), a.dtype)
    _multiply(result, a, b, nonnegative)
    if out is None or apart:
        return result
    out[...] = result
    return out


def relax(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """c = min(c, a (x) b) in place, for arguments already checked; c has contiguous rows and may overlap a and b."""
    if 0 in c.shape:
        return
    if is_cupy(c):
        _relax_cuda(c, a, b, nonnegative)
    else:
        _relax_numpy(c, a, b)


def _multiply(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """c = min(INF, a (x) b), for arguments already checked; c has contiguous rows and lies apart from a and b."""
    if is_cupy(c) and _is_large(c, 8) and a.shape[1] <= _SHALLOW and c.dtype != np.float64:
        _relax_cuda(c, a, b, nonnegative=False, reads_c=False)
    else:
        c[...] = infinity(c.dtype)
        relax(c, a, b, nonnegative)


# --- CPU: panels in cache, tiles in registers ---------------------------------------------------------------


def _relax_numpy(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    (m, n), p = c.shape, a.shape[1]
    pack, relax_tiles = compile_for(c.dtype)
    columns = tile_columns(c.itemsize)
    a_panels = _aligned_empty((math.ceil(m / ROWS), p, ROWS), c.dtype)
    b_panels = _aligned_empty((math.ceil(n / columns), p, columns), c.dtype)
    work = m * n * p
    for panels, x in (a_panels, a.T), (b_panels, b):
        for_all(functools.partial(pack, panels, x), range(0, len(panels), TASK_B_PANELS), work)
    corners = product(range(0, len(a_panels), TASK_A_PANELS), range(0, len(b_panels), TASK_B_PANELS))
    for_all(lambda corner: relax_tiles(c, a_panels, b_panels, *corner), corners, work)


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array that starts on a cache line; vector loads across two lines run at half speed."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


# --- CUDA: product.cu ---------------------------------------------------------------------------------

_SIDE = 16  # a tile of C is shared by 16 x 16 threads
_SLAB = 16  # p comes in multiples of it
_PACK = 32  # the packing kernels go by squares of 32 x 32, with 32 x 8 threads

_ARITHMETICS = ("Float32", "NonnegativeFloat32", "Float64", "Int32", "Int16", "NonnegativeInt16")

# A thread's share of a tile: 8 x 8 words are fastest, 4 x 4 make four times as many tiles of a small matrix. Doubles
# come in 4 x 4 only: 8 x 8 of them would fill the registers. Where C need not be read, that is worth it for large
# products of small depth, whose arithmetic does not matter.
_SHALLOW = 64
_PROGRAMS = {
    (arithmetic, thread_tile, reads_c): Program(
        "minplus/product.cu",
        ("pack_a", "pack_b", "relax"),
        (f"ARITHMETIC={arithmetic}", f"THREAD_TILE={thread_tile}", f"READS_C={int(reads_c)}"),
        threads=_SIDE * _SIDE,
    )
    for arithmetic in _ARITHMETICS
    for thread_tile, reads_c in ((8, True), (4, True), (8, False))
    if (arithmetic, thread_tile) != ("Float64", 8) and (reads_c or not arithmetic.startswith("Nonnegative"))
}


def _tiles(c: Any, thread_tile: int) -> tuple[int, int]:
    """How many tiles C has, down and across."""
    lanes = 2 if c.itemsize == 2 else 1
    return math.ceil(c.shape[0] / (_SIDE * thread_tile)), math.ceil(c.shape[1] / (_SIDE * thread_tile * lanes))


def _is_large(c: Any, thread_tile: int) -> bool:
    """Whether there is a tile for each multiprocessor."""
    return math.prod(_tiles(c, thread_tile)) >= multiprocessors(c.device.id)


def _relax_cuda(c: Any, a: Any, b: Any, nonnegative: bool | None, *, reads_c: bool = True) -> None:
    import cupy

    (m, n), p = c.shape, a.shape[1]
    with c.device:
        arithmetic = c.dtype.name.capitalize()
        if f"Nonnegative{arithmetic}" in _ARITHMETICS:
            if nonnegative is None:
                nonnegative = all(bool(x.min() >= 0) for x in (c, a, b) if x.size)
            if nonnegative:
                arithmetic = f"Nonnegative{arithmetic}"
        lanes = 2 if c.dtype.itemsize == 2 else 1

        thread_tile = 8 if arithmetic != "Float64" and _is_large(c, 8) else 4
        program = _PROGRAMS[arithmetic, thread_tile, reads_c]
        down, across = _tiles(c, thread_tile)
        tile = _SIDE * thread_tile
        depth = math.ceil(p / _SLAB) * _SLAB

        word = np.dtype(c.dtype if lanes == 1 else np.uint32)
        a_panels = cupy.empty((down, depth, tile), word)
        b_panels = cupy.empty((across, depth, tile), word)
        for entry, panels, x, length in ("pack_a", a_panels, a, m), ("pack_b", b_panels, b, n):
            if depth:
                grid = (len(panels) * tile // _PACK, math.ceil(depth / _PACK))
                strides = (stride // x.itemsize for stride in x.strides)
                sizes = map(np.int64, (*strides, length, p, depth))
                program.launch(entry, grid, (panels, x, *sizes), threads=(_PACK, 8))
        sizes = map(np.int64, (c.strides[0] // c.itemsize, m, n))
        arguments = (c, *sizes, a_panels, b_panels, np.int64(depth))
        program.launch("relax", down * across, arguments)
