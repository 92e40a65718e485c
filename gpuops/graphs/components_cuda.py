"""Weak components on a GPU: the CUDA half of `gpuops.graphs.weak_components`, kernels in components.cu."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuops._cuda import Program
from gpuops.csr.csr_cuda import tails

_THREADS = 256  # as in components.cu

_PROGRAMS = {
    np.dtype(name): Program("graphs/components.cu", ("unite_ends", "shorten_all"), (f"VERTEX={vertex}",))
    for name, vertex in {"int32": "int", "int64": "long long"}.items()
}


def labels(indptr: Any, indices: Any) -> Any:
    """Return the least vertex of each vertex's component, (n,) of the dtype of `indices`."""
    import cupy

    n, m = len(indptr) - 1, len(indices)
    program = _PROGRAMS[indices.dtype]
    with indices.device:
        parents = cupy.arange(n, dtype=indices.dtype)
        if m:
            arguments = (tails(indptr, m, indices.dtype), indices, np.int64(m), parents)
            launch(program, "unite_ends", m, arguments)
            until_short(lambda unfinished: launch(program, "shorten_all", n, (parents, np.int64(n), unfinished)))
        return parents


def launch(program: Program, entry: str, size: int, arguments: tuple[Any, ...]) -> None:
    """Launch `entry` with `size` threads or a few more; `size` is at least 1."""
    program.launch(entry, math.ceil(size / _THREADS), arguments, threads=_THREADS)


def until_short(shorten: Callable[[Any], None]) -> None:
    """Call `shorten` with a flag, an array (1,), until the flag stays 0: paths of n steps take log n / log 9 calls."""
    import cupy

    while True:
        unfinished = cupy.zeros((1,), np.int32)
        shorten(unfinished)
        if not int(unfinished[0]):
            return
