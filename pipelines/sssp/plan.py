"""How searches are spread over the workers, and their memory, disk and time; a run that cannot fit is refused.

By *sources*: every worker holds the whole graph and takes some sources at a time. Workers exchange no data, so searches
are spread by sources if the graph fits every worker and there are sources for all workers, or if a search on one worker
takes less time than rounds do.

By *vertices*: every worker holds the arcs that leave a range of the vertices, and all workers do one search in rounds.
This is for graphs that do not fit a single worker, and for a few searches that take long. If the arcs of a range exceed
the memory of the worker, they stream through it in pieces, while the distances stay.

The time of a search is estimated from times for every search, vertex and arc, measured once for each kind of device
(`SEARCHING` and the constants after it). The time depends on the graph too, so the estimate may be off by a factor of 2
or 3. It decides only how searches are spread.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from gpuops.sssp.graph_layout import SORTED_TOGETHER
from pipelines.generators.generated_graph import GeneratedGraph
from pipelines.sssp.job import BATCH, SearchJob
from pipelines.sssp.packets import ring_bytes
from pipelines.stores.graph import Graph
from pipelines.stores.schema import CHUNK_BYTES, counted
from pipelines.workers.capacity import (
    MEMORY_SHARE,
    WRITE_RATE,
    DoesNotFitError,
    Needs,
    WorkerFacts,
    on_devices,
    refuse_disk,
)
from pipelines.workers.plans import Plan, refusing, run_plan
from pipelines.workers.progress import estimated, rounded
from pipelines.workers.saving import KEPT_COPIES, WRITTEN_COPIES, written_bytes

Spread = Literal["sources", "vertices"]

HOP_BATCH = 64  # number of sources whose searches share the read of an arc, where arcs are counted


class Cost(NamedTuple):
    """A time in seconds: the sum of a constant, a time for every vertex, and a time for every stored arc."""

    itself: float
    vertex: float
    arc: float

    def of(self, graph: Graph) -> float:
        return self.itself + self.vertex * graph.n + self.arc * graph.m


# Costs of single searches on a CPU were measured on 2 threads of a Xeon at 2.5 GHz with float32 weights: R-MAT graphs
# of scale 14 and 18 (32 arcs a vertex), grids of 60 x 60 and 400 x 400, and a random graph of 2^17 vertices with 4 arcs
# each. All measured times are within a factor of 2 of the cost.
# Costs of BATCH searches together on a CPU are processor times of an EPYC: R-MAT graphs of scale 12 to 18, grids of
# 60 x 60 to 400 x 400, roads, and 2048 vertices with 1024 arcs each. Times are within a factor of 3 of the cost, except
# for random graphs that are larger than the caches, which take 4 times as long.
# Laying out on a CPU was measured on 2 threads of an EPYC: R-MAT graphs of scale 16 to 20, and a road of 1,000,000
# vertices; and the share of predecessors, on the same graphs and grids. Runs take within a factor of 2 of their costs.
# Costs on a GPU were measured on an H100: R-MAT graphs of scale 14 to 24, and grids of 2048 x 2048 and 4096 x 4096. A
# single cost for both kinds of graphs is within a factor of 4 of the times.
SEARCHING = {"cpu": Cost(1e-4, 1.5e-7, 1e-9), "gpu": Cost(8e-4, 2e-9, 1.5e-11)}  # one search
BATCHING = {"cpu": Cost(5e-4, 1.6e-6, 3e-9), "gpu": Cost(2e-3, 1.5e-9, 6e-11)}  # BATCH searches, on one CPU thread
# Processor times of an EPYC under load, for HOP_BATCH searches without predecessors: random graphs of 2,000 to 131,072
# vertices, and grids of 60 x 60 and 400 x 400. All measured times are within a factor of 3 of the cost.
HOPPING = Cost(5e-4, 1.4e-6, 4e-9)  # HOP_BATCH searches by hops, on one CPU thread
LAYING_OUT = {"cpu": Cost(1e-2, 0.0, 7e-8), "gpu": Cost(5e-2, 0.0, 8e-9)}  # reading a graph store and laying it out
GENERATING = LAYING_OUT | {"gpu": Cost(5e-2, 0.0, 2e-9)}  # laying out a generated graph; H100, R-MAT of scale 24 and 28
TREE_SHARE = 0.15  # time to find the predecessors of a search, as a share of the time of the search
# Seconds until a worker on a GPU, which is a process, takes its first task. On the host of an H200, `tilepath sssp` of
# a road network of 115,600 vertices took 6.6 s with the GPU and 4.0 s without.
GPU_START = 2.5
FEWER_SOURCES = "ask for fewer sources"  # the cure of a disk that is too small
ROUND_SECONDS = 0.1  # seconds of a round: some tasks, a hop between workers, a barrier
ROUNDS = 8  # rounds that a search by vertices is assumed to take
VERTEX_BYTES = 96  # bytes for each vertex in a search, without distances: numbering, offsets, cursors, queues
NUMBERING_BYTES = 84  # bytes for each vertex while a piece is laid out; half of that for a whole graph
BUILDING_BYTES = {"cpu": 48, "gpu": 80}  # transient bytes for each arc while a graph is read and sorted for searches


@dataclass(frozen=True)
class SearchPlan:
    """The spread and the size of a run of `rows` searches: memory and disk, and the estimated time in seconds."""

    job: SearchJob
    rows: int
    facts: list[WorkerFacts]
    spread: Spread
    chunk: int  # rows of the result that are searched for and written together
    needs: Needs
    seconds: float
    reason: str = "as asked for"
    pieces: int = 1  # number of pieces of a worker's arcs, by vertices
    transposed: bool = True  # whether the transpose of a worker's piece is laid out too, if there is only one

    def describe(self) -> str:
        """Return one line for the user: the graph, the workers, and the memory, disk and time of the run."""
        graph, streamed = self.job.graph, f", arcs in {self.pieces} pieces a worker" if self.pieces > 1 else ""
        return (
            f"n = {graph.n:,}, m = {graph.m:,}, {counted(self.rows, 'row')}, {on_devices(self.facts)}, "
            f"by {self.spread} ({self.reason}){streamed}: {self.needs}, time {estimated(self.seconds)}"
        )

    def stated(self) -> Plan:
        """Return the plan that the run states."""
        return run_plan(self.describe(), f"by {self.spread}", self.needs, self.seconds)

    def fitting(self, what: str, cure: str) -> SearchPlan:
        """Return the plan; raise DoesNotFitError, as `Needs.refuse_memory` does, if the memory is too small."""
        with refusing(self.stated()):
            self.needs.refuse_memory(what, self.facts, cure)
        return self

    def refuse_disk(self, out: str | os.PathLike[str]) -> None:
        """Raise DoesNotFitError if the disk of `out` is too small for the result."""
        refuse_disk(self.needs.disk, out, FEWER_SOURCES)


def faster_device(graph: Graph, rows: int) -> tuple[str, str]:
    """Return the device, "cpu" or "gpu", that is expected to finish `rows` searches first, and the reason.

    Both devices lay out the graph. The GPU has to be started, too.
    """
    seconds = {kind: LAYING_OUT[kind].of(graph) + rows * SEARCHING[kind].of(graph) for kind in ("cpu", "gpu")}
    cpu, gpu = rounded(seconds["cpu"]), rounded(seconds["gpu"] + GPU_START)
    if seconds["cpu"] <= seconds["gpu"] + GPU_START:
        slower = f"{gpu} on the GPU, which has to start first (`--device gpu` takes it)"
        return "cpu", f"the run takes about {cpu} there, and {slower}."
    return "gpu", f"the run takes about {gpu} there, start included, and {cpu} on the CPU (`--device cpu` takes it)."


def make_search_plan(
    job: SearchJob,
    rows: int,
    facts: list[WorkerFacts],
    *,
    spread: Spread | None = None,
    piece_arcs: int | None = None,
    chunk: int | None = None,
    columns: int | None = None,
) -> SearchPlan:
    """Choose how `rows` searches are spread over the workers, and add up their memory, disk and time.

    If the job counts arcs, the estimate on a GPU is that of searches by weights.

    Parameters
    ----------
    spread : "sources" or "vertices", whatever the sizes; None chooses
    piece_arcs : arcs of a piece; None takes as many arcs as fit in memory
    chunk : rows of a chunk of a store that was begun; None chooses
    columns : columns of a chunk of a distances store, which has many chunks; None: as many as a paths store has

    Raises
    ------
    DoesNotFitError
        Not even the distances fit a worker, or `spread` is "sources" and the graph does not fit a worker.
    """
    graph, count = job.graph, len(facts)
    if chunk is None:
        share = -(-rows // count)  # with larger chunks, some workers would have no task
        filled = CHUNK_BYTES // max(1, graph.n * job.dtype.itemsize)
        chunk = max(1, min(share, max(filled, BATCH if job.batched else 1)))
    by_sources = _by_sources(job, rows, facts, chunk, columns)
    search = max(SEARCHING[_kind(f)].of(graph) for f in facts) * (1 + TREE_SHARE * job.predecessors)
    laying_out = _laying_out(graph, facts)
    alone, together = laying_out + search, laying_out / count + rows * (search / count + ROUNDS * ROUND_SECONDS)
    reason = by_sources.reason
    if spread is None:
        spread, reason = _choose(rows, count, by_sources.needs.fits(facts), alone, together)
    if spread == "sources":
        plan = replace(by_sources, reason=reason)
        return plan.fitting(f"{graph.n:,} vertices and {graph.m:,} arcs", _SPREAD_CURE)
    seconds = together + by_sources.needs.disk / WRITE_RATE
    return _by_vertices(replace(by_sources, spread="vertices", reason=reason, seconds=seconds), piece_arcs)


_SPREAD_CURE = (
    "Spread them by vertices (spread='vertices', --spread vertices), or use fewer workers on a machine, or free memory"
)


def _by_sources(job: SearchJob, rows: int, facts: list[WorkerFacts], chunk: int, columns: int | None) -> SearchPlan:
    """Return the plan of searches by sources, whether it fits or not; the parameters are as above."""
    n, m, dtype = job.graph.n, job.graph.m, job.dtype
    row = n * (dtype.itemsize + (4 if job.predecessors else 0))
    width = min(chunk, BATCH) if job.batched else 1
    busy = min(len(facts), -(-rows // chunk))
    whole = (1 + job.graph.directed) * (8 * n + (4 + dtype.itemsize) * m)  # a `SearchGraph`, its transpose included
    # One chunk is written while the next is searched for.
    searching = n * (VERTEX_BYTES + 4 * width * dtype.itemsize) + min(2, -(-rows // chunk)) * chunk * row
    building = _building_bytes(facts, m, dtype, transposed=job.graph.directed) + n * NUMBERING_BYTES // 2
    if not any(fact.gpu for fact in facts):  # the memory of a GPU has no copies
        copies = WRITTEN_COPIES if columns is None else WRITTEN_COPIES + KEPT_COPIES
        columns = min(n, columns or CHUNK_BYTES // dtype.itemsize)
        stored = -(-n // max(1, columns)) * (2 if job.predecessors else 1)
        searching += written_bytes(stored, chunk * columns * dtype.itemsize, copies)
    each = whole + max(searching, building)
    needs = Needs((each,) * busy + (0,) * (len(facts) - busy), disk=rows * row)
    own = -(-rows // busy)
    searches = own * max(_seconds_a_row(f, job, width) for f in facts)
    # A chunk is written while the next is searched for.
    faster, slower = sorted((searches, needs.disk / WRITE_RATE / busy))
    seconds = _laying_out(job.graph, facts) + slower + faster / max(1, -(-own // chunk))
    return SearchPlan(job, rows, facts, "sources", chunk, needs, seconds)


def _by_vertices(plan: SearchPlan, piece_arcs: int | None) -> SearchPlan:
    """Return a plan by vertices with the memory and the pieces of the workers; raises DoesNotFitError."""
    facts, count, dtype = plan.facts, len(plan.facts), plan.job.dtype
    n, m, disk = plan.job.graph.n, plan.job.graph.m, plan.needs.disk
    fixed = n * (VERTEX_BYTES + 2 * dtype.itemsize) + ring_bytes(plan.job.graph.ranges(count), dtype)
    fixed += plan.chunk * (disk // plan.rows)
    spare = n * (VERTEX_BYTES - NUMBERING_BYTES + dtype.itemsize)  # bytes not used while a single piece is laid out
    room, arc = _room(fixed, facts), 4 + dtype.itemsize
    per_arc = max(BUILDING_BYTES[_kind(f)] for f in facts) + 2 * arc
    own = max(1, -(-m // count))
    if room < per_arc:
        plan = replace(plan, pieces=own, transposed=False, needs=Needs((fixed + per_arc,) * count, disk=disk))
        plan.fitting(f"the distances of {n:,} vertices", "Use machines with more memory")
        with refusing(plan.stated()):
            raise DoesNotFitError(f"{n:,} distances leave no room for arcs; free memory, or use fewer workers")
    untransposed = own * arc + max(0, _building_bytes(facts, own, dtype, transposed=False) - spare)
    arcs, transposed = min(own, piece_arcs or own), True
    if piece_arcs is None and own * per_arc > room:
        transposed = False
        if untransposed > room:
            arcs = room // per_arc
    pieces = -(-own // arcs)
    taken = arcs * per_arc if pieces > 1 or transposed else untransposed
    needs = Needs((fixed + taken,) * count, disk=disk)
    plan = replace(plan, pieces=pieces, transposed=transposed, needs=needs)
    return plan.fitting(f"pieces of {arcs:,} arcs", "Use smaller pieces (piece_arcs, --piece-arcs)")


def _choose(rows: int, count: int, fits: bool, alone: float, together: float) -> tuple[Spread, str]:
    if not fits:
        return "vertices", "the graph does not fit a worker" if count == 1 else "the graph does not fit every worker"
    if count == 1:
        return "sources", "one worker holds the graph"
    if rows >= count:
        return "sources", f"{rows:,} searches for {count} workers that each hold the graph"
    if alone <= together:
        return "sources", f"a search takes about {rounded(alone)} on one worker, less than in rounds of all workers"
    return "vertices", f"fewer searches than workers, each about {rounded(alone)} on one worker"


def _kind(fact: WorkerFacts) -> str:
    return "gpu" if fact.gpu else "cpu"


def _laying_out(graph: Graph, facts: list[WorkerFacts]) -> float:
    """Return the seconds to lay the whole graph out on the slowest worker."""
    costs = GENERATING if isinstance(graph, GeneratedGraph) else LAYING_OUT
    return max(costs[_kind(f)].of(graph) for f in facts)


def _building_bytes(facts: list[WorkerFacts], arcs: int, dtype: np.dtype, *, transposed: bool) -> int:
    """Return the transient bytes while arcs are laid out; a GPU sorts some arcs at a time unless it transposes them."""
    most = 0
    for kind in {_kind(f) for f in facts}:
        each = BUILDING_BYTES[kind]
        some = (4 + dtype.itemsize) * arcs + each * SORTED_TOGETHER
        most = max(most, each * arcs if kind == "cpu" or transposed else min(each * arcs, some))
    return most


def _seconds_a_row(fact: WorkerFacts, job: SearchJob, width: int) -> float:
    """Return the seconds of a row on one worker, if `width` searches share the reads of arcs."""
    graph, kind = job.graph, _kind(fact)
    one = SEARCHING[kind].of(graph)
    predecessors = TREE_SHARE * one * job.predecessors
    if job.hops and not fact.gpu:
        return HOPPING.of(graph) / HOP_BATCH / min(fact.threads, width) + predecessors
    return (one if width == 1 else BATCHING[kind].of(graph) / BATCH / min(fact.threads, width)) + predecessors


def _room(fixed: int, facts: list[WorkerFacts]) -> int:
    """Return the bytes that a worker has left for arcs, if every worker holds `fixed` bytes."""
    left = []
    for place, (needed, free) in Needs((fixed,) * len(facts)).by_place(facts).items():
        workers = sum(place in (f.address, f.host) for f in facts)
        left.append((int(MEMORY_SHARE * free) - needed) // workers)
    return min(left)
