"""The suite `cores`: speed-ups of single operations on a CPU with more cores.

Each number of threads is measured in a separate process, with NUMBA_NUM_THREADS set. All processes read the same
inputs, warm up, verify and repeat. Results must have the same bits with every number of threads. Speed-ups compare with
one thread in the same run. SciPy's `dijkstra`, which has one thread, is timed too.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, Bench, draw_roots
from gpuops import (
    SearchGraph,
    batched_shortest_distances,
    floyd_warshall,
    search_graph,
    shortest_distances,
    shortest_path_tree,
)
from pipelines.formats.graphs import import_graph
from pipelines.formats.graphs.edge_list import read_edge_list
from pipelines.generators import Grid, RMat, csr
from pipelines.generators.grids import Road

CONVENTION = (
    "wall seconds on the threads named, each number in a process of its own, after a warm-up; results compared by "
    "digest between the numbers of threads"
)
SEED = 1
BATCH = 32
LINES = 2_000_000  # lines of the edge list, about 35 MB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, nargs="+", help="default: powers of two up to all cores")
    parser.add_argument("--scale", type=int, default=20, help="of R-MAT (default 20)")
    parser.add_argument("--side", type=int, default=1000, help="of the grid (default 1000)")
    parser.add_argument("--road", type=int, default=340, help="side of the road network (default 340)")
    parser.add_argument("--n", type=int, default=4096, help="of Floyd-Warshall (default 4096)")
    parser.add_argument("--cases", default="", metavar="TEXT", help="only cases whose names contain the text")


def run(bench: Bench, args: argparse.Namespace) -> str:
    cores = len(os.sched_getaffinity(0))
    counts = args.threads or [1 << i for i in range(cores.bit_length()) if 1 << i <= cores]
    taken: dict[str, dict[int, list[float]]] = {}
    digests: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), args.scale, args.side, args.road, args.n)
        for threads in counts:
            for found in measured(threads, folder, args.cases, bench.repeats):
                case, seconds = found["case"], found["seconds"]
                assert digests.setdefault(case, found["digest"]) == found["digest"], f"{case}: {threads} threads differ"
                facts = {"verified": "same bits with every number of threads", "threads": threads}
                bench.record(f"{case}, {threads} threads", seconds, work=(found["work"], found["unit"]), **facts)
                taken.setdefault(case, {})[threads] = seconds
    return table(taken, counts)


def write_inputs(folder: Path, scale: int, side: int, road: int, n: int) -> None:
    """Write the arrays of each graph, the matrix of Floyd-Warshall and the edge list."""
    for name, graph in (
        (f"R-MAT {scale}", RMat(scale, seed=SEED)),
        (f"grid {side} x {side}", Grid(side, weights="integers", seed=SEED)),
        (f"road {road} x {road}", Road(road, seed=SEED)),
    ):
        np.savez(folder / f"{name}.npz", *csr(graph))
    weights = np.random.default_rng(SEED).random((n, n), np.float32)
    np.fill_diagonal(weights, 0)
    np.save(folder / "matrix.npy", weights)
    ends = np.random.default_rng(SEED).integers(0, LINES // 4, (LINES, 3))
    (folder / "edges.txt").write_text("".join(f"{tail} {head} {weight}\n" for tail, head, weight in ends.tolist()))


def table(taken: dict[str, dict[int, list[float]]], counts: list[int]) -> str:
    """Return a table of medians in milliseconds, by case and number of threads, with the gain of last over first."""
    lines = [f"{'milliseconds':44}" + "".join(f"{count:>9}" for count in counts) + "     gain"]
    for case, found in taken.items():
        medians = [statistics.median(found[count]) * 1e3 for count in counts]
        lines.append(f"{case:44}" + "".join(f"{x:9.1f}" for x in medians) + f"{medians[0] / medians[-1]:8.1f}x")
    return "\n".join(lines)


def measured(threads: int, folder: str, chosen: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Run the chosen cases in a process with `threads` threads, and yield each case when it is done."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.suites.cores", folder, chosen, str(repeats)],
        cwd=ROOT,
        env=os.environ | {"NUMBA_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        yield from map(json.loads, process.stdout)
    if process.wait():
        raise RuntimeError(f"the process with {threads} threads ended with code {process.returncode}; see above")


# --- In the measuring process -----------------------------------------------------------------------------------------


def cases(folder: Path) -> Iterator[tuple[str, float, str, Callable[[], Any]]]:
    """Yield each case: its name, the amount and the unit of its work, and the function that is timed."""
    for path in sorted(folder.glob("*.npz")):
        name, host = path.stem, tuple(np.load(path).values())
        if name.startswith("R-MAT"):
            yield f"layout, {name}", len(host[1]), "arcs", functools.partial(search_graph, *host, symmetric=True)
            yield f"layout, transpose too, {name}", len(host[1]), "arcs", functools.partial(search_graph, *host)
        yield from searches(name, search_graph(*host, symmetric=True), small=name.startswith("road"))
    weights = np.load(folder / "matrix.npy")
    n, path, store = len(weights), folder / "edges.txt", folder / "edges.zarr"
    yield f"floyd_warshall, n = {n}", n**3, "relaxations", lambda: floyd_warshall(weights, nonnegative=True)
    size = path.stat().st_size
    yield "parsing of an edge list", size, "bytes", lambda: parsed(path)
    yield "edge list to store", size, "bytes", lambda: import_graph(path, store, overwrite=True).digest


def searches(name: str, graph: SearchGraph, small: bool) -> Iterator[tuple[str, float, str, Callable[[], Any]]]:
    roots = draw_roots(graph, BATCH, SEED)
    source = roots[:1]
    yield f"one search, {name}", 1, "searches", lambda: shortest_distances(graph, source)
    distances = shortest_distances(graph, source)
    yield f"predecessors, {name}", 1, "searches", lambda: shortest_path_tree(graph, distances, source)
    yield f"{BATCH} sources, {name}", BATCH, "searches", lambda: batched_shortest_distances(graph, roots)
    if small:
        yield f"SciPy dijkstra, {name}", 1, "searches", by_scipy(graph, int(graph.rank[source[0]]))


def by_scipy(graph: SearchGraph, source: int) -> Callable[[], Any]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    shape = (graph.n, graph.n)
    matrix = csr_array((graph.weights.astype(np.float64), graph.indices, graph.indptr), shape=shape)
    return lambda: dijkstra(matrix, indices=source)


def parsed(path: Path) -> int:
    with read_edge_list(path) as arcs:
        return sum(len(tails) for tails, _, _ in arcs.pieces)


def digest(value: Any) -> str:
    hashed = hashlib.blake2b(digest_size=8)
    if isinstance(value, SearchGraph):
        value = (value.indptr, value.indices, value.weights, value.in_indices, value.order)
    for part in value if isinstance(value, tuple) else (value,):
        hashed.update(part.tobytes() if isinstance(part, np.ndarray) else str(part).encode())
    return hashed.hexdigest()


def main(folder: Path, chosen: str, repeats: int) -> None:
    for case, work, unit, step in cases(folder):
        if chosen not in case:
            continue
        hashed = digest(step())
        seconds = []
        for _ in range(repeats):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        facts = {"case": case, "work": work, "unit": unit, "digest": hashed, "seconds": seconds}
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
