"""Distinct values, look-and-say and cyclic spectra as published: host side of benchmarks/kernels/sequences.cu.

On a CPU, the loops of the articles run on one core. On a GPU, the kernels of the articles run; CuPy sorts and scans
instead of the library of the articles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.harness import KERNELS
from gpuops._cuda import Program

ENTRIES = ("mark_heads", "scatter", "say_naive", "say_flagged", "cyclic_grid", "cyclic_streamed")
PROGRAM = Program("sequences.cu", ENTRIES, folder=KERNELS)
BLOCK, GRID_BLOCK = 512, 16


def distinct_by_sorting(xp: Any, x: Any) -> Any:
    """Return the distinct values of `x`, (n,) int32, CuPy: sort, mark the first of equal values, scan, scatter."""
    ordered, flags = xp.sort(x), xp.empty((len(x),), np.int32)
    _launch("mark_heads", len(x), (ordered, np.int64(len(x)), flags))
    places = xp.cumsum(flags, dtype=np.int32)
    kept = xp.empty((int(places[-1]),), np.int32)
    _launch("scatter", len(x), (ordered, flags, places, np.int64(len(x)), kept))
    return kept


def say_with_host_filter(xp: Any, seed: np.ndarray, steps: int) -> np.ndarray:
    """Return a term of look-and-say: the device does each step, the host removes the zeros. The seed is int8.

    As published, terms have a byte a digit and travel to the device and back in every step. A compiled loop on one core
    removes the zeros, as the article's compiled filter does.
    """
    term = seed
    for _ in range(steps):
        said = xp.empty((2 * len(term),), np.int8)
        _launch("say_naive", len(term), (xp.asarray(term), np.int32(len(term)), said))
        term = without_zeros(said.get())
    return term


@njit(cache=True)
def without_zeros(said):
    """Return the elements of `said`, (n,) int8, that are above zero."""
    kept = np.empty(len(said), np.int8)
    length = 0
    for digit in said:
        if digit > 0:
            kept[length] = digit
            length += 1
    return kept[:length].copy()


def say_by_scans(xp: Any, seed: np.ndarray, steps: int, longest: int) -> Any:
    """Return a term of look-and-say by flags, a scan and a scatter in every step.

    Memory for terms up to the length `longest` is allocated once. The host reads the length of every term.
    """
    term, said, flags = (xp.empty((2 * longest,), np.int32) for _ in range(3))
    term[: len(seed)] = xp.asarray(seed)
    length = len(seed)
    for _ in range(steps):
        _launch("say_flagged", length, (term, np.int32(length), said, flags))
        places = xp.cumsum(flags[: 2 * length], dtype=np.int32)
        _launch("scatter", 2 * length, (said, flags, places, np.int64(2 * length), term))
        length = int(places[-1])
    return term[:length]


def spectrum_by_grid(xp: Any, masses: Any) -> Any:
    """Return the cyclic spectrum of `masses`, (n,) int32, CuPy, not sorted.

    It has 0, the (n - 1) n sums by length and beginning, and the sum of all masses.
    """
    n = len(masses)
    result, sums = _ends(xp, masses)
    blocks = -(-n // GRID_BLOCK)
    PROGRAM.launch("cyclic_grid", (blocks, blocks), (masses, np.int32(n), sums), threads=(GRID_BLOCK, GRID_BLOCK))
    return result


def spectrum_by_stream(xp: Any, masses: Any) -> Any:
    """Return the same spectrum as `spectrum_by_grid`, by n - 1 launches."""
    n = len(masses)
    result, sums = _ends(xp, masses)
    for length in range(n - 1):
        _launch("cyclic_streamed", n, (masses, np.int32(n), sums, np.int32(length)), 256)
    return result


def _ends(xp: Any, masses: Any) -> tuple[Any, Any]:
    n = len(masses)
    result = xp.empty((n * (n - 1) + 2,), np.int32)
    result[0], result[-1] = 0, masses.sum()
    return result, result[1:-1]


def _launch(entry: str, size: int, arguments: tuple[Any, ...], threads: int = BLOCK) -> None:
    PROGRAM.launch(entry, -(-size // threads), arguments, threads=threads)


@njit(cache=True)
def spectrum_brute(masses):
    """Return the cyclic spectrum in O(n^3) on one core, not sorted."""
    n, result = len(masses), np.empty(len(masses) * (len(masses) - 1) + 2, np.int32)
    result[0], result[-1] = 0, masses.sum()
    for length in range(n - 1):
        for begin in range(n):
            total = 0
            for i in range(begin, begin + length + 1):
                total += masses[i - n if i >= n else i]
            result[1 + length * n + begin] = total
    return result


@njit(cache=True)
def spectrum_memo(masses):
    """Return the cyclic spectrum in O(n^2) on one core, not sorted."""
    n, result = len(masses), np.empty(len(masses) * (len(masses) - 1) + 2, np.int32)
    result[0], result[-1] = 0, masses.sum()
    for length in range(n - 1):
        for begin in range(n):
            place = begin + length
            before = result[1 + (length - 1) * n + begin] if length else 0
            result[1 + length * n + begin] = before + masses[place - n if place >= n else place]
    return result


@njit(cache=True)
def say_one_by_one(seed, steps):
    """Return a term of look-and-say by the serial loop on one core. The seed is uint8."""
    term = seed
    for _ in range(steps):
        said = np.empty(2 * len(term), np.uint8)
        length, i = 0, 0
        while i < len(term):
            run = 1
            while i + run < len(term) and term[i + run] == term[i]:
                run += 1
            said[length], said[length + 1] = run, term[i]
            length += 2
            i += run
        term = said[:length].copy()
    return term
