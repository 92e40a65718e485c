"""Cyclic spectra on a CPU: the Numba half of `gpuops.sequences.spectrum`."""

from __future__ import annotations

import numba
import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import for_all

_TASK = 16  # lengths of pieces that a thread takes at a time
_STREAM = 4  # cost of a sum, in relaxations of a dense matrix


def sums(prefix: np.ndarray) -> np.ndarray:
    """Return 0, the masses of pieces by length and beginning, and the total, from prefix sums of two turns (2 n,)."""
    n = len(prefix) // 2
    result = np.empty(n * (n - 1) + 2, np.int64)
    result[0], result[-1] = 0, prefix[n]
    pieces = result[1:-1].reshape(n - 1, n)
    for_all(lambda first: _subtract(prefix, first, pieces), range(0, n - 1, _TASK), _STREAM * n * n)
    return result


@entry
def _subtract(prefix, first, pieces):
    n = pieces.shape[1]
    for length in range(first + 1, min(first + 1 + _TASK, n)):
        of_length, ends = pieces[length - 1], prefix[length : length + n]
        for i in range(n):
            of_length[i] = ends[i] - prefix[i]


def counts(prefix: np.ndarray, total: int) -> np.ndarray:
    """Return how often each sum from 0 to `total` occurs; no mass is negative."""
    n = len(prefix) // 2
    threads = max(1, min(numba.config.NUMBA_NUM_THREADS, n * n // (2 * total + 1)))
    tables = np.zeros((threads, total + 1), np.int64)
    for_all(lambda i: _count(prefix, i, threads, tables[i]), range(threads), _STREAM * n * n)
    table = tables.sum(axis=0)
    table += table[::-1].copy()  # the rest of the ring
    if n % 2 == 0:
        _count_halves(prefix, table)
    table[0] += 1
    table[total] += 1
    return table


@entry
def _count(prefix, first, step, table):
    """Count the sums of the pieces shorter than half of the ring, for every `step`-th length from `first` + 1 on."""
    n = prefix.size // 2
    for length in range(first + 1, (n + 1) // 2, step):
        for i in range(n):
            table[np.uint64(prefix[i + length] - prefix[i])] += 1


@entry
def _count_halves(prefix, table):
    n = prefix.size // 2
    for i in range(n):
        table[prefix[i + n // 2] - prefix[i]] += 1


def expanded(counts: np.ndarray, size: int) -> np.ndarray:
    """Return each number as often as it is counted, ascending, (size,)."""
    return np.repeat(np.arange(len(counts)), counts)
