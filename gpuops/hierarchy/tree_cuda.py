"""A hierarchy on a GPU: the arrays that the kernels of answers read (tree.cuh).

Arrays that depend on the structure alone are computed on the host, and copied once for each structure and device. For
other weights, the device computes the tables of all bricks, and only the arcs of closed vertices are copied.
"""

from __future__ import annotations

import threading
import weakref
from functools import cached_property
from typing import Any

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._cuda import Program
from gpuops._strips import SHAPES, WORDS
from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.memory_cuda import width_of
from gpuops.hierarchy.structure import HierarchyStructure
from gpuops.hierarchy.sweep_order import CHUNK
from gpuops.hierarchy.windows import Windows, windows_of_all
from gpuops.numbers import DISTANCE_DTYPES

# The arithmetic of each dtype for distances that are not negative, as those of a hierarchy.
NONNEGATIVE_NAMES = tuple(arithmetic_of(dtype, nonnegative=True).name for dtype in DISTANCE_DTYPES)
NULL = np.uint64(0)  # a pointer
# Threads of a block of `home` and `tables`, and the fewest of `climb`.
BRICK_THREADS = 128
# Sources of a block of `climb`.
CLIMBING = 8
SWEEPS = {
    name: Program(
        "hierarchy/sweeps.cu",
        ("begin", "home", "climb", "alone", "upper", "tables"),
        (f"ARITHMETIC={name}", f"CHUNK={CHUNK}", f"CLIMBING={CLIMBING}"),
        threads=256,
        blocks=2,
    )
    for name in NONNEGATIVE_NAMES
}

_lock = threading.Lock()


class StructureOnDevice:
    """What all hierarchies of one structure share on the current device, until the structure is freed.

    Attributes
    ----------
    pointers : list of int
        The first members of `Tree` in tree.cuh: addresses of arrays, and numbers.
    by_depth : array
        The bricks, by ascending size of their fronts.
    closed : array
        The closed vertices, in the order of their numbers.
    bricks, fronts, most : int
        Number of bricks, of the vertices of all their fronts, and of the vertices of the largest front.
    width : int
        The most vertices of a brick and its front.
    upper, chunks : int
        Numbers of vertices and of chunks of the upper tree.
    """

    def __init__(self, structure: HierarchyStructure):
        import cupy

        bricks, order = structure.bricks, structure.sweep_order
        depths = np.diff(bricks.front_starts)
        # A reference would keep this key of `_structures` alive for ever.
        self._structure = weakref.ref(structure)
        self.open = structure.open
        self.bricks, self.fronts, self.upper = len(bricks.sizes), len(bricks.front), bricks.upper
        self.most, self.width = int(depths.max(initial=0)), width_of(structure)
        self.chunks = len(order.chunk_node)
        table_starts = np.concatenate([[0], np.cumsum(bricks.sizes * depths)])
        self.table_entries = int(table_starts[-1])
        *arrays, self.by_depth, self.closed = on_device(
            structure.starts, structure.front_starts, bricks.rows, structure.parent, bricks.of_node, bricks.node_row,
            structure.place, structure.node_of, bricks.sizes, structure.parent[structure.roots], bricks.front_starts,
            bricks.front, order.level_starts, order.brick_levels, order.node, order.row, order.chunk_node,
            order.chunk_row, order.chunk_size, np.argsort(depths, kind="stable"), structure.order[self.open :],
        )  # fmt: skip
        arrays.insert(6, cupy.asarray(structure.out_starts))
        arrays.insert(13, cupy.asarray(table_starts))
        self._arrays = arrays  # keeps alive the memory that the pointers refer to
        numbers = self.chunks, self.open, self.bricks, self.upper, self.width
        self.pointers = [*(array.data.ptr for array in arrays), *numbers]
        self._windows: dict[tuple[int, int], Windows] = {}

    @property
    def structure(self) -> HierarchyStructure:
        """The structure, which every hierarchy that uses these arrays keeps alive."""
        structure = self._structure()
        assert structure is not None
        return structure

    @cached_property
    def into_starts(self) -> Any:
        """Where the `into` table of each node begins, if the graph is directed."""
        import cupy

        return cupy.asarray(self.structure.into_starts[:-1])

    @cached_property
    def back_starts(self) -> Any:
        """Where the columns of the front begin in the `out` table of each node, if the graph is undirected."""
        import cupy

        return cupy.asarray(self.structure.out_starts[:-1] + np.diff(self.structure.starts))

    def windows(self, of_thread: int, threads: int) -> Windows:
        """Return the layout of all vertices as columns, on the device."""
        if (of_thread, threads) not in self._windows:
            found = windows_of_all(self.structure, of_thread, threads)
            arrays = on_device(*found.arrays())
            self._windows[of_thread, threads] = Windows(found.columns, found.window, *arrays)
        return self._windows[of_thread, threads]


_structures: weakref.WeakKeyDictionary[HierarchyStructure, dict[int, StructureOnDevice]] = weakref.WeakKeyDictionary()


def _structure_on_device(structure: HierarchyStructure) -> StructureOnDevice:
    import cupy

    device = cupy.cuda.Device().id
    with _lock:
        known = _structures.setdefault(structure, {})
        if device not in known:
            known[device] = StructureOnDevice(structure)
        return known[device]


class HierarchyOnDevice:
    """The arrays of a hierarchy that the kernels read, on the current device.

    Attributes
    ----------
    tree : array
        A `Tree` of tree.cuh.
    table : array
        For each brick, the distances from its front, a row for each vertex of the brick.
    word, of_thread : dtype, int
        The dtype of a word, and the number of columns of a thread of `arrive`.
    """

    def __init__(self, hierarchy: Hierarchy):
        import cupy

        arithmetic = arithmetic_of(hierarchy.dtype, True)
        self.dtype, self.word = hierarchy.dtype, arithmetic.word
        self.arithmetic, self.shape, self.sweeps = arithmetic.name, SHAPES[arithmetic.name], SWEEPS[arithmetic.name]
        self.of_thread = WORDS * arithmetic.lanes
        self.structure = shared = _structure_on_device(hierarchy.structure)
        self.has_closed = shared.open < len(hierarchy.structure.order)
        undirected = hierarchy.into is None
        tables = hierarchy.out, hierarchy.out if undirected else hierarchy.into
        starts = shared.back_starts if undirected else shared.into_starts
        links = [
            cupy.asarray(array)
            for each in (hierarchy.closed.leaving, hierarchy.closed.entering)
            for array in (each.starts, each.ends, each.lengths)
            if self.has_closed
        ]
        self._arrays = *tables, *links  # keeps alive the memory that the pointers refer to
        own = [*(array.data.ptr for array in (*tables, starts)), undirected]
        own += [array.data.ptr for array in links] or [0] * 6
        self.tree = cupy.asarray(np.array([*shared.pointers, *own], np.uint64))
        self.table = cupy.empty((max(1, shared.table_entries),), self.dtype)
        if shared.table_entries:
            self.sweeps.launch("tables", shared.bricks, (self.tree, self.table), threads=BRICK_THREADS)


def on_device(*arrays: np.ndarray) -> list[Any]:
    """Copy integers to the device as int32, by one copy."""
    import cupy

    ends = np.cumsum([len(array) for array in arrays])
    together = cupy.asarray(np.concatenate(arrays, dtype=np.int32, casting="same_kind"))
    return [together[end - len(array) : end] for array, end in zip(arrays, ends.tolist(), strict=True)]
