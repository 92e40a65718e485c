"""Euler circuits: every arc of a graph once, in one closed walk for each component.

Arcs go by their places in CSR, 0 to m - 1. The stages are those of Awerbuch, Israeli and Shiloach [1]_:

1. pair     every arc with one that enters where it leaves; the cycles of that permutation are circuits   `pair_arcs`
2. label    the circuits, each by its least arc                                                        `cycle_labels`
3. link     circuits that meet at a vertex: the edges of the circuit graph                            `circuit_graph`
4. span     the circuit graph by its minimum spanning forest                                         `spanning_links`
5. join     what the forest links, by swapping the predecessors of two arcs                           `join_circuits`
6. walk     what are circuits of whole components now                                                 `walk_circuits`

`euler_circuit` runs them, and adds a start, paths (by an arc from the end to the start, where the circuit is cut) and
undirected graphs (by orienting them first). It passes stage 3 over: stage 4 finds the same links among all slots.

Everything is decided by numbers of arcs: stage 1 is the stable argsort of the heads, the forest is the minimum one by
the numbers of links. So the circuit is a function of the graph as it is stored, the same on a CPU and on a GPU.
Hierholzer's algorithm [2]_, one arc after the other, has another order of its own; on one core it is the faster way.

.. [1] B. Awerbuch, A. Israeli, Y. Shiloach, "Finding Euler circuits in logarithmic parallel time", STOC 1984.
.. [2] C. Hierholzer, "Ueber die Moeglichkeit, einen Linienzug ohne Wiederholung und ohne Unterbrechung zu umfahren",
   Mathematische Annalen 6 (1873).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from gpuops.arrays import check_vectors, library_of
from gpuops.errors import NotEulerianError
from gpuops.euler import euler_numba
from gpuops.euler.balance import closing_arc, odd_edge, refuse_unbalanced
from gpuops.euler.certificate import verify_circuit as verify_circuit
from gpuops.euler.orientation import mates_of as mates_of
from gpuops.euler.orientation import orient
from gpuops.euler.stages import circuit_graph as circuit_graph
from gpuops.euler.stages import cycle_labels as cycle_labels
from gpuops.euler.stages import join_circuits as join_circuits
from gpuops.euler.stages import pair_arcs as pair_arcs
from gpuops.euler.stages import spanning_links as spanning_links
from gpuops.euler.stages import walk_circuits as walk_circuits


class EulerCircuit(NamedTuple):
    """Arcs in walking order: circuit k is ``arcs[offsets[k] : offsets[k + 1]]``, in the order of their least arcs.

    Attributes
    ----------
    arcs : (m,) int32, or int64 from 2^31 arcs on
        Of an undirected graph (m / 2,): each edge by the one of its two arcs that is walked along.
    offsets : (c + 1,) NumPy array of int64
    """

    arcs: Any
    offsets: np.ndarray


def euler_circuit(
    indptr: Any,
    indices: Any,
    *,
    start: int | None = None,
    path: bool = False,
    directed: bool = True,
    connected: bool = False,
    method: Literal["stages", "hierholzer"] = "stages",
) -> EulerCircuit:
    """Walk along every arc once: a closed walk for each component of the graph, or a path.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers, both NumPy or both CuPy arrays
        A graph in CSR. Loops and parallel arcs are walked along like any other; rows need not be sorted.
    start : int, optional
        The vertex where the circuit of its component begins, or the path. By default a circuit begins with the least
        of its arcs, and a path of an undirected graph at the lesser of its ends.
    path : bool
        One vertex may have an arc more out than in, and another one more in than out (undirected: two vertices may
        have odd degrees): the walk of their component then leads from the one to the other.
    directed : bool
        False: every edge stands twice, as the arcs (u, v) and (v, u), a loop as two arcs; the k-th arc from u to v and
        the k-th from v to u are one edge. Each edge is walked along once, in either direction.
    connected : bool
        Refuse a graph whose arcs lie in several components.
    method : {"stages", "hierholzer"}
        "hierholzer" takes NumPy arrays, and gives other circuits.

    Returns
    -------
    EulerCircuit

    Raises
    ------
    NotEulerianError
        Degrees are not balanced, an edge stands once only, or arcs are not connected though they ought to be.
    ValueError
        The arrays are not a CSR, or `start` has no arc, or is not where a path begins.
    """
    indptr, indices = check_arcs(indptr, indices)
    if method not in ("stages", "hierholzer"):
        raise ValueError(f"method is {method!r}; pass 'stages' or 'hierholzer'")
    _check_start(indptr, start)
    walk = _walk_directed if directed else _walk_undirected
    found = walk(indptr, indices, start, path, method)
    if connected and len(found.offsets) > 2:
        first, second = (int(found.arcs[int(offset)]) for offset in found.offsets[:2])
        raise NotEulerianError(
            f"the arcs {first} and {second} lie in different components, {len(found.offsets) - 1:,} in all; "
            "ask for the circuits of all components",
            arcs=(first, second),
        )
    return found


def _walk_directed(indptr: Any, indices: Any, start: int | None, path: bool, method: str) -> EulerCircuit:
    virtual = closing_arc(indptr, indices, start) if path else None
    if virtual is None:
        return _circuits(indptr, indices, start, None, method)
    found = _circuits(virtual.indptr, virtual.indices, None, virtual.arc, method)
    return virtual.cut(found)


def _walk_undirected(indptr: Any, indices: Any, start: int | None, path: bool, method: str) -> EulerCircuit:
    """An orientation of the graph, walked along as a directed graph."""
    virtual = odd_edge(indptr, indices, start) if path else None
    if virtual is not None:
        indptr, indices = virtual.indptr, virtual.indices
    oriented = orient(indptr, indices, path)
    first = None if virtual is None else oriented.arc_of(virtual.arcs)
    found = _circuits(oriented.indptr, oriented.indices, None if virtual is not None else start, first, method)
    found = EulerCircuit(oriented.arcs[found.arcs], found.offsets)
    return found if virtual is None else virtual.cut(found, oriented.mates)


def _circuits(indptr: Any, indices: Any, start: int | None, first: int | None, method: str) -> EulerCircuit:
    """Circuits of a directed graph; the one with the arc `first`, or from the vertex `start`, begins there."""
    if first is None and start is not None:
        first = int(indptr[start])
    if method == "hierholzer":
        return _by_hierholzer(indptr, indices, first)
    predecessors = pair_arcs(indptr, indices)
    labels = cycle_labels(predecessors)
    forest = spanning_links(indptr, labels)
    predecessors = join_circuits(predecessors, forest.slots)
    labels, starts = forest.components[labels], forest.starts
    if first is not None:
        starts[library_of(starts).searchsorted(starts, labels[first])] = first
    return EulerCircuit(*walk_circuits(predecessors, labels, starts))


def _by_hierholzer(indptr: np.ndarray, indices: np.ndarray, first: int | None) -> EulerCircuit:
    if not isinstance(indices, np.ndarray):
        raise TypeError("Hierholzer's algorithm takes NumPy arrays; use cupy.asnumpy, or method='stages'")
    if euler_numba.pair(indptr, indices) is None:
        refuse_unbalanced(indptr, indices)
    arcs, offsets = euler_numba.hierholzer(indptr, indices)
    if first is not None:
        place = int(np.flatnonzero(arcs == first)[0])
        k = int(np.searchsorted(offsets, place, side="right"))
        circuit = slice(int(offsets[k - 1]), int(offsets[k]))
        arcs[circuit] = np.roll(arcs[circuit], circuit.start - place)
    return EulerCircuit(arcs, offsets)


def check_arcs(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """The arrays of a CSR, `indptr` as int64 and `indices` as int32 or int64."""
    check_vectors({"indptr": indptr, "indices": indices})
    for name, array in ("indptr", indptr), ("indices", indices):
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name} is {array.dtype}; pass integers")
    n, m = len(indptr) - 1, len(indices)
    indptr = indptr.astype(np.int64, copy=False)
    indices = indices.astype(
        np.int32 if indices.dtype.itemsize < 4 or indices.dtype == np.int32 else np.int64, copy=False
    )
    if n < 0 or int(indptr[0]) != 0 or int(indptr[-1]) != m or bool((indptr[1:] < indptr[:-1]).any()):
        raise ValueError(f"indptr does not rise from 0 to {m}, the number of arcs")
    if m and not (int(indices.min()) >= 0 and int(indices.max()) < n):
        raise ValueError(f"indices point outside the vertices 0 to {n - 1}")
    return indptr, indices


def _check_start(indptr: Any, start: int | None) -> None:
    if start is None:
        return
    n = len(indptr) - 1
    if not 0 <= start < n:
        raise ValueError(f"start is {start}; the vertices are 0 to {n - 1}")
    if int(indptr[start]) == int(indptr[start + 1]):
        raise ValueError(f"no arc leaves vertex {start}; start elsewhere")
