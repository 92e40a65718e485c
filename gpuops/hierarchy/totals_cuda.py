"""The CUDA half of `gpuops.hierarchy.totals`: in one launch, without another array (totals.cu)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._cuda import Program
from gpuops.numbers import DISTANCE_DTYPES

_ELEMENTS = dict(zip(DISTANCE_DTYPES, ("float", "double", "int", "short"), strict=True))
_PROGRAMS = {
    dtype: Program("hierarchy/totals.cu", ("add", "decay", "nearest"), (f"ELEMENT={element}",), threads=256)
    for dtype, element in _ELEMENTS.items()
}


def row_totals(found: Any, values: Any, limit: float, scale: float | None = None) -> Any:
    """Launch the kernel of `totals.row_totals`."""
    if scale is None:
        return _launch("add", found, np.float64(limit), values)
    return _launch("decay", found, np.float64(limit), values, np.float64(scale))


def row_minima(found: Any, limit: float) -> Any:
    """Launch the kernel of `totals.row_minima`."""
    return _launch("nearest", found, np.float64(limit))


def _launch(entry: str, found: Any, *arguments: Any) -> Any:
    import cupy

    with found.device:
        out = cupy.empty(len(found), np.float64)
        if len(found):
            _PROGRAMS[found.dtype].launch(entry, len(found), (out, found, np.int32(found.shape[1]), *arguments))
    return out
