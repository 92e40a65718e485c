"""Look-and-say on a CPU: the Numba half of `gpuops.sequences.look_and_say`."""

from __future__ import annotations

import numba
import numpy as np

from gpuops._compiled_numba import entry
from gpuops._threads import for_all

_PART = 2**16  # digits for which a term gets one more part
_STREAM = 8  # cost of a digit, in relaxations of a dense matrix


def say(term: np.ndarray, lengths: list[int]) -> np.ndarray:
    """Return the last of the terms that have these lengths; `term`, which is not empty, is the first."""
    for length in lengths[1:]:
        said = np.empty(length, np.uint8)
        parts = min(numba.config.NUMBA_NUM_THREADS, 1 + len(term) // _PART)
        cuts = [_head(term, len(term) * i // parts) for i in range(parts)] + [len(term)]
        counts = [0] * (parts + 1)

        def count(i: int, term: np.ndarray = term, cuts: list[int] = cuts, counts: list[int] = counts) -> None:
            counts[i + 1] = _count(term[cuts[i] : cuts[i + 1]])

        if parts > 1:
            for_all(count, range(parts - 1), _STREAM * len(term))
        places = np.cumsum(counts)

        def step(i: int, term=term, cuts=cuts, places=places, said=said) -> None:
            _say(term[cuts[i] : cuts[i + 1]], said[2 * places[i] :])

        for_all(step, range(parts), _STREAM * len(term))
        term = said
    return term


def _head(term: np.ndarray, place: int) -> int:
    """Return the first place, from `place` on, where a run begins."""
    while 0 < place < len(term) and term[place] == term[place - 1]:
        place += 1
    return place


@entry
def _count(term):
    count = min(term.size, 1)
    for i in range(1, term.size):
        count += term[i] != term[i - 1]
    return count


@entry
def _say(term, said):
    """Store count and digit of a run again for each digit of the run: no branch for a processor to predict."""
    place, run, before = np.uint64(0), np.uint8(0), np.uint8(0)
    if term.size:
        before = term[0]
    for i in range(term.size):
        digit = term[i]
        new = np.uint64(digit != before)
        place += np.uint64(2) * new
        run = np.uint8(run * (np.uint64(1) - new) + np.uint64(1))
        said[place] = run
        said[place + np.uint64(1)] = digit
        before = digit
