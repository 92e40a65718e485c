"""Choose NumPy or CuPy for shortest paths without a cluster, by the work that they take."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.devices import array_library

# Time that a search with a heap takes per vertex and per arc, in relaxations of a dense matrix.
_VERTEX, _ARC = 300, 15
_SHARED = 8  # how many times as fast as heaps breadth-first searches are that share each step
_GPU_WORK = 2**27  # up to this many relaxations, starting the GPU costs more than it saves


def search_work(rows: int, n: int, m: int) -> int:
    """Return the work of searches from `rows` vertices with heaps, in relaxations of a dense matrix."""
    return rows * (_VERTEX * n + _ARC * m)


def hop_work(rows: int, n: int, m: int) -> int:
    """Return the work of breadth-first searches that share each step, in relaxations of a dense matrix."""
    return search_work(rows, n, m) // _SHARED


def library_for(work: int, device: str) -> Any:
    """Return `array_library(device)` for `work` relaxations of a dense matrix.

    With little work, "auto" means the CPU, and no GPU is looked for: looking would take longer than the work.
    """
    return np if device == "auto" and work <= _GPU_WORK else array_library(device)
