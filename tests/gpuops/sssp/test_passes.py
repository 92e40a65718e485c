"""Passes of threads over ranges: every range once in every pass, passes one after the other, and the end."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from numba import njit

from gpuops._atomics import add, load
from gpuops.sssp.passes_numba import _DONE, new_counters, next_range, passes_done

RANGES = 7
UNSETTLED = 10  # vertices of each range


@njit(nogil=True)
def visit(counters, ranges, few, most, nearer, visits, early):
    """Do the work of a thread; in pass i, `nearer[i]` vertices of each range come nearer."""
    number, found = -1, 0
    while True:
        number = next_range(counters, ranges, number, UNSETTLED, found, few, most)
        if number < 0:
            return
        add(visits, number, 1)
        if load(counters, _DONE) < number // ranges * ranges:
            add(early, 0, 1)
        found = nearer[number // ranges]
        if number % ranges == 0:  # takes longer than the other ranges
            for _ in range(50_000):
                load(counters, 0)


@pytest.mark.parametrize("ranges", [1, RANGES])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    ("nearer", "most", "passes"),
    [
        ([9, 3, 3, 2, 9, 9], 64, 4),  # 2 of 10 are few
        ([9, 9, 9, 9, 9, 9], 5, 5),
        ([0, 9, 9, 9, 9, 9], 64, 1),
    ],
)
def test_each_pass_takes_every_range_once_and_waits_for_the_pass_before(ranges, threads, nearer, most, passes):
    for _ in range(50):
        counters, visits, early = new_counters(), np.zeros(6 * ranges, np.int64), np.zeros(1, np.int64)
        arguments = counters, ranges, 0.2, most, np.array(nearer), visits, early
        with ThreadPoolExecutor(threads, initializer=Barrier(threads).wait) as pool:
            for done in [pool.submit(visit, *arguments) for _ in range(threads)]:
                done.result(timeout=60)
        assert passes_done(counters) == passes
        assert visits.tolist() == [1] * (passes * ranges) + [0] * ((6 - passes) * ranges)
        assert not early[0]
