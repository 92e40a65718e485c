"""Blocked Floyd-Warshall in memory as a method of all pairs: its estimate and its execution."""

from __future__ import annotations

from dataclasses import replace

from distributed import Client

from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Estimate, Method, Request
from pipelines.apsp.plan import Plan, make_plan, refuse_what_cannot_fit
from pipelines.apsp.scaling import choose_workers
from pipelines.apsp.schedule import relaxations_done, stages_of
from pipelines.apsp.stages import Stages, ring_sizes
from pipelines.apsp.symmetric import share_of_work
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Run
from pipelines.workers.progress import Progress


def estimate(request: Request) -> Estimate:
    """Return the estimate of the stages that are not done, on as many workers as pay."""
    job, itemsize = request.job, request.job.dtype.itemsize
    count, why = request.workers, None
    if count is None:
        count, why = choose_workers(
            job.graph.n,
            itemsize,
            request.block,
            request.facts,
            lambda layout: _plan(request, layout).needs.fits(request.facts[: layout.workers]),
            lambda workers: share_of_work(job.graph.directed, job.dtype, workers),
        )
    layout = make_layout(job.graph.n, min(count, len(request.facts)), itemsize, request.block)
    plan = replace(_plan(request, layout), why=why)
    facts = request.facts[: layout.workers]
    return Estimate(
        seconds=plan.seconds,
        too_large=None if plan.needs.fits(facts) else "the matrix does not fit in memory",
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
    facts = request.facts[: estimate.plan.layout.workers]
    shown.note(estimate.plan.describe(facts))
    run = Run(client, [fact.address for fact in facts], writer, shown)
    run.attempts(Stages, request.job, request.commit_seconds, facts, request.coordination)


def _plan(request: Request, layout: Layout) -> Plan:
    job, facts = request.job, request.facts[: layout.workers]
    done = relaxations_done(layout, job, request.writer)
    pivots, rings = int(job.through.sum()), ring_sizes(layout, job)
    work = share_of_work(job.graph.directed, job.dtype, layout.workers)
    return make_plan(layout, job.dtype, pivots, request.rows, facts, rings, done, request.commit_seconds, work)


FLOYD_WARSHALL = Method("floyd-warshall", "Floyd-Warshall", "Floyd-Warshall", estimate, execute)
