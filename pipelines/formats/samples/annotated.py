"""Read samples from .h5ad files, annotated matrices of single cells, with the package `anndata` (the `anndata` extra).

Values are the matrix `X` or a layer, dense or sparse; the names of the variables are the column names. Labels, weights
and ids are columns of `obs`; by default, ids are the names of the observations. Rows are read in pieces.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gpuops.extras import install
from pipelines.formats.errors import FormatError
from pipelines.formats.samples.arrays import matrix_rows, rows_with
from pipelines.formats.samples.columns import Opened, Wanted, distinct


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype


@contextmanager
def read_h5ad(source: str, wanted: Wanted, layer: str | None = None) -> Iterator[Opened]:
    """Yield the observations of an .h5ad file: the rows of `X`, or of the layer `layer`."""
    try:
        import h5py
        from anndata import io
    except ImportError as error:
        raise ImportError(f".h5ad files need anndata: {install('anndata')}") from error
    with open(source, "rb"), h5py.File(source, "r") as file:
        _refuse_other_files(source, file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about versions of the libraries that anndata uses
            obs, var = io.read_elem(file["obs"]), io.read_elem(file["var"])
        if not (hasattr(obs, "columns") and hasattr(var, "columns")):
            raise FormatError(f"{source}: was written by anndata before 0.7; write it again with a later version")
        stored = _matrix(source, file, layer)
        matrix = io.sparse_dataset(stored) if isinstance(stored, h5py.Group) else stored
        header = _Header(matrix.shape, np.dtype(matrix.dtype))
        if header.shape != (len(obs), len(var)):
            raise FormatError(f"{source}: a matrix of {header.shape} for {len(obs)} observations of {len(var)}")
        names = distinct(source, list(map(str, var.index)))
        weights = _of_observations(source, obs, wanted.weight)
        labels, ids = (_of_observations(source, obs, column) for column in (wanted.label, wanted.ids))
        ids = obs.index if ids is None else ids

        def read(start: int, stop: int) -> np.ndarray:
            piece = matrix[start:stop]
            return piece.toarray() if hasattr(piece, "toarray") else np.asarray(piece)

        opened = matrix_rows(source, header, wanted.of_values(), read, names)
        yield opened._replace(rows=rows_with(opened.rows, labels, weights, ids), ids=True)


def _refuse_other_files(source: str, group: Any) -> None:
    """Raise FormatError if a part of the file is in another file: HDF5 would read any file that the user may read."""
    import h5py

    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.HardLink):
            found = group[name]
            if isinstance(found, h5py.Group):
                _refuse_other_files(source, found)
                continue
            if found.external is None and not found.is_virtual:
                continue
        raise FormatError(
            f"{source}: {group.name.rstrip('/')}/{name} is a link or lies in another file; write one file without links"
        )


def _matrix(source: str, file: Any, layer: str | None) -> Any:
    """Return the stored matrix: X, or the layer `layer`."""
    layers = file.get("layers", {})
    known = ", ".join(map(repr, layers)) or "none"
    if layer is None and "X" not in file:
        raise FormatError(f"{source}: has no matrix X; name a layer (layer, --layer): {known}")
    if layer is not None and layer not in layers:
        raise FormatError(f"{source}: there is no layer {layer!r}; layers are {known}")
    return file["X"] if layer is None else layers[layer]


def _of_observations(source: str, obs: Any, column: str | int | None) -> Any:
    """Return a column of `obs`, by name or position."""
    if column is None:
        return None
    names = list(map(str, obs.columns))
    if str(column) in names:
        return obs.iloc[:, names.index(str(column))]
    if str(column).isdecimal() and int(column) < len(names):
        return obs.iloc[:, int(column)]
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    raise FormatError(f"{source}: the observations have no column {column!r}; columns are {shown or 'none'}")
