"""Connected components and the existence of Euler walks, with NetworkX's names and errors.

The walks themselves are not offered: NetworkX's tests require the one walk, of many, that NetworkX finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

import gpuops
from tilepath.networkx.graph import ConvertedGraph


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    labels = _labels(G)
    order = labels.argsort(kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return (set(G.nodes[part].tolist()) for part in np.split(order, cuts) if len(part))


def number_connected_components(G: ConvertedGraph) -> int:
    return int(_labels(G).max(initial=-1)) + 1


def is_connected(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G) == 1


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


def is_eulerian(G: ConvertedGraph) -> bool:
    # A connected graph is strongly connected if every vertex has equally many arcs in and out.
    return bool((_imbalances(G) == 0).all()) and is_connected(G)


def has_eulerian_path(G: ConvertedGraph, source: Any = None) -> bool:
    if is_eulerian(G):
        return True
    imbalances = _imbalances(G)
    if source is not None and imbalances[G.numbers[source]] != 1:
        return False
    if G.is_directed():
        ends = (imbalances == 1).sum() <= 1 and (imbalances == -1).sum() <= 1 and (abs(imbalances) <= 1).all()
    else:
        ends = imbalances.sum() == 2
    return bool(ends) and is_connected(G)


def is_semieulerian(G: ConvertedGraph) -> bool:
    return has_eulerian_path(G) and not is_eulerian(G)


def _labels(graph: ConvertedGraph) -> np.ndarray:
    """Return the component number of each vertex; components are numbered in the order of their first vertices."""
    arcs = graph.arcs(None)
    return gpuops.weak_components(arcs.indptr, arcs.indices, compact=True, check=False)


def _imbalances(graph: ConvertedGraph) -> Any:
    """Return the out-degree minus the in-degree of each vertex; in an undirected graph, the parity of its degree."""
    arcs = graph.arcs(None)
    degrees = gpuops.degrees(arcs.indptr, arcs.indices, check=False)
    if graph.is_directed():
        return degrees.outgoing - degrees.incoming
    loops = np.bincount(arcs.tails[arcs.tails == arcs.indices], minlength=arcs.n)  # a loop adds 2 to a degree
    return (degrees.outgoing + loops) % 2
