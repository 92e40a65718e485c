"""Shortest paths over lengths of any sign, and negative cycles, with NetworkX's names and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

import gpuops
from tilepath.networkx.graph import Arcs, ConvertedGraph
from tilepath.networkx.searches import require, tree, trees

_NEGATIVE_CYCLE = "Negative cycle detected."


def single_source_bellman_ford(
    G: ConvertedGraph, source: Any, target: Any = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    if source == target:
        require(G, source, "Node {} is not found in the graph")
        return 0, [source]
    require(G, source, "Source {} not in G")
    found = tree(G, G.arcs(weight), source)
    if target is None:
        return found.lengths(), found.paths()
    if not found.reaches(target):
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    return found.length_to(target), found.path_to(target)


def single_source_bellman_ford_path(G: ConvertedGraph, source: Any, weight: Any = "weight") -> dict[Any, Any]:
    return single_source_bellman_ford(G, source, weight=weight)[1]


def single_source_bellman_ford_path_length(G: ConvertedGraph, source: Any, weight: Any = "weight") -> dict[Any, Any]:
    require(G, source, "Source {} not in G")
    return tree(G, G.arcs(weight), source).lengths()


def bellman_ford_path(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    return single_source_bellman_ford(G, source, target, weight)[1]


def bellman_ford_path_length(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> float:
    if source == target:
        require(G, source, "Node {} not found in graph")
        return 0
    require(G, source, "Source {} not in G")
    found = tree(G, G.arcs(weight), source)
    if not found.reaches(target):
        raise nx.NetworkXNoPath(f"node {target} not reachable from {source}")
    return found.length_to(target)


def bellman_ford_predecessor_and_distance(
    G: ConvertedGraph, source: Any, target: Any = None, weight: Any = "weight", heuristic: bool = False
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    arcs = G.arcs(weight)
    require(G, source, "Node {} is not found in the graph")
    if len(arcs.negative_loops):  # as in NetworkX, an error even if the source does not reach the loop
        raise nx.NetworkXUnbounded(_NEGATIVE_CYCLE)
    if len(G) == 1:  # NetworkX lists a loop of length 0 as a predecessor in larger graphs only
        return {source: []}, {source: 0}
    found = tree(G, arcs, source)
    return found.predecessors_of_all(), found.lengths()


def all_pairs_bellman_ford_path(G: ConvertedGraph, weight: Any = "weight") -> Iterator[tuple[Any, Any]]:
    return ((node, found.paths()) for node, found in trees(G, G.arcs(weight)))


def all_pairs_bellman_ford_path_length(G: ConvertedGraph, weight: Any = "weight") -> Iterator[tuple[Any, Any]]:
    return ((node, found.lengths()) for node, found in trees(G, G.arcs(weight)))


def johnson(G: ConvertedGraph, weight: Any = "weight") -> dict[Any, Any]:
    arcs = G.arcs(weight)
    if _negative_cycle(arcs, range(arcs.n)):
        raise nx.NetworkXUnbounded(_NEGATIVE_CYCLE)
    return {node: found.paths() for node, found in trees(G, arcs)}


def negative_edge_cycle(G: ConvertedGraph, weight: Any = "weight", heuristic: bool = True) -> bool:
    arcs = G.arcs(weight)
    return bool(_negative_cycle(arcs, range(arcs.n)))


def find_negative_cycle(G: ConvertedGraph, source: Any, weight: Any = "weight") -> list[Any]:
    require(G, source, "Source {} not in G")
    cycle = _negative_cycle(G.arcs(weight), [G.numbers[source]])
    if not cycle:
        raise nx.NetworkXError("No negative cycles detected.")
    if len(cycle) > 2:  # NetworkX's list begins one vertex earlier
        cycle = [cycle[-1], *cycle[:-1]]
    return G.nodes[[*cycle, cycle[0]]].tolist()


def _negative_cycle(arcs: Arcs, sources: Any) -> list[int]:
    """Return the vertices of a negative cycle that `sources` reach, in travel order; an empty list if there is none."""
    if not arcs.negative:
        return []
    try:
        distances = gpuops.shortest_distances(arcs.layout, sources)
    except gpuops.NegativeCycleError as error:
        return list(error.vertices)
    loops = arcs.negative_loops
    return loops[distances[loops] < float("inf")][:1].tolist()
