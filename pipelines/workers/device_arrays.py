"""The array library of a worker, copies from its device to the host, and waiting for its GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def array_library() -> Any:
    """Return CuPy on a worker that computes on a GPU, else NumPy (from a task)."""
    from pipelines.workers.resident_state import (
        has_gpu,  # imported here, as it needs distributed and arrays in memory do not
    )

    if not has_gpu():
        return np
    import cupy

    return cupy


def to_host(array: Any) -> np.ndarray:
    """Return a contiguous array on the host, for large transfers; `gpuops.arrays.on_host` is for small ones.

    An array of a GPU is copied to page-locked memory, which CuPy pools and the GPU writes directly.
    """
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    import cupy
    import cupyx

    if array.size == 0:
        return np.empty(array.shape, array.dtype)
    return cupy.ascontiguousarray(array).get(out=cupyx.empty_pinned(array.shape, array.dtype))


def later(array: Any) -> Callable[[], np.ndarray]:
    """Return a function that returns `array` on the host.

    An array of a GPU is copied after all work that the GPU has been given so far. The function waits for this copy,
    not for work that the GPU is given later. An array of the host is not copied.
    """
    if isinstance(array, np.ndarray):
        return lambda: array
    import cupyx

    copy = cupyx.empty_pinned(array.shape, array.dtype)
    array.get(out=copy, blocking=False)
    copied = mark(array)

    def arrived() -> np.ndarray:
        copied.synchronize()
        return copy

    return arrived


def synchronize(array: Any) -> None:
    """Wait for the GPU, so that a task ends when its work does."""
    if not isinstance(array, np.ndarray):
        import cupy

        cupy.cuda.get_current_stream().synchronize()


def mark(array: Any) -> Any:
    """Return an event whose `synchronize` waits for all work given to the GPU so far; None for an array of the host."""
    if isinstance(array, np.ndarray):
        return None
    import cupy

    event = cupy.cuda.Event(disable_timing=True)
    event.record()
    return event
