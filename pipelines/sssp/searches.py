"""Searches spread by sources: every worker holds the whole graph and takes some sources at a time.

1. Load: every worker lays the graph out for searches, on its device. Where all weights are equal, no layout is needed:
   breadth-first searches count arcs.
2. Deal: a task searches for the rows of one chunk of the result, `LANES` sources at a time if searches can share the
   reads of arcs. It writes the rows while the worker searches for the next chunk. A worker that is done gets another
   chunk, as searches take unequal times.
3. Record which rows are complete, in an attribute of the store that is written after the rows.

A row is written once and whole. A distance is the least of all path lengths, rounded arc by arc, and does not depend on
the order of the search. So the chunks of a lost worker are searched for again, with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from gpuops import NegativeCycleError, csr
from gpuops.certificates import nonnegative_weights
from gpuops.hops import hop_distances
from gpuops.numbers import outside_infinity
from gpuops.sssp import batched_shortest_distances, shortest_distances, shortest_path_tree
from gpuops.sssp.graph_layout import SearchGraph, search_graph
from pipelines.sssp.plan import LANES
from pipelines.stores.graph import Graph
from pipelines.validation.bounds import arc_pieces, row_limit
from pipelines.workers.device_arrays import array_library
from pipelines.workers.resident_state import clear, held, keep
from pipelines.workers.row_chunks import RowChunksWriter, RowTasks
from pipelines.workers.saving import Savers, let_next_begin


@dataclass(frozen=True, eq=False)
class SearchJob:
    """The problem, for the tasks."""

    graph: Graph
    dtype: np.dtype
    lanes: bool = True  # whether searches may share the reads of arcs: not with negative weights or a cutoff
    predecessors: bool = True
    cutoff: float | None = None
    targets: tuple[int, ...] | None = None
    potentials: tuple[np.ndarray, np.ndarray] | None = None  # make weights non-negative; only without predecessors
    loops: tuple[np.ndarray, np.ndarray] | None = None  # vertices with loops of negative weight, and the weights
    hops: bool = False  # whether arcs are counted: they have equal weights, and searches may share reads

    @cached_property
    def through(self) -> np.ndarray | None:
        """The vertices that may lie inside a path, bool (n); None if all may. Read once in a process."""
        mask = self.graph.through()
        return None if mask.all() else mask

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "through"}

    def arcs(self, first: int, last: int, library: Any = np) -> tuple[Any, Any, Any]:
        """Return the arcs that leave the vertices `first` to `last` (excluded), in CSR, with weights for searches.

        The arrays are new, of `library` (numpy or cupy).
        """
        loops = self.loops is not None and len(self.loops[0]) > 0
        if self.potentials is None and not loops:
            return self.graph.rows_in(library, self.dtype, first, last)
        indptr, indices, weights = self.graph.rows(first, last)
        if self.potentials is not None:
            weights = nonnegative_weights(self.potentials, first, indptr, indices, weights)
        if loops:  # loops of negative weight are left to `refuse_loops`, as searches may never reach them
            rows = csr.tails(indptr, len(indices), np.int64)
            kept = indices != first + rows
            indptr, indices, weights = csr.row_starts(rows[kept], len(indptr) - 1), indices[kept], weights[kept]
        return tuple(map(library.asarray, (indptr, indices, weights.astype(self.dtype, copy=False))))

    def refuse_loops(self, distances: Any, sources: tuple[int, ...]) -> None:
        """Raise NegativeCycleError if a search can go around a loop of negative weight; `distances` is (n)."""
        if self.loops is None:
            return
        for vertex, weight in zip(*(part.tolist() for part in self.loops), strict=True):
            passes = self.through is None or self.through[vertex] or vertex in sources
            if passes and bool(distances[vertex] != outside_infinity(self.dtype)):
                raise NegativeCycleError(f"a loop of weight {weight:g} at vertex {vertex}", (vertex,), weight)

    def cut(self, distances: Any) -> None:
        """Mark the vertices beyond the limit of a row as unreachable, in place."""
        limit = row_limit(distances, self.cutoff, self.targets)
        if limit is not None:
            distances[distances > limit] = outside_infinity(self.dtype)

    def shift_back(self, distances: np.ndarray, column: int, sources: Sequence[tuple[int, ...]]) -> None:
        """Turn distances by non-negative weights into distances by the weights of the graph, in place.

        `distances` is (k, c), from k sources to the c vertices from `column` on.
        """
        if self.potentials is None:
            return
        out, into = self.potentials
        end = column + distances.shape[1]
        for row, (source,) in zip(distances, sources, strict=True):
            reached = row != outside_infinity(self.dtype)
            row[reached] = (row + (into[column:end] - out[source]))[reached]
            if column <= source < end:
                row[source - column] = 0


def have_equal_weights(graph: Graph) -> bool:
    """Return whether all arcs have the same weight, which is not negative: a search then counts arcs."""
    return graph.m > 0 and 0 <= graph.weight_min == graph.weight_max


def negative_loops(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the vertices with loops of negative weight, and their least weights; None if no weight is negative."""
    if graph.weight_min >= 0:
        return None
    lightest: dict[int, Any] = {}
    for first, indptr, indices, weights in arc_pieces(graph):
        tails = first + csr.tails(indptr, len(indices), np.int64)
        for arc in np.flatnonzero((tails == indices) & (weights < 0)):
            vertex, weight = int(tails[arc]), weights[arc].item()
            lightest[vertex] = min(weight, lightest.get(vertex, weight))
    return np.array(list(lightest), dtype=np.int64), np.array(list(lightest.values()))


class BlockWriter(Protocol):
    """A store being written, as the workers see it; its pickle is small."""

    def opened(self, name: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Return the width of a chunk of the array `name`, and a function that writes a chunk at (row, column)."""


class SearchWriter(RowChunksWriter, Protocol):
    """A store that grows by whole chunks of rows: of paths, or of distances."""

    def row_sources(self, row: int) -> tuple[int, ...]: ...

    def for_tasks(self) -> BlockWriter: ...


def row_tasks(job: SearchJob, out: SearchWriter) -> RowTasks:
    """Return the tasks of searches spread by sources, which write their rows to `out`."""
    writer = out.for_tasks()
    return RowTasks(
        "sssp",
        load=(_load, job),
        work=lambda rows: (_search, writer, rows.start, sources_of(out, rows)),
    )


def sources_of(out: SearchWriter, rows: slice) -> list[tuple[int, ...]]:
    """Return the sources of each of some rows."""
    return [out.row_sources(row) for row in range(rows.start, rows.stop)]


# The tasks, and the searches they make.


@dataclass
class _Searcher:
    """A worker's copy of the graph."""

    job: SearchJob
    graph: SearchGraph

    def rows(self, sources: Sequence[tuple[int, ...]]) -> tuple[Any, Any]:
        """Return distances and predecessors (or None), (k, n) each, on the device, given the sources of k rows."""
        job, k, xp = self.job, len(sources), array_library()
        distances = xp.empty((k, job.graph.n), job.dtype)
        predecessors = xp.empty((k, job.graph.n), np.int32) if job.predecessors else None
        shared = job.lanes and k > 1 and all(len(of_row) == 1 for of_row in sources)
        step = LANES if shared else 1
        for start in range(0, k, step):
            part = sources[start : start + step]
            if shared:
                found = batched_shortest_distances(self.graph, [s for (s,) in part])
            else:
                found = shortest_distances(self.graph, list(part[0]), cutoff=job.cutoff, targets=job.targets)[None]
            for i, (row, roots) in enumerate(zip(found, part, strict=True), start):
                job.refuse_loops(row, roots)
                if shared:
                    job.cut(row)
                if predecessors is not None:
                    predecessors[i] = shortest_path_tree(self.graph, row, list(roots), starts=0)
            distances[start : start + len(part)] = found
        return distances, predecessors


@dataclass
class _HopSearcher:
    """A worker's copy of a graph whose arcs have equal weights."""

    job: SearchJob
    indptr: Any
    indices: Any
    transposed: tuple[Any, Any] | None  # for a GPU
    through: Any

    def rows(self, sources: Sequence[tuple[int, ...]]) -> tuple[Any, Any]:
        """Return distances and predecessors as `_Searcher.rows`, by breadth-first searches."""
        job = self.job
        found = hop_distances(
            self.indptr,
            self.indices,
            [source for (source,) in sources],
            length=job.graph.weight_min,
            dtype=job.dtype,
            through=self.through,
            predecessors=job.predecessors,
            transposed=self.transposed,
            check=False,
        )
        distances, predecessors = found if job.predecessors else (found, None)
        for i, row in enumerate(distances):
            job.cut(row)
            if predecessors is not None and job.targets is not None:
                predecessors[i, row == outside_infinity(job.dtype)] = -1
        return distances, predecessors


def _load(attempt: str, job: SearchJob) -> None:
    """Lay the graph out on this worker."""
    clear()
    xp = array_library()
    mask = None if job.through is None else xp.asarray(job.through)
    if job.hops:
        rows = job.graph.rows_in(xp, job.dtype, 0, job.graph.n)[:2]
        transposed = None if xp is np else csr.transpose(*rows)[:2] if job.graph.directed else rows
        keep(attempt, _HopSearcher(job, *rows, transposed, mask))
        return
    graph = search_graph(
        *job.arcs(0, job.graph.n, xp),
        dtype=job.dtype,
        through=mask,
        symmetric=not job.graph.directed and job.potentials is None,
    )
    keep(attempt, _Searcher(job, graph))


def _search(attempt: str, writer: BlockWriter, start: int, sources: list[tuple[int, ...]]) -> None:
    """Search for the rows of the chunk that begins with row `start`, and write them."""
    searcher = held(attempt)
    distances, predecessors = searcher.rows(sources)

    def shift_and_write(column: int, block: np.ndarray) -> None:
        searcher.job.shift_back(block, column, sources)
        write(start, column, block)

    columns, write = writer.opened("distances")
    with Savers(waiting=math.inf) as savers:  # waiting chunks take no memory, so any number may wait
        savers.save(distances, columns, shift_and_write)
        if predecessors is not None:
            columns, write_predecessors = writer.opened("predecessors")
            savers.save(predecessors, columns, partial(write_predecessors, start))
        let_next_begin()  # the next task searches while these rows are written
