"""Memory, disk and time of an all-pairs run, stated before it starts. A run that cannot fit is refused with a cure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.apsp.layout import Layout
from pipelines.stores.schema import counted
from pipelines.workers.capacity import MEMORY_SHARE, WRITE_RATE, Needs, WorkerFacts, refuse_disk
from pipelines.workers.progress import duration, with_prefix

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
        devices = sorted({f.device for f in facts})
        rate = sum(f.rate for f in facts)
        return (
            f"n = {self.layout.n:,} {self.dtype}, {counted(len(facts), 'worker')} on "
            f"{', '.join(devices)} ({with_prefix(rate)} relaxations/s): {self.needs}, "
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
