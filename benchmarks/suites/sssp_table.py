"""The suite `sssp-table`: Bellman-Ford by sweeps in the four variants published for a GTX Titan.

As in the article, threads store distances in a race, in float64, on undirected R-MAT graphs of 2^14 to 2^24 vertices
with 32 arcs for each vertex. Loops and parallel edges are kept and counted; each record also has the number of arcs
without them. Weights are from (0, 1]. Two of the variants also run with atomicMin in place of the race.

Every column has the same --sources sources, but on graphs of more than 2^22 vertices --large-sources, and on graphs of
2^21 vertices and more the heap searches from 4 sources only. Each record has its number of sources. The race changes
the number of sweeps from launch to launch: a record has the least, mean and most sweeps of all its launches, and the
most by which launches from one source differ.

The sweeps are compared with gpuops.shortest_distances on the same graph, with gpuops.dijkstra by heap on one core of
the host, and with SciPy's Dijkstra on one core for graphs up to --scipy-up-to. The distances of each search must equal
shortest_distances bit for bit; SciPy's may differ by rounding.

edge_sweeps.py explains the variants. The length of segments is the fastest length with at least four segments, found
with a few sources, unless --segment gives a length.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.harness import Bench, draw_roots
from benchmarks.kernels.edge_sweeps import (
    CPU_VARIANTS,
    VARIANTS,
    Edges,
    Variant,
    csr_of,
    distinct_arcs,
    rmat_edges,
    segment_lengths,
    shortest_by_sweeps,
    sorted_by_segments,
)
from gpuops import search_graph, shortest_distances
from gpuops.arrays import on_host
from gpuops.label_setting import solve
from pipelines.generators import RMat

CONVENTION = (
    "arcs per second: all 32 n arcs of the graph, two for each drawn edge, loops and parallel edges counted, whatever "
    "was reached, over the seconds of one search, distances only; mean, minimum and maximum over the sources, of which "
    "each counts with the median of its repeats (repeat_spread: the largest (max - min) / median of one source). Wall "
    "seconds, device synchronized, graph resident and sorted; the article counts the same way. Speed-ups are those of "
    "each source over the heap on one core (once a source, side_by_side sources at a time on cores of their own), by "
    "their mean, minimum and maximum"
)
SCALES = range(14, 25)
CPU_SCALES = range(14, 19)
PUBLISHED = {21: 1.1e9}  # arcs per second, the best the article's text names, on a GTX Titan with both optimizations
PUBLISHED_SPEEDUP = 40  # over Dijkstra on a CPU, about, at 1 to 4 million vertices
SCIPY_SOURCES = 3
TRIED = 4  # sources for choosing the length of segments
HEAP_SOURCES, HEAP_SOURCES_ABOVE, LARGE = 32, 4, 20
HEAP_AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 4))  # sources that are searched at a time, one on each core
LONG = 0.05  # seconds; longer searches are not repeated
SEED = 1

OURS, HEAP, SCIPY = "shortest_distances", "dijkstra by heap, one core", "SciPy, one core"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", type=int, nargs="+", metavar="N", help="default 14 .. 24, without a GPU .. 18")
    parser.add_argument("--sources", type=int, default=32)
    parser.add_argument("--dtypes", choices=["float32", "float64"], nargs="+", default=["float64"])
    parser.add_argument("--scipy-up-to", type=int, default=18, metavar="N", help="largest scale for SciPy; default 18")


def run(bench: Bench, args: argparse.Namespace) -> None:
    variants = VARIANTS if bench.gpu else CPU_VARIANTS
    for scale in args.scales or (SCALES if bench.gpu else CPU_SCALES):
        for dtype in args.dtypes:
            if bench.gpu:
                bench.xp.get_default_memory_pool().free_all_blocks()
            Row(bench, RMat(scale, seed=SEED), dtype, variants, args).measure()


class Row:
    """The results of one graph in one dtype: seconds by method and source, sizes, and the length of segments."""

    def __init__(self, bench: Bench, made: RMat, dtype: str, variants: tuple[Variant, ...], args: argparse.Namespace):
        self.bench, self.made, self.dtype, self.variants, self.args = bench, made, dtype, variants, args
        self.best = [variant for variant in variants if variant.segment_sort and not variant.atomic][-1]
        self.edges = rmat_edges(bench.xp, made).of_dtype(dtype)
        self.csr = csr_of(bench.xp, self.edges)
        self.graph = search_graph(*self.csr, symmetric=True)
        self.arcs, self.distinct_arcs = 2 * len(self.edges.starts), distinct_arcs(self.edges)
        self.megabytes = {"distances": made.n * np.dtype(dtype).itemsize / 1e6, "edges": self.edges.nbytes / 1e6}
        self.sources = draw_roots(self.graph, args.sources, SEED)
        self.seconds: dict[str, list[float]] = {}
        self.spread: dict[str, float] = {}
        self.sweeps: dict[str, dict[int, list[int]]] = {}  # by variant and source, of every launch

    def measure(self) -> None:
        self._choose_segment()
        sorted_edges = sorted_by_segments(self.bench.xp, self.edges, self.segment)
        for variant in self.variants:
            self._time_variant(variant, sorted_edges if variant.segment_sort else self.edges)
        del sorted_edges
        self._time(OURS, self.sources, lambda source: _ours(self.graph, source))
        self._time_heap()
        if self.made.scale <= self.args.scipy_up_to:
            self.seconds[SCIPY] = _scipy(self.graph, self.sources[:SCIPY_SOURCES])
        for title in self.seconds:
            self._record(title)

    def _choose_segment(self) -> None:
        """Choose the length of segments that is fastest for the published variant with all optimizations."""
        lengths = segment_lengths(self.made.n)
        self.tried: dict[int, float] = {}
        for length in lengths if len(lengths) > 1 else ():
            laid_out = sorted_by_segments(self.bench.xp, self.edges, length)
            search = functools.partial(_sweeps, self.bench.xp, laid_out, self.best)
            search(self.sources[0])
            times = [self.bench.seconds(functools.partial(search, source)) for source in self.sources[:TRIED]]
            self.tried[length] = statistics.mean(times)
        self.segment = min(self.tried, key=self.tried.__getitem__) if self.tried else lengths[0]

    def _time_variant(self, variant: Variant, edges: Edges) -> None:
        def search(source: int) -> Any:
            distances, count = _sweeps(self.bench.xp, edges, variant, source)
            counts.setdefault(source, []).append(count)
            return distances

        counts: dict[int, list[int]] = {}
        self._time(variant.name, self.sources, search)
        self.sweeps[variant.name] = counts

    def _time_heap(self) -> None:
        """Time each source once, on one core, some sources at a time. Every result is compared with ours."""
        host = [on_host(x) for x in self.csr]
        sources = self.sources[: HEAP_SOURCES if self.made.scale <= LARGE else HEAP_SOURCES_ABOVE]

        def search(source: int) -> tuple[float, np.ndarray]:
            begin = time.perf_counter()
            distances = solve(*host, int(source), "heap")[0]
            return time.perf_counter() - begin, distances

        if self.made.scale <= LARGE:
            search(sources[0])  # compiles
        self.seconds[HEAP] = []
        with ThreadPoolExecutor(HEAP_AT_ONCE) as pool:
            for begin in range(0, len(sources), HEAP_AT_ONCE):
                together = sources[begin : begin + HEAP_AT_ONCE]
                for source, (seconds, distances) in zip(together, pool.map(search, together), strict=True):
                    same = self.bench.xp.asarray(distances) == _ours(self.graph, source)
                    assert bool(same.all()), f"{HEAP} differs from shortest_distances at source {source}"
                    self.seconds[HEAP].append(seconds)

    def _time(self, title: str, sources: np.ndarray, search: Callable[[int], Any]) -> None:
        """Record the median seconds of each source. Its first result is compared with ours."""
        search(sources[0])  # warms up
        medians, self.spread[title] = [], 0.0
        for source in sources:
            found: list[Any] = []
            times = [self.bench.seconds(lambda source=source, found=found: found.append(search(source)))]  # type: ignore[misc]
            same = self.bench.xp.asarray(found[0]) == _ours(self.graph, source)
            assert bool(same.all()), f"{title} differs from shortest_distances at source {source}"
            while len(times) < self.bench.repeats and times[0] < LONG:
                times.append(self.bench.seconds(functools.partial(search, source)))
            medians.append(statistics.median(times))
            self.spread[title] = max(self.spread[title], (max(times) - min(times)) / medians[-1])
        self.seconds[title] = medians

    def _record(self, title: str) -> None:
        rates, facts = [self.arcs / value for value in self.seconds[title]], {}
        if title in self.sweeps:
            facts["sweeps"] = _summary(self.sweeps[title])
        if any(title == variant.name and variant.segment_sort for variant in self.variants):
            facts |= {"segment": self.segment, "mean_seconds_by_segment": self.tried}
        if title == HEAP:
            facts["side_by_side"] = HEAP_AT_ONCE
        if title not in (HEAP, SCIPY):
            faster = [heap / own for heap, own in zip(self.seconds[HEAP], self.seconds[title], strict=False)]
            facts["speedup_over_heap"] = {
                **{"mean": statistics.mean(faster), "stdev": statistics.pstdev(faster)},
                **{"min": min(faster), "max": max(faster), "sources": len(faster)},
            }
        self.bench.record(
            f"{title}, 2^{self.made.scale} vertices, {self.dtype}",
            self.seconds[title],
            rate_of=(statistics.mean(rates), "arcs"),
            arcs_per_second_min=min(rates),
            arcs_per_second_max=max(rates),
            arcs_per_second_stdev=statistics.pstdev(rates),
            repeat_spread=self.spread.get(title),
            verified="equals shortest_distances" + (" within rounding" if title == SCIPY else ", every source"),
            way=title,
            dtype=self.dtype,
            megabytes=self.megabytes,
            sources=len(rates),
            sizes={"n": self.made.n, "arcs": self.arcs, "distinct_arcs": self.distinct_arcs},
            **facts,
        )


def _summary(sweeps: dict[int, list[int]]) -> dict[str, float]:
    """Return the least, mean and most sweeps of all launches, and the most by which launches from a source differ."""
    every = [count for counts in sweeps.values() for count in counts]
    apart = max(max(counts) - min(counts) for counts in sweeps.values())
    return {"min": min(every), "mean": statistics.mean(every), "max": max(every), "apart": apart}


def _ours(graph: Any, source: int) -> Any:
    return shortest_distances(graph, [source])


def _sweeps(xp: Any, edges: Any, variant: Any, source: int) -> tuple[Any, int]:
    return shortest_by_sweeps(xp, edges, int(source), variant)


def _scipy(graph: Any, sources: np.ndarray) -> list[float]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    arrays = tuple(map(on_host, (graph.weights, graph.indices, graph.indptr)))
    matrix, rank, seconds = csr_array(arrays, shape=(graph.n, graph.n)), on_host(graph.rank), []
    for source in sources:
        begin = time.perf_counter()
        theirs = dijkstra(matrix, indices=rank[source])
        seconds.append(time.perf_counter() - begin)
        # SciPy adds in float64. A sum in float32 is rounded by 2^-24 at each arc, and paths have some dozens of arcs.
        ours = on_host(_ours(graph, source))[on_host(graph.order)]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg="SciPy differs")
    return seconds
