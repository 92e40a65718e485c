"""The value for "unreachable" in each dtype, inside operations and outside them.

Floats use ``+inf`` everywhere. Integers have no infinity, and the dtype's maximum cannot stand for it inside a
min-plus product, where adding to it would wrap. Inside operations, unreachable is therefore INF = 2^30 - 1 for int32
and 2^14 - 1 for int16: INF + INF still fits. INF plus a negative weight is a little less than INF, so every value from
the limit (INF + 1) / 2 on counts as unreachable: 2^29 for int32, 2^13 for int16 (`distance_limit`). With non-negative
weights this is sound while distances stay below the limit. With negative weights it is sound while distances stay
within +-INF / 4: an unreachable entry is INF plus the lengths of two pieces of path, one on either side of a gap.
Stores and answers use the dtype's maximum instead, which no reader can mistake for a distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DISTANCE_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32", "int16")))

_INFINITY = {
    np.dtype("float32"): np.float32(np.inf),
    np.dtype("float64"): np.float64(np.inf),
    np.dtype("int32"): np.int32(2**30 - 1),
    np.dtype("int16"): np.int16(2**14 - 1),
}


def check_dtype(dtype: Any) -> np.dtype:
    """Return `dtype` as one of the four distance dtypes, or raise TypeError naming them."""
    dtype = np.dtype(dtype)
    if dtype not in _INFINITY:
        raise TypeError(f"distances are float32, float64, int32 or int16, not {dtype}; convert them first")
    return dtype


def infinity(dtype: Any) -> Any:
    """Return the value that stands for "unreachable" inside operations, a scalar of `dtype`."""
    return _INFINITY[check_dtype(dtype)]


def outside_infinity(dtype: Any) -> Any:
    """Return the value that stands for "unreachable" in stores and answers: +inf, or the dtype's maximum."""
    dtype = check_dtype(dtype)
    return infinity(dtype) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


def distance_limit(dtype: Any) -> float:
    """Return the limit that non-negative distances must stay below: the largest float, or (`infinity` + 1) / 2.

    Inside operations, integers from this limit on stand for "unreachable".
    """
    dtype = check_dtype(dtype)
    return float(np.finfo(dtype).max) if dtype.kind == "f" else (int(infinity(dtype)) + 1) // 2


def to_outside(distances: Any) -> Any:
    """Replace `infinity` by `outside_infinity`, in place; `distances` is a NumPy or CuPy array of any shape.

    The mask takes one byte for each distance. `copyto` is used because assignment by a mask takes four more bytes for
    each distance on a GPU, where CuPy scans the mask.
    """
    if distances.dtype.kind != "f":
        unreachable = distances >= distance_limit(distances.dtype)
        np.copyto(distances, outside_infinity(distances.dtype), where=unreachable)
    return distances


def multiples(length: Any, count: int) -> np.ndarray:
    """Return 0 to count - 1 times a length: sums, rounded after each addition; those of integers end at the largest."""
    if length.dtype.kind != "f":
        most = int(outside_infinity(length.dtype))
        return np.minimum(np.arange(count) * int(length), most).astype(length.dtype)
    with np.errstate(over="ignore"):  # beyond the range of the dtype, vertices are unreachable
        values = np.full(count, length)
        values[:1] = 0
        return np.add.accumulate(values)
