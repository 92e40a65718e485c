"""Dijkstra's algorithm from one node, from the nearest of several, and from all, with NetworkX's names and errors.

Graphs with negative lengths are left to NetworkX, which answers unless its search meets a contradiction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from tilepath.networkx.graph import ConvertedGraph
from tilepath.networkx.searches import Tree, require, tree, tree_of_nearest, trees


def dijkstra_path(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    return single_source_dijkstra(G, source, target, weight=weight)[1]


def dijkstra_path_length(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> float:
    arcs = G.nonnegative_arcs(weight)
    require(G, source, "Node {} not found in graph")
    if source == target:
        return 0
    found = tree(G, arcs, source)
    if not found.reaches(target):
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return found.length_to(target)


def single_source_dijkstra(
    G: ConvertedGraph, source: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    return multi_source_dijkstra(G, {source}, target, cutoff, weight)


def single_source_dijkstra_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Any]:
    return _nearest(G, {source}, cutoff, weight).paths()


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Any]:
    return _nearest(G, {source}, cutoff, weight).lengths()


def multi_source_dijkstra(
    G: ConvertedGraph, sources: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    sources = _known_sources(G, sources)
    if target in sources:
        return 0, [target]
    found = _nearest(G, sources, cutoff, weight)
    if target is None:
        return found.lengths(), found.paths()
    if not found.reaches(target):
        raise nx.NetworkXNoPath(f"No path to {target}.")
    return found.length_to(target), found.path_to(target)


def multi_source_dijkstra_path(
    G: ConvertedGraph, sources: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Any]:
    return _nearest(G, sources, cutoff, weight).paths()


def multi_source_dijkstra_path_length(
    G: ConvertedGraph, sources: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Any]:
    return _nearest(G, sources, cutoff, weight).lengths()


def dijkstra_predecessor_and_distance(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    arcs = G.nonnegative_arcs(weight)
    require(G, source, "Node {} is not found in the graph")
    found = tree(G, arcs, source, cutoff)
    return found.predecessors_of_all(), found.lengths()


def all_pairs_dijkstra(
    G: ConvertedGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterator[tuple[Any, Any]]:
    return ((node, (found.lengths(), found.paths())) for node, found in _all(G, cutoff, weight))


def all_pairs_dijkstra_path(
    G: ConvertedGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterator[tuple[Any, Any]]:
    return ((node, found.paths()) for node, found in _all(G, cutoff, weight))


def all_pairs_dijkstra_path_length(
    G: ConvertedGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterator[tuple[Any, Any]]:
    return ((node, found.lengths()) for node, found in _all(G, cutoff, weight))


def all_pairs_shortest_path_length(G: ConvertedGraph, cutoff: float | None = None) -> Iterator[tuple[Any, Any]]:
    if cutoff is not None:  # NetworkX takes another step while the number of steps is below `cutoff`
        cutoff = 0 if math.isnan(cutoff) else float(np.ceil(cutoff))
    return ((node, found.lengths()) for node, found in _all(G, cutoff, None))


def _known_sources(graph: ConvertedGraph, sources: Any) -> list[Any]:
    known = list(sources or ())
    if not known:
        raise ValueError("sources must not be empty")
    for source in known:
        require(graph, source, "Node {} not found in graph")
    return known


def _nearest(graph: ConvertedGraph, sources: Any, cutoff: float | None, weight: Any) -> Tree:
    arcs = graph.nonnegative_arcs(weight)
    sources = _known_sources(graph, sources)
    if len(sources) == 1:
        return tree(graph, arcs, sources[0], cutoff)
    return tree_of_nearest(graph, arcs, sources, cutoff)


def _all(graph: ConvertedGraph, cutoff: float | None, weight: Any) -> Iterator[tuple[Any, Tree]]:
    return trees(graph, graph.nonnegative_arcs(weight), cutoff=cutoff)
