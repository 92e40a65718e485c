"""Networks to which places are moved: a hierarchy store or a graph store, opened once."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from pipelines.places.snapping import Snapping
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.hierarchy import SCHEMA, HierarchyStore, open_hierarchy
from pipelines.stores.schema import check_path, kind_of

NetworkLike: TypeAlias = HierarchyStore | Graph | str | os.PathLike[str]


class OpenNetwork(NamedTuple):
    """A store that answers, its graph, and the `Snapping` that moves places to the vertices of the graph."""

    source: HierarchyStore | Graph
    graph: Graph
    snapping: Snapping


def open_network(
    network: NetworkLike,
    graph: Graph | str | os.PathLike[str] | None = None,
    crs: Any = None,
    snap_limit: float | str | None = None,
) -> OpenNetwork:
    """Open a hierarchy store or a graph store.

    For a hierarchy store that is open, its graph and its `Snapping` are kept: opening and reading them takes longer
    than computing a small table.

    Parameters
    ----------
    network : the store, or its path
    graph : the graph of a hierarchy, if it was moved
    crs, snap_limit : coordinate system of the places that will be moved, and their `limit`, as for `Snapping`
    """
    if isinstance(network, str | os.PathLike):
        network = open_hierarchy(network) if kind_of(network).schema == SCHEMA else open_graph(network)
    if not isinstance(network, Graph | HierarchyStore):
        check_path(network)
    if isinstance(network, Graph):
        if graph is not None:
            raise ValueError(f"{network.path} is a graph itself; leave out graph (--graph)")
        return OpenNetwork(network, network, Snapping(network, crs=crs, limit=snap_limit))
    if graph is None and network in _graphs:
        opened, snapping = _graphs[network]
    else:
        opened = network.graph(graph)
        snapping = Snapping(opened, network.by_place(opened))
        if graph is None:
            _graphs[network] = opened, snapping
    return OpenNetwork(network, opened, snapping.of(crs, snap_limit))


_graphs: WeakKeyDictionary[HierarchyStore, tuple[Graph, Snapping]] = WeakKeyDictionary()
