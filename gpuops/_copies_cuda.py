"""Copies and sorted orders on a GPU without a kernel of CuPy: CuPy compiles one for each dtype, in a tenth of a second.

The sorts are CuPy's own, which are compiled in its packages.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def copied(array: Any) -> Any:
    """Return a copy of a contiguous array, by the copy engine, which takes half the time of ``array.copy()``."""
    import cupy

    with array.device:
        result = cupy.empty(array.shape, array.dtype)
        if array.nbytes:
            result.data.copy_from_device_async(array.data, array.nbytes)
        return result


def argsort(keys: Any) -> Any:
    """Return the stable order of contiguous keys (n,), int64, as ``cupy.argsort``."""
    import cupy

    with keys.device:
        order = cupy.empty(keys.shape, np.int64)
        if len(keys):
            scratch = copied(keys)  # the sort also sorts its keys
            cupy.cuda.thrust.argsort(keys.dtype, order.data.ptr, scratch.data.ptr, 0, keys.shape)
        return order
