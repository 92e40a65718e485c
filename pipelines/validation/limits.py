"""The limit of the distances in a row of a search, given its cutoff and its targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import like
from gpuops.numbers import outside_infinity


def reach(cutoff: float | None, dtype: np.dtype) -> float | None:
    """Return the cutoff, or None if no distance of the dtype can exceed it."""
    largest = float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)
    return cutoff if cutoff is not None and cutoff < largest else None


def row_limit(distances: Any, cutoff: float | None, targets: tuple[int, ...] | None) -> float | None:
    """Return the greatest distance that a row keeps.

    It is the distance of the farthest target that is reached within the cutoff. If there is no such target, it is the
    cutoff. `distances` (n) is a NumPy or CuPy array in outside form, as in stores.
    """
    if targets is None:
        return cutoff
    reached = distances[like(distances, np.array(targets))]
    reached = reached[reached != outside_infinity(distances.dtype)]
    if cutoff is not None:
        reached = reached[reached <= cutoff]
    return float(reached.max()) if reached.size else cutoff
