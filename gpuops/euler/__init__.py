"""Euler circuits: every arc of a graph once, in one closed walk for each component.

Arcs are numbered by their places in CSR, 0 to m - 1. The stages follow Awerbuch, Israeli and Shiloach [1]_:

1. pair     each arc with an arc that enters the vertex it leaves: a permutation whose cycles are circuits `pair_arcs`
2. label    each circuit by its least arc                                                              `cycle_labels`
3. link     circuits that meet at a vertex: the edges of the circuit graph                            `circuit_graph`
4. span     the circuit graph by its minimum spanning forest                                         `spanning_links`
5. join     linked circuits, by swapping the predecessors of two arcs                                 `join_circuits`
6. walk     along the circuits, one for each component now                                            `walk_circuits`

`euler_circuit` runs the stages, and adds a start, paths (by an arc from the end to the start, where the circuit is cut)
and undirected graphs (by orienting them first). It skips stage 3: stage 4 finds the same links among all slots.

The numbers of arcs decide everything: stage 1 is the stable argsort of the heads, and the forest is minimal by the
numbers of links. So the circuit depends only on the graph as it is stored, and is the same on a CPU and on a GPU.
Hierholzer's algorithm [2]_ walks one arc after the other and finds other circuits; on one core it is faster.

.. [1] B. Awerbuch, A. Israeli, Y. Shiloach, "Finding Euler circuits in logarithmic parallel time", STOC 1984.
.. [2] C. Hierholzer, "Ueber die Moeglichkeit, einen Linienzug ohne Wiederholung und ohne Unterbrechung zu umfahren",
   Mathematische Annalen 6 (1873).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from gpuops._halves import half_of
from gpuops.arrays import library_of
from gpuops.errors import NotEulerianError
from gpuops.euler.balance import closing_arc, odd_edge, refuse_unbalanced
from gpuops.euler.certificate import verify_circuit as verify_circuit
from gpuops.euler.orientation import mates_of as mates_of
from gpuops.euler.orientation import orient
from gpuops.euler.stages import CircuitGraph as CircuitGraph
from gpuops.euler.stages import LinkForest as LinkForest
from gpuops.euler.stages import check_arcs
from gpuops.euler.stages import circuit_graph as circuit_graph
from gpuops.euler.stages import cycle_labels as cycle_labels
from gpuops.euler.stages import join_circuits as join_circuits
from gpuops.euler.stages import pair_arcs as pair_arcs
from gpuops.euler.stages import spanning_links as spanning_links
from gpuops.euler.stages import walk_circuits as walk_circuits


class EulerCircuit(NamedTuple):
    """Arcs in walking order: circuit k is ``arcs[offsets[k] : offsets[k + 1]]``, in the order of their least vertices.

    Attributes
    ----------
    arcs : (m,) int32, or int64 from 2^31 arcs on
        For an undirected graph (m / 2,): of the two arcs of each edge, the arc that is walked along.
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
    watch: Callable[[str, int], Any] | None = None,
) -> EulerCircuit:
    """Walk along every arc once: a closed walk for each component of the graph, or a path.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers, both NumPy or both CuPy arrays
        A graph in CSR. Loops and parallel arcs are walked along like any other arc; rows need not be sorted.
    start : int, optional
        The vertex where the path begins, or where the circuit of its component begins. By default a circuit begins with
        the least of its arcs, and a path of an undirected graph at the lesser of its two ends.
    path : bool
        Allow one vertex with one arc more out than in, and one vertex with one arc more in than out (undirected: two
        vertices of odd degree). The walk of their component then leads from the first vertex to the second.
    directed : bool
        False: every edge is stored twice, as the arcs (u, v) and (v, u), a loop as two arcs; the k-th arc from u to v
        and the k-th arc from v to u are one edge. Each edge is walked along once, in either direction.
    connected : bool
        Refuse a graph whose arcs lie in several components.
    method : {"stages", "hierholzer"}
        "hierholzer" takes NumPy arrays only, and finds other circuits.
    watch : callable, optional
        Called after each stage with the name of the stage and a number: "orient" (of an undirected graph) and "pair"
        with the number of arcs, "label" with the number of circuits so far, "span" with the number of links in the
        forest, "join", "walk" and "hierholzer" with the number of circuits of the result.

    Returns
    -------
    EulerCircuit

    Raises
    ------
    NotEulerianError
        Degrees are not balanced, an edge is stored only once, `connected` is true and the arcs are not connected, or
        the path does not begin at `start`. It is a ValueError.
    ValueError
        The arrays are not a CSR, or an argument is out of range.

    Examples
    --------
    >>> gpuops.euler_circuit(np.array([0, 1, 2, 3]), np.array([1, 2, 0])).arcs
    array([0, 1, 2], dtype=int32)
    """
    indptr, indices = check_arcs(indptr, indices)
    if method not in ("stages", "hierholzer"):
        raise ValueError(f"method is {method!r}; pass 'stages' or 'hierholzer'")
    _check_start(indptr, start)
    walk = _walk_directed if directed else _walk_undirected
    found = walk(indptr, indices, start, path, _Circuits(method, watch))
    if connected and len(found.offsets) > 2:
        first, second = (int(found.arcs[int(offset)]) for offset in found.offsets[:2])
        raise NotEulerianError(
            f"the arcs {first} and {second} lie in different components, {len(found.offsets) - 1:,} in all; "
            "pass connected=False for a circuit of each",
            arcs=(first, second),
        )
    return found


def _walk_directed(indptr: Any, indices: Any, start: int | None, path: bool, circuits: _Circuits) -> EulerCircuit:
    virtual = closing_arc(indptr, indices, start) if path else None
    if virtual is None:
        return circuits(indptr, indices, start, None)
    found = circuits(virtual.indptr, virtual.indices, None, virtual.arc)
    return virtual.cut(found)


def _walk_undirected(indptr: Any, indices: Any, start: int | None, path: bool, circuits: _Circuits) -> EulerCircuit:
    """Orient the edges, and walk along the graph as a directed one."""
    virtual = odd_edge(indptr, indices, start) if path else None
    if virtual is not None:
        indptr, indices = virtual.indptr, virtual.indices
    oriented = orient(indptr, indices, path)
    circuits.watch("orient", len(oriented.arcs))
    first = None if virtual is None else oriented.arc_of(virtual.arcs)
    found = circuits(oriented.indptr, oriented.indices, None if virtual is not None else start, first)
    found = EulerCircuit(oriented.arcs[found.arcs], found.offsets)
    return found if virtual is None else virtual.cut(found, oriented.mates)


class _Circuits:
    """Finds the circuits of directed graphs; if given, the arc `first` or the vertex `start` begins its circuit."""

    def __init__(self, method: str, watch: Callable[[str, int], Any] | None):
        self.method, self._watch = method, watch

    def watch(self, stage: str, count: int) -> None:
        if self._watch is not None:
            self._watch(stage, count)

    def __call__(self, indptr: Any, indices: Any, start: int | None, first: int | None) -> EulerCircuit:
        if first is None and start is not None:
            first = int(indptr[start])
        return (self._by_hierholzer if self.method == "hierholzer" else self._by_stages)(indptr, indices, first)

    def _by_stages(self, indptr: Any, indices: Any, first: int | None) -> EulerCircuit:
        predecessors = pair_arcs(indptr, indices)
        self.watch("pair", len(predecessors))
        labels = cycle_labels(predecessors)
        if self._watch is not None:
            self.watch("label", int((labels == library_of(labels).arange(len(labels))).sum()))
        forest = spanning_links(indptr, labels)
        self.watch("span", len(forest.slots))
        predecessors = join_circuits(predecessors, forest.slots)
        labels, starts = half_of("euler.euler", labels).relabel(forest.components, labels), forest.starts
        self.watch("join", len(starts))
        if first is not None:
            starts[library_of(starts).searchsorted(starts, labels[first])] = first
        found = EulerCircuit(*walk_circuits(predecessors, labels, starts))
        self.watch("walk", len(starts))
        return found

    def _by_hierholzer(self, indptr: np.ndarray, indices: np.ndarray, first: int | None) -> EulerCircuit:
        if not isinstance(indices, np.ndarray):
            raise TypeError("Hierholzer's algorithm takes NumPy arrays; use cupy.asnumpy, or method='stages'")
        found = half_of("euler.euler", indices).hierholzer(indptr, indices)
        if found is None:
            refuse_unbalanced(indptr, indices)
        arcs, offsets = found
        if first is not None:
            place = int(np.flatnonzero(arcs == first)[0])
            k = int(np.searchsorted(offsets, place, side="right"))
            circuit = slice(int(offsets[k - 1]), int(offsets[k]))
            arcs[circuit] = np.roll(arcs[circuit], circuit.start - place)
        self.watch("hierholzer", len(offsets) - 1)
        return EulerCircuit(arcs, offsets)


def _check_start(indptr: Any, start: int | None) -> None:
    if start is None:
        return
    n = len(indptr) - 1
    if not 0 <= start < n:
        raise ValueError(f"start is {start}; the vertices are 0 to {n - 1}")
    if int(indptr[start]) == int(indptr[start + 1]):
        raise NotEulerianError("no arc leaves vertex {}; start elsewhere", (start,))
