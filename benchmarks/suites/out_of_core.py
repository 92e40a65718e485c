"""The suite `out-of-core`: Floyd-Warshall with a budget of memory, compared with a run in memory in the same call.

A run is timed from one super-stage (in memory: from one stage) to the next, after some super-stages to warm up. It is
stopped when enough super-stages are timed; loading and writing the result are not included. A smaller matrix is solved
to the end, with and without a budget, to compare the bits.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from distributed import Client

from benchmarks.harness import Bench, random_graph
from clusters import start
from pipelines import all_pairs_shortest_paths
from pipelines.apsp.commits import COMMIT_SECONDS
from pipelines.apsp.layout import Windows
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.graph import Graph
from pipelines.stores.row_files import page_aligned
from pipelines.workers.conveyor import Conveyor
from pipelines.workers.progress import Progress
from tilepath.cli.quantities import BYTES

CONVENTION = "n^2 relaxations a pivot, nothing skipped; wall seconds between commits or stages of a run that goes on"
BANDS = 16  # to measure the disk with
SUPER_STAGES, STAGES = 2, 4  # timed: out of core after one that is not, in memory after three that are not
BITS = 3000  # vertices of the matrix that is solved whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, help="vertices; default 98,304 on a GPU, 12,288 on a CPU")
    parser.add_argument("--budget", type=BYTES, help="of the GPU, or of a CPU's host; default: a quarter of the matrix")
    parser.add_argument("--host-memory", type=BYTES, help="of the host of a GPU: less than the matrix, for the store")
    parser.add_argument("--workers", type=int, nargs="*", default=[None], help="one run of the suite for each count")
    parser.add_argument("--huge", type=int, default=0, help="vertices of a matrix larger than the GPU; none by default")
    parser.add_argument("--huge-budget", type=BYTES, default=16 << 30, help="of the GPU, for --huge (default 16GiB)")
    parser.add_argument("--copied", action="store_true", help="also time memory that threads copy, not the GPU")


class Enough(Exception):
    """Enough advances of the run have been timed."""


class Timed(Progress):
    """Records the time of every advance, and ends the run after `enough` advances."""

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
    """Time a call of the pipeline until it has advanced `enough` times.

    Returns the seconds of each advance after the first `skip`, the relaxations of one advance, the seconds of the first
    `skip` advances together, and the seconds before the first advance.
    """
    Timed.enough, Timed.runs, Timed.began = enough, [], time.perf_counter()
    with patch("pipelines.apsp.solve.Progress", Timed):
        with suppress(Enough):
            call()
    run = Timed.runs[-1]  # before it, progress is shown while the workers are measured
    seconds = np.diff(run.times)
    assert len({*run.units[skip:]}) == 1, f"give a larger --n: advances {run.units} are too few, or differ"
    return seconds[skip:].tolist(), run.units[skip], float(seconds[:skip].sum()), run.times[0] - Timed.began


def run(bench: Bench, args: argparse.Namespace) -> None:
    n = args.n or (98_304 if bench.gpu else 12_288)
    with tempfile.TemporaryDirectory() as folder:
        graph = random_graph(Path(folder) / "graph", n)
        huge = random_graph(Path(folder) / "huge", args.huge) if args.huge else None
        for workers in args.workers:
            with start(device="gpu" if bench.gpu else "cpu", workers=workers) as client:
                rows = Rows(bench, args, client, Path(folder))
                rows.compare_bits(BITS)
                rows.measure(graph)
                if huge is not None:
                    rows.out_of_core(huge, "registered", 1, device_memory=args.huge_budget)


class Rows:
    """The cases of the suite on one cluster."""

    def __init__(self, bench: Bench, args: argparse.Namespace, client: Client, folder: Path):
        self.bench, self.args, self.client, self.folder, self.out = bench, args, client, folder, folder / "out"
        self.workers = len(client.nthreads())
        self.facts: dict[str, Any] = {"verified": f"equal bits at n = {BITS}", "workers": self.workers}
        self.rate = 0.0  # relaxations per second in memory

    def measure(self, graph: Graph) -> None:
        """Time a run in memory, then runs out of core by each requested method."""
        args, n = self.args, graph.n
        budget = args.budget or n * n
        seconds, work, *_ = self.solve(graph, 3, STAGES, method="floyd-warshall")
        self.rate = self.bench.record(
            f"in memory, {self._on()}n = {n}", seconds, work=(work, "relaxations"), sizes={"n": n}, **self.facts
        )
        if not self.bench.gpu:
            self.out_of_core(graph, "from the store", SUPER_STAGES, host_memory=budget)
            return
        for way in ("registered", "copied by threads")[: 1 + args.copied]:
            with patch("pipelines.apsp.out_of_core.plan.LOCKING_PASSES", 0 if way == "registered" else n):
                self.out_of_core(graph, way, SUPER_STAGES, device_memory=budget)
        if args.host_memory:
            limits = {"device_memory": budget, "host_memory": args.host_memory}
            self.out_of_core(graph, "from the store", SUPER_STAGES, **limits)

    def out_of_core(self, graph: Graph, way: str, count: int, **limits: int) -> None:
        commits = {"commit_seconds": COMMIT_SECONDS} if way == "from the store" else {}  # from slot to slot
        seconds, work, first, before = self.solve(graph, 1, count, method="out-of-core", **commits, **limits)
        budgets = ", ".join(f"{name.replace('_memory', '')} {size / 1e9:.2f} GB" for name, size in limits.items())
        facts = self.facts | limits | {"first_super_stage_seconds": first, "seconds_before": before}
        case = f"out of core, {self._on()}n = {graph.n}, {budgets}, {way}"
        rate = self.bench.record(case, seconds, work=(work, "relaxations"), sizes={"n": graph.n}, **facts)
        added = {"of_the_rate_in_memory": rate / self.rate}
        said = f"{rate / self.rate:.1%} of the rate in memory"
        if way == "from the store":
            disk = _disk_rates(self.out)
            added |= {f"disk_bytes_per_second_{name}": value for name, value in disk.items()}
            allowed = work / max(work / self.rate, 2 * 4 * graph.n**2 / disk["both"])
            added["of_what_kernel_and_disk_allow"] = rate / allowed
            said += f", {rate / allowed:.1%} of what kernel and disk allow; GB/s of the disk "
            said += ", ".join(f"{name} {value / 1e9:.2f}" for name, value in disk.items())
        self.bench.records[-1] |= added
        self.bench.flush()
        print(f"  {said}; {before:.1f} s before, the first took {first:.1f} s{self._pool()}", flush=True)

    def solve(self, graph: Graph, skip: int, count: int, **options: Any) -> Any:
        """Time `count` super-stages or stages after the first `skip`. Returns the result of `timed`."""
        shutil.rmtree(self.out, ignore_errors=True)
        options = {"commit_seconds": None, "sources": range(1024), "workers": self.workers, **options}
        call = partial(all_pairs_shortest_paths, self.client, graph, self.out, **options)
        return timed(call, skip + count, skip)

    def compare_bits(self, n: int) -> None:
        """Solve a matrix of n vertices in memory and with budgets, and compare."""
        graph, folder = random_graph(self.folder / f"small-{self.workers}", n), self.folder
        rows: Any = {"block": 32, "sources": range(0, n, 7), "overwrite": True}
        want = all_pairs_shortest_paths(self.client, graph, folder / "want", method="floyd-warshall", **rows)[:]
        limit = "device_memory" if self.bench.gpu else "host_memory"
        for share in (2, 4, 8, 16) if self.bench.gpu else (2,):
            options: Any = {limit: n * n * 4 // share, "verify": True, **rows}
            got = all_pairs_shortest_paths(self.client, graph, folder / "got", method="out-of-core", **options)
            assert np.array_equal(got[:], want), f"a budget of 1/{share} changes the bits"

    def _on(self) -> str:
        return f"{self.workers} workers, " if self.workers > 1 else ""

    def _pool(self) -> str:
        """Return a text with the size of the GPU's memory pool, to compare with the memory that the plan states."""
        if not self.bench.gpu:
            return ""
        return f"; the GPU's pool took {max(self.client.run(_pool_bytes).values()) / 2**30:.2f} GiB"


def _disk_rates(out: Path) -> dict[str, float]:
    """Return bytes per second of reading bands of the run's files, of writing them, and of both at a time."""
    writer = DistancesWriter.begun(out)
    source, sink = writer.row_files(writer.slot), writer.row_files(writer.other_slot)
    buffers = [page_aligned((writer.chunk, writer.n), writer.dtype) for _ in range(Windows.BANDS)]
    starts = range(0, writer.n - writer.chunk + 1, writer.chunk)[:BANDS]

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
        "both": rate(lambda: Conveyor(buffers).convey(starts, read, lambda _, band: band, sink.write), 2),
    }


def _pool_bytes() -> int:
    import cupy

    return int(cupy.get_default_memory_pool().total_bytes())
