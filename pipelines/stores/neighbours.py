"""Access to the rows of a graph by the names of its vertices, and the reverse graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops.arrays import on_host
from pipelines.stores.displays import html_of, text_of
from pipelines.stores.on_device import rows_on
from pipelines.stores.vertex_names import VertexName, VertexNameList

if TYPE_CHECKING:
    from pipelines.stores.graph import Graph

ROWS = 1 << 16  # rows read at a time


class NamedRows:
    """The neighbours of vertices by name (`pipelines.stores.vertex_names`); a base class of graphs.

    ``graph["a"]`` lists the names of the heads of the arcs that leave a: one name per arc, in the order of the arcs.
    ``for name, neighbours in graph`` lists them for all vertices, and reads the store once.
    """

    if TYPE_CHECKING:
        n: int

        def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray: ...

        def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray: ...

        def labels(self) -> np.ndarray | None: ...

        def vertex(self, name: VertexName) -> int: ...

        def names(self, vertices: Any) -> list[str]: ...

        @property
        def title(self) -> str: ...

    def __repr__(self) -> str:
        return text_of(self, self.title)

    def _repr_html_(self) -> str:
        return html_of(self, self.title)

    def __getitem__(self, vertex: VertexName) -> list[str]:
        """Return the names of the neighbours of a vertex; raises StoreError if the vertex does not exist."""
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
        return True  # also for a graph without vertices

    def __contains__(self, vertex: object) -> bool:
        """Return whether `vertex` names a vertex."""
        try:
            self.vertex(vertex)  # type: ignore[arg-type]
        except ValueError:
            return False
        return True


class ReversedGraph(NamedRows):
    """A graph with all arcs reversed, held in memory; created by `Graph.reverse`.

    Parameters
    ----------
    graph : Graph
    device : {"auto", "cpu", "gpu"}
        Where the arcs are sorted (`pipelines.stores.on_device`); "auto": a GPU if the graph is large and there is one.

    Attributes
    ----------
    graph : Graph
    arcs : int64 (m)
        The number of each arc in `graph`: if x has one entry per arc of `graph`, ``x[arcs]`` has the same entries in
        the order of the reversed arcs.
    """

    def __init__(self, graph: Graph, device: str = "auto"):
        from gpuops.graphs import reverse  # imports Numba, which takes a second

        self.graph, self.n, self.m = graph, graph.n, graph.m
        indptr, indices, weights, arcs = reverse(*rows_on(graph, device, weights=graph.weighted), check=False)
        self._indptr, self._indices, self.arcs = map(on_host, (indptr, indices, arcs))
        self._weights = None if weights is None else on_host(weights)

    @property
    def title(self) -> str:
        """The kind, the name and the size of the graph, in a few words."""
        return f"reverse of {self.graph.title}"

    @property
    def reverse(self) -> Graph:
        """The graph itself."""
        return self.graph

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all arcs as CSR: indptr, indices, weights."""
        return self._indptr, self._indices, self.weights()

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the int64 offsets of rows `start` to `stop` (excluded); rows are sorted by head."""
        return self._indptr[start : (self.n if stop is None else stop) + 1]

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the heads of the arcs `start` to `stop` (excluded), which are tails in `graph`; int32 or int64."""
        return self._indices[start:stop]

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the weights of the arcs `start` to `stop` (excluded); of an unweighted graph they are ones."""
        if self._weights is None:
            return np.ones(len(self._indices[start:stop]), self.graph.weight_dtype)
        return self._weights[start:stop]

    def labels(self) -> np.ndarray | None:
        """Return the names of the vertices, str (n), or None if there are no names."""
        return self.graph.labels()

    def vertex(self, name: VertexName, what: str = "vertex") -> int:
        """Return the position of a vertex, as `Graph.vertex` does."""
        return self.graph.vertex(name, what)

    def vertices(self, names: VertexNameList, what: str = "vertex") -> np.ndarray:
        """Return the positions of vertices, as `Graph.vertices` does."""
        return self.graph.vertices(names, what)

    def names(self, vertices: Any) -> list[str]:
        """Return the names of vertices, as `Graph.names` does."""
        return self.graph.names(vertices)
