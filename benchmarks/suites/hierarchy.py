"""The suite `hierarchy`: road networks by `gpuops.hierarchy`, from arcs in memory to blocks of distances.

The networks are Rome and networks made by pipelines.generators (`road`, with the share of missing streets in the name,
and `grid`). Some rows of each answer are compared with SciPy's dijkstra, which is timed, too. On a GPU, the order and
the structure are computed on the CPU, and distances stay on the GPU. Blocks and rows have other vertices in each run.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import Bench, named_network, scipy_matrix
from gpuops import (
    Hierarchy,
    close_hierarchy,
    distance_block,
    distance_rows,
    hierarchy_order,
    hierarchy_structure,
    one_to_all,
)
from gpuops.arrays import on_host
from gpuops.hierarchy.climbing import climb_from
from gpuops.numbers import outside_infinity
from pipelines.generators import Grid, Road
from pipelines.routes.paths import Walker
from pipelines.stores.graph import Graph

CONVENTION = (
    "wall seconds, device synchronized; vertices per second of what is made once, distances per second of answers"
)
TOGETHER, FEW, OD, ROUTES = 256, 16, 10_000, 100  # FEW: of 24 million vertices on a CPU
CHECKED = 3  # rows of each answer that are compared with SciPy
NETWORKS = {
    "road-340-0.95": Road(340, missing=0.95, weights="integers", seed=1),
    "road-340-0.7": Road(340, missing=0.7, weights="integers", seed=1),
    "grid-250": Grid(250, weights="integers", seed=1),
    "road-1000-0.95": Road(1000, missing=0.95, weights="integers", seed=1),
    "road-1000-0.7": Road(1000, missing=0.7, weights="integers", seed=1),
    "road-4900-0.95": Road(4900, missing=0.95, weights="integers", seed=1),
    "road-4900-0.7": Road(4900, missing=0.7, weights="integers", seed=1),
}
GROUPS = ["rome", *NETWORKS]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=GROUPS, action="append", help="default: all of up to 1,000,000 vertices")
    parser.add_argument("--dtype", choices=["int32", "float32"], default="int32")


def run(bench: Bench, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only or GROUPS[:6]:
            graph = named_network(name, NETWORKS, Path(folder) / f"{name}.zarr")
            _bench_network(bench, name, graph, np.dtype(args.dtype))


def _bench_network(bench: Bench, name: str, graph: Graph, dtype: np.dtype) -> None:
    indptr, indices, weights = graph.rows()
    weights = weights.astype(dtype)
    order = hierarchy_order(indptr, indices)
    structure, cost = hierarchy_structure(indptr, indices, order)
    hierarchy = close_hierarchy(structure, indptr, indices, weights)
    n, matrix = graph.n, scipy_matrix(graph)
    rng = np.random.default_rng(1)
    sources = rng.integers(0, n, TOGETHER if bench.gpu or n < 10**7 else FEW)
    expected = _as_stored(dijkstra(matrix, indices=sources[:CHECKED]), dtype)
    once: dict[str, Any] = {
        "verified": f"{CHECKED} rows equal SciPy's dijkstra",
        "sizes": {"n": n, "m": graph.m, "dtype": str(dtype), **vars(cost)},
        "table_bytes": cost.table_bytes(dtype, hierarchy.into is None),
    }

    def time(case: str, run: Any, count: int, unit: str) -> None:
        bench.time(f"{name}: {case}", run, work=(count, unit), **once)

    time("order", lambda: hierarchy_order(indptr, indices), n, "vertices")
    time("structure", lambda: hierarchy_structure(indptr, indices, order), n, "vertices")
    if bench.gpu:
        indptr, indices, weights = map(bench.xp.asarray, (indptr, indices, weights))
        hierarchy = close_hierarchy(structure, indptr, indices, weights)
        time("tables of all bricks, and one row", lambda: one_to_all(replace(hierarchy), sources[0]), n, "distances")
    time("close", lambda: close_hierarchy(structure, indptr, indices, weights), n, "vertices")
    _bench_rows(hierarchy, sources, expected, time)
    time("SciPy's dijkstra, one source", lambda: dijkstra(matrix, indices=sources[0]), n, "distances")
    if not bench.gpu:
        _bench_routes(graph, hierarchy, time)
    if n >= OD:
        _bench_block(bench, hierarchy, matrix, time)
    if bench.gpu and n**2 * dtype.itemsize < 0.8 * bench.xp.cuda.Device().mem_info[1]:
        _bench_all_pairs(bench, hierarchy, sources, expected, time)


def _bench_rows(hierarchy: Hierarchy, sources: np.ndarray, expected: np.ndarray, time: Any) -> None:
    rows = distance_rows(hierarchy, sources)
    assert np.array_equal(on_host(rows[:CHECKED]), expected), "rows are wrong"
    assert np.array_equal(on_host(one_to_all(hierarchy, sources[0])), expected[0]), "a row alone is wrong"
    single = cycle(sources.tolist())
    time("one source alone", lambda: one_to_all(hierarchy, next(single)), rows.shape[1], "distances")
    time(f"{len(sources)} together", lambda: distance_rows(hierarchy, sources, out=rows), rows.size, "distances")


def _bench_routes(graph: Graph, hierarchy: Hierarchy, time: Any) -> None:
    """Time routes between random vertices, one after the other."""
    walker, rng = Walker(graph, hierarchy.dtype), np.random.default_rng(4)

    def route(source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
        distances = distance_block(hierarchy, [source], [target])[0]
        return distances, walker.walk_from(climb_from(hierarchy, source), distances, np.array([target]))[1]

    for pair in rng.integers(0, graph.n, (CHECKED, 2)).tolist():
        distances, vertices = route(*pair)
        assert vertices[[0, -1]].tolist() == pair, "a route joins other vertices"
        assert np.isclose(walker.weights(vertices).sum(dtype=float), distances[0]), "a route has another length"
    time(
        f"{ROUTES} routes",
        lambda: [route(*pair) for pair in rng.integers(0, graph.n, (ROUTES, 2)).tolist()],
        ROUTES,
        "routes",
    )


def _bench_block(bench: Bench, hierarchy: Hierarchy, matrix: Any, time: Any) -> None:
    chosen = np.random.default_rng(2).integers(0, matrix.shape[0], (bench.repeats + 1, 2, OD))
    out = distance_block(hierarchy, *chosen[0])
    expected = _as_stored(dijkstra(matrix, indices=chosen[0][0][:CHECKED])[:, chosen[0][1]], hierarchy.dtype)
    assert np.array_equal(on_host(out[:CHECKED]), expected), "a block is wrong"
    others = cycle(chosen[1:])
    time(
        f"OD {OD:,} x {OD:,}",
        lambda: distance_block(hierarchy, *next(others), out=out),
        out.size,
        "distances",
    )


def _bench_all_pairs(bench: Bench, hierarchy: Hierarchy, sources: np.ndarray, expected: np.ndarray, time: Any) -> None:
    """Time all distances into memory."""
    n = len(hierarchy.structure.order)
    bench.xp.get_default_memory_pool().free_all_blocks()
    everything, matrix = np.arange(n), bench.xp.empty((n, n), hierarchy.dtype)
    distance_rows(hierarchy, everything, out=matrix)
    assert np.array_equal(on_host(matrix[bench.xp.asarray(sources[:CHECKED])]), expected), "the matrix is wrong"
    time("all distances into memory", lambda: distance_rows(hierarchy, everything, out=matrix), n * n, "distances")


def _as_stored(found: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.where(np.isinf(found), outside_infinity(dtype), found).astype(dtype)
