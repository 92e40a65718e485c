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

from gpuops.errors import WeightRangeError
from gpuops.hierarchy import Hierarchy, close_hierarchy
from gpuops.numbers import distance_limit
from pipelines.stores.arc_tables import weights_in_table
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import CHANGED, Graph, open_graph
from pipelines.stores.graph_names import generator_of, weights_named_in
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.lines import Lines, points_along
from pipelines.stores.named_roads import NamedRoads, ends_of
from pipelines.stores.named_weights import Weights
from pipelines.stores.parallel_roads import line_keys, warn_of_parallel_arcs, warn_of_parallel_roads, with_lines
from pipelines.stores.road_classes import RoadClasses
from pipelines.stores.schema import counted
from pipelines.stores.vertex_names import Positions


@dataclass(frozen=True, repr=False, eq=False)
class ChangedGraph(Graph):
    """A graph whose arcs or weights were changed in memory; made by `changed_graph`.

    It has the vertices, names and coordinates of the store at `path`. Arcs are sorted by head within a row.

    Attributes
    ----------
    arrays : indptr, indices and weights
    along : the lines of the arcs and the classes of their roads, each None if not known
    left_out : the graph whose arcs and weights were taken, and the numbers of its closed arcs in `rows`
    before : the graph before all changes
    """

    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    along: tuple[Lines | None, RoadClasses | None]
    left_out: tuple[Graph, np.ndarray]
    before: Graph

    @property
    def original(self) -> Graph:
        return self.before

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[0][start : (self.n if stop is None else stop) + 1].copy()

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[1][start:stop].copy()

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.arrays[2][start:stop].copy()

    def lines(self) -> Lines | None:
        return self.along[0]

    def classes(self) -> RoadClasses | None:
        return self.along[1]

    def _with(self, weights: Weights) -> Graph:
        """Return the graph with other weights of the store that its arcs were taken from; closed arcs stay closed."""
        if weights.name == self.weight_name:
            return self
        origin, closed = self.left_out
        chosen = origin.weighted_by(weights.name)
        kept = np.ones(origin.m, bool)
        kept[closed] = False
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
    low, high = (float(arrays[2].min()), float(arrays[2].max())) if len(arrays[2]) else (np.inf, -np.inf)
    parts = {each.name: getattr(graph, each.name) for each in fields(Graph)}
    parts |= {"m": len(arrays[1]), "weight_dtype": own.dtype, "weight_min": low, "weight_max": high}
    parts |= {"weight_unit": unit, "digest": f"{CHANGED}{found.hexdigest()}", "sorted_rows": True, "weighted": True}
    choices = tuple(each for each in origin.choices if each.name)
    array = next((each.array for each in choices if each.name == name), "")
    parts |= {"choices": choices, "weight_name": name, "weight_array": array}
    left_out = origin, np.flatnonzero(~kept)
    along = _along(origin, kept)
    return ChangedGraph(**parts, arrays=arrays, along=along, before=graph.original, left_out=left_out)


def _along(graph: Graph, kept: np.ndarray) -> tuple[Lines | None, RoadClasses | None]:
    """Return the lines and the classes of the arcs of ``graph.rows()`` that are kept, bool (m)."""
    arcs, lines, classes = graph.stored_positions()[kept], graph.lines(), graph.classes()
    return None if lines is None else lines.taken(arcs), None if classes is None else classes.taken(arcs)


def closed_lines(graph: Graph) -> list[np.ndarray]:
    """Return the lines (k, 2) of the arcs that were closed in a changed graph; other graphs have none."""
    if not isinstance(graph, ChangedGraph):
        return []
    origin, closed = graph.left_out
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


def closed_arcs(graph: Graph, rows: tuple[np.ndarray, np.ndarray], closed: Any, *, one_way: bool = False) -> np.ndarray:
    """Return the numbers of the arcs of closed roads, int64; for the parameters see `Graph.with_weights`."""
    if isinstance(closed, Positions) and np.ndim(closed.indices) == 1:
        arcs = np.asarray(closed.indices, np.int64)
        for arc in arcs[(arcs < 0) | (arcs >= len(rows[1]))][:1].tolist():
            raise ValueError(f"closed: there is no arc {arc}; arcs are 0 to {len(rows[1]) - 1:,}")
        return arcs
    return np.unique(arcs_of(graph, rows, ends_of(graph, closed, "closed"), one_way=one_way)[1])


def arcs_of(
    graph: Graph, rows: tuple[np.ndarray, np.ndarray], named: NamedRoads, *, one_way: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the arcs of some roads that are to be closed: the road of each arc, and the number of the arc in `rows`.

    A road with a line has the arcs with this line in both directions. With `one_way`, it has those from its first to
    its second end, or, if there are none, the others: the line says which one-way road is meant.

    Raises
    ------
    ValueError
        A road has no arc, or `one_way` is given for an undirected graph.
    """
    if one_way and not graph.directed:
        raise ValueError(
            f"one_way (--one-way): {graph.path} is undirected, so its roads are closed in both directions; leave "
            "one_way out, or import a directed network"
        )
    ends, numbers = _roads(graph, rows)
    tails, heads, count = named.tails, named.heads, len(named.tails)
    ranges = [arcs_between(ends, *each) for each in ((tails, heads), (heads, tails))]
    found = np.concatenate([_ranges(*each) for each in ranges])
    roads = np.concatenate([np.repeat(np.arange(count), last - first) for first, last in ranges])
    onward = np.arange(len(found)) < (ranges[0][1] - ranges[0][0]).sum()
    kept, lined = np.ones(len(found), bool), np.zeros(count, bool)
    several = np.any([last - first > 1 for first, last in ranges], axis=0)
    lines = coordinates = None
    # The arcs of another graph, whose weights are taken, may have other positions.
    if (named.lines is not None or several.any()) and np.array_equal(rows[1], graph.rows()[1]):
        lines, coordinates = graph.lines(), graph.coordinates()
    if lines is not None:
        assert coordinates is not None  # a store with lines has them
        begins, tips = np.searchsorted(ends[0], found, side="right") - 1, ends[1][found]
        keys = line_keys(lines, coordinates, graph.stored_positions()[numbers[found]], begins, tips)
        wanted = [None] * count if named.lines is None else named.lines
        kept, lined = with_lines(wanted, roads, keys), np.array([each is not None for each in wanted], bool)
    if one_way:
        on = kept & onward
        kept = on | (kept & (lined & (np.bincount(roads[on], minlength=count) == 0))[roads])
    _refuse_missing(graph, tails, heads, np.bincount(roads[kept], minlength=count) == 0, "closed")
    if lines is not None:
        by_ends = kept & (several & ~lined)[roads]
        pairs = np.stack([tails, heads], axis=1)
        warn_of_parallel_roads(graph, pairs, roads[by_ends], [keys[i] for i in np.flatnonzero(by_ends).tolist()])
    return roads[kept], numbers[found[kept]]


def arcs_between(
    rows: tuple[np.ndarray, np.ndarray], tails: np.ndarray, heads: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the arcs from each tail to its head begin and end, int64; `rows` are sorted by head."""
    indptr, indices = rows
    n = np.int64(len(indptr) - 1)
    keys = np.repeat(np.arange(n) * n, np.diff(indptr)) + indices
    wanted = tails.astype(np.int64) * n + heads
    return np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")


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
    ends, numbers = _roads(graph, rows[:2])
    for reversed_ in (False, True)[: 1 if graph.directed else 2]:
        first, last = arcs_between(ends, *((heads, tails) if reversed_ else (tails, heads)))
        _refuse_missing(graph, tails, heads, first == last, "weights")
        if not reversed_:
            warn_of_parallel_arcs(graph, tails, heads, last - first)
        found[numbers[_ranges(first, last)]] = np.repeat(values, last - first)
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


def _roads(graph: Graph, rows: tuple[np.ndarray, np.ndarray]) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the rows of the road network of a graph, and the number of each of their arcs in the graph."""
    junctions = graph.junctions()
    if junctions is None:
        return rows, np.arange(len(rows[1]))
    return junctions.road_rows(*rows)


def _ranges(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the numbers of all ranges, one range after the other."""
    counts = last - first
    return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))


def _refuse_missing(graph: Graph, tails: np.ndarray, heads: np.ndarray, missing: np.ndarray, what: str) -> None:
    for i in np.flatnonzero(missing)[:1].tolist():
        raise ValueError(
            f"{what}: no arc leads from vertex {graph.label(tails[i])} to vertex {graph.label(heads[i])}; name the ends"
            " of an arc"
        )
