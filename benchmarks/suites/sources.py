"""The suite `sources`: shortest distances from many sources by the pipeline, on one worker and on several of one host.

The graph is an undirected R-MAT graph with 16 edges for each vertex. Every worker holds the whole graph and takes some
sources at a time, so that workers exchange no data. Searches are timed on the workers; the time of a run is the time of
the worker that searches longest. Some rows are compared between all numbers of workers.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from benchmarks.harness import Bench, speedups
from clusters import start
from pipelines import generate, positions, single_source_shortest_paths
from pipelines.generators import RMat
from pipelines.stores.graph import Graph, open_graph

CONVENTION = (
    "seconds of the searches on the worker that searches longest; `whole_seconds` from store to store: reading and "
    "laying out the graph, searching, and beside the searches compressing and writing rows"
)
SEED = 1
COMPARED = 5  # rows that are compared, with the last row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=int, help="of R-MAT; default 24, on a CPU 12")
    parser.add_argument("--sources", type=int, nargs="+", default=[256], help="how many; default 256")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers; default 1 2")
    parser.add_argument("--store", type=Path, help="a graph store to use, which is made if it is not there")
    parser.add_argument("--only-store", action="store_true", help="make the store of --store, and end")


def run(bench: Bench, args: argparse.Namespace) -> str:
    scale = args.scale or (24 if bench.gpu else 12)
    lines = [f"{'sources':>8} {'workers':>7} {'searches':>11} {'speed-up':>8} {'store to store':>14} {'speed-up':>8}"]
    digests: dict[int, str] = {}
    with tempfile.TemporaryDirectory(dir=args.store and args.store.parent) as folder:
        store = args.store or Path(folder) / "graph.zarr"
        graph = open_graph(store) if store.exists() else generate(RMat(scale, seed=SEED), store)
        if args.only_store:
            return ""
        small = generate(RMat(min(scale, 14), seed=SEED), Path(folder) / "small.zarr")
        roots = np.random.default_rng(SEED).permutation(np.flatnonzero(np.diff(graph.indptr()) > 0))
        for workers in args.workers:
            with start(device="gpu" if bench.gpu else "cpu", workers=workers, processes=True) as client:
                search(client, small, np.arange(64 * workers), Path(folder) / "warm.zarr")
                client.run(_time_searches)
                for count in args.sources:
                    out = Path(folder) / f"{count}-{workers}.zarr"
                    whole, digest = search(client, graph, roots[:count], out)
                    shutil.rmtree(out)
                    assert digest == digests.setdefault(count, digest), f"{workers} workers give other rows"
                    seconds = max(client.run(_searched).values())
                    bench.record(
                        f"R-MAT {scale}, {count} sources, workers {workers}",
                        [seconds],
                        work=(graph.m / 2 * count, "edges"),
                        verified=f"{COMPARED} rows, equal for all numbers of workers here",
                        sizes={"n": graph.n, "m": graph.m, "sources": count, "workers": workers},
                        whole_seconds=whole,
                    )
    compared = speedups(bench.records, lambda record: record["sizes"]["sources"])
    for record, (searches, whole) in zip(bench.records, compared, strict=True):
        sizes, seconds = record["sizes"], record["seconds"]["median"]
        lines.append(
            f"{sizes['sources']:8,} {sizes['workers']:7} {seconds:9.3f} s {searches} "
            f"{record['whole_seconds']:12.2f} s {whole}"
        )
    bench.flush()
    return "\n".join(lines)


def search(client: Client, graph: Graph, sources: np.ndarray, out: Path) -> tuple[float, str]:
    """Return the seconds from store to store, and a digest of some rows."""
    begin = time.perf_counter()
    paths = single_source_shortest_paths(
        client, graph, out, positions(sources), predecessors=False, spread="sources", overwrite=True, progress=False
    )
    seconds = time.perf_counter() - begin
    digest = hashlib.sha256()
    for row in np.linspace(0, len(sources) - 1, COMPARED, dtype=int):
        digest.update(np.ascontiguousarray(paths.distances(int(row))))
    return seconds, digest.hexdigest()


# Functions that run on the workers.

_seconds: list[float] = []


def _time_searches() -> None:
    from pipelines.sssp import searches
    from pipelines.workers.device_arrays import synchronize

    rows = searches._Searcher.rows

    def timed(self: Any, sources: Any) -> Any:
        begin = time.perf_counter()
        found = rows(self, sources)
        synchronize(found[0])
        _seconds.append(time.perf_counter() - begin)
        return found

    searches._Searcher.rows = timed  # type: ignore[method-assign]


def _searched() -> float:
    """Return the seconds of all searches since the last call of this function."""
    total = sum(_seconds)
    _seconds.clear()
    return total
