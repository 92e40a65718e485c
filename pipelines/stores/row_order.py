"""The order of arcs within the rows of a graph: stores may keep it, and all but Euler circuits want it by head."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
@no_type_check
def sort_rows(indptr, indices, weights):
    """Sort each row by head in place, equal heads in the order given; takes memory for the longest row alone.

    `weights` are integers: a view of any weights as such, since only their bits are moved.
    """
    for row in range(indptr.size - 1):
        arcs = slice(indptr[row], indptr[row + 1])
        order = np.argsort(indices[arcs], kind="mergesort")
        indices[arcs] = indices[arcs][order]
        weights[arcs] = weights[arcs][order]
