"""Directed graphs with an Euler circuit: deep graphs, whose pairing has few circuits, and shallow graphs, with many.

Both kinds are by F. Cherny [1]_. At every vertex, as many arcs arrive as leave, and the graph is connected (a deep
graph nearly always). Each arc of a deep graph depends on all arcs before it. So a deep graph is made whole, in memory,
and then handed out by ranges of arcs; its random numbers are drawn by counter, so it is the same on any machine. An arc
of a shallow graph is a function of its number.

A third kind has given degrees, and random arcs (`euler_of_degrees`).

The number of circuits of the pairing depends on the order of the arcs within rows. The arcs of a shallow graph are in
random order, as published. A store sorts them by head, unless it is generated with ``sorted_rows=False``.

.. [1] "Zooming Through Euler Path: Supercharging with GPU", viralfsharp.com, December 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import ClassVar, no_type_check

import numpy as np
from numba import njit

from gpuops.options import whole
from gpuops.recompiling import recompiled_with_imports
from pipelines.generators.counter_random import ENDS, below, draw, scramble_all, scrambler
from pipelines.generators.synthetic import Piece, SyntheticGraph

_BLOCK = np.uint64(0)
_WORD = np.uint64(32)
_MAKING = Lock()  # several threads ask for pieces at once: the first thread makes the graph for all threads


@dataclass(frozen=True, kw_only=True)
class _Eulerian(SyntheticGraph):
    """A directed graph, unweighted by default, that has an Euler circuit as long as it has all its arcs."""

    directed: bool = True
    weights: str = "none"

    kinds_of_weights: ClassVar[tuple[str, ...]] = ("none", "uniform", "integers")
    every_arc: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.directed:
            raise ValueError(f"{type(self).__name__} is always directed; leave out directed=False")


@dataclass(frozen=True)
class EulerGraph(_Eulerian):
    """A deep graph: q(i) arcs leave vertex i and q(i) arcs arrive there, q uniform from 1 to k.

    For i = 0, 1, ... in turn, q(i) arcs lead from i to the next vertices i + 1, i + 2, ... (mod n); a vertex j where
    q(j) arcs already arrive is passed over. There are n (k + 1) / 2 arcs on average, in the order of their tails.

    Attributes
    ----------
    n : number of vertices, 1 to 2^32; with `path`, 2 or more
    k : most arcs that leave a vertex, 1 to 127
    path : leave out the first arc, 0 -> 1, so that an Euler path from 1 to 0 remains of the circuit
    """

    n: int
    k: int = 7
    path: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n", self.n, 2 if self.path else 1, 1 << 32)
        whole("k", self.k, 1, 127)

    @property
    def ids(self) -> int:
        return int(self.rows[0][-1])

    @property
    def held_bytes(self) -> int:
        return self.n * (9 + self._vertex.itemsize) + self.n * (self.k + 1) // 2 * self._vertex.itemsize

    @property
    def _vertex(self) -> np.dtype:
        return np.dtype(np.int32 if self.n < 2**31 else np.int64)

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The graph in CSR, as indptr and indices; made at the first use, then kept."""
        with _MAKING:
            if "rows" in vars(self):
                return self.rows  # another thread was faster
            quotas = np.empty(self.n, np.int8)
            _draw_quotas(np.uint64(self.seed), np.uint64(self.k), quotas)
            indptr = np.zeros(self.n + 1, np.int64)
            np.cumsum(quotas, out=indptr[1:])
            heads = np.empty(indptr[-1], self._vertex)
            _deal(indptr, quotas, np.arange(self.n + 1, dtype=self._vertex), heads)
            if self.path:
                indptr[1:] -= 1
                heads = heads[1:]
            return indptr, heads

    def _ends(self, start: int, stop: int) -> Piece:
        indptr, heads = self.rows
        ids = np.arange(start, stop)
        return ids, np.searchsorted(indptr, ids, side="right") - 1, heads[start:stop].astype(np.int64)


@dataclass(frozen=True)
class ShallowEulerGraph(_Eulerian):
    """A shallow graph: triangles of a new vertex and two random earlier vertices, then random pairs of opposite arcs.

    The arcs 0 -> 1 and 1 -> 0 come first. For i = 2, 3, ... follows the triangle a -> i, i -> b, b -> a, with a and b
    uniform below i. Then follow pairs a -> b, b -> a of uniform vertices, until there are `edges` arcs or one arc less.
    As published, the graph has one vertex less than `vertices`. Finally the arcs are put in random order.

    Attributes
    ----------
    vertices : number of vertices plus 1, 3 to 2^32
    edges : number of arcs, 3 * vertices - 7 or more; by default 3 * vertices
    scrambled : put the arcs in random order; with False they stay in the order above
    """

    vertices: int
    edges: int = 0
    scrambled: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("vertices", self.vertices, 3, 1 << 32)
        object.__setattr__(self, "edges", self.edges or 3 * self.vertices)
        whole("edges", self.edges, self._triangles_end, 1 << 40)

    @property
    def n(self) -> int:
        return self.vertices - 1

    @property
    def ids(self) -> int:
        end = self._triangles_end
        return end + (self.edges - end) // 2 * 2

    @property
    def _triangles_end(self) -> int:
        return 3 * self.vertices - 7

    def _ends(self, start: int, stop: int) -> Piece:
        ids = np.arange(start, stop)
        tails, heads = np.empty_like(ids), np.empty_like(ids)
        if self.scrambled:
            scramble_all(ids, scrambler(self.seed, self.ids))
        _triangles_and_pairs(np.uint64(self.seed), self.n, ids, tails, heads)
        return ids, tails, heads


def euler_of_degrees(degrees: Sequence[int] | np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a random directed graph in CSR: degrees[v] arcs leave vertex v, and degrees[v] arcs arrive there.

    Tails and heads are matched at random, and every matching is equally likely. So loops and parallel arcs may occur,
    and the graph need not be connected.

    Parameters
    ----------
    degrees : integers (n), 0 or more
    seed : 0 to 2^64 - 1; the same seed makes the same graph anywhere

    Returns
    -------
    indptr : int64 (n + 1)
    indices : int32 (m), int64 from 2^31 vertices on
        Heads in random order within rows.

    Raises
    ------
    ValueError
        A degree is negative or not an integer, or there is no vertex.
    """
    whole("seed", seed, 0, 2**64 - 1)
    given = np.asarray(degrees)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise ValueError(f"degrees are {given.dtype} of the shape {given.shape}; give an integer for each vertex")
    if given.min() < 0:
        v = int(given.argmin())
        raise ValueError(f"degrees[{v}] is {given[v]}; give 0 or more")
    n = given.size
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(given, out=indptr[1:])
    keys = np.empty(indptr[-1], np.uint64)
    _draw_keys(np.uint64(seed), keys)
    arrivals = np.repeat(np.arange(n, dtype=np.int32 if n <= 2**31 else np.int64), given)
    return indptr, arrivals[np.argsort(keys, kind="stable")]


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _draw_quotas(seed, k, quotas):
    for i in range(quotas.size):
        high, low, _, _ = draw(seed, ENDS, np.uint64(i), _BLOCK)
        quotas[i] = below(k, high, low) + np.uint64(1)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _draw_keys(seed, keys):
    for i in range(keys.size):
        high, low, _, _ = draw(seed, ENDS, np.uint64(i), _BLOCK)
        keys[i] = high << _WORD | low


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _deal(indptr, left, following, heads):
    """Write the heads of all arcs of a deep graph.

    `left` has for each vertex how many arcs must still arrive there. `following` leads from each vertex, in one or more
    steps, to the next vertex with arcs left: that vertex points to itself.
    """
    n = left.size
    for i in range(n):
        j = np.int64(i)
        for slot in range(indptr[i], indptr[i + 1]):
            j = _next(following, j + 1)
            if j == n:
                j = _next(following, 0)
            heads[slot] = j
            left[j] -= 1
            if left[j] == 0:
                following[j] = j + 1


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _next(following, j):
    """Return the vertex where the steps from j end; halves the path, so that later searches take fewer steps."""
    while following[j] != j:
        following[j] = following[following[j]]
        j = np.int64(following[j])
    return j


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _triangles_and_pairs(seed, n, arcs, tails, heads):
    paired = 2 + 3 * (n - 2)
    for place in range(tails.size):
        arc = arcs[place]
        if arc < 2:
            tails[place], heads[place] = arc, 1 - arc
            continue
        if arc < paired:
            i, part, bound = 2 + (arc - 2) // 3, (arc - 2) % 3, 2 + (arc - 2) // 3
        else:
            i, part, bound = n + (arc - paired) // 2, 3 + (arc - paired) % 2, n
        words = draw(seed, ENDS, np.uint64(i), _BLOCK)
        a = np.int64(below(np.uint64(bound), words[0], words[1]))
        b = np.int64(below(np.uint64(bound), words[2], words[3]))
        if part == 0:
            tails[place], heads[place] = a, i
        elif part == 1:
            tails[place], heads[place] = i, b
        elif part == 2 or part == 4:
            tails[place], heads[place] = b, a
        else:
            tails[place], heads[place] = a, b
