"""Numba kernel for one source: climb to the root, then sweep all nodes."""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba import njit, types

from gpuops.hierarchy.tree import tree_type
from gpuops.numbers import infinity


@functools.cache
def compile_for(dtype: np.dtype) -> Any:
    """Return `_row`, compiled for one dtype."""
    scalar = numba.from_dtype(dtype)
    places, lengths = types.Array(types.int32, 1, "C", readonly=True), types.Array(scalar, 1, "C", readonly=True)
    signature = types.void(types.Array(scalar, 1, "C"), places, lengths, tree_type(dtype), scalar)
    compiled = njit(signature, nogil=True, cache=True)(_row)
    unreachable = infinity(dtype)
    return lambda *arguments: compiled(*arguments, unreachable)


def _row(d, places, lengths, tree, unreachable):
    """Fill `d`, by places, with the least distances over some starts at `places`.

    `lengths` has the distances from the source to the starts.
    """
    d[:] = unreachable
    for i in range(len(places)):
        d[places[i]] = min(d[places[i]], lengths[i])
    kind = d.dtype.type
    for start in places:
        node = tree.node_of[start]
        while node >= 0:
            first, begin = tree.starts[node], tree.front_starts[node]
            width, size = tree.starts[node + 1] - first, tree.front_starts[node + 1] - begin
            for i in range(width):
                if d[first + i] >= unreachable:
                    continue
                row = tree.out_starts[node] + i * (width + size)
                for j in range(size):
                    other = tree.front[begin + j]
                    d[other] = min(d[other], kind(d[first + i] + tree.out[row + width + j]))
            for i in range(width):
                row = tree.out_starts[node] + i * (width + size)
                for j in range(width):
                    d[first + j] = min(d[first + j], kind(d[first + i] + tree.out[row + j]))
            node = tree.parent[node]
    for node in range(len(tree.parent) - 1, -1, -1):
        first, begin = tree.starts[node], tree.front_starts[node]
        width, size = tree.starts[node + 1] - first, tree.front_starts[node + 1] - begin
        step = width + size if tree.undirected else size
        for i in range(width):
            best, row = d[first + i], tree.back_starts[node] + i * step
            for j in range(size):
                length = kind(d[tree.front[begin + j]] + tree.back[row + j])
                best = length if length < best else best
            d[first + i] = best
