"""Compressed sparse rows on a CPU: the Numba half of `gpuops.csr`."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import by_parts, for_all, threads_for

_TASKS = 64
_SHORT = 8  # most rows have at most this many arcs
_BLOCK = 2**16  # arcs whose tails stay in the second-level cache
_STREAM, _GATHER = 4, 64  # cost of a sequential and of a random access, in relaxations of a dense matrix
_BUCKETS = 10  # leading bits of a head that choose its list in the first deal; 2^10 lists can be appended to at once
_NEAR = 2**14  # vertices whose lists stay in a cache


def bounds(indices: np.ndarray) -> tuple[int, int]:
    """Return the least and the largest of `indices`, which has at least one element."""
    found = by_parts(lambda part: (indices[part].min(), indices[part].max()), len(indices), _STREAM * len(indices))
    least, largest = zip(*found, strict=True)
    return int(min(least)), int(max(largest))


def tails(indptr: np.ndarray, arcs: int, dtype: np.dtype) -> np.ndarray:
    """Return the tail of every arc, (arcs,) of `dtype`."""
    result = np.empty(arcs, dtype)

    def work(part: tuple[int, int, int]) -> None:
        for first, last, block in _blocks(indptr, part, dtype):
            result[first:last] = block[: last - first]

    for_all(work, parts(indptr, arcs, _TASKS), _STREAM * arcs)
    return result


def transpose(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `gpuops.csr.transpose` of a graph: count the arcs into each vertex, then deal the arcs out.

    With scattered heads, every store would miss the caches. Such arcs are dealt twice: first to ranges of heads, few
    enough that the ends of all lists stay in a cache, then within each range by head. Threads deal parts of the arcs.
    Every part has its own places in each list, behind the places of the part before it, so arcs stay in order.
    """
    n, m = len(indptr) - 1, len(indices)
    starts, sources = np.empty(n + 1, indptr.dtype), np.empty(m, indices.dtype)
    arcs = np.empty(m, indptr.dtype)
    shift = max((n - 1).bit_length() - _BUCKETS, 0) if _scattered(indices) else 0
    lists = n if shift == 0 else 1 + (n - 1 >> shift)
    # Unsigned, so that compiled code does not test for negative indices.
    number = np.dtype(np.uint32 if m < 2**32 else np.uint64)
    threads = min(numba.config.NUMBA_NUM_THREADS, 8 if shift == 0 else 64)
    tasks = list(enumerate(parts(indptr, m, threads)))
    places = np.zeros((len(tasks), lists), number)
    for_all(lambda task: _count(indices, shift, *task[1], places[task[0]]), tasks, _STREAM * m)
    cuts = starts if shift == 0 else np.empty(lists + 1, np.int64)
    _place(places, cuts)
    room = m if shift else 0
    dealt = np.empty(room, indices.dtype), np.empty(room, indices.dtype), np.empty(room, number)

    def deal(task: tuple[int, tuple[int, int, int]]) -> None:
        task_places = places[task[0]]
        for first, last, block in _blocks(indptr, task[1], indices.dtype):
            if shift:
                _deal_by_ranges(indices, block, shift, first, last, task_places, *dealt)
            else:
                _deal(indices, block, first, last, task_places, sources, arcs)

    for_all(deal, tasks, _GATHER * m)
    if shift == 0:
        return starts, sources, arcs
    ranges = [(b << shift, min((b + 1) << shift, n), cuts[b], cuts[b + 1]) for b in range(lists)]
    for_all(lambda part: _sort(*part, *dealt, starts, sources, arcs), ranges, _GATHER * (n + m))
    starts[n] = m
    return starts, sources, arcs


@entry
def both_directions(indptr, indices, weights):
    """Return `gpuops.csr.both_directions` of a graph."""
    n, m = len(indptr) - 1, len(indices)
    starts = np.zeros(n + 1, indptr.dtype)
    for arc in range(m):
        starts[indices[arc] + 1] += 1
    for vertex in range(n):
        starts[vertex + 1] += starts[vertex] + indptr[vertex + 1] - indptr[vertex]
    place = starts[:-1].copy()
    heads, lengths = np.empty(2 * m, indices.dtype), np.empty(2 * m, weights.dtype)
    for tail in range(n):
        for arc in range(indptr[tail], indptr[tail + 1]):
            head = indices[arc]
            heads[place[tail]], lengths[place[tail]] = head, weights[arc]
            place[tail] += 1
            heads[place[head]], lengths[place[head]] = tail, weights[arc]
            place[head] += 1
    return starts, heads, lengths


def _scattered(indices: np.ndarray) -> bool:
    """Return whether, in a sample, more than a tenth of consecutive arcs lead to vertices at least _NEAR apart."""
    sample = np.linspace(0, len(indices) - 2, 1024).astype(np.int64) if len(indices) > 1 else np.empty(0, np.int64)
    return bool((np.abs(indices[sample + 1] - indices[sample]) >= _NEAR).mean() > 0.1) if len(sample) else False


def gather(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return ``values[places]``, by threads."""
    result, relaxations = np.empty(len(places), values.dtype), _GATHER * len(places)
    size = max(-(-len(places) // threads_for(relaxations)), 1)  # elements of a thread, since each part takes the lock
    for_all(
        lambda first: np.take(values, places[first : first + size], out=result[first : first + size], mode="clip"),
        range(0, len(places), size),
        relaxations,
    )
    return result


def parts(indptr: np.ndarray, arcs: int, count: int) -> list[tuple[int, int, int]]:
    """Cut the arcs into at most `count` equal parts, across rows: (row of the first arc, first arc, last arc + 1)."""
    cuts = np.arange(count + 1) * arcs // count
    rows = np.searchsorted(indptr, cuts[:-1], side="right") - 1
    return [(r, a, b) for r, a, b in zip(rows.tolist(), cuts[:-1].tolist(), cuts[1:].tolist(), strict=True) if a < b]


def _blocks(indptr: np.ndarray, part: tuple[int, int, int], dtype: np.dtype) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the tails of a part of the arcs, block by block: first arc, last arc + 1, and an array that is reused."""
    row, first, last = part
    block = np.empty(min(_BLOCK, last - first) + _SHORT, dtype)
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        row = _expand(indptr, row, start, end, block)
        yield start, end, block


@entry
def _expand(indptr, row, first, last, block):
    """Store the tails of arcs `first` to `last` - 1 in `block`, and return the last one; `first` is in `row` or later.

    Each row stores its number at least _SHORT times, and the next row overwrites the surplus: a processor cannot
    predict the lengths of rows, and this way few branches depend on them. `block` has _SHORT more elements than arcs.
    """
    while indptr[row + 1] <= first:
        row += 1
    start, end = 0, indptr[row + 1] - first
    while True:
        for i in range(start, start + _SHORT):
            block[i] = row
        for i in range(start + _SHORT, end if end < last - first else last - first):
            block[i] = row
        if end >= last - first:
            return row
        row += 1
        start, end = end, indptr[row + 1] - first


@entry
def _count(indices, shift, _row, first, last, counts):
    for arc in range(first, last):
        counts[np.uint64(indices[arc]) >> np.uint64(shift)] += 1


@entry
def _place(counts, starts):
    """Replace `counts` (parts, lists) by the places where the parts begin in the lists; fill the lists' `starts`."""
    place = 0
    for i in range(counts.shape[1]):
        starts[i] = place
        for part in range(counts.shape[0]):
            count = counts[part, i]
            counts[part, i] = place
            place += count
    starts[counts.shape[1]] = place


@entry
def _deal(indices, block, first, last, places, tails, numbers):
    for arc in range(first, last):
        head = np.uint64(indices[arc])
        place = places[head]
        places[head] = place + 1
        tails[place] = block[arc - first]
        numbers[place] = arc


@entry
def _deal_by_ranges(indices, block, shift, first, last, places, heads, tails, numbers):
    for arc in range(first, last):
        head = indices[arc]
        place = places[head >> shift]
        places[head >> shift] = place + 1
        heads[place] = head
        tails[place] = block[arc - first]
        numbers[place] = arc


@entry
def _sort(first_head, last_head, first, last, heads, tails, numbers, starts, sources, arcs):
    """Sort the arcs `first` to `last` - 1, which lead to `first_head` to `last_head` - 1, by counting their heads."""
    places = np.zeros(last_head - first_head, np.int64)
    for i in range(first, last):
        places[heads[i] - first_head] += 1
    place = first
    for v in range(first_head, last_head):
        starts[v] = place
        count = places[v - first_head]
        places[v - first_head] = place
        place += count
    for i in range(first, last):
        v = heads[i] - first_head
        place = places[v]
        places[v] = place + 1
        sources[place] = tails[i]
        arcs[place] = numbers[i]
