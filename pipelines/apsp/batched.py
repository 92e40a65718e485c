"""All pairs of a sparse graph by searches from every source, many at a time.

Floyd-Warshall takes n^2 p / r seconds, where p of the n vertices may lie inside a path, and r is the number of
relaxations/s, measured on the workers of the run. The number of arcs and the number of rows that are kept do not
matter. S searches take S (a + b n + c m) seconds, plus the time to lay the graph out; a, b and c were measured once for
each kind of device (`sssp.plan.BATCHING`). Both methods write the same store, in about the same time. "auto" compares
them with each other and with all other methods.

Both methods give the same integer distances. Float distances are summed in different orders: searches add the arcs of
a path one by one from the source on.

Negative weights are made non-negative by potentials, as for Floyd-Warshall (Johnson's algorithm).
"""

from __future__ import annotations

from dataclasses import replace

from distributed import Client

from pipelines.apsp.methods import Estimate, Method, Obstacle, Request
from pipelines.sssp.job import BATCH, SearchJob, have_equal_weights
from pipelines.sssp.plan import FEWER_SOURCES, make_search_plan
from pipelines.sssp.solve import run_searches
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.paths import PATH_DTYPES
from pipelines.workers.capacity import DoesNotFitError
from pipelines.workers.progress import Progress

EDGE = 1024  # edge of a square chunk of the result: 4 MiB or more


def estimate(request: Request) -> Estimate:
    """Return the estimate of searches from all sources; raises Obstacle."""
    job, rows, facts = request.job, request.rows, request.facts
    if request.block is not None:
        raise Obstacle(f"block is {request.block}, but searches have no blocks")
    if job.dtype not in PATH_DTYPES:
        raise Obstacle(f"searches have no {job.dtype} distances")
    chunk = _chunk(rows, len(facts)) if request.writer is None else request.writer.chunk
    try:
        plan = make_search_plan(_searches(request), rows, facts, spread="sources", chunk=chunk, columns=chunk)
    except DoesNotFitError as error:
        fault = str(error).partition(". ")[0]
        cause = DoesNotFitError(
            f"{fault}. Use fewer workers on a machine, free memory, or use method='out-of-core' (--method out-of-core)"
        )
        cause.plan = error.plan and replace(error.plan, method=BATCHED.name, refusal=str(cause))
        raise Obstacle("every worker would have to hold all arcs to search, which does not fit") from cause
    return Estimate(
        seconds=plan.seconds,
        too_large=None,
        chunk=plan.chunk,
        work=(rows, "rows"),
        needs=plan.needs,
        summary=replace(plan, reason="every worker holds the graph").describe(),
        plan=plan,
        facts=facts,
        what="searches",
        cure="",  # `make_search_plan` has refused a run that does not fit in memory
        disk_cure=FEWER_SOURCES,
    )


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, bar: Progress) -> None:
    """Search for the rows that are not done, and commit the store."""
    if not writer.rows_done().any():
        writer.make_result()
    run_searches(client, estimate.plan, writer, bar)
    writer.commit(writer.stages)


BATCHED = Method("batched", "batched searches", "searches", estimate, execute)


def _searches(request: Request) -> SearchJob:
    job = request.job
    hops = request.rows > 1 and job.potentials is None and have_equal_weights(job.graph)
    return SearchJob(job.graph, job.dtype, predecessors=False, potentials=job.potentials, hops=hops)


def _chunk(rows: int, workers: int) -> int:
    """Return the edge of the chunks: a multiple of BATCH, and small enough that every worker gets some chunk rows."""
    share = -(-rows // (2 * workers))
    return min(EDGE, -(-share // BATCH) * BATCH)
