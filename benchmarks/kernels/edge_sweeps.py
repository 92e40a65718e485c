"""Bellman-Ford by sweeps over the edges of an undirected graph, in the four variants published for a GTX Titan.

A sweep relaxes both arcs of every edge. Sweeps are repeated until a sweep changes no distance. The variants combine two
choices:

read-only path   distances are read through a second pointer, which the kernel declares as read-only
segment sort     distances are divided into segments, and edges are sorted by the segment of the end, then by the
                 segment of the start. Threads that run together then access few segments, which stay in the cache.
                 Without the segment sort, edges are sorted by start, then by end.

As in the article, threads store distances in a race. Two more variants lower distances by atomicMin instead: the first
and the last of the four. All edges that R-MAT draws are kept, loops and parallel edges too, so that a graph has 32 n
arcs as in the article's table.

This is the host side of benchmarks/kernels/edge_sweep.cu, which names the article. On a CPU, one thread does the same
sweeps, without a read-only path. The graph is R-MAT as pipelines.generators makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from benchmarks.harness import KERNELS
from gpuops._cuda import Program
from gpuops.rmat import rmat_edges as drawn_edges
from pipelines.generators import RMat

THREADS = 256
SWEEPS = ("sweep", "sweep_read_only", "sweep_atomic", "sweep_atomic_read_only")
PROGRAMS = {
    "float32": Program("edge_sweep.cu", SWEEPS, ("NUMBER=float",), threads=THREADS, folder=KERNELS),
    "float64": Program("edge_sweep.cu", SWEEPS, ("NUMBER=double",), threads=THREADS, folder=KERNELS),
}

SEGMENTS = tuple(1 << p for p in range(12, 22))  # distances in a segment
FEWEST = 4  # fewest segments worth a sort; with one segment, the order of the edges would not change


@dataclass(frozen=True)
class Variant:
    name: str
    read_only: bool
    segment_sort: bool
    atomic: bool = False

    @property
    def entry(self) -> str:
        return f"sweep{'_atomic' * self.atomic}{'_read_only' * self.read_only}"


PUBLISHED = (
    Variant("plain", False, False),
    Variant("read-only path", True, False),
    Variant("segment sort", False, True),
    Variant("both", True, True),
)
VARIANTS = (*PUBLISHED, Variant("plain, atomic", False, False, True), Variant("both, atomic", True, True, True))
CPU_VARIANTS = (VARIANTS[0], VARIANTS[2])


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of an undirected graph of n vertices, each once; NumPy or CuPy.

    starts, ends : (edges,) int32, a start is not above its end
    weights : (edges,) float32 or float64, not negative
    """

    n: int
    starts: Any
    ends: Any
    weights: Any

    def of_dtype(self, dtype: str) -> Edges:
        return Edges(self.n, self.starts, self.ends, self.weights.astype(dtype))

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.ends.nbytes + self.weights.nbytes)

    def in_order(self, order: Any) -> Edges:
        return Edges(self.n, self.starts[order], self.ends[order], self.weights[order])


def rmat_edges(xp: Any, graph: RMat) -> Edges:
    """Make all edges that an R-MAT graph draws, loops and parallel edges too, sorted by start, then by end."""
    tails, heads, weights = graph.arcs() if xp is np else drawn_edges(graph.drawing(), 0, graph.ids)
    starts, ends = xp.minimum(tails, heads).astype(np.int32), xp.maximum(tails, heads).astype(np.int32)
    order = _stable_order(xp, starts.astype(np.int64) * graph.n + ends)
    return Edges(graph.n, starts, ends, weights).in_order(order)


def distinct_arcs(edges: Edges) -> int:
    """Count the arcs without loops and without parallel arcs; edges are sorted by start, then by end."""
    starts, ends = edges.starts, edges.ends
    counted = starts != ends
    counted[1:] &= (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
    return 2 * int(counted.sum())


def _stable_order(xp: Any, keys: Any) -> Any:
    return np.argsort(keys, kind="stable") if xp is np else xp.argsort(keys)  # CuPy's sorts are stable


def csr_of(xp: Any, edges: Edges) -> tuple[Any, Any, Any]:
    """Return both arcs of every edge, in compressed sparse rows."""
    tails = xp.concatenate((edges.starts, edges.ends))
    order = _stable_order(xp, tails)
    indptr = xp.zeros(edges.n + 1, np.int64)
    indptr[1:] = xp.cumsum(xp.bincount(tails, minlength=edges.n))
    del tails
    heads = xp.concatenate((edges.ends, edges.starts))[order]
    return indptr, heads, xp.concatenate((edges.weights, edges.weights))[order]


def segment_lengths(n: int) -> tuple[int, ...]:
    """Return the lengths of segments to try for n distances: all that give at least FEWEST segments."""
    return tuple(length for length in SEGMENTS if length * FEWEST <= n) or (max(1, n // FEWEST),)


def sorted_by_segments(xp: Any, edges: Edges, segment: int) -> Edges:
    """Return `edges` sorted by the segment of the end, then by the segment of the start."""
    segments = -(-edges.n // segment)
    key = (edges.ends // segment).astype(np.int64) * segments + edges.starts // segment
    return edges.in_order(_stable_order(xp, key))


def shortest_by_sweeps(xp: Any, edges: Edges, source: int, variant: Variant) -> tuple[Any, int]:
    """Return the distances (n,) from `source`, and the number of sweeps with the last sweep, which finds no change."""
    distances = xp.empty((edges.n,), edges.weights.dtype)
    distances[...] = np.inf
    distances[source] = 0
    if xp is np:
        return distances, _sweeps_on_cpu(edges.starts, edges.ends, edges.weights, distances)
    count = len(edges.starts)
    changed = xp.empty((1,), np.int32)
    changed[...] = 0
    names = (distances, distances) if variant.read_only else (distances,)
    sweeps = 0
    while count:
        sweeps += 1
        arguments = (edges.starts, edges.ends, edges.weights, np.int64(count), *names, changed, np.int32(sweeps))
        PROGRAMS[edges.weights.dtype.name].launch(variant.entry, -(-count // THREADS), arguments)
        if int(changed[0]) != sweeps:
            break
    return distances, sweeps


@njit(nogil=True, cache=True)
def _sweeps_on_cpu(starts, ends, weights, distances):
    sweeps, changed = 0, True
    while changed:
        changed = False
        sweeps += 1
        for edge in range(starts.size):
            start, end, weight = starts[edge], ends[edge], weights[edge]
            if distances[end] + weight < distances[start]:
                distances[start] = distances[end] + weight
                changed = True
            elif distances[start] + weight < distances[end]:
                distances[end] = distances[start] + weight
                changed = True
    return sweeps
