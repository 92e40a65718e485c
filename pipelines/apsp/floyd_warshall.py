"""Blocked Floyd-Warshall as a method of all pairs: the plan, and the stages that carry it out."""

from __future__ import annotations

from distributed import Client

from pipelines.apsp.layout import make_layout
from pipelines.apsp.methods import Estimate, Method, Request
from pipelines.apsp.plan import make_plan, refuse_what_cannot_fit
from pipelines.apsp.stages import relaxations_done, run_stages, stages_of
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.capacity import MEMORY_SHARE, memory_by_place
from pipelines.workers.progress import Progress


def estimate(request: Request) -> Estimate:
    """What the stages that are not done take."""
    job, facts = request.job, request.facts
    layout = make_layout(job.graph.n, len(facts), job.dtype.itemsize, request.block)
    done = relaxations_done(layout, job, request.writer)
    plan = make_plan(layout, job.dtype, int(job.through.sum()), request.rows, facts, done, request.commit_seconds)
    places = memory_by_place(plan.worker_bytes, facts).values()
    return Estimate(
        seconds=plan.seconds,
        too_large="the matrix does not fit in memory" if any(n > MEMORY_SHARE * free for n, free in places) else None,
        chunk=layout.band,
        stages=len(stages_of(layout, job)) + 1,
        options={"block": layout.block},
        work=(plan.relaxations, "relaxations"),
        summary=None,
        refuse=lambda out: refuse_what_cannot_fit(plan, facts, out),
        plan=plan,
    )


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, shown: Progress) -> None:
    """Run the stages that are not done."""
    shown.note(estimate.plan.describe(request.facts))
    run_stages(client, request.job, writer, shown, request.facts, request.commit_seconds)


FLOYD_WARSHALL = Method("floyd-warshall", "Floyd-Warshall", "Floyd-Warshall", estimate, execute)
