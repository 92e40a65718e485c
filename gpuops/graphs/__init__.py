"""Operations on graphs as a whole: degrees, tails of arcs, the reverse graph, weak components, a spanning forest.

A graph is in compressed sparse rows: the arcs out of vertex v are numbers ``indptr[v]`` to ``indptr[v + 1] - 1``, and
arc i leads to ``indices[i]``. Heads may stand in any order in a row. Parallel arcs and loops are arcs like all others:
nothing here drops or joins any. Every result is a function of the stored graph alone, and the same on NumPy and CuPy.

`indptr` and `indices` are int32 or int64, each by itself: what holds vertices has the dtype of `indices`, what counts
or numbers arcs that of `indptr`, which must be int64 from 2^31 arcs on. Errors are the same everywhere: TypeError for
another dtype, or arrays not all of one library; ValueError for arrays that do not make up a graph. Looking for the
latter takes a pass over the arrays, and on a GPU a wait; ``check=False`` does without, at the caller's word.

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
from gpuops.arrays import check_vectors, is_cupy, library_of
from gpuops.csr import csr_cuda, csr_numba
from gpuops.graphs import components_cuda, components_numba, forest_cuda, forest_numba

GRAPH_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True, eq=False)
class Degrees:
    """How many arcs begin and end at each vertex; a loop does both.

    Attributes
    ----------
    outgoing, incoming : (n,) arrays
        NumPy or CuPy, of the dtype of `indptr`.
    """

    outgoing: Any
    incoming: Any

    @property
    def sources(self) -> Any:
        """Vertices with arcs out of them and none into them: an array, rising."""
        return library_of(self.outgoing).flatnonzero((self.incoming == 0) & (self.outgoing > 0))

    @property
    def sinks(self) -> Any:
        """Vertices with arcs into them and none out of them: an array, rising."""
        return library_of(self.outgoing).flatnonzero((self.outgoing == 0) & (self.incoming > 0))

    @property
    def isolated(self) -> Any:
        """Vertices without arcs: an array, rising."""
        return library_of(self.outgoing).flatnonzero((self.outgoing == 0) & (self.incoming == 0))

    @property
    def balanced(self) -> bool:
        """Do as many arcs end at every vertex as begin there?"""
        return bool((self.outgoing == self.incoming).all())


class ReverseGraph(NamedTuple):
    """A graph with all arcs turned around, in compressed sparse rows.

    Attributes
    ----------
    indptr : (n + 1,) array
    indices : (m,) array
        The tails of the arcs in the graph given.
    weights : (m,) array or None
    arcs : (m,) array
        The number of each arc in the graph given: ``x[arcs]`` brings what belongs to arcs into the order here.
    """

    indptr: Any
    indices: Any
    weights: Any
    arcs: Any


class SpanningForest(NamedTuple):
    """Trees that join all that arcs join, whatever their directions.

    Attributes
    ----------
    arcs : (m,) array of bool
        Is the arc in the forest? n less the number of components are.
    components : (n,) array
        The least vertex of the component of each.
    parents : (n,) array
        The other end of the first forest arc on the way to that vertex, which is the root and has -1.
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
        Look whether they make up a graph.

    Returns
    -------
    Degrees

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.
    """
    _check(indptr, indices, check)
    incoming = csr.occurrences(indices, len(indptr) - 1)
    return Degrees(indptr[1:] - indptr[:-1], incoming.astype(indptr.dtype, copy=False))


def edge_expansion(indptr: Any, indices: Any, *, check: bool = True) -> Any:
    """The tail of every arc: with `indices`, the graph as a list of pairs.

    On a GPU the work of a thread does not depend on how arcs are spread over vertices.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64. Without `check` the heads are not looked at.
    check : bool
        Look whether they make up a graph.

    Returns
    -------
    (m,) array
        Rising, of the dtype of `indices`.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.
    """
    _check(indptr, indices, check)
    return csr.tails(indptr, len(indices), indices.dtype)


def reverse(indptr: Any, indices: Any, weights: Any = None, *, check: bool = True) -> ReverseGraph:
    """Turn all arcs around.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    weights : (m,) array, optional
        Of any dtype.
    check : bool
        Look whether they make up a graph.

    Returns
    -------
    ReverseGraph
        Rows have their arcs in the order of their numbers in the graph given; a vertex that no arc leads to has an
        empty one.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.
    """
    _check(indptr, indices, check, **({} if weights is None else {"weights": weights}))
    starts, sources, arcs = csr.transpose(indptr, indices)
    if weights is not None:
        half: Any = csr_cuda if is_cupy(indptr) else csr_numba
        weights = half.gather(csr.contiguous(weights), arcs)
    return ReverseGraph(starts, sources, weights, arcs)


def weak_components(indptr: Any, indices: Any, *, compact: bool = False, check: bool = True) -> Any:
    """Label vertices so that two have the same label if arcs join them, whatever their directions.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    compact : bool
        Number the components 0, 1, ... in the order of their least vertices.
    check : bool
        Look whether they make up a graph.

    Returns
    -------
    (n,) array
        The least vertex of the component of each, or the number of it; of the dtype of `indices`.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.
    """
    _check(indptr, indices, check)
    half: Any = components_cuda if is_cupy(indptr) else components_numba
    labels = half.labels(csr.contiguous(indptr), csr.contiguous(indices))
    if not compact:
        return labels
    xp = library_of(labels)
    numbers = xp.cumsum(labels == xp.arange(len(labels), dtype=labels.dtype)) - 1
    return numbers[labels].astype(labels.dtype)


def spanning_forest(indptr: Any, indices: Any, *, check: bool = True) -> SpanningForest:
    """The spanning forest whose arcs have the least numbers: the minimum one if an arc weighs its number.

    So an arc is in it unless arcs of lesser numbers already join its ends. No two forests are equally good, and the
    result is a function of the graph alone.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) arrays
        NumPy or CuPy, int32 or int64.
    check : bool
        Look whether they make up a graph.

    Returns
    -------
    SpanningForest
        On a GPU in O(log n) rounds, for the parents too, however long the paths are.

    Raises
    ------
    TypeError, ValueError
        See `gpuops.graphs`.
    """
    _check(indptr, indices, check)
    half: Any = forest_cuda if is_cupy(indptr) else forest_numba
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
