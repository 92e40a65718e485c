"""Blocks of distances between vertices given by their names, from a store that computes distances."""

from __future__ import annotations

import os
from typing import Any

from gpuops.arrays import is_cupy
from pipelines.stores import Graph
from pipelines.stores.on_demand import OnDemand, open_on_demand
from pipelines.stores.vertex_names import Positions, VertexNames


def distances_between(
    store: OnDemand | str | os.PathLike[str],
    sources: Any,
    targets: Any,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Any:
    """Return the shortest distances from each source to each target, without computing the whole matrix.

    Parameters
    ----------
    store : HierarchyStore, or path of such a store
    sources, targets : (k,) and (l,) vertices
        Labels, or positions if the graph has no labels, as text or int. Positions can always be given as "#17" or
        ``tilepath.positions([17])``. If either argument is a CuPy array, or positions in a CuPy array, the
        distances are computed on its device, and stay there.
    graph : Graph or path, optional
        The graph, if it was moved. It is read for labels only, so `positions` do not need it.

    Returns
    -------
    (k, l) array, NumPy or CuPy
        Rows and columns in the order of `sources` and `targets`. Unreachable is +inf, or the integer dtype's maximum.

    Raises
    ------
    pipelines.stores.StoreError
        A vertex does not exist, or the graph store is missing.
    gpuops.errors.WeightRangeError
        A distance does not fit the dtype of a hierarchy store.
    ValueError
        `sources` or `targets` are not a list of names.
    """
    store = store if isinstance(store, OnDemand) else open_on_demand(store)
    gpu = any(is_cupy(v.indices if isinstance(v, Positions) else v) for v in (sources, targets))
    if isinstance(sources, Positions) and isinstance(targets, Positions):
        names = VertexNames(store.n, lambda: None, store.path)
    else:
        names = (store.named if graph is None else graph if isinstance(graph, Graph) else store.graph(graph)).naming
    rows, columns = names.vertices(sources, "source"), names.vertices(targets, "target")
    return store.between_on_gpu(rows, columns) if gpu else store.between(rows, columns)
