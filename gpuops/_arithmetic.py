"""Which arithmetic of minplus/arithmetic.cuh a min-plus kernel computes with."""

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
    lanes : int
        Elements of a word.
    word : dtype
    """

    name: str
    lanes: int
    word: np.dtype


def notices_nonnegative(dtype: Any) -> bool:
    """Whether there is another one for values of which none is negative."""
    return f"Nonnegative{np.dtype(dtype).name.capitalize()}" in ARITHMETIC_NAMES


@functools.cache
def arithmetic_of(dtype: Any, nonnegative: bool) -> Arithmetic:
    """That for distances of a dtype, and whether none is negative."""
    dtype = np.dtype(dtype)
    lanes = 2 if dtype.itemsize == 2 else 1
    prefix = "Nonnegative" if nonnegative and notices_nonnegative(dtype) else ""
    return Arithmetic(f"{prefix}{dtype.name.capitalize()}", lanes, dtype if lanes == 1 else np.dtype(np.uint32))
