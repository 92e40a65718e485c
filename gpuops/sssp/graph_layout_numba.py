"""Rows of arcs on a CPU: the Numba half of `gpuops.search_graph`.

Arcs are given in rows by tail, so arcs leave their rows only in the transpose. Threads take ranges of rows. First they
drop arcs that no shortest path needs. Once vertices are numbered by their degrees, they write each row to its new place
and sort it. A long row is first distributed by weight into buckets of a few arcs: then every arc is near its place, and
insertion sort finishes the row.
"""

from __future__ import annotations

import numba
import numpy as np

from gpuops._compiled_numba import entry, inner
from gpuops._threads import by_parts, for_all
from gpuops.csr import equal_ranges, transpose
from gpuops.csr.csr_numba import gather

_TASKS, _TASK = 64, 2**12  # most tasks of a pass; arcs of a task if there are fewer tasks
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

    def work(rows: tuple[int, int]) -> None:
        loops.append(_simplify(*arrays, np.empty(len(degrees), np.int64), *rows))

    # Each range may need an array of n entries, which takes memory only if a row does not rise.
    tasks = min(4 * numba.config.NUMBA_NUM_THREADS, 1 + len(heads) // _TASK)
    for_all(work, equal_ranges(indptr, tasks), _WORK * len(heads))
    return (indptr, kept_heads, kept_weights), degrees, min(loops)


def numbered(degrees: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `order` and `rank` of vertices by descending degree, then by original number: a counting sort.

    All degrees from `most` on count as the same.
    """
    order, rank = np.empty((2, len(degrees)), np.int32)
    counted = np.minimum(degrees, most)
    places = len(degrees) - np.cumsum(np.bincount(counted))  # by degree: how many vertices have a greater degree
    _number(counted, places, order, rank)
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
    result = indptr, indices, row_weights

    def work(part: tuple[int, int]) -> None:
        first, last = part
        listed = np.empty(last - first, np.int64)
        listed = listed[: _lay_rows(*rows, order, rank, shifts, *result, listed, first, last)]
        if not len(listed):
            return
        longest = int((indptr[listed + 1] - indptr[listed]).max())
        places = np.empty(longest // _BUCKET + 2, np.int64)
        crowded = listed[: _lay_long_rows(*rows, order, rank, shifts, *result, places, listed)]
        if len(crowded):
            spare = np.empty(longest, np.int32), np.empty(longest, row_weights.dtype)
            _merge_rows(*result, shifts, crowded, *spare)

    for_all(work, equal_ranges(indptr, min(_TASKS, 1 + m // _TASK)), _WORK * m)
    return result


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


@entry
def _simplify(indptr, heads, weights, kept_heads, kept_weights, degrees, seen, first_row, last_row):
    """Keep arcs of a range of rows. `seen`, by head, is the place of the last arc that was kept, or anything."""
    loop = heads.size
    for row in range(first_row, last_row):
        begin, end = indptr[row], indptr[row + 1]
        rises = True
        for arc in range(begin + 1, end):
            rises &= heads[arc] >= heads[arc - 1]
        at = begin
        for arc in range(begin, end):
            head, weight = heads[arc], weights[arc]
            if head == row:
                if weight < 0 and arc < loop:
                    loop = arc
                continue
            if not weight < np.inf:
                continue
            place = at - 1 if rises else seen[head]
            if begin <= place < at and kept_heads[place] == head:
                if weight < kept_weights[place]:
                    kept_weights[place] = weight
                continue
            if not rises:
                seen[head] = at
            kept_heads[at], kept_weights[at] = head, weight
            at += 1
        degrees[row] = at - begin
    return loop


@entry
def _count(indices, counts):
    for head in indices:
        counts[head] += 1


@entry
def _number(degrees, places, order, rank):
    for v in range(degrees.size):
        place = places[degrees[v]]
        places[degrees[v]] = place + 1
        order[place], rank[v] = v, place


@entry
def _lay_rows(
    starts, heads, weights, order, rank, shifts, indptr, indices, row_weights, long_rows, first_row, last_row,
):  # fmt: skip
    """Write a range of rows and sort them, except long rows; list these in `long_rows` and return their number."""
    count = 0
    for row in range(first_row, last_row):
        source, begin, end = starts[order[row]], indptr[row], indptr[row + 1]
        if end - begin > _RUN:
            long_rows[count] = row
            count += 1
            continue
        for at in range(begin, end):
            indices[at], row_weights[at] = rank[heads[source]], weights[source]
            source += 1
        _insert(indices, row_weights, shifts, begin, end)
    return count


@entry
def _lay_long_rows(
    starts, heads, weights, order, rank, shifts, indptr, indices, row_weights, places, long_rows,
):  # fmt: skip
    """Write long rows and sort them, except the rows with many arcs of similar weight.

    The rows that are not sorted move to the beginning of `long_rows`; returns their number.
    """
    left = 0
    for row in long_rows:
        source, begin, end = starts[order[row]], indptr[row], indptr[row + 1]
        size = end - begin
        scale = 0.0
        least = most = np.float64(_key(weights[source], rank[heads[source]], shifts))
        for arc in range(source + 1, source + size):
            key = np.float64(_key(weights[arc], rank[heads[arc]], shifts))
            if key < least:
                least = key
            if key > most:
                most = key
        if most > least:
            scale = (size // _BUCKET) / (most - least)
        crowd = size
        if not 0.0 < scale < np.inf:  # equal weights, or a range that float64 does not hold
            for i in range(size):
                indices[begin + i], row_weights[begin + i] = rank[heads[source + i]], weights[source + i]
        else:
            for i in range(size // _BUCKET + 2):
                places[i] = 0
            for arc in range(source, source + size):
                key = np.float64(_key(weights[arc], rank[heads[arc]], shifts))
                places[np.int64((key - least) * scale) + 1] += 1
            crowd = 0
            for i in range(size // _BUCKET + 1):
                if places[i + 1] > crowd:
                    crowd = places[i + 1]
                places[i + 1] += places[i]
            for arc in range(source, source + size):
                key = np.float64(_key(weights[arc], rank[heads[arc]], shifts))
                bucket = np.int64((key - least) * scale)
                at = begin + places[bucket]
                places[bucket] += 1
                indices[at], row_weights[at] = rank[heads[arc]], weights[arc]
        if crowd <= _CROWDED:
            _insert(indices, row_weights, shifts, begin, end)
        else:
            long_rows[left] = row
            left += 1
    return left


@inner
def _key(weight, head, shifts):
    """Return the key by which an arc is sorted."""
    return weight if shifts is None else weight + shifts[head]


@inner
def _insert(indices, weights, shifts, start, stop):
    """Sort a range of arcs by insertion, by weight, then by head."""
    for i in range(start + 1, stop):
        head, weight, j = indices[i], weights[i], i
        key = _key(weight, head, shifts)
        while j > start:
            other = _key(weights[j - 1], indices[j - 1], shifts)
            if key > other or (key == other and head >= indices[j - 1]):
                break
            indices[j], weights[j] = indices[j - 1], weights[j - 1]
            j -= 1
        indices[j], weights[j] = head, weight


@entry
def _merge_rows(indptr, all_indices, all_weights, shifts, rows, other_indices, other_weights):
    """Sort rows in place by merging: sort runs by insertion, then merge pairs of runs."""
    for row in rows:
        indices, weights = all_indices[indptr[row] : indptr[row + 1]], all_weights[indptr[row] : indptr[row + 1]]
        size = indices.size
        for start in range(0, size, _RUN):
            _insert(indices, weights, shifts, start, min(start + _RUN, size))
        width = _RUN
        while width < size:
            for start in range(0, size - width, 2 * width):
                middle, end = start + width, min(start + 2 * width, size)
                before = _key(weights[middle - 1], indices[middle - 1], shifts)
                if before < _key(weights[middle], indices[middle], shifts):
                    continue
                # Copy the first run out of the row, then merge both runs into the row.
                length = middle - start
                for i in range(length):
                    other_indices[i], other_weights[i] = indices[start + i], weights[start + i]
                i, j, at = 0, middle, start
                while i < length:
                    takes = False
                    if j < end:
                        key = _key(weights[j], indices[j], shifts)
                        other = _key(other_weights[i], other_indices[i], shifts)
                        takes = key < other or (key == other and indices[j] < other_indices[i])
                    if takes:
                        indices[at], weights[at] = indices[j], weights[j]
                        j += 1
                    else:
                        indices[at], weights[at] = other_indices[i], other_weights[i]
                        i += 1
                    at += 1
            width *= 2
