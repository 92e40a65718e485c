"""The cost of a cut: relaxations, memory and disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuops.boundary import device_bytes
from pipelines.boundary.cut_graph import Job
from pipelines.stores.boundary import Cut
from pipelines.stores.schema import counted
from pipelines.workers.capacity import (
    MEMORY_SHARE,
    DoesNotFitError,
    WorkerFacts,
    memory_by_place,
    place_name,
    refuse_disk,
)
from pipelines.workers.progress import size, with_prefix

# Rows of distances that are expected to be requested when the number of parts is chosen.
ANSWERED = 10_000
# Bytes of the distances within parts that one task closes.
TASK_BYTES = 128 << 20
# Bytes of the distances within parts that a GPU closes at a time.
BATCH_BYTES = 2**30
# Bytes of memory for each arc while arcs are sorted by part.
ARC_BYTES = 80
# Number of copies of the tables that are being compressed and written.
WRITTEN_COPIES = 4
# Rows of a matrix that are copied while the matrix is closed.
PANEL_ROWS = 4096


def work(cut: Cut, rows: int = ANSWERED) -> float:
    """Return the relaxations to close all parts and the boundary, and to compute `rows` rows of distances."""
    boundary = float(cut.boundary_sizes.sum())
    return float((cut.sizes.astype(float) ** 3).sum()) + boundary**3 + min(rows, len(cut.part)) * row_work(cut)


def row_work(cut: Cut) -> float:
    """Return the mean number of relaxations for a row of distances to all vertices."""
    n, boundary = len(cut.part), float(cut.boundary_sizes.sum())
    mean = float((cut.boundary_sizes * cut.sizes).sum()) / max(n, 1)  # boundary vertices in the part of a vertex
    return mean * (boundary + n)


def table_bytes(cut: Cut, dtype: np.dtype) -> tuple[int, int]:
    """Return the bytes of the tables of all parts, and of the distances between all boundary vertices."""
    p, b = (int(sizes.max(initial=1)) for sizes in (cut.sizes, cut.boundary_sizes))
    return cut.parts * p * (p + 2 * max(b, 1)) * dtype.itemsize, int(cut.boundary_sizes.sum()) ** 2 * dtype.itemsize


@dataclass(frozen=True)
class Memory:
    """Bytes that a worker needs on its GPU (0 without a GPU) and on its host."""

    device: int
    host: int

    def __or__(self, other: Memory) -> Memory:
        """Return the memory of two phases, one after the other."""
        return Memory(max(self.device, other.device), max(self.host, other.host))

    def __str__(self) -> str:
        return (f"{size(self.device)} of GPU memory and " if self.device else "") + f"{size(self.host)} of RAM"


def describe(cut: Cut, dtype: np.dtype, memory: Memory) -> str:
    """Return a line about a cut, with the memory of the worker that needs most."""
    tables, among = table_bytes(cut, dtype)
    largest = counted(int(cut.sizes.max(initial=0)), "vertex", "vertices")
    boundary = counted(int(cut.boundary_sizes.sum()), "boundary vertex", "boundary vertices")
    return (
        f"{counted(cut.parts, 'part')} of {largest} at most, {boundary}; {with_prefix(work(cut, 0)).strip()}"
        f" relaxations, {size(tables + among)} of tables, needs {memory}"
    )


def closing_memory(cut: Cut, job: Job, gpu: bool) -> tuple[Memory, Memory]:
    """Return the memory of a worker that closes parts, and of the worker that closes the boundary to join them."""
    tables, among = table_bytes(cut, job.dtype)
    part = int(cut.sizes.max(initial=1)) ** 2 * job.dtype.itemsize
    arcs = ARC_BYTES * job.graph.m
    parts = arcs + WRITTEN_COPIES * min(tables, max(part, TASK_BYTES))
    # Moving closed vertices behind open vertices takes copies of the matrix; so does adding potentials.
    matrices = (1 if job.graph.through()[cut.boundary].all() else 3) * among
    matrices += min(among, PANEL_ROWS * int(cut.boundary_sizes.sum()) * job.dtype.itemsize)
    shifted = among if job.potentials is None else 4 * among
    if not gpu:
        return Memory(0, parts), Memory(0, arcs + max(matrices, among + shifted))
    batch = min(tables, max(part, BATCH_BYTES))
    return Memory(2 * batch, parts + batch), Memory(matrices, arcs + among + shifted)


def rows_memory(cut: Cut, dtype: np.dtype, chunk: int, gpu: bool) -> Memory:
    """Return the memory of a worker that computes rows by chunks. Two chunks are written while the next is computed."""
    tables, among = table_bytes(cut, dtype)
    n = len(cut.part)
    bands, writing = (copies * chunk * n * dtype.itemsize for copies in (3, WRITTEN_COPIES))
    if not gpu:
        return Memory(0, tables + among + bands + writing)
    making = device_bytes(cut.part, cut.boundary_sizes, dtype)
    return Memory(tables + 2 * among + making + bands, tables + among + writing)


def shortage(needed: Sequence[Memory], facts: list[WorkerFacts]) -> str | None:
    """Return a text about a memory that is too small for its workers, or None if all fits."""
    on_host = [replace(fact, gpu=False, free_memory=fact.host_memory or fact.free_memory) for fact in facts]
    hosts = memory_by_place([each.host for each in needed], on_host)
    gpus = memory_by_place([each.device for each in needed], facts) if any(each.device for each in needed) else {}
    for place, (count, free) in (*gpus.items(), *hosts.items()):
        if count > MEMORY_SHARE * free:
            return f"{size(count)} of the memory of {place_name(place)}, which has {size(free)} free"
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
