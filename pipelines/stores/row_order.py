"""Sort the arcs by head within the rows of a graph: stores may keep another order, for Euler circuits."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

SHORT = 48  # most arcs of a row that is sorted by insertion; the radix sort is faster for longer rows
WIDEST = 16  # most bits of a radix digit

# The functions take whole arrays and the position where a row begins: slices take the compiler several times as long.
# The sort of long rows is compiled only if there are long rows.


def sort_rows(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> None:
    """Sort each row by head, in place and stably; takes additional memory only for the longest row.

    `weights` is a view of the weights as integers, because only their bits are moved; None if there are no weights.
    """
    if weights is None:
        weights = indices.view(
            f"u{indices.itemsize}"
        )  # each head then moves twice, in the compiled functions for weights
    longest = int(np.diff(indptr).max(initial=0))
    _insert(indptr, indices, weights)
    if longest > SHORT:
        spare = np.empty(longest, indices.dtype), np.empty(longest, weights.dtype)
        _distribute_rows(indptr, indices, weights, *spare, np.empty(1 << WIDEST, np.int64))


@njit(nogil=True, cache=True)
@no_type_check
def _insert(indptr, indices, weights):
    """Sort the short rows by insertion."""
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
    """Sort the long rows that are not sorted yet by radix sort."""
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
    """Sort one row by its digits, the least significant digit first, to the spare arrays and back.

    Two digits are used if the number of values of a digit is about the number of arcs or less, else four digits.
    """
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
    """Make one pass of the radix sort: sort the arcs by one digit of their heads, stably."""
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
