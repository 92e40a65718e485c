"""The suite `distinct`: distinct values, compaction and prefix sums, compared with NumPy, CuPy and a published run.

The published array has numbers from 0 to 999. Further arrays have no such range: random 32-bit and 64-bit integers, and
floats. On a GPU, CuPy's unique and sort, and the published method (sort, mark, scan, scatter), are timed too. Every
result is compared before its case is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from benchmarks.kernels.sequences import distinct_by_sorting
from benchmarks.suites.limits import measure_copy
from gpuops import compact, distinct, exclusive_scan, inclusive_scan

CONVENTION = (
    "bytes per second: what is read and written once, for distinct values the array alone. Wall seconds with launches, "
    "device synchronized, arrays resident. Published: Alea.CUDA and LINQ's distinct, 2016"
)
PUBLISHED = {  # seconds by n: CPU, GPU
    2_097_152: (0.0262776, 2.9162098),
    26_214_400: (0.5622276, 3.2298218),
    262_144_000: (3.8712437, 5.7540822),
    300_000_000: (4.2019013, 6.7728424),
}
RANGE = 1000
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="default: the four published ones")
    parser.add_argument("--others", type=int, metavar="N", help="of other arrays; default 100,000,000, CPU 10,000,000")


def run(bench: Bench, args: argparse.Namespace) -> None:
    if bench.gpu:
        measure_copy(bench)
        bench.limits["copy"] = bench.records[-1]["bytes_per_second"]
    for n in args.sizes or PUBLISHED:
        _small_range(bench, n)
    n = args.others or (100_000_000 if bench.gpu else 10_000_000)
    for dtype in "int32", "int64", "float32", "float64":
        _any_values(bench, n, dtype)
    _streams(bench, n)


def _small_range(bench: Bench, n: int) -> None:
    xp = bench.xp
    x = xp.asarray(np.random.default_rng(SEED).integers(0, RANGE, n, dtype=np.int32))
    expected = np.arange(RANGE)
    published = {"published_seconds": PUBLISHED[n][bench.gpu]} if n in PUBLISHED else {}
    title = f"of 0..{RANGE - 1}, {n:,} int32"
    if n < 100 * RANGE:
        expected = np.unique(x if xp is np else x.get())
    _time(bench, n, f"distinct {title}", lambda: distinct(x).values, expected, x.nbytes, **published)
    counted = lambda: distinct(x, return_counts=True).counts  # noqa: E731
    _time(bench, n, f"distinct and counts {title}", counted, xp.unique(x, return_counts=True)[1], x.nbytes)
    _time(bench, n, f"{xp.__name__}.unique {title}", lambda: xp.unique(x), expected, x.nbytes, peer=True)
    if bench.gpu:
        way = lambda: distinct_by_sorting(xp, x)  # noqa: E731
        _time(bench, n, f"as published: sort, mark, scan, scatter {title}", way, expected, x.nbytes, peer=True)


def _any_values(bench: Bench, n: int, dtype: str) -> None:
    xp, rng = bench.xp, np.random.default_rng(SEED)
    if dtype.startswith("float"):
        host = rng.random(n, dtype=np.dtype(dtype).type)
    else:
        limits = np.iinfo(dtype)
        host = rng.integers(limits.min, limits.max, n, dtype=np.dtype(dtype).type, endpoint=True)
    x, title = xp.asarray(host), f"of any value, {n:,} {dtype}"
    # NumPy's unique without counts uses a hash table, which is slower here than sorting.
    expected = np.unique(host, return_counts=True)[0]
    _time(bench, n, f"distinct {title}", lambda: distinct(x).values, expected, x.nbytes)
    for options in {"return_counts": True}, {"return_inverse": True}, {"order": "first"}:
        call = lambda options=options: distinct(x, **options)  # noqa: E731
        assert len(call().values) == len(expected)
        name = " ".join(f"{key}={value}" for key, value in options.items())
        bench.time(
            f"distinct {name} {title}", call, work=(x.nbytes, "bytes"), verified="as many values", sizes={"n": n}
        )
    sort = lambda: xp.unique(x, return_counts=True)[0]  # noqa: E731
    _time(bench, n, f"{xp.__name__}.unique with counts {title}", sort, expected, x.nbytes, peer=True)
    _time(bench, n, f"{xp.__name__}.sort {title}", lambda: xp.sort(x), np.sort(host), x.nbytes, peer=True)


def _streams(bench: Bench, n: int) -> None:
    xp, rng = bench.xp, np.random.default_rng(SEED)
    x, keep = rng.random(n, dtype=np.float32), rng.random(n) < 0.5
    kept = x[keep]
    on_device = xp.asarray(x), xp.asarray(keep)
    moved, title = x.nbytes + keep.nbytes + kept.nbytes, f"half of {n:,} float32"
    _time(bench, n, f"compact {title}", lambda: compact(*on_device), kept, moved, limit="copy")
    _time(bench, n, f"{xp.__name__}, x[keep] {title}", lambda: on_device[0][on_device[1]], kept, moved, peer=True)
    if not bench.gpu:
        _time(bench, n, f"numpy.compress {title}", lambda: np.compress(keep, x), kept, moved, peer=True)
    for dtype in "int64", "int32":
        host = rng.integers(-9, 9, n).astype(dtype)
        x, sums, title = xp.asarray(host), np.cumsum(host), f"{n:,} {dtype}"
        moved = x.nbytes + sums.nbytes
        _time(bench, n, f"inclusive scan {title}", lambda x=x: inclusive_scan(x), sums, moved, limit="copy")
        _time(bench, n, f"exclusive scan {title}", lambda x=x: exclusive_scan(x), sums - host, moved, limit="copy")
        _time(bench, n, f"{xp.__name__}.cumsum {title}", lambda x=x: xp.cumsum(x), sums, moved, peer=True)


def _time(
    bench: Bench, n: int, case: str, run: Callable[[], Any], expected: Any, bytes_moved: int, **facts: Any
) -> None:
    found = run()
    assert found.shape == expected.shape, f"{case}: {found.shape} and not {expected.shape}"
    assert bool((found == bench.xp.asarray(expected)).all()), f"{case} is wrong"
    del found
    peer = facts.get("peer")
    verified = "equals NumPy's" if peer is None else "equals ours and NumPy's"
    bench.time(case, run, work=(bytes_moved, "bytes"), verified=verified, sizes={"n": n}, **facts)
