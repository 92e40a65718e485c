"""The CUDA half of `blocks`: the steps of blocks_numba.py, each for many sources in one launch (blocks.cu).

Few sources climb and sweep, and another launch finds the distance to each destination. More sources go in batches,
sorted by brick, and the distances are products. For all vertices as destinations, the columns of the products are in
the order of the result. For other destinations, columns are sorted by brick on the device, and another launch puts the
distances where they belong.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpuops._strips import SHAPES
from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.columns_cuda import (
    PACK_DEPTH,
    PACK_WORDS,
    Columns,
    DestinationColumns,
    all_columns,
    blocks_for,
    lay_out,
)
from gpuops.hierarchy.sources_cuda import GROUP, Departed, batches, depart, few_sources, int32_on_device
from gpuops.hierarchy.tree_cuda import NONNEGATIVE_NAMES, NULL, HierarchyOnDevice

_PROGRAMS = {
    name: SHAPES[name].program("hierarchy/blocks.cu", ("reach", "gather", "arrive", "stay", "meet"), name)
    for name in NONNEGATIVE_NAMES
}
# Most sources that `reach` takes, if it computes at most so many distances; else it takes at most _REACHED sources.
_FEW, _FEW_DISTANCES = 32, 2**22
# Sources that share the loads of a thread of `reach`, and rows that do in `meet`.
_REACHED, _MET = 4, 2
# Threads of a block of `meet`, and its blocks from which on each takes all destinations.
_MEET_THREADS, _MEET_BLOCKS = 1024, 256
# Sources of a thread of `gather`.
_GATHERED = 8
# Vertices of the upper tree for which `gather` has blocks; loops go over the rest.
_UPPER = 1024


class Answers:
    """Rows and blocks of distances of a hierarchy, by paths through the tree."""

    def __init__(self, hierarchy: Hierarchy):
        self.tree = tree = HierarchyOnDevice(hierarchy)
        self._program, self._shape = _PROGRAMS[tree.arithmetic], tree.shape
        self._everywhere: Columns | None = None
        self._into_closed: DestinationColumns | None = None

    def fill(self, vertices: Any, origins: Any, out: Any) -> None:
        """Fill `out` with distances to `vertices`, or to all vertices if None.

        `origins` and `vertices` are arrays of NumPy, or int32 arrays on the device.
        """
        if out.size == 0:
            return
        tree, targets = self.tree, None if vertices is None else int32_on_device(vertices)
        if len(origins) <= (_FEW if out.size <= _FEW_DISTANCES else min(_FEW, _REACHED)):
            self._reach(out, depart(tree, few_sources(tree, origins)), targets)
            return
        nothing = tree.structure.closed[:0]
        ordered, rows, columns = lay_out(tree, int32_on_device(origins), nothing if targets is None else targets)
        direct, meeting = (None, columns) if targets is not None else self._all_columns()
        for sources in batches(tree, ordered, rows, self._kept(direct, meeting)):
            departed = depart(tree, sources)
            if direct is not None:
                self._arrive(out, sources.rows, departed, direct)
            if meeting is not None:
                self._meet(out, departed, meeting, by_vertex=targets is None)

    def _all_columns(self) -> tuple[Columns, DestinationColumns | None]:
        """Return all vertices as columns, and closed vertices as destinations."""
        if self._everywhere is None:
            closed = self.tree.structure.closed
            if self.tree.has_closed:
                *_, self._into_closed = lay_out(self.tree, closed[:0], closed)
            self._everywhere = all_columns(self.tree)
        return self._everywhere, self._into_closed

    def _kept(self, direct: Columns | None, meeting: DestinationColumns | None) -> int:
        """Return how many elements are kept for each source, in addition to those of `source_bytes`."""
        both = [columns for columns in (direct, meeting and meeting.columns) if columns]
        pads = max(len(columns.upper_columns) for columns in both) * self.tree.word.itemsize // self.tree.dtype.itemsize
        return pads + (0 if meeting is None else meeting.columns.width)

    def _reach(self, out: Any, departed: Departed, targets: Any) -> None:
        """Fill `out` for few sources."""
        sources, threads = departed.sources, self._program.threads
        self._program.launch(
            "reach",
            (blocks_for(out.shape[1], threads), -(-sources.size // _REACHED)),
            (
                out, _stride(out), self.tree.tree, self.tree.table, sources.vertices, sources.vertex,
                sources.first_start, departed.inner, departed.above, np.int32(departed.above.shape[2]),
                np.int32(sources.size), NULL if targets is None else targets, np.int32(out.shape[1]),
            ),
        )  # fmt: skip

    def _arrive(self, out: Any, rows: Any, departed: Departed, columns: Columns) -> None:
        """Fill columns of rows of `out`."""
        import cupy

        if len(columns.panels) == 0:
            return
        tree, sources = self.tree, departed.sources
        stride, of_thread, fronts = departed.above.shape[2], self._shape.rows, tree.structure.fronts
        count, depth = np.int32(sources.size), fronts + len(columns.upper_columns)
        onward = cupy.empty((stride // of_thread, depth, of_thread), tree.word)
        self._program.launch(
            "gather",
            (-(-min(depth, fronts + _UPPER) // PACK_DEPTH), -(-stride // (_GATHERED * PACK_WORDS))),
            (
                onward, tree.tree, departed.above, np.int32(stride), np.int32(fronts), columns.upper_columns,
                np.int32(depth), count,
            ),
            threads=(PACK_WORDS, PACK_DEPTH),
        )  # fmt: skip
        grid, turns = self._shape.grid(len(columns.panels), sources.size, out.device.id)
        self._program.launch(
            "arrive",
            grid,
            (
                out, _stride(out), np.int64(columns.width), np.int32(columns.window), rows, count, tree.tree, onward,
                np.int32(depth), columns.panels, np.int32(columns.panels.shape[1]), columns.thread_brick,
                columns.thread_front, columns.numbers, turns,
            ),
        )  # fmt: skip
        self._program.launch(
            "stay",
            blocks_for(sources.size * GROUP, self._program.threads),
            (
                out, _stride(out), rows, count, tree.tree, sources.vertices, sources.first_start, departed.inner,
                columns.firsts, columns.counts, columns.slots, columns.slot_rows, columns.slot_lengths,
                columns.numbers, np.int32(columns.window),
            ),
        )  # fmt: skip

    def _meet(self, out: Any, departed: Departed, there: DestinationColumns, *, by_vertex: bool) -> None:
        """Fill destinations of rows of `out`, each with the least of the distances to its columns."""
        import cupy

        sources = departed.sources
        pairs = -(-sources.size // _MET)
        found = cupy.empty((sources.size, there.columns.width), self.tree.dtype)
        self._arrive(found, NULL, departed, there.columns)
        self._program.launch(
            "meet",
            (min(blocks_for(len(there.vertices), 4 * _MEET_THREADS), -(-_MEET_BLOCKS // pairs)), pairs),
            (
                out, _stride(out), found, np.int64(there.columns.width), sources.rows, np.int32(sources.size),
                self.tree.tree, there.vertices, np.int32(len(there.vertices)), np.int32(by_vertex), there.first_column,
                there.column_of,
            ),
            threads=_MEET_THREADS,
        )  # fmt: skip


def _stride(out: Any) -> np.int64:
    return np.int64(out.strides[0] // out.itemsize)


_answers: WeakKeyDictionary[Hierarchy, Answers] = WeakKeyDictionary()


def answers_of(hierarchy: Hierarchy) -> Answers:
    """Return the answers of a hierarchy with CuPy tables. The first call computes the tables of all bricks."""
    found = _answers.get(hierarchy)
    if found is None:
        with hierarchy.out.device:
            found = _answers[hierarchy] = Answers(hierarchy)
    return found
