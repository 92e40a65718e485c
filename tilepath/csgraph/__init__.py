"""Shortest paths with the names, arguments and results of `scipy.sparse.csgraph`, computed by tilepath.

    from tilepath import csgraph           # instead of: from scipy.sparse import csgraph

tilepath implements `shortest_path`, `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson`; every other name is
SciPy's own. These five functions take two more keywords; `dijkstra` also takes `sparse`:

dtype : {"float64", "float32", "int32"}
    Dtype of the distances; by default float64, as in SciPy. Whole numbers stay exact, or OverflowError is raised.
device : {"auto", "cpu", "gpu"}
    "auto" uses a GPU if CuPy finds one and the work is large enough.

`docs/doors.md` lists the other differences. Only this module needs SciPy, the extra `csgraph`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

import gpuops
from gpuops.devices import DEVICES
from gpuops.extras import install
from gpuops.numbers import outside_infinity
from gpuops.options import one_of

try:
    import scipy.sparse.csgraph as _scipy
    from scipy.sparse import csr_array
except ImportError as error:
    raise ImportError(f"tilepath.csgraph needs SciPy: {install('csgraph')}") from error

from tilepath.csgraph.arcs import DTYPES, Arcs, read_arcs, refuse_rounded
from tilepath.csgraph.engines import Question, solve

METHODS = ("auto", "FW", "D", "BF", "J")
_NOWHERE = -9999  # how SciPy marks a vertex without predecessor


class NegativeCycleError(gpuops.NegativeCycleError, _scipy.NegativeCycleError):
    """The graph has a negative cycle with these `vertices` and this `weight`. Both SciPy's error and gpuops' error."""


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
    """Return shortest distances between vertices, and predecessors, by the method that suits the graph.

    Parameters
    ----------
    csgraph : (N, N) array or sparse array
        Lengths of the arcs. In a sparse or masked matrix, each stored entry is an arc, even if it is 0; in any other
        array, 0 means no arc. Infinity and NaN are never arcs. Of parallel arcs in unsummed rows, the shortest counts.
    method : {"auto", "FW", "D", "BF", "J"}
        "auto" takes Floyd-Warshall or searches, whichever is less work, and handles negative weights. The other values
        mean `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson`.
    directed : bool
        If False, arcs may be travelled in both directions; of two opposite arcs, the shorter counts.
    return_predecessors : bool
        Return predecessors too.
    unweighted : bool
        Give every arc the length 1.
    overwrite : bool
        With "FW" or "auto" and all sources, write the distances into `csgraph` and return it, if it is a contiguous
        array of `dtype`.
    indices : array_like of int, optional
        Sources, of any shape; by default all vertices. Negative indices count from the end. Not with "FW".
    dtype : {"float64", "float32", "int32"}
        Dtype of the distances.
    device : {"auto", "cpu", "gpu"}
        "auto" uses a GPU if CuPy finds one and the work is large enough.

    Returns
    -------
    distances : array of `dtype`, of the shape of `indices` and N
        +inf, or 2^31 - 1 for int32, where unreachable.
    predecessors : array of int32 of the same shape
        Only with `return_predecessors`. -9999 at sources and where unreachable.

    Raises
    ------
    NegativeCycleError
        The graph has a negative cycle. The error is a subclass of SciPy's error and of `gpuops.NegativeCycleError`, and
        names the vertices of the cycle.
    OverflowError
        Distances of whole numbers may be rounded, as they reach 2^53 (float64) or 2^24 (float32), or exceed int32.
    ValueError
        `csgraph` is not a square matrix, a sparse or masked matrix contains -inf, weights for int32 have fractions, or
        sources are not vertices.

    Examples
    --------
    >>> graph = np.array([[0, 3, 5], [0, 0, 1], [2, 0, 0]])
    >>> csgraph.shortest_path(graph, indices=0)
    array([0., 3., 4.])
    """
    if method not in METHODS:
        raise ValueError(f"unrecognized method {method!r}; choose one of {', '.join(METHODS)}")
    if method == "FW" and indices is not None:
        raise ValueError("Cannot specify indices with method == 'FW': it finds all rows; leave them out")
    target = csgraph if overwrite and method in ("auto", "FW") and indices is None else None
    asked = _asked(csgraph, directed, indices, unweighted, dtype, device)
    return _rows(asked, method, return_predecessors, target)


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
    """Return all shortest distances by blocked Floyd-Warshall; with predecessors, by searches from every vertex.

    See `shortest_path` for parameters, results and errors.

    Examples
    --------
    >>> graph = np.array([[0, 3, 5], [0, 0, 1], [2, 0, 0]])
    >>> csgraph.floyd_warshall(graph)
    array([[0., 3., 4.],
           [3., 0., 1.],
           [2., 5., 0.]])
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
    sparse: bool = False,
    dtype: Any = "float64",
    device: str = "auto",
) -> Any:
    """Return shortest distances from the vertices `indices`, by a search on sparse rows from each vertex.

    See `shortest_path` for the other parameters and the errors. If weights are negative, a warning is issued; the
    distances are correct even then.

    Parameters
    ----------
    limit : float
        Vertices farther than this count as unreachable.
    min_only : bool
        Find distances from the nearest of the sources, not from each source.
    sparse : bool
        Return a sparse array that has an entry for each vertex within `limit` and no others. Memory and time are those
        of the entries, so that all vertices can be sources of a large graph. `indices` are then a list, or None.
        Searches run on the CPU. Not with `min_only`, `return_predecessors` or negative weights.

    Returns
    -------
    distances, predecessors
        As for `shortest_path`; of shape (N,) with `min_only`.
    distances : scipy.sparse.csr_array (k, N)
        Only with `sparse`. The distance of a source from itself is an entry, too: a stored 0. Columns rise in each row.
    sources : (N,) array of int32
        Only with `min_only` and `return_predecessors`: the source nearest to each vertex, -9999 where unreachable.

    Examples
    --------
    >>> graph = np.array([[0, 3, 5], [0, 0, 1], [2, 0, 0]])
    >>> csgraph.dijkstra(graph, indices=[0, 1])
    array([[0., 3., 4.],
           [3., 0., 1.]])
    """
    limit = float(limit)
    if limit < 0:
        raise ValueError(f"limit must be >= 0, not {limit:g}")
    if sparse and (min_only or return_predecessors):
        raise ValueError("sparse=True returns distances from each source; leave out min_only, return_predecessors")
    asked = _asked(csgraph, directed, indices, unweighted, dtype, device)
    if sparse:
        return _near(asked, limit)
    return _rows(asked, "D", return_predecessors, limit=limit, together=bool(min_only))


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
    """Return shortest distances from the vertices `indices` over weights of any sign.

    Only a negative cycle that a source reaches is an error. See `shortest_path` for parameters, results and errors.

    Examples
    --------
    >>> graph = np.array([[0, 3, 5], [0, 0, -1], [2, 0, 0]])
    >>> csgraph.bellman_ford(graph, indices=0)
    array([0., 3., 2.])
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
    """Return shortest distances from the vertices `indices` over weights of any sign.

    Any negative cycle is an error, reached or not. See `shortest_path` for parameters, results and errors.

    Examples
    --------
    >>> graph = np.array([[0, 3, 5], [0, 0, -1], [2, 0, 0]])
    >>> csgraph.johnson(graph)
    array([[ 0.,  3.,  2.],
           [ 1.,  0., -1.],
           [ 2.,  5.,  0.]])
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


class _Asked(NamedTuple):
    """The arguments that all functions share, checked."""

    dtype: np.dtype
    arcs: Arcs
    sources: np.ndarray
    device: str


def _rows(asked: _Asked, method: str, return_predecessors: bool, target: Any = None, **options: Any) -> Any:
    """Solve for all sources, and return rows in the shape of `indices`; shared by all functions."""
    dtype, arcs, sources, device = asked
    if method == "D" and bool((arcs.weights < 0).any()):
        warnings.warn(
            "the graph has negative weights: the distances are correct, but use johnson or bellman_ford instead",
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


def _near(asked: _Asked, limit: float) -> csr_array:
    """Return the distances within a limit as a sparse array."""
    _, arcs, sources, device = asked
    if device == "gpu":
        raise ValueError("searches with sparse=True run on the CPU; leave out device")
    if sources.ndim != 1:
        raise ValueError(f"indices have the shape {sources.shape}; with sparse=True pass a list of vertices")
    if bool((arcs.weights < 0).any()):
        raise ValueError("with negative weights a path may leave the limit and come back; leave out sparse")
    starts, vertices, distances = gpuops.distances_within(arcs.indptr, arcs.indices, arcs.weights, sources, limit)
    refuse_rounded(arcs, distances)
    return csr_array((distances, vertices, starts), shape=(len(sources), arcs.n))


def _asked(csgraph: Any, directed: bool, indices: Any, unweighted: bool, dtype: Any, device: str) -> _Asked:
    """Check the arguments that all functions share, and read the graph."""
    dtype = np.dtype(dtype)
    if dtype not in DTYPES:
        raise TypeError(f"dtype is {dtype}; distances are {', '.join(map(str, DTYPES))}")
    one_of("device", device, DEVICES)
    arcs = read_arcs(csgraph, directed, unweighted, dtype)
    return _Asked(dtype, arcs, _sources(indices, arcs.n), device)


def _sources(indices: Any, n: int) -> np.ndarray:
    if indices is None:
        return np.arange(n)
    given = np.asarray(indices)
    with np.errstate(invalid="ignore"):  # NaN and infinity are refused as fractions
        sources = given.astype(np.int64)
    if given.dtype.kind == "f" and not np.array_equal(sources, given):
        raise ValueError("indices have fractions; pass the numbers of vertices as integers")
    if sources.size and not (-n <= sources.min() and sources.max() < n):
        raise ValueError(f"indices out of range: vertices are 0 to {n - 1}, or count from the end down to -{n}")
    return np.where(sources < 0, sources + n, sources)


def _is_writable(target: Any, distances: np.ndarray) -> bool:
    """Return True if `target` is an array into which `distances` can be copied without conversion."""
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
    """Return the root of each vertex in a forest, by pointer doubling."""
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
