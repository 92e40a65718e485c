"""Samples from annotated matrices of single cells: .h5ad files, read with the package `anndata` (the `anndata` extra).

Values are those of `X`, dense or sparse, and columns are called by the names of its variables. Labels and weights are
columns of `obs`; ids too, by default the names of the observations. Rows of `X` are read in pieces.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.arrays import matrix_rows
from pipelines.formats.samples.columns import Opened, Rows, Wanted, distinct


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype


@contextmanager
def read_h5ad(source: str, wanted: Wanted) -> Iterator[Opened]:
    """The observations of an .h5ad file."""
    try:
        import anndata
    except ImportError as error:
        raise ImportError(".h5ad files need anndata: pip install 'tilepath[anndata]'") from error
    with open(source, "rb"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions of the libraries below
        data = anndata.read_h5ad(source, backed="r")
    try:
        if data.X is None:
            raise FormatError(f"{source}: has no matrix X; give it one, such as a layer")
        header = _Header(data.shape, np.dtype(data.X.dtype))
        names = distinct(source, list(map(str, data.var_names)))
        weights = _of_observations(source, data, wanted.weight)
        labels, ids = (_of_observations(source, data, column) for column in (wanted.label, wanted.ids))
        ids = data.obs_names if ids is None else ids

        def read(start: int, stop: int) -> np.ndarray:
            piece = data.X[start:stop]
            return piece.toarray() if hasattr(piece, "toarray") else np.asarray(piece)

        opened = matrix_rows(source, header, Wanted(wanted.columns, exclude=wanted.exclude), read, names)

        def rows() -> Iterator[Rows]:
            start = 0
            for values, *_ in opened.rows:
                part = slice(start, start := start + len(values))
                of_weights = None if weights is None else np.asarray(weights[part], np.float64)
                yield Rows(values, of_weights, None if labels is None else labels[part].tolist(), ids[part].tolist())

        yield opened._replace(rows=rows(), ids=True)
    finally:
        data.file.close()


def _of_observations(source: str, data: Any, column: str | int | None) -> Any:
    """A column of `obs`, by name or position."""
    if column is None:
        return None
    names = list(map(str, data.obs.columns))
    if str(column) in names:
        return data.obs.iloc[:, names.index(str(column))]
    if str(column).isdecimal() and int(column) < len(names):
        return data.obs.iloc[:, int(column)]
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    raise FormatError(f"{source}: the observations have no column {column!r}; columns are {shown or 'none'}")
