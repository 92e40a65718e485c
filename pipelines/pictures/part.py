"""The part of a graph that a picture shows: all vertices, or a sample of the vertices around one vertex."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from gpuops import csr
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted

MOST_VERTICES, MOST_ARCS = 2_000, 20_000  # largest picture of a graph without coordinates
MOST_ON_MAP, MOST_ARCS_ON_MAP = 200_000, 800_000  # most vertices and arcs on a map


@dataclass(frozen=True)
class Part:
    """Some vertices of a graph, and the arcs among them in compressed sparse rows.

    Attributes
    ----------
    vertices : (k) vertices of the graph, ascending
    arcs : (l) positions of the arcs in the store, ascending
    indptr, indices : the arcs in compressed sparse rows; vertices are numbered by their positions in `vertices`
    about : for a sample, a text for the title: its size and its middle
    """

    vertices: np.ndarray
    arcs: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    about: str = ""

    @property
    def tails(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.vertices)), np.diff(self.indptr))


def part_of(graph: Graph, *, sample: int | None, around: int | None, seed: int, on_map: bool) -> Part:
    """Return the part of a graph to draw.

    Parameters
    ----------
    sample : most vertices of a sample; by default all vertices are drawn
    around : middle of the sample; by default a vertex drawn by `seed`
    on_map : whether vertices have coordinates, so that a picture may have many more

    Raises
    ------
    ValueError
        The graph is too large for a picture, or `around` is given without a sample.
    """
    if sample is None:
        if around is not None:
            raise ValueError("around (--around) is the middle of a sample; give its size as well (sample, --sample)")
        _refuse_large(graph, on_map)
        return Part(np.arange(graph.n), np.arange(graph.m), graph.indptr(), graph.indices())
    if sample < 1 or sample > MOST_VERTICES:
        raise ValueError(
            f"a sample of {sample:,} vertices cannot be drawn; take 1 to {MOST_VERTICES:,} (sample, --sample)"
        )
    if sample >= graph.n and around is None:
        return part_of(graph, sample=None, around=None, seed=seed, on_map=on_map)
    indptr, indices = graph.indptr(), graph.indices()
    first = int(np.random.default_rng(seed).integers(graph.n)) if around is None else around
    vertices = np.sort(np.fromiter(_nearest(graph, indptr, indices, first, sample), np.int64))
    where = np.full(graph.n, -1, np.int64)
    where[vertices] = np.arange(len(vertices))
    arcs = csr.in_ranges(indptr[vertices], indptr[vertices + 1])
    tails = np.repeat(np.arange(len(vertices)), indptr[vertices + 1] - indptr[vertices])
    heads = where[indices[arcs]]
    kept = heads >= 0
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails[kept], minlength=len(vertices)))])
    about = f"{len(vertices):,} of {counted(graph.n, 'vertex', 'vertices')}, around {graph.label(first)}"
    part = Part(vertices, arcs[kept], starts, heads[kept], about)
    if len(part.arcs) > MOST_ARCS:
        raise ValueError(
            f"{graph.path}: there are {len(part.arcs):,} arcs among {len(vertices):,} vertices; a picture shows up "
            f"to {MOST_ARCS:,}: take a smaller sample (--sample)"
        )
    return part


def _refuse_large(graph: Graph, on_map: bool) -> None:
    vertices, arcs = (MOST_ON_MAP, MOST_ARCS_ON_MAP) if on_map else (MOST_VERTICES, MOST_ARCS)
    cure = "draw a sample of its vertices (sample=100, --sample 100), around one that you name (around, --around)"
    if not on_map:
        cure += f"; or import the graph with coordinates (--coordinates), since a map shows up to {MOST_ON_MAP:,}"
    for count, most, what in (graph.n, vertices, "vertices"), (graph.m, arcs, "arcs"):
        if count > most:
            raise ValueError(f"{graph.path}: has {count:,} {what}; a picture shows up to {most:,}: {cure}")


def _nearest(graph: Graph, indptr: np.ndarray, indices: np.ndarray, first: int, count: int) -> list[int]:
    """Return the `count` vertices with the fewest arcs, in either direction, on a path to `first`.

    If too few vertices are connected with `first`, the search goes on from the next vertex that was not found.
    """
    turned = graph.reverse if graph.directed else graph
    back_starts, back = turned.indptr(), turned.indices()
    seen: dict[int, None] = {}
    start = first
    while len(seen) < min(count, graph.n):
        while start in seen:
            start = (start + 1) % graph.n
        seen[start] = None
        queue = deque([start])
        while queue and len(seen) < count:
            v = queue.popleft()
            room = count - len(seen)
            for starts, ends in ((indptr, indices), (back_starts, back)):
                for u in dict.fromkeys(ends[starts[v] : starts[v + 1]].tolist()):
                    if u not in seen and room:
                        seen[u] = None
                        queue.append(u)
                        room -= 1
    return list(seen)
