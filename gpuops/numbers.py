"""What "unreachable" is in each dtype, inside an operation and outside it.

Floats use ``+inf`` everywhere. Integers have no infinity, and the dtype's maximum cannot stand for it inside a
min-plus product, where adding to it would wrap. Inside, unreachable is therefore INF = 2^30 - 1 for int32 and
2^14 - 1 for int16: INF + INF still fits. INF plus a negative weight is a little less than INF, so every value from
the limit (INF + 1) / 2 on counts as unreachable, 2^29 and 2^13 (`distance_limit`). That is sound while distances stay
below it, or with negative weights, where an unreachable entry is INF plus a piece of path on either side of a gap,
within +-INF / 4. Stores and answers use the dtype's maximum instead, which no reader can mistake for a distance.
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
    """The value that stands for "unreachable" inside operations, a scalar of `dtype`."""
    return _INFINITY[check_dtype(dtype)]


def outside_infinity(dtype: Any) -> Any:
    """The value that stands for "unreachable" in stores and answers: +inf, or the dtype's maximum."""
    dtype = check_dtype(dtype)
    return infinity(dtype) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


def distance_limit(dtype: Any) -> float:
    """Non-negative distances must stay below this: the largest float, or half of the inside infinity, rounded up.

    Inside operations, integers from here on stand for "unreachable".
    """
    dtype = check_dtype(dtype)
    return float(np.finfo(dtype).max) if dtype.kind == "f" else (int(infinity(dtype)) + 1) // 2


def to_outside(distances: Any) -> Any:
    """Replace the inside infinity by the outside one, in place; `distances` is NumPy or CuPy, any shape.

    Beside them it takes a byte for each distance; to assign by a mask takes four more on a GPU, which scans it.
    """
    if distances.dtype.kind != "f":
        unreachable = distances >= distance_limit(distances.dtype)
        np.copyto(distances, outside_infinity(distances.dtype), where=unreachable)
    return distances


def to_inside(distances: Any) -> Any:
    """Undo `to_outside`, in place."""
    if distances.dtype.kind != "f":
        unreachable = distances == outside_infinity(distances.dtype)
        np.copyto(distances, infinity(distances.dtype), where=unreachable)
    return distances
