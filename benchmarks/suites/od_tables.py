"""The suite `od-tables`: a reduced table of origins and destinations on a road network, on several workers of one host.

Each origin gets the sum of a column over the destinations within a distance, from a hierarchy store. The blocks are
timed by Dask's record of the tasks, from the first block to the last. Some origins are compared with SciPy's Dijkstra.
The tables must have the same bits for all numbers of workers. On a CPU, the tables of an analyst come first
(`benchmarks.suites.analyst_tables`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from distributed import Client, get_task_stream
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import Bench, computing_seconds, scipy_matrix, speedups
from benchmarks.suites import analyst_tables
from clusters import start
from pipelines import build_hierarchy, generate
from pipelines.generators import Road
from pipelines.od_tables.write import write_od_table
from pipelines.places.points import Points
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore

CONVENTION = (
    "with workers: seconds from the first block of the table to the last, on all workers; `whole_seconds` of the whole "
    "call: the tables of the store are loaded, blocks computed, and the table is written. Other tables: seconds of the "
    "call in Python, places snapped in each call; a graph or hierarchy is open, if the name does not end with `path`"
)
SEED = 1
WITHIN = 400.0
COMPARED = 3  # origins that are compared with SciPy
ROUNDING = 1e-4  # relative; a destination this near the limit may be counted or not


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--side", type=int, help="of the road network; default 1,000, on a CPU 100")
    parser.add_argument("--points", type=int, help="origins, and destinations; default 100,000, on a CPU 1,000")
    parser.add_argument("--only", choices=["analyst", "workers"], help="the tables of an analyst, or those of workers")
    parser.add_argument("--peers", metavar="PYTHON", help="the Python of an environment with pandana and OSMnx")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers; default 1 2")


def run(bench: Bench, args: argparse.Namespace) -> str:
    usual = (1000, 100_000) if bench.gpu else (100, 1000)
    side, count = (given or default for given, default in zip((args.side, args.points), usual, strict=True))
    device = "gpu" if bench.gpu else "cpu"
    if args.only != "workers" and not bench.gpu:
        with tempfile.TemporaryDirectory() as folder:
            analyst_tables.measure(bench, Path(folder), args.peers)
    if args.only == "analyst":
        return ""
    with tempfile.TemporaryDirectory() as folder:
        graph = generate(Road(side, missing=0.95, seed=SEED), Path(folder) / "road.zarr", progress=False)
        with start(device=device, workers=1) as client:
            store = build_hierarchy(client, graph, Path(folder) / "hierarchy.zarr", progress=False)
        rng = np.random.default_rng(SEED)
        vertices, jobs = rng.integers(0, graph.n, (2, count)), rng.integers(1, 100, count).astype(float)
        destinations = points(vertices[1])._replace(columns={"jobs": jobs})
        tables = Tables(bench, store, graph, destinations, Path(folder) / "table.parquet")
        for workers in args.workers:
            with start(device=device, workers=workers, processes=True) as client:
                tables.measure(client, f"{count} x {count}", points(vertices[0]))
    return summary(bench)


def points(vertices: np.ndarray) -> Points:
    return Points(pa.array(map(str, vertices.tolist()), pa.large_string()), vertices, None, {})


@dataclass
class Tables:
    """The table of one network on several numbers of workers. `found` keeps the first, to compare the others."""

    bench: Bench
    store: HierarchyStore
    graph: Graph
    destinations: Points
    out: Path
    found: np.ndarray | None = None

    def measure(self, client: Client, name: str, origins: Points) -> None:
        """Time a table on the workers of `client`, after one run to warm up."""
        bench, blocks, whole = self.bench, [], []
        options: Any = {"reduce": "sum:jobs", "within": WITHIN, "client": client, "overwrite": True, "progress": False}
        for _ in range(1 + bench.repeats):
            begin = time.perf_counter()
            with get_task_stream(client, plot=False) as stream:
                write_od_table(self.store, origins, self.destinations, self.out, **options)
            whole.append(time.perf_counter() - begin)
            blocks.append(computing_seconds(stream.data, "od-reduce-"))
        sums = pyarrow.parquet.read_table(self.out)["sum_jobs"].to_numpy()
        if self.found is None:
            compare(self.graph, origins, self.destinations, sums)
            self.found = sums
        assert np.array_equal(sums, self.found), "another number of workers gives other sums"
        workers, rows, columns = len(client.nthreads()), len(origins.vertices), len(self.destinations.vertices)
        sizes = {"n": self.graph.n, "origins": rows, "destinations": columns}
        bench.record(
            f"{name}, workers {workers}",
            blocks[1:],
            work=(rows * columns, "pairs"),
            verified=f"{COMPARED} origins by SciPy's Dijkstra, bits equal for all numbers of workers here",
            sizes=sizes | {"workers": workers},
            whole_seconds=float(np.median(whole[1:])),
        )


def compare(graph: Graph, origins: Points, destinations: Points, sums: np.ndarray) -> None:
    """Compare some sums with the sums over distances that SciPy finds."""
    some = np.linspace(0, len(origins.vertices) - 1, COMPARED, dtype=int)
    rows = dijkstra(scipy_matrix(graph), indices=origins.vertices[some])
    for at, row in zip(some, rows, strict=True):
        to = row[destinations.vertices]
        low, high = (
            float(destinations.columns["jobs"][to <= WITHIN * (1 + sign * ROUNDING)].sum()) for sign in (-1, 1)
        )
        assert low <= sums[at] <= high, f"origin {at}: {sums[at]} is not between {low} and {high}"


def summary(bench: Bench) -> str:
    lines = [f"{'table':>22} {'workers':>7} {'blocks':>10} {'speed-up':>8} {'whole call':>11} {'speed-up':>8}"]
    records = [record for record in bench.records if "workers" in record["sizes"]]
    compared = speedups(records, lambda record: record["case"].split(",")[0])
    for record, (blocks, whole) in zip(records, compared, strict=True):
        name, seconds = record["case"].split(",")[0], record["seconds"]["median"]
        lines.append(
            f"{name:>22} {record['sizes']['workers']:7} {seconds:8.3f} s {blocks} "
            f"{record['whole_seconds']:9.2f} s {whole}"
        )
    bench.flush()
    return "\n".join(lines)
