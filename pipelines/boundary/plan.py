"""What a cut costs: relaxations, memory and disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuops.boundary import device_bytes
from pipelines.boundary.cut_graph import Job
from pipelines.stores.boundary import Cut
from pipelines.workers.capacity import MEMORY_SHARE, DoesNotFitError, WorkerFacts, memory_by_place, refuse_disk
from pipelines.workers.progress import size, with_prefix

ANSWERED = 10_000  # rows of distances that a cut is to be good for
TASK_BYTES = 128 << 20  # of distances within parts that a task closes,
BATCH_BYTES = 2**30  # and that are closed at a time on a GPU
ARC_BYTES = 80  # that an arc takes while the arcs are sorted by part
WRITTEN_COPIES = 4  # of what is being compressed and written
PANEL_ROWS = 4096  # of a matrix, that are copied while it is closed


def work(cut: Cut, rows: int = ANSWERED) -> float:
    """Relaxations to close all parts and the boundary, and to answer so many rows of distances to all vertices."""
    boundary = float(cut.boundary_sizes.sum())
    return float((cut.sizes.astype(float) ** 3).sum()) + boundary**3 + min(rows, len(cut.part)) * row_work(cut)


def row_work(cut: Cut) -> float:
    """Relaxations of a row of distances to all vertices, on average."""
    n, boundary = len(cut.part), float(cut.boundary_sizes.sum())
    mean = float((cut.boundary_sizes * cut.sizes).sum()) / max(n, 1)  # boundary vertices of the part of a vertex
    return mean * (boundary + n)


def table_bytes(cut: Cut, dtype: np.dtype) -> tuple[int, int]:
    """Bytes of the tables of all parts, and of the distances between all boundary vertices."""
    p, b = (int(sizes.max(initial=1)) for sizes in (cut.sizes, cut.boundary_sizes))
    return cut.parts * p * (p + 2 * max(b, 1)) * dtype.itemsize, int(cut.boundary_sizes.sum()) ** 2 * dtype.itemsize


@dataclass(frozen=True)
class Memory:
    """Bytes that a worker takes of its GPU, 0 without one, and of its host."""

    device: int
    host: int

    def __or__(self, other: Memory) -> Memory:
        """What the one takes and then the other."""
        return Memory(max(self.device, other.device), max(self.host, other.host))

    def __str__(self) -> str:
        return (f"{size(self.device)} of a GPU and " if self.device else "") + f"{size(self.host)} of its host"


def describe(cut: Cut, dtype: np.dtype, memory: Memory) -> str:
    """One line on a cut, and what the worker takes that needs most."""
    tables, among = table_bytes(cut, dtype)
    return (
        f"{cut.parts:,} parts of {int(cut.sizes.max(initial=0)):,} vertices at most, {int(cut.boundary_sizes.sum()):,}"
        f" boundary vertices; {with_prefix(work(cut, 0)).strip()} relaxations, {size(tables + among)} of tables,"
        f" memory {memory}"
    )


def closing_memory(cut: Cut, job: Job, gpu: bool) -> tuple[Memory, Memory]:
    """What a worker takes to close parts, and what the one takes that joins them, closing their boundary."""
    tables, among = table_bytes(cut, job.dtype)
    part = int(cut.sizes.max(initial=1)) ** 2 * job.dtype.itemsize
    arcs = ARC_BYTES * job.graph.m
    parts = arcs + WRITTEN_COPIES * min(tables, max(part, TASK_BYTES))
    # Closed vertices are sorted behind the others, in copies; potentials are added in copies, too.
    matrices = (1 if job.graph.through()[cut.boundary].all() else 3) * among
    matrices += min(among, PANEL_ROWS * int(cut.boundary_sizes.sum()) * job.dtype.itemsize)
    shifted = among if job.potentials is None else 4 * among
    if not gpu:
        return Memory(0, parts), Memory(0, arcs + max(matrices, among + shifted))
    batch = min(tables, max(part, BATCH_BYTES))
    return Memory(2 * batch, parts + batch), Memory(matrices, arcs + among + shifted)


def rows_memory(cut: Cut, dtype: np.dtype, chunk: int, gpu: bool) -> Memory:
    """What a worker takes to make rows by chunks, of which two are written while one is computed."""
    tables, among = table_bytes(cut, dtype)
    n = len(cut.part)
    bands, writing = (copies * chunk * n * dtype.itemsize for copies in (3, WRITTEN_COPIES))
    if not gpu:
        return Memory(0, tables + among + bands + writing)
    making = device_bytes(cut.part, cut.boundary_sizes, dtype)
    return Memory(tables + 2 * among + making + bands, tables + among + writing)


def shortage(needed: Sequence[Memory], facts: list[WorkerFacts]) -> str | None:
    """What is too small for what each worker needs, None if all fits."""
    on_host = [replace(fact, gpu=False, free_memory=fact.host_memory or fact.free_memory) for fact in facts]
    hosts = memory_by_place([each.host for each in needed], on_host)
    gpus = memory_by_place([each.device for each in needed], facts) if any(each.device for each in needed) else {}
    for what, places in ("the GPU of ", gpus), ("", hosts):
        for place, (count, free) in places.items():
            if count > MEMORY_SHARE * free:
                return f"{size(count)} of the memory of {what}{place}, which has {size(free)} free"
    return None


def refuse_what_cannot_fit(cut: Cut, job: Job, facts: list[WorkerFacts], out: str | os.PathLike[str]) -> None:
    """Raise DoesNotFitError if the memory of the workers, or the disk of `out`, is too small."""
    gpu = any(fact.gpu for fact in facts)
    closing, joining = closing_memory(cut, job, gpu)
    missing = shortage([closing] * len(facts), facts)
    if missing:
        largest = f"{int(cut.sizes.max(initial=0)):,} vertices"
        raise DoesNotFitError(f"to close parts of up to {largest} takes {missing}; give more parts (--parts)")
    missing = shortage([joining], facts[:1])
    if missing:
        cures = ["give fewer parts (--parts)", "search instead (tilepath sssp)"]
        if gpu and not shortage([closing_memory(cut, job, gpu=False)[1]], facts[:1]):
            cures.insert(1, "join them on the CPU (--device cpu)")
        boundary = f"{int(cut.boundary_sizes.sum()):,} boundary vertices"
        raise DoesNotFitError(f"to join {cut.parts:,} parts by {boundary} takes {missing}; {', or '.join(cures)}")
    tables, among = table_bytes(cut, job.dtype)
    refuse_disk(tables + among, out, "give more parts (--parts)")
