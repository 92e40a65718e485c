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
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gpuops.sssp.graph_layout import SORTED_TOGETHER
from pipelines.generators.generated_graph import GeneratedGraph
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

LANES = 32  # number of sources whose searches share the read of an arc
HOP_LANES = 64  # the same, where arcs are counted


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
# Costs of LANES searches together on a CPU are processor times of an EPYC: R-MAT graphs of scale 12 to 18, grids of
# 60 x 60 to 400 x 400, roads, and 2048 vertices with 1024 arcs each. Times are within a factor of 3 of the cost, except
# for random graphs that are larger than the caches, which take 4 times as long.
# Laying out on a CPU was measured on 2 threads of an EPYC: R-MAT graphs of scale 16 to 20, and a road of 1,000,000
# vertices; and the share of predecessors, on the same graphs and grids. Runs take within a factor of 2 of their costs.
# Costs on a GPU were measured on an H100: R-MAT graphs of scale 14 to 24, and grids of 2048 x 2048 and 4096 x 4096. A
# single cost for both kinds of graphs is within a factor of 4 of the times.
SEARCHING = {"cpu": Cost(1e-4, 1.5e-7, 1e-9), "gpu": Cost(8e-4, 2e-9, 1.5e-11)}  # one search
BATCHING = {"cpu": Cost(5e-4, 1.6e-6, 3e-9), "gpu": Cost(2e-3, 1.5e-9, 6e-11)}  # LANES searches, on one CPU thread
# Processor times of an EPYC under load, for HOP_LANES searches without predecessors: random graphs of 2,000 to 131,072
# vertices, and grids of 60 x 60 and 400 x 400. All measured times are within a factor of 3 of the cost.
HOPPING = Cost(5e-4, 1.4e-6, 4e-9)  # HOP_LANES searches by hops, on one CPU thread
LAYING_OUT = {"cpu": Cost(1e-2, 0.0, 7e-8), "gpu": Cost(5e-2, 0.0, 8e-9)}  # reading a graph store and laying it out
GENERATING = LAYING_OUT | {"gpu": Cost(5e-2, 0.0, 2e-9)}  # laying out a generated graph; H100, R-MAT of scale 24 and 28
TREE_SHARE = 0.15  # time to find the predecessors of a search, as a share of the time of the search
# Seconds until a worker on a GPU, which is a process, takes its first task. On the host of an H200, `tilepath sssp` of
# a road network of 115,600 vertices took 6.6 s with the GPU and 4.0 s without.
GPU_START = 2.5
ROUND_SECONDS = 0.1  # seconds of a round: some tasks, a hop between workers, a barrier
ROUNDS = 8  # rounds that a search by vertices is assumed to take
VERTEX_BYTES = 96  # bytes for each vertex in a search, without distances: numbering, offsets, cursors, queues
NUMBERING_BYTES = 84  # bytes for each vertex while a piece is laid out; half of that for a whole graph
BUILDING_BYTES = {"cpu": 48, "gpu": 80}  # transient bytes for each arc while a graph is read and sorted for searches


@dataclass(frozen=True)
class SearchPlan:
    """The spread and the size of a run: its memory and disk, and its estimated time in seconds."""

    spread: Spread
    reason: str
    chunk: int  # rows of the result that are searched for and written together
    pieces: int  # number of pieces of a worker's arcs, by vertices
    transposed: bool  # whether the transpose of a worker's piece is laid out too, if there is only one
    needs: Needs
    seconds: float

    def describe(self, graph: Graph, rows: int, facts: list[WorkerFacts]) -> str:
        """Return one line for the user: the graph, the workers, and the memory, disk and time of the run."""
        streamed = f", arcs in {self.pieces} pieces a worker" if self.pieces > 1 else ""
        return (
            f"n = {graph.n:,}, m = {graph.m:,}, {counted(rows, 'row')}, {on_devices(facts)}, "
            f"by {self.spread} ({self.reason}){streamed}: {self.needs}, time {estimated(self.seconds)}"
        )

    def stated(self, graph: Graph, rows: int, facts: list[WorkerFacts], kept: str = "") -> Plan:
        """Return the plan that the run states; the text ends with the clause `kept`."""
        return run_plan(self.describe(graph, rows, facts) + kept, f"by {self.spread}", self.needs, self.seconds)

    def fitting(self, graph: Graph, rows: int, facts: list[WorkerFacts], what: str, cure: str) -> SearchPlan:
        """Return the plan; raise DoesNotFitError, as `Needs.refuse_memory` does, if the memory is too small."""
        with refusing(self.stated(graph, rows, facts)):
            self.needs.refuse_memory(what, facts, cure)
        return self

    def refuse_disk(self, out: str | os.PathLike[str]) -> None:
        """Raise DoesNotFitError if the disk of `out` is too small for the result."""
        refuse_disk(self.needs.disk, out, "ask for fewer sources")


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


def graph_bytes(n: int, m: int, itemsize: int, *, symmetric: bool) -> int:
    """Return the bytes of a `SearchGraph` of n vertices and m arcs, its transpose included."""
    return (1 if symmetric else 2) * (8 * n + (4 + itemsize) * m)


def make_search_plan(
    graph: Graph,
    dtype: np.dtype,
    rows: int,
    facts: list[WorkerFacts],
    *,
    lanes: bool,
    predecessors: bool = True,
    hops: bool = False,
    spread: Spread | None = None,
    piece_arcs: int | None = None,
    chunk: int | None = None,
    columns: int | None = None,
) -> SearchPlan:
    """Choose how `rows` searches are spread over the workers, and add up their memory, disk and time.

    Parameters
    ----------
    lanes : whether searches may share the reads of arcs
    hops : whether arcs are counted; on a GPU the estimate is that of searches by weights
    spread : "sources" or "vertices", whatever the sizes; None chooses
    piece_arcs : arcs of a piece; None takes as many arcs as fit in memory
    chunk : rows of a chunk of a store that was begun; None chooses
    columns : columns of a chunk of a distances store, which has many chunks; None: as many as a paths store has

    Raises
    ------
    DoesNotFitError
        Not even the distances fit a worker, or `spread` is "sources" and the graph does not fit a worker.
    """
    n, m, count = graph.n, graph.m, len(facts)
    row = n * (dtype.itemsize + (4 if predecessors else 0))
    if chunk is None:
        share = -(-rows // count)  # with larger chunks, some workers would have no task
        filled = CHUNK_BYTES // max(1, n * dtype.itemsize)
        chunk = max(1, min(share, max(filled, LANES if lanes else 1)))
    width = min(chunk, LANES) if lanes else 1
    busy = min(count, -(-rows // chunk))

    whole = graph_bytes(n, m, dtype.itemsize, symmetric=not graph.directed)
    # One chunk is written while the next is searched for.
    searching = n * (VERTEX_BYTES + 4 * width * dtype.itemsize) + min(2, -(-rows // chunk)) * chunk * row
    building = _building_bytes(facts, m, dtype, transposed=graph.directed) + n * NUMBERING_BYTES // 2
    if not any(fact.gpu for fact in facts):  # the memory of a GPU has no copies
        copies = WRITTEN_COPIES if columns is None else WRITTEN_COPIES + KEPT_COPIES
        columns = min(n, columns or CHUNK_BYTES // dtype.itemsize)
        stored = -(-n // max(1, columns)) * (2 if predecessors else 1)
        searching += written_bytes(stored, chunk * columns * dtype.itemsize, copies)
    needs = Needs((whole + max(searching, building),) * busy + (0,) * (count - busy), disk=rows * row)
    costs = GENERATING if isinstance(graph, GeneratedGraph) else LAYING_OUT
    laying_out = max(costs[_kind(f)].of(graph) for f in facts)
    search = max(SEARCHING[_kind(f)].of(graph) for f in facts) * (1 + TREE_SHARE * predecessors)
    alone, together = laying_out + search, laying_out / count + rows * (search / count + ROUNDS * ROUND_SECONDS)
    if spread is None:
        spread, reason = _choose(rows, count, needs.fits(facts), alone, together)
    else:
        reason = "as asked for"

    writing = rows * row / WRITE_RATE
    if spread == "sources":
        own = -(-rows // busy)
        searches = own * max(_seconds_a_row(f, graph, width, predecessors, hops) for f in facts)
        faster, slower = sorted((searches, writing / busy))  # a chunk is written while the next is searched for
        seconds = laying_out + slower + faster / max(1, -(-own // chunk))
        plan = SearchPlan("sources", reason, chunk, 1, True, needs, seconds)
        return plan.fitting(graph, rows, facts, f"{n:,} vertices and {m:,} arcs", _SPREAD_CURE)

    ring = ring_bytes(graph.ranges(count), dtype)
    fixed = n * (VERTEX_BYTES + 2 * dtype.itemsize) + ring + chunk * row
    spare = n * (VERTEX_BYTES - NUMBERING_BYTES + dtype.itemsize)  # bytes not used while a single piece is laid out
    room, arc = _room(fixed, facts), 4 + dtype.itemsize
    per_arc = max(BUILDING_BYTES[_kind(f)] for f in facts) + 2 * arc
    if room < per_arc:
        needs = Needs((fixed + per_arc,) * count, disk=rows * row)
        plan = SearchPlan("vertices", reason, chunk, max(1, -(-m // count)), False, needs, together + writing)
        plan.fitting(graph, rows, facts, f"the distances of {n:,} vertices", "Use machines with more memory")
        with refusing(plan.stated(graph, rows, facts)):
            raise DoesNotFitError(f"{n:,} distances leave no room for arcs; free memory, or use fewer workers")
    own = max(1, -(-m // count))
    arcs, transposed = min(own, piece_arcs or own), True
    if piece_arcs is None and own * per_arc > room:
        transposed = False
        if own * arc + max(0, _building_bytes(facts, own, dtype, transposed=False) - spare) > room:
            arcs = room // per_arc
    pieces, taken = -(-own // arcs), arcs * per_arc
    if pieces == 1 and not transposed:
        taken = own * arc + max(0, _building_bytes(facts, own, dtype, transposed=False) - spare)
    needs = Needs((fixed + taken,) * count, disk=rows * row)
    plan = SearchPlan("vertices", reason, chunk, pieces, transposed, needs, together + writing)
    return plan.fitting(graph, rows, facts, f"pieces of {arcs:,} arcs", _PIECES_CURE)


_SPREAD_CURE = (
    "Spread them by vertices (spread='vertices', --spread vertices), or use fewer workers on a machine, or free memory"
)

_PIECES_CURE = "Use smaller pieces (piece_arcs, --piece-arcs)"


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


def _building_bytes(facts: list[WorkerFacts], arcs: int, dtype: np.dtype, *, transposed: bool) -> int:
    """Return the transient bytes while arcs are laid out; a GPU sorts some arcs at a time unless it transposes them."""
    most = 0
    for kind in {_kind(f) for f in facts}:
        each = BUILDING_BYTES[kind]
        some = (4 + dtype.itemsize) * arcs + each * SORTED_TOGETHER
        most = max(most, each * arcs if kind == "cpu" or transposed else min(each * arcs, some))
    return most


def _seconds_a_row(fact: WorkerFacts, graph: Graph, width: int, predecessors: bool, hops: bool) -> float:
    """Return the seconds of a row on one worker, if `width` searches share the reads of arcs."""
    one = SEARCHING[_kind(fact)].of(graph)
    if hops and not fact.gpu:
        return HOPPING.of(graph) / HOP_LANES / min(fact.threads, width) + TREE_SHARE * one * predecessors
    shared = one if width == 1 else BATCHING[_kind(fact)].of(graph) / LANES / min(fact.threads, width)
    return shared + TREE_SHARE * one * predecessors


def _room(fixed: int, facts: list[WorkerFacts]) -> int:
    """Return the bytes that a worker has left for arcs, if every worker holds `fixed` bytes."""
    left = []
    for place, (needed, free) in Needs((fixed,) * len(facts)).by_place(facts).items():
        workers = sum(place in (f.address, f.host) for f in facts)
        left.append((int(MEMORY_SHARE * free) - needed) // workers)
    return min(left)
