"""A graph in the hand: the neighbours of a vertex by name, all rows one after the other, and the reverse graph."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.stores.schema import StoreError

if TYPE_CHECKING:
    from pipelines.stores.graph import Graph

ROWS = 1 << 16  # read at a time


class NamedRows:
    """What a graph answers by the names of its vertices (`pipelines.stores.vertex_names`).

    ``graph["a"]`` lists the names of the heads of the arcs that leave a, in the order of the arcs and once for each;
    ``for name, neighbours in graph`` does so for all vertices, and reads the store once. An int is an index.
    """

    if TYPE_CHECKING:
        n: int

        def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray: ...

        def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray: ...

        def labels(self) -> np.ndarray | None: ...

        def vertex(self, name: str | int) -> int: ...

        def names(self, vertices: Any) -> list[str]: ...

    def __getitem__(self, vertex: str | int) -> list[str]:
        """The names of the neighbours; StoreError if there is no such vertex."""
        found = self.vertex(vertex)
        return self.names(self.indices(*self.indptr(found, found + 1).tolist()).tolist())

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        labels = self.labels()
        known = None if labels is None else labels.tolist()
        for first in range(0, self.n, ROWS):
            indptr = self.indptr(first, min(first + ROWS, self.n)).tolist()
            heads = self.indices(indptr[0], indptr[-1]).tolist()
            names = [str(head) for head in heads] if known is None else [known[head] for head in heads]
            for row in range(len(indptr) - 1):
                neighbours = names[indptr[row] - indptr[0] : indptr[row + 1] - indptr[0]]
                yield str(first + row) if known is None else known[first + row], neighbours

    def __len__(self) -> int:
        """The number of vertices."""
        return self.n

    def __bool__(self) -> bool:
        return True  # a graph without vertices is a graph

    def __contains__(self, vertex: object) -> bool:
        """Does `vertex`, a name or an index, mean a vertex?"""
        try:
            self.vertex(vertex if isinstance(vertex, str) else operator.index(vertex))  # type: ignore[arg-type]
        except (StoreError, TypeError):
            return False
        return True


class ReversedGraph(NamedRows):
    """A graph with all arcs turned around, held in memory; `Graph.reverse` makes it.

    Attributes
    ----------
    graph : Graph
    arcs : int64 (m)
        The number of each arc in `graph`: ``x[arcs]`` brings what belongs to its arcs into the order here.
    """

    def __init__(self, graph: Graph):
        from gpuops.graphs import reverse  # Numba takes a second

        self.graph, self.n, self.m = graph, graph.n, graph.m
        self._indptr, self._indices, self._weights, self.arcs = reverse(
            graph.indptr(), graph.indices(), graph.weights(), check=False
        )

    def __repr__(self) -> str:
        return f"<reverse of {self.graph!r}>"

    @property
    def reverse(self) -> Graph:
        """The graph itself."""
        return self.graph

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """int64 offsets of rows `start` to `stop` (excluded); rows are sorted by head."""
        return self._indptr[start : (self.n if stop is None else stop) + 1]

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """int32 or int64: the heads of the arcs from `start` to `stop` (excluded), which are tails in `graph`."""
        return self._indices[start:stop]

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The weights of these arcs."""
        return self._weights[start:stop]

    def labels(self) -> np.ndarray | None:
        """The names of the vertices, str (n), or None."""
        return self.graph.labels()

    def vertex(self, name: str | int) -> int:
        """As `Graph.vertex`."""
        return self.graph.vertex(name)

    def names(self, vertices: Any) -> list[str]:
        """As `Graph.names`."""
        return self.graph.names(vertices)
