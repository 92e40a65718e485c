"""All pairs of a sparse graph by searches from every source, many at a time, and the choice between that and
Floyd-Warshall.

Floyd-Warshall takes n^2 p / r seconds, p of the n vertices being open to through traffic, at r relaxations/s, which are
measured on the workers at hand. It does not matter how many arcs there are, or how many rows are kept. S searches take
S (a + b n + c m) seconds, a, b and c measured once for each kind of device (`sssp.plan.BATCHING`), and what it takes
to lay the graph out. Both write the same store, in about the same time. Whichever is less is the choice of "auto".

Integer distances are the same. Floats are summed in another order: by searches, arc by arc from the source on.

Negative weights are made non-negative by potentials, as for Floyd-Warshall (Johnson's algorithm).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client

from pipelines.apsp.plan import Plan
from pipelines.sssp.plan import LANES, SearchPlan, make_search_plan, refuse_disk_of
from pipelines.sssp.searches import SearchJob
from pipelines.sssp.solve import run_searches
from pipelines.stores import Graph, create_distances
from pipelines.stores.distances import Run
from pipelines.stores.paths import PATH_DTYPES
from pipelines.workers.capacity import MEMORY_SHARE, DoesNotFitError, WorkerFacts, memory_by_place
from pipelines.workers.progress import Progress, duration

EDGE = 1024  # of a square chunk: 4 MiB and more


def choose_method(
    method: str, graph: Graph, plan: Plan, rows: int, facts: list[WorkerFacts], run: Run | None, block: int | None
) -> tuple[str, SearchPlan | None]:
    """Why the method asked for is taken, or with "auto" the one that takes less time and fits; its plan if searches.

    Parameters
    ----------
    method : "auto" or "batched"
    plan : of Floyd-Warshall
    rows : of the result
    run : the store that was begun, None if it is to be created
    block : width of a pivot block, if that was asked for
    """
    obstacle = None
    if block is not None:
        obstacle = f"block is {block}, but searches have no blocks"
    elif plan.dtype not in PATH_DTYPES:
        obstacle = f"searches have no {plan.dtype} distances"
    if obstacle is not None:
        if method == "batched":
            raise ValueError(f"{obstacle}; leave that option out, or use --method floyd-warshall")
        return f"Floyd-Warshall: {obstacle}", None
    chunk = _chunk(rows, len(facts)) if run is None else run.chunk
    try:
        searches = make_search_plan(
            graph, plan.dtype, rows, facts, lanes=True, predecessors=False, spread="sources", chunk=chunk
        )
    except DoesNotFitError:
        if method == "batched":
            raise
        return "Floyd-Warshall: every worker would have to hold all arcs to search, which does not fit", None
    if method == "batched":
        return f"batched searches, as asked for: {searches.describe(graph, rows, facts)}", searches
    costs = f"Floyd-Warshall would take about {duration(plan.seconds)}, searches {duration(searches.seconds)}"
    places = memory_by_place(plan.worker_bytes, facts).values()
    if any(needed > MEMORY_SHARE * free for needed, free in places):
        return f"batched searches: the matrix does not fit in memory; {costs}", searches
    if searches.seconds < plan.seconds:
        return f"batched searches: {costs}", searches
    return f"Floyd-Warshall: {costs}", None


def search_from_all(
    client: Client,
    facts: list[WorkerFacts],
    job: SearchJob,
    out: str | os.PathLike[str],
    plan: SearchPlan,
    run: Run | None,
    sources: Sequence[int] | None,
    overwrite: bool,
    shown: Progress,
) -> None:
    """Write the rows of a distances store by searches, and commit it."""
    refuse_disk_of(plan, out)
    if run is None:
        run = create_distances(
            out,
            job.graph,
            dtype=job.dtype,
            chunk=plan.chunk,
            stages=1,
            plan={"method": "batched", "block": None},
            sources=sources,
            overwrite=overwrite,
        )
    if not run.rows_done().any():
        run.make_slot(result=True)
    run_searches(client, [fact.address for fact in facts], plan, job, _Rows(run), shown)
    run.commit(run.stages)


def _chunk(rows: int, workers: int) -> int:
    """Edge of the chunks: whole batches, and some chunk rows for every worker."""
    share = -(-rows // (2 * workers))
    return min(EDGE, -(-share // LANES) * LANES)


@dataclass(frozen=True)
class _Rows:
    """A distances store as one that grows by rows."""

    run: Run

    @property
    def rows(self) -> int:
        return self.run.rows

    @property
    def chunk(self) -> int:
        return self.run.chunk

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def row_sources(self, row: int) -> tuple[int, ...]:
        return (row if self.run.sources is None else self.run.sources[row],)

    def write_rows(self, start: int, distances: np.ndarray, predecessors: Any) -> None:
        self.run.write_rows(start, distances)

    def writer(self) -> _Rows:
        return self

    def rows_done(self) -> np.ndarray:
        return self.run.rows_done()

    def record(self, done: np.ndarray) -> None:
        self.run.record(done)
