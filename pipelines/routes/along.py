"""Other weights along shortest paths: their sums over the arcs of each path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, no_type_check

import numpy as np
from numba import njit

from pipelines.stores.arc_tables import weights_in_table
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.road_network import RoadNetwork, road_network

Also: TypeAlias = str | Iterable[str] | Mapping[str, Any] | None


class Along(NamedTuple):
    """Weights that are added up along paths.

    Attributes
    ----------
    name : name of the column
    weights : (m,) int64 or float64, in the order of the arcs of `Graph.rows`
    unit : unit of the weights, "" if it is not known
    """

    name: str
    weights: np.ndarray
    unit: str


def named(also: Also) -> dict[str, Any]:
    """Return the option `also` by the names of columns; None stands for weights of the graph that have the name.

    >>> named("length,toll"), named({"toll": "toll.zarr"})
    ({'length': None, 'toll': None}, {'toll': 'toll.zarr'})
    """
    if isinstance(also, Mapping):
        return dict(also)
    if hasattr(also, "shape"):
        raise ValueError(
            f"also is a {type(also).__name__}; give it the name of a column: also={{'toll': arcs['toll']}}"
        )
    names = also.split(",") if isinstance(also, str) else list(also or ())
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"also is {also!r}; name weights of the graph, or give each column a graph: {{'toll': 'toll.zarr'}}"
        )
    return dict.fromkeys(name.strip() for name in names)


def read_along(graph: Graph, also: Mapping[str, Any]) -> list[Along]:
    """Return the weights that `also` names, for the arcs of `graph`.

    Parameters
    ----------
    also : for each name None, for the weights of `graph` of this name; or a graph store with the same arcs, such as the
        same file imported with another weight; or a frame or a Series of the table of arcs
        (`pipelines.stores.arc_tables`); or an array (m,) with a number for each arc, in the order of ``graph.rows()``.
        For a graph with turns, also a graph store, or a table, with the arcs of its road network; turns count 0

    Raises
    ------
    ValueError
        A graph has other arcs, or arcs were merged by their weights at the import; an array has another shape; or
        a number is missing.
    """
    found = []
    for name, given in also.items():
        if given is None:
            chosen = graph.weighted_by(name)
            weights, unit = chosen.rows()[2], chosen.unit
        elif isinstance(given, str | os.PathLike | Graph):
            other = given if isinstance(given, Graph) else open_graph(given)
            weights, unit = _of_roads(graph, other, name), other.unit
        else:
            turns = np.zeros(graph.m, np.int64)
            weights, unit = weights_in_table(graph, turns, given, f"also: {name}", name), ""
            if weights.shape != (graph.m,) or weights.dtype.kind not in "iuf":
                raise ValueError(
                    f"also: {name} is {weights.dtype} of shape {weights.shape}; give one number for each of the"
                    f" {graph.m:,} arcs of {graph.path}, or a column of tilepath.graph_to_gdfs"
                )
        found.append(Along(name, weights.astype(np.float64 if weights.dtype.kind == "f" else np.int64), unit))
    return found


def _of_roads(graph: Graph, other: Graph, name: str) -> np.ndarray:
    """Return the weights of a graph with the same arcs, or with those of the road network; turns then have weight 0."""
    network = road_network(graph)
    if not isinstance(network, RoadNetwork) or "junctions" in other.optional:
        return _of_same_arcs(graph, other, name)
    found = _of_same_arcs(replace(network, directed=other.directed), other, name)  # a graph with turns is directed
    weights = np.zeros(graph.m, found.dtype)
    weights[network.arcs] = found
    return weights


def _of_same_arcs(graph: Graph, other: Graph, name: str) -> np.ndarray:
    """Return the weights of a graph after checking that it has the arcs of another graph."""
    for each in (graph, other):
        if each.simplified and each.m != each.input_edges * (1 if each.directed else 2):
            raise ValueError(
                f"also: the import of {each.path} kept only the lightest of parallel arcs; import {graph.path} and"
                f" {other.path} without simplify (--simplify), so that their arcs correspond"
            )
    fault = f"also: {other.path}, whose weights are {name}, does not have the arcs of {graph.path}"
    cure = "import both from the same file, with other weights (tilepath import, weight, --weight)"
    if (graph.n, graph.m, graph.directed) != (other.n, other.m, other.directed):
        raise ValueError(f"{fault}; {cure}")
    own, (starts, heads, weights) = graph.rows(), other.rows()
    if not (np.array_equal(own[0], starts) and np.array_equal(own[1], heads)):
        raise ValueError(f"{fault}; {cure}")
    return weights


@njit(nogil=True, cache=True)
@no_type_check
def arcs_along(indptr, indices, weights, hops, vertices):
    """Return the number of each arc of some paths: of parallel arcs the lightest, of equal weights the first.

    `hops` has the number of arcs of each path, negative where there is no path, and `vertices` the vertices of all
    paths, one path after the other.
    """
    arcs, used, at = np.empty(max(0, len(vertices)), np.int64), 0, 0
    for i in range(len(hops)):
        if hops[i] < 0:
            continue
        for step in range(at, at + hops[i]):
            tail, head, best = vertices[step], vertices[step + 1], -1
            for arc in range(indptr[tail], indptr[tail + 1]):
                if indices[arc] == head and (best < 0 or weights[arc] < weights[best]):
                    best = arc
            arcs[used] = best
            used += 1
        at += hops[i] + 1
    return arcs[:used]


@njit(nogil=True, cache=True)
@no_type_check
def sums_along(arcs, hops, values):
    """Return the sum of the values of the arcs of each path, added up from the first arc on; 0 without a path."""
    sums, at = np.zeros(len(hops), values.dtype), 0
    for i in range(len(hops)):
        for step in range(at, at + max(0, hops[i])):
            sums[i] += values[arcs[step]]
        at += max(0, hops[i])
    return sums
