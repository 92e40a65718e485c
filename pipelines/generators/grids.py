"""Grids and road-like graphs: vertices with few neighbours, and long shortest paths.

Vertex ``row * columns + column`` lies at (column, row), moved by up to `jitter` along both axes. If `jitter` is below
one half, no two streets cross. Streets lead to the four neighbours.

Some streets may be missing. Every vertex keeps either its street to the north or its street to the west, as a coin
decides; the first row keeps the streets to the west, and the first column the streets to the north. These streets form
a spanning tree, so the network is connected, although each vertex is decided alone. Any other street is missing with
the probability `missing`. With 0.7 the mean degree is 2.6, as in Rome; it is 2.4 in the road network of the USA.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, no_type_check

import numpy as np
from numba import njit

from gpuops.options import number, whole
from gpuops.recompiling import recompiled_with_imports
from pipelines.generators.counter_random import POSITION, STREET, draw
from pipelines.generators.synthetic import Piece, SyntheticGraph, both_ways

_ONE = np.uint64(1)
_BLOCK = np.uint64(0)


@dataclass(frozen=True)
class Grid(SyntheticGraph):
    """A grid of rows x columns vertices, with streets from each vertex to its four neighbours.

    Street 2 v leads from v to the east, street 2 v + 1 to the south. With `directed`, a street is two arcs with
    separate weights (which are equal if weights are lengths).

    Attributes
    ----------
    rows, columns : at least 1; by default, `columns` equals `rows`
    missing : probability that a street outside the spanning tree is missing
    jitter : largest distance a vertex is moved along each axis, 0 to 0.49
    """

    rows: int
    columns: int = 0
    missing: float = field(default=0.0, kw_only=True)
    jitter: float = field(default=0.0, kw_only=True)

    kinds_of_weights: ClassVar[tuple[str, ...]] = ("uniform", "integers", "lengths")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", self.columns or self.rows)
        whole("rows", self.rows, 1, 1 << 20)
        whole("columns", self.columns, 1, 1 << 20)
        number("missing", self.missing, 0, 1)
        number("jitter", self.jitter, 0, 0.49)

    @property
    def n(self) -> int:
        return self.rows * self.columns

    @property
    def ids(self) -> int:
        return 2 * self.n

    def coordinates(self) -> np.ndarray:
        """Return x and y of every vertex, float64 (n, 2). The unit is the distance of two neighbours without jitter."""
        positions = np.empty((self.n, 2))
        _positions(np.uint64(self.seed), self.columns, self.jitter, positions)
        return positions

    def _ends(self, start: int, stop: int) -> Piece:
        ids, tails, heads = np.empty((3, stop - start), dtype=np.int64)
        limit = np.uint64(round(self.missing * 2.0**32))
        count = _streets(np.uint64(self.seed), self.rows, self.columns, limit, start, stop, ids, tails, heads)
        ids, tails, heads = ids[:count], tails[:count], heads[:count]
        if self.directed:
            ids, _ = both_ways(2 * ids, 2 * ids)
            ids[1::2] += 1
            tails, heads = both_ways(tails, heads)
        return ids, tails, heads

    def _draw_weights(self, ids: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
        if self.weights != "lengths":
            return super()._draw_weights(ids, tails, heads)
        weights = np.empty(ids.size, self.dtype)
        _lengths(np.uint64(self.seed), self.columns, self.jitter, tails, heads, weights)
        return weights


@dataclass(frozen=True)
class Road(Grid):
    """A road-like network: a jittered grid with missing streets. The weights are the lengths of the streets."""

    weights: str = field(default="lengths", kw_only=True)
    missing: float = field(default=0.7, kw_only=True)
    jitter: float = field(default=0.3, kw_only=True)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _streets(seed, rows, columns, limit, start, stop, ids, tails, heads):
    """Write number, tail and head of every existing street; returns how many streets exist."""
    count = 0
    for street in range(start, stop):
        v, to_the_south = street >> 1, street & 1
        if to_the_south:
            there, other = v // columns + 1 < rows, v + columns
        else:
            there, other = v % columns + 1 < columns, v + 1
        if not there:
            continue
        if limit:  # `other` keeps either its street to the north or its street to the west
            coin, luck, _, _ = draw(seed, STREET, np.uint64(other), _BLOCK)
            keeps_north = other >= columns and (other % columns == 0 or coin & _ONE)
            if bool(to_the_south) != bool(keeps_north) and luck < limit:
                continue
        ids[count], tails[count], heads[count] = street, v, other
        count += 1
    return count


@njit(nogil=True, cache=True, inline="always")
@recompiled_with_imports
@no_type_check
def _position(seed, columns, jitter, v):
    right, _, down, _ = draw(seed, POSITION, np.uint64(v), _BLOCK)
    x = v % columns + jitter * (np.float64(right) * 2.0**-31 - 1.0)
    y = v // columns + jitter * (np.float64(down) * 2.0**-31 - 1.0)
    return x, y


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _positions(seed, columns, jitter, positions):
    for v in range(len(positions)):
        positions[v, 0], positions[v, 1] = _position(seed, columns, jitter, v)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _lengths(seed, columns, jitter, tails, heads, weights):
    for i in range(tails.size):
        x, y = _position(seed, columns, jitter, tails[i])
        to_x, to_y = _position(seed, columns, jitter, heads[i])
        weights[i] = np.sqrt((to_x - x) ** 2 + (to_y - y) ** 2)
