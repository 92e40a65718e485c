"""The suite `sssp-table`: Bellman-Ford by sweeps in four variants, as published for a GTX Titan.

Undirected R-MAT of average degree 32, weights from (0, 1], 2^14 vertices and more; 32 sources, the same for every
column. Beside the sweeps stand gpuops' shortest_distances on the same graph, and SciPy's Dijkstra on one core of the
host where that is feasible. Distances of each search are compared with shortest_distances, bit for bit; SciPy's within
rounding. edge_sweeps.py explains the variants. A segment holds 2^20 distances by default, so that up to 2^20 vertices
the order by segments is the plain one.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.harness import Bench, draw_roots
from benchmarks.kernels.edge_sweeps import (
    CPU_VARIANTS,
    VARIANTS,
    csr_of,
    rmat_edges,
    shortest_by_sweeps,
    sorted_by_segments,
)
from gpuops import search_graph, shortest_distances
from pipelines.generators import RMat

CONVENTION = (
    "arcs per second: all arcs of the graph, two for each edge, loops and parallel edges not counted, whatever was "
    "reached, over the seconds of one search, distances only; mean, minimum and maximum over the sources. Wall "
    "seconds, device synchronized, graph resident and sorted; the article counts the same way"
)
SCALES = range(14, 25)
CPU_SCALES = range(14, 19)
PUBLISHED = {21: 1.1e9}  # arcs per second, the best the article's text names, on a GTX Titan with both optimizations
SCIPY_SOURCES = 3
SEED = 1

OURS, SCIPY = "shortest_distances", "SciPy, one core"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--scales", type=int, nargs="+", metavar="N", help="default 14 .. 24, without a GPU .. 18")
    parser.add_argument("--sources", type=int, default=32)
    parser.add_argument("--segment", type=int, metavar="P", help="distances in a segment; default 2^20, on a CPU 2^17")
    parser.add_argument("--scipy-up-to", type=int, default=18, metavar="N", help="largest scale for SciPy; default 18")


def run(bench: Bench, args: argparse.Namespace) -> str:
    variants = VARIANTS if bench.gpu else CPU_VARIANTS
    titles = [*(variant.name for variant in variants), OURS, SCIPY]
    rates: dict[int, dict[str, list[float]]] = {}
    for scale in args.scales or (SCALES if bench.gpu else CPU_SCALES):
        if bench.gpu:
            bench.xp.get_default_memory_pool().free_all_blocks()
        rates[scale] = _time_all(bench, RMat(scale, seed=SEED), variants, args)
    return _table(bench, titles, rates)


def _time_all(bench: Bench, made: RMat, variants: Any, args: argparse.Namespace) -> dict[str, list[float]]:
    xp = bench.xp
    edges = rmat_edges(xp, made)
    layouts = {False: edges, True: sorted_by_segments(xp, edges, args.segment)}
    rows = csr_of(xp, edges)
    graph = search_graph(*rows, symmetric=True)
    arcs = 2 * len(edges.starts)
    sources = draw_roots(graph, args.sources, SEED)

    ways = {
        variant.name: functools.partial(_sweeps, xp, layouts[variant.segment_sort], variant) for variant in variants
    }
    seconds: dict[str, list[float]] = {title: [] for title in (*ways, OURS)}
    sweeps: dict[str, list[int]] = {title: [] for title in ways}
    for index, source in enumerate([sources[0], *sources]):  # the first one warms up
        found: list[Any] = []
        taken = {OURS: bench.seconds(lambda source=source, found=found: found.append(_ours(graph, source)))}  # type: ignore[misc]
        for title, way in ways.items():
            taken[title] = bench.seconds(lambda way=way, source=source, found=found: found.append(way(source)))  # type: ignore[misc]
            distances, count = found[-1]
            assert bool((distances == found[0]).all()), f"{title} differs from shortest_distances at source {source}"
            if index:
                sweeps[title].append(count)
        if index:
            for title, value in taken.items():
                seconds[title].append(value)
    if made.scale <= args.scipy_up_to:
        seconds[SCIPY] = _scipy(graph, sources[:SCIPY_SOURCES])
    return {title: _record(bench, made, arcs, title, values, sweeps.get(title)) for title, values in seconds.items()}


def _ours(graph: Any, source: int) -> Any:
    return shortest_distances(graph, [source])


def _sweeps(xp: Any, edges: Any, variant: Any, source: int) -> tuple[Any, int]:
    return shortest_by_sweeps(xp, edges, int(source), variant.read_only)


def _scipy(graph: Any, sources: np.ndarray) -> list[float]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    def on_host(x: Any) -> np.ndarray:
        return x if isinstance(x, np.ndarray) else x.get()

    arrays = tuple(map(on_host, (graph.weights, graph.indices, graph.indptr)))
    matrix, rank, seconds = csr_array(arrays, shape=(graph.n, graph.n)), on_host(graph.rank), []
    for source in sources:
        begin = time.perf_counter()
        theirs = dijkstra(matrix, indices=rank[source])
        seconds.append(time.perf_counter() - begin)
        # SciPy adds up in float64; a sum of float32 rounds by 2^-24 an arc, and paths have some dozens of arcs.
        ours = on_host(_ours(graph, source))[on_host(graph.order)]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg="SciPy differs")
    return seconds


def _record(
    bench: Bench, made: RMat, arcs: int, title: str, seconds: list[float], sweeps: list[int] | None
) -> list[float]:
    rates = [arcs / value for value in seconds]
    facts: dict[str, Any] = {} if sweeps is None else {"mean_sweeps": statistics.mean(sweeps)}
    if title == SCIPY:
        facts["verified"] = "equals shortest_distances within rounding"
    elif title == OURS:
        facts["verified"] = "equals the sweeps"
    else:
        facts["verified"] = "equals shortest_distances, every source"
    bench.record(
        f"{title}, 2^{made.scale} vertices",
        seconds,
        rate_of=(statistics.mean(rates), "arcs"),
        arcs_per_second_min=min(rates),
        arcs_per_second_max=max(rates),
        way=title,
        sizes={"n": made.n, "arcs": arcs, "edges_drawn": made.ids},
        **facts,
    )
    return rates


def _table(bench: Bench, titles: list[str], rates: dict[int, dict[str, list[float]]]) -> str:
    rows = [
        f"Million arcs per second on {bench.device}:\n"
        f"mean (minimum .. maximum) over the sources. Published for a GTX Titan with both optimizations: about "
        f"{max(PUBLISHED.values()) / 1e6:,.0f},\nup to 2^{max(PUBLISHED)} vertices.\n",
        f"| vertices | {' | '.join(titles)} |",
        "|---:" * (len(titles) + 1) + "|",
    ]
    for scale, columns in rates.items():
        cells = [
            f"{statistics.mean(values) / 1e6:,.0f} ({min(values) / 1e6:,.0f} .. {max(values) / 1e6:,.0f})"
            if values
            else ""
            for values in (columns.get(title) for title in titles)
        ]
        rows.append(f"| 2^{scale} | {' | '.join(cells)} |")
    return "\n".join(rows)
