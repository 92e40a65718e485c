"""Read matrices from Zarr arrays, of version 2 or 3, that other programs wrote."""

from __future__ import annotations

import os
from typing import Any

import zarr

from pipelines.stores.errors import StoreError
from pipelines.stores.schema import brief


def open_matrix(path: str | os.PathLike[str]) -> Any:
    """Open the array at `path`, or in the group at `path` the only matrix, or the matrix called `values` or `X`.

    The array has `shape` and `dtype`, and its slices are NumPy arrays. Raises FileNotFoundError if `path` does not
    exist, and StoreError if it holds no such matrix.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    try:
        found = zarr.open(os.fspath(path), mode="r")
        if isinstance(found, zarr.Array):
            return found
        matrices = {name: array for name, array in found.arrays() if array.ndim == 2}
    except Exception as error:  # Zarr raises errors of many types on invalid files
        raise StoreError(f"{path}: cannot be read as a Zarr array ({brief(error)}); check the path") from error
    chosen = [name for name in ("values", "X") if name in matrices] or [*matrices]
    if not chosen or (len(matrices) > 1 and len(chosen) == len(matrices)):
        raise StoreError(
            f"{path}: a group of {len(matrices)} matrices, but only one can be the samples; give the path of one matrix"
        )
    return matrices[chosen[0]]
