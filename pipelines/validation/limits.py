"""How far a row of searched distances reaches: a cutoff, and targets beyond which nothing is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import like
from gpuops.numbers import outside_infinity


def reach(cutoff: float | None, dtype: np.dtype) -> float | None:
    """The cutoff where a distance of the dtype can be beyond it, else None."""
    largest = float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)
    return cutoff if cutoff is not None and cutoff < largest else None


def row_limit(distances: Any, cutoff: float | None, targets: tuple[int, ...] | None) -> float | None:
    """The farthest distance a row keeps: that of the farthest target within the cutoff, or the cutoff.

    `distances` (n) are NumPy or CuPy, unreachable marked as in stores.
    """
    if targets is None:
        return cutoff
    reached = distances[like(distances, np.array(targets))]
    reached = reached[reached != outside_infinity(distances.dtype)]
    if cutoff is not None:
        reached = reached[reached <= cutoff]
    return float(reached.max()) if reached.size else cutoff
