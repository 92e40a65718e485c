"""Shortest paths with the names, arguments and results of `scipy.sparse.csgraph`, by the operations of tilepath.

    from tilepath import csgraph           # instead of: from scipy.sparse import csgraph

`shortest_path`, `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson` are ours; every other name is SciPy's. All
five take two more keywords:

dtype : {"float64", "float32", "int32"}
    Of the distances; float64 as in SciPy. Whole numbers stay exact, or OverflowError is raised.
device : {"auto", "cpu", "gpu"}
    "auto" takes a GPU where CuPy finds one and there is enough to do.

What else differs is in `docs/doors.md`. SciPy is not needed for anything else: ``pip install 'tilepath[csgraph]'``.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import gpuops
from gpuops.numbers import outside_infinity
from tilepath.devices import DEVICES

try:
    import scipy.sparse.csgraph as _scipy
except ImportError as error:
    raise ImportError("tilepath.csgraph needs SciPy: pip install 'tilepath[csgraph]'") from error

from tilepath.csgraph.arcs import DTYPES, read_arcs, refuse_rounded
from tilepath.csgraph.engines import Question, solve

METHODS = ("auto", "FW", "D", "BF", "J")
_NOWHERE = -9999  # SciPy's predecessor of a vertex that has none


class NegativeCycleError(gpuops.NegativeCycleError, _scipy.NegativeCycleError):
    """There is a cycle of negative weight: `vertices` and `weight` are its own. SciPy's error, and that of gpuops."""


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
    *,
    dtype: Any = "float64",
    device: str = "auto",
) -> Any:
    """Shortest paths between vertices, by whichever method suits the graph.

    Parameters
    ----------
    csgraph : (N, N) array or sparse array
        Lengths of the arcs. A sparse or masked matrix has an arc for each entry that it stores, of length 0 too; in any
        other, 0 is no arc. Infinity and NaN are never arcs. Of parallel arcs in unsummed rows the shortest counts.
    method : {"auto", "FW", "D", "BF", "J"}
        "auto" takes Floyd-Warshall or searches, whichever takes less, and notices negative weights. The others call
        `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson`.
    directed : bool
        False: arcs may be travelled both ways, the shorter of two opposite ones counting.
    return_predecessors : bool
    unweighted : bool
        Every arc has the length 1.
    overwrite : bool
        Write all distances, with "FW" or "auto", into `csgraph` if it is a contiguous array of `dtype`.
    indices : array_like of int, optional
        Sources, of any shape; None: all vertices. Negative ones count from the end. Not with "FW".
    dtype : {"float64", "float32", "int32"}
        Of the distances.
    device : {"auto", "cpu", "gpu"}

    Returns
    -------
    distances : (*indices.shape, N) array of `dtype`
        Unreachable is +inf, or 2^31 - 1 for int32.
    predecessors : array of int32 of the same shape
        Only if asked for. -9999 at sources and where unreachable.

    Raises
    ------
    NegativeCycleError
        A subclass of SciPy's; of `gpuops.NegativeCycleError` too, with the vertices of the cycle.
    OverflowError
        Sums of whole numbers would be rounded, beyond 2^53 (float64) or 2^24 (float32), or do not fit int32.
    ValueError
        What is not a square matrix, -inf in a sparse one, fractions for int32, or sources that are not vertices.
    """
    if method not in METHODS:
        raise ValueError(f"unrecognized method {method!r}; choose one of {', '.join(METHODS)}")
    if method == "FW" and indices is not None:
        raise ValueError("Cannot specify indices with method == 'FW': it finds all rows; leave them out")
    target = csgraph if overwrite and method in ("auto", "FW") and indices is None else None
    return _rows(
        csgraph, directed, indices, return_predecessors, unweighted, dtype, device, method=method, target=target
    )


def floyd_warshall(
    csgraph: Any,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    *,
    dtype: Any = "float64",
    device: str = "auto",
) -> Any:
    """All shortest paths by blocked Floyd-Warshall; with predecessors, by searches from every vertex.

    Parameters, results and errors are those of `shortest_path`.
    """
    return shortest_path(
        csgraph, "FW", directed, return_predecessors, unweighted, overwrite, dtype=dtype, device=device
    )


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = math.inf,
    min_only: bool = False,
    *,
    dtype: Any = "float64",
    device: str = "auto",
) -> Any:
    """Shortest paths from given vertices, on the graph as it is stored.

    Parameters not named here, and errors, are those of `shortest_path`. Negative weights bring a warning, and distances
    that are right all the same.

    Parameters
    ----------
    limit : float
        Vertices farther than this are unreachable.
    min_only : bool
        Distances from the nearest of the sources.

    Returns
    -------
    distances, predecessors
        As `shortest_path`; with `min_only` of shape (N,).
    sources : (N,) array of int32
        Only with `min_only` and `return_predecessors`: the source nearest to each vertex, -9999 where unreachable.
    """
    limit = float(limit)
    if limit < 0:
        raise ValueError(f"limit must be >= 0, not {limit:g}")
    return _rows(
        csgraph, directed, indices, return_predecessors, unweighted, dtype, device, method="D",
        limit=limit, together=bool(min_only),
    )  # fmt: skip


def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    *,
    dtype: Any = "float64",
    device: str = "auto",
) -> Any:
    """Shortest paths from given vertices, weights being of any sign; only negative cycles they reach are errors.

    Parameters, results and errors are those of `shortest_path`.
    """
    return shortest_path(
        csgraph, "BF", directed, return_predecessors, unweighted, False, indices, dtype=dtype, device=device
    )


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    *,
    dtype: Any = "float64",
    device: str = "auto",
) -> Any:
    """Shortest paths from given vertices, weights being of any sign; any negative cycle is an error.

    Parameters, results and errors are those of `shortest_path`.
    """
    return shortest_path(
        csgraph, "J", directed, return_predecessors, unweighted, False, indices, dtype=dtype, device=device
    )


__all__ = sorted({*_scipy.__all__, "bellman_ford", "dijkstra", "floyd_warshall", "johnson", "shortest_path"})


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(_scipy, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _rows(
    csgraph: Any,
    directed: bool,
    indices: Any,
    return_predecessors: bool,
    unweighted: bool,
    dtype: Any,
    device: str,
    *,
    method: str,
    target: Any = None,
    **options: Any,
) -> Any:
    """What all functions do: read, ask, and give rows the shape of `indices`."""
    dtype = np.dtype(dtype)
    if dtype not in DTYPES:
        raise TypeError(f"dtype is {dtype}; distances are {', '.join(map(str, DTYPES))}")
    if device not in DEVICES:
        raise ValueError(f"device is {device!r}; pass one of {', '.join(map(repr, DEVICES))}")
    arcs = read_arcs(csgraph, directed, unweighted, dtype)
    sources = _sources(indices, arcs.n)
    if method == "D" and bool((arcs.weights < 0).any()):
        warnings.warn(
            "the graph has negative weights: distances are right all the same, but use johnson or bellman_ford",
            UserWarning,
            stacklevel=3,
        )
    question = Question(
        sources.reshape(-1),
        predecessors=bool(return_predecessors),
        everywhere=method not in ("D", "BF"),
        min_plus={"auto": None, "FW": True}.get(method, False),
        **options,
    )
    try:
        distances, trees = solve(arcs, question, device)
    except gpuops.NegativeCycleError as error:
        raise NegativeCycleError(_cycle(error), error.vertices, error.weight) from None
    refuse_rounded(arcs, distances)
    if question.together:
        distances = distances[0]
        if trees is None:
            return distances
        unreachable = distances == outside_infinity(dtype)
        nearest = _roots(trees[0])
        nearest[unreachable] = _NOWHERE
        return distances, _scipys(trees[0]), nearest
    shape = (*sources.shape, arcs.n)
    distances = distances.reshape(shape)
    if _is_writable(target, distances):
        target[...] = distances
        distances = target
    return (distances, _scipys(trees).reshape(shape)) if trees is not None else distances


def _sources(indices: Any, n: int) -> np.ndarray:
    if indices is None:
        return np.arange(n)
    given = np.asarray(indices)
    sources = given.astype(np.int64)
    if given.dtype.kind == "f" and not np.array_equal(sources, given):
        raise ValueError("indices have fractions; pass whole numbers of vertices")
    if sources.size and not (-n <= sources.min() and sources.max() < n):
        raise ValueError(f"indices out of range: vertices are 0 to {n - 1}, or count from the end down to -{n}")
    return np.where(sources < 0, sources + n, sources)


def _is_writable(target: Any, distances: np.ndarray) -> bool:
    """Is it an array that can take them as they are?"""
    return (
        type(target) is np.ndarray
        and target.dtype == distances.dtype
        and target.shape == distances.shape
        and target.flags.c_contiguous
        and target.flags.writeable
    )


def _scipys(predecessors: np.ndarray) -> np.ndarray:
    predecessors[predecessors < 0] = _NOWHERE
    return predecessors


def _roots(predecessors: np.ndarray) -> np.ndarray:
    """The root of each vertex in a forest, by leaps that double."""
    roots = np.where(predecessors < 0, np.arange(len(predecessors), dtype=np.int32), predecessors)
    while not np.array_equal(further := roots[roots], roots):
        roots = further
    return roots


def _cycle(error: gpuops.NegativeCycleError) -> str:
    if not error.vertices:
        return str(error)
    names = [str(v) for v in (*error.vertices[:20], error.vertices[0])]
    shown = " -> ".join(names[:-1] + ["..."] * (len(error.vertices) > 20) + names[-1:])
    return f"Negative cycle detected: {shown} weighs {error.weight:g}, so distances along it fall forever"
