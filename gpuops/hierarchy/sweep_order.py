"""The order in which a GPU sweeps the bricks and the upper tree of a hierarchy: level by level (sweeps.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from gpuops.hierarchy.structure import HierarchyStructure

CHUNK = 8  # most vertices of a chunk


@dataclass(frozen=True, eq=False)
class SweepOrder:
    """The vertices of each brick by levels, and the upper tree in chunks by levels.

    K bricks with L levels together, N nodes, V open vertices; the upper tree has M levels and C chunks. The first level
    of a brick or of the upper tree has its roots. Vertices of a level need distances of earlier levels only. A *chunk*
    is up to eight vertices of one node that follow each other.

    Attributes
    ----------
    node, row : (V,) int32
        The node of each vertex, and its row in the table of its brick or of the upper tree. The vertices of the upper
        tree are the last.
    level_starts : (L + M + 1,) int64
        Where each level begins in `node`, then V.
    brick_levels : (K + 1,) int64
        The first level of each brick, then L.
    upper : (N,) int32
        Numbers of the nodes in the upper tree, -1 for other nodes.
    chunk_levels : (M + 1,) int64
        The first chunk of each level, then C.
    chunk_node, chunk_row, chunk_size : (C,) int32
        The node of each chunk, the row of its first vertex, and the number of its vertices.
    pull_starts : (C + 1,) int64
        For each chunk, where its nodes begin in the following arrays.
    pull_node, pull_place, pull_mask : int32
        The nodes of the upper tree whose fronts have vertices of the chunk; the position in the front of the first such
        vertex; and one bit for each vertex of the chunk, set if the front has it. In the front, the vertices of a chunk
        follow each other.
    """

    node: np.ndarray
    row: np.ndarray
    level_starts: np.ndarray
    brick_levels: np.ndarray
    upper: np.ndarray
    chunk_levels: np.ndarray
    chunk_node: np.ndarray
    chunk_row: np.ndarray
    chunk_size: np.ndarray
    pull_starts: np.ndarray
    pull_node: np.ndarray
    pull_place: np.ndarray
    pull_mask: np.ndarray

    @classmethod
    def of(cls, structure: HierarchyStructure) -> SweepOrder:
        """Find the levels of a structure."""
        bricks, widths = structure.bricks, np.diff(structure.starts)
        count, of_node = len(bricks.sizes), bricks.of_node
        depth = _depths(structure.parent, of_node)
        nodes = np.lexsort((depth, of_node)).astype(np.int32)
        own_depth, own_brick = depth[nodes], of_node[nodes]
        new = np.append(True, (np.diff(own_depth) != 0) | (np.diff(own_brick) != 0))[: len(nodes)]
        before = np.concatenate([[0], np.cumsum(widths[nodes])])
        node = np.repeat(nodes, widths[nodes])
        row = (bricks.node_row[node] + _within(widths[nodes])).astype(np.int32)

        above = nodes[np.searchsorted(own_brick, count) :]  # nodes of the upper tree, by depth
        chunks = -(-widths[above] // CHUNK)
        chunk_node, piece = np.repeat(above, chunks), _within(chunks)
        chunk_row = (bricks.node_row[chunk_node] + CHUNK * piece).astype(np.int32)
        levels = np.flatnonzero(np.append(True, np.diff(depth[chunk_node]) != 0)[: len(chunk_node)])
        upper = np.full(len(nodes), -1, np.int32)
        upper[above] = np.arange(len(above))

        fronts = np.diff(structure.front_starts)[above]
        pull_node, pull_place = np.repeat(above, fronts), _within(fronts)
        rows = bricks.rows[structure.front_starts[pull_node] + pull_place]
        chunk_size = np.minimum(widths[chunk_node] - CHUNK * piece, CHUNK).astype(np.int32)
        chunk_of = np.empty(bricks.upper, np.int64)
        in_chunk = np.empty(bricks.upper, np.int64)
        of_row = np.repeat(chunk_row, chunk_size) + _within(chunk_size)
        chunk_of[of_row], in_chunk[of_row] = np.repeat(np.arange(len(chunk_node)), chunk_size), _within(chunk_size)
        order = np.lexsort((pull_place, upper[pull_node], chunk_of[rows]))
        chunk, pull_node, pull_place, rows = chunk_of[rows][order], pull_node[order], pull_place[order], rows[order]
        first = np.flatnonzero(np.append(True, (np.diff(chunk) != 0) | (np.diff(pull_node) != 0))[: len(chunk)])
        bits = 1 << in_chunk[rows]
        return cls(
            node=node,
            row=row,
            level_starts=np.append(before[:-1][new], before[-1]),
            brick_levels=np.searchsorted(own_brick[new], np.arange(count + 1)),
            upper=upper,
            chunk_levels=np.append(levels, len(chunk_node)),
            chunk_node=chunk_node,
            chunk_row=chunk_row,
            chunk_size=chunk_size,
            pull_starts=np.concatenate([[0], np.cumsum(np.bincount(chunk[first], minlength=len(chunk_node)))]),
            pull_node=pull_node[first],
            pull_place=pull_place[first].astype(np.int32),
            pull_mask=(np.add.reduceat(bits, first) if len(first) else bits).astype(np.int32),
        )


def _within(counts: np.ndarray) -> np.ndarray:
    """Return 0 to c - 1 for each count c, one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


@njit(nogil=True, cache=True)
def _depths(parent, of_node):
    """Return how many nodes of its brick, or of the upper tree, are above each node."""
    depth = np.zeros(len(parent), np.int32)
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0 and of_node[parent[node]] == of_node[node]:
            depth[node] = depth[parent[node]] + 1
    return depth
