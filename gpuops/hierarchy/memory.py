"""The most memory that making a hierarchy takes in addition to its arguments, so that a plan can refuse in advance; and
the memory that answers need: on a GPU, and for the tables of all bricks.

The sums follow the arrays that are alive at the fullest point of each step. For roads and grids of 62,500 to 1,000,000
vertices, the resident memory of a process grew by 83 to 96 % of the sums. `hierarchy_order` took 39 to 96 %, because
its sum assumes that METIS orders all vertices.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from gpuops.hierarchy.memory_cuda import answering_bytes as answering_bytes
from gpuops.hierarchy.memory_cuda import width_of
from gpuops.hierarchy.structure import Cost, HierarchyStructure

BATCH = 64  # sources that climb and sweep together
ROUND = 2**24  # most distances to the upper tree in memory, and most distances in float64 before their conversion
TABLES = 2**26  # most entries of tables that are in memory at a time, unless the tables of all bricks are kept
_MARGIN = 1.1  # factor for memory that the allocator keeps
_KEPT = 4  # the tables of all bricks are kept if they take at most 1 / _KEPT of the memory


def order_bytes(n: int, m: int) -> int:
    """Return the bytes that `hierarchy_order` takes for n vertices and m arcs, if METIS orders all of the vertices."""
    return 100 * n + 64 * m


def structure_bytes(n: int, m: int, cost: Cost) -> int:
    """Return the bytes that `hierarchy_structure` takes, with its result; 53 n + 12 m before it refuses a cost."""
    return 66 * n + 14 * m + 13 * cost.front + 70 * cost.nodes


def closing_bytes(structure: HierarchyStructure, cost: Cost, m: int, dtype: Any, undirected: bool = False) -> int:
    """Return the bytes that `close_hierarchy` takes for m arcs, with its result, on up to two threads."""
    n, item = len(structure.order), np.dtype(dtype).itemsize
    fronts = np.diff(structure.front_starts)[structure.roots]
    updates = int((fronts**2).sum()) + 6 * cost.widest**2
    entries = cost.out + (0 if undirected else cost.into) + updates
    closing = item * (entries + m) + 20 * n + 12 * m + 130 * cost.nodes + 4 * cost.front
    checking = (33 + 2 * item) * m  # while the weights are converted
    return int(_MARGIN * max(closing, checking))


def brick_bytes(structure: HierarchyStructure, dtype: Any) -> int:
    """Return the bytes of the tables of all bricks, without those for closed vertices."""
    bricks = structure.bricks
    return int((bricks.sizes * np.diff(bricks.front_starts)).sum()) * np.dtype(dtype).itemsize


def answer_bytes(structure: HierarchyStructure, dtype: Any, sources: int, destinations: int, converted: bool) -> int:
    """Return the most bytes of intermediate arrays of `gpuops.distance_rows` or `distance_block` on a CPU, less tables.

    Parameters
    ----------
    sources, destinations : int
        Numbers of rows and columns of the result.
    converted : bool
        Whether distances are computed in float64 and then converted.
    """
    bricks, item = structure.bricks, np.dtype(dtype).itemsize
    batches, width = -(-sources // BATCH) * BATCH, width_of(structure)
    above = min(batches * bricks.upper, max(ROUND, BATCH * bricks.upper))
    threads = numba.config.NUMBA_NUM_THREADS * BATCH * 4 * width
    rows = min(sources * destinations, max(ROUND, destinations)) if converted else 0
    return int(_MARGIN * item * (above + threads + rows))


def window_bytes(structure: HierarchyStructure, dtype: Any) -> int:
    """Return the most bytes of the tables of bricks that are in memory at a time, where they are not kept."""
    closed = len(structure.order) > structure.open  # a closed destination may have a column in several bricks
    item = np.dtype(dtype).itemsize
    return TABLES * item if closed else min(TABLES * item, brick_bytes(structure, dtype))


def kept_most(available: int, share: float | None = None) -> int:
    """Return the most bytes of the tables of all bricks that `gpuops.distance_rows` keeps for later calls.

    Parameters
    ----------
    available : int
        Bytes of memory that are available.
    share : float, optional
        The share of this process, by default its share of the threads: other processes of the host may do the same.
    """
    if share is None:
        share = numba.config.NUMBA_NUM_THREADS / numba.config.NUMBA_DEFAULT_NUM_THREADS
    return int(available * min(1.0, share)) // _KEPT
