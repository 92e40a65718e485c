"""What the operations ask of their arguments: which library, which dtype, how they lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.numbers import check_dtype


def is_cupy(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "cupy"


def library_of(array: Any) -> Any:
    """The module of `array`: numpy or cupy."""
    if not is_cupy(array):
        return np
    import cupy

    return cupy


def like(array: Any, values: np.ndarray) -> Any:
    """NumPy `values` as an array of the library, and on the device, of `array`."""
    if not is_cupy(array):
        return values
    import cupy

    return cupy.asarray(values)


def check_matrices(**matrices: Any) -> None:
    """Refuse anything but matrices of one library, one distance dtype and one device; the names are for errors."""
    for name, matrix in matrices.items():
        if not (isinstance(matrix, np.ndarray) or is_cupy(matrix)):
            raise TypeError(f"{name} is a {type(matrix).__name__}; pass a NumPy or a CuPy array")
        if matrix.ndim != 2:
            raise ValueError(f"{name} has {matrix.ndim} dimensions; pass a matrix")
    (first_name, first), *others = matrices.items()
    check_dtype(first.dtype)
    for name, matrix in others:
        if is_cupy(matrix) != is_cupy(first):
            raise TypeError(
                f"{first_name} and {name} are arrays of NumPy and of CuPy; move one with cupy.asarray or cupy.asnumpy"
            )
        if matrix.dtype != first.dtype:
            raise TypeError(f"{first_name} is {first.dtype} and {name} is {matrix.dtype}; give them one dtype")
        if is_cupy(matrix) and matrix.device != first.device:
            raise ValueError(f"{first_name} is on {first.device} and {name} on {matrix.device}; move one of them")


def has_contiguous_rows(matrix: Any) -> bool:
    """Whether the elements of a row are adjacent in memory. Rows may be any distance apart."""
    return matrix.shape[1] <= 1 or matrix.strides[1] == matrix.itemsize


def same_view(x: Any, y: Any) -> bool:
    """Are x and y, of one shape and dtype, the same elements in the same order?"""
    return _address(x) == _address(y) and x.strides == y.strides


def _address(array: Any) -> int:
    return int(array.data.ptr if is_cupy(array) else array.ctypes.data)


def check_vectors(arrays: dict[str, Any]) -> None:
    """Refuse arrays, by name, that are not of one dimension, or not all of NumPy or all of CuPy."""
    first, *_ = arrays
    for name, array in arrays.items():
        if not (isinstance(array, np.ndarray) or is_cupy(array)):
            raise TypeError(f"{name} is a {type(array).__name__}; pass a NumPy or a CuPy array")
        if is_cupy(array) != is_cupy(arrays[first]):
            raise TypeError(f"{first} and {name} are arrays of NumPy and of CuPy; move one to where the other is")
        if array.ndim != 1:
            raise ValueError(f"{name} has {array.ndim} dimensions; pass an array of one")


def unmasked(values: Any) -> Any:
    """A masked array with NaN in the place of what is masked; anything else as it is."""
    if not np.ma.isMaskedArray(values) or values.dtype.kind not in "fiub":
        return values
    floats: Any = values if values.dtype.kind == "f" else values.astype(np.float64)
    return floats.filled(np.nan)
