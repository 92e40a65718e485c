"""The Floyd-Warshall family, with NetworkX's names and errors.

Graphs with a negative cycle are left to NetworkX: its version 3.6 returns numbers that are not distances, and later
versions raise an error.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import Any

import networkx as nx
import numpy as np

import gpuops
from pipelines.workers.device_arrays import to_host
from tilepath.networkx.graph import Arcs, ConvertedGraph, library_of_config
from tilepath.networkx.searches import trees


def floyd_warshall(G: ConvertedGraph, weight: Any = "weight") -> dict[Any, Any]:
    arcs = G.arcs(weight)
    closed = _closed(arcs)
    return {
        node: _row(G, arcs, weight, row, number) for number, (node, row) in enumerate(zip(G.nodes, closed, strict=True))
    }


def floyd_warshall_numpy(G: ConvertedGraph, nodelist: Any = None, weight: Any = "weight") -> np.ndarray:
    if nodelist is not None:
        if not len(nodelist) == len(G) == len(set(nodelist)):
            raise nx.NetworkXError(
                "nodelist must contain every node in G with no repeats."
                "If you wanted a subgraph of G use G.subgraph(nodelist)"
            )
        strangers = {node for node in nodelist if node not in G}
        if strangers:
            raise nx.NetworkXError(f"Nodes {strangers} in nodelist is not in G")
    closed = _closed(G.arcs(weight))
    if nodelist is None:
        return closed
    order = [G.numbers[node] for node in nodelist]
    return closed[np.ix_(order, order)]


def floyd_warshall_predecessor_and_distance(
    G: ConvertedGraph, weight: Any = "weight"
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    arcs = G.arcs(weight)
    predecessors, distances = {}, {}
    loops = set(arcs.tails[arcs.tails == arcs.indices].tolist())
    try:
        for number, (node, found) in enumerate(trees(G, arcs)):
            distances[node] = _row(G, arcs, weight, found.distances, number)
            if number in loops:  # as in NetworkX, where a node with a loop precedes itself
                found.predecessors[number] = number
            heads = np.flatnonzero(found.predecessors >= 0)
            if len(heads):
                before = G.nodes[found.predecessors[heads]].tolist()
                predecessors[node] = dict(zip(G.nodes[heads].tolist(), before, strict=True))
    except nx.NetworkXUnbounded as error:
        raise _left_to_networkx() from error
    return predecessors, distances


def _closed(arcs: Arcs) -> np.ndarray:
    """Return the matrix of all distances, (n, n) float64."""
    if len(arcs.negative_loops):
        raise _left_to_networkx()
    matrix = np.full((arcs.n, arcs.n), math.inf)
    np.minimum.at(matrix, (arcs.tails, arcs.indices), arcs.lengths)
    np.fill_diagonal(matrix, 0)
    matrix = library_of_config(arcs.n**3).asarray(matrix)
    try:
        return to_host(gpuops.floyd_warshall(matrix, out=matrix))
    except gpuops.NegativeCycleError as error:
        raise _left_to_networkx() from error


def _left_to_networkx() -> NotImplementedError:
    return NotImplementedError("the graph has a negative cycle, so there are no distances")


def _row(graph: ConvertedGraph, arcs: Arcs, weight: Any, row: np.ndarray, source: int) -> defaultdict[Any, Any]:
    """Return the distances from a node to all nodes, +inf where unreachable.

    If edges lack the attribute, distances are floats, as in NetworkX, which takes their lengths as 1.0 here.
    """
    missing = weight is None or graph.missing
    if arcs.integers and not missing:
        finite = np.isfinite(row)
        values: list[Any] = np.where(finite, row, 0).astype(np.int64).tolist()
        for vertex in np.flatnonzero(~finite).tolist():
            values[vertex] = math.inf
    else:
        values = row.tolist()
    values[source] = 0
    return defaultdict(functools.partial(float, "inf"), zip(graph.nodes.tolist(), values, strict=True))
