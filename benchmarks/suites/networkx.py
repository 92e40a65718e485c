"""The suite `networkx`: functions of NetworkX, computed by NetworkX and by the backend, conversion included.

The graphs are undirected random graphs of average degree 8 with lengths from (0, 1]. Every result is compared with the
result of NetworkX in the same run. Each call converts the graph again. NetworkX runs once for each function, because it
takes minutes. Floyd-Warshall is compared at 200 nodes, because NetworkX takes n^3 steps of Python.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.harness import Bench
from tilepath.networkx import backend

CONVENTION = (
    "nodes per second; wall seconds of one call, with the conversion of the graph and the dictionaries of the result. "
    "The backend is called as NetworkX calls it; generators are taken to their end, results kept"
)
SEED = 1
WEIGHT = {"weight": "weight"}
DISTANCE = {"distance": "weight"}

# Function, keywords, and number of nodes; None: the number that the option gives.
CASES: list[tuple[str, dict[str, str], int | None]] = [
    ("all_pairs_dijkstra_path_length", WEIGHT, None),
    ("all_pairs_shortest_path_length", {}, None),
    ("closeness_centrality", DISTANCE, None),
    ("closeness_centrality", {}, None),
    ("diameter", WEIGHT, None),
    ("diameter", {}, None),
    ("harmonic_centrality", DISTANCE, None),
    ("johnson", WEIGHT, 1000),
    ("floyd_warshall", WEIGHT, 200),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--cases", nargs="+", metavar="FUNCTION", help="default: all")
    parser.add_argument(
        "--thresholds", action="store_true", help="print only how much faster the backend is on small graphs"
    )
    parser.set_defaults(device="cpu")


def run(bench: Bench, args: argparse.Namespace) -> str:
    chosen = [case for case in CASES if not args.cases or case[0] in args.cases]
    if args.thresholds:
        return "\n".join(_speedups_by_size(bench, name, options) for name, options, _ in chosen)
    rows = ["| function | nodes | NetworkX, s | backend, s | faster |", "|---|---:|---:|---:|---:|"]
    rows += [_compared(bench, name, options, random_graph(nodes or args.nodes)) for name, options, nodes in chosen]
    return "\n".join(rows)


def _compared(bench: Bench, name: str, options: dict[str, str], graph: Any) -> str:
    ask_networkx, ask_backend = _questions(name, options, graph)
    ask_backend()  # warm
    theirs, slow = _taken(bench, ask_networkx)
    ours, _ = _taken(bench, ask_backend)
    _check(name, graph, ours, theirs)
    del ours, theirs
    fast = [bench.seconds(ask_backend) for _ in range(bench.repeats)]
    title, n = f"{name}{' by weight' if options else ''}", len(graph)
    sizes = {"n": n, "edges": graph.number_of_edges()}
    for way, seconds in (("NetworkX, once", [slow]), ("backend", fast)):
        rate = n / statistics.median(seconds), "nodes"
        bench.record(
            f"{title}, {n} nodes, {way}", seconds, rate_of=rate, verified="equals NetworkX", sizes=sizes, way=way
        )
    median = statistics.median(fast)
    return f"| {title} | {n} | {slow:.2f} | {median:.3f} ({min(fast):.3f} .. {max(fast):.3f}) | {slow / median:.0f} |"


def _speedups_by_size(bench: Bench, name: str, options: dict[str, str]) -> str:
    """Return how much faster the backend is on small graphs, by the least of five times, as `should_run` needs it."""
    found = []
    for n in (5, 10, 20, 30, 50, 70, 100, 150, 200, 300):
        ask_networkx, ask_backend = _questions(name, options, random_graph(n))
        ask_backend()  # warm
        ours, theirs = (min(bench.seconds(ask) for _ in range(5)) for ask in (ask_backend, ask_networkx))
        found.append(f"{n}: {theirs / ours:.1f}")
        if theirs > 4 * ours:
            break
    return f"{name}{' by weight' if options else ''}: {', '.join(found)}"


def _questions(name: str, options: dict[str, str], graph: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call of NetworkX, and a call of the backend as NetworkX makes it."""

    def ask_backend() -> Any:
        converted = backend.convert_from_nx(graph, {"weight": 1} if options else None)
        return _result(getattr(backend, name)(converted, **options))

    return lambda: _result(getattr(nx, name)(graph, **options)), ask_backend


def _result(result: Any) -> Any:
    return dict(result) if hasattr(result, "__next__") else result


def _taken(bench: Bench, ask: Callable[[], Any]) -> tuple[Any, float]:
    found: list[Any] = []
    seconds = bench.seconds(lambda: found.append(ask()))
    return found[0], seconds


def random_graph(n: int) -> Any:
    """Return a connected random graph. Its components are joined by one edge each."""
    graph = nx.gnm_random_graph(n, 4 * n, seed=SEED)
    parts = [next(iter(part)) for part in nx.connected_components(graph)]
    graph.add_edges_from((parts[0], other) for other in parts[1:])
    lengths = 1 - np.random.default_rng(SEED).random(graph.number_of_edges())
    nx.set_edge_attributes(graph, dict(zip(graph.edges, lengths.tolist(), strict=True)), "weight")
    return graph


def _check(name: str, graph: Any, ours: Any, theirs: Any) -> None:
    if name == "johnson":  # may return either of two paths of equal length
        lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
        for source, paths in ours.items():
            for target, path in paths.items():
                length = math.fsum(graph[u][v]["weight"] for u, v in pairwise(path))
                assert math.isclose(length, lengths[source][target], rel_tol=1e-12, abs_tol=1e-12), "a path is longer"
    elif name == "floyd_warshall":  # rounds sums in another order
        for source, row in theirs.items():
            assert all(math.isclose(ours[source][v], d, rel_tol=1e-12) for v, d in row.items()), "a distance differs"
    else:
        assert ours == theirs, f"{name} differs from NetworkX"
