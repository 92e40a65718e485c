"""The suite `networkx`: functions of NetworkX, computed by NetworkX and by the backend, conversion included.

The graphs are undirected random graphs of average degree 8 with lengths from (0, 1]. Each call of the backend converts
the graph again. Results are compared with those of NetworkX in the same run; where NetworkX would take longer than
`--longest`, the backend is timed alone. Results of generators are read to their end, and the first 100 are kept.

Seconds of CPU time are recorded beside wall time: on a machine that other programs use, they say what a call costs.
The backend uses all cores, so its CPU time may exceed its wall time.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.harness import Bench, spread, taken
from tilepath.networkx import backend

CONVENTION = (
    "nodes per second of wall time; wall and CPU seconds of one call, with the conversion of the graph and the "
    "dictionaries of the result. The backend is called as NetworkX calls it; generators are taken to their end, and "
    "the first 100 of their results are kept"
)
SEED = 1
KEPT = 100  # results of a generator
WEIGHT = {"weight": "weight"}
DISTANCE = {"distance": "weight"}
SOURCE = {"source": 0}

# Function, keywords, and how its time grows: with this power of the number of nodes.
CASES: list[tuple[str, dict[str, Any], int]] = [
    ("closeness_centrality", {}, 2),
    ("closeness_centrality", DISTANCE, 2),
    ("harmonic_centrality", {}, 2),
    ("betweenness_centrality", {}, 2),
    ("betweenness_centrality", WEIGHT, 2),
    ("edge_betweenness_centrality", {}, 2),
    ("eccentricity", {}, 2),
    ("diameter", {}, 2),
    ("diameter", WEIGHT, 2),
    ("all_pairs_shortest_path_length", {}, 2),
    ("all_pairs_dijkstra_path_length", WEIGHT, 2),
    ("floyd_warshall_numpy", WEIGHT, 3),
    ("single_source_dijkstra_path_length", SOURCE | WEIGHT, 1),
    ("connected_components", {}, 1),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 3000, 10000])
    parser.add_argument("--cases", nargs="+", metavar="FUNCTION", help="default: all")
    parser.add_argument(
        "--longest", type=float, default=20, help="leave out calls that would take more CPU seconds; default: 20"
    )
    parser.add_argument(
        "--thresholds", action="store_true", help="print only how much faster the backend is on small graphs"
    )


def run(bench: Bench, args: argparse.Namespace) -> str:
    chosen = [case for case in CASES if not args.cases or case[0] in args.cases]
    if args.thresholds:
        return "\n".join(_speedups_by_size(bench, name, options) for name, options, _ in chosen)
    graphs = {n: random_graph(n) for n in args.nodes}
    for case in chosen:
        _compare(bench, *case, graphs, args.longest)
    return ""


def _compare(
    bench: Bench, name: str, options: dict[str, Any], power: int, graphs: dict[int, Any], longest: float
) -> None:
    """Time a function on graphs of rising size, each way until a call would take longer than `longest`."""
    title = name + " by weight" * ("weight" in options.values())
    costs: dict[str, tuple[int, float]] = {}  # of each way, the last number of nodes and its CPU seconds

    def worth(way: str, n: int) -> bool:
        before, cost = costs.get(way, (n, 0.0))
        return cost * (n / before) ** power <= longest

    for n, graph in graphs.items():
        ask_networkx, ask_backend = _questions(name, options, graph)
        verified, expected = "equals NetworkX for fewer nodes in the same run", None
        if worth("NetworkX", n):
            expected, *theirs = taken(ask_networkx)
            verified = "equals NetworkX"
            costs["NetworkX"] = n, theirs[1]
        if worth("backend", n):
            found, *first = taken(ask_backend)  # warm after the first number of nodes
            if expected is not None:
                _check(name, found, expected)
                _record(bench, title, graph, "NetworkX, once", [theirs], verified)
            del found, expected
            several = [taken(ask_backend)[1:] for _ in range(bench.repeats if first[1] < 1 else 1)]
            costs["backend"] = n, statistics.median(cpu for _, cpu in several)
            _record(bench, title, graph, "backend", several, verified)


def _record(bench: Bench, title: str, graph: Any, way: str, times: list[Any], verified: str) -> None:
    walls, cpus = (list(each) for each in zip(*times, strict=True))
    n = len(graph)
    bench.record(
        f"{title}, {n} nodes, {way}",
        walls,
        work=(n, "nodes"),
        verified=verified,
        function=title,
        sizes={"n": n, "edges": graph.number_of_edges()},
        way=way,
        cpu_seconds=spread(cpus),
    )


def _speedups_by_size(bench: Bench, name: str, options: dict[str, Any]) -> str:
    """Return how much faster the backend is on small graphs, by the least of five times, as `should_run` needs it."""
    found = []
    for n in (5, 10, 20, 30, 50, 70, 100, 150, 200, 300):
        ask_networkx, ask_backend = _questions(name, options, random_graph(n))
        ask_backend()  # warm
        ours, theirs = (min(bench.seconds(ask) for _ in range(5)) for ask in (ask_backend, ask_networkx))
        found.append(f"{n}: {theirs / ours:.1f}")
        if theirs > 4 * ours:
            break
    return f"{name}{' by weight' if 'weight' in options.values() else ''}: {', '.join(found)}"


def _questions(name: str, options: dict[str, Any], graph: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call of NetworkX, and a call of the backend as NetworkX makes it."""

    def ask_backend() -> Any:
        converted = backend.convert_from_nx(graph, {"weight": 1} if "weight" in options.values() else None)
        return _result(getattr(backend, name)(converted, **options))

    return lambda: _result(getattr(nx, name)(graph, **options)), ask_backend


def _result(result: Any) -> Any:
    """Return a result; of a generator, the first results, after it was read to its end."""
    if not hasattr(result, "__next__"):
        return result
    kept = list(islice(result, KEPT))
    for _ in result:
        pass
    return kept


def random_graph(n: int) -> Any:
    """Return a connected random graph. Its components are joined by one edge each."""
    graph = nx.gnm_random_graph(n, 4 * n, seed=SEED)
    parts = [next(iter(part)) for part in nx.connected_components(graph)]
    graph.add_edges_from((parts[0], other) for other in parts[1:])
    lengths = 1 - np.random.default_rng(SEED).random(graph.number_of_edges())
    nx.set_edge_attributes(graph, dict(zip(graph.edges, lengths.tolist(), strict=True)), "weight")
    return graph


def _check(name: str, ours: Any, theirs: Any) -> None:
    if name == "floyd_warshall_numpy":  # rounds sums in another order
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    elif name.endswith("betweenness_centrality"):  # adds shares in another order
        assert ours.keys() == theirs.keys()
        assert all(math.isclose(ours[each], theirs[each], rel_tol=1e-9, abs_tol=1e-12) for each in theirs)
    else:
        assert ours == theirs, f"{name} differs from NetworkX"
