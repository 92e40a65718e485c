"""The order in which a GPU sweeps the bricks and the upper tree of a hierarchy: level by level (sweeps.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuops import csr
from gpuops._compiled_numba import entry

if TYPE_CHECKING:
    from gpuops.hierarchy.structure import HierarchyStructure

CHUNK = 8  # most vertices of a chunk


@dataclass(frozen=True, eq=False)
class SweepOrder:
    """The vertices of each brick by levels, and the upper tree in chunks by levels.

    K bricks with L levels together, N nodes, V open vertices; the upper tree has M levels and C chunks. The first level
    of a brick or of the upper tree has its roots. Vertices of a level need distances of earlier levels only. A *chunk*
    is up to eight vertices of one node that follow each other; it needs distances of earlier chunks only.

    Attributes
    ----------
    node, row : (V,) int32
        The node of each vertex, and its row in the table of its brick or of the upper tree. The vertices of the upper
        tree are the last.
    level_starts : (L + M + 1,) int64
        Where each level begins in `node`, then V.
    brick_levels : (K + 1,) int64
        The first level of each brick, then L.
    chunk_node, chunk_row, chunk_size : (C,) int32
        The node of each chunk, the row of its first vertex, and the number of its vertices.
    """

    node: np.ndarray
    row: np.ndarray
    level_starts: np.ndarray
    brick_levels: np.ndarray
    chunk_node: np.ndarray
    chunk_row: np.ndarray
    chunk_size: np.ndarray

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
        row = (bricks.node_row[node] + csr.in_ranges(0, widths[nodes])).astype(np.int32)

        above = nodes[np.searchsorted(own_brick, count) :]  # nodes of the upper tree, by depth
        chunks = -(-widths[above] // CHUNK)
        chunk_node, piece = np.repeat(above, chunks), csr.in_ranges(0, chunks)
        chunk_row = (bricks.node_row[chunk_node] + CHUNK * piece).astype(np.int32)
        return cls(
            node=node,
            row=row,
            level_starts=np.append(before[:-1][new], before[-1]),
            brick_levels=np.searchsorted(own_brick[new], np.arange(count + 1)),
            chunk_node=chunk_node,
            chunk_row=chunk_row,
            chunk_size=np.minimum(widths[chunk_node] - CHUNK * piece, CHUNK).astype(np.int32),
        )


@entry
def _depths(parent, of_node):
    """Return how many nodes of its brick, or of the upper tree, are above each node."""
    depth = np.zeros(len(parent), np.int32)
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0 and of_node[parent[node]] == of_node[node]:
            depth[node] = depth[parent[node]] + 1
    return depth
