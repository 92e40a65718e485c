"""The tasks of the workers: close parts, some chunks of parts in each task, then join the parts on one worker."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from gpuops.numbers import distance_limit, infinity, to_outside
from pipelines.boundary.batches import PartBatches
from pipelines.boundary.closures import (
    Arcs,
    boundary_matrix,
    close,
    close_part,
    ways_to,
    with_weights,
    without_negative,
)
from pipelines.boundary.cut_graph import CutGraph, Job, cut_arcs
from pipelines.boundary.plan import TASK_BYTES, closing_memory, describe
from pipelines.stores.boundary import BoundaryWriter
from pipelines.validation.bounds import WeightRangeError
from pipelines.workers.attempts import Run, clear, held, keep
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.device_arrays import array_library, to_host
from pipelines.workers.progress import Progress
from pipelines.workers.row_chunks import RowsAttempt, together
from pipelines.workers.saving import Savers


def close_parts(
    client: Client, job: Job, writer: BoundaryWriter, progress: bool | None, facts: list[WorkerFacts]
) -> None:
    """Close the parts that are not in the store yet, join all parts, and complete the store."""
    with Progress(writer.rows, "parts", progress) as shown:
        cut = writer.cut()
        closing, joining = closing_memory(cut, job, any(fact.gpu for fact in facts))
        shown.note(describe(cut, job.dtype, closing | joining))
        Run(client, [fact.address for fact in facts], writer, shown).attempts(Closing, job)


class Closing(RowsAttempt):
    """An attempt to close parts."""

    out: BoundaryWriter
    kind, unit, work = "boundary", "parts", "closing parts"

    def __init__(self, run: Run, members: list[str], before: Closing | None, job: Job):
        super().__init__(run, members, before)
        self.job = job
        self.together = together(self.out, TASK_BYTES // self.out.chunk_bytes, len(members))

    def run(self) -> None:
        self.deal(
            lambda worker: self.submit(_load, worker, self.job, self.out),
            lambda worker, first: self.submit(_close, worker, self.out, first, min(first + self.step, self.out.rows)),
        )
        self.shown.stage("joining parts")
        self.wait([self.submit(_join, 0, self.job, self.out)])


def _load(attempt: str, job: Job, writer: BoundaryWriter) -> None:
    clear()
    graph, xp = cut_arcs(job, writer.cut()), array_library()
    keep(attempt, (graph, None if xp is np else PartBatches(graph, xp)))


def _close(attempt: str, writer: BoundaryWriter, start: int, stop: int) -> None:
    """Close parts. Each chunk of parts is written while the next chunk is closed."""
    (graph, batches), write = held(attempt), writer.writer()
    with Savers() as savers:
        for first in range(start, stop, writer.chunk):
            parts = range(first, min(first + writer.chunk, stop))
            tables = [closed_part(graph, part, batches and batches.inner(part)) for part in parts]
            savers.submit(write, first, tables)


def _join(attempt: str, job: Job, writer: BoundaryWriter) -> None:
    clear()
    graph = cut_arcs(job, writer.cut())
    among = closed_boundary(graph, writer.within_boundaries(graph.through), array_library())
    refuse_what_may_overflow(job, writer, among)
    edge, write = writer.make_among(len(among))
    to_outside(among)
    with Savers() as savers:
        for row in range(0, len(among), edge):
            savers.save(among[row : row + edge], edge, partial(write, row))
    writer.complete()


def closed_part(graph: CutGraph, part: int, inner: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return the tables of a part by their names in the store. If a GPU has closed the part, `inner` is the result."""
    arcs, vertices = slice(*graph.starts[part : part + 2]), graph.cut.vertices(part)
    through = graph.through[vertices]
    if inner is None:
        inner = close_part(Arcs(*(array[arcs] for array in graph.within)), through)
    inner = with_weights(inner, graph.job.potentials, vertices)
    to_boundary, from_boundary = ways_to(inner, through, int(graph.cut.boundary_sizes[part]))
    return {"inner": inner, "to_boundary": to_boundary, "from_boundary": from_boundary}


def closed_boundary(graph: CutGraph, among: Iterable[np.ndarray], xp: Any = np) -> np.ndarray:
    """Return the distances between all boundary vertices, closed on the device of `xp`.

    `among` has, for each part, the distances within the part between its boundary vertices.
    """
    cut, potentials = graph.cut, graph.job.potentials
    vertices = cut.order[cut.boundary[cut.order]]
    blocks = np.split(vertices, np.cumsum(cut.boundary_sizes)[:-1])
    lengths = (without_negative(block, potentials, v) for block, v in zip(among, blocks, strict=True))
    h = close(xp.asarray(boundary_matrix(cut, graph.between, lengths)), graph.through[vertices])
    return with_weights(to_host(h), potentials, vertices)


def refuse_what_may_overflow(job: Job, writer: BoundaryWriter, among: np.ndarray) -> None:
    """Raise an error if integer distances may reach infinity and are not proven to fit their dtype."""
    if job.fits:
        return
    limit = distance_limit(job.dtype)
    far = largest(among) + 2 * max(map(largest, writer.inners()), default=0)
    if far >= limit:
        larger = "int32" if job.dtype == np.int16 else "float64"
        raise WeightRangeError(
            f"distances may exceed {limit - 1:,}, the most that {job.dtype} holds; use --dtype {larger}"
        )


def largest(d: np.ndarray) -> int:
    """Return the largest finite distance, 0 if there is none."""
    reached = d[d < infinity(d.dtype)]
    return int(reached.max()) if reached.size else 0
