"""Which library of arrays the option `device` means, where no cluster is asked."""

from __future__ import annotations

from typing import Any

import numpy as np

DEVICES = ("auto", "cpu", "gpu")


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
