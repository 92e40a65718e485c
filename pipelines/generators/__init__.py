"""Generated graphs, for tests, benchmarks and plans.

An edge is a function of the seed and the number of the edge (`counter_random`). So a graph is the same however it is
cut into pieces, and wherever the pieces are generated. A graph is first a description; then it is stored
(`tilepath.generate`), laid out in memory (`csr`), or generated in ranges of edges (`arcs`)::

    generate(RMat(20, seed=1), "rmat20.zarr")
    indptr, indices, weights = csr(Grid(2048, weights="integers"))
    tails, heads, weights = UniformRandom(1000).arcs(start=500, stop=600)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, no_type_check

import numba
import numpy as np
from numba import njit

from gpuops.options import whole
from pipelines.generators.euler_graphs import EulerGraph, ShallowEulerGraph, euler_of_degrees
from pipelines.generators.grids import Grid, Road
from pipelines.generators.random_graphs import Dag, NegativeCycle, RMat, UniformRandom
from pipelines.generators.synthetic import Piece, SyntheticGraph
from pipelines.workers.ahead import in_turn

__all__ = [
    "KINDS", "Dag", "EulerGraph", "Grid", "NegativeCycle", "RMat", "Road", "ShallowEulerGraph", "SyntheticGraph",
    "UniformRandom", "csr", "euler_of_degrees", "synthetic_graph",
]  # fmt: skip

KINDS: dict[str, type[SyntheticGraph]] = {
    "rmat": RMat,
    "grid": Grid,
    "road": Road,
    "random": UniformRandom,
    "dag": Dag,
    "negative-cycle": NegativeCycle,
    "euler": EulerGraph,
    "euler-shallow": ShallowEulerGraph,
}
PIECE = 1 << 19  # edges generated at a time


def synthetic_graph(kind: str, *, scale: int | None = None, **options: Any) -> Any:
    """Return the description of a graph to generate, by the name of its kind.

    Parameters
    ----------
    kind : {"rmat", "grid", "road", "random", "dag", "negative-cycle", "euler", "euler-shallow"}
    scale : the graph has 2^scale vertices; a grid has an equal number of rows and columns, or twice the columns
    options : attributes of the kind's class

    Raises
    ------
    ValueError
        The kind does not exist, does not have an option or needs one, or a value is out of range.

    Examples
    --------
    >>> tilepath.synthetic_graph("grid", rows=5, columns=6).n
    30
    """
    if kind not in KINDS:
        raise ValueError(f"there is no kind of graph called {kind!r}; choose one of {', '.join(KINDS)}")
    known = [item.name for item in fields(KINDS[kind])]
    for option in options.keys() - set(known):
        raise ValueError(f"{option} is no option of a graph of kind {kind}; its options are {'=, '.join(known)}=")
    sizes = [name for name in ("n", "vertices", "rows", "columns") if name in known]
    if scale is not None:
        whole("scale", scale, 0, 40)
        for option in options.keys() & set(sizes):
            raise ValueError(
                f"scale (--scale) and {option}={options[option]} both set the number of vertices; give only one of them"
            )
        if not sizes:
            options["scale"] = scale
        elif "n" in sizes:
            options["n"] = 1 << scale
        elif "vertices" in sizes:
            options["vertices"] = (1 << scale) + 1  # the graph has one vertex less than `vertices`
        else:
            options |= {"rows": 1 << scale // 2, "columns": 1 << scale - scale // 2}
    elif not options.keys() & {"n", "vertices", "rows"}:
        raise ValueError(
            f"the number of vertices is missing; give {' or '.join(['scale=', *(f'{name}=' for name in sizes[:1])])}"
        )
    return KINDS[kind](**options)


def csr(graph: SyntheticGraph, *, piece: int = PIECE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generate a graph in memory, in compressed sparse rows.

    The edges are generated twice, the first time to count them, so memory holds only the result and a few pieces. Arcs
    within a row are in the order of the edges' numbers. An undirected edge is stored as two arcs.

    Returns
    -------
    indptr : int64 (n + 1)
    indices : int32 (m), int64 from 2^31 vertices on
    weights : (m)
    """
    indptr = np.zeros(graph.n + 1, dtype=np.int64)
    for tails, heads, _ in edge_pieces(graph, piece):
        _count(tails, heads, graph.symmetric, indptr[1:])
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], dtype=np.int32 if graph.n <= 2**31 else np.int64)
    weights = np.empty(indptr[-1], dtype=graph.dtype)
    place = indptr[:-1].copy()
    for edges in edge_pieces(graph, piece):
        _scatter(*edges, graph.symmetric, place, indices, weights)
    return indptr, indices, weights


def edge_pieces(graph: SyntheticGraph, size: int = PIECE, start: int = 0, stop: int | None = None) -> Iterator[Piece]:
    """Yield the edges `start` to `stop` (excluded) in order, in pieces of `size`; threads generate pieces ahead."""
    stop = graph.ids if stop is None else stop
    firsts = range(start, stop, size)
    return in_turn(lambda first: graph.arcs(first, min(first + size, stop)), firsts, numba.config.NUMBA_NUM_THREADS)


@njit(nogil=True, cache=True)
@no_type_check
def _count(tails, heads, both, degrees):
    for i in range(tails.size):
        degrees[tails[i]] += 1
        if both:
            degrees[heads[i]] += 1


@njit(nogil=True, cache=True)
@no_type_check
def _scatter(tails, heads, piece_weights, both, place, indices, weights):
    for i in range(tails.size):
        u, v = tails[i], heads[i]
        indices[place[u]], weights[place[u]] = v, piece_weights[i]
        place[u] += 1
        if both:
            indices[place[v]], weights[place[v]] = u, piece_weights[i]
            place[v] += 1
