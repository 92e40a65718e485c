"""Measures of distance and closeness, by a search from every node, with NetworkX's names and errors.

Floats are added up in NetworkX's order, so sums have the same bits.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from pipelines.analysis.eccentricity import Eccentricities, Search, bounded
from tilepath.networkx.graph import Arcs, ConvertedGraph
from tilepath.networkx.searches import distances_from, require, trees


def eccentricity(G: ConvertedGraph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    if v is None:
        every = _bounded(G, weight, every=True).eccentricity
        assert every is not None
        return dict(zip(G.nodes.tolist(), [_value(G, weight, value) for value in every.tolist()], strict=True))
    found = _eccentricities(G, weight, G.bunch(v))
    return found[v] if v in G else found


def diameter(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> float:
    return _value(G, weight, _bounded(G, weight).diameter)


def radius(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> float:
    return _value(G, weight, _bounded(G, weight).radius)


def center(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    return G.nodes[_bounded(G, weight).center].tolist()


def periphery(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    return G.nodes[_bounded(G, weight).periphery].tolist()


def barycenter(G: ConvertedGraph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Any]:
    sums = {}
    for node, found in trees(G, G.nonnegative_arcs(weight)):
        if not np.isfinite(found.distances).all():
            raise nx.NetworkXNoPath(
                f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity."
            )
        sums[node] = found.total()
    least = min(sums.values(), default=0)
    return [node for node, value in sums.items() if value == least]


def closeness_centrality(
    G: ConvertedGraph, u: Any = None, distance: Any = None, wf_improved: bool = True, *, sp: Any = None
) -> Any:  # sp from NetworkX 3.7 on
    if u is not None:
        require(G, u, "Source {} is not in G" if distance is None else "Node {} not found in graph")
    n = len(G)
    sources = None if u is None else [G.numbers[u]]
    closeness = {}
    for node, found in trees(G, G.nonnegative_arcs(distance).reverse, sources):
        total, others = found.total(), np.isfinite(found.distances).sum().item() - 1.0
        closeness[node] = 0.0
        if total > 0.0 and n > 1:
            closeness[node] = others / total
            if wf_improved:
                closeness[node] *= others / (n - 1)
    return closeness if u is None else closeness[u]


def harmonic_centrality(
    G: ConvertedGraph, nbunch: Any = None, distance: Any = None, sources: Any = None
) -> dict[Any, Any]:
    ends, begins = set(G.bunch(nbunch)), set(G.bunch(sources))
    arcs = G.nonnegative_arcs(distance)
    transposed = len(ends) < len(begins)
    if transposed:
        ends, begins, arcs = begins, ends, arcs.reverse
    counted = np.zeros(len(G), bool)
    counted[[G.numbers[node] for node in ends]] = True
    sums = np.zeros(len(G))
    for node, found in trees(G, arcs, [G.numbers[node] for node in begins]):
        distances = found.distances
        adding = counted & np.isfinite(distances) & (distances != 0)
        if transposed:
            terms = 1 / np.sort(distances[adding])  # NetworkX adds in the order of distance here
            sums[G.numbers[node]] = terms.cumsum()[-1] if len(terms) else 0
        else:
            sums[adding] += 1 / distances[adding]
    return {node: sums[G.numbers[node]].item() or 0 for node in (begins if transposed else ends)}


def _eccentricities(graph: ConvertedGraph, weight: Any, bunch: list[Any]) -> dict[Any, Any]:
    arcs = graph.nonnegative_arcs(weight)
    largest = {}
    for node, found in trees(graph, arcs, [graph.numbers[node] for node in bunch]):
        value = found.distances.max().item()
        if value == float("inf"):
            raise _infinite(graph)
        largest[node] = _value(graph, weight, value)
    return largest


def _bounded(graph: ConvertedGraph, weight: Any, every: bool = False) -> Eccentricities:
    """Return the eccentricities of a graph whose nodes all reach each other, by as few searches as bounds allow."""
    arcs, first = graph.nonnegative_arcs(weight), np.zeros(1, np.int64)
    forward, backward = _search(arcs), _search(arcs.reverse) if graph.is_directed() else None
    if not all(np.isfinite(search(first)).all() for search in (forward, backward) if search is not None):
        raise _infinite(graph)
    exact, hops = arcs.integers, arcs.length is not None
    return bounded(forward, backward, np.diff(arcs.indptr), exact=exact, every=every, hops=hops)


def _search(arcs: Arcs) -> Search:
    return lambda vertices: distances_from(arcs, vertices.tolist())


def _infinite(graph: ConvertedGraph) -> nx.NetworkXError:
    kind = "digraph is not strongly connected" if graph.is_directed() else "graph is not connected"
    return nx.NetworkXError(f"Found infinite path length because the {kind}")


def _value(graph: ConvertedGraph, weight: Any, value: float) -> Any:
    return int(value) if graph.arcs(weight).integers or value == 0 else value
