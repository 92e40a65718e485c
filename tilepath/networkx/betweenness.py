"""Betweenness of nodes and edges, with NetworkX's names, sources and factors.

Floats are added in another order than by NetworkX (`gpuops.centrality`), so the last bits may differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from networkx.utils import create_py_random_state

import gpuops
from pipelines.workers.device_arrays import to_host
from tilepath.devices import search_work
from tilepath.networkx.graph import ConvertedGraph, library_of_config


def betweenness_centrality(
    G: ConvertedGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    if k == len(G):
        k = None
    sources, found = _found(G, k, weight, seed, endpoints=endpoints)
    of_sources, of_others = gpuops.betweenness_factors(
        len(G), k, directed=G.is_directed(), endpoints=endpoints, normalized=normalized
    )
    factors = np.full(len(G), of_others)
    factors[sources] = of_sources
    return dict(zip(G.nodes.tolist(), (to_host(found.vertices) * factors).tolist(), strict=True))


def edge_betweenness_centrality(
    G: ConvertedGraph, k: int | None = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[Any, float]:
    _, found = _found(G, k, weight, seed, arcs=True)
    _, factor = gpuops.betweenness_factors(len(G), k, directed=G.is_directed(), endpoints=True, normalized=normalized)
    arcs = G.arcs(weight)
    once = np.flatnonzero(G.is_directed() | (arcs.tails <= arcs.indices))  # in the order of G.edges
    ends = G.nodes[arcs.tails[once]].tolist(), G.nodes[arcs.indices[once]].tolist()
    return dict(zip(zip(*ends, strict=True), (to_host(found.arcs)[once] * factor).tolist(), strict=True))


def _found(
    graph: ConvertedGraph, k: int | None, weight: Any, seed: Any, **options: bool
) -> tuple[np.ndarray, gpuops.Betweenness]:
    """Return the sources, and the sums over them."""
    arcs = graph.arcs(weight)
    if bool((arcs.lengths <= 0).any()):
        raise NotImplementedError(f"{weight!r} of an edge is not above 0, so that paths cannot be counted")
    if k == 0:
        raise NotImplementedError("k is 0, and no path begins at 0 sources")
    # NetworkX samples the nodes, a list of the same length, in this way.
    chosen = range(arcs.n) if k is None else create_py_random_state(seed).sample(range(arcs.n), k)
    sources = np.asarray(chosen, np.int64)
    xp = library_of_config(search_work(len(sources), arcs.n, len(arcs.indices)))
    try:
        found = gpuops.betweenness(
            xp.asarray(arcs.indptr),
            xp.asarray(arcs.indices),
            None if weight is None else xp.asarray(arcs.lengths),
            sources,
            symmetric=not graph.is_directed(),
            check=False,
            **options,
        )
    except ValueError as error:  # a length is lost in a distance
        raise NotImplementedError(str(error)) from None
    return sources, found
