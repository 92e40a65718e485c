"""A NetworkX graph as arrays.

Nodes are numbered in NetworkX's order. Arcs are in compressed sparse rows: an undirected edge is two opposite arcs;
parallel edges and loops are kept. The lengths of the arcs come from one edge attribute; without an attribute, every
length is 1.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from typing import Any

import networkx as nx
import numpy as np

import gpuops
from gpuops import csr
from tilepath.devices import library_for
from tilepath.networkx.info import NAME

EXACT = 2**53  # integers below this are exact in float64


def library_of_config(work: int) -> Any:
    """Return NumPy or CuPy for `work` relaxations of a dense matrix, by ``nx.config.backends.tilepath.device``."""
    config = getattr(nx.config.backends, NAME, None)  # None if the backend is not installed
    return library_for(work, getattr(config, "device", "auto"))


class Arcs:
    """Arcs and their lengths, for searches.

    Attributes
    ----------
    indptr : (n + 1,) int64
    indices : (m,) int32
    lengths : (m,) float64
    integers : bool
        True if all lengths were integers; distances are then integers too.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, lengths: np.ndarray, integers: bool, symmetric: bool):
        self.indptr, self.indices, self.lengths = indptr, indices, lengths
        self.integers, self.symmetric = integers, symmetric
        self._layouts: dict[Any, gpuops.SearchGraph] = {}
        self._on_device: dict[str, Any] | None = None

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @functools.cached_property
    def tails(self) -> np.ndarray:
        return gpuops.edge_expansion(self.indptr, self.indices, check=False)

    @functools.cached_property
    def length(self) -> float | None:
        """The length of all arcs, if it is the same and not negative; 1 if there are no arcs."""
        if not len(self.lengths):
            return 1
        first = self.lengths[0].item()
        return first if first >= 0 and bool((self.lengths == first).all()) else None

    @functools.cached_property
    def negative(self) -> bool:
        return bool((self.lengths < 0).any())

    @functools.cached_property
    def negative_loops(self) -> np.ndarray:
        """The vertices that have a loop of negative length."""
        return self.tails[(self.tails == self.indices) & (self.lengths < 0)]

    @property
    def layout(self) -> gpuops.SearchGraph:
        """The arcs laid out for searches over negative lengths or from several sources; all loops are left out."""
        return self.layout_in(np)

    def layout_in(self, xp: Any) -> gpuops.SearchGraph:
        """Return `layout` in arrays of `xp`, NumPy or CuPy."""
        if xp not in self._layouts:
            kept = self.tails != self.indices
            arrays = csr.row_starts(self.tails[kept], self.n), self.indices[kept], self.lengths[kept]
            self._layouts[xp] = gpuops.search_graph(*map(xp.asarray, arrays), symmetric=self.symmetric)
        return self._layouts[xp]

    def rows_in(self, xp: Any) -> dict[str, Any]:
        """Return `indptr` and `indices` in arrays of `xp`, and for a GPU the reversed graph as `transposed`."""
        if xp is np:
            return {"indptr": self.indptr, "indices": self.indices}
        if self._on_device is None:
            indptr, indices = rows = tuple(map(xp.asarray, (self.indptr, self.indices)))
            transposed = rows if self.symmetric else csr.transpose(*rows)[:2]
            self._on_device = {"indptr": indptr, "indices": indices, "transposed": transposed}
        return self._on_device

    @functools.cached_property
    def reverse(self) -> Arcs:
        if self.symmetric:
            return self
        turned = gpuops.reverse(self.indptr, self.indices, self.lengths, check=False)
        return Arcs(turned.indptr, turned.indices, turned.weights, self.integers, False)


class ConvertedGraph:
    """A converted graph, which the functions of this backend take in place of a NetworkX graph.

    Attributes
    ----------
    nodes : (n,) array of object
    numbers : dict
        The number of each node, its index in `nodes`.
    attribute : str or None
        The edge attribute that holds the lengths; None if the graph was converted without lengths.
    missing : bool
        True if some edge does not have this attribute.
    """

    __networkx_backend__ = NAME

    def __init__(
        self, numbers: dict[Any, int], directed: bool, multigraph: bool, indptr: np.ndarray, indices: np.ndarray
    ):
        self.nodes = np.fromiter(numbers, object, len(numbers))
        self.numbers = numbers
        self.attribute: Any = None
        self.missing = True
        self._directed, self._multigraph = directed, multigraph
        self._hops = Arcs(indptr, indices, np.ones(len(indices)), True, not directed)
        self._arcs = self._hops
        self.__networkx_cache__: dict[str, Any] = {}

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.numbers
        except TypeError:
            return False

    def __str__(self) -> str:
        kind = "Multi" * self._multigraph + "Di" * self._directed + "Graph"
        return f"{kind} with {len(self)} nodes and {self.number_of_edges()} edges"

    def number_of_edges(self) -> int:
        m = len(self._hops.indices)
        if self._directed:
            return m
        return (m + int((self._hops.tails == self._hops.indices).sum())) // 2

    def arcs(self, attribute: Hashable) -> Arcs:
        """Return the arcs with the lengths of an edge attribute; with None, every length is 1."""
        if attribute is None:
            return self._hops
        if attribute != self.attribute:
            raise NotImplementedError(
                f"the graph was converted with the attribute {self.attribute!r}, not {attribute!r}; convert it again"
            )
        return self._arcs

    def nonnegative_arcs(self, attribute: Hashable) -> Arcs:
        """Return the arcs as `arcs` does, for functions that NetworkX computes by Dijkstra's algorithm."""
        arcs = self.arcs(attribute)
        if arcs.negative:
            raise NotImplementedError(f"{attribute!r} of an edge is negative; only the Bellman-Ford functions allow it")
        return arcs

    def bunch(self, nodes: Any) -> list[Any]:
        """Return the nodes that `nodes` selects: all for None, one node, or the nodes of a container in the graph."""
        return list(nx.Graph.nbunch_iter(self, nodes))

    @property
    def _adj(self) -> dict[Any, int]:  # where nbunch_iter looks nodes up
        return self.numbers

    def take_lengths(self, attribute: Hashable, values: list[Any]) -> None:
        """Set the lengths of all arcs to `values`, the values of an edge attribute, for `arcs`.

        Raises
        ------
        NotImplementedError
            A value is not an int or a float, or is not finite; integers add up to 2^53 or more, or floats to infinity.
        """
        self.missing = any(value is _MISSING for value in values)
        if self.missing:
            values = [1 if value is _MISSING else value for value in values]
        kinds = set(map(type, values))
        if not all(issubclass(kind, int | float | np.integer) for kind in kinds):
            wrong = next(value for value in values if not isinstance(value, int | float | np.integer))
            raise NotImplementedError(f"{attribute!r} of an edge is {wrong!r:.80}; tilepath takes ints and floats")
        integers = all(issubclass(kind, int | np.integer) for kind in kinds)
        limit = EXACT * (1 if self._directed else 2)  # an undirected edge is two arcs
        if sum(abs(int(value)) for value in values if not isinstance(value, float)) >= limit:
            raise NotImplementedError(f"integers of {attribute!r} add up to 2^53 or more, which float64 cannot hold")
        lengths = np.array(values, np.float64)
        if not np.isfinite(lengths).all():
            wrong = lengths[~np.isfinite(lengths)][0]
            raise NotImplementedError(f"{attribute!r} of an edge is {wrong}; tilepath takes finite numbers")
        with np.errstate(over="ignore"):
            if not np.isfinite(np.abs(lengths).sum()):
                raise NotImplementedError(f"sums of {attribute!r} may exceed float64; tilepath takes smaller numbers")
        hops = self._hops
        self._arcs = Arcs(hops.indptr, hops.indices, lengths, integers, hops.symmetric)
        self.attribute = attribute


_MISSING = object()


def convert_from_nx(
    graph: Any,
    edge_attrs: dict[Hashable, Any] | None = None,
    node_attrs: dict[Hashable, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Convert a NetworkX graph.

    NetworkX keeps the converted graph in the cache of `graph`. A view's cache is not cleared when the underlying graph
    changes, so the cache of a view is disabled here.

    Parameters
    ----------
    graph : networkx.Graph or a subclass
    edge_attrs : dict, optional
        The attribute that holds the lengths, with the length of edges that lack it: ``{"weight": 1}``.
    node_attrs, preserve_edge_attrs, preserve_node_attrs, preserve_graph_attrs, name, graph_name
        Arguments of NetworkX's interface, ignored here: only the lengths are kept.

    Raises
    ------
    NotImplementedError
        There are several attributes, lengths are not exact in float64, `graph` is an undirected view whose opposite
        arcs differ in length, or a subclass of Graph that computes its neighbours.
    """
    if edge_attrs and (len(edge_attrs) > 1 or list(edge_attrs.values()) != [1]):
        raise NotImplementedError(f"tilepath takes one edge attribute with the default 1, not {edge_attrs!r:.80}")
    view = hasattr(graph, "_graph")
    if view:
        graph.__networkx_cache__ = None
    numbers = {node: number for number, node in enumerate(graph)}
    heads: list[Any] = []
    edges: list[dict[Any, Any]] = []
    degrees = []
    for _, neighbours in graph.adjacency():
        if not isinstance(neighbours, Mapping):
            raise NotImplementedError(f"a {type(graph).__name__} has no dictionaries of neighbours")
        before = len(heads)
        if graph.is_multigraph():
            for head, parallel in neighbours.items():
                heads += [head] * len(parallel)
                edges += parallel.values()
        else:
            heads += neighbours
            edges += neighbours.values()
        degrees.append(len(heads) - before)
    indices = np.fromiter(map(numbers.__getitem__, heads), np.int32, len(heads))
    indptr = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    converted = ConvertedGraph(numbers, graph.is_directed(), graph.is_multigraph(), indptr, indices)
    for attribute in edge_attrs or ():
        converted.take_lengths(attribute, [edge.get(attribute, _MISSING) for edge in edges])
        if view and not graph.is_directed() and not _same_both_ways(converted.arcs(attribute)):
            raise NotImplementedError(
                f"{attribute!r} of an edge differs by direction in this undirected view; tilepath takes a copy of it"
            )
    return converted


def _same_both_ways(arcs: Arcs) -> bool:
    forth = np.lexsort((arcs.lengths, arcs.indices, arcs.tails))
    back = np.lexsort((arcs.lengths, arcs.tails, arcs.indices))
    return bool((arcs.lengths[forth] == arcs.lengths[back]).all())


def convert_to_nx(obj: Any, *, name: str | None = None) -> Any:
    """Return a converted graph as a NetworkX graph with nodes, edges and lengths; return any other object unchanged."""
    if not isinstance(obj, ConvertedGraph):
        return obj
    kind = (nx.MultiDiGraph if obj.is_directed() else nx.MultiGraph) if obj.is_multigraph() else None
    graph = (kind or (nx.DiGraph if obj.is_directed() else nx.Graph))()
    graph.add_nodes_from(obj.nodes.tolist())
    arcs = obj.arcs(obj.attribute)
    once = np.flatnonzero(obj.is_directed() | (arcs.tails <= arcs.indices))
    lengths = arcs.lengths[once]
    ends = obj.nodes[arcs.tails[once]].tolist(), obj.nodes[arcs.indices[once]].tolist()
    if obj.attribute is None:
        graph.add_edges_from(zip(*ends, strict=True))
    else:
        values = lengths.astype(np.int64).tolist() if arcs.integers else lengths.tolist()
        graph.add_weighted_edges_from(zip(*ends, values, strict=True), weight=obj.attribute)
    return graph
