"""Shortest-path trees of converted graphs, by operations of gpuops, and the dictionaries that NetworkX makes of them.

A search from one node takes the arcs as they are, by `gpuops.dijkstra`, if no length is negative; so do searches from
many where every length is 1, by `gpuops.hop_distances`. All others take the graph laid out for them:
`gpuops.shortest_distances`, or `gpuops.batched_shortest_distances` from many nodes, and `gpuops.shortest_path_tree`
where paths are asked for. Distances from many nodes may come from a GPU; counts of arcs and trees do not.
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
from tilepath.devices import search_work
from tilepath.networkx.graph import Arcs, ConvertedGraph, library_of_config

# Sources that are searched from at once double from 1: whoever wants the first result only does not pay for many.
_LARGEST_BATCH = 512
_BATCH_DISTANCES = 1 << 24
_RADIX = 2**16 - 1  # NumPy sorts integers up to here by their digits, several times as fast as others


class Tree:
    """Shortest paths from one source or several, cut at a distance.

    Attributes
    ----------
    sources : sequence of int
    distances : (n,) float64
        +inf where unreachable.
    predecessors : (n,) int32
        -1 at sources and where unreachable.
    reached : (k,) int64
        Vertices in the order of NetworkX's dictionaries: the sources, then others by distance, equal ones by number.
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
            beyond = distances > cutoff  # a cutoff of NaN is none
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
        """The distance of every node that is reached."""
        return dict(zip(self.graph.nodes[self.reached].tolist(), self.values(), strict=True))

    def values(self) -> list[Any]:
        """The distances of `reached`; those of sources are the integer 0, as in NetworkX."""
        reached = self.distances[self.reached]
        values = (reached.astype(np.int64) if self.arcs.integers else reached).tolist()
        values[: len(self.sources)] = [0] * len(self.sources)
        return values

    def total(self) -> Any:
        """The sum of the distances of `reached`, floats in that order."""
        finite = self.distances[np.isfinite(self.distances)]
        return int(finite.sum()) if self.arcs.integers else sum(np.sort(finite).tolist())

    def paths(self) -> dict[Any, list[Any]]:
        """The path to every node that is reached."""
        nodes, before = self.graph.nodes.tolist(), self.predecessors.tolist()
        found = {source: [nodes[source]] for source in self.sources}
        reached = self.reached.tolist()
        for vertex in reached:
            way = []
            while vertex not in found:  # with lengths of 0 or below, what precedes a vertex may come later here
                way.append(vertex)
                vertex = before[vertex]
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
        return self.graph.nodes[way[::-1]].tolist()

    def predecessors_of_all(self) -> dict[Any, list[Any]]:
        """For every node that is reached, all that precede it on shortest paths, in the order of `reached`."""
        arcs, distances = self.arcs, self.distances
        ends = distances[arcs.indices]
        tight = (distances[arcs.tails] + arcs.lengths == ends) & np.isfinite(ends)
        if self.cutoff is not None:
            tight &= ~(ends > self.cutoff)  # a source may lie beyond
        heads, tails = arcs.indices[tight], arcs.tails[tight]
        place = np.empty(arcs.n, np.int64)
        place[self.reached] = np.arange(len(self.reached))
        pairs = np.unique(place[heads] * arcs.n + place[tails])  # parallel arcs count once
        nodes = self.graph.nodes[self.reached].tolist()
        found: dict[Any, list[Any]] = {node: [] for node in nodes}
        for head, tail in zip(*(pair.tolist() for pair in divmod(pairs, arcs.n)), strict=True) if arcs.n else ():
            found[nodes[head]].append(nodes[tail])
        return found


def tree(graph: ConvertedGraph, arcs: Arcs, source: Any, cutoff: float | None = None) -> Tree:
    """Shortest paths from one node.

    Raises
    ------
    networkx.NetworkXUnbounded
        A negative cycle can be reached.
    """
    number = graph.numbers[source]
    if arcs.negative:
        return Tree(graph, arcs, [number], _distances(arcs, [number])[0], cutoff)
    distances, predecessors = gpuops.dijkstra(arcs.indptr, arcs.indices, arcs.lengths, number)
    found = Tree(graph, arcs, [number], distances, cutoff)
    found.predecessors = predecessors
    return found


def tree_of_nearest(graph: ConvertedGraph, arcs: Arcs, sources: Iterable[Any], cutoff: float | None) -> Tree:
    """Shortest paths from the nearest of some nodes, over lengths that are not negative."""
    numbers = list(dict.fromkeys(graph.numbers[source] for source in sources))
    return Tree(graph, arcs, numbers, gpuops.shortest_distances(arcs.layout, numbers), cutoff)


def trees(
    graph: ConvertedGraph, arcs: Arcs, sources: Iterable[int] | None = None, cutoff: float | None = None
) -> Iterator[tuple[Any, Tree]]:
    """Each node, or those of the numbers `sources`, and its tree, one after the other; errors as in `tree`."""
    numbers = list(range(arcs.n) if sources is None else sources)
    first, size = 0, 1
    while first < len(numbers):
        batch = numbers[first : first + size]
        for number, distances in zip(batch, _distances(arcs, batch), strict=True):
            yield graph.nodes[number], Tree(graph, arcs, [number], distances, cutoff)
        first, size = first + size, max(1, min(2 * size, _LARGEST_BATCH, _BATCH_DISTANCES // arcs.n))


def _distances(arcs: Arcs, sources: list[int]) -> np.ndarray:
    """A row for each source, in NumPy."""
    if arcs.hops:
        return gpuops.hop_distances(arcs.indptr, arcs.indices, sources, dtype=np.float64, check=False)
    xp = library_of_config(search_work(len(sources), arcs.n, len(arcs.indices)))
    try:
        distances = to_host(gpuops.batched_shortest_distances(arcs.layout_in(xp), sources))
    except NegativeCycleError as error:
        raise nx.NetworkXUnbounded("Negative cycle detected.") from error
    if len(arcs.negative_loops) and np.isfinite(distances[:, arcs.negative_loops]).any():
        raise nx.NetworkXUnbounded("Negative cycle detected.")
    return distances


def require(graph: ConvertedGraph, node: Any, message: str) -> None:
    """Raise NodeNotFound, with a message of NetworkX about the node, unless it is in the graph."""
    if node not in graph:
        raise nx.NodeNotFound(message.format(node))
