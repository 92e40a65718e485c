"""Read samples from matrices: in a .npy file, in an .npz file with labels and weights, or in Zarr.

Rows are read in pieces, with two exceptions that are read whole: the labels, weights and ids in an .npz file, and a
matrix in an .npz file in Fortran order, where no row is complete before the end of the file.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from gpuops.memory import available_memory, size
from pipelines.formats.errors import FormatError
from pipelines.formats.samples.columns import Opened, Rows, Wanted, choose_columns
from pipelines.stores.foreign_arrays import open_matrix

MOST_HEADER = 1 << 20
_LENGTH_BYTES = 4  # of the length of a header, since version 2 of the format


class _Header(NamedTuple):
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype


@contextmanager
def read_npy(source: str, wanted: Wanted) -> Iterator[Opened]:
    """Yield the rows of the matrix in a .npy file; the names of columns are their numbers."""
    with open(source, "rb") as file:
        header = _header(source, file)
    _check_matrix(source, header)
    try:
        array = np.load(source, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise FormatError(f"{source}: cannot be read ({error}); get a new copy") from error
    yield matrix_rows(source, header, wanted, slices(array))


@contextmanager
def read_npz(source: str, wanted: Wanted) -> Iterator[Opened]:
    """Yield the rows of a matrix in an .npz file: the matrix `values` or `X`, or the only matrix.

    Labels, weights and ids are other arrays of the file, which `wanted` names.
    """
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(source))
        arrays: dict[str, _Header] = {}
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as stream:
                    arrays[member.removesuffix(".npy")] = _header(f"{source}, array {member!r}", stream)
        there = f"there are {', '.join(map(repr, arrays))}" if arrays else "there are none"
        beside = [str(name) for name in (wanted.label, wanted.weight, wanted.ids) if name is not None]
        for array in beside:
            if array not in arrays:
                raise FormatError(f"{source}: there is no array {array!r}; {there}")
        matrices = [name for name, header in arrays.items() if len(header.shape) == 2 and name not in beside]
        found = [name for name in ("values", "X") if name in matrices] or matrices
        if not found or (len(matrices) > 1 and found == matrices):
            raise FormatError(
                f"{source}: has {len(matrices)} matrices, but only one can be the samples; call that one `values` "
                f"({there})"
            )
        header = arrays[found[0]]
        for array in beside:
            _check_beside(source, array, arrays[array], header)
        if header.by_columns:
            needed = math.prod(header.shape) * header.dtype.itemsize
            if needed > available_memory():
                raise FormatError(
                    f"{source}: the matrix is stored by columns and takes {size(needed)} of memory, but "
                    f"{size(available_memory())} are free; save it by rows (numpy.ascontiguousarray)"
                )
        with np.load(source, allow_pickle=False) as loaded:
            whole = loaded[found[0]] if header.by_columns else None
            labels, weights, ids = (
                None if name is None else loaded[str(name)].ravel()
                for name in (wanted.label, wanted.weight, wanted.ids)
            )
        stream = stack.enter_context(archive.open(f"{found[0]}.npy"))
        read = _in_turn(stream, source) if whole is None else slices(whole)
        opened = matrix_rows(source, header, wanted.of_values(), read)
        yield opened._replace(rows=rows_with(opened.rows, labels, weights, ids))


@contextmanager
def read_zarr(source: str, wanted: Wanted) -> Iterator[Opened]:
    """Yield the rows of a Zarr array, or of a matrix in a group: the only matrix, or `values` or `X`."""
    array = open_matrix(source)
    yield matrix_rows(source, array, wanted, slices(array))


def matrix_rows(
    source: str,
    header: Any,
    wanted: Wanted,
    read: Callable[[int, int], np.ndarray],
    names: list[str] | None = None,
    also_called: list[str] | None = None,
) -> Opened:
    """Return the opened source of a matrix whose rows `read(start, stop)` returns.

    `header` has the shape and the dtype of the matrix. Without `names`, the names of columns are their numbers;
    `also_called` is as for `choose_columns`.
    """
    _check_matrix(source, header)
    shape = header.shape
    names = list(map(str, range(shape[1]))) if names is None else names
    chosen = choose_columns(source, names, wanted, also_called)
    step = max(1, wanted.piece_bytes // (8 * max(1, shape[1])))

    def rows() -> Iterator[Rows]:
        for start in range(0, shape[0], step):
            piece = read(start, min(start + step, shape[0]))
            weights = None if chosen.weight is None else piece[:, chosen.weight].astype(np.float64)
            texts = (None if column is None else piece[:, column].tolist() for column in (chosen.label, chosen.ids))
            yield Rows(piece[:, chosen.values].astype(np.float64, copy=False), weights, *texts)

    return Opened(chosen.names, rows())


def rows_with(values: Iterator[Rows], labels: Any, weights: Any, ids: Any) -> Iterator[Rows]:
    """Yield the values together with labels, weights and ids, which are arrays of all samples, or None."""
    start = 0
    for rows in values:
        part = slice(start, start := start + len(rows.values))
        of_weights = None if weights is None else np.asarray(weights[part], np.float64)
        texts = (None if array is None else array[part].tolist() for array in (labels, ids))
        yield Rows(rows.values, of_weights, *texts)


def slices(array: Any) -> Callable[[int, int], np.ndarray]:
    """Return a function of start and stop that returns these rows of `array` as a NumPy array."""
    return lambda start, stop: np.asarray(array[start:stop])


def _check_matrix(source: str, header: Any) -> None:
    shape, dtype = header.shape, header.dtype
    if len(shape) != 2 or dtype.kind not in "fiub":
        hint = " (one column: reshape(-1, 1))" if len(shape) == 1 and dtype.kind in "fiub" else ""
        raise FormatError(
            f"{source}: holds {dtype} of shape {tuple(shape)}; give a matrix of numbers, one row per sample{hint}"
        )


def _check_beside(source: str, name: str, beside: _Header, matrix: _Header) -> None:
    """Raise FormatError unless an array of labels, weights or ids has one for each sample; it is not read for that."""
    if beside.dtype.hasobject:
        raise FormatError(
            f"{source}: the array {name!r} cannot be read (a pickle); write it as numbers or text, not as objects"
        )
    if math.prod(beside.shape) != matrix.shape[0] or beside.dtype.kind not in "fiubSU":
        raise FormatError(
            f"{source}: {name!r} holds {beside.dtype} of shape {beside.shape} for {matrix.shape[0]} samples; "
            "give one number or text per sample"
        )


def _header(what: str, stream: IO[bytes]) -> _Header:
    try:
        if npy.read_magic(stream) == (1, 0):
            return _Header(*npy.read_array_header_1_0(stream))
        length = stream.read(_LENGTH_BYTES)  # NumPy would read all of a header before it looks at its length
        if int.from_bytes(length, "little") > MOST_HEADER:
            raise ValueError(f"a header of more than {MOST_HEADER:,} bytes")
        return _Header(*npy.read_array_header_2_0(io.BytesIO(length + stream.read(int.from_bytes(length, "little")))))
    except ValueError as error:
        raise FormatError(f"{what}: is not a NumPy array ({error}); write it with numpy.save or savez") from error


def _in_turn(stream: IO[bytes], source: str) -> Callable[[int, int], np.ndarray]:
    """Return a function that reads successive ranges of rows of an array in an .npz file."""
    shape, _, dtype = _header(source, stream)

    def read(start: int, stop: int) -> np.ndarray:
        count = (stop - start) * shape[1]
        text = stream.read(count * dtype.itemsize)
        if len(text) < count * dtype.itemsize:
            raise FormatError(f"{source}: ends before row {stop} (from 0); get a new copy")
        return np.frombuffer(text, dtype, count).reshape(stop - start, shape[1])

    return read
