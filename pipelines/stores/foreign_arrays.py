"""Matrices in Zarr that others wrote, of version 2 or 3."""

from __future__ import annotations

import os
from typing import Any

import zarr

from pipelines.stores.schema import StoreError, brief


def open_matrix(path: str | os.PathLike[str]) -> Any:
    """The array at `path`, or the only matrix of the group there, or the one called `values` or `X`.

    It has `shape` and `dtype`, and gives rows as NumPy. StoreError if there is none, FileNotFoundError if nothing is
    there.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    try:
        found = zarr.open(os.fspath(path), mode="r")
        if isinstance(found, zarr.Array):
            return found
        matrices = {name: array for name, array in found.arrays() if array.ndim == 2}
    except Exception as error:  # whatever Zarr raises on files that are not what they should be
        raise StoreError(f"{path}: cannot be read as a Zarr array ({brief(error)}); check the path") from error
    chosen = [name for name in ("values", "X") if name in matrices] or [*matrices]
    if not chosen or (len(matrices) > 1 and len(chosen) == len(matrices)):
        raise StoreError(
            f"{path}: a group of {len(matrices)} matrices, of which only one can be the samples; name the path of that"
        )
    return matrices[chosen[0]]
