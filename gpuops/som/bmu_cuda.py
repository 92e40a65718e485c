"""Best matching units on a GPU: the CUDA half of `gpuops.som`, which describes the steps and why they suffice.

A screen runs on tensor cores, with one half product or three for a score, or in float32 with scores in registers. It
writes the least score of every tile of 64 units, N x M / 64 numbers, for a chunk of samples at a time. Where there are
few samples, several blocks screen different parts of the map; their results need no merging. Many samples in a small
map are searched without these steps by `small_map_cuda`. A search waits for the
device only at the end, to read the faults, and only with `validate`.

`decide` counts the tiles that the bound of one half product keeps (or would keep, if the screen took three products).
From the count of the last chunk, the device chooses how many products the next chunk takes; the count stays with the
plan from search to search.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import Program, Told, multiprocessors, prepare
from gpuops.som import error_bound, small_map_cuda
from gpuops.som.metrics import COSINE, EUCLIDEAN, TAXICAB

_TILE, _PANEL = 64, 128
_WARPS = 4  # warps in a block of `bound`, `place` and `decide`
# Most bytes of features and least scores at a time, and the most of them as a part of the device's memory. With more
# samples at a time, more successive samples have the same nearest tile, and the tiles that they need stay in caches.
_CHUNK_BYTES, _CHUNK_PART = 2 << 30, 1 / 32
_NO_FAULT = 2**62

_TOGETHER = 4  # samples of a warp of `decide_together`
_SORTED_SAMPLES = 1 << 14  # fewest samples that are sorted by their nearest tile

# Least number of dimensions for tensor cores, which pad them to a multiple of 16. With fewer dimensions the float32
# kernel has less to do.
_TENSOR_DEPTH = 4

# Most that tensor cores lose when they add 16 products of halves to a sum, as a part of the sum of the absolute values.
# An A100 makes two sums of 9 terms, each term truncated to 24 bits below the greatest one, each sum to 23: in all
# (2 x 9 / 2 + 2) 2^-23. An H100 makes one sum of 17 terms, truncated to 25 bits: less than half of it. Sources: F. A.
# Khattak, M. Mikaitis, "Accurate models of NVIDIA tensor cores", arXiv:2512.07004; P. Xie et al., "MMA-Sim",
# arXiv:2511.10909. The factor 4 is a margin for other devices.
_LOST = 4 * 11 * 2.0**-23
_LOST_BY_WARPGROUPS = 4 * (17 / 4 + 1) * 2.0**-23  # on an H100 and an H200

_METRICS = {EUCLIDEAN: "EUCLIDEAN", TAXICAB: "TAXICAB", COSINE: "COSINE"}


def _of_all(file: str, *entries: str) -> dict[tuple[str, int], Program]:
    """Return the programs of a file for each dtype and metric."""
    return {
        (dtype, metric): Program(
            file, entries, (f"FLOAT={'float' if dtype == 'float32' else 'double'}", f"METRIC={name}")
        )
        for dtype in ("float32", "float64")
        for metric, name in _METRICS.items()
    }


_PACKING = _of_all("som/pack.cu", "pack")
_DECISION = _of_all("som/decide.cu", "bound", "place", "decide", "decide_together")

# Dimensions in a slab, and whether there is a single slab, by the step of the float32 kernel.
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
        "som/screen_tensor.cu",
        ("screen_by_one", "screen_by_three"),
        (f"KSTEPS={ksteps}", f"DEEP={int(deep)}"),
        threads=256,
    )
    for ksteps, deep in ((1, False), (2, False), (3, False), (4, False), (5, False), (3, True))
}


def _by_warpgroups(ksteps: int, deep: bool) -> Program:
    stage = (7 if deep else 2) * 2048 * ksteps  # bytes: of 64 rows and 16 dimensions 2,048
    stages = min(8, (224 << 10) // stage)
    return Program(
        "som/screen_wgmma.cu",
        ("screen_by_one",),
        (f"KSTEPS={ksteps}", f"DEEP={int(deep)}", f"STAGES={stages}"),
        threads=384,
        shared=stages * stage,
        architecture="sm_90a",
    )


# Devices that run these take one half product for a score with them.
_WARPGROUP_SCREENS = {layout: _by_warpgroups(*layout) for layout in _TENSOR_SCREENS}


class _Screen(NamedTuple):
    """A kernel that screens: its program, the layout of its features, and the constants of its error bound."""

    program: Program
    program_of_one: Program  # for scores of one half product
    tensor: bool
    depth: int  # rows of the features of units
    rows: int  # rows of the features of samples; masks follow the features
    slab: int  # dimensions that pass through shared memory together
    samples: int  # samples of a block
    blocks: int  # blocks that run on a multiprocessor at a time
    blocks_of_one: int  # the same of one half product
    tiles_of_one: int  # tiles that one half product takes at a time
    kappa: float
    kappa_of_one: float
    rounding: float
    split: float
    tiny: float


_ALIGNMENT = 512  # bytes to whose multiples scratch arrays are aligned, as CuPy aligns arrays
_SCRATCH = (
    *("centre", "w", "fine", "bias", "exact", "unit_lengths", "tile_bounds"),
    *("x", "sample_norms", "sample_residuals", "sample_lengths", "least", "products"),
    *("nearest", "ranks", "tile_counts", "order", "left", "faults", "fault"),
)
_SEARCH = np.dtype(  # the struct `Search` of search.cuh
    [
        ("given", np.int64, 8),  # samples, codebook, their strides; units, distances
        ("scratch", np.uint64, len(_SCRATCH)),
        ("kept", np.uint64),
        *((name, np.float64) for name in ("kappa", "rounding", "split", "tiny", "kappa_of_one")),
        *((name, np.float64) for name in ("kappa_of_sifted", "tiny_of_sifted")),
        *((name, np.int64) for name in ("m", "first", "n")),
        *((name, np.int32) for name in ("d", "depth", "rows", "tiles", "slab")),
        *(
            (name, np.int32)
            for name in ("unit_blocks", "share", "share_of_one", "top", "missing", "tensor", "sorted", "matched")
        ),
    ],
    align=True,
)


class _Part(NamedTuple):
    """A chunk of samples, and its launches: each a kernel, the grid, the threads of a block and its shared memory."""

    first: int
    n: int
    share: int  # tiles for a block of the screen
    share_of_one: int  # the same of one half product
    launches: tuple[tuple[Any, tuple[int, ...], tuple[int, ...], int], ...]


class _Plan(NamedTuple):
    """The preparation of a search, which depends on the shapes, the dtype and the options only.

    `argument` is the argument of the kernels, still without the given arrays, the results and the scratch memory.
    Scratch memory has `size` bytes, with its arrays at `offsets`. All searches with this plan share `kept`, on the
    device: it decides how many products a score takes, never a result.
    """

    argument: np.ndarray
    kept: Any
    offsets: np.ndarray
    size: int
    parts: tuple[_Part, ...]

    def launch(self, samples: Any, codebook: Any, units: Any, distances: Any, scratch: int, fault: Told | None) -> None:
        """Launch the kernels, with scratch memory at the address `scratch`, and faults told to `fault`."""
        argument = self.argument.copy()
        this = argument.view(_SEARCH)
        this["given"] = (
            *(samples.data.ptr, codebook.data.ptr, *_strides(samples), *_strides(codebook)),
            *(units.data.ptr, distances.data.ptr),
        )
        this["scratch"] = self.offsets + scratch
        if fault is not None:
            this["scratch"][_SCRATCH.index("fault")] = fault.address
        for part in self.parts:
            this["first"], this["n"] = part.first, part.n
            this["share"], this["share_of_one"] = part.share, part.share_of_one
            for kernel, grid, threads, shared in part.launches:
                kernel(grid, threads, (argument,), shared_mem=shared)
            this["unit_blocks"] = 0


def search(samples: Any, codebook: Any, metric: int, top: int, missing: bool, validate: bool) -> Any:
    """Return units (N, top) int32, distances (N, top) and the first fault, or None; arguments are checked.

    A fault is (argument, row, NOT_FINITE or NOTHING_PRESENT).
    """
    import cupy

    n, (m, d) = len(samples), codebook.shape
    with samples.device as device:
        plan = _plan(device.id, samples.dtype, metric, missing, top, n, m, d)
        units, distances = cupy.empty((n, top), np.int32), cupy.empty((n, top), samples.dtype)
        scratch, fault = cupy.cuda.alloc(plan.size), Told(2) if validate else None
        plan.launch(samples, codebook, units, distances, scratch.ptr, fault)
        if fault is None:
            return units, distances, None
        of_samples, of_units = fault.read()
    for name, first in (("codebook", of_units), ("samples", of_samples)):
        if first:
            return units, distances, (name, *divmod(_NO_FAULT - first, 4))
    return units, distances, None


@functools.lru_cache(64)
def _plan(device: int, dtype: np.dtype, metric: int, missing: bool, top: int, n: int, m: int, d: int) -> _Plan:
    """Return the plan of a search on the current device, and compile its kernels."""
    import cupy

    match = small_map_cuda.launch_of(device, dtype, metric, missing, top, n, m, d)
    screen, tiles = _choose(device, metric, missing, d, small=match is not None), math.ceil(m / _TILE)
    screens = not (metric == COSINE and missing)  # otherwise `decide` evaluates all tiles
    packing, decision = _PACKING[dtype.name, metric], _DECISION[dtype.name, metric]
    prepare({packing, match.program if match else decision})
    if screens and not match:
        prepare({screen.program, screen.program_of_one})
    room = min(_CHUNK_BYTES, int(cupy.cuda.Device(device).mem_info[1] * _CHUNK_PART))
    chunk = max(1, min(n, small_map_cuda.CHUNK)) if match else _chunk(screen, tiles, n, room)
    panels, units = 0 if match else math.ceil(chunk / _PANEL), tiles * _TILE
    sizes = {
        "centre": 8 * (d + 1),
        "w": 4 * (units + tiles % 2 * _TILE) * screen.depth,
        "fine": 4 * units * (math.ceil(d / 4) * 4) if screen.tensor else 0,
        "bias": 4 * units,
        "exact": dtype.itemsize * units * d,
        "unit_lengths": 8 * units,
        "tile_bounds": 16 * tiles,
        "x": 4 * panels * _PANEL * screen.rows,
        "sample_norms": 8 * panels * _PANEL,
        "sample_residuals": 8 * panels * _PANEL,
        "sample_lengths": 8 * panels * _PANEL,
        "least": 0 if match else 4 * chunk * tiles,
        "products": 4,
        "nearest": 4 * panels * _PANEL,
        "ranks": 4 * panels * _PANEL,
        "tile_counts": 4 * tiles,
        "order": 4 * chunk,
        "left": 8,
        "faults": 8 * (math.ceil(m / _PANEL) + math.ceil(n / _PANEL) + panels),
        "fault": 16,
    }
    ends = np.cumsum([math.ceil(sizes[name] / _ALIGNMENT) * _ALIGNMENT for name in _SCRATCH])
    search = np.zeros((), _SEARCH)
    for name in "kappa", "kappa_of_one", "rounding", "split", "tiny", "depth", "rows", "slab", "tensor":
        search[name] = getattr(screen, name)
    search["sorted"], search["matched"] = screens and not match and n >= _SORTED_SAMPLES, match is not None
    # Sums of half of the terms each, which are added in the end.
    search["kappa_of_sifted"] = error_bound(2 * math.ceil(d / 4) + 2, d, 2.0**-24)[0]
    search["tiny_of_sifted"] = d * 2.0**-59
    kept = cupy.zeros(2, np.uint32)
    search["kept"] = kept.data.ptr
    search["m"], search["d"], search["tiles"], search["top"], search["missing"] = m, d, tiles, top, missing
    search["unit_blocks"] = math.ceil(m / _PANEL)
    pack = packing.kernel("pack")
    parts = []
    for first in range(0, max(n, 1), chunk):
        count = min(chunk, n - first)
        if match:
            parts.append(_matched_part(device, pack, match, m, first, count))
        else:
            parts.append(_part(device, pack, decision, screen, screens, bool(search["sorted"]), m, first, count))
    argument = search.view(np.dtype((np.void, search.nbytes)))  # one value, copied and passed whole
    offsets = np.array([0, *ends[:-1]], np.uint64)
    if not screen.tensor:
        offsets[_SCRATCH.index("fine")] = offsets[_SCRATCH.index("w")]
    return _Plan(argument, kept, offsets, int(ends[-1]), tuple(parts))


def _matched_part(device: int, pack: Any, match: Any, m: int, first: int, count: int) -> _Part:
    """Return the launches of a part of the samples on a small map."""
    of_units = (pack, (1 if first else math.ceil(m / _PANEL),), (_PANEL,), 0)
    return _Part(first, count, 0, 0, (of_units, *small_map_cuda.launches(device, match, count)))


def _part(
    device: int,
    pack: Any,
    decision: Program,
    screen: _Screen,
    screens: bool,
    by_tiles: bool,
    m: int,
    first: int,
    count: int,
) -> _Part:
    """Return the launches for `count` samples; `by_tiles`: `decide` takes them in the order of their tiles."""
    tiles, blocks = math.ceil(m / _TILE), math.ceil(count / screen.samples)
    share, share_of_one = (
        _share(max(blocks, 1), tiles, of_multiprocessor * multiprocessors(device), at_once)
        for of_multiprocessor, at_once in ((screen.blocks, 1), (screen.blocks_of_one, screen.tiles_of_one))
    )
    if screen.program_of_one.architecture and screen.slab < screen.depth:
        share_of_one = screen.tiles_of_one  # samples pass through shared memory again for each three tiles
    packs = (0 if first else math.ceil(m / _PANEL)) + blocks * screen.samples // _PANEL
    launches: list[tuple[Any, tuple[int, ...], tuple[int, ...], int]]
    launches = [(pack, (packs,), (_PANEL,), 0)]
    if screens and count:
        grid, grid_of_one = ((blocks, math.ceil(tiles / each)) for each in (share, share_of_one))
        if screen.program_of_one.architecture:  # its blocks take several pieces of work
            grid_of_one = min(math.prod(grid_of_one), multiprocessors(device)), 1
        entries = [(screen.program, "screen", grid)]
        if screen.tensor:
            entries = [(screen.program_of_one, "screen_by_one", grid_of_one), (screen.program, "screen_by_three", grid)]
        for screening, entry, shape in entries:
            launches.append((screening.kernel(entry), shape, (screening.threads,), screening.shared))
    threads = (32 * _WARPS,)

    def over(entry: str, of_block: int) -> None:
        """Launch `entry` in blocks of so many samples."""
        launches.append((decision.kernel(entry), (max(math.ceil(count / of_block), 1),), threads, 0))

    if by_tiles:
        over("bound", 32 * _WARPS)
        over("place", 32 * _WARPS)
        over("decide_together", _TOGETHER * _WARPS)
    else:
        over("decide", _WARPS)
    return _Part(first, count, share, share_of_one, tuple(launches))


def _choose(device: int, metric: int, missing: bool, d: int, small: bool = False) -> _Screen:
    """Return how a search screens; `small`: the constants and the layout of units are those of small_map.cu."""
    depth = 2 * d if missing and metric != TAXICAB else d
    if small or (metric != TAXICAB and depth >= _TENSOR_DEPTH):
        ksteps, slabs = _slabs(depth + 2)  # with two features of the bias
        # The sums of a slab are at most |x| |w| and the bias, and slabs are added in float32. One product: what the
        # halves lack is in the residuals. Three products: two halves are off from a feature by 2^-22 of it, or by 2^-25
        # if that is more, and 2^-22 |x| |w| is left out.
        lost, added = _LOST * ksteps, (slabs + 8) * 2.0**-24
        kappa, kappa_of_one = 1.02 * (lost + 16 * 2.0**-23 + added), 1.02 * (lost + added)
        split = math.sqrt(depth) * 2.0**-24
        rounding = error_bound(depth, d, 2.0**-24)[1]
        program, of_one = _TENSOR_SCREENS[ksteps, slabs > 1], _WARPGROUP_SCREENS[ksteps, slabs > 1]
        tiny = split * math.sqrt(d) + 2.0**-24 + depth * 2.0**-60
        rows = 16 * ksteps * slabs
        blocks, blocks_of_one, tiles_of_one = 1 if slabs > 1 or ksteps > 4 else 2, 1 if slabs > 1 else 2, 1
        if of_one.runs_on(device) and not small:  # its sums go over all slabs
            kappa_of_one = 1.02 * (_LOST_BY_WARPGROUPS * ksteps * slabs + added)
            blocks_of_one, tiles_of_one = 1, 3 if slabs > 1 else 2
        else:
            of_one = program
        constants = kappa, kappa_of_one, rounding, split, tiny
        slab, samples = 16 * ksteps, 256
        shape = rows, rows, slab, samples, blocks, blocks_of_one, tiles_of_one
        return _Screen(program, of_one, True, *shape, *constants)
    step = "PRODUCT" if metric != TAXICAB else "MASKED_DIFFERENCE" if missing else "DIFFERENCE"
    slab, single = next((slab, single) for slab, single in _SLABS[step] if depth <= slab or not single)
    padded = math.ceil(depth / slab) * slab
    kappa, rounding = error_bound(padded, d, 2.0**-24)
    rows = 2 * padded if step == "MASKED_DIFFERENCE" else padded
    program = _SCREENS[step, slab, single]
    tiny = padded * 2.0**-60
    return _Screen(program, program, False, padded, rows, slab, _PANEL, 4, 4, 1, kappa, kappa, rounding, 0.0, tiny)


def _slabs(depth: int) -> tuple[int, int]:
    """Return the steps of 16 dimensions in a slab, and the number of slabs, for `depth` dimensions."""
    steps = math.ceil(depth / 16)
    return (steps, 1) if steps <= 5 else (3, math.ceil(steps / 3))


def _chunk(screen: _Screen, tiles: int, n: int, room: int) -> int:
    """Return the number of samples of a chunk: all samples, or as many blocks of samples as fit into `room` bytes."""
    fit = room // (4 * (screen.rows + tiles)) // screen.samples * screen.samples
    return min(max(fit, screen.samples), max(1, math.ceil(n / screen.samples)) * screen.samples)


def _share(blocks: int, tiles: int, slots: int, at_once: int = 1) -> int:
    """Return the number of tiles for a block with which the device, which runs `slots` blocks at a time, is fastest.

    It is a multiple of `at_once`. The time of a block is proportional to its tiles plus about two, for loading its
    samples.
    """
    if at_once > 1:
        return at_once * _share(blocks, math.ceil(tiles / at_once), slots)
    parts = range(1, min(tiles, 1 + 8 * slots // blocks) + 1)
    shares = [math.ceil(tiles / part) for part in parts]
    return min(shares, key=lambda share: math.ceil(blocks * math.ceil(tiles / share) / slots) * (share + 2))


def _strides(matrix: Any) -> tuple[int, int]:
    down, across = matrix.strides
    return down // matrix.itemsize, across // matrix.itemsize
