"""The suite `out-of-core`: Floyd-Warshall with a budget of memory beside a run in memory, in the same call.

A run is timed from one super-stage (in memory: from one stage) to the next, after some have warmed up, and is stopped
when there are enough; the load and the result are apart. Bits are compared on a smaller matrix that is solved whole.
"""

from __future__ import annotations

import argparse
import shutil
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
from pipelines.apsp.windows import Windows
from pipelines.stores import Graph, write_graph
from pipelines.stores.distances import begun_distances
from pipelines.stores.row_files import page_aligned
from pipelines.workers.conveyor import convey
from pipelines.workers.progress import Progress
from tilepath.cli.quantities import BYTES

CONVENTION = "n^2 relaxations a pivot, nothing skipped; wall seconds between commits or stages of a run that goes on"
ARCS = 16  # of each vertex


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--n", type=int, help="vertices; default 98,304 on a GPU, 12,288 on a CPU")
    parser.add_argument("--budget", type=BYTES, help="of the GPU, or of a CPU's host; default: a quarter of the matrix")
    parser.add_argument("--host-memory", type=BYTES, help="of the host of a GPU: less than the matrix, for the store")
    parser.add_argument("--bands", type=int, default=16, help="of the store that the disk is measured by (default 16)")
    parser.add_argument("--turns", type=int, default=1, help="how often to go through the rows (default 1)")
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

        facts: dict[str, Any] = {"verified": f"equal bits at n = {args.bits}"}
        rate = 0.0

        def solve(graph: Graph, skip: int, count: int, **options: Any) -> Any:
            shutil.rmtree(out, ignore_errors=True)
            rows: Any = {"commit_seconds": None, "sources": range(1024)}
            return timed(lambda: all_pairs_shortest_paths(client, graph, out, **rows, **options), skip + count, skip)

        def in_memory() -> None:
            nonlocal rate
            seconds, work, *_ = solve(graph, 3, args.stages, method="floyd-warshall")
            rate = bench.record(f"in memory, n = {n}", seconds, relaxations=work, sizes={"n": n}, **facts)
            bench.save(args.out, CONVENTION)

        def out_of_core(graph: Graph, way: str, count: int, **limits: int) -> None:
            seconds, work, first, before = solve(graph, 1, count, method="out-of-core", **limits)
            budgets = ", ".join(f"{name.replace('_memory', '')} {size / 1e9:.2f} GB" for name, size in limits.items())
            measured: dict[str, Any] = {"first_super_stage_seconds": first, "seconds_before": before}
            case = f"out of core, n = {graph.n}, {budgets}, {way}"
            got = bench.record(case, seconds, relaxations=work, sizes={"n": graph.n}, **limits, **measured, **facts)
            added = {"of_the_rate_in_memory": got / rate}
            said = f"{got / rate:.1%} of the rate in memory"
            if way == "from the store":
                disk = _disk_rates(out, args.bands)
                added |= {f"disk_bytes_per_second_{name}": value for name, value in disk.items()}
                limit = work / max(work / rate, 2 * 4 * graph.n**2 / disk["both"])
                added["of_the_lower_limit"] = got / limit
                said += f", {got / limit:.1%} of what kernel and disk allow; GB/s of the disk "
                said += ", ".join(f"{name} {value / 1e9:.2f}" for name, value in disk.items())
            bench.records[-1] |= added
            bench.save(args.out, CONVENTION)
            print(f"  {said}; {before:.1f} s before, the first took {first:.1f} s{_pool(client, gpu)}", flush=True)

        for _ in range(args.turns):
            in_memory()
            if args.host_memory or not gpu:
                limits = {"host_memory": args.host_memory or budget} | ({"device_memory": budget} if gpu else {})
                out_of_core(graph, "from the store", args.super_stages, **limits)
                continue
            for way in ("registered", "copied by threads")[: 1 + args.copied]:
                with patch("pipelines.apsp.out_of_core.LOCKING_PASSES", 0 if way == "registered" else n):
                    out_of_core(graph, way, args.super_stages, device_memory=budget)
        if args.huge:
            huge = random_graph(Path(folder) / "huge", args.huge)
            out_of_core(huge, "registered", 1, device_memory=args.huge_budget)


def _disk_rates(out: Path, bands: int) -> dict[str, float]:
    """Bytes per second that bands of the run's own files are read and written at, and both at a time as in the run."""
    writer = begun_distances(out)
    source, sink = writer.row_files(committed=True), writer.row_files(committed=False)
    buffers = [page_aligned((writer.chunk, writer.n), writer.dtype) for _ in range(Windows.BANDS)]
    starts = range(0, writer.n - writer.chunk + 1, writer.chunk)[:bands]

    def read(start: int, buffer: np.ndarray) -> np.ndarray:
        source.read(slice(start, start + writer.chunk), buffer)
        return buffer

    def rate(call: Callable[[], Any], ways: int = 1) -> float:
        begin = time.perf_counter()
        call()
        return ways * len(starts) * buffers[0].nbytes / (time.perf_counter() - begin)

    return {
        "read": rate(lambda: [read(start, buffers[0]) for start in starts]),
        "written": rate(lambda: [sink.write(start, buffers[0]) for start in starts]),
        "both": rate(lambda: convey(starts, buffers, read, lambda _, band: band, sink.write), 2),
    }


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
