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

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops._halves import half_of, half_on
from gpuops.arrays import check_matrices, contiguous_copy, has_contiguous_rows, is_cupy, library_of, same_view
from gpuops.minplus.packed import Packed as Packed

if TYPE_CHECKING:
    from gpuops.minplus.product_numba import ROWS as ROWS  # for benchmarks
    from gpuops.minplus.product_numba import relax_register_tile as relax_register_tile


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

    Examples
    --------
    >>> a = np.array([[0.0, 3.0], [1.0, 0.0]], "float32")
    >>> gpuops.minplus_update(np.full((2, 2), 2, "float32"), a, a)
    array([[0., 2.],
           [1., 0.]], dtype=float32)
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
    result = out if in_place else contiguous_copy(c)
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

    Examples
    --------
    >>> a = np.array([[0.0, 3.0], [1.0, 0.0]], "float32")
    >>> gpuops.minplus_product(a, a)
    array([[0., 3.],
           [1., 0.]], dtype=float32)
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
    half_of("minplus.product", result).multiply(result, a, b, nonnegative)
    if out is None or apart:
        return result
    out[...] = result
    return out


def relax(c: Any, a: Any, b: Any, nonnegative: bool | None) -> None:
    """Compute c = min(c, a (x) b) in place for checked arguments; c has contiguous rows and may overlap a and b."""
    if 0 not in c.shape:
        half_of("minplus.product", c).relax(c, a, b, nonnegative)


def relax_and_pack(rows: Any, a: Any, nonnegative: bool, kept: slice = slice(0, 0)) -> Packed:
    """Compute rows = min(rows, a (x) rows) in place and return them packed; a may overlap rows.

    A GPU leaves the columns `kept` as they are, which begin at a multiple of 1,024 and end at one or with the rows.
    """
    return half_of("minplus.product", rows).relax_and_pack(rows, a, nonnegative, *((kept,) if is_cupy(rows) else ()))


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
    half_on("minplus.product", b.program is not None).relax_each(pairs, b, beside)


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
    return half_of("minplus.product", b).pack(b, nonnegative, met_by, memory)


def packed_rows(memory: Any, p: int, n: int, dtype: Any, nonnegative: bool) -> Packed:
    """Return the packed rows (p, n) in `memory`, where `pack` has put them or will put them, at once or by parts."""
    return half_of("minplus.product", memory).packed_rows(memory, p, n, np.dtype(dtype), nonnegative)


def packed_place(p: int, columns: slice, dtype: Any, gpu: bool) -> slice:
    """Return which bytes of the memory of packed rows (p, any) hold some columns.

    The bytes are whole panels, so the columns can be packed by parts, each part into its own bytes. A part begins at a
    multiple of `packed_columns`.
    """
    dtype, width = np.dtype(dtype), packed_columns(dtype, gpu)
    assert columns.start % width == 0 or columns.start == columns.stop
    panel = width * dtype.itemsize * half_on("minplus.product", gpu).panel_depth(p)
    return slice(math.ceil(columns.start / width) * panel, math.ceil(columns.stop / width) * panel)


def packed_bytes(p: int, n: int, dtype: Any, gpu: bool) -> int:
    """Return the bytes of memory that `pack` needs for rows of the shape (p, n), on a GPU or a CPU."""
    return packed_place(p, slice(0, n), dtype, gpu).stop + (0 if gpu else half_on("minplus.product", gpu).LINE)


def packed_columns(dtype: Any, gpu: bool) -> int:
    """Return the number of columns in a panel of `pack`, on a GPU or a CPU."""
    return half_on("minplus.product", gpu).panel_columns(np.dtype(dtype))


def __getattr__(name: str) -> Any:
    if name in ("ROWS", "relax_register_tile"):
        return getattr(half_on("minplus.product", gpu=False), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
