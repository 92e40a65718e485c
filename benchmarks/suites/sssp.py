"""The suite `sssp`: shortest paths from single sources, from many at once, and with negative weights.

The graphs are made by pipelines.generators. A case is a graph and its roots. The layout of the graph (`search_graph`)
is timed apart from the searches. Roots are drawn among the vertices that the vertex with the most arcs reaches. Each
root is searched and timed alone: first distances, then predecessors. R-MAT graphs are undirected, with 16 edges for
each vertex and weights from (0, 1]. On a CPU, SciPy and `tilepath.csgraph` search the same graph, too. Their calls
alternate, and contain the conversion of the matrix.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Bench, draw_roots
from gpuops import SearchGraph, batched_shortest_distances, search_graph, shortest_distances, shortest_path_tree
from gpuops.arrays import on_host
from gpuops.certificates import verify_paths
from pipelines.generators import Grid, RMat, SyntheticGraph, csr

CONVENTION = (
    "edges per second as Graph500 counts them: edges of the input that were reached, loops and parallel ones included, "
    "each once, over the seconds of distances and predecessors; harmonic mean over the roots. Wall seconds, device "
    "synchronized, graph resident"
)
BATCH = 32
LAYOUTS = 3  # repeats of a layout
CERTIFIED = 2  # roots of a case whose whole rows are certified on the host
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=["rmat", "grid", "together", "negative"], action="append")
    parser.add_argument("--scales", type=int, nargs="+", help="of R-MAT; default 20 22 24, without a GPU 16 20")
    parser.add_argument("--sides", type=int, nargs="+", help="of grids; default 2048 4096, without a GPU 600")
    parser.add_argument("--roots", type=int, help="searches a case; default 64, without a GPU 8")


def run(bench: Bench, args: argparse.Namespace) -> None:
    groups = args.only or ["rmat", "grid", "together", "negative"]
    scales = args.scales or ([20, 22, 24] if bench.gpu else [16, 20])
    roots = args.roots or (64 if bench.gpu else 8)
    if "rmat" in groups:
        for scale in scales:
            case = Case(bench, RMat(scale, seed=SEED))
            case.search(roots)
            if not bench.gpu:
                case.scipy(min(roots, 3))
    if "grid" in groups:
        for side in args.sides or ([2048, 4096] if bench.gpu else [600]):
            case = Case(bench, Grid(side, weights="integers", seed=SEED))
            case.search(min(roots, 8))
            if not bench.gpu:
                case.scipy(3)
    if "together" in groups:
        Case(bench, RMat(22 if bench.gpu else 16, seed=SEED)).together()
    if "negative" in groups:
        Case(bench, RMat(22 if bench.gpu else 16, shift=1.0, seed=SEED)).search(min(roots, 16))


class Case:
    """A graph on the device and in host memory, and roots to search from."""

    def __init__(self, bench: Bench, made: SyntheticGraph):
        self.bench, self.made = bench, made
        self.host = csr(made)
        indptr, indices, weights = (bench.xp.asarray(x) for x in self.host)

        def lay_out() -> SearchGraph:
            return search_graph(indptr, indices, weights, symmetric=made.symmetric)

        self.graph = lay_out()  # compiles
        self.layout_seconds = statistics.median(bench.seconds(lay_out) for _ in range(LAYOUTS))
        degrees = np.diff(self.host[0])
        # An edge is in two rows, a loop twice in one row: the sum of degrees over reached vertices counts both twice.
        self.degrees = bench.xp.asarray(degrees)
        self.arcs_per_edge = 1 if made.directed else 2
        self.starts = draw_roots(self.graph, 64, SEED)

    def search(self, roots: int) -> None:
        def one(source: int) -> tuple[Any, Any]:
            distances = shortest_distances(self.graph, [source])
            return distances, shortest_path_tree(self.graph, distances, [source])

        for source in self.starts[:CERTIFIED]:
            distances, predecessors = (on_host(x) for x in one(source))
            verify_paths(*self.host, distances, predecessors, [source])
        seconds, edges = [], []
        for source in self.starts[:roots]:
            found: list[Any] = []
            seconds.append(self.bench.seconds(lambda source=source, found=found: found.append(one(source))))  # type: ignore[misc]
            reached = found[0][0] < self._unreachable()
            edges.append(int(self.degrees[reached].sum()) // self.arcs_per_edge)
        rates = [e / s for e, s in zip(edges, seconds, strict=True) if e]
        self.bench.record(
            f"{self.made}",
            seconds,
            verified=f"certificate of {CERTIFIED} roots",
            rate_of=(statistics.harmonic_mean(rates), "edges"),
            sizes={"n": self.made.n, "edges": self.made.ids, "arcs": self.graph.m},
            layout_seconds=self.layout_seconds,
        )

    def together(self) -> None:
        """Time 32 sources in one call and one at a time, distances only."""
        sources = self.starts[:BATCH]
        rows = batched_shortest_distances(self.graph, sources)
        alone = []
        for row, source in zip(rows, sources, strict=True):
            found: list[Any] = []
            alone.append(
                self.bench.seconds(
                    lambda source=source, found=found: found.append(shortest_distances(self.graph, [source]))  # type: ignore[misc]
                )
            )
            assert bool((found[0] == row).all()), "a search among others differs from the same alone"
        facts = {
            "verified": "each row equals the search alone",
            "sizes": {"n": self.made.n, "arcs": self.graph.m},
        }
        self.bench.record(f"{BATCH} sources, one by one, {self.made}", [sum(alone)], work=(BATCH, "searches"), **facts)
        seconds = [self.bench.seconds(lambda: batched_shortest_distances(self.graph, sources)) for _ in range(5)]
        self.bench.record(f"{BATCH} sources together, {self.made}", seconds, work=(BATCH, "searches"), **facts)

    def scipy(self, roots: int) -> None:
        """Time `dijkstra` of SciPy, on one core, and of tilepath.csgraph, on the graph without loops and parallel arcs.

        Both get a matrix in float64, which neither has to convert to another type.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        import tilepath.csgraph as ours

        graph = self.graph
        indptr, indices, weights = (on_host(x) for x in (graph.indptr, graph.indices, graph.weights))
        matrix = csr_array((weights.astype(np.float64), indices, indptr), shape=(graph.n, graph.n))
        internal = on_host(graph.rank)[self.starts[:roots]]
        calls: dict[str, Callable[..., Any]] = {"SciPy": dijkstra, "csgraph": ours.dijkstra}
        calls["csgraph"](matrix, indices=internal[0], return_predecessors=True)  # compiles
        seconds: dict[str, list[float]] = {who: [] for who in calls}
        for source, vertex in zip(self.starts[:roots], internal, strict=True):
            known = on_host(shortest_distances(graph, [source]))[on_host(graph.order)]
            for who, solve in calls.items():
                begin = time.perf_counter()
                found, _ = solve(matrix, indices=vertex, return_predecessors=True)
                seconds[who].append(time.perf_counter() - begin)
                both = np.isfinite(found) & (known < self._unreachable())
                assert np.allclose(found[both], known[both], rtol=1e-4, atol=1e-4), f"dijkstra of {who} differs"
        for who, taken in seconds.items():
            self.bench.record(
                f"{who} dijkstra, {self.made}",
                taken,
                verified="equals the search of the laid out graph within rounding",
                work=(1, "searches"),
                peer=who,
            )

    def _unreachable(self) -> Any:
        return np.inf if self.graph.dtype.kind == "f" else np.iinfo(self.graph.dtype).max
