"""Shortest-path trees of converted graphs, by operations of gpuops, and the dictionaries that NetworkX returns.

Two searches run on the arcs as they are: `gpuops.dijkstra` from one node, if no length is negative, and
`gpuops.hop_distances` from many nodes, if all lengths are equal. All other searches run on the arcs laid out as a
`gpuops.SearchGraph`: `gpuops.shortest_distances` from the nearest of several nodes, `gpuops.batched_shortest_distances`
from many nodes, and `gpuops.shortest_path_tree` for paths. Only searches from many nodes may run on a GPU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np

import gpuops
from gpuops import NegativeCycleError
from pipelines.workers.device_arrays import to_host
from tilepath.devices import hop_work, search_work
from tilepath.networkx.graph import EXACT, Arcs, ConvertedGraph, library_of_config

# Batches of sources grow from 1 by doubling, so that a caller who takes only the first results does not wait for many.
_LARGEST_BATCH = 512  # sources
_BATCH_DISTANCES = 1 << 24  # most distances of a batch
_RADIX = 2**16 - 1  # NumPy sorts 16-bit integers by radix sort, several times as fast as wider numbers


class Tree:
    """Shortest paths from one source, or from the nearest of several, up to a cutoff.

    Attributes
    ----------
    sources : sequence of int
    distances : (n,) float64
        +inf where unreachable.
    predecessors : (n,) int32
        -1 at sources and where unreachable.
    reached : (k,) int64
        Vertices in the order of NetworkX's dictionaries: the sources, then other vertices by distance and by number.
    """

    def __init__(
        self,
        graph: ConvertedGraph,
        arcs: Arcs,
        sources: Sequence[int],
        distances: np.ndarray,
        cutoff: float | None = None,
    ):
        self.graph, self.arcs, self.sources, self.cutoff = graph, arcs, sources, cutoff
        if cutoff is not None:
            beyond = distances > cutoff  # a cutoff of NaN has no effect
            beyond[sources] = False
            distances[beyond] = math.inf
        self.distances = distances

    @functools.cached_property
    def predecessors(self) -> np.ndarray:
        return gpuops.shortest_path_tree(self.arcs.layout, self.distances, self.sources)

    @functools.cached_property
    def reached(self) -> np.ndarray:
        vertices = np.flatnonzero(np.isfinite(self.distances))
        lengths = self.distances[vertices]
        if self.arcs.integers and len(vertices) and 0 <= lengths.min() and lengths.max() <= _RADIX:
            lengths = lengths.astype(np.uint16)
        order = vertices[lengths.argsort(kind="stable")]
        if len(self.sources) == 1 and order[0] == self.sources[0]:
            return order
        return np.concatenate([np.asarray(self.sources, np.int64), order[~np.isin(order, self.sources)]])

    def lengths(self) -> dict[Any, Any]:
        """Return the distance of every node that is reached."""
        return dict(zip(self.graph.nodes[self.reached].tolist(), self.values(), strict=True))

    def values(self) -> list[Any]:
        """Return the distances of `reached`; the distance of a source is the integer 0, as in NetworkX."""
        reached = self.distances[self.reached]
        values = (reached.astype(np.int64) if self.arcs.integers else reached).tolist()
        values[: len(self.sources)] = [0] * len(self.sources)
        return values

    def total(self) -> Any:
        """Return the sum of the distances of `reached`, which must not be negative; floats are added in that order."""
        finite = self.distances[np.isfinite(self.distances)]
        if not self.arcs.integers:
            return sum(np.sort(finite).tolist())
        total = finite.sum()
        return int(total) if total < EXACT else sum(finite.astype(np.int64).tolist())

    def paths(self) -> dict[Any, list[Any]]:
        """Return the path to every node that is reached."""
        nodes, before = self.graph.nodes.tolist(), self.predecessors.tolist()
        found = {source: [nodes[source]] for source in self.sources}
        reached, n = self.reached.tolist(), self.arcs.n
        for vertex in reached:
            way = []
            while vertex not in found:  # with lengths of 0 or below, a predecessor may come later in `reached`
                way.append(vertex)
                vertex = before[vertex]
                if len(way) > n:
                    raise _circle()
            for vertex in reversed(way):
                found[vertex] = [*found[before[vertex]], nodes[vertex]]
        return {nodes[vertex]: found[vertex] for vertex in reached}

    def reaches(self, target: Any) -> bool:
        return target in self.graph and bool(np.isfinite(self.distances[self.graph.numbers[target]]))

    def length_to(self, target: Any) -> Any:
        length = self.distances[self.graph.numbers[target]].item()
        return int(length) if self.arcs.integers else length

    def path_to(self, target: Any) -> list[Any]:
        way = [self.graph.numbers[target]]
        while (before := int(self.predecessors[way[-1]])) >= 0:
            way.append(before)
            if len(way) > self.arcs.n:
                raise _circle()
        return self.graph.nodes[way[::-1]].tolist()

    def predecessors_of_all(self) -> dict[Any, list[Any]]:
        """Return for every node that is reached all its predecessors on shortest paths, in the order of `reached`."""
        arcs, distances = self.arcs, self.distances
        ends = distances[arcs.indices]
        tight = (distances[arcs.tails] + arcs.lengths == ends) & np.isfinite(ends)
        if self.cutoff is not None:
            tight &= ~(ends > self.cutoff)  # a source may lie beyond the cutoff
        heads, tails = arcs.indices[tight], arcs.tails[tight]
        place = np.empty(arcs.n, np.int64)
        place[self.reached] = np.arange(len(self.reached))
        pairs = np.unique(place[heads] * arcs.n + place[tails])  # parallel arcs count once
        nodes = self.graph.nodes[self.reached].tolist()
        found: dict[Any, list[Any]] = {node: [] for node in nodes}
        for head, tail in zip(*(pair.tolist() for pair in divmod(pairs, arcs.n)), strict=True) if arcs.n else ():
            found[nodes[head]].append(nodes[tail])
        return found


def _circle() -> RuntimeError:
    return RuntimeError("predecessors form a cycle, which is a fault of tilepath; please report it")


def tree(graph: ConvertedGraph, arcs: Arcs, source: Any, cutoff: float | None = None) -> Tree:
    """Return the shortest paths from one node.

    Raises
    ------
    networkx.NetworkXUnbounded
        A negative cycle can be reached.
    """
    number = graph.numbers[source]
    if arcs.negative:
        return Tree(graph, arcs, [number], distances_from(arcs, [number])[0], cutoff)
    distances, predecessors = gpuops.dijkstra(arcs.indptr, arcs.indices, arcs.lengths, number)
    found = Tree(graph, arcs, [number], distances, cutoff)
    found.predecessors = predecessors
    return found


def tree_of_nearest(graph: ConvertedGraph, arcs: Arcs, sources: Iterable[Any], cutoff: float | None) -> Tree:
    """Return the shortest paths from the nearest of the nodes `sources`; lengths must not be negative."""
    numbers = list(dict.fromkeys(graph.numbers[source] for source in sources))
    return Tree(graph, arcs, numbers, gpuops.shortest_distances(arcs.layout, numbers), cutoff)


def trees(
    graph: ConvertedGraph, arcs: Arcs, sources: Iterable[int] | None = None, cutoff: float | None = None
) -> Iterator[tuple[Any, Tree]]:
    """Yield each node and its tree, for all nodes or for the node numbers `sources`; errors as in `tree`."""
    numbers = list(range(arcs.n) if sources is None else sources)
    first, size = 0, 1
    while first < len(numbers):
        batch = numbers[first : first + size]
        for number, distances in zip(batch, distances_from(arcs, batch), strict=True):
            yield graph.nodes[number], Tree(graph, arcs, [number], distances, cutoff)
        first, size = first + size, max(1, min(2 * size, _LARGEST_BATCH, _BATCH_DISTANCES // arcs.n))


def distances_from(arcs: Arcs, sources: list[int]) -> np.ndarray:
    """Return the distances from each source as a NumPy array, one row for each source."""
    if arcs.length is not None:
        xp = library_of_config(hop_work(len(sources), arcs.n, len(arcs.indices)))
        rows = arcs.rows_in(xp)
        return to_host(gpuops.hop_distances(**rows, sources=sources, length=arcs.length, dtype=np.float64, check=False))
    xp = library_of_config(search_work(len(sources), arcs.n, len(arcs.indices)))
    try:
        distances = to_host(gpuops.batched_shortest_distances(arcs.layout_in(xp), sources))
    except NegativeCycleError as error:
        raise nx.NetworkXUnbounded("Negative cycle detected.") from error
    if len(arcs.negative_loops) and np.isfinite(distances[:, arcs.negative_loops]).any():
        raise nx.NetworkXUnbounded("Negative cycle detected.")
    return distances


def require(graph: ConvertedGraph, node: Any, message: str) -> None:
    """Raise NodeNotFound with NetworkX's `message` unless `node` is in the graph."""
    if node not in graph:
        raise nx.NodeNotFound(message.format(node))
