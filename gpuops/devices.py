"""Choose NumPy or CuPy by the option `device`, for a computation in this process.

NumPy is imported when a device is chosen: the command line has the option without it.
"""

from __future__ import annotations

from typing import Any

from gpuops._binaries import too_old
from gpuops.errors import NoGpuError
from gpuops.extras import install
from gpuops.options import one_of

DEVICES = ("auto", "cpu", "gpu")


def array_library(device: str) -> Any:
    """Return NumPy or CuPy for `device`: "auto", "cpu" or "gpu".

    Raises
    ------
    ValueError
        There is no such `device`.
    ImportError, NoGpuError
        `device` is "gpu", and CuPy or a GPU is missing, or the GPU is too old.
    """
    one_of("device", device, DEVICES)
    import numpy as np

    if device == "cpu":
        return np
    try:
        import cupy
    except ImportError as error:
        if device == "gpu":
            raise ImportError(
                f"device is 'gpu', which needs CuPy: {install('cuda13')} (or cuda12); or pass 'cpu'"
            ) from error
        return np
    if cupy.cuda.is_available():
        if not (lack := too_old(cupy.cuda.Device().compute_capability)):
            return cupy
        if device == "gpu":
            raise NoGpuError(f"{lack}; pass device 'cpu' or 'auto'")
        return np
    if device == "gpu":
        raise NoGpuError("device is 'gpu', but CuPy finds no GPU; pass 'cpu' or 'auto'")
    return np


def library_for_size(device: str, size: int, least: int, needed: int) -> Any:
    """Return NumPy or CuPy for work of a known size: arcs, or bytes of a result.

    Parameters
    ----------
    device : {"auto", "cpu", "gpu"}
    size, least : int
        "auto" looks for a GPU if `size` is at least `least`: looking for one, starting it and copying arrays takes
        longer than a small piece of work.
    needed : int
        Bytes of GPU memory that the work takes. "auto" means NumPy if fewer bytes are free.

    Raises
    ------
    ValueError, ImportError, NoGpuError
        As `array_library`.
    """
    if device == "auto" and size < least:
        return array_library("cpu")
    xp = array_library(device)
    if device == "auto" and xp.__name__ == "cupy" and needed > xp.cuda.Device().mem_info[0]:
        return array_library("cpu")
    return xp
