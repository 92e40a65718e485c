"""Permutations on a GPU: the CUDA half of `gpuops.sequences.permutations`, kernels in permutations.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_LAST, _SHORT, _ROWS = 5, 16, 1024  # as in permutations.cu
_PROGRAM = Program("sequences/permutations.cu", ("permute_different", "permute_repeated"), threads=256)


def permute(device: Any, repeats: list[int], total: int, first: int, count: int) -> Any:
    """Return `count` permutations from rank `first` on, (count, n) uint8 numbers of kinds.

    `total` is the number of all permutations, below 2^63.
    """
    import cupy

    n = sum(repeats)
    with device:
        rows = cupy.empty((count, n), np.uint8)
        if rows.size == 0:
            return rows
        sizes = np.uint64(first), np.int64(count), np.int32(n)
        if n == len(repeats) and _LAST <= n <= _SHORT:
            _PROGRAM.launch("permute_different", math.ceil(count / _ROWS), (*sizes, rows))
        else:
            of_kinds = np.uint64(total), cupy.asarray(np.array(repeats, np.int32)), np.int32(len(repeats))
            _PROGRAM.launch("permute_repeated", math.ceil(count / _PROGRAM.threads), (*sizes, *of_kinds, rows))
        return rows
