"""The structure of a graph: degrees, sources and sinks, weak components, balance, and the memory of its rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuops.arrays import is_cupy, on_host
from pipelines.files.tables import check_output, vertex_names, write_table
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.neighbours import ReversedGraph
from pipelines.stores.on_device import rows_on

COUNTED = 1 << 24  # most vertices and arcs of a graph whose structure is found without a request


class Spread(NamedTuple):
    """The smallest, mean and largest of some degrees."""

    least: int
    mean: float
    largest: int


@dataclass(frozen=True)
class Structure:
    """Numbers about all arcs of a graph, from `graph_structure`.

    Attributes
    ----------
    outgoing, incoming : Spread
        Out-degrees and in-degrees; all 0 if the graph has no vertex.
    sources, sinks, isolated : int
        Number of vertices with arcs out only, with arcs in only, and without arcs.
    components : int
        Number of weak components, which arcs join whatever their directions. An isolated vertex is a component.
    unbalanced : int
        Number of vertices with unequal numbers of arcs in and out; of an undirected graph, with an odd degree.
    path : bool
        Whether exactly two vertices are unbalanced, and an Euler path may lead from one to the other.
    """

    outgoing: Spread
    incoming: Spread
    sources: int
    sinks: int
    isolated: int
    components: int
    unbalanced: int
    path: bool

    @property
    def balanced(self) -> bool:
        """Whether each component that has arcs has an Euler circuit."""
        return self.unbalanced == 0

    @property
    def walks(self) -> int:
        """Number of components that have arcs."""
        return self.components - self.isolated


class Storage(NamedTuple):
    """The size of compressed sparse rows, compared with a dense matrix.

    A dense m x n matrix has m n numbers. With e entries, compressed sparse rows have 2 e + m + 1 numbers: values,
    columns, and the beginnings of rows. For a graph, m and n are the number of vertices, and e is the number of arcs.
    Compressed sparse rows are smaller if ``m n > 2 e + m + 1``.

    The rows of an unweighted graph have no values: e + n + 1 numbers. F. Cherny [1]_ gives v e > e + v + 1 as the
    criterion for v vertices and e arcs: the arcs take the place of the columns. But the matrix that such rows stand for
    has a column for each vertex, as its column numbers are heads of arcs. So the criterion here is
    ``n n > e + n + 1``. In bytes, an entry of the dense matrix is a bool.

    .. [1] "Walking the Euler Path: Intro", viralfsharp.com, September 2016.
    """

    sparse_numbers: int
    dense_numbers: int
    sparse_bytes: int
    dense_bytes: int

    @property
    def sparse_pays(self) -> bool:
        return self.dense_numbers > self.sparse_numbers


def graph_storage(graph: Graph) -> Storage:
    """Return the size of a graph's rows in memory, and of its dense matrix, without reading the graph."""
    n, m, head = graph.n, graph.m, 4 if graph.n <= 2**31 else 8
    if not graph.weighted:
        return Storage(m + n + 1, n * n, 8 * (n + 1) + head * m, n * n)
    weight = graph.weight_dtype.itemsize
    return Storage(2 * m + n + 1, n * n, 8 * (n + 1) + (head + weight) * m, weight * n * n)


def graph_structure(graph: Graph | str | os.PathLike[str]) -> Structure:
    """Return degrees, components and balance; reads all arcs, with 12 bytes of memory for each arc.

    Examples
    --------
    >>> tilepath.graph_structure(graph).components
    1
    """
    graph = open_graph(graph)
    outgoing, incoming = out_and_in_degrees(graph)
    components = component_numbers(graph)
    surplus = outgoing % 2 if not graph.directed else outgoing - incoming
    unbalanced = np.flatnonzero(surplus)
    return Structure(
        outgoing=_spread(outgoing),
        incoming=_spread(incoming),
        sources=int(((incoming == 0) & (outgoing > 0)).sum()),
        sinks=int(((outgoing == 0) & (incoming > 0)).sum()),
        isolated=int(((outgoing == 0) & (incoming == 0)).sum()),
        components=int(components.max(initial=-1)) + 1,
        unbalanced=len(unbalanced),
        path=len(unbalanced) == 2 and bool((np.abs(surplus[unbalanced]) == 1).all()),
    )


def out_and_in_degrees(graph: Graph | ReversedGraph, device: str = "auto") -> tuple[np.ndarray, np.ndarray]:
    """Return the out-degree and the in-degree of every vertex, int64 (n) each; for `device` see `write_reverse`."""
    indptr, indices = rows_on(graph, device)
    if not is_cupy(indptr):
        return np.diff(indptr), np.bincount(indices, minlength=graph.n)
    from gpuops import degrees  # imported here, as importing Numba takes a second

    found = degrees(indptr, indices, check=False)
    return on_host(found.outgoing), on_host(found.incoming)


def component_numbers(graph: Graph, device: str = "auto") -> np.ndarray:
    """Return the weak component of every vertex, (n); components are numbered in the order of their lowest vertices.

    For `device` see `write_reverse`.
    """
    from gpuops import weak_components  # imported here, as importing Numba takes a second

    return on_host(weak_components(*rows_on(graph, device), compact=True, check=False))


def write_degrees(graph: Graph, out: str | os.PathLike[str], overwrite: bool = False, device: str = "auto") -> int:
    """Write a table of all vertices, with the columns `vertex`, `out` and `in`; returns the number of rows."""
    check_output(out, overwrite)
    outgoing, incoming = out_and_in_degrees(graph, device)
    table = {"vertex": vertex_names(graph), "out": pa.array(outgoing), "in": pa.array(incoming)}
    write_table(pa.table(table), out, overwrite)
    return graph.n


def write_components(graph: Graph, out: str | os.PathLike[str], overwrite: bool = False, device: str = "auto") -> int:
    """Write a table of all vertices, with the columns `vertex` and `component`; returns the number of rows."""
    check_output(out, overwrite)
    table = {"vertex": vertex_names(graph), "component": pa.array(component_numbers(graph, device))}
    write_table(pa.table(table), out, overwrite)
    return graph.n


def degree_histogram(outgoing: np.ndarray, incoming: np.ndarray, lines: int = 24) -> list[tuple[int, int, int, int]]:
    """Return a histogram of degrees, as (least degree, greatest degree, vertices by out-degree, vertices by in-degree).

    If at most `lines` different degrees occur, each degree has a line; else the ranges are 0, 1, 2, 3 to 4, 5 to 8 and
    so on.
    """
    occurring = np.union1d(outgoing, incoming)
    if len(occurring) <= lines:
        bounds = [(int(degree), int(degree)) for degree in occurring]
    else:
        top = int(occurring[-1])
        bounds = [(0, 0), (1, 1)] + [((1 << k) + 1, 2 << k) for k in range(top.bit_length()) if (1 << k) < top]
    counted = []
    for least, most in bounds:
        leaving, entering = (int(((d >= least) & (d <= most)).sum()) for d in (outgoing, incoming))
        if leaving or entering:
            counted.append((least, most, leaving, entering))
    return counted


def _spread(degrees: np.ndarray) -> Spread:
    if not degrees.size:
        return Spread(0, 0.0, 0)
    return Spread(int(degrees.min()), float(degrees.mean()), int(degrees.max()))
