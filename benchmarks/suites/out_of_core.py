"""The suite `out-of-core`: Floyd-Warshall with a budget of memory beside a run in memory, in the same call.

A run is timed from one super-stage (in memory: from one stage) to the next, after some have warmed up, and is stopped
when there are enough; the load and the result are apart. Bits are compared on a smaller matrix that is solved whole.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from distributed import Client

from benchmarks.harness import Bench
from clusters import start
from pipelines import all_pairs_shortest_paths
from pipelines.stores import Graph, write_graph
from pipelines.workers.progress import Progress
from tilepath.cli.quantities import BYTES

CONVENTION = "n^2 relaxations a pivot, nothing skipped; wall seconds between commits or stages of a run that goes on"
ARCS = 16  # of each vertex


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--n", type=int, help="vertices; default 98,304 on a GPU, 12,288 on a CPU")
    parser.add_argument("--budget", type=BYTES, help="default: a quarter of the matrix")
    parser.add_argument("--super-stages", type=int, default=2, help="timed, after one that is not (default 2)")
    parser.add_argument("--stages", type=int, default=4, help="timed in memory, after three that are not (default 4)")
    parser.add_argument("--huge", type=int, default=0, help="vertices of a matrix larger than the GPU; none by default")
    parser.add_argument("--huge-budget", type=BYTES, default=16 << 30, help="of the GPU for that (default 16GiB)")
    parser.add_argument("--copied", action="store_true", help="also time memory that threads copy, not the GPU")
    parser.add_argument("--bits", type=int, default=3000, help="vertices of the matrix that is solved whole")


class Enough(Exception):
    """The run was timed."""


class Timed(Progress):
    """Notes the time of every advance, and ends the run after so many."""

    enough = 0  # 0: the run goes to its end
    runs: list[Timed]
    began: float  # before the workers are measured and set up

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.times: list[float] = []
        self.units: list[int] = []
        Timed.runs.append(self)

    def note(self, text: str) -> None:
        print(f"  {text}", flush=True)

    def start(self, done: int) -> None:
        self.times.append(time.perf_counter())
        super().start(done)

    def advance(self, units: int) -> None:
        self.times.append(time.perf_counter())
        self.units.append(units)
        super().advance(units)
        if len(self.units) == self.enough:
            raise Enough


def timed(call: Callable[[], Any], enough: int, skip: int) -> tuple[list[float], int, float, float]:
    """Seconds and relaxations of each advance but the first `skip`, the seconds of those, and the seconds before."""
    Timed.enough, Timed.runs, Timed.began = enough, [], time.perf_counter()
    with patch("pipelines.apsp.solve.Progress", Timed):
        try:
            call()
        except Enough:
            pass
    (run,) = Timed.runs
    seconds = np.diff(run.times)
    assert len({*run.units[skip:]}) == 1
    return seconds[skip:].tolist(), run.units[skip], float(seconds[:skip].sum()), run.times[0] - Timed.began


def run(bench: Bench, args: argparse.Namespace) -> None:
    gpu = bench.gpu
    n = args.n or (98_304 if gpu else 12_288)
    budget = args.budget or n * n
    with tempfile.TemporaryDirectory() as folder, start(device="gpu" if gpu else "cpu") as client:
        _compare_bits(client, Path(folder), args.bits, gpu)
        graph = random_graph(Path(folder) / "graph", n)
        out = Path(folder) / "out"

        def solve(**options: Any) -> Callable[[], Any]:
            options = {"commit_seconds": None, "sources": range(1024), **options}
            return lambda: all_pairs_shortest_paths(client, graph, out, overwrite=True, **options)

        seconds, work, *_ = timed(solve(method="floyd-warshall"), 3 + args.stages, 3)
        facts: dict[str, Any] = {"verified": f"equal bits at n = {args.bits}", "sizes": {"n": n}, "relaxations": work}
        rate = bench.record(f"in memory, n = {n}", seconds, **facts)
        limit = {"device_memory": budget} if gpu else {"host_memory": budget}
        for registered in (True, False) if args.copied and gpu else (True,):
            with patch("pipelines.apsp.out_of_core.REGISTERED", registered):
                seconds, work, first, before = timed(solve(method="out-of-core", **limit), 1 + args.super_stages, 1)
            way = "" if not gpu else ", registered" if registered else ", copied by threads"
            facts |= {
                "relaxations": work,
                "budget": budget,
                "first_super_stage_seconds": first,
                "seconds_before": before,
            }
            got = bench.record(f"out of core, n = {n}, {budget / 1e9:.1f} GB{way}", seconds, **facts)
            bench.records[-1]["of_the_rate_in_memory"] = got / rate
            print(f"  {got / rate:.1%} of the rate in memory; the first took {first:.1f} s{_pool(client, gpu)}")
        if args.huge:
            graph = random_graph(Path(folder) / "huge", args.huge)
            call = solve(method="out-of-core", device_memory=args.huge_budget)
            seconds, work, first, before = timed(call, 2, 1)
            facts |= {"relaxations": work, "budget": args.huge_budget, "sizes": {"n": args.huge}}
            facts |= {"first_super_stage_seconds": first, "seconds_before": before}
            case = f"out of core, n = {args.huge}, {args.huge_budget / 1e9:.1f} GB, registered"
            got = bench.record(case, seconds, **facts)
            bench.records[-1]["of_the_rate_in_memory"] = got / rate
            print(f"  {got / rate:.1%} of the rate in memory; the first took {first:.1f} s{_pool(client, gpu)}")


def random_graph(path: Path, n: int) -> Graph:
    """Arcs from everywhere to anywhere, float32."""
    rng = np.random.default_rng(n)
    indptr = np.arange(n + 1) * ARCS
    weights = rng.random(ARCS * n, dtype="float32") + np.float32(0.01)
    return write_graph(path, indptr, rng.integers(0, n, ARCS * n), weights)


def _compare_bits(client: Client, folder: Path, n: int, gpu: bool) -> None:
    graph = random_graph(folder / "small", n)
    rows: Any = {"block": 32, "sources": range(0, n, 7)}
    want = all_pairs_shortest_paths(client, graph, folder / "want", method="floyd-warshall", **rows)[:]
    limit, most = "device_memory" if gpu else "host_memory", 16 if gpu else 2
    for share in (2, 4, 8, 16):
        if share <= most:
            options: Any = {limit: n * n * 4 // share, "overwrite": True, "verify": True, **rows}
            got = all_pairs_shortest_paths(client, graph, folder / "got", method="out-of-core", **options)
            assert np.array_equal(got[:], want), f"a budget of 1/{share} changes the bits"


def _pool(client: Client, gpu: bool) -> str:
    """What the GPU's memory pool took, for comparison with what the plan stated."""
    if not gpu:
        return ""
    return f"; the GPU's pool took {max(client.run(_pool_bytes).values()) / 2**30:.2f} GiB"


def _pool_bytes() -> int:
    import cupy

    return int(cupy.get_default_memory_pool().total_bytes())
