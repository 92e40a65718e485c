"""Min-plus (tropical) products of dense matrices, the inner step of blocked Floyd-Warshall.

    (A (x) B)[i, j] = min over p of  A[i, p] + B[p, j]        C := min(C, A (x) B)

The CPU and the GPU take the same two steps:

1. Copy A, transposed, and B into panels as wide as a tile of C; the last panel is padded. The panels never overlap C,
   their elements are contiguous, and the loop over p needs no bounds checks.
2. For every tile of C: keep the tile in registers while p runs, with one addition and one minimum per relaxation.

A candidate is a single addition and a minimum is exact, so the result does not depend on the order of relaxations, and
a CPU and a GPU agree bit for bit. One exception: CuPy compiles with -ftz=true, so a GPU treats subnormal numbers as
zero. -0.0 counts as +0.0, in operands and in results. NaN is not checked for; results computed from NaN are undefined.

B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, sections 4.1 and 4.2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gpuops._arithmetic import ARITHMETIC_NAMES, arithmetic_of, notices_nonnegative
from gpuops._cuda import Program, multiprocessors
from gpuops._threads import for_all
from gpuops.arrays import check_matrices, has_contiguous_rows, is_cupy, library_of, same_view
from gpuops.minplus import shallow
from gpuops.minplus.product_numba import ROWS, TASK_A_PANELS, TASK_B_PANELS, compile_for, tile_columns
from gpuops.minplus.product_numba import relax_register_tile as relax_register_tile  # for benchmarks
from gpuops.numbers import infinity


def minplus_update(c: Any, a: Any, b: Any, *, out: Any = None, nonnegative: bool | None = None) -> Any:
    """Return ``min(c, a (x) b)``.

    Parameters
    ----------
    c : (m, n) array
    a : (m, p) array
    b : (p, n) array
        All NumPy or all CuPy, all float32, float64, int32 or int16. Unreachable is +inf, or for integers the
        inside infinity of `gpuops.numbers`. The bound that `gpuops.numbers` sets on distances applies: within it
        no sum overflows, and no result exceeds infinity where `c` does not.
    out : (m, n) array, optional
        Receives the result. It may be `c`, and it may overlap any argument.
    nonnegative : bool, optional
        Whether no value is negative. Only float32 and int16 on a GPU make use of it: faster instructions exist for
        values that are not negative. None checks the arguments, which costs a pass over them and a wait for the
        device. Pass True if you know that no value is negative; it is not checked. False uses the general
        instructions.

    Raises
    ------
    TypeError
        Arrays of different libraries or dtypes, or of an unsupported dtype.
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
    """Return ``min(infinity, a (x) b)``: two integers that stand for "unreachable" add up to "unreachable".

    Parameters
    ----------
    a : (m, p) array
    b : (p, n) array
        As for `minplus_update`.
    out : (m, n) array, optional
        Receives the result; it may overlap `a` and `b`. The result is infinity everywhere if p is 0.
    nonnegative : bool, optional
        As for `minplus_update`, but on a GPU products of small depth p do not check: there None means False. Small is
        up to 32, for large results up to 64.

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


class Packed(NamedTuple):
    """Rows B in the layout that products ``min(c, a (x) B)`` read; `pack` makes it once for many products."""

    panels: Any  # (panels, depth, width)
    rows: int
    columns: int
    program: Any  # the kernels on a GPU, None on a CPU


def relax(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """Compute c = min(c, a (x) b) in place for checked arguments; c has contiguous rows and may overlap a and b."""
    if 0 in c.shape:
        return
    if is_cupy(c):
        if nonnegative is None and notices_nonnegative(c.dtype):
            nonnegative = all(bool(x.min() >= 0) for x in (c, a, b) if x.size)
        return _relax_cuda_alone(c, a, b, bool(nonnegative))
    relax_packed(c, a, pack(b, False, met_by=len(c)))


def relax_and_pack(rows: Any, a: Any, nonnegative: bool) -> Packed:
    """Compute rows = min(rows, a (x) rows) in place and return them packed; a may overlap rows."""
    if is_cupy(rows):
        return _relax_and_pack_cuda(rows, a, nonnegative)
    relax(rows, a, rows, nonnegative)
    return pack(rows, nonnegative)


def relax_packed(c: Any, a: Any, b: Packed) -> None:
    """Compute c = min(c, a (x) b) in place like `relax`, for packed rows b; c may overlap a."""
    relax_each([(c, a)], b)


def relax_each(pairs: Sequence[tuple[Any, Any]], b: Packed, beside: Callable[[], None] | None = None) -> None:
    """Compute c = min(c, a (x) b) in place for every pair (c, a), like `relax_packed`.

    `beside` is called as well; it must not touch these arrays. On a CPU one thread calls it while the other threads
    compute products; on a GPU it is called after the launches.
    """
    pairs = [(c, a) for c, a in pairs if 0 not in c.shape]
    for c, a in pairs:
        assert (a.shape[1], c.shape[1]) == (b.rows, b.columns)
    if b.program is None:
        return _relax_numpy(pairs, b, beside)
    for c, a in pairs:
        _relax_cuda(c, a, b)
    if beside is not None:
        beside()


def pack(b: Any, nonnegative: bool, *, met_by: int | None = None, memory: Any = None) -> Packed:
    """Pack rows b for products with a tall `c`.

    Parameters
    ----------
    b : (p, n) array
    nonnegative : bool
        As for `minplus_update`, but not None.
    met_by : int, optional
        Number of rows of `c`; None if there are many.
    memory : uint8 (`packed_bytes`) array of the same library, optional
        Where to put the packed rows.
    """
    return (_pack_cuda if is_cupy(b) else _pack_numpy)(b, nonnegative, met_by, memory)


def packed_rows(memory: Any, p: int, n: int, dtype: Any, nonnegative: bool) -> Packed:
    """Return the packed rows (p, n) in `memory`, where `pack` has put them or will put them, at once or by parts."""
    if is_cupy(memory):
        with memory.device as device:
            return _packed_cuda(memory, p, n, np.dtype(dtype), nonnegative, None, device.id)
    return _packed_numpy(memory, p, n, np.dtype(dtype))


def packed_place(p: int, columns: slice, dtype: Any, gpu: bool) -> slice:
    """Return which bytes of the memory of packed rows (p, any) hold some columns.

    The bytes are whole panels, so the columns can be packed by parts, each part into its own bytes. A part begins at a
    multiple of `packed_columns`.
    """
    dtype, width = np.dtype(dtype), packed_columns(dtype, gpu)
    assert columns.start % width == 0 or columns.start == columns.stop
    panel = width * dtype.itemsize * (math.ceil(p / _SLAB) * _SLAB if gpu else p)
    return slice(math.ceil(columns.start / width) * panel, math.ceil(columns.stop / width) * panel)


def packed_bytes(p: int, n: int, dtype: Any, gpu: bool) -> int:
    """Return the bytes of memory that `pack` needs for rows of the shape (p, n), on a GPU or a CPU."""
    return packed_place(p, slice(0, n), dtype, gpu).stop + (0 if gpu else _LINE)


def packed_columns(dtype: Any, gpu: bool) -> int:
    """Return the number of columns in a panel of `pack`, on a GPU or a CPU."""
    dtype = np.dtype(dtype)
    if not gpu:
        return tile_columns(dtype.itemsize)
    name, lanes, _ = arithmetic_of(dtype, False)
    return _SIDE * (8 if (name, 8, True) in _PROGRAMS else 4) * lanes


def _multiply(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """Compute c = min(infinity, a (x) b) for checked arguments; c has contiguous rows and overlaps neither a nor b."""
    if is_cupy(c) and a.shape[1] <= shallow.DEPTH:
        shallow.multiply(c, a, b, bool(nonnegative))
        return
    writes_once = a.shape[1] <= _WRITES_ONCE and c.dtype != np.float64
    if is_cupy(c) and writes_once and _fills(len(c), c.shape[1], c.dtype, c.device.id):
        _relax_cuda_alone(c, a, b, False, reads_c=False)
    else:
        c[...] = infinity(c.dtype)
        relax(c, a, b, nonnegative)


# --- CPU: panels in cache, tiles in registers ---------------------------------------------------------------

_LINE = 64  # bytes of a cache line; vector loads that cross into the next line run at half speed


def _pack_numpy(b: np.ndarray, _nonnegative: bool, met_by: int | None, memory: np.ndarray | None) -> Packed:
    p, n = b.shape
    pack_panels, _ = compile_for(b.dtype)
    packed = _packed_numpy(memory, p, n, b.dtype)
    tasks = range(0, len(packed.panels), TASK_B_PANELS)
    for_all(functools.partial(pack_panels, packed.panels, b), tasks, n * p * (met_by or n))
    return packed


def _packed_numpy(memory: np.ndarray | None, p: int, n: int, dtype: np.dtype) -> Packed:
    width = tile_columns(dtype.itemsize)
    return Packed(_aligned_empty((math.ceil(n / width), p, width), dtype, memory), p, n, None)


def _relax_numpy(pairs: Sequence[tuple[np.ndarray, np.ndarray]], b: Packed, beside: Callable[[], None] | None) -> None:
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


def _call(task: Callable[[], None]) -> None:
    task()


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype, memory: np.ndarray | None = None) -> np.ndarray:
    """Return an array that starts on a cache line, in `memory` if given."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _LINE, np.uint8) if memory is None else memory
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)


# --- CUDA: product.cu ---------------------------------------------------------------------------------

_SIDE = 16  # 16 x 16 threads compute a tile of C
_SLAB = 16  # the depth of a panel is p rounded up to a multiple of 16
_PACK = 32  # a block of a packing kernel copies a square of 32 x 32 words with 32 x 8 threads

# Largest depth of the products that write C without reading it. Their time goes into moving C, not into arithmetic.
_WRITES_ONCE = 64

# The kernels, by arithmetic, by the side of the square of words that a thread computes, and by whether they read C.
# Squares of 8 x 8 words are fastest; 4 x 4 make four times as many tiles, for small matrices. Doubles come in 4 x 4
# only, because 8 x 8 doubles would fill the registers.
_PROGRAMS = {
    (arithmetic, thread_tile, reads_c): Program(
        "minplus/product.cu",
        ("pack_both", "relax", *(("pack_a", "pack_b") if reads_c else ())),
        (f"ARITHMETIC={arithmetic}", f"THREAD_TILE={thread_tile}", f"READS_C={int(reads_c)}"),
        threads=_SIDE * _SIDE,
    )
    for arithmetic in ARITHMETIC_NAMES
    for thread_tile, reads_c in ((8, True), (4, True), (8, False))
    if (arithmetic, thread_tile) != ("Float64", 8) and (reads_c or not arithmetic.startswith("Nonnegative"))
}


def _across(n: int, dtype: Any, thread_tile: int) -> int:
    """Return the number of tiles that cover n columns."""
    return math.ceil(n / (_SIDE * thread_tile * arithmetic_of(dtype, False).lanes))


def _fills(m: int, n: int, dtype: Any, device: int) -> bool:
    """Return whether a matrix (m, n) has at least one tile of 8 x 8 words a thread for each multiprocessor."""
    return math.ceil(m / (_SIDE * 8)) * _across(n, dtype, 8) >= multiprocessors(device)


class _Tiling(NamedTuple):
    """How a product is computed: the program, the side of a tile in words, the panels of B, and the dtype of words."""

    program: Program
    tile: int
    across: int
    word: np.dtype


@functools.lru_cache(1024)
def _tiling(
    dtype: np.dtype, nonnegative: bool, met_by: int | None, n: int, device: int, reads_c: bool = True
) -> _Tiling:
    arithmetic, _, word = arithmetic_of(dtype, nonnegative)
    large = (arithmetic, 8, reads_c) in _PROGRAMS and (met_by is None or _fills(met_by, n, dtype, device))
    thread_tile = 8 if large else 4
    return _Tiling(
        _PROGRAMS[arithmetic, thread_tile, reads_c], _SIDE * thread_tile, _across(n, dtype, thread_tile), word
    )


def _pack_cuda(b: Any, nonnegative: bool, met_by: int | None, memory: Any) -> Packed:
    p, n = b.shape
    with b.device as device:
        packed = _packed_cuda(memory, p, n, b.dtype, nonnegative, met_by, device.id)
        _launch_packing(packed.program, "pack_b", packed.panels, b, n, p)
    return packed


def _packed_cuda(
    memory: Any, p: int, n: int, dtype: np.dtype, nonnegative: bool, met_by: int | None, device: int
) -> Packed:
    import cupy

    program, tile, across, word = _tiling(dtype, nonnegative, met_by, n, device)
    shape = across, math.ceil(p / _SLAB) * _SLAB, tile
    if memory is None:
        panels = cupy.empty(shape, word)
    else:
        panels = memory[: math.prod(shape) * word.itemsize].view(word).reshape(shape)
    return Packed(panels, p, n, program)


def _relax_cuda(c: Any, a: Any, b: Packed) -> None:
    import cupy

    _, depth, tile = b.panels.shape
    with c.device:
        a_panels = cupy.empty((math.ceil(len(c) / tile), depth, tile), b.panels.dtype)
        _launch_packing(b.program, "pack_a", a_panels, a, len(c), b.rows)
        _launch_relax(b.program, c, a_panels, b.panels, _NULL, len(a_panels) * len(b.panels))


def _relax_cuda_alone(c: Any, a: Any, b: Any, nonnegative: bool, reads_c: bool = True) -> None:
    """Compute c = min(c, a (x) b) like `_relax_cuda`, for b that is used once: one launch packs both operands."""
    with c.device as device:
        _relax_tiling(c, a, b, _tiling(b.dtype, nonnegative, *c.shape, device.id, reads_c), _NULL)


def _relax_and_pack_cuda(rows: Any, a: Any, nonnegative: bool) -> Packed:
    import cupy

    m, n = rows.shape
    with rows.device as device:
        tiling = _tiling(rows.dtype, nonnegative, m, n, device.id)
        panels = cupy.empty((tiling.across, math.ceil(m / _SLAB) * _SLAB, tiling.tile), tiling.word)
        _relax_tiling(rows, a, rows, tiling, panels)
    return Packed(panels, m, n, tiling.program)


def _relax_tiling(c: Any, a: Any, b: Any, tiling: _Tiling, packed: Any) -> None:
    import cupy

    (m, n), p = c.shape, len(b)
    program, tile, across, word = tiling
    down, depth = math.ceil(m / tile), math.ceil(p / _SLAB) * _SLAB
    panels = cupy.empty((down + across, depth, tile), word)
    if depth:
        grid = ((down + across) * tile // _PACK, math.ceil(depth / _PACK))
        arguments = (panels, a, *_steps(a), *_int64s(m), b, *_steps(b), *_int64s(n, p, depth))
        program.launch("pack_both", grid, arguments, threads=(_PACK, 8))
    _launch_relax(program, c, panels, _NULL, packed, down * across)


_NULL = np.uintp(0)  # a null pointer


def _launch_relax(program: Program, c: Any, a_panels: Any, b_panels: Any, packed: Any, tiles: int) -> None:
    sizes = _int64s(c.strides[0] // c.itemsize, *c.shape)
    program.launch("relax", tiles, (c, *sizes, a_panels, b_panels, *_int64s(a_panels.shape[1]), packed))


def _steps(x: Any) -> tuple[np.int64, ...]:
    """Return the strides of rows and of columns, in elements."""
    down, across = x.strides
    return _int64s(down // x.itemsize, across // x.itemsize)


@functools.lru_cache(4096)
def _int64s(*values: int) -> tuple[np.int64, ...]:
    """Return arguments of a launch, cached: making seven NumPy scalars takes as long as the launch."""
    return tuple(map(np.int64, values))


def _launch_packing(program: Program, entry: str, panels: Any, x: Any, length: int, p: int) -> None:
    """Pack a matrix a (length, p) or b (p, length), as `entry` says."""
    count, depth, tile = panels.shape
    if count and depth:
        grid = (count * tile // _PACK, math.ceil(depth / _PACK))
        program.launch(entry, grid, (panels, x, *_steps(x), *_int64s(length, p, depth)), threads=(_PACK, 8))
