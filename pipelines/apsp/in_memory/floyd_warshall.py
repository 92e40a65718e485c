"""Blocked Floyd-Warshall in memory as a method of all pairs: its plan, stated beforehand, and its execution."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from distributed import Client

from pipelines.apsp.in_memory.plan import choose_workers
from pipelines.apsp.in_memory.stages import Stages, ring_sizes
from pipelines.apsp.in_memory.symmetric import share_of_work
from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Estimate, Method, Request
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import MEMORY_SHARE, WRITE_RATE, Needs, on_devices, refuse_disk
from pipelines.workers.progress import Progress, duration, with_prefix

PANELS = 4  # row panels that a worker may hold apart from its ring: one packed, two pulled or from Dask, and the last


@dataclass(frozen=True)
class Plan:
    """The size of a run: its memory and disk, and its estimated time in seconds."""

    layout: Layout
    needs: Needs
    checkpoint_bytes: int  # part of the disk, for commits before the result
    seconds: float
    relaxations: int


def make_plan(request: Request, layout: Layout) -> Plan:
    """Return the memory, disk and time of the stages that are not done, with the matrix cut by `layout`."""
    job, n, itemsize = request.job, layout.n, request.job.dtype.itemsize
    facts, rings = request.facts[: layout.workers], ring_sizes(layout, job)
    panel = layout.block * n * itemsize
    worker_bytes = tuple(
        # A single worker pulls no panels: the one slot of its ring is among the PANELS.
        layout.rows(w) * (n + layout.block) * itemsize
        + (PANELS + (rings[w] if layout.workers > 1 else 0)) * panel
        + layout.band * n * itemsize
        for w in range(layout.workers)
    )
    relaxations = n * n * int(job.through.sum())
    slowest = max((layout.rows(w) / max(f.rate, 1.0) for w, f in enumerate(facts)), default=0.0)
    left = share_of_work(job, layout.workers) * (relaxations - request.relaxations_done(layout))
    compute = left / max(n, 1) * slowest
    result = request.rows * n * itemsize
    # Two slots if the run is long enough to commit before its end; the result is assumed not to compress.
    checkpoints = 2 * n * n * itemsize if compute > request.commit_seconds else 0
    seconds = compute + result / WRITE_RATE / len({f.address for f in facts} or {""})
    return Plan(layout, Needs(worker_bytes, disk=result + checkpoints), checkpoints, seconds, relaxations)


def estimate(request: Request) -> Estimate:
    """Return the estimate of the stages that are not done, on as many workers as pay."""
    job, n, itemsize = request.job, request.job.graph.n, request.job.dtype.itemsize
    count, why = request.workers, None
    if count is None:
        count, why = choose_workers(
            n,
            itemsize,
            request.block,
            request.facts,
            lambda layout: make_plan(request, layout).needs.fits(request.facts[: layout.workers]),
            lambda workers: share_of_work(job, workers),
        )
    layout = make_layout(n, min(count, len(request.facts)), itemsize, request.block)
    plan, facts = make_plan(request, layout), request.facts[: layout.workers]

    def cure(free: int) -> str:
        workers = -(-(n**2) * itemsize // max(1, int(MEMORY_SHARE * free / 1.5)))
        smaller = {8: "float32", 4: "int16 (integer weights, short distances)"}.get(itemsize)
        return (
            f"Run on about {max(workers, 2)} such machines or GPUs"
            + (f", or use --dtype {smaller}" if smaller else "")
            + ", or free memory"
        )

    def refuse(out: str | os.PathLike[str]) -> None:
        plan.needs.refuse_memory(f"{n:,} vertices", facts, cure)
        less = "keep the rows of some sources only (--source)"
        if plan.checkpoint_bytes:
            less += ", or do without commits (--commit-seconds none)"
        refuse_disk(plan.needs.disk, out, less)

    return Estimate(
        seconds=plan.seconds,
        too_large=None if plan.needs.fits(facts) else "the matrix does not fit in memory",
        chunk=layout.band,
        stages=len(job.stages(layout)) + 1,
        options={"block": layout.block},
        work=(plan.relaxations, "relaxations"),
        needs=plan.needs,
        summary=(
            f"n = {n:,} {job.dtype}, {on_devices(facts)} ({with_prefix(sum(f.rate for f in facts))} relaxations/s): "
            f"{plan.needs}, about {duration(plan.seconds)}" + (f"; {why}" if why else "")
        ),
        refuse=refuse,
        plan=plan,
    )


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, shown: Progress) -> None:
    """Run the stages that are not done."""
    request = replace(request, facts=request.facts[: estimate.plan.layout.workers])
    Run(client, [fact.address for fact in request.facts], writer, shown).attempts(Stages, request)


FLOYD_WARSHALL = Method("floyd-warshall", "Floyd-Warshall", "Floyd-Warshall", estimate, execute)
