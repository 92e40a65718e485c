"""Bricks: maximal subtrees of a hierarchy, of up to 512 vertices by default. All other vertices are the upper tree.

Distances to a brick and its front are kept in one table; distances to the upper tree are kept in another. Every vertex
has a row in its table. In the table of a brick of b vertices, these vertices have the rows 0 to b - 1, in their order,
and the front has the rows from b on. In the table of the upper tree, rows begin at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops._compiled_numba import entry


@dataclass(frozen=True, eq=False)
class Bricks:
    """K bricks, in ascending order of their places, and the upper tree, which has the number K.

    Attributes
    ----------
    sizes : (K,) int64
        Vertices of each brick.
    first_place : (K,) int64
        The first place of each brick.
    nodes : (N,) int32
        The nodes of the first brick, of the second brick and so on, then of the upper tree; each list rises.
    node_starts : (K + 2,) int64
        Where the nodes of each brick begin in `nodes`, then where the nodes of the upper tree begin, then N.
    of_node : (N,) int32
        The brick of each node, K in the upper tree.
    node_row : (N,) int32
        The row of the first vertex of each node, in the table of its brick or of the upper tree.
    rows : (cost.front,) int32
        For each node, the rows of the vertices in its front, in the table of the node.
    front_starts : (K + 1,) int64
        Where the front of each brick begins in `front`, then the length of `front`.
    front : int32
        The front of each brick: rows of the table of the upper tree.
    upper : int
        Number of vertices of the upper tree.
    """

    sizes: np.ndarray
    first_place: np.ndarray
    nodes: np.ndarray
    node_starts: np.ndarray
    of_node: np.ndarray
    node_row: np.ndarray
    rows: np.ndarray
    front_starts: np.ndarray
    front: np.ndarray
    upper: int

    @classmethod
    def of(
        cls,
        starts: np.ndarray,
        front_starts: np.ndarray,
        front: np.ndarray,
        node_of: np.ndarray,
        roots: np.ndarray,
    ) -> Bricks:
        """Return the bricks whose last nodes are `roots`; the other arguments are arrays of a `HierarchyStructure`."""
        count, widths = len(roots), np.diff(starts)
        of_node = _spread(roots, node_of, front_starts, front)
        nodes = np.argsort(of_node, kind="stable").astype(np.int32)
        node_starts = np.searchsorted(of_node[nodes], np.arange(count + 2))
        before = np.concatenate([[0], np.cumsum(widths[nodes])])  # number of vertices before each node
        node_row = np.empty(len(widths), np.int32)
        node_row[nodes] = before[:-1] - before[node_starts[of_node[nodes]]]
        fronts = np.diff(front_starts)[roots]
        ends = np.concatenate([[0], np.cumsum(fronts)]).astype(np.int64)
        rows, brick_front = np.empty(len(front), np.int32), np.empty(ends[-1], np.int32)
        _rows(starts, front_starts, front, node_of, of_node, node_row, roots, ends, rows, brick_front)
        return cls(
            sizes=np.diff(before[node_starts])[:-1],
            first_place=starts[nodes[node_starts[:-2]]],
            nodes=nodes,
            node_starts=node_starts,
            of_node=of_node,
            node_row=node_row,
            rows=rows,
            front_starts=ends,
            front=brick_front,
            upper=int(before[-1] - before[node_starts[-2]]),
        )


def brick_roots(widths: np.ndarray, parent: np.ndarray, most: int) -> np.ndarray:
    """Return the last node of each maximal subtree of at most `most` vertices, ascending, int32."""
    return np.flatnonzero(_are_roots(widths, parent, most)).astype(np.int32)


@entry
def _are_roots(widths, parent, most):
    size = widths.copy()
    for node in range(len(parent)):
        if parent[node] >= 0:
            size[parent[node]] += size[node]
    small = size <= most
    for node in range(len(parent)):
        if parent[node] >= 0 and size[parent[node]] <= most:
            small[node] = False
    return small


@entry
def _spread(roots, node_of, front_starts, front):
    """Return the brick of each node, or the number of bricks for nodes of the upper tree."""
    of_node = np.full(len(front_starts) - 1, len(roots), np.int32)
    for brick in range(len(roots)):
        of_node[roots[brick]] = brick
    for node in range(len(of_node) - 1, -1, -1):
        if of_node[node] == len(roots) and front_starts[node] < front_starts[node + 1]:
            of_node[node] = of_node[node_of[front[front_starts[node]]]]
    return of_node


@entry
def _rows(starts, front_starts, front, node_of, of_node, node_row, roots, ends, rows, brick_front):
    """Fill `rows` and `brick_front`, the arrays `rows` and `front` of `Bricks`."""
    for node in range(len(of_node)):
        brick = of_node[node]
        outer = 0  # position in the brick's front, which rises like the node's front and contains its outer part
        for i in range(front_starts[node], front_starts[node + 1]):
            other = node_of[front[i]]
            row = node_row[other] + front[i] - starts[other]
            if of_node[other] == brick:
                rows[i] = row
                continue
            begin = front_starts[roots[brick]]
            while front[begin + outer] != front[i]:
                outer += 1
            root = roots[brick]
            rows[i] = node_row[root] + starts[root + 1] - starts[root] + outer
            if node == root:
                brick_front[ends[brick] + outer] = row
