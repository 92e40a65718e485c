"""Order the vertices of a stored graph, in a child process if METIS takes long."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuops.hierarchy import hierarchy_order
from pipelines.stores.graph import Graph
from pipelines.workers.child import in_child

# Vertices and arcs up to which METIS runs in the calling thread: it holds the interpreter's lock for about a second, as
# long as a child process takes to start.
AT_ONCE = 1_000_000


def order_vertices(graph: Graph, wanted: Callable[[], object], thorough: bool = False) -> np.ndarray:
    """Return an order of the vertices, int32 (n), by `gpuops.hierarchy_order`.

    Parameters
    ----------
    wanted : called repeatedly while a child process orders; if it raises an error, the child is killed and the error is
        raised here
    """
    if graph.n + graph.m <= AT_ONCE:
        return _order(graph, thorough)
    return in_child(wanted, _order, graph, thorough)


def _order(graph: Graph, thorough: bool) -> np.ndarray:
    return hierarchy_order(graph.indptr(), graph.indices(), graph.through(), thorough=thorough)
