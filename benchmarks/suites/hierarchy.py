"""The suite `hierarchy`: road networks by `gpuops.hierarchy` on a CPU, from arcs in memory to blocks of distances.

The networks are Rome and networks made by pipelines.generators (`road`, with the share of missing streets in the name,
and `grid`). Some rows of each answer are compared with SciPy's dijkstra, which is timed, too.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import ROOT, Bench
from gpuops import (
    Hierarchy,
    close_hierarchy,
    distance_block,
    distance_rows,
    hierarchy_order,
    hierarchy_structure,
    one_to_all,
)
from gpuops.numbers import outside_infinity
from pipelines.formats.graphs import import_graph
from pipelines.generators import Grid, Road, generate
from pipelines.stores import Graph

CONVENTION = "wall seconds; vertices per second of what is made once, distances per second of answers"
TOGETHER, OD = 256, 10_000
CHECKED = 3  # rows of each answer that are compared with SciPy
NETWORKS = {
    "road-340-0.95": Road(340, missing=0.95, weights="integers", seed=1),
    "road-340-0.7": Road(340, missing=0.7, weights="integers", seed=1),
    "grid-250": Grid(250, weights="integers", seed=1),
    "road-1000-0.95": Road(1000, missing=0.95, weights="integers", seed=1),
    "road-1000-0.7": Road(1000, missing=0.7, weights="integers", seed=1),
}
GROUPS = ["rome", *NETWORKS]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=GROUPS, action="append", help="default: all of up to 115,600 vertices")
    parser.add_argument("--thorough", action="store_true", help="compute better elimination orders, which takes longer")
    parser.set_defaults(device="cpu")


def run(bench: Bench, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only or GROUPS[:4]:
            path = Path(folder) / f"{name}.zarr"
            if name == "rome":
                graph = import_graph(ROOT / "scripts" / "data" / "rome99.gr", path)
            else:
                graph = generate(NETWORKS[name], path, progress=False)
            _bench_network(bench, name, graph, args.thorough)


def _bench_network(bench: Bench, name: str, graph: Graph, thorough: bool) -> None:
    indptr, indices, weights = graph.rows()
    weights = weights.astype(np.int32)
    order = hierarchy_order(indptr, indices, thorough=thorough)
    structure, cost = hierarchy_structure(indptr, indices, order)
    hierarchy = close_hierarchy(structure, indptr, indices, weights)
    n, matrix = graph.n, _lightest(indptr, indices, weights)
    rng = np.random.default_rng(1)
    sources = rng.integers(0, n, TOGETHER)
    expected = _as_stored(dijkstra(matrix, indices=sources[:CHECKED]))
    once: dict[str, Any] = {
        "verified": f"{CHECKED} rows equal SciPy's dijkstra",
        "sizes": {"n": n, "m": graph.m, **vars(cost)},
        "table_bytes": cost.table_bytes(np.int32, hierarchy.into is None),
        "rate_of": None,
    }
    rows = distance_rows(hierarchy, sources)
    assert np.array_equal(rows[:CHECKED], expected), "rows are wrong"
    assert np.array_equal(one_to_all(hierarchy, sources[0]), expected[0]), "a row alone is wrong"

    def time(case: str, run: Any, count: int, unit: str) -> None:
        seconds = [bench.seconds(run) for _ in range(bench.repeats)]
        once["rate_of"] = (count / float(np.median(seconds)), unit)
        bench.record(f"{name}: {case}", seconds, **once)

    time("order", lambda: hierarchy_order(indptr, indices, thorough=thorough), n, "vertices")
    time("structure", lambda: hierarchy_structure(indptr, indices, order), n, "vertices")
    time("close", lambda: close_hierarchy(structure, indptr, indices, weights), n, "vertices")
    time("one source alone", lambda: one_to_all(hierarchy, sources[0]), n, "distances")
    time(f"{TOGETHER} together", lambda: distance_rows(hierarchy, sources, out=rows), rows.size, "distances")
    time("SciPy's dijkstra, one source", lambda: dijkstra(matrix, indices=sources[0]), n, "distances")
    if n >= OD:
        _bench_block(hierarchy, matrix, time)


def _bench_block(hierarchy: Hierarchy, matrix: csr_array, time: Any) -> None:
    origins, destinations = (np.random.default_rng(seed).permutation(matrix.shape[0])[:OD] for seed in (2, 3))
    out = distance_block(hierarchy, origins, destinations)
    expected = _as_stored(dijkstra(matrix, indices=origins[:CHECKED])[:, destinations])
    assert np.array_equal(out[:CHECKED], expected), "a block is wrong"
    time(
        f"OD {OD:,} x {OD:,}",
        lambda: distance_block(hierarchy, origins, destinations, out=out),
        out.size,
        "distances",
    )


def _lightest(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> csr_array:
    """Return a matrix for SciPy with the lightest of parallel arcs, because SciPy would add their weights."""
    n = len(indptr) - 1
    tails = np.repeat(np.arange(n), np.diff(indptr))
    order = np.lexsort((weights, indices, tails))
    tails, heads = tails[order], indices[order]
    first = np.flatnonzero(np.diff(tails * n + heads, prepend=-1))
    return csr_array((weights[order][first].astype(float), (tails[first], heads[first])), shape=(n, n))


def _as_stored(found: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(found), outside_infinity(np.int32), found).astype(np.int32)
