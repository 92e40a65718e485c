"""The suite `choice`: all pairs by each method and by `auto`, which should take little longer than the best method.

The networks are Rome, networks made by pipelines.generators (`road`, with the share of missing streets in the name),
and any files given, such as Chicago's. Every run is a call from store to store on a cluster that is running already;
the shortest of `--repeats` runs counts. A method that takes `PATIENCE` times as long as the best earlier method is
stopped, together with the cluster.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from distributed import Client

from benchmarks.harness import Bench, OverTime, named_network, time_limit
from clusters import start
from pipelines.apsp.methods import Job, Obstacle, Request, choose
from pipelines.apsp.solve import METHODS, all_pairs_shortest_paths
from pipelines.formats.graphs import import_graph
from pipelines.generators import Grid, RMat, Road, UniformRandom
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.graph import Graph
from pipelines.validation.bounds import distance_dtype, distances_fit
from pipelines.validation.distances import verify_distances
from pipelines.validation.negative_cycle import potentials_of
from pipelines.workers.capacity import measure_workers

CONVENTION = "wall seconds from store to store, the best of the repeats; ratio: auto beside the best method"
# A method is stopped after PATIENCE times the seconds of the best earlier method, but not before LEAST seconds.
PATIENCE, LEAST = 4.0, 5.0
ROWS = 4  # rows of each result that are certified
NAMED = ("floyd-warshall", "batched", "hierarchy")
NETWORKS: dict[str, Any] = {
    "rmat-12": RMat(12, seed=1),
    "dense-2048": UniformRandom(2048, edge_factor=512, seed=1),
    "road-64-0.95": Road(64, missing=0.95, seed=1),
    "road-64-0.7": Road(64, missing=0.7, seed=1),
    "grid-64": Grid(64, weights="integers", seed=1),
    "road-120-0.95": Road(120, missing=0.95, seed=1),
    "road-120-0.7": Road(120, missing=0.7, seed=1),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=["rome", *NETWORKS], action="append", help="default: all")
    parser.add_argument("--file", action="append", default=[], help="another network to import; repeatable")


def run(bench: Bench, args: argparse.Namespace) -> str:
    logging.getLogger("distributed").setLevel(logging.ERROR)  # stopped runs would log warnings
    names = args.only or ([] if args.file else ["rome", *NETWORKS])
    workers = Workers("gpu" if bench.gpu else "cpu")
    lines = [f"{'network':24} {'auto':15} {'auto s':>8} {'best s':>8} {'ratio':>6}   each method: seconds (estimated)"]
    with tempfile.TemporaryDirectory() as folder, closing(workers):
        for name in names:
            place = Path(folder) / name
            graph = named_network(name, NETWORKS, place)
            lines.append(bench_network(bench, workers, name, graph, Path(folder)))
        for file in args.file:
            graph = import_graph(file, Path(folder) / Path(file).stem)
            lines.append(bench_network(bench, workers, Path(file).stem, graph, Path(folder)))
    return "\n".join(lines)


class Workers:
    """A cluster that is started when its client is first used."""

    def __init__(self, device: str):
        self.device = device
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = start(device=self.device)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def bench_network(bench: Bench, workers: Workers, name: str, graph: Graph, folder: Path) -> str:
    """Record each method and `auto` on a network. Returns a line that compares them."""
    estimates, chosen = weigh(workers, graph)
    facts = {"sizes": {"n": graph.n, "m": graph.m}}
    seconds: dict[str, float] = {}
    order = sorted((m for m in NAMED if m in estimates), key=lambda method: estimates[method])
    for method in [*order, "auto"]:
        out, limit = folder / "out", max(LEAST, PATIENCE * min(seconds.values(), default=1e3))
        runs: list[float] = []
        try:
            for _ in range(bench.repeats):
                runs.append(once(workers, graph, out, method, limit if method != "auto" else 1e4))
        except OverTime:
            print(f"{name}: {method:48} stopped after {limit:.0f} s", flush=True)
            continue
        took = DistancesWriter.begun(out).options["method"]
        certificate = verify_distances(str(out), graph, rows=ROWS)
        seconds[method] = min(runs)
        if method == "auto":
            best = min(value for key, value in seconds.items() if key != "auto")
            facts |= {"chosen": took, "ratio": seconds["auto"] / best, "best_seconds": best}
        bench.record(
            f"{name}: {method}",
            runs,
            verified=f"certificate of {certificate.rows} rows",
            rate_of=(graph.n**2 / min(runs), "distances"),
            estimated_seconds=estimates.get(chosen if method == "auto" else method),
            **facts,
        )
    each = ", ".join(
        f"{m} {seconds[m]:.2f} ({estimates[m]:.2f})" if m in seconds else f"{m} - ({estimates[m]:.2f})" for m in order
    )
    return f"{name:24} {took:15} {seconds['auto']:8.2f} {facts['best_seconds']:8.2f} {facts['ratio']:6.2f}   {each}"


def once(workers: Workers, graph: Graph, out: Path, method: Any, limit: float) -> float:
    """Return the seconds of one run."""
    client = workers.client
    try:
        with time_limit(limit):
            began = time.perf_counter()
            all_pairs_shortest_paths(client, graph, out, method=method, overwrite=True, progress=False)
            return time.perf_counter() - began
    except OverTime:
        workers.close()  # also ends the tasks that are still running
        raise


def weigh(workers: Workers, graph: Graph) -> tuple[dict[str, float], str]:
    """Return the estimated seconds of each method, and the name of the method that `auto` chooses."""
    dtype = distance_dtype(graph, None)
    job = Job(graph, dtype, graph.through(), potentials_of(graph), distances_fit(graph, dtype))
    request = Request(job, None, None, 60.0, measure_workers(workers.client, str(dtype)), None)
    estimates = {}
    for method in METHODS:
        with suppress(Obstacle):  # a method that does not suit the network, such as a hierarchy of a social network
            if method.name in NAMED:
                estimates[method.name] = method.estimate(request).seconds
    return estimates, choose(METHODS, "auto", request)[0].name
