"""Choose NumPy or CuPy by the option `device`, for computations without a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

DEVICES = ("auto", "cpu", "gpu")

# Time that a search with a heap takes per vertex and per arc, in relaxations of a dense matrix.
_VERTEX, _ARC = 300, 15
_GPU_WORK = 2**27  # up to this many relaxations, starting the GPU costs more than it saves


def array_library(device: str) -> Any:
    """Return NumPy or CuPy for `device`: "auto", "cpu" or "gpu"."""
    if device not in DEVICES:
        raise ValueError(f"device is {device!r}; pass one of {', '.join(map(repr, DEVICES))}")
    if device == "cpu":
        return np
    try:
        import cupy
    except ImportError as error:
        if device == "gpu":
            raise ImportError(
                "device is 'gpu', which needs CuPy: pip install 'tilepath[cuda13]' (or cuda12); or pass 'cpu'"
            ) from error
        return np
    if cupy.cuda.is_available():
        return cupy
    if device == "gpu":
        raise RuntimeError("device is 'gpu', but CuPy finds no GPU; pass 'cpu' or 'auto'")
    return np


def search_work(rows: int, n: int, m: int) -> int:
    """Return the work of searches from `rows` vertices with heaps, in relaxations of a dense matrix."""
    return rows * (_VERTEX * n + _ARC * m)


def library_for(work: int, device: str) -> Any:
    """Return `array_library(device)` for `work` relaxations of a dense matrix.

    With little work, "auto" means the CPU, and no GPU is looked for: looking would take longer than the work.
    """
    return np if device == "auto" and work <= _GPU_WORK else array_library(device)
