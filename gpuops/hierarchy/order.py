"""Order the vertices of a graph for elimination.

Vertices of degree 2 and less go first, in rounds of independent sets, so that a long road becomes a tree of logarithmic
height. These rounds eliminate most vertices of a road network. METIS orders the rest by nested dissection: a small
separator comes last, and before it the two sides that it separates, each ordered in the same manner. Without METIS,
levels of breadth-first searches separate (`dissection_numba`), which takes less time to order and more time to close.

G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci.
Comput. 20, 1998.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from gpuops import csr
from gpuops.arrays import is_cupy
from gpuops.extras import install
from gpuops.hierarchy import dissection_numba, order_numba

_THOROUGH = 5  # separators that METIS computes for each bisection if `thorough`; it keeps the smallest


def has_metis() -> bool:
    """Return whether `pymetis` is installed."""
    return find_spec("pymetis") is not None


def hierarchy_order(indptr: Any, indices: Any, through: Any = None, *, thorough: bool = False) -> np.ndarray:
    """Return an order of the vertices for `gpuops.hierarchy_structure`.

    Without `pymetis`, the order is worse: closing takes more relaxations, and the tables more memory.
    `gpuops.hierarchy_structure` returns the exact cost.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) NumPy arrays
        The graph in compressed sparse rows, int32 or int64. Directions, loops and parallel arcs are ignored.
    through : (n,) array of bool, optional
        False for closed vertices, which no path passes through. By default no vertex is closed.
    thorough : bool
        Take up to three times as long, for an order that takes a few percent less work on some road networks.

    Returns
    -------
    (n,) int32
        A permutation of the vertices: the first vertex is eliminated first; closed vertices come last.

    Raises
    ------
    ImportError
        `thorough` without `pymetis`.
    TypeError, ValueError
        CuPy arrays, or arrays that do not make up a graph.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> order = gpuops.hierarchy_order(indptr, indices)
    >>> sorted(order.tolist())  # every vertex once
    [0, 1, 2]
    """
    through = check_graph(indptr, indices, through)
    open_ = np.flatnonzero(through)
    starts, neighbours = _pattern(indptr, indices, through, len(open_))
    peeled, rest, degrees = order_numba.peel(starts, neighbours)
    starts, neighbours = order_numba.compress(starts, neighbours, degrees, rest)
    dissected = rest[_dissect(starts, neighbours, thorough)]
    return np.concatenate([open_[peeled], open_[dissected], np.flatnonzero(~through)]).astype(np.int32)


def check_graph(indptr: Any, indices: Any, through: Any, **of_arcs: Any) -> np.ndarray:
    """Raise an error if the arrays are not a graph, or lie on a GPU. Returns `through`, by default all True."""
    csr.check_csr(indptr, indices, **of_arcs)
    if is_cupy(indptr):
        raise TypeError("a hierarchy is made on a CPU; pass NumPy arrays")
    csr.check_count(indptr)
    through = np.ones(len(indptr) - 1, bool) if through is None else np.asarray(through)
    csr.check_through(through, indptr)
    return through


def _pattern(indptr: np.ndarray, indices: np.ndarray, through: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the open neighbours of each open vertex, each once, in CSR (int64, int32).

    Vertices are numbered by their positions among the open vertices.
    """
    number = np.where(through, np.cumsum(through) - 1, -1).astype(np.int32)
    indptr, indices = indptr.astype(np.int64), indices.astype(np.int32)
    reverse_starts, tails, _ = csr.transpose(indptr, indices)
    return order_numba.pattern(indptr, indices, reverse_starts, tails, number, size)


def _dissect(starts: np.ndarray, neighbours: np.ndarray, thorough: bool) -> np.ndarray:
    """Return the vertices of a graph in the order of a nested dissection, by METIS if it is installed."""
    if not has_metis():
        if thorough:
            raise ImportError(f"a thorough order needs pymetis: {install('hierarchy')}")
        return dissection_numba.dissect(starts, neighbours)
    if len(starts) == 1:
        return np.empty(0, np.int64)
    import pymetis

    options = pymetis.Options(seed=1, **({"nseps": _THOROUGH} if thorough else {}))
    adjacency = pymetis.CSRAdjacency(adj_starts=starts, adjacent=neighbours)
    order, _ = pymetis.nested_dissection(adjacency, options=options)
    return np.asarray(order, np.int64)
