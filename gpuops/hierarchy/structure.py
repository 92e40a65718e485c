"""The structure of a hierarchy, and its exact cost. Both depend on the arcs, but not on their weights.

Eliminating a vertex joins its higher neighbours, the neighbours that are eliminated later. The lowest higher neighbour
is the parent of the vertex in the elimination tree; the remaining ones lie on the path from the parent to the root.
Higher neighbours are counted in little more than one pass over the arcs, without listing them. The exact cost is
therefore known before memory for the hierarchy is allocated.

A *node* is a range of vertices that are closed together: a whole subtree of a few vertices, or a piece of a chain whose
vertices have almost the same higher neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuops.arrays import contiguous
from gpuops.hierarchy import structure_numba
from gpuops.hierarchy.bricks import Bricks, brick_roots
from gpuops.hierarchy.order import check_graph
from gpuops.hierarchy.sweep_order import SweepOrder

_LEAF = 8  # most vertices of a subtree that becomes one node; a higher limit gives fewer nodes and a larger store
_SLACK = 0.2  # joining vertices of a chain to one node may increase the entries of their tables by this share
_BRICK = 512  # most vertices of a brick; with fewer, products are shallower and the upper tree is larger


@dataclass(frozen=True)
class Cost:
    """The exact cost of a hierarchy.

    Attributes
    ----------
    nodes : int
        Number of nodes.
    widest : int
        The most vertices that a node and its front have together. Closing the node takes a square matrix of this side.
    out, into, front : int
        Entries of all `out` tables and of all `into` tables, and vertices of all fronts. Computing a row of distances
        reads as many entries as `into` says.
    relaxations : int
        Relaxations that closing takes.
    """

    nodes: int
    widest: int
    out: int
    into: int
    front: int
    relaxations: int

    def table_bytes(self, dtype: Any, undirected: bool = False) -> int:
        """Return the bytes of the tables and fronts, for distances of `dtype`. Undirected graphs need no `into`."""
        entries = self.out + (0 if undirected else self.into)
        return entries * np.dtype(dtype).itemsize + self.front * np.dtype(np.int32).itemsize


@dataclass(frozen=True, eq=False)
class HierarchyStructure:
    """The nodes of a hierarchy and their fronts. It can be closed with any weights, and with fewer arcs.

    A vertex is named by its place, its position in `order`. Closed vertices have the last places, and are in no node.

    Attributes
    ----------
    order : (n,) int32
        The vertex at each place.
    starts : (N + 1,) int64
        The first place of each of N nodes, then the number of open vertices. A parent comes after its children.
    front_starts : (N + 1,) int64
        Where the front of each node begins in `front`, then the length of `front`.
    front : (cost.front,) int32
        Places of the vertices in the front of each node, ascending.
    roots : (K,) int32
        The last node of each brick, ascending.
    """

    order: np.ndarray
    starts: np.ndarray
    front_starts: np.ndarray
    front: np.ndarray
    roots: np.ndarray

    @property
    def open(self) -> int:
        """Number of open vertices."""
        return int(self.starts[-1])

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) int32: the place of each vertex."""
        place = np.empty(len(self.order), np.int32)
        place[self.order] = np.arange(len(self.order), dtype=np.int32)
        return place

    @cached_property
    def node_of(self) -> np.ndarray:
        """(open,) int32: the node of each place."""
        return _node_of(self.starts)

    @cached_property
    def parent(self) -> np.ndarray:
        """(N,) int32: the parent of each node, -1 for roots."""
        return _parents(self.node_of, self.front_starts, self.front)

    @cached_property
    def out_starts(self) -> np.ndarray:
        """(N + 1,) int64: where the `out` table of each node begins."""
        widths, fronts = np.diff(self.starts), np.diff(self.front_starts)
        return _ends(widths * (widths + fronts))

    @cached_property
    def into_starts(self) -> np.ndarray:
        """(N + 1,) int64: where the `into` table of each node begins."""
        return _ends(np.diff(self.starts) * np.diff(self.front_starts))

    @cached_property
    def bricks(self) -> Bricks:
        """The bricks, and the upper tree."""
        return Bricks.of(self.starts, self.front_starts, self.front, self.node_of, self.roots)

    @cached_property
    def sweep_order(self) -> SweepOrder:
        """The order in which a GPU sweeps the bricks and the upper tree."""
        return SweepOrder.of(self)


def hierarchy_structure(
    indptr: Any,
    indices: Any,
    order: Any,
    through: Any = None,
    *,
    limit: float | None = None,
    brick: int = _BRICK,
) -> tuple[HierarchyStructure, Cost]:
    """Return the structure of a hierarchy, and its exact cost.

    Parameters
    ----------
    indptr, indices : (n + 1,), (m,) NumPy arrays
        The graph in compressed sparse rows, int32 or int64.
    order : (n,) integers
        The result of `gpuops.hierarchy_order` for these arcs, or another permutation of the vertices. The order among
        closed vertices has no effect.
    through : (n,) array of bool, optional
        False for closed vertices, which no path passes through. By default no vertex is closed.
    limit : float, optional
        Most relaxations that closing may take. If closing takes more, ValueError is raised before any array of the size
        of the hierarchy is allocated.
    brick : int
        Most vertices of a brick, a subtree whose part of many rows is computed by one product.

    Returns
    -------
    structure : HierarchyStructure
    cost : Cost

    Raises
    ------
    TypeError, ValueError
        CuPy arrays, arrays that are not a graph, an order that is not a permutation, or a cost beyond the limit.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> order = gpuops.hierarchy_order(indptr, indices)
    >>> structure, cost = gpuops.hierarchy_structure(indptr, indices, order)
    >>> cost.nodes, cost.relaxations
    (1, 27)
    """
    through = check_graph(indptr, indices, through)
    n, order = len(indptr) - 1, np.asarray(order)
    if order.shape != (n,) or order.dtype.kind not in "iu" or not _is_permutation(order):
        raise ValueError(f"order is {order.dtype} of shape {order.shape}; pass a permutation of the {n:,} vertices")
    open_order = order[through[order]].astype(np.int32)
    size = len(open_order)
    whole = np.concatenate([open_order, np.flatnonzero(~through)]).astype(np.int32)
    rank = np.empty(n, np.int32)
    rank[whole] = np.arange(n, dtype=np.int32)
    arcs = contiguous(indptr), contiguous(indices)
    parent = structure_numba.elimination_tree(*structure_numba.deal(*arcs, rank, size, False)[:2])
    new, parent, sizes = structure_numba.postorder(parent)
    whole[new] = open_order
    rank[whole] = np.arange(n, dtype=np.int32)
    arc_starts, higher, _ = structure_numba.deal(*arcs, rank, size, True)
    counts = structure_numba.column_counts(arc_starts, higher, parent, sizes)
    ends = 1 + np.flatnonzero(structure_numba.node_ends(parent, sizes, counts, _LEAF, _SLACK))
    starts = np.concatenate([[0], ends]).astype(np.int64)
    widths, fronts = np.diff(starts), counts[starts[1:] - 1]
    cost = _cost(widths, fronts)
    if limit is not None and cost.relaxations > limit:
        raise ValueError(
            f"closing this graph takes {cost.relaxations:.3g} relaxations, with {cost.widest:,} vertices at once; "
            f"limit is {limit:.3g}. Searches suit such a graph: use batched_shortest_distances"
        )
    front_starts, node_of = _ends(fronts), _node_of(starts)
    front = structure_numba.fronts(arc_starts, higher, starts, front_starts, node_of)
    roots = brick_roots(widths, _parents(node_of, front_starts, front), brick)
    return HierarchyStructure(whole, starts, front_starts, front, roots), cost


def _is_permutation(order: np.ndarray) -> bool:
    seen = np.zeros(len(order), bool)
    if len(order) == 0 or order.min() < 0 or order.max() >= len(order):
        return len(order) == 0
    seen[order] = True
    return bool(seen.all())


def _cost(widths: np.ndarray, fronts: np.ndarray) -> Cost:
    sizes = widths + fronts
    entries = widths * sizes
    about = float((entries * sizes.astype(float)).sum())
    relaxations = int((entries * sizes).sum()) if about < 2**62 else int(about)
    widest = int(sizes.max(initial=0))
    return Cost(len(widths), widest, int(entries.sum()), int((widths * fronts).sum()), int(fronts.sum()), relaxations)


def _ends(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _node_of(starts: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))


def _parents(node_of: np.ndarray, front_starts: np.ndarray, front: np.ndarray) -> np.ndarray:
    parents = np.full(len(front_starts) - 1, -1, np.int32)
    inner = np.flatnonzero(np.diff(front_starts))
    parents[inner] = node_of[front[front_starts[inner]]]
    return parents
