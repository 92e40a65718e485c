"""The suite `csgraph`: tilepath.csgraph compared with scipy.sparse.csgraph, for all sources by each method and for one.

The graphs are random graphs of n vertices with real or signed weights. Both libraries get the same calls, and their
results are compared before any call is timed. Their timed calls alternate, so that a busy machine slows both. A case is
repeated until its time is up. If the first call of SciPy, which compiles nothing, takes longer, this call counts. A
case is left out if SciPy would take more than `--steps` steps.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph as theirs

from benchmarks.harness import Bench
from tilepath import csgraph as ours

CONVENTION = (
    "Warm, seconds of a call, conversion of arguments included. Verified beforehand: equal to SciPy's up to rounding. "
    "`arcs` is sources times arcs; the records of SciPy are of the same run."
)
SECONDS = 0.5  # for the repeats of a case; one is always made
DEGREE = 5  # mean arcs of a vertex
ALL = {
    "all sources, Dijkstra": ("dijkstra", False, {}),
    "all sources, Johnson": ("johnson", False, {}),
    "all sources, Johnson, signed": ("johnson", True, {}),
    "all sources, Bellman-Ford": ("bellman_ford", False, {}),
    "all sources, auto": ("shortest_path", False, {}),
    "Floyd-Warshall": ("floyd_warshall", False, {}),
    "Floyd-Warshall, predecessors": ("floyd_warshall", False, {"return_predecessors": True}),
}
ONE = {
    "one source, Dijkstra": ("dijkstra", False, {"indices": 0}),
    "one source, undirected": ("dijkstra", False, {"indices": 0, "directed": False}),
    "one source, predecessors": ("dijkstra", False, {"indices": 0, "return_predecessors": True}),
    "one source, Johnson, signed": ("johnson", True, {"indices": 0}),
    "one source, Bellman-Ford, signed": ("bellman_ford", True, {"indices": 0}),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, nargs="+", default=[500, 1500, 5000], help="vertices")
    parser.add_argument("--only", choices=ALL | ONE, action="append", metavar="CASE", help="such as Floyd-Warshall")
    parser.add_argument("--steps", type=float, default=2e11, help="of SciPy; 10^9 steps take about a second")


def run(bench: Bench, args: argparse.Namespace) -> None:
    for n in args.n:
        graphs = {signed: random_graph(n, DEGREE, signed) for signed in (False, True)}
        for case, (name, signed, options) in (ALL | ONE).items():
            if args.only and case not in args.only:
                continue
            if case in ALL and _steps(name, n, graphs[signed].nnz) > args.steps:
                continue
            _compare(bench, f"n = {n:,}, degree {DEGREE}: {case}", name, graphs[signed], options)


def random_graph(n: int, degree: int, signed: bool) -> sp.csr_array:
    """Return a random graph. Weights have 10 bits, so that sums are exact.

    Signed weights are non-negative weights shifted by potentials, so that no cycle is negative.
    """
    rng = np.random.default_rng(n + degree)
    graph = sp.random_array((n, n), density=degree / n, rng=rng, format="csr")
    graph.data = np.ceil(graph.data * 1024) / 1024
    if signed:
        heights = rng.integers(0, 64, n) / 64
        graph.data += np.repeat(heights, np.diff(graph.indptr)) - heights[graph.indices]
    return graph


def _steps(name: str, n: int, m: int) -> float:
    """Return the estimated steps of SciPy for all sources. An operation on a heap counts as ten steps."""
    return {"bellman_ford": n * n * m, "floyd_warshall": n**3}.get(name, 10 * n * (m + n * math.log2(n)))


def _compare(bench: Bench, case: str, name: str, graph: Any, options: dict[str, Any]) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "SciPy": lambda: getattr(theirs, name)(graph, **options),
        "tilepath": lambda: getattr(ours, name)(graph, **options, device="gpu" if bench.gpu else "cpu"),
    }
    found = {"tilepath": calls["tilepath"]()}
    first = bench.seconds(lambda: found.update(SciPy=calls["SciPy"]()))
    if isinstance(found["SciPy"], tuple):
        found = {who: distances for who, (distances, _) in found.items()}
    np.testing.assert_allclose(found["tilepath"], found["SciPy"], rtol=1e-12)
    rows = found["SciPy"].size // graph.shape[0]
    repeats = 20 * bench.repeats  # at most; cases with one source or a small graph reach them
    seconds: dict[str, list[float]] = {who: [] for who in calls}
    if first > SECONDS:
        seconds = {"SciPy": [first], "tilepath": [bench.seconds(calls["tilepath"])]}
    end = time.perf_counter() + SECONDS
    while first <= SECONDS and len(seconds["SciPy"]) < repeats and time.perf_counter() < end:
        for who, call in calls.items():
            seconds[who].append(bench.seconds(call))
    for who, taken in seconds.items():
        sizes = {"n": graph.shape[0], "m": int(graph.nnz), "sources": rows}
        work = rows * graph.nnz, "arcs"
        bench.record(f"{case}: {who}", taken, work=work, verified="equal to SciPy's up to rounding", sizes=sizes)
