"""The arithmetic of minplus/arithmetic.cuh that a min-plus kernel uses."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

ARITHMETIC_NAMES = ("Float32", "NonnegativeFloat32", "Float64", "Int32", "Int16", "NonnegativeInt16")


class Arithmetic(NamedTuple):
    """A struct of arithmetic.cuh.

    Attributes
    ----------
    name : str
        Name of the struct.
    lanes : int
        Elements in a word.
    word : dtype
        The dtype of a word.
    """

    name: str
    lanes: int
    word: np.dtype


def notices_nonnegative(dtype: Any) -> bool:
    """Return whether `dtype` has a second arithmetic, for matrices without negative values."""
    return f"Nonnegative{np.dtype(dtype).name.capitalize()}" in ARITHMETIC_NAMES


@functools.cache
def arithmetic_of(dtype: Any, nonnegative: bool) -> Arithmetic:
    """Return the arithmetic for distances of `dtype`; `nonnegative`: no distance is negative."""
    dtype = np.dtype(dtype)
    lanes = 2 if dtype.itemsize == 2 else 1
    prefix = "Nonnegative" if nonnegative and notices_nonnegative(dtype) else ""
    return Arithmetic(f"{prefix}{dtype.name.capitalize()}", lanes, dtype if lanes == 1 else np.dtype(np.uint32))
