"""The stages of Awerbuch, Israeli and Shiloach, each an operation of its own (see `gpuops.euler`).

All of them take and return arrays of arc numbers, int32 or, from 2^31 arcs on, int64, in NumPy or CuPy. What one takes
from another is not checked again: predecessors must be a permutation of 0 to m - 1, labels and slots as returned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops.arrays import check_vectors, is_cupy, library_of
from gpuops.euler import euler_cuda, euler_numba
from gpuops.euler.balance import refuse_unbalanced


class CircuitGraph(NamedTuple):
    """Circuits that meet: link i joins the circuits of the slots ``slots[i] - 1`` and ``slots[i]``, at their vertex.

    Attributes
    ----------
    slots : (L,) arc numbers, rising
    tails, heads : (L,) labels of the two circuits
    """

    slots: Any
    tails: Any
    heads: Any


class LinkForest(NamedTuple):
    """What joins the circuits of each component.

    Attributes
    ----------
    slots : (L,) arc numbers, rising: the links of the forest
    starts : (c,) arc numbers, rising: the least arc of each component
    components : (m,) arc numbers: at every label, the least arc of its component; elsewhere of no meaning
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
        The predecessor of each arc, which is the stable argsort of `indices`.

    Raises
    ------
    NotEulerianError
        A vertex has more arcs in than out, or fewer.
    """
    indptr, indices = check_arcs(indptr, indices)
    predecessors = half_of(indices).pair(indptr, indices)
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
    """
    return half_of(predecessors).label(_arc_numbers("predecessors", predecessors))


def circuit_graph(indptr: Any, labels: Any) -> CircuitGraph:
    """Link the circuits that meet at a vertex, one link for each circuit but the first that leaves it.

    Of the arcs that leave a vertex, those count that are the first there of their circuit. Each of them but the first
    of the row is linked to the arc before it. The article links it to the last arc before it that counts: the links
    join the same circuits, and the forest has the same slots.

    Parameters
    ----------
    indptr : (n + 1,) integers
    labels : (m,) arc numbers
        As `cycle_labels` returns them.

    Returns
    -------
    CircuitGraph
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
    """The minimum spanning forest of the circuit graph, by the numbers of links.

    Parameters
    ----------
    indptr : (n + 1,) integers
    labels : (m,) arc numbers
        As `cycle_labels` returns them.
    slots : (L,) arc numbers, optional
        The links to choose from, as `circuit_graph` finds them. By default every slot but the first of a row is one:
        the forest is the same, since a slot whose circuit left its vertex before closes a cycle with lesser links.

    Returns
    -------
    LinkForest
    """
    labels = _arc_numbers("labels", labels)
    if slots is not None:
        slots = _arc_numbers("slots", slots, labels.dtype)
    indptr = library_of(indptr).ascontiguousarray(indptr, dtype=np.int64)
    return LinkForest(*half_of(labels).span(indptr, labels, slots))


def join_circuits(predecessors: Any, slots: Any) -> Any:
    """Join circuits: swap the predecessors of ``s - 1`` and ``s`` for each link s, at each vertex in rising order.

    Links that follow each other, s, s + 1, ..., are swapped one after the other, which moves the predecessor of
    ``s - 1`` behind them all. So all vertices can be done at once.

    Parameters
    ----------
    predecessors : (m,) arc numbers
        A permutation.
    slots : (L,) arc numbers, rising
        Links of a forest, as `spanning_links` returns them.

    Returns
    -------
    (m,) arc numbers
    """
    xp = library_of(predecessors)
    joined = predecessors.copy()
    if len(slots):
        apart = slots[1:] != slots[:-1] + 1
        begins, ends = xp.ones(len(slots), bool), xp.ones(len(slots), bool)
        begins[1:], ends[:-1] = apart, apart
        joined[slots - 1] = predecessors[slots]
        joined[slots[ends]] = predecessors[slots[begins] - 1]
    return joined


def walk_circuits(predecessors: Any, labels: Any = None, starts: Any = None) -> tuple[Any, np.ndarray]:
    """The arcs of every circuit in walking order.

    Parameters
    ----------
    predecessors : (m,) arc numbers
        A permutation.
    labels : (m,) arc numbers, optional
        One number for each circuit, between 0 and m - 1; by default the least of its arcs.
    starts : (c,) arc numbers, optional
        Where each circuit begins, all of them, in the order in which they are to follow; by default with its least
        arc, and these rising.

    Returns
    -------
    arcs : (m,) arc numbers
    offsets : (c + 1,) NumPy array of int64
        Circuit k is ``arcs[offsets[k] : offsets[k + 1]]``.
    """
    predecessors = _arc_numbers("predecessors", predecessors)
    labels = cycle_labels(predecessors) if labels is None else _arc_numbers("labels", labels, predecessors.dtype)
    if starts is None:
        xp = library_of(labels)
        starts = xp.flatnonzero(labels == xp.arange(len(labels), dtype=labels.dtype))
    return half_of(predecessors).walk(predecessors, labels, _arc_numbers("starts", starts, predecessors.dtype))


def check_arcs(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """The arrays of a CSR, refused if they are not one: `indptr` as int64, `indices` as int32 or int64, contiguous."""
    csr.check_csr(indptr, indices)
    xp = library_of(indices)
    small = indices.dtype.itemsize < 4 or indices.dtype == np.int32
    indices = xp.ascontiguousarray(indices, dtype=np.int32 if small else np.int64)
    return xp.ascontiguousarray(indptr, dtype=np.int64), indices


def arc_dtype(m: int) -> np.dtype:
    """The type of arc numbers of a graph with m arcs."""
    return np.dtype(np.int32 if m < 2**31 else np.int64)


def _arc_numbers(name: str, array: Any, dtype: np.dtype | None = None) -> Any:
    """The array, contiguous and in `dtype`; refused if it does not hold arc numbers."""
    check_vectors({name: array})
    if array.dtype not in (np.int32, np.int64):
        raise TypeError(f"{name} is {array.dtype}; pass arc numbers, int32 or int64")
    return library_of(array).ascontiguousarray(array, dtype=dtype)


def half_of(array: Any) -> Any:
    """The module whose kernels are for the array's library."""
    return euler_cuda if is_cupy(array) else euler_numba
