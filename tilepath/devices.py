"""Which library of arrays the option `device` means, where no cluster is asked."""

from __future__ import annotations

from typing import Any

import numpy as np

DEVICES = ("auto", "cpu", "gpu")

_VERTEX, _ARC = 300, 15  # what a heap takes for each, in relaxations of a dense matrix
_GPU_WORK = 2**27  # relaxations below which a GPU is not worth the way there


def array_library(device: str) -> Any:
    """NumPy or CuPy, for "auto", "cpu" or "gpu"."""
    if device not in DEVICES:
        raise ValueError(f"device is {device!r}; pass one of {', '.join(map(repr, DEVICES))}")
    if device == "cpu":
        return np
    try:
        import cupy
    except ImportError as error:
        if device == "gpu":
            raise ImportError(
                "device is 'gpu', which needs CuPy: pip install 'tilepath[cuda13]' (or cuda12); or take 'cpu'"
            ) from error
        return np
    if cupy.cuda.is_available():
        return cupy
    if device == "gpu":
        raise RuntimeError("device is 'gpu', and CuPy finds none; take 'cpu' or 'auto'")
    return np


def search_work(rows: int, n: int, m: int) -> int:
    """What searches from so many vertices take by heaps, in relaxations of a dense matrix."""
    return rows * (_VERTEX * n + _ARC * m)


def library_for(work: int, device: str) -> Any:
    """`array_library` for so many relaxations of a dense matrix.

    Where they are few, "auto" is the CPU, and nobody looks whether there is a GPU, which would take longer.
    """
    return np if device == "auto" and work <= _GPU_WORK else array_library(device)
