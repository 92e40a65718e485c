"""Permutations on a CPU: the Numba half of `gpuops.sequences.permutations`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import for_all

_TASK = 2**16  # permutations of a task; only the first is found by its rank
_STEP = 16  # cost of a permutation, in relaxations of a dense matrix


def permute(unranked: Callable[[list[int], int], np.ndarray], repeats: list[int], first: int, count: int) -> np.ndarray:
    """Return `count` permutations from rank `first` on, (count, n) uint8 numbers of kinds."""
    result = np.empty((count, sum(repeats)), np.uint8)

    def fill(start: int) -> None:
        rows = result[start : start + _TASK]
        rows[0] = unranked(repeats, first + start)
        _follow(rows)

    for_all(fill, range(0, count, _TASK), _STEP * count)
    return result


@entry
def _follow(rows):
    """Fill each row with the permutation after the row before."""
    n = rows.shape[1]
    row = rows[0].copy()
    for r in range(1, rows.shape[0]):
        advance(row)
        to = rows[r]
        for i in range(n):
            to[i] = row[i]


@entry
def advance(row):
    """Change `row` to the next permutation and return True, or return False if `row` is the last."""
    n = row.size
    rise = n - 2
    while rise >= 0 and row[rise] >= row[rise + 1]:
        rise -= 1
    if rise < 0:
        return False
    other = n - 1
    while row[other] <= row[rise]:
        other -= 1
    row[rise], row[other] = row[other], row[rise]
    low, high = rise + 1, n - 1
    while low < high:
        row[low], row[high] = row[high], row[low]
        low += 1
        high -= 1
    return True
