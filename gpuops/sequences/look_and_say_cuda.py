"""Look-and-say on a GPU: the CUDA half of `gpuops.sequences.look_and_say`, kernel in look_and_say.cu.

All steps are launched without waiting for results: the lengths of all terms are known beforehand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS, _ITEMS = 256, 16  # as in look_and_say.cu
_PROGRAM = Program("sequences/look_and_say.cu", ("say",), threads=_THREADS)


def say(term: Any, lengths: list[int]) -> Any:
    """Return the last of the terms that have these lengths; `term`, which is not empty, is the first."""
    import cupy

    tiles = [math.ceil(length / (_PROGRAM.threads * _ITEMS)) for length in lengths[:-1]]
    with term.device:
        states = cupy.zeros((sum(tiles) + len(tiles),), np.uint64)
        first = 0
        for count, length, following in zip(tiles, lengths[:-1], lengths[1:], strict=True):
            said = cupy.empty((following,), np.uint8)
            _PROGRAM.launch("say", count, (term, np.int64(length), said, states[first : first + count + 1]))
            term, first = said, first + count + 1
        return term
