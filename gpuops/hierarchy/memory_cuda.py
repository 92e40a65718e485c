"""The memory that a GPU takes to answer from a hierarchy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._strips import SHAPES, WORDS
from gpuops.hierarchy.structure import HierarchyStructure
from gpuops.hierarchy.windows import count_windows

# Most bytes of intermediate arrays for a batch of sources; on very large graphs, `batch_bytes` is more.
SOURCES_BYTES = 2**31
# Arrays for many sources are padded to a multiple of this number of sources.
SOURCES = 128


def source_bytes(fronts: int, upper: int, width: int, dtype: np.dtype) -> int:
    """Return the bytes of the intermediate arrays for an open source.

    `fronts` is the number of vertices of the fronts of all bricks, `upper` the number of vertices of the upper tree,
    and `width` the most vertices of a brick and its front.
    """
    return dtype.itemsize * (2 * upper + 3 * width) + arithmetic_of(dtype, True).word.itemsize * (fronts + upper + 1)


def batch_bytes(of_source: int) -> int:
    """Return the most bytes of intermediate arrays for a batch: room for `SOURCES` open sources, or more."""
    return max(SOURCES_BYTES, SOURCES * of_source)


def panel_depth(most: int, of_thread: int) -> int:
    """Return the rows of the panels of tables for fronts of at most `most` vertices: an even number."""
    return -(-max(most, of_thread) // 2) * 2


def width_of(structure: HierarchyStructure) -> int:
    """Return the most vertices of a brick and its front."""
    return int((structure.bricks.sizes + np.diff(structure.bricks.front_starts)).max(initial=1))


def answering_bytes(structure: HierarchyStructure, dtype: Any) -> int:
    """Return the most bytes that answering in `dtype` takes on a GPU.

    The `out` and `into` tables, the results, and panels for the arcs into closed destinations are not counted.
    """
    bricks, dtype = structure.bricks, np.dtype(dtype)
    arithmetic, depths = arithmetic_of(dtype, True), np.diff(bricks.front_starts)
    shape, of_thread = SHAPES[arithmetic.name], WORDS * arithmetic.lanes
    nodes, n, count, upper = len(structure.parent), len(structure.order), len(bricks.sizes), bricks.upper
    windows = count_windows(structure, of_thread, shape.threads)
    threads, pads = windows * shape.threads, windows * (of_thread - 1)
    panels = threads * WORDS * arithmetic.word.itemsize * panel_depth(int(depths.max(initial=0)), of_thread)
    columns = threads * (8 + 8 * of_thread) + 4 * (upper + pads) + 8 * count + 4 * n
    tables = dtype.itemsize * int((bricks.sizes * depths).sum())
    tree = 40 * nodes + 4 * len(structure.front) + 16 * structure.open + 28 * count + 4 * len(bricks.front)
    tree += 16 * upper
    of_source = source_bytes(len(bricks.front), upper, width_of(structure), dtype)
    return batch_bytes(of_source) + panels + columns + tables + tree
