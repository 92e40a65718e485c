"""Best matching units on a GPU: the CUDA half of `gpuops.som`, which says what the steps are and why they suffice.

Two kernels screen, one on tensor cores, one in float32 with scores in registers. Both write the least score of every
tile of 64 units, N x M / 64 numbers, for a chunk of samples at a time; parts of the map go to different blocks where
samples are few, and need no merging. Nothing waits for the device but the look at faults at the end, if asked for.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import Program, multiprocessors, prepare
from gpuops.som.bmu_numba import COSINE, EUCLIDEAN, TAXICAB, error_bound

_TILE, _PANEL = 64, 128
_WARPS = 8  # of a block of `decide`
_CHUNK_BYTES = 256 << 20  # of features and least scores that exist at a time
_NO_FAULT = 2**62

# Tensor cores pad dimensions to multiples of 16; below this many the float32 kernel has less to do.
_TENSOR_DEPTH = 4

_METRICS = {EUCLIDEAN: "EUCLIDEAN", TAXICAB: "TAXICAB", COSINE: "COSINE"}

_PROGRAMS = {
    (dtype, metric): Program(
        "som/bmu.cu",
        ("centre_units", "pack_units", "pack_samples", "decide"),
        (f"FLOAT={'float' if dtype == 'float32' else 'double'}", f"METRIC={name}"),
    )
    for dtype in ("float32", "float64")
    for metric, name in _METRICS.items()
}

# Dimensions that come at a time, and whether these are all.
_SLABS = {
    "PRODUCT": ((4, True), (8, False)),
    "DIFFERENCE": ((4, True), (8, True), (12, True), (16, True), (8, False)),
    "MASKED_DIFFERENCE": ((8, False),),
}
_SCREENS = {
    (step, slab, single): Program(
        "som/screen.cu", ("screen",), (f"STEP={step}", f"SLAB={slab}", f"SINGLE={int(single)}"), threads=_PANEL
    )
    for step, slabs in _SLABS.items()
    for slab, single in slabs
}

_TENSOR_SCREENS = {
    (ksteps, deep): Program(
        "som/screen_tensor.cu", ("split_units", "screen"), (f"KSTEPS={ksteps}", f"DEEP={int(deep)}"), threads=256
    )
    for ksteps, deep in ((1, False), (2, False), (3, False), (4, False), (4, True))
}


class _Screen(NamedTuple):
    """A way of screening: what to launch, for how many rows of features, and what its scores may be off by."""

    program: Program
    tensor: bool
    depth: int  # of the features of units
    rows: int  # of the features of samples; masks come after the features
    panels: int  # of 64 dimensions
    samples: int  # of a block
    blocks: int  # that run on a multiprocessor at a time
    kappa: float
    rounding: float
    split: float
    tiny: float


def search(samples: Any, codebook: Any, metric: int, top: int, missing: bool, validate: bool) -> Any:
    """Units (N, top) int32 and distances (N, top) of checked arguments; the fault found first, or None.

    A fault is (argument, row, NOT_FINITE or NOTHING_PRESENT).
    """
    import cupy

    n, (m, d) = len(samples), codebook.shape
    with samples.device:
        units, distances = cupy.empty((n, top), np.int32), cupy.empty((n, top), samples.dtype)
        program = _PROGRAMS[samples.dtype.name, metric]
        screen = _choose(metric, missing, d)
        prepare((program, screen.program))
        tiles = math.ceil(m / _TILE)
        state = cupy.zeros((3,), np.uint64)
        centre, unit_lengths, tile_norms = (cupy.empty((size,), np.float64) for size in (d, tiles * _TILE, tiles))
        w = cupy.empty((tiles, screen.depth, _TILE), np.float32)
        bias = cupy.empty((tiles * _TILE,), np.float32)
        exact = cupy.empty((tiles, d, _TILE), samples.dtype)
        strides = _strides(codebook)
        program.launch("centre_units", d, (centre, state, codebook, *strides, np.int64(m)), threads=128)
        sizes = (np.int64(m), *map(np.int32, (d, screen.depth, missing)))
        arrays = (w, exact, bias, unit_lengths, tile_norms, state, centre, codebook)
        program.launch("pack_units", tiles, (*arrays, *strides, *sizes), threads=_TILE)
        operand = w
        if screen.tensor:
            width = screen.depth // screen.panels
            operand = cupy.empty((tiles, screen.panels, width, _TILE), np.uint32)
            size = np.int32(screen.depth)
            screen.program.launch("split_units", (tiles, screen.panels), (operand, w, size), threads=16 * width)

        chunk = _chunk(screen, tiles, n)
        panels = math.ceil(chunk / _PANEL)
        x = cupy.empty((panels, screen.rows, _PANEL), np.float32)
        norms, lengths = (cupy.empty((panels * _PANEL,), np.float64) for _ in range(2))
        least = cupy.empty((chunk, tiles), np.float32)
        strides = _strides(samples)
        bounds = map(np.float64, (screen.kappa, screen.rounding, screen.split, screen.tiny))
        last = (exact, unit_lengths, tile_norms, np.int64(m), *map(np.int32, (tiles, d, top, missing)), *bounds)
        for first in range(0, n, chunk):
            count = min(chunk, n - first)
            blocks = math.ceil(count / screen.samples)
            where = (*strides, np.int64(first), np.int64(count))
            rows = tuple(map(np.int32, (d, screen.depth, screen.rows, missing)))
            arguments = (x, norms, lengths, state, centre, samples, *where, *rows)
            program.launch("pack_samples", blocks * screen.samples // _PANEL, arguments, threads=_PANEL)
            if not (metric == COSINE and missing):
                share = _share(blocks, tiles, screen.blocks * multiprocessors(samples.device.id))
                sizes = (np.int32(tiles), np.int32(screen.panels if screen.tensor else screen.depth), np.int32(share))
                arguments = (least, x, operand, bias, np.int64(count), *sizes)
                screen.program.launch("screen", (blocks, math.ceil(tiles / share)), arguments)
            arguments = (units, distances, least, norms, lengths, samples, *where, *last)
            program.launch("decide", math.ceil(count / _WARPS), arguments, threads=32 * _WARPS)
        _, of_samples, of_units = state.get().tolist() if validate else (0, 0, 0)  # struct State
    for argument, fault in (("codebook", of_units), ("samples", of_samples)):
        if fault:
            return units, distances, (argument, *divmod(_NO_FAULT - fault, 4))
    return units, distances, None


def _choose(metric: int, missing: bool, d: int) -> _Screen:
    depth = 2 * d if missing and metric != TAXICAB else d
    if metric != TAXICAB and depth >= _TENSOR_DEPTH:
        ksteps = min(math.ceil(depth / 16), 4)
        panels = math.ceil(depth / 64)
        deep = panels > 1
        # Per mma of 16 dimensions at most 20 truncations to 23 bits, of sums bounded by |x| |w| of the panel; float16
        # halves that are off by 2^-22, or by 2^-25 where that is more; panels added in float32.
        kappa = 1.02 * ((20 * ksteps + 16) * 2.0**-23 + (panels + 8) * 2.0**-24)
        split = math.sqrt(depth) * 2.0**-24
        rounding = error_bound(depth, d, 2.0**-24)[1]
        program = _TENSOR_SCREENS[ksteps, deep]
        blocks = 2 if ksteps == 1 else 1
        tiny = split * math.sqrt(d) + depth * 2.0**-60
        rows = 16 * ksteps * panels
        return _Screen(program, True, rows, rows, panels, 256, blocks, kappa, rounding, split, tiny)
    step = "PRODUCT" if metric != TAXICAB else "MASKED_DIFFERENCE" if missing else "DIFFERENCE"
    slab, single = next((slab, single) for slab, single in _SLABS[step] if depth <= slab or not single)
    padded = math.ceil(depth / slab) * slab
    kappa, rounding = error_bound(padded, d, 2.0**-24)
    rows = 2 * padded if step == "MASKED_DIFFERENCE" else padded
    program = _SCREENS[step, slab, single]
    tiny = padded * 2.0**-60
    return _Screen(program, False, padded, rows, 1, _PANEL, 4, kappa, rounding, 0.0, tiny)


def _chunk(screen: _Screen, tiles: int, n: int) -> int:
    """Samples whose features and least scores exist at a time: all, or a multiple of what a block takes."""
    fit = _CHUNK_BYTES // (4 * (screen.rows + tiles)) // screen.samples * screen.samples
    return min(max(fit, screen.samples), max(1, math.ceil(n / screen.samples)) * screen.samples)


def _share(blocks: int, tiles: int, slots: int) -> int:
    """Tiles for a block: so that the device, which runs `slots` blocks at a time, is done first.

    A block costs its tiles and about two more, for the samples it loads.
    """
    parts = range(1, min(tiles, 1 + 8 * slots // blocks) + 1)
    shares = [math.ceil(tiles / part) for part in parts]
    return min(shares, key=lambda share: math.ceil(blocks * math.ceil(tiles / share) / slots) * (share + 2))


def _strides(matrix: Any) -> tuple[np.int64, np.int64]:
    down, across = matrix.strides
    return np.int64(down // matrix.itemsize), np.int64(across // matrix.itemsize)
