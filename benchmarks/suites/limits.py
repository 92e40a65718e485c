"""The suite `limits`: the highest rates of this GPU at its present clock, to compare all other results with.

It measures relaxations per second of instructions that use registers alone, and the bandwidth of shared memory and of
device memory. benchmarks/kernels/limits.cu explains the instructions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import KERNELS, Bench
from gpuops._cuda import Program, multiprocessors

CONVENTION = "every relaxation counted; bytes read and bytes written both count; wall seconds, device synchronized"

THREADS, BLOCKS_PER_SM = 1024, 2
STEPS = 512 * 2000  # steps of a launch, which takes about 20 to 50 ms
WARM_UP = 0.3  # seconds, until clocks have settled


@dataclass(frozen=True)
class Mix:
    """Instructions that do `relaxations` in one step, measured as a limit of the dtypes `limits`."""

    name: str
    word: str
    relaxations: int
    limits: tuple[str, ...]

    @property
    def program(self) -> Program:
        return PROGRAMS[self.name]


MIXES = (
    Mix("Float32", "float32", 1, ("float32 signed", "float32")),
    Mix("NonnegativeFloat32", "float32", 2, ("float32",)),
    Mix("Int32", "int32", 1, ("int32",)),
    Mix("Int32Blend", "int32", 3, ("int32",)),
    Mix("Int16", "uint32", 2, ("int16",)),
    Mix("Int16Blend", "uint32", 6, ("int16",)),
    Mix("Float64", "float64", 1, ("float64",)),
)
PROGRAMS = {
    mix.name: Program(
        "limits.cu",
        ("issue", "load_shared"),
        (f"MIX={mix.name}",),
        threads=THREADS,
        blocks=BLOCKS_PER_SM,
        folder=KERNELS,
    )
    for mix in MIXES
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(bench: Bench, args: argparse.Namespace) -> str:
    measure_issue_rates(bench)
    measure_shared_memory(bench)
    measure_copy(bench)
    rows = ["| limit | per second | per clock and SM | SM clock |", "|---|---:|---:|---:|"]
    for record in bench.records:
        relaxations, moved = record.get("relaxations_per_second"), record.get("bytes_per_second")
        rate = f"{relaxations / 1e12:.2f} T relaxations" if relaxations else f"{moved / 1e12:.2f} TB"
        per_clock, clock = record.get("per_clock_per_sm"), record.get("clock_mhz")
        per_clock, clock = (f"{per_clock:.1f}", f"{clock:.0f} MHz") if clock else ("", "")
        rows.append(f"| {record['case'].removeprefix('limit: ')} | {rate} | {per_clock} | {clock} |")
    return "\n".join(rows)


def measure_issue_rates(bench: Bench, dtypes: tuple[str, ...] | None = None) -> None:
    """Time the mixes for `dtypes`, by default all. The fastest mix for a dtype sets its limit."""
    rng = np.random.default_rng(0)
    for mix in MIXES:
        if dtypes is not None and not set(mix.limits) & set(dtypes):
            continue
        seeds = rng.integers(0, 8000, (64, 2)).astype("int16").view("uint32") if mix.word == "uint32" else None
        seeds = bench.xp.asarray(rng.integers(0, 8000, 64).astype(mix.word) if seeds is None else seeds.ravel())
        results = bench.xp.empty(_blocks(bench) * THREADS, mix.word)
        rate = _measure(
            bench,
            f"limit: {mix.name}",
            mix.program,
            "issue",
            (seeds, np.int32(1), np.int32(STEPS), results),
            (_blocks(bench) * THREADS * STEPS * mix.relaxations, "relaxations"),
        )
        for limit in mix.limits:
            bench.limits[limit] = max(rate, bench.limits.get(limit, 0))


def measure_shared_memory(bench: Bench) -> None:
    results = bench.xp.empty(_blocks(bench) * THREADS, "int32")
    steps = STEPS // 5
    _measure(
        bench,
        "limit: shared memory, loads of 16 bytes",
        PROGRAMS["Float32"],
        "load_shared",
        (np.int32(steps), results),
        (_blocks(bench) * THREADS * steps * 16, "bytes"),
    )


def measure_copy(bench: Bench) -> None:
    size = min(2 << 30, bench.xp.cuda.runtime.memGetInfo()[0] // 4)
    source, target = bench.xp.zeros(size, "uint8"), bench.xp.empty(size, "uint8")

    def copy() -> None:
        target.data.copy_from_device_async(source.data, size)

    copy()
    bench.time("limit: device memory, copy", copy, work=(2 * size, "bytes"), verified="no result")


def _measure(
    bench: Bench, case: str, program: Program, entry: str, arguments: tuple[Any, ...], work: tuple[int, str]
) -> float:
    """Launch on all multiprocessors until the clock has settled, then time and record the clock that the kernel saw."""
    clocks = bench.xp.zeros((_blocks(bench), 2), "int64")

    def launch() -> None:
        program.launch(entry, _blocks(bench), (*arguments, clocks))

    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_UP:
        bench.seconds(launch)
    seconds = [bench.seconds(launch) for _ in range(bench.repeats)]
    cycles, nanoseconds = clocks.T.get().astype(float)
    hertz = statistics.median(cycles / nanoseconds) * 1e9
    per_second = work[0] / statistics.median(seconds)
    return bench.record(
        case,
        seconds,
        verified="no result",
        per_clock_per_sm=per_second / hertz / (_blocks(bench) // BLOCKS_PER_SM),
        clock_mhz=hertz / 1e6,
        work=work,
    )


def _blocks(bench: Bench) -> int:
    return BLOCKS_PER_SM * multiprocessors(bench.xp.cuda.Device().id)
