"""The halves of an operation: its kernels for a GPU, and its loops for a CPU, which Numba compiles.

The module of a half is imported at its first call, so that a program on a GPU need not import Numba.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from gpuops.arrays import is_cupy


def half_of(operation: str, array: Any) -> Any:
    """Return the module of an operation for the library of `array`: of "som.bmu" gpuops/som/bmu_cuda or bmu_numba."""
    return half_on(operation, is_cupy(array))


@functools.cache
def half_on(operation: str, gpu: bool) -> Any:
    """Return the module of an operation for a GPU or for a CPU."""
    return import_module(f"gpuops.{operation}_{'cuda' if gpu else 'numba'}")
