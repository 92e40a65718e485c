"""Min-plus products on a GPU: the CUDA half of `gpuops.minplus`, with the kernels of product.cu.

Products of small depth go to the kernels of shallow.cu.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuops._arithmetic import ARITHMETIC_NAMES, arithmetic_of, notices_nonnegative
from gpuops._cuda import Program, multiprocessors
from gpuops.minplus import shallow
from gpuops.minplus.packed import Packed
from gpuops.numbers import infinity

_SIDE = 16  # 16 x 16 threads compute a tile of C
_SLAB = 16  # the depth of a panel is p rounded up to a multiple of 16
_PACK = 32  # a block of a packing kernel copies a square of 32 x 32 words with 32 x 8 threads

# Largest depth of the products that write C without reading it. Their time goes into moving C, not into arithmetic.
_WRITES_ONCE = 64

# The rows and words that a thread computes, largest first, and the least number of tiles for each multiprocessor. 8 x 8
# words are fastest if a multiprocessor has two tiles at a time. Smaller shapes make more tiles, for smaller matrices.
_SHAPES = {(8, 8): 1.9, (4, 8): 1.0, (4, 4): 0.0}

# The kernels, by arithmetic, by the shape of a thread's words, and by whether they read C. Doubles come in 4 x 4 only,
# because 8 x 8 doubles would fill the registers.
_PROGRAMS = {
    (arithmetic, shape, reads_c): Program(
        "minplus/product.cu",
        ("pack_both", "relax", *(("pack_a", "pack_b") if reads_c else ())),
        (f"ARITHMETIC={arithmetic}", f"THREAD_ROWS={shape[0]}", f"THREAD_WORDS={shape[1]}", f"READS_C={int(reads_c)}"),
        threads=_SIDE * _SIDE,
    )
    for arithmetic in ARITHMETIC_NAMES
    for shape, reads_c in (*((shape, True) for shape in _SHAPES), ((8, 8), False))
    if (arithmetic != "Float64" or shape == (4, 4)) and (reads_c or not arithmetic.startswith("Nonnegative"))
}

_NULL = np.uintp(0)  # a null pointer
_NO_TILES = np.uint32(0), np.uint32(0)


def relax(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """Compute c = min(c, a (x) b) in place."""
    if nonnegative is None and notices_nonnegative(c.dtype):
        nonnegative = all(bool(x.min() >= 0) for x in (c, a, b) if x.size)
    _relax_alone(c, a, b, bool(nonnegative))


def multiply(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """Compute c = min(infinity, a (x) b); c overlaps neither a nor b."""
    depth = a.shape[1]
    if depth <= shallow.DEPTH:
        shallow.multiply(c, a, b, bool(nonnegative))
    elif depth <= _WRITES_ONCE and c.dtype != np.float64 and _fills(len(c), c.shape[1], c.dtype, c.device.id):
        _relax_alone(c, a, b, False, reads_c=False)
    elif c.size:
        c[...] = infinity(c.dtype)
        relax(c, a, b, nonnegative)


def relax_and_pack(rows: Any, a: Any, nonnegative: bool, kept: slice) -> Packed:
    """Compute rows = min(rows, a (x) rows) in place, but for the columns `kept`, and return them packed."""
    import cupy

    m, n = rows.shape
    with rows.device as device:
        tiling = _tiling(rows.dtype, nonnegative, m, n, device.id)
        panels = cupy.empty((tiling.across, panel_depth(m), tiling.words), tiling.word)
        _relax_tiling(rows, a, rows, tiling, panels, kept)
    return Packed(panels, m, n, tiling.program)


def relax_each(pairs: Sequence[tuple[Any, Any]], b: Packed, beside: Callable[[], None] | None) -> None:
    """Compute c = min(c, a (x) b) in place for every pair (c, a), then call `beside`."""
    import cupy

    depth, rows = b.panels.shape[1], _SIDE * int(b.program.macro("THREAD_ROWS"))
    for c, a in pairs:
        with c.device:
            a_panels = cupy.empty((math.ceil(len(c) / rows), depth, rows), b.panels.dtype)
            _launch_packing(b.program, "pack_a", a_panels, a, len(c), b.rows)
            _launch_relax(b.program, c, a_panels, b.panels, _NULL, len(a_panels) * len(b.panels), depth)
    if beside is not None:
        beside()


def pack(b: Any, nonnegative: bool, met_by: int | None, memory: Any) -> Packed:
    """Pack rows b; None as `memory`: into a new array."""
    p, n = b.shape
    with b.device as device:
        packed = _packed(memory, p, n, b.dtype, nonnegative, met_by, device.id)
        _launch_packing(packed.program, "pack_b", packed.panels, b, n, p)
    return packed


def packed_rows(memory: Any, p: int, n: int, dtype: np.dtype, nonnegative: bool) -> Packed:
    """Return the packed rows (p, n) in `memory`."""
    with memory.device as device:
        return _packed(memory, p, n, dtype, nonnegative, None, device.id)


def panel_columns(dtype: np.dtype) -> int:
    """Return the number of columns in a panel of rows that are packed for tall matrices."""
    name, lanes, _ = arithmetic_of(dtype, False)
    return _SIDE * (8 if (name, (8, 8), True) in _PROGRAMS else 4) * lanes


def panel_depth(p: int) -> int:
    """Return the depth of a panel of p rows."""
    return math.ceil(p / _SLAB) * _SLAB


# --- Tiles --------------------------------------------------------------------------------------------------------


def _across(n: int, dtype: Any, thread_tile: int) -> int:
    """Return the number of tiles that cover n columns."""
    return math.ceil(n / (_SIDE * thread_tile * arithmetic_of(dtype, False).lanes))


def _fills(m: int, n: int, dtype: Any, device: int, shape: tuple[int, int] = (8, 8), least: float = 1.0) -> bool:
    """Return whether a matrix (m, n) has at least `least` tiles of `shape` for each multiprocessor."""
    rows, words = shape
    return math.ceil(m / (_SIDE * rows)) * _across(n, dtype, words) >= least * multiprocessors(device)


class _Tiling(NamedTuple):
    """How a product is computed.

    Attributes
    ----------
    program : Program
    rows, words : int
        The size of a tile.
    across : int
        The number of panels of B.
    word : dtype
    """

    program: Program
    rows: int
    words: int
    across: int
    word: np.dtype


@functools.lru_cache(1024)
def _tiling(
    dtype: np.dtype, nonnegative: bool, met_by: int | None, n: int, device: int, reads_c: bool = True
) -> _Tiling:
    arithmetic, _, word = arithmetic_of(dtype, nonnegative)
    shape = next(
        shape
        for shape, least in _SHAPES.items()
        if (arithmetic, shape, reads_c) in _PROGRAMS
        and (met_by is None or not reads_c or _fills(met_by, n, dtype, device, shape, least))
    )
    rows, words = shape
    return _Tiling(_PROGRAMS[arithmetic, shape, reads_c], _SIDE * rows, _SIDE * words, _across(n, dtype, words), word)


def _packed(memory: Any, p: int, n: int, dtype: np.dtype, nonnegative: bool, met_by: int | None, device: int) -> Packed:
    import cupy

    program, _, words, across, word = _tiling(dtype, nonnegative, met_by, n, device)
    shape = across, panel_depth(p), words
    if memory is None:
        panels = cupy.empty(shape, word)
    else:
        panels = memory[: math.prod(shape) * word.itemsize].view(word).reshape(shape)
    return Packed(panels, p, n, program)


def _relax_alone(c: Any, a: Any, b: Any, nonnegative: bool, reads_c: bool = True) -> None:
    """Compute c = min(c, a (x) b) for b that is used once: one launch packs both operands."""
    with c.device as device:
        _relax_tiling(c, a, b, _tiling(b.dtype, nonnegative, *c.shape, device.id, reads_c), _NULL)


def _relax_tiling(c: Any, a: Any, b: Any, tiling: _Tiling, packed: Any, kept: slice = slice(0, 0)) -> None:
    import cupy

    (m, n), p = c.shape, len(b)
    program, rows, words, across, word = tiling
    down, depth = math.ceil(m / rows), panel_depth(p)
    length = down * rows + across * words
    panels = cupy.empty((depth * length,), word)
    if depth:
        grid = (length // _PACK, math.ceil(depth / _PACK))
        arguments = (panels, a, *_steps(a), *_int64s(m), b, *_steps(b), *_int64s(n, p, depth))
        program.launch("pack_both", grid, arguments, threads=(_PACK, 8))
    width = words * arithmetic_of(b.dtype, False).lanes  # of a tile, in columns
    kept_tiles = np.uint32(kept.start // width), np.uint32(math.ceil(kept.stop / width))
    _launch_relax(program, c, panels, _NULL, packed, down * across, depth, kept_tiles)


def _launch_relax(
    program: Program,
    c: Any,
    a_panels: Any,
    b_panels: Any,
    packed: Any,
    tiles: int,
    depth: int,
    kept: tuple[np.uint32, np.uint32] = _NO_TILES,
) -> None:
    sizes = _int64s(c.strides[0] // c.itemsize, *c.shape)
    program.launch("relax", tiles, (c, *sizes, a_panels, b_panels, *_int64s(depth), packed, *kept))


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
