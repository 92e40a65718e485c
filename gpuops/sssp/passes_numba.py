"""Passes of several threads over ranges of vertices, without a return to Python between two ranges.

A thread takes one range after the other, of this pass or of the next one. It waits only if some range of the pass
before is not done yet. The thread that finishes the last range of a pass decides whether another pass follows. So a
thread that starts late hardly delays the others, which take the ranges, and none needs Python's global interpreter lock
before the end.
"""

from __future__ import annotations

import numpy as np

from gpuops._atomics import add, load, sleep, store
from gpuops._compiled_numba import inner

# Places of the counters, each in a cache line of its own: ranges taken and done, over all passes; passes done; 1 if no
# pass follows; vertices of this pass that are not settled, and vertices that came nearer.
_TAKEN, _DONE, _PASSES, _ENDED, _UNSETTLED, _NEARER = range(0, 48, 8)
_PATIENCE, _NAP = 4096, np.uint32(20)  # looks for the end of a pass before a thread sleeps; microseconds of sleep


def new_counters() -> np.ndarray:
    """Return the counters before the first pass."""
    return np.zeros(48, np.int64)


def passes_done(counters: np.ndarray) -> int:
    """Return the number of passes that are done."""
    return int(counters[_PASSES])


@inner
def next_range(counters, ranges, before, unsettled, nearer, few, most):
    """Report the range `before`, and return the next one: its number over all passes, or -1 if no pass follows.

    `before` is -1 at first. The last pass is number `most`, or the first one in which at most the share `few` of the
    vertices that are not settled came nearer.
    """
    if before >= 0:
        add(counters, _UNSETTLED, unsettled)
        add(counters, _NEARER, nearer)
        passes = before // ranges + 1
        if add(counters, _DONE, 1) + 1 == passes * ranges:
            ended = load(counters, _NEARER) <= few * load(counters, _UNSETTLED) or passes == most
            counters[_UNSETTLED] = counters[_NEARER] = 0
            store(counters, _ENDED, ended)
            store(counters, _PASSES, passes)
    number, looks = add(counters, _TAKEN, 1), 0
    while load(counters, _PASSES) < number // ranges and not load(counters, _ENDED):
        looks += 1
        if looks > _PATIENCE:
            sleep(_NAP)
    return -1 if load(counters, _ENDED) else number
