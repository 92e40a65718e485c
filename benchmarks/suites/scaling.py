"""The suite `scaling`: all pairs on one worker and on several of one host, and how fast a panel goes between two.

Every size is solved once to warm up and then timed, with 1,024 rows kept: the last stage writes what is kept, and the
arithmetic phase is from the start of the first stage on any worker to the end of the last. Up to --whole the matrix is
then solved and written whole, once: store to store is that call, and beyond --whole the one with rows. The bits are the
same for any number of workers (SHA-256 of the rows that the last call kept).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, get_task_stream

from benchmarks.harness import Bench
from benchmarks.suites.apsp import arithmetic_seconds
from clusters import start
from pipelines import all_pairs_shortest_paths
from pipelines.stores import Distances, Graph, write_graph
from pipelines.validation.distances import verify_distances
from pipelines.workers.attempts import Attempt, ResidentState, clear, held, keep, workers_of
from pipelines.workers.device_arrays import array_library, synchronize
from pipelines.workers.panels import Card, Panels, Token

CONVENTION = (
    "n^3 relaxations, nothing skipped; seconds of the arithmetic phase, from the first stage on any worker to the end "
    "of the last, which writes 1,024 rows; `whole_seconds` from store to store, `rows_written` in all; of a pull: "
    "until the panel is in the memory of the other worker"
)
KEPT = 1024  # rows that are written where the arithmetic is timed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--sizes", type=int, nargs="+", help="default 16,384 32,768 65,536; on a CPU 2,000")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers; default 1 2")
    parser.add_argument("--whole", type=int, default=32768, help="the largest n that is also written whole")
    parser.add_argument("--dtype", choices=["float32", "int32"], default="float32")
    parser.add_argument(
        "--undirected",
        action="store_true",
        help="also undirected graphs on one worker, by symmetry; with --dtype int32",
    )
    parser.add_argument("--no-pulls", action="store_true", help="leave the pulls out")


def run(bench: Bench, args: argparse.Namespace) -> str:
    sizes = args.sizes or ([16384, 32768, 65536] if bench.gpu else [2000])
    rows = [f"{'n':>8} {'workers':>7} {'arithmetic':>11} {'speed-up':>8} {'store to store':>14}  exchange"]
    with tempfile.TemporaryDirectory() as folder:
        graphs = {n: random_graph(Path(folder) / f"{n}.zarr", n, args.dtype) for n in sizes}
        digests: dict[int, str] = {}
        alone: dict[int, float] = {}  # seconds of one worker
        for workers in args.workers:
            with start(device="gpu" if bench.gpu else "cpu", workers=workers, processes=True) as client:
                if workers > 1 and not args.no_pulls:
                    rows.append(time_pulls(bench, client))
                for n, graph in graphs.items():
                    digest, arithmetic, whole, way = time_size(bench, client, graph, args, Path(folder) / "out.zarr")
                    assert digest == digests.setdefault(n, digest), f"n = {n:,}: {workers} workers give other bits"
                    median = statistics.median(arithmetic)
                    if workers == 1:
                        alone[n] = median
                    speedup = alone[n] / median if n in alone else None
                    bench.record(
                        f"all pairs, n = {n}, {args.dtype}, workers {workers}",
                        arithmetic,
                        relaxations=n**3,
                        verified="certificates of 8 rows; equal bits for all numbers of workers here",
                        sizes={"n": n, "workers": workers, "m": graph.m},
                        whole_seconds=whole,
                        rows_written=n if n <= args.whole else KEPT,
                        speedup=speedup,
                        exchange=way,
                        sha256=digest,
                    )
                    rows.append(
                        f"{n:8,} {workers:7} {median:9.3f} s {'' if speedup is None else f'{speedup:.2f}':>8} "
                        f"{whole:12.2f} s  {way}"
                    )
        if args.undirected:
            with start(device="gpu" if bench.gpu else "cpu", workers=1, processes=True) as client:
                for n in sizes:
                    graph = random_graph(Path(folder) / f"{n}-undirected.zarr", n, "int32", undirected=True)
                    digest, arithmetic, whole, _ = time_size(bench, client, graph, args, Path(folder) / "out.zarr")
                    median = statistics.median(arithmetic)
                    share = median / alone[n] if n in alone else None
                    bench.record(
                        f"all pairs, n = {n}, int32, undirected, workers 1",
                        arithmetic,
                        relaxations=n**3,
                        verified="certificates of 8 rows",
                        sizes={"n": n, "workers": 1, "m": graph.m},
                        whole_seconds=whole,
                        share_of_directed=share,
                        sha256=digest,
                    )
                    rows.append(
                        f"{n:8,}       1 {median:9.3f} s {whole:23.2f} s  undirected: {share or 0:.3f} of directed"
                    )
    return "\n".join(rows)


def random_graph(path: Path, n: int, dtype: str, undirected: bool = False) -> Graph:
    """16 arcs from every vertex, as many on average where each edge is two arcs."""
    if undirected:
        rng = np.random.default_rng(n)
        ends, weights = rng.integers(0, n, (2, 8 * n)), rng.integers(100, 10_000, 8 * n, dtype="int32")
        tails, heads = np.concatenate([ends[0], ends[1]]), np.concatenate([ends[1], ends[0]])
        order = np.argsort(tails, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
        return write_graph(path, indptr, heads[order], np.concatenate([weights, weights])[order], directed=False)
    rng = np.random.default_rng(n)
    weights = rng.random(16 * n, dtype="float32") + np.float32(0.01)
    if dtype == "int32":
        weights = (weights * 10_000).astype("int32")
    return write_graph(path, np.arange(0, 16 * n + 1, 16), rng.integers(0, n, 16 * n), weights)


def time_size(
    bench: Bench, client: Client, graph: Graph, args: argparse.Namespace, out: Path
) -> tuple[str, list[float], float, str]:
    """Digest, seconds of the arithmetic phases and, in the median, from store to store, and the way of the panels."""
    some = np.arange(0, graph.n, max(1, graph.n // KEPT))[:KEPT].tolist()

    def solve(sources: list[int] | None) -> tuple[Distances, float]:
        begin = time.perf_counter()
        result = all_pairs_shortest_paths(
            client,
            graph,
            out,
            method="floyd-warshall",
            sources=sources,
            overwrite=True,
            progress=True,
            dtype=args.dtype,
        )
        return result, time.perf_counter() - begin

    arithmetic, whole = [], []
    with contextlib.redirect_stderr(io.StringIO()) as said:
        solve(some)
        for _ in range(bench.repeats):
            with get_task_stream(client, plot=False) as tasks:
                result, seconds = solve(some)
            arithmetic.append(arithmetic_seconds(tasks.data))
            whole.append(seconds)
        if graph.n <= args.whole:
            result, seconds = solve(None)
            whole = [seconds]
    way = re.search(r"pivot rows (.*)", said.getvalue())
    verify_distances(result, graph, rows=8)
    return digest_of(result), arithmetic, statistics.median(whole), way[1] if way else "none"


def digest_of(result: Distances) -> str:
    """SHA-256 of all rows."""
    digest = hashlib.sha256()
    for first in range(0, result.shape[0], 1024):
        digest.update(np.ascontiguousarray(result[first : first + 1024]))
    return digest.hexdigest()


def time_pulls(bench: Bench, client: Client) -> str:
    """Pulls of one panel after another from the first worker by the second, and nothing else."""
    client.register_plugin(ResidentState())
    attempt = Attempt(client, workers_of(client)[:2], "bench", "pulls")
    lines = []
    for mebibytes in (16, 256, 1024) if bench.gpu else (1, 16):
        count = mebibytes << 20
        card, _ = attempt.results([attempt.submit(_ring, w, count) for w in (0, 1)])
        (obstacle,) = attempt.results([attempt.submit(_meet, 1, card)])
        if obstacle:
            lines.append(f"pulls: none, {obstacle}")
            break
        (tokens,) = attempt.results([attempt.submit(_offer, 0, count)])
        ((seconds, right),) = attempt.results([attempt.submit(_pull, 1, tokens, 20)])
        assert right, "what was pulled is not what was offered"
        bench.record(
            f"pull of {mebibytes} MiB", seconds, bytes_moved=count, verified="its values", sizes={"bytes": count}
        )
        lines.append(f"pull of {mebibytes:5} MiB: {count / statistics.median(seconds) / 1e9:6.1f} GB/s")
        attempt.wait([attempt.submit(_close, w) for w in (1, 0)])
    attempt.cancel()
    return "\n".join(lines)


# Tasks.


def _ring(attempt: str, count: int) -> Card:
    clear()
    keep(attempt, Panels(attempt, array_library(), 2, count))
    return held(attempt).card


def _meet(attempt: str, card: Card) -> str | None:
    return held(attempt).meet([card])[0]


def _offer(attempt: str, count: int) -> list[Token]:
    panels, tokens = held(attempt), []
    for slot in (0, 1):
        panels.open(slot, (count // 4,), "float32")[...] = slot + 1
        tokens.append(panels.publish(slot, slot))
    return tokens


def _pull(attempt: str, tokens: list[Token], repeats: int) -> tuple[list[float], bool]:
    panels, seconds, right = held(attempt), [], True
    for number in range(-2, repeats):
        token: Any = tokens[number % 2]
        begin = time.perf_counter()
        values = panels.take(token)
        synchronize(values)
        if number >= 0:
            seconds.append(time.perf_counter() - begin)
        right &= bool((values == token.slot + 1).all())
    return seconds, right


def _close(attempt: str) -> None:
    held(attempt).close()
    clear()
