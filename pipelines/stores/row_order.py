"""The order of arcs within the rows of a graph: stores may keep it, and all but Euler circuits want it by head."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

SHORT = 48  # arcs up to which insertion is faster than distribution
WIDEST = 16  # bits of a digit

# Arrays are handed on whole, with the place where a row begins: slices take the compiler several times as long. The
# sort of long rows is compiled only where there are any.


def sort_rows(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
    """Sort each row by head in place, equal heads in the order given; takes memory for the longest row alone.

    `weights` are integers: a view of any weights as such, since only their bits are moved.
    """
    longest = int(np.diff(indptr).max(initial=0))
    _insert(indptr, indices, weights)
    if longest > SHORT:
        spare = np.empty(longest, indices.dtype), np.empty(longest, weights.dtype)
        _distribute_rows(indptr, indices, weights, *spare, np.empty(1 << WIDEST, np.int64))


@njit(nogil=True, cache=True)
@no_type_check
def _insert(indptr, indices, weights):
    """Insertion sort of short rows."""
    for row in range(indptr.size - 1):
        first, stop = indptr[row], indptr[row + 1]
        if stop - first > SHORT:
            continue
        for arc in range(first + 1, stop):
            head, weight, at = indices[arc], weights[arc], arc
            while at > first and indices[at - 1] > head:
                indices[at], weights[at] = indices[at - 1], weights[at - 1]
                at -= 1
            indices[at], weights[at] = head, weight


@njit(nogil=True, cache=True)
@no_type_check
def _distribute_rows(indptr, indices, weights, spare_indices, spare_weights, places):
    """Radix sort of the other rows that do not rise already."""
    for row in range(indptr.size - 1):
        first, stop = indptr[row], indptr[row + 1]
        if stop - first <= SHORT:
            continue
        most, rises = indices[first], True
        for arc in range(first + 1, stop):
            most = max(most, indices[arc])
            rises &= indices[arc - 1] <= indices[arc]
        if not rises:
            _distribute(indices, weights, first, stop - first, most, spare_indices, spare_weights, places)


@njit(nogil=True)
@no_type_check
def _distribute(indices, weights, first, size, most, spare_indices, spare_weights, places):
    """Sort one row by the least digit first: to the spare arrays and back, with fewer values of a digit than arcs."""
    bits = 0
    while most >> bits:
        bits += 1
    passes = 2 if size >> (bits // 2) and bits <= 2 * WIDEST else 4
    width = (bits + passes - 1) // passes
    for shift in range(0, passes * width, 2 * width):
        _deal(indices, weights, first, spare_indices, spare_weights, 0, size, shift, width, places)
        _deal(spare_indices, spare_weights, 0, indices, weights, first, size, shift + width, width, places)


@njit(nogil=True)
@no_type_check
def _deal(indices, weights, first, indices_out, weights_out, first_out, size, shift, width, places):
    """One pass: arcs in the order of a digit of their heads, equal ones in the order given."""
    mask = (1 << width) - 1
    for digit in range(mask + 1):
        places[digit] = 0
    for arc in range(first, first + size):
        places[(indices[arc] >> shift) & mask] += 1
    place = first_out
    for digit in range(mask + 1):
        count = places[digit]
        places[digit] = place
        place += count
    for arc in range(first, first + size):
        digit = (indices[arc] >> shift) & mask
        indices_out[places[digit]], weights_out[places[digit]] = indices[arc], weights[arc]
        places[digit] += 1
