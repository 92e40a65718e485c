"""Best matching units of many samples in a small map: the launches of small_map.cu, which describes the steps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import Program, multiprocessors, prepare, shared_of_block
from gpuops.som.metrics import EUCLIDEAN

_SAMPLES = 1 << 14  # fewest samples
_UNITS = 1 << 10  # most units: the numbers of their quads are 8 bits of a key
_DEPTH = 80  # most dimensions, with two of the bias
CHUNK = 1 << 24  # samples at a time
_BATCH = 32  # samples of a warp at a time
_STATIC = 24 << 10  # bytes of shared memory besides units and samples

PROGRAMS = {
    (dtype, ksteps): Program(
        "som/small_map.cu",
        ("match", "match_left"),
        (f"FLOAT={'float' if dtype == 'float32' else 'double'}", "METRIC=EUCLIDEAN", f"KSTEPS={ksteps}"),
        threads=512 if ksteps <= 3 else 384,  # more threads would have too few registers
    )
    for dtype in ("float32", "float64")
    for ksteps in range(1, _DEPTH // 16 + 1)
}


class Launch(NamedTuple):
    """How `match` is launched: the steps of 16 features, the threads of a block and its shared memory."""

    program: Program
    threads: int
    shared: int
    room: int  # bytes of shared memory that a launch may have


def launch_of(device: int, dtype: np.dtype, metric: int, missing: bool, top: int, n: int, m: int, d: int) -> Any:
    """Return how `match` searches, or None if it does not, because there are few samples or many units."""
    ksteps = math.ceil((d + 2) / 16)
    if metric != EUCLIDEAN or missing or top != 1 or n < _SAMPLES or m > _UNITS or 16 * ksteps > _DEPTH:
        return None
    units, room = math.ceil(m / 64) * 64 * 16 * ksteps * 2, shared_of_block(device) - _STATIC
    program = PROGRAMS[dtype.name, ksteps]
    for threads in program.threads, 256:  # as many as shared memory allows
        shared = units + threads // 32 * _BATCH * (d | 1) * dtype.itemsize
        if shared <= room:
            return Launch(program, threads, shared, room)
    return None


def launches(device: int, launch: Launch, n: int) -> list[tuple[Any, tuple[int, ...], tuple[int, ...], int]]:
    """Return the launches for `n` samples, after `pack` of the units."""
    prepare({launch.program})
    warps, threads = launch.threads // 32, (launch.threads,)
    launch.program.function("match").max_dynamic_shared_size_bytes = launch.room
    match, match_left = map(launch.program.kernel, ("match", "match_left"))
    batches = max(math.ceil(n / _BATCH), 1)
    blocks = min(multiprocessors(device), math.ceil(batches / warps))
    left = min(4 * multiprocessors(device), math.ceil(n / warps))
    return [(match, (blocks,), threads, launch.shared), (match_left, (left,), threads, 0)]
