"""Where a worker's arrays live, and the way from there to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def array_library() -> Any:
    """CuPy on a worker that computes on a GPU, else NumPy (from a task)."""
    from pipelines.workers.attempts import has_gpu  # distributed, which arrays in memory do not need

    if not has_gpu():
        return np
    import cupy

    return cupy


def to_host(array: Any) -> np.ndarray:
    """A contiguous copy on the host; from a GPU in page-locked memory, which CuPy pools and the GPU writes directly."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    import cupy
    import cupyx

    if array.size == 0:
        return np.empty(array.shape, array.dtype)
    return cupy.ascontiguousarray(array).get(out=cupyx.empty_pinned(array.shape, array.dtype))


def later(array: Any) -> Callable[[], np.ndarray]:
    """A function that returns `array` on the host.

    From a GPU it is a copy, made after the work that the GPU was given before. The function waits for that copy, but
    for no work that was given since. An array of the host is not copied.
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
    """The work given to the GPU so far, to be waited for by its `synchronize`; None where there is no GPU."""
    if isinstance(array, np.ndarray):
        return None
    import cupy

    event = cupy.cuda.Event(disable_timing=True)
    event.record()
    return event
