"""Searches spread by sources: every worker holds the whole graph and takes some sources at a time.

1. Load: every worker lays the graph out for searches, on its device. Where all weights are equal, no layout is needed:
   breadth-first searches count arcs.
2. Deal: a task searches for the rows of one chunk of the result, `BATCH` sources at a time if searches can share the
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
from functools import partial
from typing import Any, Protocol

import numpy as np

from gpuops import csr
from gpuops.hops import hop_distances
from gpuops.numbers import outside_infinity
from gpuops.sssp import batched_shortest_distances, shortest_distances, shortest_path_tree
from gpuops.sssp.graph_layout import SearchGraph, search_graph
from pipelines.sssp.job import BATCH, SearchJob
from pipelines.workers.device_arrays import array_library
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.row_chunks import RowChunksWriter, RowTasks
from pipelines.workers.saving import Savers, let_next_begin


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
        shared = job.batched and k > 1 and all(len(of_row) == 1 for of_row in sources)
        step = BATCH if shared else 1
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
    clear_states()
    xp = array_library()
    mask = None if job.through is None else xp.asarray(job.through)
    if job.hops:
        rows = job.graph.rows_in(xp, job.dtype, 0, job.graph.n)[:2]
        transposed = None if xp is np else csr.transpose(*rows)[:2] if job.graph.directed else rows
        keep_state(attempt, _HopSearcher(job, *rows, transposed, mask))
        return
    graph = search_graph(
        *job.arcs(0, job.graph.n, xp),
        dtype=job.dtype,
        through=mask,
        symmetric=not job.graph.directed and job.potentials is None,
    )
    keep_state(attempt, _Searcher(job, graph))


def _search(attempt: str, writer: BlockWriter, start: int, sources: list[tuple[int, ...]]) -> None:
    """Search for the rows of the chunk that begins with row `start`, and write them."""
    searcher = state_of(attempt)
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
