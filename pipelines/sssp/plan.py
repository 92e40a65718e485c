"""How searches are spread over the workers, and what that takes: stated before a run, refused where it cannot fit.

By *sources*: every worker holds the whole graph and takes some sources at a time. Nothing is exchanged, so this is the
way wherever the graph fits a worker and there are sources for all of them, or a search is over sooner than rounds are.

By *vertices*: every worker holds the arcs that leave a range of the vertices, and all work on one search in rounds.
This is the way for graphs that fit no worker alone, and for a few searches that take long. Where the arcs of a range
exceed the memory of its worker, they stream through it in pieces while the distances stay.

What a search takes is estimated as so much for every search, vertex and arc, measured once for each kind of device
(`SEARCHING` and its neighbours). The work depends on the graph too, so the estimate may be off by a factor of 2 or 3;
nothing but the choice depends on it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gpuops.sssp.graph_layout import SORTED_TOGETHER
from pipelines.generators.generated_graph import GeneratedGraph
from pipelines.sssp.packets import ring_bytes
from pipelines.stores import Graph
from pipelines.stores.schema import CHUNK_BYTES
from pipelines.workers.capacity import (
    MEMORY_SHARE,
    WRITE_RATE,
    DoesNotFitError,
    WorkerFacts,
    memory_by_place,
    refuse_disk,
    refuse_memory,
)
from pipelines.workers.progress import duration, size

Spread = Literal["sources", "vertices"]

LANES = 32  # sources that share the read of an arc


class Cost(NamedTuple):
    """Seconds that something takes: so much by itself, for every vertex, and for every stored arc."""

    itself: float
    vertex: float
    arc: float

    def of(self, graph: Graph) -> float:
        return self.itself + self.vertex * graph.n + self.arc * graph.m


# CPU: measured on 2 threads of a Xeon at 2.5 GHz, float32, R-MAT of scale 14 and 18 (32 arcs a vertex), grids of
# 60 x 60 and 400 x 400, a random graph of 2^17 vertices and 4 arcs each; within a factor of 2 of them all. Together on
# a CPU: processor time of an EPYC, R-MAT of scale 12 to 18, grids of 60 x 60 to 400 x 400, roads, 2048 vertices of 1024
# arcs each; within a factor of 3, but for random graphs that are larger than the caches, which take 4 times as long.
# GPU: an H100, R-MAT of scale 14 to 24 and grids of 2048 x 2048 and 4096 x 4096; a single cost for both kinds is within
# a factor of 4.
SEARCHING = {"cpu": Cost(1e-4, 1.5e-7, 1e-9), "gpu": Cost(8e-4, 2e-9, 1.5e-11)}  # one search
BATCHING = {"cpu": Cost(5e-4, 1.6e-6, 3e-9), "gpu": Cost(2e-3, 1.5e-9, 6e-11)}  # LANES searches, on one CPU thread
LAYING_OUT = {"cpu": Cost(1e-2, 0.0, 2.5e-7), "gpu": Cost(5e-2, 0.0, 8e-9)}  # from the store
GENERATING = LAYING_OUT | {"gpu": Cost(5e-2, 0.0, 2e-9)}  # where it is generated; an H100, R-MAT of scale 24 and 28
TREE_SHARE = 0.3  # of the time of one search, to find its predecessors
ROUND_SECONDS = 0.1  # a round: some tasks, a hop between workers, a barrier
ROUNDS = 8  # of a search by vertices, to weigh it up against one on a single worker
VERTEX_BYTES = 96  # what a search keeps of a vertex beside distances: numbering, offsets, cursors, queues
NUMBERING_BYTES = 84  # and before, while its graph is laid out; half of that where it is all there is
BUILDING_BYTES = {"cpu": 48, "gpu": 80}  # transient, an arc, while a graph is read and sorted for searches


@dataclass(frozen=True)
class SearchPlan:
    """The way and the size of a run: memory in bytes per worker, disk in bytes, an estimate of the time in seconds."""

    spread: Spread
    reason: str
    chunk: int  # rows of the result that are searched for, and written, together
    pieces: int  # that the arcs of a worker come in, by vertices
    transposed: bool  # whether the transpose of a single piece is laid out too
    worker_bytes: tuple[int, ...]
    disk_bytes: int
    seconds: float

    def describe(self, graph: Graph, rows: int, facts: list[WorkerFacts]) -> str:
        """One line for people: what runs where and what it takes."""
        devices = sorted({f.device for f in facts})
        streamed = f", arcs in {self.pieces} pieces a worker" if self.pieces > 1 else ""
        return (
            f"n = {graph.n:,}, m = {graph.m:,}, {rows:,} row{'s' if rows > 1 else ''}, {len(facts)} "
            f"worker{'s' if len(facts) > 1 else ''} on {', '.join(devices)}, by {self.spread} ({self.reason})"
            f"{streamed}: memory {size(sum(self.worker_bytes))}, disk {size(self.disk_bytes)}, "
            f"about {duration(self.seconds)}"
        )


def graph_bytes(n: int, m: int, itemsize: int, *, symmetric: bool) -> int:
    """Bytes of a `gpuops.search_graph.SearchGraph` of n vertices and m arcs, its transpose included."""
    return (1 if symmetric else 2) * (8 * n + (4 + itemsize) * m)


def make_search_plan(
    graph: Graph,
    dtype: np.dtype,
    rows: int,
    facts: list[WorkerFacts],
    *,
    lanes: bool,
    predecessors: bool = True,
    spread: Spread | None = None,
    piece_arcs: int | None = None,
    chunk: int | None = None,
) -> SearchPlan:
    """Choose how `rows` searches are spread over the workers, and add up what they take.

    Parameters
    ----------
    lanes : may searches share the reads of arcs?
    spread : the way to take, whatever the sizes; None chooses
    piece_arcs : arcs of a piece; None: what the memory has room for
    chunk : rows of a chunk of a store that was begun; None chooses

    Raises
    ------
    DoesNotFitError
        Not even the distances fit a worker, or the graph does not where `spread` is "sources".
    """
    n, m, count = graph.n, graph.m, len(facts)
    row = n * (dtype.itemsize + (4 if predecessors else 0))
    if chunk is None:
        share = -(-rows // count)  # with fewer rows than that for a task, some worker has none
        filled = CHUNK_BYTES // max(1, n * dtype.itemsize)
        chunk = max(1, min(share, max(filled, LANES if lanes else 1)))
    width = min(chunk, LANES) if lanes else 1
    busy = min(count, -(-rows // chunk))

    whole = graph_bytes(n, m, dtype.itemsize, symmetric=not graph.directed)
    # One chunk is written while the next is searched for.
    searching = n * (VERTEX_BYTES + 4 * width * dtype.itemsize) + min(2, -(-rows // chunk)) * chunk * row
    building = _building_bytes(facts, m, dtype, transposed=graph.directed) + n * NUMBERING_BYTES // 2
    whole_bytes = (whole + max(searching, building),) * busy + (0,) * (count - busy)
    fits = all(need <= MEMORY_SHARE * free for need, free in memory_by_place(whole_bytes, facts).values())
    costs = GENERATING if isinstance(graph, GeneratedGraph) else LAYING_OUT
    laying_out = max(costs[_kind(f)].of(graph) for f in facts)
    search = max(SEARCHING[_kind(f)].of(graph) for f in facts) * (1 + TREE_SHARE * predecessors)
    alone, together = laying_out + search, laying_out / count + rows * (search / count + ROUNDS * ROUND_SECONDS)
    if spread is None:
        spread, reason = _choose(rows, count, fits, alone, together)
    else:
        reason = "as asked for"

    writing = rows * row / WRITE_RATE
    if spread == "sources":
        refuse_memory(f"{n:,} vertices and {m:,} arcs", whole_bytes, facts, lambda _free: _SPREAD_CURE)
        each = max(_seconds_a_row(f, graph, width, predecessors) for f in facts)
        seconds = laying_out + -(-rows // busy) * each + writing / busy
        return SearchPlan("sources", reason, chunk, 1, True, whole_bytes, rows * row, seconds)

    ring = ring_bytes(graph.ranges(count), dtype)
    fixed = n * (VERTEX_BYTES + 2 * dtype.itemsize) + ring + chunk * row
    spare = n * (VERTEX_BYTES - NUMBERING_BYTES + dtype.itemsize)  # while a single piece is laid out
    room, arc = _room(fixed, facts), 4 + dtype.itemsize
    per_arc = max(BUILDING_BYTES[_kind(f)] for f in facts) + 2 * arc
    if room < per_arc:
        needed = (fixed + per_arc,) * count
        refuse_memory(f"the distances of {n:,} vertices", needed, facts, lambda _free: "Run on machines with more")
        raise DoesNotFitError(
            f"the distances of {n:,} vertices leave no room for arcs; free memory, or use fewer workers"
        )
    own = max(1, -(-m // count))
    arcs, transposed = min(own, piece_arcs or own), True
    if piece_arcs is None and own * per_arc > room:
        transposed = False
        if own * arc + max(0, _building_bytes(facts, own, dtype, transposed=False) - spare) > room:
            arcs = room // per_arc
    pieces, taken = -(-own // arcs), arcs * per_arc
    if pieces == 1 and not transposed:
        taken = own * arc + max(0, _building_bytes(facts, own, dtype, transposed=False) - spare)
    worker_bytes = (fixed + taken,) * count
    refuse_memory(f"pieces of {arcs:,} arcs", worker_bytes, facts, lambda _free: "Ask for smaller pieces")
    return SearchPlan("vertices", reason, chunk, pieces, transposed, worker_bytes, rows * row, together + writing)


_SPREAD_CURE = "Spread them by vertices (--spread vertices), or use fewer workers on a machine, or free memory"


def _choose(rows: int, count: int, fits: bool, alone: float, together: float) -> tuple[Spread, str]:
    if not fits:
        return "vertices", "the graph does not fit a worker" if count == 1 else "the graph does not fit every worker"
    if count == 1:
        return "sources", "one worker holds the graph"
    if rows >= count:
        return "sources", f"{rows:,} searches for {count} workers that each hold the graph"
    if alone <= together:
        return "sources", f"a search takes about {duration(alone)} on one worker, less than rounds of all would"
    return "vertices", f"fewer searches than workers, each about {duration(alone)} on one worker"


def _kind(fact: WorkerFacts) -> str:
    return "gpu" if fact.gpu else "cpu"


def _building_bytes(facts: list[WorkerFacts], arcs: int, dtype: np.dtype, *, transposed: bool) -> int:
    """Transient bytes while so many arcs are laid out; a GPU sorts some at a time unless the transpose is wanted."""
    most = 0
    for kind in {_kind(f) for f in facts}:
        each = BUILDING_BYTES[kind]
        some = (4 + dtype.itemsize) * arcs + each * SORTED_TOGETHER
        most = max(most, each * arcs if kind == "cpu" or transposed else min(each * arcs, some))
    return most


def _seconds_a_row(fact: WorkerFacts, graph: Graph, width: int, predecessors: bool) -> float:
    """On one worker, of which `width` searches share their reads."""
    one = SEARCHING[_kind(fact)].of(graph)
    shared = one if width == 1 else BATCHING[_kind(fact)].of(graph) / LANES / min(fact.threads, width)
    return shared + TREE_SHARE * one * predecessors


def _room(fixed: int, facts: list[WorkerFacts]) -> int:
    """Bytes that a worker has left for arcs, where all of them hold `fixed` bytes."""
    left = []
    for place, (needed, free) in memory_by_place((fixed,) * len(facts), facts).items():
        workers = sum(place in (f.address, f.host) for f in facts)
        left.append((int(MEMORY_SHARE * free) - needed) // workers)
    return min(left)


def refuse_disk_of(plan: SearchPlan, out: str | os.PathLike[str]) -> None:
    """Raise DoesNotFitError if the disk is too small for the result."""
    refuse_disk(plan.disk_bytes, out, "ask for fewer sources")
