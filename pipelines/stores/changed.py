"""A graph or a hierarchy with other weights, or without some arcs, in memory: what if a bridge were closed?

The stores stay unchanged. A changed hierarchy keeps the order and the structure of its store, and its tables are
computed again when they are first used. It has the methods of a hierarchy store.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from gpuops import csr
from gpuops.errors import WeightRangeError
from gpuops.hierarchy import Hierarchy, close_hierarchy
from gpuops.numbers import distance_limit
from pipelines.stores.arc_tables import weights_in_table
from pipelines.stores.arcs_of_roads import arcs_between, closed_arcs, refuse_missing, road_rows
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import CHANGED, Graph, open_graph
from pipelines.stores.graph_names import generator_of, weights_named_in
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.lines import points_along
from pipelines.stores.named_roads import ends_of
from pipelines.stores.named_weights import Weights
from pipelines.stores.parallel_roads import warn_of_parallel_arcs
from pipelines.stores.road_network import GraphInMemory, with_arrays
from pipelines.stores.schema import counted


@dataclass(frozen=True, repr=False, eq=False)
class ChangedGraph(GraphInMemory):
    """A graph whose arcs or weights were changed in memory; made by `changed_graph`.

    It has the vertices, names and coordinates of the store at `path`. Its `origin` is the graph whose arcs and weights
    were taken.

    Attributes
    ----------
    closed : the numbers of the closed arcs in the rows of `origin`
    before : the graph before all changes
    """

    closed: np.ndarray
    before: Graph

    @property
    def original(self) -> Graph:
        return self.before

    def _with(self, weights: Weights) -> Graph:
        """Return the graph with other weights of the store that its arcs were taken from; closed arcs stay closed."""
        if weights.name == self.weight_name:
            return self
        chosen = self.origin.weighted_by(weights.name)
        kept = np.ones(chosen.m, bool)
        kept[self.closed] = False
        return _changed(self, chosen.rows(), kept, chosen, weights.unit, weights.name)


@dataclass(frozen=True, repr=False, eq=False)
class ChangedHierarchy(HierarchyStore):
    """A hierarchy store whose graph was changed in memory; made by `changed_hierarchy`.

    Attributes
    ----------
    base : the store, whose order and structure are used
    changed : the changed graph
    """

    base: HierarchyStore
    changed: ChangedGraph

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, changed to {counted(self.changed.m, 'arc')}>"

    @property
    def digest(self) -> str:
        """A hash of the changed graph."""
        return self.changed.digest

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy, closed at the first access."""
        indptr, indices, weights = self.changed.rows()
        if self.dtype.kind == "i" and len(weights) and int(weights.max()) >= distance_limit(self.dtype):
            raise WeightRangeError(f"{self.path}: a weight does not fit {self.dtype}; give weights of float64")
        weights = weights.astype(self.dtype, copy=False)
        try:
            return close_hierarchy(self.base.hierarchy.structure, indptr, indices, weights)
        except OverflowError as error:
            raise WeightRangeError(f"{self.path}: {error}; give weights of float64") from None

    def graph(self, moved_to: Graph | str | os.PathLike[str] | None = None) -> Graph:
        """Return the changed graph; it is in memory, so that it cannot have moved."""
        return self.changed


def changed_graph(graph: Graph, weights: Any = None, *, closed: Any = None, one_way: bool = False) -> ChangedGraph:
    """Return a graph with other weights, or without some arcs; for the parameters see `Graph.with_weights`."""
    indptr, heads, own = graph.rows()
    origin = graph
    if isinstance(weights, str) and any(each.name == weights for each in graph.choices):
        weights = graph.weighted_by(weights)
    elif isinstance(weights, str):
        _refuse_unknown_name(graph, weights)
    if isinstance(weights, Graph | str | os.PathLike):
        other = open_graph(weights)
        if (other.n, other.directed) != (graph.n, graph.directed):
            raise ValueError(f"weights: {other.path} does not have the vertices of {graph.path}")
        (indptr, heads, own), unit, origin = other.rows(), other.weight_unit, other
    else:
        own, unit = _reweighted(graph, (indptr, heads, own), weights), _unit(graph, weights)
    kept = np.ones(len(heads), bool)
    if closed is not None:
        arcs = closed_arcs(graph, (indptr, heads), closed, one_way=one_way)
        if not len(arcs):
            warnings.warn("closed: no road is named, so all stay open; look at how they were chosen", stacklevel=3)
        kept[arcs] = False
    named = origin is not graph or weights is None
    return _changed(graph, (indptr, heads, own), kept, origin, unit, origin.weight_name if named else "")


def _changed(
    graph: Graph, rows: tuple[np.ndarray, np.ndarray, np.ndarray], kept: np.ndarray, origin: Graph, unit: str, name: str
) -> ChangedGraph:
    """Return a graph with the arcs of `rows` that are kept, bool (m); `origin` has the same arcs in the same order.

    `name` is the name of the weights among those of `origin`, "" if they are new.
    """
    indptr, heads, own = rows
    starts = np.concatenate([[0], np.cumsum(kept)])[indptr]
    arrays = starts, heads[kept], own[kept]
    found = hashlib.blake2b(graph.digest.encode(), digest_size=16)
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    parts = with_arrays(graph, arrays) | {"weight_unit": unit, "weighted": True}
    choices = tuple(each for each in origin.choices if each.name)
    array = next((each.array for each in choices if each.name == name), "")
    parts |= {"digest": f"{CHANGED}{found.hexdigest()}", "choices": choices, "weight_name": name, "weight_array": array}
    arcs, closed = origin.stored_positions()[kept], np.flatnonzero(~kept)
    return ChangedGraph(**parts, origin=origin, arcs=arcs, closed=closed, before=graph.original)


def closed_lines(graph: Graph) -> list[np.ndarray]:
    """Return the lines (k, 2) of the arcs that were closed in a changed graph; other graphs have none."""
    if not isinstance(graph, ChangedGraph):
        return []
    origin, closed = graph.origin, graph.closed
    coordinates = origin.coordinates()
    if coordinates is None or not len(closed):
        return closed_lines(origin)
    indptr, heads, _ = origin.rows()
    tails = np.searchsorted(indptr, closed, side="right") - 1
    lines = origin.lines()
    lines = None if lines is None else lines.taken(origin.stored_positions()[closed])
    offsets, points = points_along(lines, coordinates, np.arange(len(closed)), tails, heads[closed])
    return closed_lines(origin) + np.split(points, offsets[1:-1])


def changed_hierarchy(store: HierarchyStore, graph: ChangedGraph) -> ChangedHierarchy:
    """Return a hierarchy of a changed graph, with the order and the structure of a store.

    Raises
    ------
    ValueError
        A weight is negative.
    """
    if graph.weight_min < 0:
        raise ValueError(
            "a weight is negative; make a hierarchy store of the changed graph (tilepath hierarchy --like)"
        )
    dtype = store.dtype
    if dtype.kind != ("f" if graph.weight_dtype.kind == "f" else "i"):
        dtype = graph.weight_dtype if graph.weight_dtype.kind == "f" else np.dtype(np.int32)
    base = store.base if isinstance(store, ChangedHierarchy) else store
    parts = {each.name: getattr(store, each.name) for each in fields(HierarchyStore)}
    parts |= {"dtype": dtype, "graph_digest": graph.digest}
    return ChangedHierarchy(**parts, base=base, changed=graph)


def _reweighted(graph: Graph, rows: tuple[np.ndarray, np.ndarray, np.ndarray], weights: Any) -> np.ndarray:
    """Return the weights of all arcs after a change; `weights` is None, an array, or a mapping from ends to weights."""
    if weights is None:
        return rows[2]
    if not isinstance(weights, Mapping):
        found = weights_in_table(graph, rows[2], weights)
        if found.shape != rows[2].shape or found.dtype.kind not in "iuf":
            raise ValueError(
                f"weights are {found.dtype} of shape {found.shape}; give one number for each of the {graph.m:,} arcs of"
                " rows() or row of tilepath.graph_to_gdfs, a graph, or a mapping from (tail, head) to the weight"
            )
        return found
    if not weights:
        return rows[2]
    for key in weights:
        if isinstance(key, tuple) and len(key) > 2:  # as edges of a multigraph of NetworkX are named
            raise ValueError(
                f"weights: {key!r} is not a pair (tail, head); for one of parallel arcs, give a column of "
                "tilepath.graph_to_gdfs, or an array with the weight of each arc"
            )
    tails, heads, *_ = ends_of(graph, list(weights), "weights")
    values = np.array(list(weights.values()))
    if values.dtype.kind not in "iuf" or np.isnan(values).any():
        raise ValueError("weights: a weight is not a number")
    whole = values.dtype.kind != "f" or rows[2].dtype.kind == "f"  # a float array takes every number
    found = rows[2].astype(rows[2].dtype if whole else np.float64)
    if found.dtype.kind in "iu" and not np.array_equal(values.astype(found.dtype), values):
        raise WeightRangeError(f"weights: a weight does not fit {found.dtype}")
    ends, numbers = road_rows(graph, rows[:2])
    for reversed_ in (False, True)[: 1 if graph.directed else 2]:
        first, last = arcs_between(ends, *((heads, tails) if reversed_ else (tails, heads)))
        refuse_missing(graph, tails, heads, first == last, "weights")
        if not reversed_:
            warn_of_parallel_arcs(graph, tails, heads, last - first)
        found[numbers[csr.in_ranges(first, last)]] = np.repeat(values, last - first)
    return found


def _refuse_unknown_name(graph: Graph, given: str) -> None:
    """Raise StoreError if a text is neither the path of a store nor the name of a generated graph."""
    if os.path.exists(weights_named_in(given)[0]) or generator_of(given):
        return
    names = ", ".join(each.name for each in graph.choices if each.name)
    known = f"the weights of {graph.path} are {names}" if names else f"the weights of {graph.path} have no names"
    raise StoreError(f"weights (--weights): {given!r} is no store and no name of weights; {known}")


def _unit(graph: Graph, weights: Any) -> str:
    """Return the unit of new weights: a Series with the name of weights of the graph has their unit."""
    name = getattr(weights, "name", None)
    units = {each.name: each.unit for each in graph.choices if each.name}
    if "length" in units:  # the column of these weights in a table of arcs
        units["length_weight"] = units["length"]
    return units.get(name, graph.weight_unit) if isinstance(name, str) else graph.weight_unit
