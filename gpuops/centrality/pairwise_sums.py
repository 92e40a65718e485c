"""Sums of many parts that arrive in any order: the parts are added in pairs, by a tree that their number fixes.

Parts 0 and 1 are added, parts 2 and 3, and so on; then the sums of two parts, of four parts, and so on. A part without
a partner moves up unchanged. So the order of arrival does not change the bits of the sum. Several sums can be added by
another tree: if each of them covers 2^k parts from a multiple of 2^k on, the bits are the same again.

Only the sums that wait for a partner are kept. Their number is about the logarithm of the number of parts, plus the
number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

Arrays = Sequence[np.ndarray]


class PairwiseSums:
    """The sum of `count` parts; a part is a sequence of arrays, the same shapes in every part."""

    def __init__(self, count: int):
        self._count = count
        self._waiting: dict[tuple[int, int], Arrays] = {}
        self._lock = threading.Lock()

    def add(self, number: int, part: Arrays) -> None:
        """Take part `number`. Several threads may call this at once."""
        level = 0
        while self._count > 1 << level:
            partner = number ^ 1
            if partner << level < self._count:  # otherwise there is no partner
                with self._lock:
                    other = self._waiting.pop((level, partner), None)
                    if other is None:
                        self._waiting[level, number] = part
                        return
                part = [own + added for own, added in zip(part, other, strict=True)]  # a + b has the bits of b + a
            level, number = level + 1, number >> 1
        self._waiting[level, 0] = part

    def total(self) -> Arrays:
        """Return the sum, after all parts were taken; there must be at least one."""
        (total,) = self._waiting.values()
        return total
