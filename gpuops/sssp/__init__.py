"""Shortest paths from given sources, in a graph that `search_graph` laid out.

    graph = search_graph(indptr, indices, weights)
    distances = shortest_distances(graph, [source])
    predecessors = shortest_path_tree(graph, distances, [source])

The distance of v is the least length of all paths from the sources to v. The length of a path is added up arc by arc
from the source on, and rounded after every addition. Rounded sums are monotone, so relaxing arcs in any order, until no
arc improves a distance, yields exactly this distance. NumPy and CuPy therefore return the same bits, and so does a
search of a graph cut into pieces (`improve_distances`).

Paths may begin at a closed vertex (``through`` False), but no path passes through it. So a closed source relaxes its
arcs at the distance at which paths begin there, even if the source is nearer from another source.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuops._halves import half_of, half_on
from gpuops.arrays import contiguous, is_cupy, like, on_host
from gpuops.csr import check_vertices
from gpuops.errors import NegativeCycleError
from gpuops.numbers import outside_infinity
from gpuops.sssp.graph_layout import SearchGraph


def shortest_distances(
    graph: SearchGraph, sources: Any, *, starts: Any = None, cutoff: float | None = None, targets: Any = None
) -> Any:
    """Return the shortest distance of each vertex from the nearest of some sources.

    Parameters
    ----------
    graph : SearchGraph
        n vertices; NumPy or CuPy.
    sources : sequence of int
        One vertex, or several that count as one. They may be closed.
    starts : number or sequence of numbers, optional
        The distance at which paths begin at each source; 0 if not given.
    cutoff : float, optional
        Vertices farther than this count as unreachable. Weights must not be negative.
    targets : sequence of int, optional
        Vertices farther than the farthest target that can be reached (within the cutoff) count as unreachable. A search
        on a GPU ends once the distances of all targets are final.

    Returns
    -------
    (n,) array
        Of the library and dtype of `graph`, in the original numbering; unreachable is +inf, or 2^31 - 1 for int32. On a
        GPU, a search with floats that are not negative returns before the device is done, like a function of CuPy.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached from the sources; with its vertices in travel order, and its weight.
    OverflowError
        An int32 distance would reach 2^31 - 1.
    ValueError
        A source is not a vertex, a start is not finite, or there is a cutoff and a negative weight.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> graph = gpuops.search_graph(indptr, indices, weights)
    >>> gpuops.shortest_distances(graph, [0])
    array([0, 3, 4], dtype=int32)
    """
    vertices = check_vertices(sources, graph.n)
    begins = _starts(graph, vertices, starts)
    limit = _limit(graph, cutoff)
    aims = None if targets is None else check_vertices(targets, graph.n, "target")
    with _cycles_in_original_numbers(graph):
        distances = half_of("sssp.sssp", graph.weights).search(graph, vertices, begins, limit, aims)
    if graph.negative:
        _refuse_cycles_through_closed(graph, distances, vertices, begins)
    return distances


def improve_distances(graph: SearchGraph, distances: Any, pending: Any = None) -> int:
    """Relax arcs, in place, until no arc out of an open vertex improves its head: the core of a search.

    All arrays are in the *internal* numbering, ``x[graph.order]`` for an array x in the original numbering.

    Parameters
    ----------
    graph : SearchGraph
    distances : (n,) array
        Upper bounds, of the graph's dtype and contiguous; unreachable is +inf, or 2^31 - 1 for int32. Changed in place.
    pending : (n,) array of bool, optional
        The vertices whose arcs are relaxed first; None: all. Pass it if you know that the arcs of every other vertex
        improve no distance yet. Closed vertices relax no arcs here: for paths that begin at a closed vertex, first
        lower the distances of its heads.

    Returns
    -------
    int
        Number of rounds.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached; its vertices are in the original numbering.
    OverflowError
        An int32 distance would reach 2^31 - 1.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")  # of the arcs 0-1, 0-2, 1-2, 2-0
    >>> graph = gpuops.search_graph(indptr, indices, weights)
    >>> distances = np.array([0, 2**31 - 1, 2**31 - 1], "int32")[graph.order]
    >>> rounds = gpuops.improve_distances(graph, distances)
    >>> distances[np.argsort(graph.order)]  # in the original numbering
    array([0, 3, 4], dtype=int32)
    """
    _check_row(graph, "distances", distances, graph.dtype)
    if not distances.flags.c_contiguous:
        raise ValueError("distances are changed in place and must be contiguous; pass a copy that is")
    if pending is not None:
        _check_row(graph, "pending", pending, np.dtype(bool))
    if graph.through is not None:
        reached = distances != outside_infinity(graph.dtype)
        pending = graph.through & (reached if pending is None else pending)
    with _cycles_in_original_numbers(graph):
        return half_of("sssp.sssp", graph.weights).improve(graph, distances, pending)


def shortest_path_tree(graph: SearchGraph, distances: Any, sources: Any, *, starts: Any = None) -> Any:
    """Return a predecessor for each vertex, on a shortest path from the sources.

    An arc (u, v) is tight if d(u) plus its weight, added in the dtype, equals d(v) to the bit. Tight arcs from nearer
    vertices cannot form cycles, and a single pass finds such an arc for most vertices. Other vertices have no such arc,
    because weights are zero or too small to change a sum. And with negative weights a nearer vertex need not come first
    on a path. In both cases a breadth-first search over tight arcs finds the predecessors.

    Parameters
    ----------
    graph : SearchGraph
    distances : (n,) array
        As `shortest_distances` or `batched_shortest_distances` returns them, with or without a cutoff and targets.
    sources : sequence of int
        Sources may be unreached.
    starts : number or sequence of numbers, optional
        As for `shortest_distances`. A source that is nearer than its start has a predecessor. If not given, no source
        has a predecessor: paths begin at each source at its distance.

    Returns
    -------
    (n,) array of int32
        In the original numbering; -1 at sources and unreachable vertices. The predecessors form a forest whose roots
        are sources. If a closed source has a predecessor (see `starts`), paths from the closed source begin there,
        although the chain of predecessors goes on.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> graph = gpuops.search_graph(indptr, indices, weights)
    >>> gpuops.shortest_path_tree(graph, gpuops.shortest_distances(graph, [0]), [0])
    array([-1,  0,  1], dtype=int32)
    """
    vertices = check_vertices(sources, graph.n)
    _check_row(graph, "distances", distances, graph.dtype)
    if is_cupy(distances) and graph.through is None:
        begins = None if starts is None else _starts(graph, vertices, starts)
        return half_on("sssp.sssp", gpu=True).tree_from_sources(graph, contiguous(distances), vertices, begins)
    sources = like(graph.rank, vertices)
    if starts is None:
        begins = distances[sources]
    else:
        begins = like(distances, _starts(graph, vertices, starts))
    internal, places = _gather(distances, graph.order), graph.rank[sources]
    roots = _empty(graph, (graph.n,), np.dtype(bool))
    roots[...] = False
    roots[places[internal[places] == begins]] = True
    roots &= internal != outside_infinity(graph.dtype)
    first = [(head, tail) for head, tail in _first_arcs(graph, internal, places, begins) if not bool(roots[head])]
    for head, _ in first:
        roots[head] |= graph.through[head]
    predecessors = half_of("sssp.sssp", graph.weights).tree(graph, internal, roots)
    for head, tail in first:
        if int(predecessors[head]) < 0:
            predecessors[head] = tail
    original = _gather(graph.order, predecessors)  # also for -1, which is corrected below
    original[predecessors < 0] = -1
    return _gather(original, graph.rank)


def batched_shortest_distances(graph: SearchGraph, sources: Any) -> Any:
    """Return the shortest distances from each of many sources, by searches that share the reads of arcs.

    Parameters
    ----------
    graph : SearchGraph
        n vertices. Searches are separate with negative weights, and on a CPU if vertices have few arcs; each thread of
        a CPU then runs one search at a time.
    sources : sequence of S int

    Returns
    -------
    (S, n) array
        A row for each source, as `shortest_distances` would return it.

    Raises
    ------
    NegativeCycleError, OverflowError, ValueError
        As for `shortest_distances`.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")
    >>> graph = gpuops.search_graph(indptr, indices, weights)
    >>> gpuops.batched_shortest_distances(graph, [0, 1])
    array([[0, 3, 4],
           [3, 0, 1]], dtype=int32)
    """
    vertices = check_vertices(sources, graph.n)
    half = half_of("sssp.sssp", graph.weights)
    if half.shares_reads(graph):
        return half.batch(graph, vertices)
    result = _empty(graph, (len(vertices), graph.n), graph.dtype)

    def search(number: int) -> None:
        result[number] = shortest_distances(graph, vertices[number : number + 1])

    half.one_by_one(search, len(vertices))
    return result


# --- Arguments --------------------------------------------------------------------------------------------------------


def _starts(graph: SearchGraph, vertices: np.ndarray, starts: Any) -> np.ndarray:
    """Return the distance at which paths begin at each source; if a source is named twice, its least start."""
    if starts is None:
        return np.zeros(len(vertices), graph.dtype)
    values = np.asarray(on_host(starts))
    if values.ndim and values.shape != vertices.shape:
        raise ValueError(f"there are {len(vertices)} sources, but starts of shape {values.shape}; give one per source")
    values = np.broadcast_to(values, vertices.shape)
    if values.size and not (np.isfinite(values).all() and np.abs(values).max() < np.float64(_largest(graph.dtype))):
        raise ValueError(f"starts must be finite {graph.dtype} numbers")
    begins = values.astype(graph.dtype) + graph.dtype.type(0)  # +0.0 for -0.0
    if graph.dtype.kind != "f" and not np.array_equal(begins, values):
        raise ValueError("starts have fractions, which int32 distances cannot have")
    if len(vertices) == 1:
        return begins
    order = np.argsort(begins, kind="stable")
    _, first, same = np.unique(vertices[order], return_index=True, return_inverse=True)
    least = np.empty_like(begins)
    least[order] = begins[order][first][same]
    return least


def _largest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)


def _limit(graph: SearchGraph, cutoff: float | None) -> Any:
    """Return the greatest distance within the cutoff, in the dtype of the distances."""
    if cutoff is None:
        return None
    if graph.negative:
        raise ValueError("with negative weights a path may leave the cutoff and come back; search without a cutoff")
    if math.isnan(cutoff):
        raise ValueError("the cutoff is NaN; give a distance")
    if graph.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return graph.dtype.type(cutoff)
    limits = np.iinfo(graph.dtype)
    return graph.dtype.type(math.floor(min(max(cutoff, limits.min), limits.max - 1)))


def _check_row(graph: SearchGraph, name: str, row: Any, dtype: np.dtype) -> None:
    if type(row) is not type(graph.weights):
        raise TypeError(f"{name} are a {type(row).__name__}, but the graph's arrays are {type(graph.weights).__name__}")
    if row.dtype != dtype or row.shape != (graph.n,):
        raise ValueError(f"{name} are {row.dtype} of shape {row.shape}; the graph needs {dtype} of ({graph.n},)")


def _gather(values: Any, places: Any) -> Any:
    return values[places] if is_cupy(values) else half_on("csr.csr", gpu=False).gather(values, places)


def _empty(graph: SearchGraph, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if not is_cupy(graph.weights):
        return np.empty(shape, dtype)
    import cupy

    with graph.weights.device:
        return cupy.empty(shape, dtype)


# --- Searches ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _cycles_in_original_numbers(graph: SearchGraph) -> Iterator[None]:
    try:
        yield
    except NegativeCycleError as error:
        vertices = [int(graph.order[v]) for v in error.vertices]
        raise NegativeCycleError(str(error), vertices, error.weight) from None


def _first_arcs(graph: SearchGraph, distances: Any, places: Any, begins: Any) -> list[tuple[int, int]]:
    """Return the arcs (head, tail) that are tight from the start of a closed source, but not from its distance.

    Only a closed source that is nearer than its start has such arcs. Vertices are in the internal numbering.
    """
    if graph.through is None:
        return []
    found: dict[int, int] = {}
    displaced = ~graph.through[places] & (distances[places] < begins)
    wide = np.int64 if graph.dtype.kind == "i" else graph.dtype
    for place, start in zip(places[displaced].tolist(), begins[displaced], strict=True):
        row = slice(int(graph.indptr[place]), int(graph.indptr[place + 1]))
        heads = graph.indices[row]
        tight = graph.weights[row].astype(wide) + start == distances[heads]
        for head in heads[tight & (distances[heads] != outside_infinity(graph.dtype))].tolist():
            found.setdefault(head, place)
    return list(found.items())


def _refuse_cycles_through_closed(graph: SearchGraph, distances: Any, sources: np.ndarray, begins: np.ndarray) -> None:
    """Raise NegativeCycleError if a path from a closed source comes back to it at less than its start.

    The search ends, because no path passes through the closed source, but the path is a negative cycle.
    """
    if graph.through is None:
        return
    on_device = like(graph.rank, sources)
    displaced = (distances[on_device] < like(distances, begins)) & ~graph.through[graph.rank[on_device]]
    if not bool(displaced.any()):
        return
    predecessors = shortest_path_tree(graph, distances, sources, starts=begins)
    for source in sources[on_host(displaced)].tolist():
        way, seen = [source], {source}
        while (before := int(predecessors[way[-1]])) >= 0 and before not in seen:
            way.append(before)
            seen.add(before)
        if before == source:
            weight = distances[source].item() - begins[sources == source][0].item()
            raise NegativeCycleError(f"negative cycle of {len(way)} vertices and weight {weight:g}", way[::-1], weight)
