"""The suite `apsp`: products, Floyd-Warshall and the pipeline on this machine's device."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
from distributed import get_task_stream

from benchmarks.harness import Bench, check_closed, computing_seconds, named_network, random_graph, scipy_matrix
from benchmarks.kernels.generations import STAGED_LOAD
from benchmarks.suites.limits import measure_issue_rates
from clusters import start
from gpuops import floyd_warshall, minplus_update
from gpuops._vectors_numba import ROWS
from gpuops.minplus import packed_columns
from gpuops.minplus.product_numba import relax_register_tile
from gpuops.numbers import infinity
from pipelines import all_pairs_shortest_paths
from pipelines.formats.graphs import import_graph
from pipelines.stores.durable import sync_file
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.whole_chunks import WRITERS
from pipelines.validation.distances import verify_distances

CONVENTION = (
    "n^3 relaxations (m n p for a product), nothing skipped; wall seconds, device synchronized; "
    "the pipeline writes a new store, synced to the disk"
)
STAGES = "dependent-", "publish-", "list of tasks-", "finish-"  # in the keys of the tasks of the arithmetic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=["product", "floyd-warshall", "pipeline"], action="append")
    parser.add_argument(
        "--graph", action="append", default=[], metavar="FILE", help="more graphs, any format `tilepath import` reads"
    )


def run(bench: Bench, args: argparse.Namespace) -> None:
    groups = args.only or ["product", "floyd-warshall", "pipeline"]
    if "pipeline" in groups:  # first, because it measures memory as the growth over an idle process
        bench_pipeline(bench, args.graph)
    if bench.gpu and groups != ["pipeline"]:
        measure_issue_rates(bench)
    if "product" in groups:
        if not bench.gpu:
            bench_limit(bench)
        bench_product(bench)
    if "floyd-warshall" in groups:
        bench_floyd_warshall(bench)


def bench_product(bench: Bench) -> None:
    """Time minplus_update for every dtype and both float32 paths."""
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
            work=(m * m * p, "relaxations"),
            verified="4 rows equal a broadcast product",
            limit=dtype if nonnegative else f"{dtype} signed",
            dtype=dtype,
            sizes={"m": m, "n": m, "p": p},
        )


@numba.njit(nogil=True, cache=True)
def _relax_in_first_level_cache(c: Any, a: Any, b: Any, times: int) -> None:
    """Update the same tile of C again and again: only additions and minima, with operands from the cache."""
    for _ in range(times):
        relax_register_tile(c, a, b, 0, a.shape[0])


def bench_limit(bench: Bench) -> None:
    """Measure the rate of additions and minima alone on this CPU. Products report their share of this limit."""
    threads, times, depth = numba.config.NUMBA_NUM_THREADS, 20_000, 128
    for dtype in ("float32", "float64", "int32", "int16"):
        columns = packed_columns(dtype, gpu=False)
        tiles = [
            [np.ones(shape, dtype) for shape in ((ROWS, columns), (depth, ROWS), (depth, columns))]
            for _ in range(threads)
        ]
        with ThreadPoolExecutor(threads) as pool:

            def run(tiles: Any = tiles, pool: Any = pool) -> None:
                list(pool.map(lambda tile: _relax_in_first_level_cache(*tile, times), tiles))

            run()
            rate = bench.time(
                f"limit: one tile in the first-level cache, {dtype}",
                run,
                work=(threads * times * depth * ROWS * columns, "relaxations"),
                verified="no result",
                dtype=dtype,
            )
        bench.limits |= {dtype: rate, f"{dtype} signed": rate}


def bench_floyd_warshall(bench: Bench) -> None:
    """Time floyd_warshall on dense matrices on one device: directed, random, every entry finite."""
    xp = bench.xp
    sizes = (1024, 2048, 4096, 8192, 16384, 32768) if bench.gpu else (1024, 2048, 4096)
    published = STAGED_LOAD.published
    cases = [("float32", n) for n in sizes] + [(dtype, sizes[-2]) for dtype in ("float64", "int32", "int16")]
    for dtype, n in cases:
        weights = _random_matrix(xp, n, dtype)
        matrix = floyd_warshall(weights)
        check_closed(xp, weights, matrix)

        def run(matrix: Any = matrix, weights: Any = weights) -> None:
            floyd_warshall(matrix, out=matrix, nonnegative=True)

        # The work does not depend on the data. Closing the closed matrix again avoids a copy in the timing.
        bench.time(
            f"floyd_warshall n = {n} {dtype}",
            run,
            work=(n**3, "relaxations"),
            verified="equals min over u of d[s, u] + w[u, v] on 8 rows",
            limit=dtype,
            dtype=dtype,
            sizes={"n": n},
            **({"published_seconds": published[n]} if dtype == "float32" and n in published else {}),
        )


def bench_pipeline(bench: Bench, files: list[str]) -> None:
    """Time the pipeline from store to store on one worker, and SciPy on the same graph if the graph is small."""
    with tempfile.TemporaryDirectory() as folder, start(device="gpu" if bench.gpu else "cpu") as client:
        for graph in _graphs(bench, Path(folder), files):
            name = Path(graph.path).stem
            out = Path(folder) / "out.zarr"
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

            def run(graph: Graph = graph, out: Path = out) -> Any:
                shutil.rmtree(out, ignore_errors=True)
                begin = time.perf_counter()
                found = all_pairs_shortest_paths(client, graph, out, method="floyd-warshall", progress=False)
                return found, time.perf_counter() - begin

            certificate = verify_distances(run()[0], graph, rows=16)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
            with get_task_stream(client, plot=False) as tasks:
                run()
            sizes = [file.stat().st_size for file in out.rglob("*") if file.is_file()]
            turns = [(run()[1], plain_seconds(Path(folder) / "plain", sizes)) for _ in range(bench.repeats)]
            bench.record(
                f"pipeline {name}, n = {graph.n}, m = {graph.m}, store to store",
                [run_seconds for run_seconds, _ in turns],
                work=(graph.n**2 * int(graph.through().sum()), "relaxations"),
                verified=f"certificate of {certificate.rows} rows",
                sizes={"n": graph.n, "m": graph.m},
                peak_memory_growth_over_matrix=grown / (graph.n**2 * 4),
                arithmetic_seconds=computing_seconds(tasks.data, *STAGES),
                files=len(sizes),
                bytes=sum(sizes),
                plain_seconds=statistics.median(plain for _, plain in turns),
            )
            shutil.rmtree(out)
            if graph.n <= 4000 and not bench.gpu and graph.through().all():
                _bench_scipy(bench, graph, name)


def plain_seconds(folder: Path, sizes: Sequence[int]) -> float:
    """Return the seconds in which threads alone write and sync files of these sizes: a limit for every writer."""
    folder.mkdir()
    data = os.urandom(max(sizes))

    def write(number: int) -> None:
        with (folder / str(number)).open("wb") as file:
            file.write(memoryview(data)[: sizes[number]])
            sync_file(file)

    begin = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(len(sizes))))
    seconds = time.perf_counter() - begin
    shutil.rmtree(folder)
    return seconds


def _bench_scipy(bench: Bench, graph: Graph, name: str) -> None:
    from scipy.sparse.csgraph import dijkstra
    from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

    matrix = scipy_matrix(graph)
    facts = {"work": (graph.n**3, "relaxations"), "sizes": {"n": graph.n, "m": graph.m}, "peer": "SciPy"}
    once, bench.repeats = bench.repeats, 1
    bench.time(f"SciPy floyd_warshall {name}", lambda: scipy_floyd_warshall(matrix), verified="peer", **facts)
    bench.repeats = once
    bench.time(f"SciPy dijkstra {name} (sparse, one core)", lambda: dijkstra(matrix), verified="peer", **facts)


def _graphs(bench: Bench, folder: Path, files: list[str]) -> Iterator[Graph]:
    yield named_network("rome", {}, folder / "rome99.zarr")
    for file in files:
        yield open_graph(file) if Path(file).is_dir() else import_graph(file, folder / f"{Path(file).stem}.zarr")
    if bench.gpu:
        for n in (16384, 32768):
            yield random_graph(folder / f"random-{n}.zarr", n)


def _random_matrix(xp: Any, n: int, dtype: str) -> Any:
    rng = xp.random.default_rng(n)
    matrix = rng.random((n, n), dtype=xp.float32) if dtype == "float32" else rng.random((n, n))
    matrix = matrix if dtype.startswith("float") else (matrix * 1000 + 1)
    matrix = matrix.astype(dtype)
    xp.fill_diagonal(matrix, 0)
    assert bool((matrix < infinity(dtype)).all())
    return matrix
