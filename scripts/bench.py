#!/usr/bin/env python3
"""Benchmarks: warm up, verify, repeat; median with minimum and maximum, one JSON record a case.

    scripts/bench.py apsp                     products, Floyd-Warshall and the pipeline on this machine's device
    scripts/bench.py apsp --graph FILE ...    the pipeline on more graphs, any format `tilepath import` reads
    scripts/bench.py apsp --only product      one group of cases

Rates count n^3 relaxations (m n p for a product), whatever a method skips. Seconds are wall time, until the device
is done.
Nothing is timed that has not been verified in the same run. The records go to benchmarks/apsp-DEVICE.json.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np

from clusters import start
from gpuops import floyd_warshall, minplus_update
from gpuops._minplus_numba import ROWS, relax_register_tile, tile_columns
from gpuops.numbers import infinity
from pipelines import all_pairs_shortest_paths
from pipelines.formats import import_graph
from pipelines.progress import duration, with_prefix
from pipelines.stores import Graph, open_graph, write_graph
from pipelines.verify import verify_distances

ROOT = Path(__file__).resolve().parent.parent
ROME = ROOT / "scripts" / "data" / "rome99.gr"
PUBLISHED = {1024: 0.0274, 2048: 0.14, 4096: 0.934, 8192: 6.88, 16384: 53.02}  # Lund & Smith, Table 1, Tesla C1060


class Bench:
    """Runs cases, prints a line for each and keeps the records."""

    def __init__(self, xp: Any, repeats: int):
        self.xp, self.repeats = xp, repeats
        self.gpu = xp is not np
        self.device = _device_name(xp)
        self.records: list[dict[str, Any]] = []

    def time(self, case: str, run: Callable[[], Any], *, relaxations: int, verified: str, **facts: Any) -> None:
        """Time `run` (already verified, so warm) and record it."""
        seconds = []
        for _ in range(self.repeats):
            self.wait()
            begin = time.perf_counter()
            run()
            self.wait()
            seconds.append(time.perf_counter() - begin)
        median = statistics.median(seconds)
        record = {
            "case": case,
            "seconds": {"median": median, "min": min(seconds), "max": max(seconds), "repeats": len(seconds)},
            "relaxations_per_second": relaxations / median,
            "verified": verified,
            **facts,
        }
        if self.gpu:
            record["sm_clock_mhz"] = _sm_clock()
        self.records.append(record)
        published = f"  (published {facts['published_seconds']} s)" if "published_seconds" in facts else ""
        print(
            f"{case:58} {_seconds(median)}  [{_seconds(min(seconds))} .. {_seconds(max(seconds))}]"
            f"  {with_prefix(relaxations / median)}relaxations/s{published}",
            flush=True,
        )

    def wait(self) -> None:
        if self.gpu:
            self.xp.cuda.get_current_stream().synchronize()

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**_facts(self.xp), "records": self.records}, indent=1) + "\n")
        print(f"\n{path}")


def bench_product(bench: Bench) -> None:
    """minplus_update for every dtype and both float32 paths."""
    xp = bench.xp
    m, p = (16384, 512) if bench.gpu else (2048, 2048)
    for dtype, nonnegative in (
        ("float32", True),
        ("float32", False),
        ("float64", True),
        ("int32", True),
        ("int16", True),
    ):
        rng = np.random.default_rng(0)
        low = 0 if nonnegative else -50
        a, b, c = (xp.asarray(rng.integers(low, 2000, shape).astype(dtype)) for shape in ((m, p), (p, m), (m, m)))
        c += c.dtype.type(1500)
        sample = [0, 1, m // 3, m - 1]
        want = xp.minimum(c[sample], (a[sample][:, :, None] + b[None]).min(axis=1))
        minplus_update(c, a, b, out=c, nonnegative=nonnegative)
        assert bool((c[sample] == want).all()), f"{dtype} product is wrong"
        sign = "non-negative" if nonnegative else "signed"
        bench.time(
            f"product {m} x {m} x {p} {dtype} {sign}",
            lambda a=a, b=b, c=c, flag=nonnegative: minplus_update(c, a, b, out=c, nonnegative=flag),
            relaxations=m * m * p,
            verified="4 rows equal a broadcast product",
            dtype=dtype,
            sizes={"m": m, "n": m, "p": p},
        )


@numba.njit(nogil=True, cache=True)
def _relax_in_first_level_cache(c: Any, a: Any, b: Any, times: int) -> None:
    """The same tile of C again and again: nothing but additions, minima and what feeds them."""
    for _ in range(times):
        relax_register_tile(c, a, b, 0, a.shape[0])


def bench_limit(bench: Bench) -> None:
    """What additions and minima alone can do on this CPU, now: the share of it is what a product should be judged by."""
    threads, times, depth = numba.config.NUMBA_NUM_THREADS, 20_000, 128
    for dtype in ("float32", "float64", "int32", "int16"):
        columns = tile_columns(np.dtype(dtype).itemsize)
        tiles = [
            [np.ones(shape, dtype) for shape in ((ROWS, columns), (depth, ROWS), (depth, columns))]
            for _ in range(threads)
        ]
        with ThreadPoolExecutor(threads) as pool:

            def run(tiles: Any = tiles, pool: Any = pool) -> None:
                list(pool.map(lambda tile: _relax_in_first_level_cache(*tile, times), tiles))

            run()
            bench.time(
                f"limit: one tile in the first-level cache, {dtype}",
                run,
                relaxations=threads * times * depth * ROWS * columns,
                verified="no result",
                dtype=dtype,
            )


def bench_floyd_warshall(bench: Bench) -> None:
    """Whole dense matrices on one device: directed, random, every entry finite."""
    xp = bench.xp
    sizes = (1024, 2048, 4096, 8192, 16384, 32768) if bench.gpu else (1024, 2048, 4096)
    cases = [("float32", n) for n in sizes] + [(dtype, sizes[-2]) for dtype in ("float64", "int32", "int16")]
    for dtype, n in cases:
        weights = _random_matrix(xp, n, dtype)
        matrix = floyd_warshall(weights)
        _check_closed(xp, weights, matrix)

        def run(matrix: Any = matrix, weights: Any = weights) -> None:
            floyd_warshall(matrix, out=matrix, nonnegative=True)

        # The work does not depend on the data, so the closed matrix is closed again: no copy inside the timing.
        bench.time(
            f"floyd_warshall n = {n} {dtype}",
            run,
            relaxations=n**3,
            verified="equals min over u of d[s, u] + w[u, v] on 8 rows",
            dtype=dtype,
            sizes={"n": n},
            **({"published_seconds": PUBLISHED[n]} if dtype == "float32" and n in PUBLISHED else {}),
        )


def bench_pipeline(bench: Bench, files: list[str]) -> None:
    """Store to store through one worker; SciPy on the same graph beside it where it is small."""
    with tempfile.TemporaryDirectory() as folder, start(device="gpu" if bench.gpu else "cpu") as client:
        for graph in _graphs(bench, Path(folder), files):
            name = Path(graph.path).stem
            out = Path(folder) / "out.zarr"
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

            def run(graph: Graph = graph, out: Path = out) -> Any:
                return all_pairs_shortest_paths(client, graph, out, overwrite=True, progress=False)

            certificate = verify_distances(run(), graph, rows=16)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
            bench.time(
                f"pipeline {name}, n = {graph.n}, m = {graph.m}, store to store",
                run,
                relaxations=graph.n**2 * int(graph.through().sum()),
                verified=f"certificate of {certificate.rows} rows",
                sizes={"n": graph.n, "m": graph.m},
                peak_memory_growth_over_matrix=grown / (graph.n**2 * 4),
            )
            if graph.n <= 4000 and not bench.gpu and graph.through().all():
                _bench_scipy(bench, graph, name)


def _bench_scipy(bench: Bench, graph: Graph, name: str) -> None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra
    from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

    indptr, indices, weights = graph.rows()
    arcs = np.lexsort((weights, indices, np.repeat(np.arange(graph.n), np.diff(indptr))))
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))[arcs]
    first = np.flatnonzero(np.r_[True, (np.diff(tails) != 0) | (np.diff(indices[arcs]) != 0)])
    matrix = csr_array((weights[arcs][first].astype(float), (tails[first], indices[arcs][first])))
    facts = {"relaxations": graph.n**3, "sizes": {"n": graph.n, "m": graph.m}, "peer": "SciPy"}
    once, bench.repeats = bench.repeats, 1
    bench.time(f"SciPy floyd_warshall {name}", lambda: scipy_floyd_warshall(matrix), verified="peer", **facts)
    bench.repeats = once
    bench.time(f"SciPy dijkstra {name} (sparse, one core)", lambda: dijkstra(matrix), verified="peer", **facts)


def _graphs(bench: Bench, folder: Path, files: list[str]) -> Iterator[Graph]:
    yield import_graph(ROME, folder / "rome99.zarr")
    for file in files:
        yield open_graph(file) if Path(file).is_dir() else import_graph(file, folder / f"{Path(file).stem}.zarr")
    if bench.gpu:
        for n in (16384, 32768):
            rng = np.random.default_rng(n)
            degrees = np.full(n, 16)
            indptr = np.concatenate([[0], np.cumsum(degrees)])
            weights = rng.random(16 * n, dtype="float32") + np.float32(0.01)
            yield write_graph(folder / f"random-{n}.zarr", indptr, rng.integers(0, n, 16 * n), weights)


def _random_matrix(xp: Any, n: int, dtype: str) -> Any:
    rng = xp.random.default_rng(n)
    matrix = rng.random((n, n), dtype=xp.float32) if dtype == "float32" else rng.random((n, n))
    matrix = matrix if dtype.startswith("float") else (matrix * 1000 + 1)
    matrix = matrix.astype(dtype)
    xp.fill_diagonal(matrix, 0)
    assert bool((matrix < infinity(dtype)).all())
    return matrix


def _check_closed(xp: Any, weights: Any, matrix: Any) -> None:
    """The distances of a row are a fixed point: min over u of d[s, u] + w[u, v], up to the rounding of one addition."""
    n = len(matrix)
    for s in (0, 1, n // 7, n // 3, n // 2, n - 3, n - 2, n - 1):
        row = matrix[s]
        best = xp.full_like(row, infinity(row.dtype))
        for first in range(0, n, 2048):
            part = slice(first, first + 2048)
            best = xp.minimum(best, (row[part, None] + weights[part]).min(axis=0))
        if row.dtype.kind == "f":
            # A path of a random matrix has some 50 arcs at most; each addition rounds by half an ulp.
            assert bool((abs(best - row) <= 50 * xp.finfo(row.dtype).eps * abs(row)).all()), "not closed"
        else:
            assert bool((best == row).all()), "not closed"


def _device_name(xp: Any) -> str:
    if xp is not np:
        return xp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    import os

    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def _sm_clock() -> int:
    import pynvml

    pynvml.nvmlInit()
    return int(pynvml.nvmlDeviceGetClockInfo(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.NVML_CLOCK_SM))


def _facts(xp: Any) -> dict[str, Any]:
    names = ("numpy", "numba", "scipy", "zarr", "dask", "distributed", "cupy-cuda13x", "cupy-cuda12x")
    versions = {"python": platform.python_version()}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "device": _device_name(xp),
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
        "versions": versions,
        "convention": "n^3 relaxations (m n p for a product), nothing skipped; wall seconds, device synchronized",
    }


def _commit() -> str:
    """The commit measured; a copy of the tree without its history carries it in the file .commit."""
    try:
        text = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(text, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        noted = ROOT / ".commit"
        return noted.read_text().strip() if noted.exists() else "unknown"


def _seconds(value: float) -> str:
    return f"{value * 1e3:9.3f} ms" if value < 1 else f"{duration(value):>12}" if value >= 100 else f"{value:9.3f} s "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=["apsp"])
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--only", choices=["product", "floyd-warshall", "pipeline"], action="append")
    parser.add_argument("--graph", action="append", default=[], metavar="FILE")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="default: benchmarks/apsp-DEVICE.json")
    args = parser.parse_args()

    xp: Any = np
    if args.device != "cpu":
        try:
            import cupy

            xp = cupy if cupy.cuda.is_available() else np
        except ImportError:
            pass
    if args.device == "gpu" and xp is np:
        sys.exit("no GPU, or CuPy is not installed: pip install 'tilepath[cuda13]'")
    bench = Bench(xp, args.repeats)
    print(f"{bench.device}\n")
    groups = args.only or ["product", "floyd-warshall", "pipeline"]
    if "pipeline" in groups:  # first: its memory figure is the growth over an idle process
        bench_pipeline(bench, args.graph)
    if "product" in groups:
        if not bench.gpu:
            bench_limit(bench)
        bench_product(bench)
    if "floyd-warshall" in groups:
        bench_floyd_warshall(bench)
    short = bench.device.split(",")[0].replace("NVIDIA ", "").replace("(R)", "").split("@")[0].strip()
    slug = "-".join("".join(c if c.isalnum() else " " for c in short.lower()).split())
    bench.write(args.out or ROOT / "benchmarks" / f"apsp-{slug}.json")


if __name__ == "__main__":
    main()
