"""What a graph is made of: degrees, sources and sinks, weak components, balance, and what its rows take."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.answers.tables import check_output, vertex_names, write_table
from pipelines.stores import Graph
from pipelines.stores.neighbours import ReversedGraph

COUNTED = 1 << 24  # vertices and arcs of a graph whose structure is found without being asked


class Spread(NamedTuple):
    """Least, mean and largest of some degrees."""

    least: int
    mean: float
    largest: int


@dataclass(frozen=True)
class Structure:
    """What all arcs of a graph tell; `graph_structure` finds it.

    Attributes
    ----------
    outgoing, incoming : Spread
        Arcs out of and into a vertex; all 0 where there is no vertex.
    sources, sinks, isolated : int
        How many vertices have arcs out only, arcs in only, and none.
    components : int
        Weak components: what arcs join, whatever their directions. An isolated vertex is one.
    unbalanced : int
        Vertices with unequal numbers of arcs in and out; of an undirected graph, with an odd degree.
    path : bool
        Do two unbalanced vertices allow for an Euler path?
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
        """Is there an Euler circuit for each component that has arcs?"""
        return self.unbalanced == 0

    @property
    def walks(self) -> int:
        """Components that have arcs."""
        return self.components - self.isolated


class Storage(NamedTuple):
    """What compressed sparse rows take beside a dense matrix.

    An m x n matrix with e entries is m n numbers, or 2 e + m + 1 in compressed sparse rows: values, columns, and where
    rows begin. Of a graph, m and n are its vertices and e its arcs. The rows pay off where ``m n > 2 e + m + 1``.
    """

    sparse_numbers: int
    dense_numbers: int
    sparse_bytes: int
    dense_bytes: int

    @property
    def sparse_pays(self) -> bool:
        return self.dense_numbers > self.sparse_numbers


def graph_storage(graph: Graph) -> Storage:
    """What the rows of a graph take in memory, and what the matrix of its weights would; reads no array."""
    n, m, weight = graph.n, graph.m, graph.weight_dtype.itemsize
    head = 4 if n <= 2**31 else 8
    return Storage(2 * m + n + 1, n * n, 8 * (n + 1) + (head + weight) * m, weight * n * n)


def graph_structure(graph: Graph) -> Structure:
    """Degrees, components and balance; reads all arcs, 12 bytes of memory for each."""
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


def out_and_in_degrees(graph: Graph | ReversedGraph) -> tuple[np.ndarray, np.ndarray]:
    """Arcs out of and into every vertex, int64 (n) each."""
    return np.diff(graph.indptr()), np.bincount(graph.indices(), minlength=graph.n)


def component_numbers(graph: Graph) -> np.ndarray:
    """The weak component of every vertex, numbered from 0 in the order of their least vertices, (n)."""
    from gpuops import weak_components  # Numba takes a second

    return weak_components(graph.indptr(), graph.indices(), compact=True, check=False)


def write_degrees(graph: Graph, out: str | os.PathLike[str], overwrite: bool = False) -> int:
    """Write a table of all vertices, with the columns `vertex`, `out` and `in`; returns how many rows."""
    check_output(out, overwrite)
    outgoing, incoming = out_and_in_degrees(graph)
    table = {"vertex": vertex_names(graph), "out": pa.array(outgoing), "in": pa.array(incoming)}
    write_table(pa.table(table), out, overwrite)
    return graph.n


def write_components(graph: Graph, out: str | os.PathLike[str], overwrite: bool = False) -> int:
    """Write a table of all vertices, with the columns `vertex` and `component`; returns how many rows."""
    check_output(out, overwrite)
    write_table(
        pa.table({"vertex": vertex_names(graph), "component": pa.array(component_numbers(graph))}), out, overwrite
    )
    return graph.n


def degree_histogram(outgoing: np.ndarray, incoming: np.ndarray, lines: int = 24) -> list[tuple[int, int, int, int]]:
    """How many vertices have a degree from `least` to `most`: (least, most, vertices by out, vertices by in).

    Every degree that occurs has a line of its own where there are at most `lines` of them; else the ranges are 0, 1, 2,
    3 to 4, 5 to 8 and so on.
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
