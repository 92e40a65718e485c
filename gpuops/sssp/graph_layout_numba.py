"""Rows of arcs on a CPU: the Numba half of `gpuops.search_graph`.

Arcs are dealt out to rows by counting, then each row is sorted by itself, rows by threads: most are short enough to be
sorted in the first-level cache, where one sort of all arcs would pass over memory again and again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gpuops._threads import for_all
from gpuops.csr import equal_ranges, row_starts

_TASKS = 64
_RUN = 12  # arcs that are sorted by insertion


def sorted_rows(
    n: int, tails: np.ndarray, heads: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compressed sparse rows (indptr, indices, weights) of the arcs, each sorted by weight, then by head."""
    indptr = row_starts(tails, n)
    indices, row_weights = np.empty_like(heads), np.empty_like(weights)
    _deal(tails, heads, weights, indptr[:-1].copy(), indices, row_weights)
    for_all(lambda rows: _sort(indptr, indices, row_weights, *rows), equal_ranges(indptr, _TASKS), 32 * len(heads))
    return indptr, indices, row_weights


def first_of_each_head(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Mask of the arcs, in compressed sparse rows, that come first in their row among those to the same head."""
    first = np.empty(len(indices), bool)
    for_all(lambda rows: _mark_first(indptr, indices, first, *rows), equal_ranges(indptr, 4), 32 * len(indices))
    return first


@njit(nogil=True, cache=True)
def _deal(tails, heads, weights, place, indices, row_weights):
    for arc in range(tails.size):
        tail = tails[arc]
        at = place[tail]
        place[tail] = at + 1
        indices[at] = heads[arc]
        row_weights[at] = weights[arc]


@njit(nogil=True, cache=True)
def _mark_first(indptr, indices, first, first_row, last_row):
    seen_in = np.full(indptr.size - 1, -1, np.int32)
    for row in range(first_row, last_row):
        for arc in range(indptr[row], indptr[row + 1]):
            first[arc] = seen_in[indices[arc]] != row
            seen_in[indices[arc]] = row


@njit(nogil=True, cache=True)
def _sort(indptr, indices, weights, first_row, last_row):
    longest = 0
    for row in range(first_row, last_row):
        longest = max(longest, indptr[row + 1] - indptr[row])
    other_indices, other_weights = np.empty(longest, indices.dtype), np.empty(longest, weights.dtype)
    for row in range(first_row, last_row):
        begin, end = indptr[row], indptr[row + 1]
        _sort_row(indices[begin:end], weights[begin:end], other_indices, other_weights)


@njit(nogil=True, cache=True)
def _sort_row(indices, weights, other_indices, other_weights):
    """Merge sort: runs by insertion, then pairs of runs. The row ends up in its own arrays."""
    size = indices.size
    for start in range(0, size, _RUN):
        for i in range(start + 1, min(start + _RUN, size)):
            head, weight, j = indices[i], weights[i], i
            while j > start and (weight < weights[j - 1] or (weight == weights[j - 1] and head < indices[j - 1])):
                indices[j], weights[j] = indices[j - 1], weights[j - 1]
                j -= 1
            indices[j], weights[j] = head, weight
    width = _RUN
    while width < size:
        for start in range(0, size - width, 2 * width):
            middle, end = start + width, min(start + 2 * width, size)
            if weights[middle - 1] < weights[middle]:
                continue
            # The first run moves out of the way, and the two merge into the row.
            length = middle - start
            for i in range(length):
                other_indices[i], other_weights[i] = indices[start + i], weights[start + i]
            i, j, at = 0, middle, start
            while i < length:
                if j < end and (
                    weights[j] < other_weights[i] or (weights[j] == other_weights[i] and indices[j] < other_indices[i])
                ):
                    indices[at], weights[at] = indices[j], weights[j]
                    j += 1
                else:
                    indices[at], weights[at] = other_indices[i], other_weights[i]
                    i += 1
                at += 1
        width *= 2
