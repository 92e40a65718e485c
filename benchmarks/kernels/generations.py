"""Generations of Floyd-Warshall. Each closes an (n, n) float32 matrix in place; n is a multiple of 256.

This is the host side of benchmarks/kernels/. The published seconds are from Table 1 of B. Lund, J. W. Smith, "A
multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, on one core of an AMD Phenom 9950 and an NVIDIA Tesla
C1060.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from benchmarks.harness import KERNELS
from gpuops import floyd_warshall
from gpuops._cuda import Program

TILE, THREADS = 32, 256
BLOCKED = ("independent", "singly_dependent", "doubly_dependent")
STAGED = ("to_tiles", *BLOCKED, "from_tiles")
PROGRAMS = {
    "harish_narayanan": Program("harish_narayanan.cu", ("relax_all",), threads=THREADS, folder=KERNELS),
    "katz_kider": Program("katz_kider.cu", BLOCKED, threads=THREADS, folder=KERNELS),
    "optimized_blocked": Program("optimized_blocked.cu", BLOCKED, ("REGISTERS=0",), threads=THREADS, folder=KERNELS),
    "registers": Program("optimized_blocked.cu", BLOCKED, ("REGISTERS=1",), threads=THREADS, folder=KERNELS),
    "staged_load": Program("staged_load.cu", STAGED, ("SKEW=1",), threads=THREADS, folder=KERNELS),
    "staged_without_skew": Program("staged_load.cu", STAGED, ("SKEW=0",), threads=THREADS, folder=KERNELS),
}


@dataclass(frozen=True)
class Paper:
    """The paper's figures of the kernel that does nearly all tasks (relaxations). None: not in the paper."""

    shared_bytes: int | None = None
    blocks: int | None = None  # on a multiprocessor


@dataclass(frozen=True)
class Generation:
    name: str
    title: str
    close: Callable[[Any], Any]
    published: dict[int, float]  # seconds by n
    on_gpu: bool = True
    kernel: tuple[str, int] | None = None  # the kernel that does nearly all tasks, threads of a block
    program: str = ""  # the key of PROGRAMS, if it is not the name
    alone: bool = False  # whether one block of the kernel has a multiprocessor for itself
    bytes_per_task: float | None = None  # memory traffic: reads three words, writes one, for each task or for each tile
    paper: Paper = Paper()


@njit(cache=True)
def _close_on_one_core(w):
    for k in range(len(w)):
        pivot_row = w[k].copy()
        for i in range(len(w)):
            row, to_pivot = w[i], w[i, k]
            for j in range(len(w)):
                candidate = to_pivot + pivot_row[j]
                row[j] = candidate if candidate < row[j] else row[j]


def _close_harish_narayanan(w: Any) -> None:
    relax_all, n = PROGRAMS["harish_narayanan"].function("relax_all"), len(w)
    for k in range(n):
        relax_all((n, n // THREADS), (THREADS,), (w, np.int32(n), np.int32(k)))


def _close_blocked(name: str, alone: bool, w: Any) -> None:
    program = PROGRAMS[name]
    _close_by_tiles(program, w, THREADS, spare_shared_bytes(program) if alone else 0)


def _close_staged(name: str, w: Any) -> None:
    program, tiles, tiled = PROGRAMS[name], len(w) // TILE, w.copy()
    program.launch("to_tiles", (tiles, tiles), (w, tiled, np.int32(len(w))))
    _close_by_tiles(program, tiled, 64)
    program.launch("from_tiles", (tiles, tiles), (w, tiled, np.int32(len(w))))


def _close_by_tiles(program: Program, w: Any, threads_for_the_doubly_dependent: int, spare: int = 0) -> None:
    """Close `w`. Blocks of the doubly dependent kernel have `spare` more bytes of shared memory, which they leave."""
    tiles = len(w) // TILE
    # There are many short launches, so the functions are looked up once.
    independent, singly_dependent, doubly_dependent = map(program.function, BLOCKED)
    for pivots in range(tiles):
        arguments = (w, np.int32(len(w)), np.int32(pivots))
        independent((1,), (THREADS,), arguments)
        singly_dependent((tiles, 2), (THREADS,), arguments)
        doubly_dependent((tiles, tiles), (threads_for_the_doubly_dependent,), arguments, shared_mem=spare)


def spare_shared_bytes(program: Program) -> int:
    """Return the shared memory, in bytes, that a block needs in addition so that no second block fits beside it."""
    import cupy

    kernel = program.function("doubly_dependent")
    spare = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] - kernel.shared_size_bytes
    kernel.max_dynamic_shared_size_bytes = spare
    return int(spare)


def _close_tilepath(w: Any) -> None:
    floyd_warshall(w, out=w, nonnegative=True)


CPU = Generation(
    "cpu",
    "CPU, one core (Numba)",
    _close_on_one_core,
    {1024: 2.405, 2048: 18.38, 3072: 62.04, 4096: 145.2},
    on_gpu=False,
)
HARISH_NARAYANAN = Generation(
    "harish_narayanan",
    "Harish & Narayanan",
    _close_harish_narayanan,
    {1024: 0.408, 2048: 3.212, 3072: 10.99, 4096: 26.05, 5120: 50.87, 6144: 87.9, 8192: 208.6},
    kernel=("relax_all", THREADS),
    bytes_per_task=16,
)
# fmt: off
KATZ_KIDER = Generation(
    "katz_kider",
    "Katz & Kider",
    partial(_close_blocked, "katz_kider", False),
    {1024: 0.108, 2048: 0.65, 3072: 2.01, 4096: 4.62, 5120: 8.84, 6144: 15.09, 7168: 23.82, 8192: 35.37, 9216: 50.24,
     10240: 68.67, 11264: 91.08, 16384: 277.8},
    kernel=("doubly_dependent", THREADS),
    bytes_per_task=16 / TILE,
    paper=Paper(12320, 1),
)
OPTIMIZED_BLOCKED = Generation(
    "optimized_blocked",
    "optimized and blocked",
    partial(_close_blocked, "optimized_blocked", False),
    {1024: 0.0428, 2048: 0.282, 3072: 0.653, 4096: 2.06, 5120: 4.02, 6144: 6.89, 7168: 10.9, 8192: 16.39, 9216: 23.05,
     10240: 31.52, 11264: 41.82, 12288: 54.05, 13312: 68.56, 14336: 85.56, 16384: 126.9},
    kernel=("doubly_dependent", THREADS),
    bytes_per_task=16 / TILE,
    paper=Paper(12320, 1),
)
STAGED_LOAD = Generation(
    "staged_load",
    "staged load (Lund & Smith)",
    partial(_close_staged, "staged_load"),
    {1024: 0.0274, 2048: 0.14, 3072: 0.401, 4096: 0.934, 5120: 1.76, 6144: 2.98, 7168: 4.65, 8192: 6.88, 9216: 9.71,
     10240: 13.22, 11264: 17.48, 12288: 22.67, 13312: 28.63, 14336: 36.7, 15360: 43.74, 16384: 53.02, 17408: 63.4},
    kernel=("doubly_dependent", 64),
    bytes_per_task=16 / TILE,
    paper=Paper(1056, 15),
)
# fmt: on
TILEPATH = Generation("tilepath", "tilepath", _close_tilepath, {})
# As in the paper on its GPU, where one block fits a multiprocessor; and parts of the staged load by themselves.
ALONE = replace(
    OPTIMIZED_BLOCKED,
    name="alone",
    title="optimized and blocked, one block a multiprocessor",
    close=partial(_close_blocked, "optimized_blocked", True),
    published={},
    program="optimized_blocked",
    alone=True,
)
REGISTERS = replace(
    OPTIMIZED_BLOCKED,
    name="registers",
    title="tile in registers, without stages",
    close=partial(_close_blocked, "registers", False),
    published={},
    paper=Paper(8224, 1),
)
REGISTERS_ALONE = replace(
    ALONE,
    name="registers_alone",
    title="tile in registers, one block a multiprocessor",
    close=partial(_close_blocked, "registers", True),
    program="registers",
    paper=REGISTERS.paper,
)
WITHOUT_SKEW = replace(
    STAGED_LOAD,
    name="staged_without_skew",
    title="staged load without the skew",
    close=partial(_close_staged, "staged_without_skew"),
    published={},
    paper=Paper(),
)
VARIANTS = (ALONE, REGISTERS, REGISTERS_ALONE, WITHOUT_SKEW)
GENERATIONS = (CPU, HARISH_NARAYANAN, KATZ_KIDER, OPTIMIZED_BLOCKED, STAGED_LOAD, TILEPATH)
