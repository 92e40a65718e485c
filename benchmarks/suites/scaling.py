"""The suite `scaling`: all pairs on one worker and on several workers of one host, and the constants of the model.

Every size is timed with 1,024 rows kept (--kept), after a run of at most 16,384 vertices to warm up. The arithmetic
phase lasts from the start of the first stage on any worker to the end of the last stage. Up to --whole, the matrix is
then solved again and written whole, once, and store to store is the time of this call. Beyond --whole, store to store
is the time of the call that keeps rows. The bits must be the same for any number of workers (SHA-256 of the rows that
the last call kept). This holds for undirected graphs too, where one worker does half of the work by symmetry and
several workers do all of it.

With two workers or more, separate tasks measure the constants of `pipelines.apsp.in_memory.plan`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import re
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, get_task_stream

from benchmarks.harness import Bench, computing_seconds, random_graph
from benchmarks.scaling_constants import time_constants
from benchmarks.suites.apsp import STAGES
from clusters import start
from pipelines import all_pairs_shortest_paths, positions
from pipelines.stores.distances import Distances
from pipelines.stores.graph import Graph
from pipelines.stores.graph_writer import write_graph
from pipelines.validation.distances import verify_distances

CONVENTION = (
    "n^3 relaxations, nothing skipped; seconds of the arithmetic phase, from the first stage on any worker to the end "
    "of the last; `whole_seconds` from store to store, `rows_written` in all; of a pull: until the panel is in the "
    "memory of the other worker; of a hop or a gap: from the end of a task to the start of the next"
)
WARM = 16_384  # most vertices of the run that warms up
ENOUGH = 10.0  # seconds of runs after which runs are not repeated


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", help="default 16,384 32,768 65,536; on a CPU 2,000")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers; default 1 2")
    parser.add_argument("--kept", type=int, default=1024, help="rows that are written where the arithmetic is timed")
    parser.add_argument("--whole", type=int, default=32768, help="the largest n that is also written whole")
    parser.add_argument("--dtype", choices=["float32", "int32"], default="float32")
    parser.add_argument("--undirected", action="store_true", help="also undirected graphs; with --dtype int32")
    parser.add_argument(
        "--coordination",
        choices=["scheduler", "signals"],
        nargs="+",
        default=[None],
        help="who coordinates several workers; by default as a run chooses",
    )
    parser.add_argument("--no-constants", action="store_true", help="leave the pulls and the other constants out")


def run(bench: Bench, args: argparse.Namespace) -> str:
    if args.undirected and args.dtype != "int32":
        raise SystemExit("only integers take half of the work: give --dtype int32 with --undirected")
    sizes = args.sizes or ([16384, 32768, 65536] if bench.gpu else [2000])
    kinds = ["directed", "undirected"] if args.undirected else ["directed"]
    lines = [
        f"{'n':>8}  {'graph':10} {'workers':>7} {'arithmetic':>11} {'speed-up':>8} {'store to store':>14}  exchange"
    ]
    digests: dict[tuple[int, str], str] = {}
    alone: dict[tuple[int, str], float] = {}  # seconds on one worker
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.zarr"
        graphs = {
            (n, kind): undirected_graph(path, n) if kind == "undirected" else random_graph(path, n, args.dtype)
            for n in {*sizes, *(min(n, WARM) for n in sizes)}
            for kind in kinds
            for path in [Path(folder) / f"{n}-{kind}.zarr"]
        }
        for workers in args.workers:
            with start(device="gpu" if bench.gpu else "cpu", workers=workers, processes=True) as client:
                if workers > 1 and not args.no_constants:
                    args.no_constants = True
                    lines.insert(0, time_constants(bench, client))
                ways = args.coordination if workers > 1 else [None]
                for n, kind, coordination in itertools.product(sizes, kinds, ways):
                    case, warm = (n, kind), graphs[min(n, WARM), kind]
                    timed = time_size(bench, client, graphs[case], warm, args, out, coordination)
                    digest, arithmetic, whole, way, longest = timed
                    assert digest == digests.setdefault(case, digest), f"{case}: {workers} workers give other bits"
                    median = statistics.median(arithmetic)
                    if workers == 1:
                        alone[case] = median
                    facts = {"speedup": alone[case] / median if case in alone else None, "exchange": way}
                    facts |= {"coordination": coordination, "longest_stage_seconds": longest}
                    if kind == "undirected":
                        full = alone.get((n, "directed"))
                        facts = {"share_of_directed": median / full if full and workers == 1 else None}
                    bench.record(
                        f"all pairs, n = {n}, {args.dtype}, {'undirected, ' * (kind == 'undirected')}workers {workers}"
                        + (f", by {coordination}" if coordination else ""),
                        arithmetic,
                        work=(n**3, "relaxations"),
                        verified="certificates of 8 rows; equal bits for all numbers of workers here",
                        sizes={"n": n, "workers": workers, "m": graphs[case].m},
                        whole_seconds=whole,
                        rows_written=n if n <= args.whole else args.kept,
                        sha256=digest,
                        **facts,
                    )
                    (ratio, *_) = facts.values()
                    lines.append(
                        f"{n:8,}  {kind:10} {workers:7} {median:9.3f} s {'' if ratio is None else f'{ratio:.3f}':>8} "
                        f"{whole:12.2f} s  {way}"
                    )
    if args.undirected:
        lines.append("(of undirected graphs on one worker: the share of the time of directed ones, no speed-up)")
    return "\n".join(lines)


def undirected_graph(path: Path, n: int) -> Graph:
    """Write a random graph with 16 arcs out of a vertex on average: each edge is two arcs."""
    rng = np.random.default_rng(n)
    ends, weights = rng.integers(0, n, (2, 8 * n)), rng.integers(100, 10_000, 8 * n, dtype="int32")
    tails, heads = np.concatenate([ends[0], ends[1]]), np.concatenate([ends[1], ends[0]])
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return write_graph(path, indptr, heads[order], np.concatenate([weights, weights])[order], directed=False)


def time_size(
    bench: Bench,
    client: Client,
    graph: Graph,
    warm: Graph,
    args: argparse.Namespace,
    out: Path,
    coordination: str | None = None,
) -> tuple[str, list[float], float, str, float | None]:
    """Time one size on the workers of `client`.

    Returns the digest, the seconds of the arithmetic phases, the median seconds from store to store, how panels are
    exchanged, and, if Dask's scheduler coordinates, the longest time from one independent block to the next.
    """
    workers = len(client.nthreads())

    def solve(graph: Graph, kept: int) -> tuple[Distances, float]:
        some = np.arange(0, graph.n, max(1, graph.n // kept))[:kept]
        begin = time.perf_counter()
        result = all_pairs_shortest_paths(
            client,
            graph,
            out,
            method="floyd-warshall",
            workers=workers,
            sources=positions(some) if kept < graph.n else None,
            overwrite=True,
            progress=True,
            dtype=args.dtype,
            coordination=coordination,
            commit_seconds=None,  # commits would disturb the timing, and need large disks for large matrices
        )
        return result, time.perf_counter() - begin

    arithmetic: list[float] = []
    whole: list[float] = []
    stages: list[float] = []
    with contextlib.redirect_stderr(io.StringIO()) as said:
        solve(warm, args.kept)
        while len(whole) < bench.repeats and sum(whole) < ENOUGH:
            with get_task_stream(client, plot=False) as tasks:
                result, seconds = solve(graph, args.kept)
            arithmetic.append(computing_seconds(tasks.data, *STAGES))
            begun = sorted(
                task["startstops"][0]["start"] for task in tasks.data if str(task["key"][0]).startswith("independent-")
            )
            stages += [after - before for before, after in itertools.pairwise(begun)]
            whole.append(seconds)
        if graph.n <= args.whole:
            result, seconds = solve(graph, graph.n)
            whole = [seconds]
    way = re.search(r"pivot rows (.*)", said.getvalue())
    verify_distances(result, graph, rows=8)
    longest = max(stages, default=None)
    return digest_of(result), arithmetic, statistics.median(whole), way[1] if way else "none", longest


def digest_of(result: Distances) -> str:
    """Return the SHA-256 of all rows."""
    digest = hashlib.sha256()
    for first in range(0, result.shape[0], 1024):
        digest.update(np.ascontiguousarray(result[first : first + 1024]))
    return digest.hexdigest()
