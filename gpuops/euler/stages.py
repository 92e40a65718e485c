"""The stages of Awerbuch, Israeli and Shiloach, each a separate operation (see `gpuops.euler`).

All stages take and return NumPy or CuPy arrays of arc numbers, int32 or, from 2^31 arcs on, int64. The values of an
array that another stage returned are not checked: predecessors must be a permutation of 0 to m - 1, labels and slots as
the stages return them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops._halves import half_of
from gpuops.arrays import check_vectors, library_of
from gpuops.euler.balance import refuse_unbalanced


class CircuitGraph(NamedTuple):
    """Circuits that meet: link i joins the circuits of the arcs ``slots[i] - 1`` and ``slots[i]``, which have one tail.

    Attributes
    ----------
    slots : (L,) arc numbers, ascending
    tails, heads : (L,) labels of the two circuits
    """

    slots: Any
    tails: Any
    heads: Any


class LinkForest(NamedTuple):
    """A forest of links that joins the circuits of each component.

    Attributes
    ----------
    slots : (L,) arc numbers, ascending: the links of the forest
    starts : (c,) arc numbers, ascending: the least arc of each component
    components : (m,) arc numbers: at every label, the least arc of its component; undefined elsewhere
    """

    slots: Any
    starts: Any
    components: Any


def pair_arcs(indptr: Any, indices: Any) -> Any:
    """Pair the i-th arc into every vertex with the i-th arc out of it.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers
        A directed graph in CSR.

    Returns
    -------
    (m,) arc numbers
        The predecessor of each arc: the stable argsort of `indices`.

    Raises
    ------
    NotEulerianError
        A vertex has more arcs in than out, or fewer.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> gpuops.pair_arcs(indptr, indices)  # arc 0 follows arc 2, and arc 2 follows arc 0
    array([2, 3, 0, 1], dtype=int32)
    """
    indptr, indices = check_arcs(indptr, indices)
    predecessors = half_of("euler.euler", indices).pair(indptr, indices)
    if predecessors is None:
        refuse_unbalanced(indptr, indices)
    return predecessors


def cycle_labels(predecessors: Any) -> Any:
    """Label each arc with the least arc of its circuit.

    Parameters
    ----------
    predecessors : (m,) arc numbers
        A permutation.

    Returns
    -------
    (m,) arc numbers

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> predecessors = gpuops.pair_arcs(indptr, indices)
    >>> gpuops.cycle_labels(predecessors)  # two circuits: the arcs 0 and 2, and the arcs 1 and 3
    array([0, 1, 0, 1], dtype=int32)
    """
    return half_of("euler.euler", predecessors).label(_arc_numbers("predecessors", predecessors))


def circuit_graph(indptr: Any, labels: Any) -> CircuitGraph:
    """Link the circuits that meet at a vertex, one link for each circuit except the first in the row of the vertex.

    An arc out of a vertex counts if no arc before it in the row is on the same circuit. Every counted arc except the
    first of the row is linked to the arc before it. The article links it to the last counted arc before it. Both kinds
    of links join the same circuits, and the forest has the same slots.

    Parameters
    ----------
    indptr : (n + 1,) integers
    labels : (m,) arc numbers
        As `cycle_labels` returns them.

    Returns
    -------
    CircuitGraph

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> predecessors = gpuops.pair_arcs(indptr, indices)
    >>> labels = gpuops.cycle_labels(predecessors)
    >>> gpuops.circuit_graph(indptr, labels).slots  # the circuits of the arcs 0 and 1 meet
    array([1], dtype=int32)
    """
    xp = library_of(labels)
    m = len(labels)
    rows = csr.tails(xp.ascontiguousarray(indptr, dtype=np.int64), m, np.int64)
    by_label = xp.argsort(labels, kind="stable")
    order = by_label[xp.argsort(rows[by_label], kind="stable")]
    first = xp.ones(m, bool)
    first[1:] = (rows[order][1:] != rows[order][:-1]) | (labels[order][1:] != labels[order][:-1])
    counts = xp.zeros(m, bool)
    counts[order[first]] = True
    counts[indptr[:-1][indptr[:-1] < indptr[1:]]] = False
    slots = xp.flatnonzero(counts).astype(labels.dtype)
    return CircuitGraph(slots, labels[slots - 1], labels[slots])


def spanning_links(indptr: Any, labels: Any, slots: Any = None) -> LinkForest:
    """Find the minimum spanning forest of the circuit graph, by the numbers of links.

    Parameters
    ----------
    indptr : (n + 1,) integers
    labels : (m,) arc numbers
        As `cycle_labels` returns them.
    slots : (L,) arc numbers, optional
        The links to choose from, as `circuit_graph` finds them. By default every arc except the first of a row is a
        link: the forest is the same, because an arc whose circuit has an earlier arc in the row closes a cycle with
        lesser links.

    Returns
    -------
    LinkForest

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> predecessors = gpuops.pair_arcs(indptr, indices)
    >>> labels = gpuops.cycle_labels(predecessors)
    >>> gpuops.spanning_links(indptr, labels).slots  # one link joins the two circuits
    array([1], dtype=int32)
    """
    labels = _arc_numbers("labels", labels)
    if slots is not None:
        slots = _arc_numbers("slots", slots, labels.dtype)
    indptr = library_of(indptr).ascontiguousarray(indptr, dtype=np.int64)
    return LinkForest(*half_of("euler.euler", labels).span(indptr, labels, slots))


def join_circuits(predecessors: Any, slots: Any) -> Any:
    """Join circuits: swap the predecessors of ``s - 1`` and ``s`` for each link s, at each vertex in ascending order.

    Swapping consecutive links s, s + 1, ..., t in this order moves the predecessor of ``s - 1`` to t, and every other
    predecessor one place down. So all vertices can be done at once.

    Parameters
    ----------
    predecessors : (m,) arc numbers
        A permutation.
    slots : (L,) arc numbers, ascending
        Links of a forest, as `spanning_links` returns them.

    Returns
    -------
    (m,) arc numbers

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> predecessors = gpuops.pair_arcs(indptr, indices)
    >>> labels = gpuops.cycle_labels(predecessors)
    >>> slots = gpuops.spanning_links(indptr, labels).slots
    >>> joined = gpuops.join_circuits(predecessors, slots)
    >>> gpuops.cycle_labels(joined)  # one circuit
    array([0, 0, 0, 0], dtype=int32)
    """
    predecessors = _arc_numbers("predecessors", predecessors)
    return half_of("euler.euler", predecessors).join(predecessors, _arc_numbers("slots", slots, predecessors.dtype))


def walk_circuits(predecessors: Any, labels: Any = None, starts: Any = None) -> tuple[Any, np.ndarray]:
    """Return the arcs of every circuit in walking order.

    Parameters
    ----------
    predecessors : (m,) arc numbers
        A permutation.
    labels : (m,) arc numbers, optional
        One number for each circuit, between 0 and m - 1; by default the least of its arcs.
    starts : (c,) arc numbers, optional
        The first arc of every circuit, in the order wanted for the circuits. By default each circuit begins with its
        least arc, and these arcs rise.

    Returns
    -------
    arcs : (m,) arc numbers
    offsets : (c + 1,) NumPy array of int64
        Circuit k is ``arcs[offsets[k] : offsets[k + 1]]``.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> predecessors = gpuops.pair_arcs(indptr, indices)
    >>> gpuops.walk_circuits(predecessors)
    (array([0, 2, 1, 3], dtype=int32), array([0, 2, 4]))
    """
    predecessors = _arc_numbers("predecessors", predecessors)
    labels = cycle_labels(predecessors) if labels is None else _arc_numbers("labels", labels, predecessors.dtype)
    if starts is None:
        xp = library_of(labels)
        starts = xp.flatnonzero(labels == xp.arange(len(labels), dtype=labels.dtype))
    return half_of("euler.euler", predecessors).walk(
        predecessors, labels, _arc_numbers("starts", starts, predecessors.dtype)
    )


def check_arcs(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Check the arrays of a CSR; return `indptr` as int64 and `indices` as int32 or int64, contiguous."""
    csr.check_csr(indptr, indices)
    xp = library_of(indices)
    small = indices.dtype.itemsize < 4 or indices.dtype == np.int32
    indices = xp.ascontiguousarray(indices, dtype=np.int32 if small else np.int64)
    return xp.ascontiguousarray(indptr, dtype=np.int64), indices


def arc_dtype(m: int) -> np.dtype:
    """Return the dtype of arc numbers of a graph with m arcs."""
    return np.dtype(np.int32 if m < 2**31 else np.int64)


def _arc_numbers(name: str, array: Any, dtype: np.dtype | None = None) -> Any:
    """Return the array, contiguous and in `dtype`; refuse any dtype but int32 and int64."""
    check_vectors({name: array})
    if array.dtype not in (np.int32, np.int64):
        raise TypeError(f"{name} is {array.dtype}; pass arc numbers, int32 or int64")
    return library_of(array).ascontiguousarray(array, dtype=dtype)
