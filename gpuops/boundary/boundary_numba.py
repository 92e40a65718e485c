"""Rows of distances from closed parts on the CPU: a row at a time, all of it in cache."""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba import njit, types

from gpuops.numbers import infinity


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
    onward = np.empty(among.shape[0], among.dtype)
    row = np.empty(out.shape[1], out.dtype)
    for i in chosen:
        p, s = part[sources[i]], place[sources[i]]
        onward[:] = unreachable
        for b in range(starts[p + 1] - starts[p]):
            _relax(onward, to_boundary[p, s, b], among[starts[p] + b])
        row[:] = unreachable
        for g in range(groups.size):
            q = groups[g]
            there = row[firsts[g] : firsts[g + 1]]
            for b in range(starts[q + 1] - starts[q]):
                _relax(there, onward[starts[q] + b], arrival[b, firsts[g] : firsts[g + 1]])
            if q == p:
                near = places[firsts[g] : firsts[g + 1]]
                for j in range(there.size):
                    there[j] = min(there[j], inner[p, s, near[j]])
        for j in range(row.size):
            out[i, j] = row[back[j]]


@njit(nogil=True, inline="always")
def _relax(row, first, second):
    """row = min(row, first + second); integers wrap to the width of their dtype, as they are stored."""
    for j in range(row.size):
        length = row.dtype.type(first + second[j])
        row[j] = length if length < row[j] else row[j]
