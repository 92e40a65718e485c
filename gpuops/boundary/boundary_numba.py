"""Rows of distances from closed parts on the CPU: a few at a time, as many as a cache holds, share what they read."""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba import njit, types

from gpuops.numbers import infinity

CACHE_BYTES = 1 << 20  # that a core has for itself: of rows computed together
COLUMNS = 1024  # of a tile of them, which all boundary vertices of a part relax


@functools.cache
def compile_for(dtype: np.dtype) -> Any:
    """`_rows` for one dtype."""
    scalar = numba.from_dtype(dtype)
    index, vertices = types.Array(types.int64, 1, "C"), types.Array(types.int32, 1, "A", readonly=True)
    places = types.Array(types.int64, 1, "A", readonly=True)

    def table(dimensions: int) -> Any:
        return types.Array(scalar, dimensions, "C", readonly=True)

    signature = types.void(
        types.Array(scalar, 2, "A"), places, places, vertices, vertices, places, table(3), table(3), table(2),
        index, index, index, index, types.Array(scalar, 2, "C"), scalar,
    )  # fmt: skip
    compiled = njit(signature, nogil=True, cache=True)(_rows)
    unreachable = infinity(dtype)
    return lambda *arguments: compiled(*arguments, unreachable)


def _rows(
    out, chosen, sources, part, place, starts, to_boundary, inner, among,
    back, groups, firsts, places, arrival, unreachable,
):  # fmt: skip
    """The rows `chosen` of `out`: for the targets by part, then in the order they were asked for."""
    width, together = out.shape[1], 1
    if arrival.size * out.itemsize > CACHE_BYTES:  # else one row at a time reads it there, and is quicker
        together = max(1, min(chosen.size, CACHE_BYTES // (width * out.itemsize)))
    onward = np.empty((together, among.shape[0]), among.dtype)
    rows = np.empty((together, width), out.dtype)
    for first in range(0, chosen.size, together):
        some = chosen[first : first + together]
        onward[:], rows[:] = unreachable, unreachable
        for i in range(some.size):
            p, s = part[sources[some[i]]], place[sources[some[i]]]
            for b in range(starts[p + 1] - starts[p]):
                _relax(onward[i], to_boundary[p, s, b], among[starts[p] + b])
        for g in range(groups.size):
            q = groups[g]
            for left in range(firsts[g], firsts[g + 1], COLUMNS):
                right = min(left + COLUMNS, firsts[g + 1])
                for i in range(some.size):
                    for b in range(starts[q + 1] - starts[q]):
                        _relax(rows[i, left:right], onward[i, starts[q] + b], arrival[b, left:right])
                    p, s = part[sources[some[i]]], place[sources[some[i]]]
                    if q == p:
                        for j in range(left, right):
                            rows[i, j] = min(rows[i, j], inner[p, s, places[j]])
        for i in range(some.size):
            for j in range(width):
                out[some[i], j] = rows[i, back[j]]


@njit(nogil=True, inline="always")
def _relax(row, first, second):
    """row = min(row, first + second); integers wrap to the width of their dtype, as they are stored."""
    for j in range(row.size):
        length = row.dtype.type(first + second[j])
        row[j] = length if length < row[j] else row[j]
