"""Floyd-Warshall out of core as a method of all pairs: the plan, and its execution (`pipelines.apsp.super_stages`).

It computes what Floyd-Warshall in memory computes, to the last bit, of matrices larger than the memory of a GPU, or
than that of the host. On the GPUs of one host bands pass through from its memory, where that holds the matrix; from the
store otherwise, and on a CPU.
"""

from __future__ import annotations

import functools
import math
import os
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from distributed import Client

from gpuops.minplus import packed_bytes
from gpuops.minplus.super_stage import column_parts
from pipelines.apsp.layout import make_layout
from pipelines.apsp.methods import Estimate, Method, Request
from pipelines.apsp.schedule import COMMIT_SHARE, relaxations_done, stages_of
from pipelines.apsp.super_stages import SuperStages
from pipelines.apsp.windows import STORED_COPIES, Windows, chunks_of, widest
from pipelines.stores import Graph
from pipelines.stores.distances import DistancesWriter
from pipelines.validation.bounds import PIECE
from pipelines.workers.attempts import run_attempts
from pipelines.workers.capacity import MEMORY_SHARE, WRITE_RATE, DoesNotFitError, WorkerFacts, refuse_disk
from pipelines.workers.lanes import PIECE_BYTES
from pipelines.workers.mapped_memory import HEADER, LEAST_BYTES
from pipelines.workers.progress import Progress, duration, size, with_prefix

LOCKING_PASSES = 8  # of the matrix: so many repay locking its pages, with fewer of them threads copy
DISK_RATE = 1e9  # bytes/s that checkpoints are assumed to be read and written at,
LINK_RATE = 2e10  # and rows to pass to a GPU and back
THREAD_BYTES = 16 << 20  # that the allocators of all threads keep of what they gave out, at most
ARC_BYTES = 80  # that rows take for each of their arcs while they are made


@dataclass(frozen=True)
class Plan:
    """How a run out of core is cut, and what it takes: bytes, seconds, relaxations."""

    windows: Windows
    dtype: np.dtype
    device_bytes: int  # of a GPU, each; 0 on a CPU
    host_bytes: int  # of all workers of a host
    disk_bytes: int
    traffic_bytes: int  # of rows to and from where the matrix lies, in the whole run
    seconds: float
    relaxations: int
    commits: int  # before the result
    shortage: str | None  # why it does not fit, and the least that does

    def describe(self, facts: list[WorkerFacts]) -> str:
        """One line for people: what runs where and what it takes."""
        windows, devices = self.windows, sorted({f.device for f in facts})
        place = "the store"
        if windows.resident:
            place = "locked memory of the host" if windows.registered else "the memory of the host"
        on_device = f"{size(self.device_bytes)} of each GPU, " if self.device_bytes else ""
        return (
            f"n = {windows.n:,} {self.dtype} out of core, {len(facts)} worker{'s' if len(facts) > 1 else ''} on "
            f"{', '.join(devices)} ({with_prefix(sum(f.rate for f in facts))} relaxations/s): {windows.width:,} pivots "
            f"at a time on bands of {windows.chunk:,} rows from {place}; memory {on_device}{size(self.host_bytes)} of "
            f"the host, disk {size(self.disk_bytes)}, traffic {size(self.traffic_bytes)}, "
            f"{self.commits or 'no'} commit{'s' * (self.commits != 1)} on the way, about {duration(self.seconds)}"
        )


def estimate(request: Request) -> Estimate:
    """What the super-stages that are not done take."""
    plan = make_plan(request)

    def refuse(out: str | os.PathLike[str]) -> None:
        if plan.shortage is not None:
            raise DoesNotFitError(plan.shortage)
        cure = "keep the rows of some sources only (--source)"
        if plan.commits and request.commit_seconds < math.inf:
            cure += ", or do without commits (--commit-seconds none)"
        refuse_disk(plan.disk_bytes, out, cure)

    return Estimate(
        seconds=plan.seconds,
        too_large=plan.shortage and "not even bands of the matrix fit in memory",
        chunk=plan.windows.chunk,
        stages=len(stages_of(plan.windows.layout, request.job)) + 1,
        options={"block": plan.windows.block},
        work=(plan.relaxations, "relaxations"),
        summary=None,
        refuse=refuse,
        plan=plan,
    )


def make_plan(request: Request) -> Plan:
    """Cut the matrix into windows as wide as the memory allows."""
    job, facts, gpu = request.job, request.facts, any(fact.gpu for fact in request.facts)
    n, itemsize = job.graph.n, job.dtype.itemsize
    block = make_layout(n, 1, itemsize, request.block).block
    chunks = chunks_of(n, block, itemsize) if request.writer is None else [request.writer.chunk]
    neighbours = max(Counter(fact.host for fact in facts).values())
    device = min(int(MEMORY_SHARE * fact.free_memory) for fact in facts) if gpu else 0
    host = min(int(MEMORY_SHARE * (fact.host_memory if gpu else fact.free_memory)) for fact in facts) // neighbours

    def fits(windows: Windows) -> bool:
        on_device, on_host = bytes_of(request, windows, gpu)
        return on_device <= device and on_host <= host

    found: list[Windows] = []
    one_host = gpu and neighbours == len(facts)
    sharing = one_host and len(facts) > 1 and all(fact.gpu for fact in facts)
    for resident, sharers in [(True, len(facts))] * sharing + [(True, 1)] * one_host + [(False, 1)]:
        cuts = [Windows(n, block, chunk, max(block, chunk), resident, sharers=sharers) for chunk in chunks]
        found = [wide for cut in cuts if (wide := widest(cut, len(facts), gpu, fits)) is not None]
        if found:
            break
    shortage = None if found else _shortage(bytes_of(request, cuts[-1], gpu), (device, host), n, neighbours, gpu)
    # Chunks as large as in memory, unless a narrower band makes room for a window twice as wide.
    windows = next((cut for cut in found if 2 * cut.width > max(wide.width for wide in found)), cuts[-1])
    on_device, on_host = bytes_of(request, windows, gpu)

    passes = len(windows.super_stages(stages_of(windows.layout, job), request.writer.stage if request.writer else 0))
    windows = replace(windows, registered=windows.resident and passes >= LOCKING_PASSES)
    matrix, relaxations = n * n * itemsize, n * n * int(job.through.sum())
    share = min(1, windows.width / max(n, 1))  # of a window in the matrix
    if windows.sharers > 1:  # the matrix is filled first, and all read every square
        moved, again = 2 * passes + request.begun + windows.sharers * share, windows.sharers * share**2
    else:  # read and written, but for the weights and the result; and of every window the rows of others
        moved, again = 2 * (passes - 1) + request.begun + len(facts) - 1, (len(facts) - 1) * share
    traffic = int(moved * matrix)
    compute = (relaxations - relaxations_done(windows.layout, job, request.writer)) / max(
        1.0, len(facts) * min(fact.rate for fact in facts)
    )
    compute *= 1 + again
    result = request.rows * n * itemsize
    seconds = max(compute, traffic / (LINK_RATE if windows.resident else DISK_RATE)) + result / WRITE_RATE
    commits, disk = commits_of(request, windows, passes, seconds)
    if windows.resident:
        seconds += commits * matrix / DISK_RATE
    return Plan(
        windows, job.dtype, on_device, neighbours * on_host, disk, traffic, seconds, relaxations, commits, shortage
    )


def commits_of(request: Request, windows: Windows, passes: int, seconds: float) -> tuple[int, int]:
    """How often a run of so many passes is committed before its result, and what it takes of the disk."""
    matrix = windows.n**2 * request.job.dtype.itemsize
    pause = max(request.commit_seconds, matrix / DISK_RATE / COMMIT_SHARE)
    if windows.resident:
        commits = 0 if seconds <= request.commit_seconds else min(passes - 1, max(1, int(seconds / pause)))
    else:
        commits = passes - 1 if request.commit_seconds < math.inf else min(passes - 1, 1)
    # One is committed while another is written: a checkpoint, or the result.
    checkpoints = 0 if commits == 0 else min(2, request.begun + commits)
    result = request.rows * windows.n * request.job.dtype.itemsize
    return commits, max(checkpoints * matrix, (request.begun or commits > 0) * matrix + result)


def bytes_of(request: Request, windows: Windows, gpu: bool) -> tuple[int, int]:
    """Bytes that a worker takes of its GPU (0 on a CPU) and of its host."""
    job, n, itemsize = request.job, windows.n, request.job.dtype.itemsize
    row, block, width = n * itemsize, min(windows.block, windows.n), min(windows.width, windows.n)
    band = min(windows.chunk, n)
    part = max(columns.stop - columns.start for columns in column_parts(n, windows.sharers, job.dtype, gpu))
    computing = width * part * itemsize + windows.BANDS * band * row
    computing += -(-width // block) * (packed_bytes(block, n, job.dtype, gpu) + 2 * HEADER)
    copies = 2 * max(width, band) * block * itemsize + 2 * block * block * itemsize  # columns of rows, and packed
    if windows.sharers > 1:
        computing += width * width * itemsize + LEAST_BYTES
        copies += packed_bytes(block, width, job.dtype, gpu)
        if request.sources is not None:
            computing += band * row  # those of the last window, whole
    if gpu:  # whose pool keeps as much again; int16 are packed as words
        copies *= 3 if itemsize == 2 else 2
    computing += copies
    if not job.through.all():
        computing += (4 if gpu else 1) * block * row  # copies of any number of rows, kept apart by CuPy's pool
    if job.dtype.kind == "i":  # looked through at the end
        computing += band * n * (1 if job.fits else itemsize + 2)
    if job.potentials is not None:
        computing += 64 * n * 40
    host = STORED_COPIES * min(windows.savers, -(-n // band)) * band * band * itemsize
    arcs = ARC_BYTES * min(PIECE, most_arcs(job.graph, band))
    host += arcs
    host += (17 if job.potentials is not None else 1) * n
    if request.sources is not None:
        host += band * row
    if not gpu:
        host += computing
        return 0, host + min(THREAD_BYTES, host // 2)
    host += min(THREAD_BYTES, host // 2) + 4 * band * row
    if windows.resident:
        host += -(-n * row // len(request.facts)) + (4 if windows.sharers == 1 else 6) * PIECE_BYTES
    return computing + arcs, host


@functools.lru_cache(maxsize=32)
def most_arcs(graph: Graph, rows: int) -> int:
    """How many arcs leave as many successive vertices at most, counted from 0, from `rows`, from twice `rows`, ..."""
    starts = graph.indptr()[:: max(rows, 1)]
    return int(np.diff(starts, append=graph.m).max(initial=0))


def _shortage(least: tuple[int, int], given: tuple[int, int], n: int, neighbours: int, gpu: bool) -> str:
    """Why not even the narrowest windows fit, and what would do."""
    options = [("--device-memory", least[0], given[0], "each GPU")] if gpu else []
    options.append(("--host-memory", neighbours * least[1], neighbours * given[1], "the host"))
    short = [option for option in options if option[1] > option[2]]
    needs = " and ".join(f"{size(need)} of {place}, which has {size(has)} to give" for _, need, has, place in short)
    cure = " ".join(f"{name} {rounded_up(need)}" for name, need, _, _ in short)
    return (
        f"out of core, {n:,} vertices need at least {needs}. Set {cure} or more, free memory, or use a smaller --block"
    )


def rounded_up(count: int) -> str:
    """Bytes as the options take them, not less.

    >>> rounded_up(1_000_001), rounded_up(5 << 30)
    ('977KiB', '5120MiB')
    """
    shift, unit = next((s, u) for s, u in ((10, "KiB"), (20, "MiB"), (30, "GiB")) if count < 1 << (s + 14) or s == 30)
    return f"{-(-count >> shift)}{unit}"


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, shown: Progress) -> None:
    """Run the super-stages that are not done."""
    plan: Plan = estimate.plan
    shown.note(plan.describe(request.facts))

    def begin(members: list[str], before: SuperStages | None) -> SuperStages:
        return SuperStages(client, members, before, request.job, plan.windows, writer, shown, request.commit_seconds)

    run_attempts(client, [fact.address for fact in request.facts], begin, shown)


OUT_OF_CORE = Method("out-of-core", "Floyd-Warshall out of core", "out of core", estimate, execute)
