"""Samples from NumPy's files: a matrix in a .npy file, or one of an .npz file with labels and weights beside it.

Rows are read in pieces. Two things are not: labels and weights of an .npz file, and a matrix in an .npz file that lies
there column after column (Fortran's order), so that no row is complete before the end.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.columns import PIECE_BYTES, Rows, Wanted, choose_columns, named_label


class _Header(NamedTuple):
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype


@contextmanager
def read_npy(source: str, wanted: Wanted) -> Iterator[tuple[list[str], Iterator[Rows]]]:
    """The rows of the matrix in a .npy file; its columns are named by their numbers."""
    with open(source, "rb") as file:
        header = _header(source, file)
    _check_matrix(source, header)
    try:
        array = np.load(source, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise FormatError(f"{source}: cannot be read ({error}); get a new copy") from error
    yield matrix_rows(source, header, wanted, slices(array))


@contextmanager
def read_npz(source: str, wanted: Wanted) -> Iterator[tuple[list[str], Iterator[Rows]]]:
    """The rows of the only matrix in an .npz file, or of the one called `values` or `X`; labels and weights are
    arrays of the file, by their names."""
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(source))
        arrays: dict[str, _Header] = {}
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as stream:
                    arrays[member.removesuffix(".npy")] = _header(f"{source}, array {member!r}", stream)
        there = f"there are {', '.join(map(repr, arrays))}" if arrays else "there are none"
        beside = [str(name) for name in (wanted.label, wanted.weight) if name is not None]
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
        with np.load(source, allow_pickle=False) as loaded:
            whole = loaded[found[0]] if header.by_columns else None
            labels = weights = None
            if wanted.label is not None:
                labels = list(map(named_label, _beside(source, loaded, str(wanted.label), header).tolist()))
            if wanted.weight is not None:
                weights = _beside(source, loaded, str(wanted.weight), header).astype(np.float64)
        stream = stack.enter_context(archive.open(f"{found[0]}.npy"))
        read = _in_turn(stream, source) if whole is None else slices(whole)
        names, tables = matrix_rows(source, header, Wanted(wanted.columns), read)

        def complete() -> Iterator[Rows]:
            start = 0
            for values, _, _ in tables:
                part = slice(start, start := start + len(values))
                yield Rows(values, None if weights is None else weights[part], None if labels is None else labels[part])

        yield names, complete()


def matrix_rows(
    source: str, header: Any, wanted: Wanted, read: Callable[[int, int], np.ndarray], names: list[str] | None = None
) -> tuple[list[str], Iterator[Rows]]:
    """Names of the columns, and rows, of a matrix (anything with a shape and a dtype) that `read(start, stop)` returns;
    without `names`, columns are named by their numbers."""
    _check_matrix(source, header)
    shape = header.shape
    names = list(map(str, range(shape[1]))) if names is None else names
    values, label, weight = choose_columns(source, names, wanted)
    step = max(1, PIECE_BYTES // (8 * max(1, shape[1])))

    def rows() -> Iterator[Rows]:
        for start in range(0, shape[0], step):
            piece = read(start, min(start + step, shape[0]))
            labels = None if label is None else list(map(named_label, piece[:, label].tolist()))
            weights = None if weight is None else piece[:, weight].astype(np.float64)
            yield Rows(piece[:, values].astype(np.float64), weights, labels)

    return [names[column] for column in values], rows()


def slices(array: Any) -> Callable[[int, int], np.ndarray]:
    """Returns rows of an array in memory."""
    return lambda start, stop: np.asarray(array[start:stop])


def _check_matrix(source: str, header: Any) -> None:
    shape, dtype = header.shape, header.dtype
    if len(shape) != 2 or dtype.kind not in "fiub":
        hint = " (one column: reshape(-1, 1))" if len(shape) == 1 and dtype.kind in "fiub" else ""
        raise FormatError(
            f"{source}: holds {dtype} of shape {tuple(shape)}; give a matrix of numbers, one row per sample{hint}"
        )


def _beside(source: str, loaded: Any, name: str, header: _Header) -> np.ndarray:
    """The array of labels or weights."""
    array = loaded[name]
    if array.size != header.shape[0] or array.dtype.kind not in "fiubSU":
        raise FormatError(
            f"{source}: {name!r} holds {array.dtype} of shape {array.shape} for {header.shape[0]} samples; "
            "give one number or text per sample"
        )
    return array.ravel()


def _header(what: str, stream: IO[bytes]) -> _Header:
    try:
        version = npy.read_magic(stream)
        return _Header(*(npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream))
    except ValueError as error:
        raise FormatError(f"{what}: is not a NumPy array ({error}); write it with numpy.save or savez") from error


def _in_turn(stream: IO[bytes], source: str) -> Callable[[int, int], np.ndarray]:
    """Reads rows of an array in an .npz file, one range after another, without ever holding all of it."""
    shape, _, dtype = _header(source, stream)

    def read(start: int, stop: int) -> np.ndarray:
        count = (stop - start) * shape[1]
        text = stream.read(count * dtype.itemsize)
        if len(text) < count * dtype.itemsize:
            raise FormatError(f"{source}: ends before row {stop} (from 0); get a new copy")
        return np.frombuffer(text, dtype, count).reshape(stop - start, shape[1])

    return read
