"""The arcs of roads that users name, in a graph or in the graph whose weights are taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops import csr
from pipelines.stores.graph import Graph
from pipelines.stores.named_roads import NamedRoads, ends_of
from pipelines.stores.parallel_roads import line_keys, warn_of_parallel_roads, with_lines
from pipelines.stores.vertex_names import Positions


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
    ends, numbers = road_rows(graph, rows)
    tails, heads, count = named.tails, named.heads, len(named.tails)
    ranges = [arcs_between(ends, *each) for each in ((tails, heads), (heads, tails))]
    found = np.concatenate([csr.in_ranges(*each) for each in ranges])
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
    refuse_missing(graph, tails, heads, np.bincount(roads[kept], minlength=count) == 0, "closed")
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


def road_rows(graph: Graph, rows: tuple[np.ndarray, np.ndarray]) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the rows of the road network of a graph, and the number of each of their arcs in the graph."""
    junctions = graph.junctions()
    if junctions is None:
        return rows, np.arange(len(rows[1]))
    return junctions.road_rows(*rows)


def refuse_missing(graph: Graph, tails: np.ndarray, heads: np.ndarray, missing: np.ndarray, what: str) -> None:
    """Raise ValueError if a road has no arc, which `missing` says for each road; messages call the roads `what`."""
    for i in np.flatnonzero(missing)[:1].tolist():
        raise ValueError(
            f"{what}: no arc leads from vertex {graph.label(tails[i])} to vertex {graph.label(heads[i])}; name the ends"
            " of an arc"
        )
