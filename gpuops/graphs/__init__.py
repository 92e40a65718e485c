"""Operations on graphs as a whole: degrees, tails of arcs, the reverse graph, weak components, a spanning forest.

A graph is in compressed sparse rows: the arcs out of vertex v have the numbers ``indptr[v]`` to ``indptr[v + 1] - 1``,
and arc i leads to ``indices[i]``. Heads may stand in any order in a row. Parallel arcs and loops are kept, and treated
like any other arc. Every result depends only on the stored graph, and is the same with NumPy and CuPy.

`indptr` and `indices` are independently int32 or int64. Arrays of vertices have the dtype of `indices`. Arrays that
count or number arcs have the dtype of `indptr`, which must be int64 from 2^31 arcs on. All operations raise the same
errors: TypeError for another dtype, or for arrays of different libraries; ValueError for arrays that do not form a
graph. This last check takes a pass over the arrays, and on a GPU a wait. Pass ``check=False`` to skip it if you know
that the arrays form a graph.

* Edge expansion: D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016.
* Components: J. Jaiganesh, M. Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018.
* Forests: O. Boruvka, "O jistem problemu minimalnim", 1926 (GPU); J. B. Kruskal, "On the shortest spanning subtree of a
  graph", Proceedings of the AMS 7, 1956 (CPU); G. L. Miller, J. H. Reif, "Parallel tree contraction and its
  application", FOCS 1985 (parents on a GPU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops._halves import half_of
from gpuops.arrays import check_vectors, library_of

GRAPH_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True, eq=False)
class Degrees:
    """The numbers of arcs that begin and end at each vertex; a loop counts in both.

    Attributes
    ----------
    outgoing, incoming : (n,) arrays
        NumPy or CuPy, of the dtype of `indptr`.
    """

    outgoing: Any
    incoming: Any

    @property
    def sources(self) -> Any:
        """Vertices with outgoing and without incoming arcs: an ascending array."""
        return library_of(self.outgoing).flatnonzero((self.incoming == 0) & (self.outgoing > 0))

    @property
    def sinks(self) -> Any:
        """Vertices with incoming and without outgoing arcs: an ascending array."""
        return library_of(self.outgoing).flatnonzero((self.outgoing == 0) & (self.incoming > 0))

    @property
    def isolated(self) -> Any:
        """Vertices without arcs: an ascending array."""
        return library_of(self.outgoing).flatnonzero((self.outgoing == 0) & (self.incoming == 0))

    @property
    def balanced(self) -> bool:
        """Whether every vertex has equal numbers of arcs in and out."""
        return bool((self.outgoing == self.incoming).all())


class ReverseGraph(NamedTuple):
    """A graph with all arcs reversed, in compressed sparse rows.

    Attributes
    ----------
    indptr : (n + 1,) array
    indices : (m,) array
        The tails of the arcs in the given graph.
    weights : (m,) array or None
    arcs : (m,) array
        The number of each arc in the given graph: ``x[arcs]`` has an attribute x of the arcs in the new order.
    """

    indptr: Any
    indices: Any
    weights: Any
    arcs: Any


class SpanningForest(NamedTuple):
    """A tree for each weak component: arcs, of any direction, that join all vertices of the component.

    Attributes
    ----------
    arcs : (m,) array of bool
        Whether the arc is in the forest. The forest has n minus the number of components arcs.
    components : (n,) array
        The least vertex of each vertex's component, the root of the tree.
    parents : (n,) array
        The next vertex on the tree's path from each vertex to the root; -1 for roots.
    """

    arcs: Any
    components: Any
    parents: Any


def degrees(indptr: Any, indices: Any, *, check: bool = True) -> Degrees:
    """Count the arcs out of and into every vertex.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    check : bool
        Check that the arrays form a graph.

    Returns
    -------
    Degrees

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.

    Examples
    --------
    >>> gpuops.degrees(np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0]))
    Degrees(outgoing=array([2, 1, 1]), incoming=array([1, 1, 2]))
    """
    _check(indptr, indices, check)
    incoming = csr.occurrences(indices, len(indptr) - 1)
    return Degrees(indptr[1:] - indptr[:-1], incoming.astype(indptr.dtype, copy=False))


def edge_expansion(indptr: Any, indices: Any, *, check: bool = True) -> Any:
    """Return the tail of every arc: with `indices`, the graph as a list of pairs.

    On a GPU the work of a thread does not depend on how arcs are spread over vertices.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64. Without `check` the heads are not read.
    check : bool
        Check that the arrays form a graph.

    Returns
    -------
    (m,) array
        Rising, of the dtype of `indices`.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.

    Examples
    --------
    >>> gpuops.edge_expansion(np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0]))
    array([0, 0, 1, 2])
    """
    _check(indptr, indices, check)
    return csr.tails(indptr, len(indices), indices.dtype)


def reverse(indptr: Any, indices: Any, weights: Any = None, *, check: bool = True) -> ReverseGraph:
    """Return the graph with all arcs reversed.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    weights : (m,) array, optional
        Any dtype.
    check : bool
        Check that the arrays form a graph.

    Returns
    -------
    ReverseGraph
        The arcs of a row are in the order of their numbers in the given graph; a vertex without arcs into it has an
        empty row.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.

    Examples
    --------
    >>> gpuops.reverse(np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])).indices
    array([2, 0, 0, 1])
    """
    _check(indptr, indices, check, **({} if weights is None else {"weights": weights}))
    starts, sources, arcs = csr.transpose(indptr, indices)
    if weights is not None:
        weights = half_of("csr.csr", indptr).gather(csr.contiguous(weights), arcs)
    return ReverseGraph(starts, sources, weights, arcs)


def weak_components(indptr: Any, indices: Any, *, compact: bool = False, check: bool = True) -> Any:
    """Label the weak components: two vertices have the same label if arcs of any directions join them.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    compact : bool
        Number the components 0, 1, ... in the order of their least vertices.
    check : bool
        Check that the arrays form a graph.

    Returns
    -------
    (n,) array
        The least vertex of each vertex's component, or the component's number if `compact`; the dtype of `indices`.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.

    Examples
    --------
    >>> gpuops.weak_components(np.array([0, 1, 1, 1]), np.array([1]))
    array([0, 0, 2])
    """
    _check(indptr, indices, check)
    half = half_of("graphs.components", indptr)
    labels = half.labels(csr.contiguous(indptr), csr.contiguous(indices))
    if not compact:
        return labels
    xp = library_of(labels)
    numbers = xp.cumsum(labels == xp.arange(len(labels), dtype=labels.dtype)) - 1
    return numbers[labels].astype(labels.dtype)


def spanning_forest(indptr: Any, indices: Any, *, check: bool = True) -> SpanningForest:
    """Find the spanning forest whose arcs have the least numbers: the minimum forest if an arc weighs its number.

    An arc is in the forest unless arcs of lesser numbers already join its ends. Numbers differ, so the minimum is
    unique and the result depends only on the graph.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    check : bool
        Check that the arrays form a graph.

    Returns
    -------
    SpanningForest
        A GPU takes O(log n) rounds for the forest and for the parents, however long the paths are.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.

    Examples
    --------
    >>> gpuops.spanning_forest(np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])).arcs
    array([ True,  True, False, False])
    """
    _check(indptr, indices, check)
    half = half_of("graphs.forest", indptr)
    return SpanningForest(*half.forest(csr.contiguous(indptr), csr.contiguous(indices)))


def _check(indptr: Any, indices: Any, values_too: bool, **of_arcs: Any) -> None:
    arrays = {"indptr": indptr, "indices": indices}
    check_vectors({**arrays, **of_arcs})
    for name, array in arrays.items():
        if array.dtype not in GRAPH_DTYPES:
            raise TypeError(f"{name} is {array.dtype}; graphs are int32 or int64; convert it first")
    if len(indptr) == 0:
        raise ValueError("indptr is empty; a graph of n vertices has n + 1 elements there")
    if values_too:
        csr.check_csr(indptr, indices, **of_arcs)
