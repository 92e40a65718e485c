"""The code that all suites share: timing, records, the device, a check of closed matrices.

A suite warms a case up, verifies its result, then repeats it. Each case becomes one JSON record, with the median, the
minimum and the maximum of its seconds. Seconds are wall time, until the device is done. Rates count n^3 relaxations
(m n p for a product), even if a method skips some. A result is recorded only if it was verified in the same run.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuops import SearchGraph, edge_expansion, shortest_distances
from gpuops.arrays import on_host
from gpuops.numbers import infinity, outside_infinity
from pipelines import generate, import_graph
from pipelines.stores.graph import Graph
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.progress import duration, with_prefix

ROOT = Path(__file__).resolve().parent.parent
KERNELS, RESULTS = ROOT / "benchmarks" / "kernels", ROOT / "benchmarks" / "results"


class Bench:
    """Times cases, prints a line for each and keeps the records.

    `limits` has the highest rates that this run measured on this device, in relaxations per second, by dtype ("float32
    signed" if signed weights have a different limit).
    """

    def __init__(self, suite: str, xp: Any, repeats: int):
        self.suite, self.xp, self.repeats = suite, xp, repeats
        self.gpu = xp is not np
        self.device = device_name(xp)
        self.limits: dict[str, float] = {}
        self.records: list[dict[str, Any]] = []
        self._kept: tuple[Path, str] | None = None

    def time(self, case: str, run: Callable[[], Any], **facts: Any) -> float:
        """Time `run` and record it. The caller has verified its result, so it is warm."""
        return self.record(case, [self.seconds(run) for _ in range(self.repeats)], **facts)

    def seconds(self, run: Callable[[], Any]) -> float:
        """Return the wall seconds of one call of `run`, until the device is done."""
        self.wait()
        begin = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - begin

    def record(
        self,
        case: str,
        seconds: list[float],
        *,
        verified: str,
        work: tuple[float, str] = (1, "calls"),
        rate_of: tuple[float, str] | None = None,
        limit: str | None = None,
        **facts: Any,
    ) -> float:
        """Keep and print a record of timed calls. Returns the rate per second.

        The rate is the `work` of a call, with its unit, over the median; `rate_of` gives another rate, with its unit.
        """
        median = statistics.median(seconds)
        rate, unit = rate_of or (work[0] / median, work[1])
        record = {
            "case": case,
            "seconds": {**spread(seconds), "repeats": len(seconds)},
            f"{unit}_per_second": rate,
            "verified": verified,
            **facts,
        }
        notes = f"  (published {facts['published_seconds']} s)" if facts.get("published_seconds") else ""
        if limit in self.limits:
            record["fraction_of_limit"] = rate / self.limits[limit]
            notes = f"  {record['fraction_of_limit']:.1%} of the limit{notes}"
        if self.gpu:
            record["sm_clock_mhz"] = _sm_clock()
        self.records.append(record)
        self.flush()
        print(
            f"{case:58} {_seconds(median)}  [{_seconds(min(seconds))} .. {_seconds(max(seconds))}]"
            f"  {with_prefix(rate)} {unit}/s{notes}",
            flush=True,
        )
        return rate

    def wait(self) -> None:
        if self.gpu:
            self.xp.cuda.get_current_stream().synchronize()

    def keep(self, path: Path | None, convention: str) -> Path:
        """Write the records again after every case, so that a killed run leaves its results. Returns the path."""
        path = path or RESULTS / f"{self.suite}-{slug(self.device)}.json"
        self._kept = path, convention
        return path

    def flush(self) -> None:
        if self._kept is not None:
            self.write(*self._kept)

    def write(self, path: Path, convention: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**_facts(self.xp), "convention": convention, "records": self.records}, indent=1)
        beside = path.with_name(f"{path.name}.new")
        beside.write_text(text + "\n")
        beside.replace(path)


def draw_roots(graph: SearchGraph, count: int, seed: int) -> np.ndarray:
    """Draw sources among the vertices that the vertex with the most arcs reaches; other searches may end at once."""
    most = int((graph.indptr[1:] - graph.indptr[:-1]).argmax())
    distances = shortest_distances(graph, [int(graph.order[most])])
    reached = distances < outside_infinity(graph.dtype)
    return np.random.default_rng(seed).choice(np.flatnonzero(on_host(reached)), count)


def named_network(name: str, made: Mapping[str, Any], path: Path) -> Graph:
    """Write the streets of Rome for the name "rome", else the graph of a generator in `made`."""
    if name == "rome":
        return import_graph(ROOT / "scripts" / "data" / "rome99.gr", path)
    return generate(made[name], path, progress=False)


def random_graph(path: Path, n: int, dtype: str = "float32") -> Graph:
    """Write a graph with 16 random arcs out of every vertex, of lengths from 0.01 to 1.01, or 100 to 10,100."""
    rng = np.random.default_rng(n)
    weights = rng.random(16 * n, dtype="float32") + np.float32(0.01)
    if dtype == "int32":
        weights = (weights * 10_000).astype("int32")
    return write_graph(path, np.arange(0, 16 * n + 1, 16), rng.integers(0, n, 16 * n), weights)


def scipy_matrix(graph: Graph) -> Any:
    """Return a matrix for SciPy, float64, with the lightest of parallel arcs, because SciPy would add their weights."""
    from scipy.sparse import csr_array

    indptr, indices, weights = graph.rows()
    tails = edge_expansion(indptr, indices)
    order = np.lexsort((weights, indices, tails))
    tails, heads = tails[order], indices[order]
    first = np.flatnonzero((np.diff(tails, prepend=-1) != 0) | (np.diff(heads, prepend=-1) != 0))
    return csr_array((weights[order][first].astype(float), (tails[first], heads[first])), shape=(graph.n, graph.n))


def computing_seconds(tasks: Iterable[dict[str, Any]], *names: str) -> float:
    """Return the seconds from the start of the first task of Dask with a name in its key to the end of the last one."""
    periods = [
        period
        for task in tasks
        if any(name in str(task["key"]) for name in names)
        for period in task["startstops"]
        if period["action"] == "compute"
    ]
    return float(max(period["stop"] for period in periods) - min(period["start"] for period in periods))


def taken(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a call, its wall seconds, and its CPU seconds in all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median, the minimum and the maximum."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def check_closed(xp: Any, weights: Any, matrix: Any, *, exact: bool = False) -> None:
    """Assert that some rows are shortest distances: d[s, s] = 0, else d[s, v] = min over u != v of d[s, u] + w[u, v].

    If all weights off the diagonal are positive, only the shortest distances satisfy these equations. Sums of floats
    may differ by rounding unless `exact`.
    """
    n = len(matrix)
    for s in (0, 1, n // 7, n // 3, n // 2, n - 3, n - 2, n - 1):
        row = matrix[s]
        best = xp.full_like(row, infinity(row.dtype))
        for first in range(0, n, 2048):
            part = slice(first, first + 2048)
            sums = row[part, None] + weights[part]
            u = xp.arange(len(sums))
            sums[u, first + u] = infinity(row.dtype)
            best = xp.minimum(best, sums.min(axis=0))
        best[s] = 0
        if row.dtype.kind == "f" and not exact:
            # A shortest path in a random matrix has about 50 arcs at most; each addition rounds by half an ulp.
            assert bool((abs(best - row) <= 50 * xp.finfo(row.dtype).eps * abs(row)).all()), "not closed"
        else:
            assert bool((best == row).all()), "not closed"


def speedups(records: list[dict[str, Any]], same: Callable[[dict[str, Any]], Any]) -> list[tuple[str, str]]:
    """Add the speed-ups over one worker to each record, of the seconds and of the whole call. Returns both as text.

    Records are compared if `same` is equal for them. A record gets no speed-ups if one worker was not timed.
    """
    ones = {same(record): record for record in records if record["sizes"]["workers"] == 1}
    found = []
    for record in records:
        texts = " " * 8, " " * 8
        if one := ones.get(same(record)):
            record["speedup"] = one["seconds"]["median"] / record["seconds"]["median"]
            record["whole_speedup"] = one["whole_seconds"] / record["whole_seconds"]
            texts = f"{record['speedup']:8.2f}", f"{record['whole_speedup']:8.2f}"
        found.append(texts)
    return found


def device_name(xp: Any) -> str:
    if xp is not np:
        return xp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def _sm_clock() -> int:
    import pynvml

    pynvml.nvmlInit()
    return int(pynvml.nvmlDeviceGetClockInfo(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.NVML_CLOCK_SM))


def slug(device: str) -> str:
    short = device.split(",")[0].replace("NVIDIA ", "").replace("(R)", "").split("@")[0].strip()
    return "-".join("".join(c if c.isalnum() else " " for c in short.lower()).split())


def _facts(xp: Any) -> dict[str, Any]:
    names = ("numpy", "numba", "scipy", "networkx", "zarr", "dask", "distributed", "cupy-cuda13x", "cupy-cuda12x")
    versions = {"python": platform.python_version()}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "device": device_name(xp),
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "load": round(os.getloadavg()[1], 1),  # mean number of running or waiting processes, last 5 minutes
        "nice": os.nice(0),  # -20 is the highest priority over these processes, 0 the usual one
        "versions": versions,
    }


@functools.cache
def commit() -> str:
    """Return the measured commit, with "-dirty" if files other than results and pages have changed since.

    A copy of the tree without its history has the commit in the file .commit.
    """
    noted = ROOT / ".commit"
    if noted.exists():
        return noted.read_text().strip()
    try:
        text = ["git", "describe", "--always", "--abbrev=12", "--exclude=*"]
        found = subprocess.run(text, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        text = ["git", "diff", "--quiet", "HEAD", "--", ".", ":!benchmarks/results", ":!docs"]
        return found + "-dirty" * (subprocess.run(text, cwd=ROOT).returncode != 0)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _seconds(value: float) -> str:
    return f"{value * 1e3:9.3f} ms" if value < 1 else f"{duration(value):>12}" if value >= 100 else f"{value:9.3f} s "
