"""Checks of the arguments of operations: library, dtype, layout in memory; and arrays of other libraries."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpuops._copies_cuda import copied
from gpuops.extras import install
from gpuops.numbers import check_dtype

_cupy_kinds: dict[type, bool] = {}  # cached, because an operation calls `is_cupy` a dozen times


def is_cupy(array: Any) -> bool:
    """Return whether `array` is an array of CuPy, which need not be installed."""
    kind = type(array)
    if kind not in _cupy_kinds:
        _cupy_kinds[kind] = kind.__module__.partition(".")[0] == "cupy"
    return _cupy_kinds[kind]


def library_of(array: Any) -> Any:
    """Return the module that `array` belongs to, numpy or cupy."""
    if not is_cupy(array):
        return np
    import cupy

    return cupy


def like(array: Any, values: np.ndarray) -> Any:
    """Return NumPy `values` as an array of the library of `array`; a CuPy array is made on the current device."""
    if not is_cupy(array):
        return values
    import cupy

    return cupy.asarray(values)


def on_host(array: Any) -> np.ndarray:
    """Return an array of NumPy or CuPy as a NumPy array; that of CuPy is copied to pageable memory."""
    return array.get() if is_cupy(array) else array


def check_matrices(*, batches: bool = False, **matrices: Any) -> None:
    """Refuse anything but matrices of one library, one distance dtype and one device; the names are for errors.

    With `batches`, arrays of three dimensions are allowed too: batches of matrices.
    """
    for name, matrix in matrices.items():
        if not (isinstance(matrix, np.ndarray) or is_cupy(matrix)):
            raise TypeError(f"{name} is a {type(matrix).__name__}; pass a NumPy or a CuPy array")
        if matrix.ndim != 2 and not (batches and matrix.ndim == 3):
            or_batch = " or a batch of matrices" if batches else ""
            raise ValueError(f"{name} has {matrix.ndim} dimensions; pass a matrix{or_batch}")
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
    """Return whether the elements of a row are adjacent in memory. Rows may be any distance apart."""
    return matrix.size == 0 or matrix.shape[-1] == 1 or matrix.strides[-1] == matrix.itemsize


def contiguous(array: Any) -> Any:
    """Return `array` if it is C-contiguous, else a contiguous copy."""
    return array if array.flags.c_contiguous else array.copy()


def contiguous_copy(array: Any) -> Any:
    """Return a C-contiguous copy; the copy engine of a GPU takes half the time of ``array.copy()``."""
    return copied(array) if is_cupy(array) and array.flags.c_contiguous else array.copy(order="C")


def same_view(x: Any, y: Any) -> bool:
    """Return whether x and y, which have one shape and dtype, are views of the same memory in the same order."""
    return x is y or (_address(x) == _address(y) and x.strides == y.strides)


def _address(array: Any) -> int:
    return int(array.data.ptr if is_cupy(array) else array.ctypes.data)


def check_vectors(arrays: dict[str, Any]) -> None:
    """Refuse arrays that are not one-dimensional, or not of one library (NumPy or CuPy); the keys are for errors."""
    first, *_ = arrays
    for name, array in arrays.items():
        if not (isinstance(array, np.ndarray) or is_cupy(array)):
            raise TypeError(f"{name} is a {type(array).__name__}; pass a NumPy or a CuPy array")
        if is_cupy(array) != is_cupy(arrays[first]):
            raise TypeError(f"{first} and {name} are arrays of NumPy and of CuPy; move one to where the other is")
        if array.ndim != 1:
            raise ValueError(f"{name} has {array.ndim} dimensions; pass an array of one")


def unmasked(values: Any) -> Any:
    """Return a masked array of numbers as floats with NaN for masked elements; return any other array unchanged."""
    if not np.ma.isMaskedArray(values) or values.dtype.kind not in "fiub":
        return values
    floats: Any = values if values.dtype.kind == "f" else values.astype(np.float64)
    return floats.filled(np.nan)


# --- Arrays of other libraries ----------------------------------------------------------------------------------------

Views = dict[int, tuple[Any, Any]]  # id(view) -> the view and the array it was made from

_DLPACK_CPU = 1
_PLAIN = str, int, bool, float, list, range, type(None)


def of_any_library(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Make `operation` accept arrays of any library, and return arrays of the library of its first array argument.

    Arrays that offer DLPack or ``__cuda_array_interface__`` are viewed as NumPy or CuPy arrays without a copy, so an
    `out` argument is filled in place. Results are converted by DLPack, also results in tuples, in iterators and in the
    objects of operations. If a library cannot import DLPack, results stay NumPy or CuPy arrays.

    A NumPy array in the byte order of other machines, or with masked elements, raises TypeError: kernels would misread
    its bytes, or read the masked values.
    """

    @functools.wraps(operation)
    def call(*arguments: Any, **options: Any) -> Any:
        given = (*arguments, *options.values())
        if all(map(_is_usual, given)):
            return operation(*arguments, **options)
        if any(map(_is_misread, given)):
            _refuse_misread(inspect.signature(operation).bind(*arguments, **options).arguments)
        if not any(map(_is_foreign, given)):
            return operation(*arguments, **options)
        views: Views = {}
        seen = [_view(argument, views) for argument in arguments]
        named = {name: _view(option, views) for name, option in options.items()}
        first = next(array for value in (*arguments, *options.values()) for array in _arrays(value))
        result = operation(*seen, **named)
        return result if _is_native(first) else _give(result, first, views)

    call.__module__ = "gpuops"  # pickle looks for the function there
    return call


def _is_native(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_cupy(value)


def _is_usual(value: Any) -> bool:
    """Return True for values that operations take as they are, by the quickest tests: each call tests its arguments."""
    kind = type(value)
    return kind in _PLAIN or is_cupy(value) or (kind is np.ndarray and value.dtype.isnative)


def _is_misread(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (not value.dtype.isnative or bool(np.ma.is_masked(value)))


def _refuse_misread(arguments: dict[str, Any]) -> None:
    name, array = next((name, value) for name, value in arguments.items() if _is_misread(value))
    if array.dtype.isnative:
        raise TypeError(f"{name} has masked elements; leave them out with {name}.compressed(), or fill them")
    raise TypeError(
        f"{name} is {array.dtype}, in the byte order of other machines; "
        f"convert it with {name}.astype({name}.dtype.newbyteorder('='))"
    )


def _is_foreign(value: Any) -> bool:
    if isinstance(value, _PLAIN) or _is_native(value):
        return False
    if not dataclasses.is_dataclass(value):
        return _holds_foreign(value)
    if value not in _are_foreign:
        _are_foreign[value] = _holds_foreign(value)
    return _are_foreign[value]


def _holds_foreign(value: Any) -> bool:
    return any(not _is_native(array) for array in _arrays(value))


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays, of any library, that `value` is or holds."""
    if _is_native(value) or hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        yield value
    else:
        for field in _fields(value).values():
            yield from _arrays(field)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or named tuple of an operation, such as a `SearchGraph`; else an empty dict."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}


# The native version of each dataclass. Searches cache results by graph object, so a graph must keep one native object.
_natives: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
# Whether a dataclass holds arrays of other libraries.
_are_foreign: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def _view(value: Any, views: dict[int, Any]) -> Any:
    """Return `value` with its arrays viewed as NumPy or CuPy arrays, and note each view in `views`."""
    if not _is_foreign(value):
        return value
    fields = _fields(value)
    if dataclasses.is_dataclass(value):
        if value not in _natives:
            _natives[value] = _replaced(value, lambda field: _view(field, views))
        return _natives[value]
    if fields:
        return type(value)(*(_view(field, views) for field in fields.values()))
    if not hasattr(value, "__dlpack__"):
        view = _cupy_for(value).asarray(value)
    elif value.__dlpack_device__()[0] == _DLPACK_CPU:
        view = np.from_dlpack(value)
    else:
        view = _cupy_for(value).from_dlpack(value)
    views[id(view)] = view, value
    return view


def _cupy_for(value: Any) -> Any:
    try:
        import cupy
    except ImportError as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ImportError(f"a {kind} on a GPU needs CuPy: {install('cuda13')} (or cuda12)") from error
    return cupy


def _replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a dataclass with every field changed; fields that share an array share the changed one."""
    fields = _fields(value)
    changed = {id(field): change(field) for field in fields.values()}
    return dataclasses.replace(value, **{name: changed[id(field)] for name, field in fields.items()})


def _give(value: Any, example: Any, views: dict[int, Any]) -> Any:
    """Return `value` with arrays of the library of `example`; a view in `views` becomes the original array."""
    if id(value) in views:
        return views[id(value)][1]
    if _is_native(value):
        if hasattr(example, "__array_namespace__"):
            return example.__array_namespace__().from_dlpack(value)
        library = sys.modules[type(example).__module__.partition(".")[0]]
        return library.from_dlpack(value) if hasattr(library, "from_dlpack") else value
    if dataclasses.is_dataclass(value):
        given = _replaced(value, lambda field: _give(field, example, views))
        _natives[given] = value
        return given
    if isinstance(value, tuple):
        parts = (_give(part, example, views) for part in value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Iterator):
        return (_give(part, example, views) for part in value)
    return value
