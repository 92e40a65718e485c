"""The suite `fw-table`: generations of Floyd-Warshall on one GPU, compared with seconds published in 2010.

Each generation runs at powers of two and at the paper's sizes, while a run takes less than 30 s. Its result must equal
ours at every size. Before the runs, a probe measures the limit: the rate of this GPU on registers alone. generations.py
names the paper. Variants of the generations run at powers of two of the paper's sizes: the tile in registers without
stages, the staged load without the skew, and kernels of which one block has a multiprocessor for itself, as on the
paper's GPU.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks import document_tables
from benchmarks.harness import Bench, check_closed
from benchmarks.kernels.diagnosis import diagnose
from benchmarks.kernels.generations import (
    GENERATIONS,
    PROGRAMS,
    STAGED_LOAD,
    TILEPATH,
    VARIANTS,
    Generation,
    spare_shared_bytes,
)
from benchmarks.suites.limits import measure_issue_rates

CONVENTION = "n^3 relaxations, nothing skipped; wall seconds with all launches and copies on the device, synchronized"

PUBLISHED_SIZES = tuple(STAGED_LOAD.published)
SIZES = (*PUBLISHED_SIZES, 32768, 65536)
LONGEST = 30.0  # seconds: a generation is not run at sizes where it would take longer
ONCE = 2.0  # seconds; a longer run is not repeated
EVERY = (*GENERATIONS, *VARIANTS)
SLAB = 1024  # rows that are made or compared at a time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--sizes", type=int, nargs="+", metavar="N", help="multiples of 256, for all generations")
    sizes.add_argument("--published", action="store_true", help="only the cells of the paper's table, and the variants")


def run(bench: Bench, args: argparse.Namespace) -> str:
    sizes = sorted(args.sizes or (PUBLISHED_SIZES if args.published else SIZES))
    if any(n < 256 or n % 256 for n in sizes):
        raise SystemExit(f"--sizes {sizes}: each must be a multiple of 256")
    measure_issue_rates(bench, ("float32",))
    _warm_up(bench)
    facts = {g.name: _diagnosed(g) for g in EVERY if g.kernel is not None}
    seconds: dict[str, dict[int, float]] = {generation.name: {} for generation in EVERY}
    for n in sizes:
        due = [g for g in EVERY if _is_due(g, n, args) and _predicted(seconds[g.name], n) <= LONGEST]
        if TILEPATH not in due or not _fits(bench, n, due):
            break
        _time_all(bench, n, due, seconds, facts)
    return f"{document_tables.fw_table_1(bench.records)}\n{document_tables.fw_variants(bench.records)}"


def _is_due(generation: Generation, n: int, args: argparse.Namespace) -> bool:
    if args.sizes or generation is TILEPATH or n in generation.published:
        return True
    power_of_two = n.bit_count() == 1
    return power_of_two and (n in PUBLISHED_SIZES if generation in VARIANTS else not args.published)


def _diagnosed(generation: Generation) -> dict[str, Any]:
    assert generation.kernel is not None
    program = PROGRAMS[generation.program or generation.name]
    return diagnose(program, *generation.kernel, spare_shared_bytes(program) if generation.alone else 0)


def _traffic(generation: Generation, n: int, seconds: list[float]) -> dict[str, Any]:
    """Return the bytes over the memory bus, counted as in the paper."""
    each = generation.bytes_per_task
    return {} if each is None else {"bytes_per_task": each, "bytes_per_second": each * n**3 / float(np.median(seconds))}


def _predicted(seconds: dict[int, float], n: int) -> float:
    """Predict the seconds from the largest size so far, where launches, which do not grow by n^3, matter least."""
    size = max(seconds, default=n)
    return seconds.get(size, 0.0) * (n / size) ** 3


def _warm_up(bench: Bench) -> None:
    """Compile everything, and compare with the simplest method: three loops on the CPU."""
    weights = ring_of_vertices(np, 512)
    expected = weights.copy()
    GENERATIONS[0].close(expected)
    for generation in EVERY:
        matrix = bench.xp.asarray(weights) if generation.on_gpu else weights.copy()
        generation.close(matrix)
        assert bool((bench.xp.asarray(matrix) == bench.xp.asarray(expected)).all()), f"{generation.title} is wrong"


def _fits(bench: Bench, n: int, due: list[Generation]) -> bool:
    """Return whether all matrices fit in device memory.

    They are the weights and a working matrix; for a comparison also our result, and the tiled copy of the staged load.
    """
    needed = n * n * 4 * (2 if due == [TILEPATH] else 4) + (2 << 30)
    free = bench.xp.cuda.runtime.memGetInfo()[0]
    if needed > free:
        print(f"n = {n} is left out: it needs {needed / 1e9:.0f} GB of device memory, {free / 1e9:.0f} GB are free")
    return needed <= free


def _time_all(
    bench: Bench,
    n: int,
    due: list[Generation],
    seconds: dict[str, dict[int, float]],
    facts: dict[str, dict[str, Any]],
) -> None:
    weights = ring_of_vertices(bench.xp, n)
    ours = None
    for generation in sorted(due, key=lambda generation: generation is not TILEPATH):  # ours first
        matrix = bench.xp.empty_like(weights) if generation.on_gpu else np.empty(weights.shape, weights.dtype)
        source = weights if generation.on_gpu else weights.get()
        times: list[float] = []
        if generation is TILEPATH:  # compiles the kernels of this size
            matrix[...] = source
            generation.close(matrix)
        while not times or (len(times) < bench.repeats and times[0] < ONCE):
            matrix[...] = source
            times.append(bench.seconds(lambda matrix=matrix, close=generation.close: close(matrix)))
            if len(times) == 1 and generation is TILEPATH:
                check_closed(bench.xp, weights, matrix, exact=True)
                verified = "8 rows are exact fixed points"
            elif len(times) == 1:
                _check_equal(bench.xp, generation, matrix, ours)
                verified = "equals ours"
        if generation is TILEPATH and len(due) > 1:
            ours = matrix
        bench.record(
            f"{generation.title}, n = {n}",
            times,
            work=(n**3, "relaxations"),
            verified=verified,
            limit="float32" if generation.on_gpu else None,
            generation=generation.name,
            sizes={"n": n},
            published_seconds=generation.published.get(n),
            **_traffic(generation, n, times),
            **facts.get(generation.name, {}),
        )
        seconds[generation.name][n] = float(np.median(times))
        del matrix, source
    del weights, ours
    bench.xp.get_default_memory_pool().free_all_blocks()


def _check_equal(xp: Any, generation: Generation, matrix: Any, ours: Any) -> None:
    for first in range(0, len(matrix), SLAB):
        part = slice(first, first + SLAB)
        same = xp.asarray(matrix[part]) == ours[part]
        assert bool(same.all()), f"{generation.title} at n = {len(matrix)} differs from ours"


def ring_of_vertices(xp: Any, n: int) -> Any:
    """Return weights whose shortest paths have many arcs, so that the result depends on every step of Floyd-Warshall.

    The vertices lie on a ring, in random order. The weight of an arc is its number of steps on the ring, times 1 to
    500. All weights and shortest distances are integers below 2^24, which float32 adds exactly in any order.
    """
    places = xp.asarray(np.random.default_rng(n).permutation(n).astype("float32"))
    rng = xp.random.default_rng(n)
    weights = xp.empty((n, n), "float32")
    for first in range(0, n, SLAB):
        steps = abs(places[first : first + SLAB, None] - places)
        factors = xp.floor(rng.random(steps.shape, dtype=xp.float32) * 500) + 1
        weights[first : first + SLAB] = xp.minimum(steps, n - steps) * factors
    return weights
