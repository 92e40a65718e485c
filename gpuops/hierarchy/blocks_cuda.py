"""The CUDA half of `blocks`: the steps of blocks_numba.py, each for many sources in one launch (blocks.cu).

Arrays that depend on the structure alone are computed on the host and copied once for each hierarchy. The first call
computes the tables of all bricks. Sources are computed in batches. For a block, the host lays out the destinations
while the device computes the distances from the first batch to the upper tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._cuda import Program
from gpuops._strips import SHAPES, WORDS
from gpuops.arrays import like
from gpuops.hierarchy.closed_arcs import Links
from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.ends import Starts, starts_of
from gpuops.hierarchy.slots import fits_windows, on_device, share_out, sort_by_part, window_of
from gpuops.hierarchy.slots_numba import look_up, number_absent
from gpuops.hierarchy.structure import HierarchyStructure
from gpuops.hierarchy.sweeps import CHUNK
from gpuops.numbers import infinity, outside_infinity

# Most bytes of intermediate arrays for a batch of sources; on very large graphs, `_batch_bytes` is more.
SOURCES_BYTES = 2**31
# Most sources of a batch, so that no grid has more than 65,535 blocks in its second dimension.
_MOST_SOURCES = 2**15
# Columns stay in the order of the result if windows of this share of the columns that their threads can hold suffice;
# otherwise they are sorted by brick.
_LEAST_SHARE = 2 / 3
# Lanes of a warp.
_GROUP = 32
# Arrays for more sources than a warp has lanes are padded to a multiple of this number of sources.
_SOURCES = 128
# Threads of a block of `gather` and `pack_tables`, in its two dimensions.
_PACK_WORDS, _PACK_DEPTH = 32, 8
# Threads of a block of `home` and `tables`.
_BRICK_THREADS = 128
# Threads of a block of `meet`.
_MEET_THREADS = 512
_ARITHMETICS = "NonnegativeFloat32", "Float64", "Int32", "NonnegativeInt16"
_PROGRAMS = {
    name: SHAPES[name].program("hierarchy/blocks.cu", ("gather", "pack_tables", "arrive", "stay", "meet"), name)
    for name in _ARITHMETICS
}
_SWEEPS = {
    name: Program(
        "hierarchy/sweeps.cu",
        ("home", "upper", "tables"),
        (f"ARITHMETIC={name}", f"CHUNK={CHUNK}"),
        threads=256,
        blocks=2,
    )
    for name in _ARITHMETICS
}


class _Starts(NamedTuple):
    """`gpuops.hierarchy.ends.Starts` on the device. No two starts have the same source."""

    places: Any
    sources: Any
    lengths: Any
    inner: Any  # (starts, width): the distances from each start to its brick and the front of the brick


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns, laid out for `arrive`. The arrays are on the device.

    Attributes
    ----------
    count : int
        Number of columns.
    window : int
        Number of columns of a window.
    depth : int
        Length of `fronts`, plus 1.
    thread_part : array
        The part of each thread.
    numbers : array
        For each slot, the number of its column in its window. Slots without a column have higher numbers.
    starts, fronts : arrays
        Where the front of each part begins in `fronts`, whose entries are rows of the upper tree.
    rows, lengths : arrays
        The row of each column in the table of its brick, and the length to add.
    part_starts, order : arrays
        Where each part begins in `order`, which has the columns sorted by part.
    arrival : array
        Panels of the tables of the parts.
    """

    count: int
    window: int
    depth: int
    thread_part: Any
    numbers: Any
    starts: Any
    fronts: Any
    rows: Any
    lengths: Any
    part_starts: Any
    order: Any
    arrival: Any


class _Parts(NamedTuple):
    """The part and the row of each column, the rows of the upper tree that are parts, and the number of parts."""

    part: np.ndarray
    row: np.ndarray
    above: np.ndarray
    parts: int


class _Destinations(NamedTuple):
    """The columns of the destinations: in the order of the result, or sorted by brick.

    Attributes
    ----------
    direct : _Columns, or None
        A column for each destination, in the order of the result; columns of closed destinations are infinite. None if
        neighbours in the result are rarely in the same brick, so that threads would have few columns.
    sorted : _Columns, or None
        Columns by brick: for each arc into a closed destination, and for open destinations without a direct column.
    targets, starts, columns : int32 arrays on the device
        The destinations with columns in `sorted`; where each begins in `columns`; and the numbers of its columns.
    missing : bool
        Whether some destinations have no column in `sorted`. If `direct` is None, these are closed and without arcs.
    """

    direct: _Columns | None
    sorted: _Columns | None
    targets: Any
    starts: Any
    columns: Any
    missing: bool


def answering_bytes(structure: HierarchyStructure, dtype: Any) -> int:
    """Return the most bytes that answering in `dtype` takes on a GPU.

    The `out` and `into` tables, the results, and panels for the arcs into closed destinations are not counted.
    """
    bricks, dtype = structure.bricks, np.dtype(dtype)
    arithmetic, depths = arithmetic_of(dtype, True), np.diff(bricks.front_starts)
    shape, of_thread = SHAPES[arithmetic.name], WORDS * arithmetic.lanes
    nodes, n, count, upper = len(structure.parent), len(structure.order), len(bricks.sizes), bricks.upper
    part, *_ = look_up(structure.place, structure.node_of, bricks.of_node, bricks.node_row, structure.starts, count)
    window = window_of(part, count + 1 + upper, of_thread, shape.threads)
    threads = math.ceil(n / max(1, window)) * shape.threads
    panels = threads * (WORDS * arithmetic.word.itemsize * _even(int(depths.max(initial=0))) + 4 + 8 * of_thread)
    columns = (8 + dtype.itemsize) * n + 12 * upper + 8 * count + 4 * len(bricks.front)
    tables = dtype.itemsize * int((bricks.sizes * depths).sum())
    pulls = int(np.diff(structure.front_starts)[bricks.of_node == count].sum())
    tree = 44 * nodes + 4 * len(structure.front) + 12 * structure.open + 20 * count + 4 * len(bricks.front)
    tree += 20 * upper + 12 * pulls
    return _batch_bytes(structure, dtype) + panels + columns + tables + tree


def _source_bytes(structure: HierarchyStructure, dtype: np.dtype) -> int:
    """Return the bytes of the intermediate arrays for an open source."""
    bricks = structure.bricks
    fronts = len(bricks.front) + bricks.upper + 1
    return 2 * dtype.itemsize * (bricks.upper + _width(structure)) + arithmetic_of(dtype, True).word.itemsize * fronts


def _batch_bytes(structure: HierarchyStructure, dtype: np.dtype) -> int:
    """Return the most bytes of intermediate arrays for a batch: room for `_SOURCES` open sources, or more."""
    return max(SOURCES_BYTES, _SOURCES * _source_bytes(structure, dtype))


def _width(structure: HierarchyStructure) -> int:
    """Return the most vertices of a brick and its front."""
    return int((structure.bricks.sizes + np.diff(structure.bricks.front_starts)).max(initial=1))


def _even(depth: int) -> int:
    """Return the number of rows of the panels for tables of this depth, an even number."""
    return math.ceil(max(1, depth) / 2) * 2


_kept: WeakKeyDictionary[Hierarchy, DeviceTables] = WeakKeyDictionary()


def tables_of(hierarchy: Hierarchy) -> DeviceTables:
    """Return the arrays that the kernels read; they are made once for each hierarchy with CuPy tables."""
    if hierarchy not in _kept:
        with hierarchy.out.device:
            _kept[hierarchy] = DeviceTables(hierarchy)
    return _kept[hierarchy]


class DeviceTables:
    """The arrays of a hierarchy that the kernels read, on its device, and the launches."""

    def __init__(self, hierarchy: Hierarchy):
        import cupy

        structure, bricks = hierarchy.structure, hierarchy.structure.bricks
        sweep = structure.sweep_order
        arithmetic = arithmetic_of(hierarchy.dtype, True)
        self.program, self.shape = _PROGRAMS[arithmetic.name], SHAPES[arithmetic.name]
        self.sweeps = _SWEEPS[arithmetic.name]
        self.lanes, self.word, self.dtype = arithmetic.lanes, arithmetic.word, hierarchy.dtype
        self.of_thread = WORDS * self.lanes  # columns
        self.structure, self.entering, self.bricks = structure, hierarchy.closed.entering, len(bricks.sizes)
        self.brick_of = np.full(len(structure.order), self.bricks, np.uint16 if self.bricks < 2**16 else np.int32)
        self.brick_of[structure.order[: structure.open]] = bricks.of_node[structure.node_of]
        depths = np.diff(bricks.front_starts)
        self.upper, self.width = bricks.upper, _width(structure)
        self.most = int(depths.max(initial=0))
        table_starts = np.concatenate([[0], np.cumsum(bricks.sizes * depths)])
        undirected, widths = hierarchy.into is None, np.diff(structure.starts)
        back_starts = structure.out_starts[:-1] + widths if undirected else structure.into_starts[:-1]
        self.upper_nodes = int((sweep.upper >= 0).sum())
        self.widest_level = int(np.diff(sweep.chunk_levels).max(initial=0))
        arrays = (
            *on_device(
                structure.starts, structure.front_starts, bricks.rows, structure.parent, bricks.of_node,
                bricks.node_row, sweep.upper,
            ),
            cupy.asarray(structure.out_starts),
            *on_device(structure.node_of, bricks.sizes, bricks.front_starts, bricks.front),
            cupy.asarray(table_starts),
            *on_device(
                sweep.level_starts, sweep.brick_levels, sweep.node, sweep.row, sweep.chunk_levels, sweep.chunk_node,
                sweep.chunk_row, sweep.chunk_size, sweep.pull_starts, sweep.pull_node, sweep.pull_place,
                sweep.pull_mask,
            ),
            hierarchy.out,
            hierarchy.out if undirected else hierarchy.into,
            cupy.asarray(back_starts),
        )  # fmt: skip
        pointers = [array.data.ptr for array in arrays]
        self._arrays = arrays  # keeps alive the memory that the pointers refer to
        self.tree = cupy.asarray(np.array([*pointers, undirected, len(sweep.chunk_levels) - 1], np.uint64))
        self.table, self.table_starts = cupy.empty(max(1, int(table_starts[-1])), self.dtype), arrays[12]
        if self.bricks and self.most:
            self.sweeps.launch("tables", self.bricks, (self.tree, self.table), threads=_BRICK_THREADS)
        self._everywhere: _Destinations | None = None
        self._last: tuple[np.ndarray, _Destinations] | None = None

    def fill(self, hierarchy: Hierarchy, vertices: Any, origins: np.ndarray, out: Any) -> None:
        """Fill `out` with distances to `vertices`, or to all vertices if None, by paths through the tree."""
        if out.size == 0:
            return
        for some in self._batches(hierarchy, vertices, origins):
            padded = np.append(some, np.full(-len(some) % _GROUP, -1))
            rows, starts, above = self._depart(hierarchy, self.structure.place[origins[some]], padded)
            there = self._destinations(vertices)  # while the device is at work
            if there.direct is None and there.missing:
                out[like(out, some)] = outside_infinity(self.dtype)
            elif there.direct is not None:
                self._arrive(out, rows, len(some), starts, above, there.direct)
            if there.sorted is not None:
                self._meet(out, rows, len(some), starts, above, there)

    # --- Sources ------------------------------------------------------------------------------------------------------

    def _batches(self, hierarchy: Hierarchy, vertices: np.ndarray | None, origins: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the positions in `origins` of the sources of each batch."""
        order = np.argsort(self.brick_of[origins], kind="stable")  # near each other in the tree
        if vertices is None:  # laid out once
            by_brick = self._destinations(None).sorted
            columns = 0 if by_brick is None else by_brick.count
        else:
            columns = len(vertices) + int(_arcs(self.entering, self.structure, vertices).sum())
        starts = np.maximum(_arcs(hierarchy.closed.leaving, self.structure, origins), 1)
        of_source = _source_bytes(self.structure, self.dtype) + self.dtype.itemsize * columns
        of_each = of_source + (starts - 1) * self.dtype.itemsize * self.width
        most = _batch_bytes(self.structure, self.dtype)
        if int(np.max(of_each, initial=0)) * len(order) <= most and len(order) <= _MOST_SOURCES:  # all together
            yield order
            return
        ends, first = np.cumsum(of_each[order]), 0
        while first < len(order):
            before = int(ends[first - 1]) if first else 0
            count = max(1, min(int(np.searchsorted(ends, before + most, "right")) - first, _MOST_SOURCES))
            if _SOURCES < count < len(order) - first:
                count -= count % _SOURCES
            yield order[first : first + count]
            first += count

    def _depart(self, hierarchy: Hierarchy, places: np.ndarray, rows: np.ndarray) -> tuple[Any, list[_Starts], Any]:
        """Return a copy of `rows` on the device, the starts of some sources, and their distances to the upper tree."""
        import cupy

        together = _SOURCES if len(places) > _GROUP else _GROUP
        stride = math.ceil(len(places) / together) * together
        entry, above = (cupy.empty((max(1, self.upper), stride), self.dtype) for _ in range(2))
        entry.fill(infinity(self.dtype))
        touched = cupy.zeros((max(1, self.upper_nodes), stride // _GROUP), np.uint8)
        found = []
        if (places < self.structure.open).all():  # the usual case: each source is a start
            rows, *vertices = on_device(rows, places, np.arange(len(places)))
            rounds = [(*vertices, cupy.zeros(len(places), self.dtype))]
        else:
            (rows,) = on_device(rows)
            rounds = [
                (*on_device(*each[:2]), cupy.asarray(each.lengths)) for each in _rounds(starts_of(hierarchy, places))
            ]
        for there, sources, lengths in rounds:
            if len(there) == 0:
                continue
            climbing, inner = (cupy.empty((len(there), self.width), self.dtype) for _ in range(2))
            starts = _Starts(there, sources, lengths, inner)
            self.sweeps.launch(
                "home",
                len(there),
                {
                    "tree_": self.tree,
                    "places": starts.places,
                    "sources": starts.sources,
                    "lengths": starts.lengths,
                    "climbing": climbing,
                    "inner": inner,
                    "width": np.int32(self.width),
                    "above": entry,
                    "stride": np.int32(stride),
                    "touched": touched,
                    "bricks": np.int32(self.bricks),
                },
                threads=_BRICK_THREADS,
            )
            found.append(starts)
        groups = stride // together
        self.sweeps.launch_cooperative(
            "upper",
            {
                "tree_": self.tree,
                "x": entry,
                "d": above,
                "stride": np.int32(stride),
                "sources": np.int32(len(places)),
                "touched": touched,
                "arrived": cupy.zeros(1, np.uint32),
            },
            most=max(1, math.ceil(self.widest_level * groups * _GROUP / self.sweeps.threads)),
        )
        return rows, found, above

    # --- Destinations -------------------------------------------------------------------------------------------------

    def _destinations(self, vertices: np.ndarray | None) -> _Destinations:
        """Return the layout of some destinations. The layout of the last call is kept, and that of all vertices."""
        if vertices is None:
            if self._everywhere is None:
                self._everywhere = self._laid_out(self.structure.place)
            return self._everywhere
        last = self._last
        if last is None or not np.array_equal(last[0], vertices):
            self._last = last = vertices, self._laid_out(self.structure.place[vertices])
        return last[1]

    def _laid_out(self, places: np.ndarray) -> _Destinations:
        import cupy

        outside = np.flatnonzero(places >= self.structure.open)
        owners, tails, lengths = self.entering.rows(places[outside] - self.structure.open)
        found, across = self._parts(places), self.shape.threads
        wide = min(len(places), int(_LEAST_SHARE * across * self.of_thread))
        in_order = fits_windows(found.part, found.parts, wide, self.of_thread, across)
        direct = self._columns(found, cupy.zeros(len(places), self.dtype)) if in_order else None
        if in_order and len(owners) == 0:
            return _Destinations(direct, None, None, None, None, False)
        targets, lengths = outside[owners], lengths.astype(self.dtype)
        if in_order:
            found = self._parts(tails)
        elif len(outside) == 0:
            targets, lengths = np.arange(len(places)), np.zeros(len(places), self.dtype)
        else:
            inside = np.flatnonzero(places < self.structure.open)
            targets = np.concatenate([inside, targets])
            found = self._parts(np.concatenate([places[inside], tails]))
            lengths = np.concatenate([np.zeros(len(inside), self.dtype), lengths])
        _, by_part = sort_by_part(found.part, found.parts)
        found = found._replace(part=found.part[by_part], row=found.row[by_part])
        columns = np.empty(len(by_part), np.int32)
        columns[by_part] = np.arange(len(by_part))
        if len(outside):
            by_target = np.argsort(targets, kind="stable")
            columns, (targets, first) = columns[by_target], np.unique(targets[by_target], return_index=True)
        else:
            first = targets
        missing = len(targets) < len(places)
        targets, first, columns = on_device(targets, np.append(first, len(columns)), columns)
        by_brick = self._columns(found, cupy.asarray(lengths[by_part]))
        return _Destinations(direct, by_brick, targets, first, columns, missing)

    def _parts(self, places: np.ndarray) -> _Parts:
        structure, bricks = self.structure, self.structure.bricks
        part, row, above = look_up(
            places, structure.node_of, bricks.of_node, bricks.node_row, structure.starts, self.bricks
        )
        return _Parts(part, row, above, self.bricks + 1 + len(above))

    def _columns(self, columns: _Parts, lengths: Any) -> _Columns:
        """Return columns in the parts, laid out in windows. `lengths`, on the device, are added to their distances."""
        import cupy

        part, row, above, parts = columns
        bricks, threads = self.structure.bricks, self.shape.threads
        window = window_of(part, parts, self.of_thread, threads)
        dealt = share_out(part, parts, window, self.of_thread, threads)
        number_absent(dealt.numbers, threads * self.of_thread, window, len(part))
        starts = np.concatenate([bricks.front_starts, bricks.front_starts[-1] + np.arange(len(above) + 1)])
        arrays = on_device(*dealt, starts, np.append(bricks.front, above), row, *sort_by_part(part, parts))
        thread_part, numbers, slots, starts, fronts, row, part_starts, order = arrays
        windows = len(thread_part) // threads
        depth = _even(self.most)
        arrival = cupy.empty((windows, depth, threads * WORDS), self.word)
        if windows:
            self.program.launch(
                "pack_tables",
                (windows * threads * WORDS // _PACK_WORDS, math.ceil(depth / _PACK_DEPTH)),
                {
                    "panels": arrival,
                    "table": self.table,
                    "table_starts": self.table_starts,
                    "starts": starts,
                    "thread_part": thread_part,
                    "slots": slots,
                    "rows": row,
                    "lengths": lengths,
                    "bricks": np.int32(self.bricks),
                    "part_depth": np.int32(depth),
                },
                threads=(_PACK_WORDS, _PACK_DEPTH),
            )
        return _Columns(
            len(part), window, len(fronts) + 1, thread_part, numbers, starts, fronts, row, lengths,
            part_starts, order, arrival,
        )  # fmt: skip

    # --- Products -----------------------------------------------------------------------------------------------------

    def _arrive(self, out: Any, rows: Any, count: int, starts: list[_Starts], above: Any, there: _Columns) -> None:
        """Fill the rows of `out` for `count` sources. A row of `above` is padded to a multiple of a warp's lanes."""
        import cupy

        if there.count == 0:
            return
        stride, of_thread = above.shape[1], self.shape.rows
        onward = cupy.empty((stride // of_thread, there.depth, of_thread), self.word)
        self.program.launch(
            "gather",
            (math.ceil(there.depth / _PACK_DEPTH), stride // _PACK_WORDS),
            {
                "panels": onward,
                "d": above,
                "stride": np.int32(stride),
                "front": there.fronts,
                "count": np.int32(there.depth - 1),
                "depth": np.int32(there.depth),
                "sources": np.int32(count),
            },
            threads=(_PACK_WORDS, _PACK_DEPTH),
        )
        grid, turns = self.shape.grid(len(there.arrival), count, out.device.id)
        self.program.launch(
            "arrive",
            grid,
            {
                "out": out,
                "stride": np.int64(out.strides[0] // out.itemsize),
                "targets": np.int64(there.count),
                "window": np.int32(there.window),
                "rows": rows,
                "sources": np.int32(count),
                "onward": onward,
                "depth": np.int32(there.depth),
                "arrival": there.arrival,
                "part_depth": np.int32(there.arrival.shape[1]),
                "thread_part": there.thread_part,
                "starts": there.starts,
                "columns": there.numbers,
                "turns": turns,
            },
        )
        self._stay(out, rows, starts, there)

    def _stay(self, out: Any, rows: Any, starts: list[_Starts], there: _Columns) -> None:
        """Lower distances within the brick of each start to those by paths that do not leave it."""
        for some in starts:
            self.program.launch(
                "stay",
                math.ceil(len(some.places) * _GROUP / self.shape.threads),
                {
                    "out": out,
                    "stride": np.int64(out.strides[0] // out.itemsize),
                    "rows": rows,
                    "tree_": self.tree,
                    "places": some.places,
                    "sources": some.sources,
                    "starts": np.int32(len(some.places)),
                    "inner": some.inner,
                    "width": np.int32(self.width),
                    "part_starts": there.part_starts,
                    "order": there.order,
                    "column_rows": there.rows,
                    "lengths": there.lengths,
                    "bricks": np.int32(self.bricks),
                },
            )

    def _meet(self, out: Any, rows: Any, count: int, starts: list[_Starts], above: Any, there: _Destinations) -> None:
        """Fill the destinations with sorted columns: each with the least of the distances to its columns."""
        import cupy

        assert there.sorted is not None
        found = cupy.empty((count, there.sorted.count), self.dtype)
        (own,) = on_device(np.append(np.arange(count), np.full(-count % _GROUP, -1)))
        self._arrive(found, own, count, starts, above, there.sorted)
        self.program.launch(
            "meet",
            count,
            {
                "out": out,
                "stride": np.int64(out.strides[0] // out.itemsize),
                "found": found,
                "found_stride": np.int64(there.sorted.count),
                "rows": rows,
                "targets": there.targets,
                "starts": there.starts,
                "columns": there.columns,
                "count": np.int32(len(there.targets)),
            },
            threads=_MEET_THREADS,
        )


def _arcs(links: Links, structure: HierarchyStructure, vertices: Any) -> np.ndarray:
    """Return the number of arcs in `links` of each vertex; 0 for open vertices."""
    counts, places = np.append(np.diff(links.starts), 0), structure.place[vertices]
    return counts[np.where(places >= structure.open, places - structure.open, -1)]


def _rounds(starts: Starts) -> list[Starts]:
    """Divide starts into rounds. In a round, no two starts have the same source."""
    if (starts.sources[1:] > starts.sources[:-1]).all():
        return [starts]
    order = np.argsort(starts.sources, kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(starts.sources[order], starts.sources[order])
    order = order[np.lexsort((order, rank))]  # by rising place within a round
    rounds = np.split(order, np.cumsum(np.bincount(rank))[:-1])
    return [Starts(*(each[some] for each in starts)) for some in rounds]
