"""Dijkstra's algorithm on a GPU: the CUDA half of `gpuops.label_setting`, one cooperative launch of dijkstra.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._cuda import Program, struct
from gpuops.numbers import SEARCH_DTYPES

_THREADS = 512  # a power of two, for the butterfly
_BLOCKS = 2  # blocks on every multiprocessor
_LONG = 512  # arcs; rows with more arcs are read by a whole block

_PROGRAMS = {
    dtype: Program(
        "label_setting/dijkstra.cu",
        ("dijkstra",),
        (f"DISTANCE={dtype.name.capitalize()}", f"LONG={_LONG}"),
        threads=_THREADS,
        blocks=_BLOCKS,
    )
    for dtype in SEARCH_DTYPES
}

_PROGRESS = struct("label_setting/dijkstra.cu", "Progress", Round=struct("label_setting/dijkstra.cu", "Round"))


def rounds(indptr: Any, indices: Any, weights: Any, source: int) -> tuple[Any, Any, int]:
    """Return distances and predecessors from `source`, and the number of rounds."""
    import cupy

    n = len(indptr) - 1
    program = _PROGRAMS[weights.dtype]
    with weights.device:
        distances = cupy.empty((n,), weights.dtype)
        predecessors = cupy.empty((n,), np.int32)
        leaving, entering = cupy.empty((2, n), weights.dtype)
        settled, due, long_rows = cupy.empty((3, n), np.int32)
        fringes = cupy.empty((2, n), np.int32)
        progress = cupy.zeros((_PROGRESS.itemsize,), np.uint8)
        arguments = {
            "indptr": indptr,
            "indices": indices,
            "weights": weights,
            "n": np.int32(n),
            "source": np.int32(source),
            "distances": distances,
            "predecessors": predecessors,
            "leaving": leaving,
            "entering": entering,
            "settled": settled,
            "fringes": fringes,
            "due": due,
            "long_rows": long_rows,
            "progress": progress,
        }
        program.launch_cooperative("dijkstra", arguments)
        found = progress.get().view(_PROGRESS)[0]
    if found["unfit"]:
        raise OverflowError("distances exceed int32; use float64")
    return distances, predecessors, int(found["count"])
