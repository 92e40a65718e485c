"""Close a hierarchy on a GPU (closing.cu): level after level of the tree, in one launch.

A level is a depth in the tree, so that the children of a node follow each other in the level below. What depends on the
structure alone (`Schedule`) and what depends on the graph without its weights (`_Arcs`) stay on the device as long as
the structure. Closing with other weights then takes two launches: one checks the weights, one closes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gpuops import csr
from gpuops._cuda import Program, multiprocessors
from gpuops.arrays import contiguous, is_cupy
from gpuops.hierarchy import structure_numba
from gpuops.hierarchy.closed_arcs import ClosedArcs
from gpuops.hierarchy.closing_arguments import check_arcs, lengths_of, refuse_arc
from gpuops.hierarchy.closing_numba import pivot_tile
from gpuops.hierarchy.structure import HierarchyStructure
from gpuops.numbers import distance_limit, infinity


class _Shape(NamedTuple):
    """Macros of closing.cu for one dtype. Sizes are vertices of a node and its front."""

    element: str
    small: int
    medium: int


_SHAPES = {
    "float32": _Shape("float", 24, 72),
    "float64": _Shape("double", 16, 56),
    "int32": _Shape("int", 24, 72),
    "int16": _Shape("short", 24, 72),
}
_PROGRAMS = {
    name: Program(
        "hierarchy/closing.cu",
        ("look_over", "close_levels"),
        (
            f"ELEMENT={shape.element}",
            f"TILE={pivot_tile(name)}",
            f"OWN={pivot_tile(name) // 16}",
            f"SMALL={shape.small}",
            f"MEDIUM={shape.medium}",
            f"NONNEGATIVE={int(name == 'float32')}",
        ),
        threads=256,
        blocks=3,
    )
    for name, shape in _SHAPES.items()
}
# Most vertices of a node and its front that a warp closes, in levels in which blocks can close the other small nodes.
_SMALL = 16
# Most nodes of more than `_SMALL` and up to `_Shape.small` vertices in such a level.
_FEW = 256
_NULL = np.uintp(0)  # a null pointer
CONTROL_WORDS = 8  # words of 8 bytes of the struct Control in closing.cu
_LOOK = 4  # blocks of `look_over` on a multiprocessor

Closed = tuple[ClosedArcs, Any, Any, float, float]


def close(
    structure: HierarchyStructure,
    indptr: Any,
    indices: Any,
    weights: Any,
    potentials: tuple[np.ndarray, np.ndarray] | None,
) -> Closed:
    """Close on the device of the CuPy weights; the arguments are those of `gpuops.close_hierarchy`.

    Returns the arcs of closed vertices, the tables, the largest finite entry of all tables, and an upper bound of the
    finite distances between open vertices.
    """
    import cupy

    n = len(structure.order)
    with weights.device:
        lengths = cupy.ascontiguousarray(weights)
        schedule = _on_device(structure, weights.dtype)
        arcs = schedule.arcs_of(structure, indptr, indices, weights)
        found = arcs.look_over(indptr, indices, lengths, n)
        if found.differs:
            arcs = schedule.new_arcs(structure, indptr, indices, weights)
            found = arcs.look_over(indptr, indices, lengths, n)
        if potentials is not None or found.refused:  # without potentials, this raises the error of the weights
            host = lengths_of(*arcs.ends(indptr, indices), weights.get(), potentials, n)
            lengths = cupy.asarray(host)
            found = arcs.look_over(indptr, indices, lengths, n)
        if found.homeless:
            refuse_arc(found.homeless - 1)
        out = cupy.empty((int(structure.out_starts[-1]),), weights.dtype)
        entries = max(1, int(structure.into_starts[-1]))  # an empty array would be a null pointer, as for no array
        into = cupy.empty((entries,), weights.dtype)[: structure.into_starts[-1]] if found.directed else None
        largest, paths = schedule.close(arcs, lengths, out, into, found.control)
        return arcs.closed(lengths), out, into, largest, paths


# --- The structure ----------------------------------------------------------------------------------------------------


class Schedule:
    """The nodes in the order in which they are closed, and the tasks of each level: the structs of closing.cu.

    Attributes
    ----------
    turn : (N,) int64
        The position of each node in this order.
    nodes : (N, 6) int64
    places : (cost.front,) uint16
        For each node, in this order, the places of its front in the matrix of its parent.
    levels, stages, items : (L, 5), (S, 3), (I, 2) int32
    updates : int
        Entries of the two buffers in which levels store their updates in turn.
    """

    def __init__(self, structure: HierarchyStructure, dtype: np.dtype):
        sizes = np.diff(structure.starts) + np.diff(structure.front_starts)
        if sizes.max(initial=0) >= 2**16:
            raise ValueError(
                f"a node and its front have {sizes.max():,} vertices; a GPU closes less than {2**16:,}. "
                "Pass NumPy weights"
            )
        by_level, child_counts, first_child = _levels(structure.parent)
        order = np.concatenate([*by_level, np.empty(0, np.int64)])
        self.turn = np.empty(len(order), np.int64)
        self.turn[order] = np.arange(len(order))
        ends = np.cumsum([len(level) for level in by_level], dtype=np.int64)
        self.widths, fronts = np.diff(structure.starts)[order], np.diff(structure.front_starts)[order]
        updates, self.updates = _update_starts(fronts, ends)
        self.nodes = np.empty((len(order), 6), np.int64)
        for column, values in enumerate(
            (structure.out_starts[order], structure.into_starts[order], updates, np.cumsum(fronts) - fronts)
        ):
            self.nodes[:, column] = values
        pairs = self.nodes.view(np.int32)
        for column, values in enumerate((self.widths, fronts, self.turn[first_child[order]], child_counts[order])):
            pairs[:, 8 + column] = values
        owner = np.repeat(np.arange(len(order)), np.diff(structure.front_starts))
        places, _ = places_of(structure, _front_keys(structure), structure.parent[owner], structure.front)
        first = structure.front_starts[order]
        self.places = places[csr.in_ranges(first, first + fronts)].astype(np.uint16)
        self._tasks(ends, self.widths, fronts, dtype)

    def arrays(self) -> list[np.ndarray]:
        """Return the arrays that a device needs."""
        return [self.nodes, self.places, self.levels, self.stages, self.items]

    def _tasks(self, ends: np.ndarray, widths: np.ndarray, fronts: np.ndarray, dtype: np.dtype) -> None:
        """List the levels, their stages and the items of each stage."""
        tile, shape = pivot_tile(dtype), _SHAPES[dtype.name]
        sizes, of_width = widths + fronts, -(-widths // tile)
        tiles = of_width - (-fronts // tile)
        by_tiles = (sizes > shape.medium) | (widths > tile)
        levels: list[tuple[int, ...]] = []
        stages: list[tuple[int, ...]] = []
        items: list[np.ndarray] = []
        first = begun = 0
        for end in map(int, ends):
            nodes = first + np.argsort(-sizes[first:end], kind="stable")
            few = np.count_nonzero((sizes[nodes] > _SMALL) & (sizes[nodes] <= shape.small)) <= _FEW
            small = _SMALL if few else shape.small
            nodes = nodes[(sizes[nodes] > small) | by_tiles[nodes]]
            of_level = [(nodes, np.where(by_tiles[nodes], tiles[nodes] ** 2, 1))]
            for pivots in range(int(of_width[nodes[by_tiles[nodes]]].max(initial=0))):
                left = nodes[by_tiles[nodes] & (of_width[nodes] > pivots)]
                of_level += [(left, 2 * (tiles[left] - 1)), (left, (tiles[left] - 1) ** 2 + 1)]
            levels.append((first, end, small, len(stages), len(stages) + len(of_level)))
            for of_stage, tasks in of_level:
                stages.append((begun, begun + len(of_stage), int(tasks.sum())))
                items.append(np.stack([of_stage, np.cumsum(tasks) - tasks], 1))
                begun += len(of_stage)
            first = end
        self.levels, self.stages = np.array(levels, np.int32), np.array(stages, np.int32)
        self.items = np.concatenate([*items, np.empty((0, 2))]).astype(np.int32)


def _levels(parent: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the nodes of each depth, the deepest first, such that the children of a node follow each other.

    Also returns the number of children of each node, and the first child, or node 0 if there is none.
    """
    by_parent = np.argsort(parent, kind="stable")
    counts = np.bincount(parent + 1, minlength=len(parent) + 1)
    starts = (np.cumsum(counts) - counts)[1:]
    roots, counts = by_parent[: counts[0]], counts[1:]
    levels = [roots]
    while len(levels[-1]):
        first = starts[levels[-1]]
        levels.append(by_parent[csr.in_ranges(first, first + counts[levels[-1]])])
    first_child = np.zeros(len(parent), np.int64)
    first_child[counts > 0] = by_parent[starts[counts > 0]]
    return levels[-2::-1], counts, first_child


def _update_starts(fronts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
    """Return where the update of each node begins, and the entries of all updates that exist at a time.

    `ends` has the number of nodes up to the end of each level. Levels use two buffers in turn.
    """
    before = np.concatenate([[0], np.cumsum(fronts**2)]).astype(np.int64)
    firsts = np.concatenate([[0], ends[:-1]]).astype(np.int64)[: len(ends)]
    of_level = before[ends] - before[firsts]
    most = [int(of_level[turn::2].max(initial=0)) for turn in range(2)]
    moved = np.where(np.arange(len(ends)) % 2, most[0], 0) - before[firsts]
    return before[:-1] + np.repeat(moved, ends - firsts), sum(most)


def _front_keys(structure: HierarchyStructure) -> np.ndarray:
    """Return an ascending number for each vertex of all fronts, from which `places_of` finds the vertex."""
    owner = np.repeat(np.arange(len(structure.parent)), np.diff(structure.front_starts))
    return owner * structure.open + structure.front


def places_of(
    structure: HierarchyStructure, keys: np.ndarray, nodes: np.ndarray, vertices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of vertices in the matrices of nodes, and whether they have one.

    The vertices are in the node or later; `keys` are `_front_keys`.
    """
    begin, end = structure.starts[nodes], structure.starts[nodes + 1]
    wanted = nodes * np.int64(structure.open) + vertices
    at = np.searchsorted(keys, wanted)
    there = np.append(keys, -1)[at] == wanted
    places = np.where(vertices < end, vertices - begin, end - begin + at - structure.front_starts[nodes])
    return places, there | (vertices < end)


class _OnDevice:
    """A schedule on the current device, and the last graph that was closed with it."""

    def __init__(self, structure: HierarchyStructure, dtype: np.dtype):
        import cupy

        self.host = Schedule(structure, dtype)
        self.program = _PROGRAMS[dtype.name]
        self.arrays = [cupy.asarray(array) for array in self.host.arrays()]
        self.arcs: _Arcs | None = None

    def arcs_of(self, structure: HierarchyStructure, indptr: Any, indices: Any, weights: Any) -> _Arcs:
        """Return the last graph if it may be this one, else a new one. `look_over` compares arrays on the device."""
        if self.arcs is None or not self.arcs.may_be(indptr, indices, weights):
            return self.new_arcs(structure, indptr, indices, weights)
        return self.arcs

    def new_arcs(self, structure: HierarchyStructure, indptr: Any, indices: Any, weights: Any) -> _Arcs:
        arcs = self.arcs = _Arcs(structure, self, indptr, indices, weights)
        return arcs

    def close(self, arcs: _Arcs, lengths: Any, out: Any, into: Any, control: Any) -> tuple[float, float]:
        """Fill the tables. Returns their largest finite entry, and the bound of the finite distances."""
        import cupy

        count = len(self.host.nodes)
        if count == 0:
            return 0.0, 0.0
        nodes, places, levels, stages, items = self.arrays
        self.program.launch_cooperative(
            "close_levels",
            {
                "nodes": nodes,
                "count": np.int32(count),
                "places": places,
                "arc_starts": arcs.starts,
                "arcs": arcs.arcs,
                "levels": levels,
                "level_count": np.int32(len(levels)),
                "stages": stages,
                "items": items,
                "weights": lengths,
                "out": out,
                "into": _NULL if into is None else into,
                "updates": cupy.empty((self.host.updates,), out.dtype),
                "sums": cupy.empty((count, 4), np.float64),
                "control": control,
            },
        )
        largest, paths, back = control.get()[5:].view(np.float64).tolist()
        return largest, paths + (paths if into is None else back)


# Schedules by structure, and by device and dtype.
_schedules: WeakKeyDictionary[HierarchyStructure, dict[tuple[int, np.dtype], _OnDevice]] = WeakKeyDictionary()
_lock = threading.Lock()


def _on_device(structure: HierarchyStructure, dtype: np.dtype) -> _OnDevice:
    import cupy

    key = cupy.cuda.Device().id, dtype
    with _lock:
        known = _schedules.setdefault(structure, {})
        if key not in known:
            known[key] = _OnDevice(structure, dtype)
        return known[key]


# --- The graph --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """What `look_over` found, and the control block for the launch that follows."""

    control: Any
    differs: bool
    refused: bool
    directed: bool
    homeless: int  # 1 + the number of an arc that the structure has no room for, or 0


class _Arcs:
    """A graph without its weights: for each node, its arcs and their places in the matrix of the node."""

    def __init__(self, structure: HierarchyStructure, schedule: _OnDevice, indptr: Any, indices: Any, weights: Any):
        import cupy

        row_starts, heads = (np.asarray(x.get() if is_cupy(x) else x) for x in (indptr, indices))
        check_arcs(structure, row_starts, heads, np.broadcast_to(np.int8(0), weights.shape))
        if len(heads) >= 2**31:
            raise ValueError(f"there are {len(heads):,} arcs; a GPU takes less than 2^31. Pass NumPy weights")
        self.program = schedule.program
        # A copy, so that a change of the caller's arrays is noticed.
        self.known = [x.copy() for x in (indptr, indices)]
        place, open_, n = structure.place, structure.open, len(structure.order)
        starts, higher, numbers = structure_numba.deal(contiguous(row_starts), contiguous(heads), place, open_, True)
        lower = np.repeat(np.arange(open_), np.diff(starts))
        node = structure.node_of[lower]
        j, there = places_of(structure, _front_keys(structure), node, higher)
        backward, numbers = numbers < 0, np.where(numbers < 0, ~numbers, numbers)
        self.rejected = cupy.asarray(numbers[~there].astype(np.int32))
        turn, i = schedule.host.turn[node], lower - structure.starts[node]
        first_places = np.cumsum(schedule.host.widths) - schedule.host.widths
        pairs = (first_places[turn] + i) * np.int64(max(n, 1)) + higher
        order = np.argsort(np.where(there, pairs, np.iinfo(np.int64).max), kind="stable")[: np.count_nonzero(there)]
        arcs = np.empty((len(order), 2), np.int32)
        again = np.append(False, np.diff(pairs[order]) == 0)[: len(order)]
        arcs[:, 0] = np.where(again, numbers[order], ~numbers[order])
        ends = arcs.view(np.uint16)
        ends[:, 2], ends[:, 3] = np.where(backward, j, i)[order], np.where(backward, i, j)[order]
        self.arcs = cupy.asarray(arcs)
        counts = np.bincount(turn[order], minlength=len(schedule.host.turn))
        self.starts = cupy.asarray(np.append(0, np.cumsum(counts)).astype(np.int64))
        tails, beside = np.empty(0, np.int64), np.empty(0, np.int64)
        if open_ < n:
            tails = csr.tails(row_starts, len(heads), np.int64)
            beside = np.flatnonzero((place[tails] >= open_) | (place[heads] >= open_))
        self.beside = cupy.asarray(beside)
        self.links = place[tails[beside]], place[heads[beside]], open_, n
        self.none_closed = ClosedArcs.of(place[:0], place[:0], np.empty(0, weights.dtype), open_, n)

    def may_be(self, indptr: Any, indices: Any, weights: Any) -> bool:
        """Return whether this is the graph of the arguments, as far as the host can tell."""
        for x, known in zip((indptr, indices), self.known, strict=True):
            if is_cupy(x) != is_cupy(known) or x.shape != known.shape or x.dtype != known.dtype:
                return False
            if not is_cupy(x) and not np.array_equal(x, known):
                return False
        return weights.shape == self.known[1].shape

    def ends(self, indptr: Any, indices: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the tails and the heads of all arcs, in NumPy."""
        starts, heads = (x.get() if is_cupy(x) else x for x in (indptr, indices))
        return csr.tails(starts, len(heads), np.int64), heads

    def look_over(self, indptr: Any, indices: Any, lengths: Any, n: int) -> _Found:
        """Check the weights or lengths, and the graph. Returns also a control block for `close_levels`."""
        import cupy

        control = cupy.zeros((CONTROL_WORDS,), np.uint64)
        compared = []
        for x, known in zip((indptr, indices), self.known, strict=True):
            if is_cupy(x):
                words = np.int64(x.nbytes // 4)
                compared += [cupy.ascontiguousarray(x), known, words]
            else:
                compared += [_NULL, _NULL, np.int64(0)]
        blocks = min(_LOOK * multiprocessors(cupy.cuda.Device().id), -(-len(lengths) // self.program.threads))
        arguments = (
            lengths, np.int64(len(lengths)), np.float64(distance_limit(lengths.dtype)),
            np.float64(n), self.arcs, np.int64(len(self.arcs)), *compared, self.rejected, np.int64(len(self.rejected)),
            control,
        )  # fmt: skip
        self.program.launch("look_over", max(blocks, 1), arguments)
        _, differs, refused, directed, homeless, *_ = control.get().tolist()
        return _Found(control, bool(differs), bool(refused), bool(directed), homeless)

    def closed(self, lengths: Any) -> ClosedArcs:
        """Return the arcs of closed vertices."""
        if len(self.beside) == 0:
            return self.none_closed
        tails, heads, open_, n = self.links
        unreachable = infinity(lengths.dtype)
        found = np.minimum(lengths[self.beside].get() + lengths.dtype.type(0), unreachable)
        there = np.flatnonzero(found < unreachable)
        return ClosedArcs.of(tails[there], heads[there], found[there], open_, n)
