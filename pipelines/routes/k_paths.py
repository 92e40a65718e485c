"""The k shortest paths between two vertices of a graph store, by searches in this process."""

from __future__ import annotations

import math
import os
from itertools import pairwise

import numpy as np

from gpuops import k_shortest_paths as k_shortest
from gpuops.errors import WeightRangeError
from gpuops.options import whole
from pipelines.places.at import VertexOrPlace, vertex_at
from pipelines.places.snapping import Snapping
from pipelines.routes.along import arcs_along
from pipelines.routes.paths import NoPathError, Path
from pipelines.stores.graph import Graph, open_graph


def k_shortest_paths(
    graph: Graph | str | os.PathLike[str], source: VertexOrPlace, target: VertexOrPlace, k: int
) -> list[Path]:
    """Return the k shortest of all paths that visit no vertex twice, by the algorithm of Yen.

    Parameters
    ----------
    graph : Graph or path of a graph store
        Weights must not be negative. Of parallel arcs, a path takes the lightest. In a graph with turns, a path may
        visit a junction twice if it takes other turns there.
    source, target : vertices as for `shortest_path`
    k : int

    Returns
    -------
    list of Path
        The shortest path first; fewer than k if there are fewer. The `distance` of a path is the sum of its weights
        from the source on, in float64 or int64.

    Raises
    ------
    NoPathError
        The target cannot be reached.
    StoreError
        A vertex does not exist, or the graph store is missing or damaged.
    ValueError
        A weight is negative, or `k` is not positive.
    tilepath.WeightRangeError
        Weights are integers, and a path could be 2^53 or longer.

    Examples
    --------
    >>> [path.distance for path in tilepath.k_shortest_paths(graph, "Rome", "Genoa", 5)]
    [515, 720]
    """
    graph = open_graph(graph)
    snapping = Snapping(graph)
    s, t = vertex_at(graph, source, "source", snapping), vertex_at(graph, target, "target", snapping)
    whole("k", k, 1)
    if graph.weighted and graph.weight_min < 0:
        raise ValueError(f"{graph.path} has a weight of {graph.weight_min:g}; the k shortest paths need 0 or more")
    indptr, indices, weights = graph.rows()
    try:
        lengths, starts, vertices = k_shortest(indptr, indices, weights, s, t, k, through=graph.through())
    except OverflowError:
        raise WeightRangeError(
            f"{graph.path}: a path could be 2^53 or longer; import the graph with smaller weights, or as float64"
        ) from None
    if not len(lengths):
        raise NoPathError(f"no path leads from vertex {graph.label(s)} to vertex {graph.label(t)}")
    arcs = arcs_along(indptr, indices, weights, np.diff(starts) - 1, vertices)
    add, found, at = (math.fsum if weights.dtype.kind == "f" else sum), [], 0
    junctions = graph.junctions()
    for length, (first, last) in zip(lengths.tolist(), pairwise(starts.tolist()), strict=True):
        hops, passed, steps = last - first - 1, vertices[first:last], weights[arcs[at : at + last - first - 1]]
        at += hops
        total = add(steps.tolist())
        if junctions is not None:
            _, passed, roads = junctions.roads_of(np.array([hops]), passed)
            steps = junctions.weights_of(roads, steps)
        found.append(Path(graph, tuple(passed.tolist()), length, tuple(steps.tolist()), total))
    return found
