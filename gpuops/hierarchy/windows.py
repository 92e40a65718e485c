"""Lay out all vertices as columns of products, in windows of neighbours in the result (columns.cuh).

A window has as many columns as its threads can take. All columns of a thread belong to one brick, or to the upper tree.
The layout depends on the structure alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops.hierarchy import windows_numba
from gpuops.hierarchy.structure import HierarchyStructure

_ALIGNED = 32  # the columns of a window are a multiple of this number


class Windows(NamedTuple):
    """All vertices as columns; int32 arrays, of NumPy or on the device.

    Attributes
    ----------
    columns : int
        Number of columns.
    window : int
        Number of columns of a window.
    thread_brick, thread_front, slot_rows, numbers : arrays
        As in columns.cuh.
    upper_columns : array
        The vertices of the upper tree in the slots of threads, -1 for slots without a column.
    firsts, counts : arrays
        Where the slots of each brick begin in `slots`, and their number.
    slots : array
        The slots of the vertices, brick after brick.
    """

    columns: int
    window: int
    thread_brick: Any
    thread_front: Any
    slot_rows: Any
    numbers: Any
    upper_columns: Any
    firsts: Any
    counts: Any
    slots: Any

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays."""
        return self[2:]


def count_windows(structure: HierarchyStructure, of_thread: int, threads: int) -> int:
    """Return the number of windows of `windows_of_all`."""
    brick, _ = _look_up(structure)
    return math.ceil(len(brick) / max(1, window_of(brick, len(structure.bricks.sizes) + 2, of_thread, threads)))


def windows_of_all(structure: HierarchyStructure, of_thread: int, threads: int) -> Windows:
    """Return all vertices in windows of `threads` threads, which take `of_thread` columns each."""
    bricks, count = structure.bricks, len(structure.bricks.sizes)
    brick, row = _look_up(structure)
    window = window_of(brick, count + 2, of_thread, threads)
    thread_brick, numbers, columns = share_out(brick, count + 2, window, of_thread, threads)
    slot_rows = np.where(columns >= 0, np.append(row, -1)[columns], -1).astype(np.int32)
    upper = np.flatnonzero(thread_brick == count)
    upper_columns = slot_rows.reshape(-1, of_thread)[upper].ravel() if len(upper) else np.full(of_thread, -1)
    depths = np.append(bricks.front_starts[:-1], [0, 0])
    thread_front = depths[thread_brick]
    thread_front[upper] = len(bricks.front) + of_thread * np.arange(len(upper))
    there = np.flatnonzero((columns >= 0) & np.repeat((thread_brick >= 0) & (thread_brick < count), of_thread))
    of_slot = np.repeat(thread_brick, of_thread)[there]
    slots = there[np.argsort(of_slot, kind="stable")]
    counts = np.bincount(of_slot, minlength=count)
    thread_brick[thread_brick > count] = -1  # closed vertices: no distances by the tree
    slot_rows[np.repeat(thread_brick < 0, of_thread)] = -1
    windows_numba.number_absent(numbers, threads * of_thread, window, len(brick))
    return Windows(
        len(brick), window, thread_brick, thread_front, slot_rows, numbers, upper_columns,
        np.cumsum(counts) - counts, counts, slots,
    )  # fmt: skip


def _look_up(structure: HierarchyStructure) -> tuple[np.ndarray, np.ndarray]:
    """Return the brick of each vertex, and its row there."""
    bricks = structure.bricks
    return windows_numba.look_up(
        structure.place, structure.node_of, bricks.of_node, bricks.node_row, structure.starts, len(bricks.sizes)
    )


def threads_of(part: np.ndarray, parts: int, of_thread: int) -> int:
    """Return how many threads all columns take if they are one window."""
    return int(windows_numba.most_threads(part, parts, max(1, len(part)), of_thread, len(part)))


def fits_windows(part: np.ndarray, parts: int, window: int, of_thread: int, across: int) -> bool:
    """Return whether no window of this width needs more than `across` threads."""
    return bool(windows_numba.most_threads(part, parts, max(1, window), of_thread, across) <= across)


def window_of(part: np.ndarray, parts: int, of_thread: int, across: int) -> int:
    """Return a width, about the largest, at which no window needs more than `across` threads, which are 32 or more."""
    count = math.ceil(threads_of(part, parts, of_thread) / across)
    while True:
        window = math.ceil(len(part) / max(1, count) / _ALIGNED) * _ALIGNED
        if window <= across or fits_windows(part, parts, window, of_thread, across):
            return window
        count += max(1, count // 32)


def share_out(
    part: np.ndarray, parts: int, window: int, of_thread: int, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Deal columns of these parts, in windows of `window` columns, each to `threads` threads.

    Returns the part of each thread; and for each of its slots the number of the column in its window, and among all
    columns. -1 stands for none. Neighbouring columns of a part go to neighbouring threads, which then store to
    different banks of shared memory.
    """
    windows = math.ceil(len(part) / max(1, window))
    thread_part = np.full(windows * threads, -1, np.int32)
    numbers, columns = np.full((2, len(thread_part) * of_thread), -1, np.int32)
    windows_numba.share_out(part, parts, window, of_thread, threads, thread_part, numbers, columns)
    return thread_part, numbers, columns
