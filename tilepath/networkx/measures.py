"""Measures of distance and closeness, by a search from every node, with NetworkX's names and errors.

Floats are added up in NetworkX's order, so sums have the same bits.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from tilepath.networkx.graph import Arcs, ConvertedGraph
from tilepath.networkx.searches import require, trees


def eccentricity(G: ConvertedGraph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    bunch = G.bunch(v)
    found = _eccentricities(G, weight, bunch)
    return found[v] if v in G else found


def diameter(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> float:
    return max(_eccentricities(G, weight).values())


def radius(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> float:
    return min(_eccentricities(G, weight).values())


def center(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    found = _eccentricities(G, weight)
    least = min(found.values())
    return [node for node, value in found.items() if value == least]


def periphery(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    found = _eccentricities(G, weight)
    largest = max(found.values())
    return [node for node, value in found.items() if value == largest]


def barycenter(G: ConvertedGraph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Any]:
    sums = {}
    for node, found in trees(G, _arcs(G, weight)):
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
    for node, found in trees(G, _arcs(G, distance).reverse, sources):
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
    arcs = _arcs(G, distance)
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


def _arcs(graph: ConvertedGraph, weight: Any) -> Arcs:
    arcs = graph.arcs(weight)
    if arcs.negative:
        raise NotImplementedError(f"{weight!r} of an edge is negative, which NetworkX leaves to Dijkstra's algorithm")
    return arcs


def _eccentricities(graph: ConvertedGraph, weight: Any, bunch: list[Any] | None = None) -> dict[Any, Any]:
    sources = None if bunch is None else [graph.numbers[node] for node in bunch]
    arcs = _arcs(graph, weight)
    largest = {}
    for node, found in trees(graph, arcs, sources):
        value = found.distances.max().item()
        if value == float("inf"):
            if graph.is_directed():
                raise nx.NetworkXError("Found infinite path length because the digraph is not strongly connected")
            raise nx.NetworkXError("Found infinite path length because the graph is not connected")
        largest[node] = int(value) if arcs.integers or value == 0 else value
    return largest
