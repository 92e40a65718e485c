"""Distinct values of an array, compaction, and prefix sums.

Values are compared by their bits, after two changes that make floats follow the rules of a set: every NaN becomes one
quiet NaN, and -0.0 becomes +0.0. The result has this NaN and +0.0.

Integers from a small range are found in one pass with a table that has a place for each value of the range. The caller
need not know the range: a sample guesses it, and the pass that marks the values also finds the least and the largest
value. If the table lacks one of the two, a second pass uses a range with both, or the values are sorted if that range
is too large. All other values are sorted; the first of each run of equal values stays.

G. E. Blelloch, "Prefix sums and their applications", 1990; D. Merrill, M. Garland, "Single-pass parallel prefix scan
with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops._halves import half_of
from gpuops.arrays import check_vectors, contiguous, library_of

ORDERS = ("value", "first")


class Distinct(NamedTuple):
    """The distinct values of an array x.

    Attributes
    ----------
    values : (k,) array
        Of the dtype of x.
    counts : (k,) int64 array or None
        How often each value occurs.
    inverse : (n,) int64 array or None
        The index in `values` of each element of x: ``values[inverse]`` is x, except for the sign of zeros and the bits
        of NaN.
    """

    values: Any
    counts: Any
    inverse: Any


def distinct(x: Any, *, return_counts: bool = False, return_inverse: bool = False, order: str = "value") -> Distinct:
    """Find the distinct values of an array.

    Parameters
    ----------
    x : (n,) array
        NumPy or CuPy; bool, integers of any size, float16, float32 or float64.
    return_counts, return_inverse : bool
        Whether to return `counts` and `inverse`.
    order : {"value", "first"}
        Order of the values: ascending with NaN last, or by first appearance in `x`.

    Returns
    -------
    Distinct

    Raises
    ------
    TypeError
        `x` is not an array, or has another dtype.
    ValueError
        `x` is not one-dimensional, or there is no such order.

    Examples
    --------
    >>> found = distinct(np.array([3, 1, 3, 2]), return_counts=True, order="first")
    >>> found.values, found.counts
    (array([3, 1, 2]), array([2, 1, 1]))
    """
    check_vectors({"x": x})
    if order not in ORDERS:
        raise ValueError(f"there is no order {order!r}; choose value or first")
    _check_dtype(x.dtype)
    xp, first = library_of(x), order == "first"
    if len(x) == 0:
        nothing = [xp.empty((0,), np.int64) if wanted else None for wanted in (return_counts, return_inverse)]
        return Distinct(xp.empty((0,), x.dtype), *nothing)
    half = half_of("compaction.distinct", x)
    x = contiguous(x)
    keys = half.keys(x)
    values, counts, inverse = half.distinct(keys, return_counts, return_inverse, first)
    return Distinct(half.numbers(values, x.dtype), counts, inverse)


def compact(x: Any, keep: Any) -> Any:
    """Return the elements of an array that a mask keeps, in order.

    Parameters
    ----------
    x : (n,) array
        NumPy or CuPy, of 1, 2, 4 or 8 bytes an element.
    keep : (n,) array of bool
        True for elements to keep.

    Returns
    -------
    (k,) array of the dtype of `x`

    Raises
    ------
    TypeError
        The arrays are not of one library, `keep` is not bool, or elements have another size.
    ValueError
        An array is not one-dimensional, or the lengths differ.

    Examples
    --------
    >>> compact(np.array([5, 6, 7]), np.array([True, False, True]))
    array([5, 7])
    """
    check_vectors({"x": x, "keep": keep})
    if keep.dtype != np.bool_:
        raise TypeError(f"keep is {keep.dtype}; pass a mask of bool, such as x > 0")
    if x.dtype.itemsize not in (1, 2, 4, 8) or x.dtype.hasobject:
        raise TypeError(f"x is {x.dtype}; elements of 1, 2, 4 or 8 bytes can be compacted")
    if len(x) != len(keep):
        raise ValueError(f"x has {len(x)} elements and keep has {len(keep)}; give one for each")
    half = half_of("compaction.compaction", x)
    words = contiguous(x).view(f"u{x.dtype.itemsize}")
    return half.compact(words, contiguous(keep)).view(x.dtype)


def inclusive_scan(x: Any) -> Any:
    """Return prefix sums that include the element itself.

    The result is ``result[i] = x[0] + ... + x[i]``.

    Parameters
    ----------
    x : (n,) array
        NumPy or CuPy; bool, integers of any size, float32 or float64.

    Returns
    -------
    (n,) array
        int64 for bool and signed integers, uint64 for unsigned integers; sums of integers wrap around. Floats keep
        their dtype. On a CPU the order of additions depends only on the length; on a GPU the last bits of a sum of
        floats may change from run to run.

    Raises
    ------
    TypeError
        `x` is not an array, or has another dtype.
    ValueError
        `x` is not one-dimensional.

    Examples
    --------
    >>> inclusive_scan(np.array([1, 2, 3]))
    array([1, 3, 6])
    """
    return _scan(x, 0)


def exclusive_scan(x: Any) -> Any:
    """Return prefix sums without the element itself.

    The result is ``result[i] = x[0] + ... + x[i - 1]``; see `inclusive_scan`.

    Parameters
    ----------
    x : (n,) array
        As for `inclusive_scan`.

    Returns
    -------
    (n,) array
        As for `inclusive_scan`.

    Examples
    --------
    >>> exclusive_scan(np.array([1, 2, 3]))
    array([0, 1, 3])
    """
    return _scan(x, 1)


def _scan(x: Any, shift: int) -> Any:
    check_vectors({"x": x})
    _check_dtype(x.dtype)
    if x.dtype == np.float16:
        raise TypeError("x is float16, which has too few digits for sums; convert it to float32")
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(x.dtype.kind, x.dtype)
    return half_of("compaction.compaction", x).scan(contiguous(x), shift, np.dtype(wide))


def _check_dtype(dtype: np.dtype) -> None:
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise TypeError(f"x is {dtype}; pass bool, integers, float16, float32 or float64")
