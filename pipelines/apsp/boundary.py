"""All pairs of a graph that few vertices cut into parts: the boundary method, row by row (`pipelines.boundary`).

Let r be the relaxations/s of a min-plus product, measured on the workers of the run. Closing parts of p vertices each,
with S boundary vertices in all, takes `BEGINNING` + (sum of p^3 + S^3) / r seconds. A row then takes
b (S + n) / (r x `ANSWERING`) + n x `ENTRY` seconds, where b is the number of boundary vertices of a part. Tables and
rows are written at `WRITE_RATE`. METIS takes `CUTTING` x (n + m) seconds to find S and b. It is run only if this is a
small part of the time that other methods take (`pipelines.apsp.methods.PATIENCE`), or if this method is asked for.

The tables of the cut graph are a separate store inside the distances store, until the distances are complete.
Integer distances are the same as with other methods. Floats are summed in another order, which depends on the cut.
"""

from __future__ import annotations

import os
import shutil
from functools import partial

import numpy as np
from distributed import Client

from pipelines.apsp.methods import Estimate, Job, Method, Obstacle, Request
from pipelines.boundary.cut import cut_graph
from pipelines.boundary.cut_graph import Job as BoundaryJob
from pipelines.boundary.plan import closing_memory, describe, row_work, rows_memory, shortage, table_bytes, work
from pipelines.boundary.stages import close_parts
from pipelines.stores.boundary import (
    SCHEMA,
    Boundary,
    Cut,
    begun_boundary,
    create_boundary,
    open_boundary,
    resume_boundary,
)
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.resuming import resumed
from pipelines.workers.attempts import Run, clear, held, keep
from pipelines.workers.capacity import WRITE_RATE, DoesNotFitError, Needs, refuse_disk
from pipelines.workers.device_arrays import array_library
from pipelines.workers.progress import Progress, duration, size
from pipelines.workers.row_chunks import RowsAttempt, together
from pipelines.workers.saving import Savers

BEGINNING = 0.15  # seconds to begin and to end the additional store
CUTTING = 6e-6  # seconds that METIS takes for every vertex and arc to try cuts
ANSWERING = 0.3  # rate at which rows are computed from the tables, as a share of the rate of a product
ENTRY = {"cpu": 1e-9, "gpu": 8e-12}  # additional seconds for every distance of a row
EDGE = 1024  # edge of a square chunk of the result: 4 MiB or more
TASK_BYTES = 2**31  # bytes of the rows that a task computes
TABLES = "boundary.zarr"  # name of the store of the tables, inside the store that is written


def estimate(request: Request) -> Estimate:
    """Return the estimate of the parts, their boundary and the rows that are not done; raises Obstacle."""
    job, rows, facts = request.job, request.rows, request.facts
    if request.block is not None:
        raise Obstacle(f"block is {request.block}, but the boundary method has no blocks")
    cut = _cut(request)
    chunk = _chunk(rows, len(facts)) if request.writer is None else request.writer.chunk
    tables, among = table_bytes(cut, job.dtype)
    result = rows * job.graph.n * job.dtype.itemsize
    gpu = any(fact.gpu for fact in facts)
    closing, joining = closing_memory(cut, _boundary_job(job), gpu)
    making = closing | rows_memory(cut, job.dtype, chunk, gpu)
    missing = shortage([making | joining, *[making] * (len(facts) - 1)], facts)
    rate, entry = sum(fact.rate for fact in facts), ENTRY["gpu" if gpu else "cpu"] / len(facts)
    seconds = BEGINNING + work(cut, 0) / rate + (tables + among + result) / WRITE_RATE / len(facts)
    seconds += rows * (row_work(cut) / (rate * ANSWERING) + job.graph.n * entry)

    def refuse(out: str | os.PathLike[str]) -> None:
        if missing:
            boundary = f"{int(cut.boundary_sizes.sum()):,} boundary vertices"
            raise DoesNotFitError(
                f"{cut.parts:,} parts with {boundary} take {missing}; use --method batched, or free memory"
            )
        refuse_disk(result + tables + among, out, "keep the rows of some sources only (--source)")

    most = making | joining
    return Estimate(
        seconds=seconds,
        too_large=missing and "the tables of parts do not fit in memory",
        chunk=chunk,
        stages=1,
        options={"block": None, "parts": cut.parts},
        work=(rows, "rows"),
        needs=Needs((most.device + most.host,) * len(facts), disk=result + tables + among),
        summary=f"{describe(cut, job.dtype, most)}, disk {size(result)}, about {duration(seconds)}",
        refuse=refuse,
        plan=cut,
    )


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, shown: Progress) -> None:
    """Close the parts, write the rows that are not done, and commit the store."""
    place = os.path.join(writer.path, TABLES)
    done = writer.rows_done()
    if not done.any():
        writer.make_slot(result=True)
    if not done.all():
        shown.stage("closing parts")
        tables = _closed(client, request, estimate.plan, place)
        Run(client, [fact.address for fact in request.facts], writer, shown).attempts(Rows, tables)
    _remove(place)
    writer.commit(writer.stages)


def _remove(place: str) -> None:
    """Rename a folder, then remove it: half a folder could be taken for the store of a killed run."""
    gone = f"{place}.gone"
    shutil.rmtree(gone, ignore_errors=True)
    if os.path.isdir(place):
        os.rename(place, gone)
        shutil.rmtree(gone, ignore_errors=True)


BOUNDARY = Method("boundary", "the boundary method", "the boundary method", estimate, execute)


def _cut(request: Request) -> Cut:
    graph = request.job.graph
    if request.writer is not None:
        place = os.path.join(request.writer.path, TABLES)
        if os.path.isdir(place):
            return begun_boundary(place).cut()
    if CUTTING * (graph.n + graph.m) > request.patience:
        raise Obstacle
    try:
        return cut_graph(graph.indptr(), graph.indices(), rows=request.rows)
    except ImportError as error:
        raise Obstacle("the boundary method needs pymetis") from error


def _boundary_job(job: Job) -> BoundaryJob:
    return BoundaryJob(job.graph, job.dtype, job.potentials, job.fits)


def _chunk(rows: int, workers: int) -> int:
    """Return the edge of the chunks, small enough that every worker gets some chunk rows."""
    return max(1, min(EDGE, -(-rows // (2 * workers))))


def _closed(client: Client, request: Request, cut: Cut, place: str) -> Boundary:
    """Return the tables of the cut graph, after computing the missing tables."""
    job = request.job
    again = partial(resume_boundary, graph=job.graph, options={})
    writer = resumed(place, SCHEMA, [], again, resume=True, overwrite=False)
    if writer is None:
        writer = create_boundary(place, job.graph, cut, dtype=job.dtype, options={})
    if not writer.finished:
        close_parts(client, _boundary_job(job), writer, False, request.facts)
    return open_boundary(place)


class Rows(RowsAttempt):
    """An attempt to compute and write the rows of the result."""

    out: DistancesWriter
    kind, work = "boundary-rows", "computing rows"

    def __init__(self, run: Run, members: list[str], before: Rows | None, tables: Boundary):
        super().__init__(run, members, before)
        self.tables, writer = tables, self.out
        self.sources = np.arange(writer.n) if writer.sources is None else np.array(writer.sources)
        band = writer.chunk * writer.n * writer.dtype.itemsize
        self.together = together(writer, TASK_BYTES // max(1, band), len(members))

    def run(self) -> None:
        self.deal(
            lambda worker: self.submit(_load, worker, self.tables),
            lambda worker, start: self.submit(
                _write_rows, worker, self.out, start, self.sources[start : start + self.step]
            ),
        )


def _load(attempt: str, tables: Boundary) -> None:
    clear()
    keep(attempt, tables.between if array_library() is np else tables.between_on_gpu)


def _write_rows(attempt: str, writer: DistancesWriter, start: int, sources: np.ndarray) -> None:
    """Write rows from `start` on; one chunk row is written while the next is computed."""
    between, write, everything = held(attempt), writer.writer(), np.arange(writer.n)
    with Savers() as savers:
        for first in range(0, len(sources), writer.chunk):
            rows = between(sources[first : first + writer.chunk], everything)
            savers.save(rows, writer.chunk, partial(write, start + first))
