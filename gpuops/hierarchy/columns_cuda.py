"""Columns of products on a GPU (columns.cuh): destinations laid out by brick, or all vertices laid out in windows.

A counting sort on the device (columns.cu) deals destinations to threads. Bricks with fronts of similar size become
neighbours, so that the threads of a block take about the same time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops._strips import SHAPES, WORDS
from gpuops.hierarchy.memory_cuda import panel_depth
from gpuops.hierarchy.tree_cuda import NONNEGATIVE_NAMES, NULL, HierarchyOnDevice

PROGRAMS = {
    name: SHAPES[name].program(
        "hierarchy/columns.cu",
        ("count_doors", "lay_out", "pack_tables"),
        name,
    )
    for name in NONNEGATIVE_NAMES
}
# Threads of a block of `pack_tables`, in its two dimensions.
PACK_WORDS, PACK_DEPTH = 32, 8


class Columns(NamedTuple):
    """Columns of a product, on the device. columns.cuh describes the arrays that are not described here.

    Attributes
    ----------
    width : int
        Columns of a row of the result, some of which may be of no use.
    window : int
        Columns of a window.
    firsts, counts, slots : arrays
        Where the slots of each brick begin in `slots`, and their number. If `slots` is NULL, the slots of a brick
        follow each other.
    upper_columns : array
        The vertices of the upper tree in the slots of threads, -1 for none.
    panels : array
        The tables of the columns.
    """

    width: int
    window: int
    thread_brick: Any
    thread_front: Any
    slot_rows: Any
    slot_lengths: Any
    numbers: Any
    upper_columns: Any
    firsts: Any
    counts: Any
    slots: Any
    panels: Any


class DestinationColumns(NamedTuple):
    """Destinations and their columns. The distance to a destination is the least of the distances to its columns.

    Attributes
    ----------
    vertices : array
    first_column : array, or NULL
        Where the columns of each destination begin in `column_of`. NULL if each destination has one column.
    column_of : array
        The number of each column in `columns`.
    columns : Columns
    """

    vertices: Any
    first_column: Any
    column_of: Any
    columns: Columns


def blocks_for(count: int, threads: int) -> int:
    """Return the number of blocks that give each of `count` elements a thread."""
    return max(1, -(-count // threads))


def count_doors(tree: HierarchyOnDevice, vertices: Any, *, entering: bool) -> np.ndarray:
    """Return how many starts each source has, or how many columns each destination, int64 of NumPy."""
    import cupy

    program, doors = PROGRAMS[tree.arithmetic], cupy.empty((len(vertices),), np.int32)
    program.launch(
        "count_doors",
        blocks_for(len(vertices), program.threads),
        (tree.tree, vertices, np.int32(len(vertices)), np.int32(entering), doors),
    )
    return doors.get().astype(np.int64)


def lay_out(tree: HierarchyOnDevice, sources: Any, vertices: Any) -> tuple[Any, Any, DestinationColumns]:
    """Sort sources by brick, and lay out destinations; both are int32 arrays on the device, empty or not.

    Returns the sorted sources, the position that each had before, and the destinations.
    """
    import cupy

    shared, program = tree.structure, PROGRAMS[tree.arithmetic]
    bricks, threads, of_thread = shared.bricks, program.threads, tree.of_thread
    first_column, columns = _first_columns(tree, vertices)
    lengths = slot_lengths = NULL
    # The most threads and vertices of the upper tree that the columns may be; those without columns take no time.
    windows = -(-min(columns, columns // of_thread + bricks + 1) // threads)
    room, upper = windows * threads, -(-max(1, columns) // of_thread) * of_thread
    k, count = len(sources), len(vertices)
    memory = cupy.empty((5 + 4 * bricks + 3 * k + 3 * columns + (of_thread + 2) * room + upper,), np.int32)
    memory.data.memset_async(0, 4 * (3 + 2 * bricks))
    (
        arrived, source_counts, slot_counts, source_starts, slot_starts, source_ranks, ordered, rows, places, ranks,
        column_of, slot_rows, thread_brick, thread_front, upper_columns,
    ) = _split(
        memory, 1, bricks + 1, bricks + 1, bricks + 1, bricks + 1, k, k, k, columns, columns, columns,
        of_thread * room, room, room, upper,
    )  # fmt: skip
    if tree.has_closed:
        lengths, slot_lengths = (cupy.empty((size,), tree.dtype) for size in (columns, of_thread * room))
    program.launch_cooperative(
        "lay_out",
        (
            tree.tree, arrived, sources, np.int32(k), source_counts, source_starts, source_ranks, ordered, rows,
            vertices, np.int32(count), first_column, np.int32(columns), places, lengths, ranks, shared.by_depth,
            slot_counts, slot_starts, np.int32(shared.fronts), column_of, slot_rows, slot_lengths, np.int32(room),
            thread_brick, thread_front, upper_columns, np.int32(upper),
        ),
        most=-(-max(k, columns, of_thread * room, 1) // threads),
    )  # fmt: skip
    width = threads * of_thread
    found = Columns(
        windows * width, width, thread_brick, thread_front, slot_rows, slot_lengths, NULL, upper_columns,
        slot_starts, slot_counts, NULL, _panels(tree, thread_brick, slot_rows, slot_lengths),
    )  # fmt: skip
    return ordered, rows, DestinationColumns(vertices, first_column, column_of, found)


def all_columns(tree: HierarchyOnDevice) -> Columns:
    """Return all vertices as columns in the order of the result. Columns of closed vertices are infinite."""
    windows = tree.structure.windows(tree.of_thread, tree.shape.threads)
    return Columns(
        windows.columns, windows.window, windows.thread_brick, windows.thread_front, windows.slot_rows, NULL,
        windows.numbers, windows.upper_columns, windows.firsts, windows.counts, windows.slots,
        _panels(tree, windows.thread_brick, windows.slot_rows, NULL),
    )  # fmt: skip


def _panels(tree: HierarchyOnDevice, thread_brick: Any, slot_rows: Any, slot_lengths: Any) -> Any:
    """Return the tables of columns."""
    import cupy

    threads = tree.shape.threads
    windows, depth = len(thread_brick) // threads, panel_depth(tree.structure.most, tree.of_thread)
    panels = cupy.empty((windows, depth, threads * WORDS), tree.word)
    if windows:
        PROGRAMS[tree.arithmetic].launch(
            "pack_tables",
            (panels.shape[0] * panels.shape[2] // PACK_WORDS, -(-depth // PACK_DEPTH)),
            (panels, tree.tree, tree.table, thread_brick, slot_rows, slot_lengths, np.int32(depth)),
            threads=(PACK_WORDS, PACK_DEPTH),
        )
    return panels


def _first_columns(tree: HierarchyOnDevice, vertices: Any) -> tuple[Any, int]:
    """Return where the columns of each destination begin, NULL if each has one column; and the number of columns."""
    import cupy

    if not tree.has_closed or len(vertices) == 0:
        return NULL, len(vertices)
    doors = count_doors(tree, vertices, entering=True)
    ends = np.cumsum(doors)
    return cupy.asarray((ends - doors).astype(np.int32)), int(ends[-1])


def _split(memory: Any, *sizes: int) -> list[Any]:
    """Divide an array into successive pieces."""
    pieces, first = [], 0
    for size in sizes:
        pieces.append(memory[first : first + size])
        first += size
    return pieces
