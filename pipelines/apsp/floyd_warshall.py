"""Blocked Floyd-Warshall in memory as a method of all pairs: its plan, stated beforehand, and its execution."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client

from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Estimate, Method, Request
from pipelines.apsp.scaling import choose_workers
from pipelines.apsp.schedule import relaxations_done, stages_of
from pipelines.apsp.stages import Stages, ring_sizes
from pipelines.apsp.symmetric import share_of_work
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import MEMORY_SHARE, WRITE_RATE, Needs, WorkerFacts, on_devices, refuse_disk
from pipelines.workers.progress import Progress, duration, with_prefix

PANELS = 4  # row panels that a worker may hold apart from its ring: one packed, two pulled or from Dask, and the last


@dataclass(frozen=True)
class Plan:
    """The size of a run: its memory and disk, and its estimated time in seconds."""

    layout: Layout
    dtype: np.dtype
    needs: Needs
    checkpoint_bytes: int  # part of the disk, for commits before the result
    seconds: float
    relaxations: int
    why: str | None = None  # why this number of workers was chosen

    def describe(self, facts: list[WorkerFacts]) -> str:
        """Return one line for the user: the workers, and the memory, disk and time of the run."""
        return (
            f"n = {self.layout.n:,} {self.dtype}, {on_devices(facts)} "
            f"({with_prefix(sum(f.rate for f in facts))} relaxations/s): {self.needs}, "
            f"about {duration(self.seconds)}" + (f"; {self.why}" if self.why else "")
        )


def make_plan(
    layout: Layout,
    dtype: Any,
    pivots: int,
    rows_out: int,
    facts: list[WorkerFacts],
    rings: Sequence[int],
    done: int = 0,
    commit_seconds: float = 60.0,
    work: float = 1.0,
) -> Plan:
    """Return the memory, disk and time of a run.

    Parameters
    ----------
    pivots : number of vertices that may lie inside a path
    rows_out : number of rows of the result
    rings : number of row panels in the ring of each worker
    done : relaxations that are done already, in a resumed run
    commit_seconds : least time between two commits
    work : the part of all relaxations that the run does, 0.5 if symmetry halves them
    """
    dtype = np.dtype(dtype)
    n, itemsize = layout.n, dtype.itemsize
    panel = layout.block * n * itemsize
    worker_bytes = tuple(
        # A single worker pulls no panels: the one slot of its ring is among the PANELS.
        layout.rows(w) * (n + layout.block) * itemsize
        + (PANELS + (rings[w] if layout.workers > 1 else 0)) * panel
        + layout.band * n * itemsize
        for w in range(layout.workers)
    )
    relaxations = n * n * pivots
    slowest = max((layout.rows(w) / max(f.rate, 1.0) for w, f in enumerate(facts)), default=0.0)
    compute = work * (relaxations - done) / max(n, 1) * slowest
    result = rows_out * n * itemsize
    # Two slots if the run is long enough to commit before its end; the result is assumed not to compress.
    checkpoints = 2 * n * n * itemsize if compute > commit_seconds else 0
    seconds = compute + result / WRITE_RATE / len({f.address for f in facts} or {""})
    needs = Needs(worker_bytes, disk=result + checkpoints)
    return Plan(layout, dtype, needs, checkpoints, seconds, relaxations)


def refuse_what_cannot_fit(plan: Plan, facts: list[WorkerFacts], out: str | os.PathLike[str]) -> None:
    """Raise DoesNotFitError if memory or disk is too small."""

    def cure(free: int) -> str:
        workers = -(-(plan.layout.n**2) * plan.dtype.itemsize // max(1, int(MEMORY_SHARE * free / 1.5)))
        smaller = {8: "float32", 4: "int16 (integer weights, short distances)"}.get(plan.dtype.itemsize)
        return (
            f"Run on about {max(workers, 2)} such machines or GPUs"
            + (f", or use --dtype {smaller}" if smaller else "")
            + ", or free memory"
        )

    plan.needs.refuse_memory(f"{plan.layout.n:,} vertices", facts, cure)
    less = "keep the rows of some sources only (--source)"
    if plan.checkpoint_bytes:
        less += ", or do without commits (--commit-seconds none)"
    refuse_disk(plan.needs.disk, out, less)


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
        needs=plan.needs,
        summary=plan.describe(facts),
        refuse=lambda out: refuse_what_cannot_fit(plan, facts, out),
        plan=plan,
    )


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, shown: Progress) -> None:
    """Run the stages that are not done."""
    facts = request.facts[: estimate.plan.layout.workers]
    run = Run(client, [fact.address for fact in facts], writer, shown)
    run.attempts(Stages, request.job, request.commit_seconds, facts, request.coordination)


def _plan(request: Request, layout: Layout) -> Plan:
    job, facts = request.job, request.facts[: layout.workers]
    done = relaxations_done(layout, job, request.writer)
    pivots, rings = int(job.through.sum()), ring_sizes(layout, job)
    work = share_of_work(job.graph.directed, job.dtype, layout.workers)
    return make_plan(layout, job.dtype, pivots, request.rows, facts, rings, done, request.commit_seconds, work)


FLOYD_WARSHALL = Method("floyd-warshall", "Floyd-Warshall", "Floyd-Warshall", estimate, execute)
