"""Compaction and prefix sums on a GPU: the CUDA half of `gpuops.compaction`, kernels in compaction.cu and scan.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._cuda import Program, Told
from gpuops._scan_cuda import scan as scan
from gpuops._scan_cuda import tiles_of

_THREADS = 256
# Threads of a block by the bytes of an element. Smaller tiles are done sooner, but look-back passes more tiles.
_THREADS_OF_COMPACTION = {1: 256, 2: 256, 4: 128, 8: 256}
_ITEMS, _ITEMS_OF_8_BYTES = 16, 8  # elements of a thread, as in compaction.cu

_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
_COMPACTIONS = {
    size: Program("compaction/compaction.cu", ("compact",), (f"WORD={word}",), threads=_THREADS_OF_COMPACTION[size])
    for size, word in _WORDS.items()
}
_HEADS = {  # keys of one byte have a table and are never sorted
    size: Program("compaction/compaction.cu", ("heads",), (f"WORD={word}",), threads=_THREADS)
    for size, word in _WORDS.items()
    if size > 1
}


def compact(x: Any, keep: Any) -> Any:
    """Return the words of `x` where `keep` is true; both are (n,) and contiguous."""
    import cupy

    with x.device:
        kept = cupy.empty((len(x),), x.dtype)
        count = _launch(_COMPACTIONS, x, (x, keep.view(np.uint8), np.int64(len(x)), kept))
        return _first(kept, count)


def heads(x: Any, placed: bool) -> tuple[Any, Any]:
    """Return the first word of each run of equal words, and the places of the returned words if `placed`, else None."""
    import cupy

    with x.device:
        kept = cupy.empty((len(x),), x.dtype)
        places = cupy.empty((len(x) if placed else 1,), np.int64)
        count = _launch(_HEADS, x, (x, np.int64(len(x)), kept, places, np.int32(placed)))
        return _first(kept, count), _first(places, count) if placed else None


def _launch(programs: dict[int, Program], x: Any, arguments: tuple[Any, ...]) -> int:
    """Launch a compaction and return the number of elements kept."""
    program = programs[x.dtype.itemsize]
    tiles, states = tiles_of(program, len(x), _ITEMS_OF_8_BYTES if x.itemsize == 8 else _ITEMS)
    if tiles == 0:
        return 0
    count = Told(1)
    program.launch(program.entries[0], tiles, (*arguments, states, count.address))
    return count.read()[0]


def _first(array: Any, count: int) -> Any:
    """Return the first `count` elements; as a copy if they are less than half, which frees the rest of the memory."""
    return array[:count] if 2 * count >= len(array) else array[:count].copy()
