"""Rows of arcs on a CPU: the Numba half of `gpuops.search_graph`.

Arcs are given in rows by tail, so arcs leave their rows only in the transpose. Threads take ranges of rows. First they
drop arcs that no shortest path needs. Once vertices are numbered by their degrees, they write each row to its new place
and sort it. A long row is first distributed by weight into buckets of a few arcs: then every arc is near its place, and
insertion sort finishes the row.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import njit

from gpuops._threads import by_parts, for_all
from gpuops.csr import equal_ranges, transpose
from gpuops.csr.csr_numba import gather

_TASKS = 64
_RUN = 12  # arcs that are sorted by insertion
_BUCKET = 2  # arcs in a bucket, if weights are spread evenly
_CROWDED = 32  # a row with more arcs than this in one bucket is sorted by merging
_WORK = 32  # cost of an arc, in relaxations of a dense matrix

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, weights


def simplified(indptr: np.ndarray, heads: np.ndarray, weights: np.ndarray) -> tuple[Rows, np.ndarray, int]:
    """Return the arcs without loops, without arcs of weight +inf, and with only the lightest of parallel arcs.

    Returns
    -------
    rows : arrays of the shapes given
        Row v still begins at ``indptr[v]``, and may be shorter.
    degrees : (n,) int64
        The number of arcs left in each row.
    loop : int
        The place of the first loop of negative weight, or the number of arcs if there is no such loop.
    """
    kept_heads, kept_weights = np.empty_like(heads), np.empty_like(weights)
    degrees = np.empty(len(indptr) - 1, np.int64)
    loops = [len(heads)]
    arrays = indptr, heads, weights, kept_heads, kept_weights, degrees
    ranges = equal_ranges(indptr, 4 * numba.config.NUMBA_NUM_THREADS)  # each may need an array of n entries
    for_all(lambda rows: loops.append(_simplify(*arrays, *rows)), ranges, _WORK * len(heads))
    return (indptr, kept_heads, kept_weights), degrees, min(loops)


def numbered(degrees: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `order` and `rank` of vertices by descending degree, then by original number.

    All degrees from `most` on count as the same.
    """
    order, rank = np.empty((2, len(degrees)), np.int32)
    _number(np.minimum(degrees, most), order, rank)
    return order, rank


def sorted_rows(
    rows: Rows, degrees: np.ndarray, order: np.ndarray, rank: np.ndarray, shifts: np.ndarray | None = None
) -> Rows:
    """Return the rows of `simplified` in the new numbering, each sorted by weight, then by head.

    With `shifts`, an array over vertices in the new numbering, arcs are sorted by weight plus the shift of the head.
    """
    indptr = np.zeros(len(order) + 1, np.int64)
    np.cumsum(degrees[order], out=indptr[1:])
    m = int(indptr[-1])
    indices, row_weights = np.empty(m, np.int32), np.empty(m, rows[2].dtype)
    arrays = *rows, order, rank, shifts, indptr, indices, row_weights
    for_all(lambda part: _lay_rows(*arrays, *part), equal_ranges(indptr, _TASKS), _WORK * m)
    return indptr, indices, row_weights


def in_degrees(indices: np.ndarray, n: int) -> np.ndarray:
    """Return the number of arcs that lead to each of n vertices, (n,) int64."""
    parts = np.array_split(indices, numba.config.NUMBA_NUM_THREADS)
    counts = np.zeros((len(parts), n), np.int64)
    for_all(lambda part: _count(parts[part], counts[part]), range(len(parts)), _WORK * len(indices))
    degrees = np.empty(n, np.int64)
    by_parts(lambda part: np.sum(counts[:, part], axis=0, out=degrees[part]), n, counts.size)
    return degrees


def sorted_transpose(rows: Rows, shifts: np.ndarray | None = None) -> Rows:
    """Return the transpose of sorted rows, in the same numbering and sorted in the same way, with shifts of tails."""
    indptr, tails, arcs = transpose(rows[0], rows[1])
    same = np.arange(len(indptr) - 1, dtype=np.int32)
    return sorted_rows((indptr, tails, gather(rows[2], arcs)), np.diff(indptr), same, same, shifts)


@njit(nogil=True, cache=True)
def _simplify(indptr, heads, weights, kept_heads, kept_weights, degrees, first_row, last_row):
    n, loop = indptr.size - 1, heads.size
    seen = np.empty(0, np.int64)  # the place of the last arc that was kept, by head
    for row in range(first_row, last_row):
        begin, end = indptr[row], indptr[row + 1]
        rises = True
        for arc in range(begin + 1, end):
            rises &= heads[arc] >= heads[arc - 1]
        if not rises and seen.size == 0:
            seen = np.full(n, -1, np.int64)
        at = begin
        for arc in range(begin, end):
            head, weight = heads[arc], weights[arc]
            if head == row:
                if weight < 0:
                    loop = min(loop, arc)
                continue
            if not weight < np.inf:
                continue
            place = at - 1 if rises else seen[head]
            if place >= begin and kept_heads[place] == head:
                kept_weights[place] = min(kept_weights[place], weight)
                continue
            if not rises:
                seen[head] = at
            kept_heads[at], kept_weights[at] = head, weight
            at += 1
        degrees[row] = at - begin
    return loop


@njit(nogil=True, cache=True)
def _count(indices, counts):
    for head in indices:
        counts[head] += 1


@njit(nogil=True, cache=True)
def _number(degrees, order, rank):
    """Number vertices by a counting sort, whose pass appends to hundreds of lists in memory."""
    most = 0
    for degree in degrees:
        most = max(most, degree)
    places = np.zeros(most + 2, np.int64)
    for degree in degrees:
        places[most - degree + 1] += 1
    for i in range(most + 1):
        places[i + 1] += places[i]
    for v in range(degrees.size):
        place = places[most - degrees[v]]
        places[most - degrees[v]] = place + 1
        order[place], rank[v] = v, place


@njit(nogil=True, cache=True)
def _lay_rows(
    starts, heads, weights, order, rank, shifts, indptr, indices, row_weights, first_row, last_row,
):  # fmt: skip
    longest = 0
    for row in range(first_row, last_row):
        longest = max(longest, indptr[row + 1] - indptr[row])
    other_indices, other_weights = np.empty(longest, indices.dtype), np.empty(longest, weights.dtype)
    places = np.empty(longest // _BUCKET + 2, np.int64)
    for row in range(first_row, last_row):
        source, begin, size = starts[order[row]], indptr[row], indptr[row + 1] - indptr[row]
        scale = 0.0
        if size > _RUN:
            least = most = _key(weights, heads, source, rank, shifts)
            for arc in range(source, source + size):
                key = _key(weights, heads, arc, rank, shifts)
                least, most = min(least, key), max(most, key)
            buckets = size // _BUCKET
            scale = buckets / max(np.float64(most) - np.float64(least), 1e-300)
        crowd = size
        if scale == 0.0:  # a short row, or a range of weights that float64 does not hold
            for i in range(size):
                indices[begin + i], row_weights[begin + i] = rank[heads[source + i]], weights[source + i]
        else:
            places[: buckets + 2] = 0
            for arc in range(source, source + size):
                key = _key(weights, heads, arc, rank, shifts)
                places[np.int64((np.float64(key) - least) * scale) + 1] += 1
            crowd = 0
            for i in range(buckets + 1):
                crowd = max(crowd, places[i + 1])
                places[i + 1] += places[i]
            for arc in range(source, source + size):
                bucket = np.int64((np.float64(_key(weights, heads, arc, rank, shifts)) - least) * scale)
                at = begin + places[bucket]
                places[bucket] += 1
                indices[at], row_weights[at] = rank[heads[arc]], weights[arc]
        if crowd <= _CROWDED:
            _insert(indices, row_weights, shifts, begin, begin + size)
        else:
            end = begin + size
            _sort_row(indices[begin:end], row_weights[begin:end], shifts, other_indices, other_weights)


@njit(nogil=True, cache=True)
def _key(weights, heads, arc, rank, shifts):
    """Return the key by which an arc is sorted; `rank` converts heads to the numbering of `shifts`, unless None."""
    if shifts is None:
        return weights[arc]
    return weights[arc] + shifts[heads[arc] if rank is None else rank[heads[arc]]]


@njit(nogil=True, cache=True)
def _insert(indices, weights, shifts, start, stop):
    """Sort a range of arcs by insertion, by weight, then by head."""
    for i in range(start + 1, stop):
        head, weight, j = indices[i], weights[i], i
        key = _key(weights, indices, i, None, shifts)
        while j > start:
            other = _key(weights, indices, j - 1, None, shifts)
            if key > other or (key == other and head >= indices[j - 1]):
                break
            indices[j], weights[j] = indices[j - 1], weights[j - 1]
            j -= 1
        indices[j], weights[j] = head, weight


@njit(nogil=True, cache=True)
def _sort_row(indices, weights, shifts, other_indices, other_weights):
    """Sort a row in place by merging: sort runs by insertion, then merge pairs of runs."""
    size = indices.size
    for start in range(0, size, _RUN):
        _insert(indices, weights, shifts, start, min(start + _RUN, size))
    width = _RUN
    while width < size:
        for start in range(0, size - width, 2 * width):
            middle, end = start + width, min(start + 2 * width, size)
            if _key(weights, indices, middle - 1, None, shifts) < _key(weights, indices, middle, None, shifts):
                continue
            # Copy the first run out of the row, then merge both runs into the row.
            length = middle - start
            for i in range(length):
                other_indices[i], other_weights[i] = indices[start + i], weights[start + i]
            i, j, at = 0, middle, start
            while i < length:
                takes = False
                if j < end:
                    key = _key(weights, indices, j, None, shifts)
                    other = _key(other_weights, other_indices, i, None, shifts)
                    takes = key < other or (key == other and indices[j] < other_indices[i])
                if takes:
                    indices[at], weights[at] = indices[j], weights[j]
                    j += 1
                else:
                    indices[at], weights[at] = other_indices[i], other_weights[i]
                    i += 1
                at += 1
        width *= 2
