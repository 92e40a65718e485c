"""The order of arcs within the rows of a graph: stores may keep it, and all but Euler circuits want it by head."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

SHORT = 48  # arcs up to which insertion is faster than distribution
DIGITS = 256  # values of a digit: few enough for the first-level cache, and for rows of a hundred arcs


@njit(nogil=True, cache=True)
@no_type_check
def sort_rows(indptr, indices, weights):
    """Sort each row by head in place, equal heads in the order given; takes memory for the longest row alone.

    `weights` are integers: a view of any weights as such, since only their bits are moved.
    """
    longest = 0
    for row in range(indptr.size - 1):
        longest = max(longest, indptr[row + 1] - indptr[row])
    spare = longest if longest > SHORT else 0
    spare_indices, spare_weights = np.empty(spare, indices.dtype), np.empty(spare, weights.dtype)
    for row in range(indptr.size - 1):
        first, stop = indptr[row], indptr[row + 1]
        if stop - first <= SHORT:
            _insert(indices, weights, first, stop)
        else:
            _distribute(indices[first:stop], weights[first:stop], spare_indices, spare_weights)


@njit(nogil=True)
@no_type_check
def _insert(indices, weights, first, stop):
    """Insertion sort."""
    for arc in range(first + 1, stop):
        head, weight, at = indices[arc], weights[arc], arc
        while at > first and indices[at - 1] > head:
            indices[at], weights[at] = indices[at - 1], weights[at - 1]
            at -= 1
        indices[at], weights[at] = head, weight


@njit(nogil=True)
@no_type_check
def _distribute(indices, weights, spare_indices, spare_weights):
    """Radix sort, the least digit first."""
    most, rises = indices[0], True
    for arc in range(1, indices.size):
        most = max(most, indices[arc])
        rises &= indices[arc - 1] <= indices[arc]
    if rises:
        return
    spare_indices, spare_weights = spare_indices[: indices.size], spare_weights[: indices.size]
    places = np.empty(DIGITS, np.int64)
    shift, moved = 0, False
    while most >> shift:
        places[:] = 0
        for head in indices:
            places[(head >> shift) & (DIGITS - 1)] += 1
        place = 0
        for digit in range(DIGITS):
            place, places[digit] = place + places[digit], place
        for arc in range(indices.size):
            digit = (indices[arc] >> shift) & (DIGITS - 1)
            spare_indices[places[digit]], spare_weights[places[digit]] = indices[arc], weights[arc]
            places[digit] += 1
        indices, spare_indices, weights, spare_weights = spare_indices, indices, spare_weights, weights
        shift, moved = shift + 8, not moved
    if moved:
        spare_indices[:] = indices
        spare_weights[:] = weights
