"""Reductions of arrays by butterfly: sums, products, extremes and their places, bitwise and logical operations.

In step b, for b = n / 2, ..., 2, 1, element i is combined with element i xor b. Both elements take the result, so after
log2 n steps each of n threads has the reduction. An array of any length goes through the same tree on every device:

1. A row is cut into tiles of 4,096 elements, a tile into 16 lines of 256. The last tile is filled up with the identity.
2. In each of the 256 columns of a tile, elements are combined line after line.
3. The columns are combined by butterfly: column i with column i xor b, b = 128, 64, ..., 1.
4. The results of the tiles of a row form a new row, which is reduced in the same way until one element is left.

The tree depends only on the length. So a sum of floats has the same bits on NumPy and CuPy, for any number of threads
or blocks, and for a vector or a row of a matrix. Its error grows with 15 + 8 additions per level, not with the length.
One exception: CuPy compiles with -ftz=true, so float32 sums smaller than 1.2e-38 are zero on a GPU.

`gpuops.dijkstra` uses the minimum for Dijkstra's algorithm. M. Harris, "Optimizing parallel reduction in CUDA", NVIDIA
2007, describes thread i and its partner on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._halves import half_of
from gpuops.arrays import is_cupy, library_of

OPERATORS = (
    *("sum", "minimum", "maximum", "argmin", "argmax", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("product", "all", "any"),
)
REDUCTION_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32", "int64")))

_OF_NOTHING = {
    **{"sum": 0, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0},
    **{"product": 1, "all": True, "any": False},
}


def butterfly_reduction(x: Any, operator: str, *, everywhere: bool = False) -> Any:
    """Reduce an array along its last axis.

    Parameters
    ----------
    x : (n,) or (m, n) array
        NumPy or CuPy, float32, float64, int32 or int64.
    operator : {"sum", "minimum", "maximum", "argmin", "argmax", "bitwise_and", "bitwise_or", "bitwise_xor", \
                "product", "all", "any"}
        Bitwise operators are for integers. "all" and "any" test whether elements differ from zero, as NaN does.
    everywhere : bool
        Return the result in every element of the row, as the butterfly leaves it in every thread.

    Returns
    -------
    () or (m,) array, or an array of the shape of `x` if `everywhere`
        It has the dtype of `x`, with three exceptions: sums and products of integers are int64 and wrap around, places
        are int64, and "all" and "any" are bool. Sums and products of floats are computed in their dtype. A place is the
        lowest index of the extreme. -0.0 and +0.0 are equal, and their extreme is +0.0. In a row with NaN, NaN is the
        extreme: the result is NaN, or the place of the first NaN.

    Raises
    ------
    TypeError
        `x` is not an array or has another dtype, or a bitwise operator is used on floats.
    ValueError
        There is no such operator, `x` is not a vector or a matrix, or the extreme of an empty row is undefined.

    Examples
    --------
    >>> gpuops.butterfly_reduction(np.array([[3, 1, 4], [1, 5, 9]]), "maximum")
    array([4, 9])
    """
    if not (isinstance(x, np.ndarray) or is_cupy(x)):
        raise TypeError(f"x is a {type(x).__name__}; pass a NumPy or a CuPy array")
    if operator not in OPERATORS:
        raise ValueError(f"there is no operator {operator!r}; choose {', '.join(OPERATORS)}")
    if x.dtype not in REDUCTION_DTYPES:
        raise TypeError(f"x is {x.dtype}; reductions take {', '.join(map(str, REDUCTION_DTYPES))}; convert it first")
    if operator.startswith("bitwise") and x.dtype.kind == "f":
        raise TypeError(f"x is {x.dtype}, and {operator} is for integers; pass a view of its bits")
    if x.ndim not in (1, 2):
        raise ValueError(f"x has {x.ndim} dimensions; pass a vector, or a matrix whose rows are reduced")
    if x.shape[-1] == 0 and operator not in _OF_NOTHING:
        raise ValueError(f"x has the shape {x.shape}; the {operator} of an empty array is undefined")

    half = half_of("reduction.reduction", x)
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    result = half.empty(x, len(rows), result_dtype(operator, x.dtype))
    if x.shape[-1] == 0:
        result[...] = _OF_NOTHING[operator]
    elif len(rows):
        half.reduce(rows if rows.flags.c_contiguous else rows.copy(order="C"), operator, result)
    result = result.reshape(x.shape[:-1])
    return library_of(x).broadcast_to(result[..., None], x.shape).copy() if everywhere else result


def result_dtype(operator: str, dtype: Any) -> np.dtype:
    """Return the dtype of a reduction of numbers of `dtype`."""
    dtype = np.dtype(dtype)
    if operator in ("all", "any"):
        return np.dtype(np.bool_)
    wide = operator.startswith("arg") or (operator in ("sum", "product") and dtype.kind == "i")
    return np.dtype(np.int64) if wide else dtype
