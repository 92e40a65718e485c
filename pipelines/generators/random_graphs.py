"""Random graphs: R-MAT graphs, uniform graphs, acyclic graphs with negative arcs, and graphs with a negative cycle.

R-MAT [1]_ is the graph of the Graph500 benchmark [2]_. An arc is a cell of the adjacency matrix, found by halving the
matrix `scale` times, each time going to the top left, top right, bottom left or bottom right with probability a, b, c
or 1 - a - b - c. Graph500 uses .57, .19, .19, .05. It also scrambles the vertices, so that the number of a vertex does
not show its degree. Loops and parallel arcs are kept.

.. [1] D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004.
.. [2] Graph500 benchmark specification, https://graph500.org/?page_id=12
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, no_type_check

import numpy as np
from numba import njit

from gpuops.options import number, whole
from gpuops.recompiling import recompiled_with_imports
from gpuops.rmat import Drawing
from pipelines.generators.counter_random import ENDS, WEIGHT, below, draw, scramble_all, scrambler
from pipelines.generators.synthetic import Piece, SyntheticGraph

_ONE = np.uint64(1)
_BLOCK = np.uint64(0)


@dataclass(frozen=True)
class RMat(SyntheticGraph):
    """A Kronecker graph with 2^scale vertices and 2^scale * edge_factor edges.

    Attributes
    ----------
    scale : 0 to 40
    edge_factor : mean number of edges per vertex
    a, b, c : probabilities of the quadrants top left, top right and bottom left; bottom right has 1 - a - b - c
    scrambled : put the vertices in random order; with False they stay in the order of the recursion, hubs first
    """

    scale: int
    edge_factor: int = field(default=16, kw_only=True)
    a: float = field(default=0.57, kw_only=True)
    b: float = field(default=0.19, kw_only=True)
    c: float = field(default=0.19, kw_only=True)
    scrambled: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("scale", self.scale, 0, 40)
        whole("edge_factor", self.edge_factor, 0, 1 << 20)
        for name in "abc":
            number(name, getattr(self, name), 0, 1)
        if self.a + self.b + self.c > 1 + 1e-12:
            raise ValueError(f"the probabilities a + b + c sum to {self.a + self.b + self.c:g}; at most 1 is allowed")

    @property
    def n(self) -> int:
        return 1 << self.scale

    @property
    def ids(self) -> int:
        return self.n * self.edge_factor

    def _ends(self, start: int, stop: int) -> Piece:
        ids = np.arange(start, stop)
        tails, heads = np.empty_like(ids), np.empty_like(ids)
        _descend(np.uint64(self.seed), self.scale, *self._limits(), start, tails, heads)
        if self.scrambled:
            for ends in (tails, heads):
                scramble_all(ends, scrambler(self.seed, self.n))
        return ids, tails, heads

    def _limits(self) -> np.ndarray:
        """Return the sums a, a + b and a + b + c times 2^32, uint64 (3)."""
        return np.round(np.minimum(np.cumsum([self.a, self.b, self.c]), 1) * 2.0**32).astype(np.uint64)

    def drawing(self) -> Drawing | None:
        """Return parameters for a GPU to draw the same edges; None if weights are shifted or scale exceeds 31."""
        if self.shift or self.scale > 31:
            return None
        scramble = scrambler(self.seed, self.n)[3:].tolist() if self.scrambled else []
        limits, dtype = self._limits().tolist(), np.dtype(self.dtype)
        integers = self.weights == "integers"
        return Drawing(self.scale, self.ids, self.seed, tuple(limits), tuple(scramble), self.symmetric, integers, dtype)


@dataclass(frozen=True)
class UniformRandom(SyntheticGraph):
    """A graph of n vertices and n * edge_factor edges; both ends of an edge are uniform and independent.

    Attributes
    ----------
    n : 1 to 2^32
    edge_factor : mean number of edges per vertex
    """

    n: int
    edge_factor: int = field(default=16, kw_only=True)

    loops: ClassVar[bool] = True  # without loops, a head is a number below n - 1, which the kind turns into a vertex

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n", self.n, 1 if self.loops else 2, 1 << 32)
        whole("edge_factor", self.edge_factor, 0, 1 << 20)

    @property
    def ids(self) -> int:
        return self.n * self.edge_factor

    def _ends(self, start: int, stop: int) -> Piece:
        ids = np.arange(start, stop)
        tails, heads = np.empty_like(ids), np.empty_like(ids)
        _uniform(np.uint64(self.seed), self.n, self.n if self.loops else self.n - 1, start, tails, heads)
        return ids, tails, heads


@dataclass(frozen=True)
class Dag(UniformRandom):
    """A directed acyclic graph: every arc leads from an earlier to a later vertex of a hidden order.

    A weight is negated with probability `negative`. The graph has no cycles, so it has no negative cycle either.

    Attributes
    ----------
    n : 2 to 2^32
    edge_factor : mean number of arcs per vertex; the pairs of vertices are uniform
    negative : share of the arcs with a negative weight
    """

    directed: bool = field(default=True, kw_only=True)
    negative: float = field(default=0.5, kw_only=True)

    loops: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        number("negative", self.negative, 0, 1)
        _only_directed(self)

    def topological_order(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the vertices at the positions `start` to `stop` (excluded) of the hidden order, int64."""
        vertices = np.arange(start, self.n if stop is None else stop)
        scramble_all(vertices, scrambler(self.seed, self.n))
        return vertices

    def _ends(self, start: int, stop: int) -> Piece:
        ids, tails, heads = super()._ends(start, stop)
        heads += heads >= tails  # uniform over all positions but the tail's
        tails, heads = np.minimum(tails, heads), np.maximum(tails, heads)
        for ends in (tails, heads):
            scramble_all(ends, scrambler(self.seed, self.n))
        return ids, tails, heads

    def _draw_weights(self, ids: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
        weights = super()._draw_weights(ids, tails, heads)
        _negate(np.uint64(self.seed), np.uint64(round(self.negative * 2.0**32)), ids, weights)
        return weights


@dataclass(frozen=True)
class NegativeCycle(UniformRandom):
    """Uniform random arcs, shifted so that many weights are negative, and one planted cycle of negative total weight.

    Before the shift, the arcs of the planted cycle have the weight 0, except one arc of weight -g. Every other arc has
    at least the weight g (1 for integers, 1/16 for floats). So the planted cycle has the weight -g, and every other
    cycle 0 or more. All these weights are exact in float32. The planted arcs come first.

    Attributes
    ----------
    n : 1 to 2^32
    edge_factor : mean number of further arcs per vertex
    length : arcs on the cycle, 1 to n
    isolated : let no arc lead to the cycle from outside, so that a search from outside does not find the cycle
    cycle : the vertices of the planted cycle in travel order, and its weight
    """

    directed: bool = field(default=True, kw_only=True)
    shift: float = field(default=1.0, kw_only=True)
    length: int = field(default=8, kw_only=True)
    isolated: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("length", self.length, 1, self.n)
        _only_directed(self)

    @property
    def ids(self) -> int:
        return self.length + super().ids

    @property
    def gain(self) -> float:
        """The weight g of the class's docstring."""
        return 1 if self.weights == "integers" else 2.0**-4

    @cached_property
    def cycle(self) -> tuple[tuple[int, ...], float]:
        vertices = np.arange(self.length)
        scramble_all(vertices, scrambler(self.seed, self.n))
        return tuple(vertices.tolist()), -self.gain

    def _ends(self, start: int, stop: int) -> Piece:
        """As in the base class; the cycle is 0 .. length - 1, before vertices are scrambled."""
        ids, tails, heads = super()._ends(start, stop)
        planted = ids < self.length
        tails[planted], heads[planted] = ids[planted], (ids[planted] + 1) % self.length
        if self.isolated:
            kept = (heads >= self.length) | (tails < self.length)
            ids, tails, heads = ids[kept], tails[kept], heads[kept]
        for ends in (tails, heads):
            scramble_all(ends, scrambler(self.seed, self.n))
        return ids, tails, heads

    def _draw_weights(self, ids: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
        weights = super()._draw_weights(ids, tails, heads)
        np.maximum(weights, weights.dtype.type(self.gain), out=weights)
        weights[ids < self.length] = 0
        weights[ids == self.length - 1] = -self.gain
        return weights


def _only_directed(graph: SyntheticGraph) -> None:
    if not graph.directed:
        raise ValueError(
            f"{type(graph).__name__} must be directed: an undirected edge of negative weight is a negative cycle"
        )


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _descend(seed, scale, limit_a, limit_b, limit_c, start, tails, heads):
    """Write the cells where the recursion ends; `limit_*` are the sums a, a + b and a + b + c times 2^32."""
    blocks = (scale + 3) // 4
    tails[:] = heads[:] = 0
    for block in range(blocks):  # a block has four levels; arcs are the inner loop, so that it becomes vector code
        for i in range(tails.size):
            words = draw(seed, ENDS, np.uint64(start + i), np.uint64(block))
            u, v = np.uint64(tails[i]), np.uint64(heads[i])
            for word in words:
                lower = word >= limit_b
                right = (word >= limit_a) ^ lower ^ (word >= limit_c)
                u, v = u << _ONE | np.uint64(lower), v << _ONE | np.uint64(right)
            tails[i], heads[i] = u, v
    beyond = 4 * blocks - scale  # surplus levels: whole blocks are drawn
    tails >>= beyond
    heads >>= beyond


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _uniform(seed, tail_count, head_count, start, tails, heads):
    for i in range(tails.size):
        a, b, c, d = draw(seed, ENDS, np.uint64(start + i), _BLOCK)
        tails[i], heads[i] = below(np.uint64(tail_count), a, b), below(np.uint64(head_count), c, d)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _negate(seed, limit, ids, weights):
    """Negate a weight if the third word drawn for it is below `limit`."""
    for i in range(ids.size):
        _, _, word, _ = draw(seed, WEIGHT, np.uint64(ids[i]), _BLOCK)
        if word < limit:
            weights[i] = -weights[i]
