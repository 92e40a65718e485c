"""All pairs of a graph that few vertices cut into parts: the boundary method, row by row (`pipelines.boundary`).

With r the relaxations/s of a product, measured on the workers at hand, closing parts of p vertices and S boundary
vertices takes `BEGINNING` + (sum of p^3 + S^3) / r seconds. A row follows in b (S + n) / (r x `ANSWERING`) + n x
`ENTRY` seconds, b being the boundary vertices of a part. Tables and rows are written at `WRITE_RATE`. METIS takes
`CUTTING` x (n + m) seconds to say what S and b are, and is run only where that is little beside what other methods take
(`pipelines.apsp.methods.PATIENCE`), or if the method is asked for.

The tables of the cut graph are a store of their own within the store that is written, until that is complete. Integer
distances are the same as those of other methods. Floats are summed in another order, which depends on the cut.
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
from pipelines.workers.attempts import clear, held, keep, run_attempts
from pipelines.workers.capacity import WRITE_RATE, DoesNotFitError, refuse_disk
from pipelines.workers.device_arrays import array_library
from pipelines.workers.progress import Progress, duration, size
from pipelines.workers.row_chunks import RowsAttempt, together
from pipelines.workers.saving import Savers

BEGINNING = 0.15  # seconds that a store more takes to begin and to end
CUTTING = 6e-6  # seconds that METIS takes to try cuts, for every vertex and arc
ANSWERING = 0.3  # of the rate of a product, when rows follow from the tables
ENTRY = {"cpu": 1e-9, "gpu": 8e-12}  # seconds for every distance of a row, besides
EDGE = 1024  # of a square chunk: 4 MiB and more
TASK_BYTES = 2**31  # of rows that a task makes
TABLES = "boundary.zarr"  # the name of the store within


def estimate(request: Request) -> Estimate:
    """What the parts, their boundary and the rows that are not done take."""
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

    return Estimate(
        seconds=seconds,
        too_large=missing and "the tables of parts do not fit in memory",
        chunk=chunk,
        stages=1,
        options={"block": None, "parts": cut.parts},
        work=(rows, "rows"),
        summary=f"{describe(cut, job.dtype, making | joining)}, disk {size(result)}, about {duration(seconds)}",
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

        def begin(members: list[str], before: Rows | None) -> Rows:
            return Rows(client, members, before, writer, tables, shown)

        run_attempts(client, [fact.address for fact in request.facts], begin, shown)
    _remove(place)
    writer.commit(writer.stages)


def _remove(place: str) -> None:
    """Remove a folder, at once for who looks: half of it would be taken for what a killed run had begun."""
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
    """Edge of the chunks: some chunk rows for every worker."""
    return max(1, min(EDGE, -(-rows // (2 * workers))))


def _closed(client: Client, request: Request, cut: Cut, place: str) -> Boundary:
    """The tables of the cut graph, made or completed."""
    job = request.job
    again = partial(resume_boundary, graph=job.graph, options={})
    writer = resumed(place, SCHEMA, [], again, resume=True, overwrite=False)
    if writer is None:
        writer = create_boundary(place, job.graph, cut, dtype=job.dtype, options={})
    if not writer.finished:
        close_parts(client, _boundary_job(job), writer, False, request.facts)
    return open_boundary(place)


class Rows(RowsAttempt):
    """An attempt of writing rows, for `pipelines.workers.attempts.run_attempts`."""

    work = "computing rows"

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: Rows | None,
        writer: DistancesWriter,
        tables: Boundary,
        shown: Progress,
    ):
        super().__init__(client, members, "boundary-rows", before, writer, shown)
        self.writer, self.tables = writer, tables
        self.sources = np.arange(writer.n) if writer.sources is None else np.array(writer.sources)
        band = writer.chunk * writer.n * writer.dtype.itemsize
        self.together = together(writer, TASK_BYTES // max(1, band), len(members))

    def run(self) -> None:
        self.deal(
            lambda worker: self.submit(_load, worker, self.tables),
            lambda worker, start: self.submit(
                _write_rows, worker, self.writer, start, self.sources[start : start + self.step]
            ),
        )


def _load(attempt: str, tables: Boundary) -> None:
    clear()
    keep(attempt, tables.between if array_library() is np else tables.between_on_gpu)


def _write_rows(attempt: str, writer: DistancesWriter, start: int, sources: np.ndarray) -> None:
    """Write rows from `start` on, a band of chunks while the next is computed."""
    between, write, everything = held(attempt), writer.writer(), np.arange(writer.n)
    with Savers() as savers:
        for first in range(0, len(sources), writer.chunk):
            rows = between(sources[first : first + writer.chunk], everything)
            savers.save(rows, writer.chunk, partial(write, start + first))
