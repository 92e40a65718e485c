"""Floyd-Warshall out of core as a method of all pairs: the plan, and its execution (`super_stages`).

The result is the same, to the last bit, as with Floyd-Warshall in memory, but the matrix may be larger than the memory
of a GPU or of the host. If the memory of one host holds the matrix, the GPUs of that host read bands from there.
Otherwise, and on a CPU, bands are read from the store.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from distributed import Client

from gpuops.memory import size
from gpuops.minplus import packed_bytes
from gpuops.minplus.super_stage import column_parts
from pipelines.apsp.commits import COMMIT_SHARE
from pipelines.apsp.layout import STORED_COPIES, Windows, chunks_of, make_layout, widest
from pipelines.apsp.methods import FEWER_ROWS, WITHOUT_COMMITS, Estimate, Method, Request
from pipelines.apsp.out_of_core.super_stages import SuperStages
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.graph import Graph
from pipelines.validation.bounds import PIECE
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import WRITE_RATE, Needs, WorkerFacts, on_devices
from pipelines.workers.host_matrix import PIECE_BYTES
from pipelines.workers.mapped_memory import HEADER, LEAST_BYTES
from pipelines.workers.progress import Progress, estimated, with_prefix

LOCKING_PASSES = 8  # passes of the matrix that repay locking its pages; with fewer passes, threads copy rows
DISK_RATE = 1e9  # bytes/s at which checkpoints are assumed to be read and written
LINK_RATE = 2e10  # bytes/s at which rows are assumed to pass between the host and a GPU
THREAD_BYTES = 16 << 20  # bytes of freed memory that the allocators of all threads keep at most
ARC_BYTES = 80  # bytes for each arc while rows are made from the graph


@dataclass(frozen=True)
class SuperStagesPlan:
    """The cut of a run out of core, and its cost."""

    windows: Windows
    dtype: np.dtype
    needs: Needs
    traffic_bytes: int  # bytes of rows moved from and to the place of the matrix in the whole run
    seconds: float
    relaxations: int
    commits: int  # number of commits before the result

    def describe(self, facts: list[WorkerFacts]) -> str:
        """Return one line for the user: the workers, the cut, and the memory, disk and time of the run."""
        windows, place = self.windows, "the store"
        if windows.resident:
            place = "locked memory of the host" if windows.registered else "the memory of the host"
        device, host = Needs(self.needs.device).most(facts), Needs(host=self.needs.host).most(facts)
        on_device = f"{size(device)} of each GPU, " if device else ""
        return (
            f"n = {windows.n:,} {self.dtype} out of core, {on_devices(facts)} "
            f"({with_prefix(sum(f.rate for f in facts))} relaxations/s): {windows.width:,} pivots "
            f"at a time on bands of {windows.chunk:,} rows from {place}; memory {on_device}{size(host)} of the host, "
            f"disk {size(self.needs.disk)}, traffic {size(self.traffic_bytes)}, "
            f"{self.commits or 'no'} commit{'s' * (self.commits != 1)} on the way, time {estimated(self.seconds)}"
        )


def estimate(request: Request) -> Estimate:
    """Return the estimate of the super-stages that are not done."""
    plan, facts = make_plan(request), request.facts
    commits = plan.commits and request.commit_seconds < math.inf
    return Estimate(
        seconds=plan.seconds,
        too_large=None if plan.needs.fits(facts) else "not even bands of the matrix fit in memory",
        chunk=plan.windows.chunk,
        stages=len(request.job.stages(plan.windows.layout)) + 1,
        block=plan.windows.block,
        work=(plan.relaxations, "relaxations"),
        needs=plan.needs,
        summary=plan.describe(facts),
        plan=plan,
        facts=facts,
        what=f"out of core, {plan.windows.n:,} vertices",
        cure=f"Set {_options(plan.needs, facts)}, free memory, or use a smaller block (--block)",
        disk_cure=FEWER_ROWS + (WITHOUT_COMMITS if commits else ""),
    )


def make_plan(request: Request) -> SuperStagesPlan:
    """Cut the matrix into windows as wide as the memory allows."""
    job, facts, gpu = request.job, request.facts, any(fact.gpu for fact in request.facts)
    n, itemsize = job.graph.n, job.dtype.itemsize
    block = make_layout(n, 1, itemsize, request.block).block
    chunks = chunks_of(n, block, itemsize) if request.writer is None else [request.writer.chunk]

    def fits(windows: Windows) -> bool:
        return needs_of(request, windows, gpu).fits(facts)

    found: list[Windows] = []
    one_host = gpu and len({fact.host for fact in facts}) == 1
    sharing = one_host and len(facts) > 1 and all(fact.gpu for fact in facts)
    for resident, sharers in [(True, len(facts))] * sharing + [(True, 1)] * one_host + [(False, 1)]:
        cuts = [Windows(n, block, chunk, max(block, chunk), resident, sharers=sharers) for chunk in chunks]
        found = [wide for cut in cuts if (wide := widest(cut, len(facts), gpu, fits)) is not None]
        if found:
            break
    # Chunks are as large as in memory, unless narrower bands make room for windows at least twice as wide.
    windows = next((cut for cut in found if 2 * cut.width > max(wide.width for wide in found)), cuts[-1])
    passes = len(windows.super_stages(job.stages(windows.layout), request.writer.stage if request.writer else 0))
    windows = replace(windows, registered=windows.resident and passes >= LOCKING_PASSES)
    matrix, relaxations = n * n * itemsize, n * n * int(job.through.sum())
    share = min(1, windows.width / max(n, 1))  # share of the matrix that is in a window
    if windows.sharers > 1:  # the matrix is filled first, and every worker reads every square
        moved, again = 2 * passes + request.begun + windows.sharers * share, windows.sharers * share**2
    else:  # rows are read and written, except weights and result; each worker also reads other workers' window rows
        moved, again = 2 * (passes - 1) + request.begun + len(facts) - 1, (len(facts) - 1) * share
    traffic = int(moved * matrix)
    compute = (relaxations - request.relaxations_done(windows.layout)) / max(
        1.0, len(facts) * min(fact.rate for fact in facts)
    )
    compute *= 1 + again
    result = request.rows * n * itemsize
    seconds = max(compute, traffic / (LINK_RATE if windows.resident else DISK_RATE)) + result / WRITE_RATE
    commits, disk = commits_of(request, windows, passes, seconds)
    if windows.resident:
        seconds += commits * matrix / DISK_RATE
    needs = replace(needs_of(request, windows, gpu), disk=disk)
    return SuperStagesPlan(windows, job.dtype, needs, traffic, seconds, relaxations, commits)


def commits_of(request: Request, windows: Windows, passes: int, seconds: float) -> tuple[int, int]:
    """Return how often a run of that many passes commits before its result, and how many bytes of disk it takes."""
    matrix = windows.n**2 * request.job.dtype.itemsize
    pause = max(request.commit_seconds, matrix / DISK_RATE / COMMIT_SHARE)
    if windows.resident:
        commits = 0 if seconds <= request.commit_seconds else min(passes - 1, max(1, int(seconds / pause)))
    else:
        commits = passes - 1 if request.commit_seconds < math.inf else min(passes - 1, 1)
    # A checkpoint is kept while the next one, or the result, is written.
    checkpoints = 0 if commits == 0 else min(2, request.begun + commits)
    result = request.rows * windows.n * request.job.dtype.itemsize
    return commits, max(checkpoints * matrix, (request.begun or commits > 0) * matrix + result)


def needs_of(request: Request, windows: Windows, gpu: bool) -> Needs:
    """Return the memory of the workers: on CPUs, all of it is memory of the host."""
    job, workers, n, itemsize = request.job, len(request.facts), windows.n, request.job.dtype.itemsize
    row, block, width = n * itemsize, min(windows.block, windows.n), min(windows.width, windows.n)
    band = min(windows.chunk, n)
    part = max(columns.stop - columns.start for columns in column_parts(n, windows.sharers, job.dtype, gpu))
    computing = width * part * itemsize + windows.BANDS * band * row
    computing += -(-width // block) * (packed_bytes(block, n, job.dtype, gpu) + 2 * HEADER)
    copies = 2 * max(width, band) * block * itemsize + 2 * block * block * itemsize  # columns of pivots, also packed
    if windows.sharers > 1:
        computing += width * width * itemsize + LEAST_BYTES
        copies += packed_bytes(block, width, job.dtype, gpu)
        if request.sources is not None:
            computing += band * row  # copies of whole rows of the last window
    if gpu:  # CuPy's pool keeps as much again; int16 entries are packed as words
        copies *= 3 if itemsize == 2 else 2
    computing += copies
    if not job.through.all():
        computing += (4 if gpu else 1) * block * row  # copies of rows; CuPy's pool keeps one for each number of rows
    if job.dtype.kind == "i":  # temporary arrays of `finish`
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
        return Needs(host=(host + min(THREAD_BYTES, host // 2),) * workers)
    host += min(THREAD_BYTES, host // 2) + 4 * band * row
    if windows.resident:
        host += -(-n * row // workers) + (4 if windows.sharers == 1 else 6) * PIECE_BYTES
    return Needs((computing + arcs,) * workers, (host,) * workers)


@functools.lru_cache(maxsize=32)
def most_arcs(graph: Graph, rows: int) -> int:
    """Return the most arcs that leave any of the ranges of `rows` vertices that begin at 0, `rows`, 2 `rows`, ..."""
    starts = graph.indptr()[:: max(rows, 1)]
    return int(np.diff(starts, append=graph.m).max(initial=0))


def _options(needs: Needs, facts: list[WorkerFacts]) -> str:
    """Return the options that would make room, with their values."""
    parts = {
        "device_memory (--device-memory)": Needs(needs.device),
        "host_memory (--host-memory)": Needs(host=needs.host),
    }
    least = {name: rounded_up(part.most(facts)) for name, part in parts.items() if not part.fits(facts)}
    return " and ".join(f"{name} to {count} or more" for name, count in least.items())


def rounded_up(count: int) -> str:
    """Return a number of bytes, rounded up, in the form that options take.

    >>> rounded_up(1_000_001), rounded_up(5 << 30)
    ('977KiB', '5120MiB')
    """
    shift, unit = next((s, u) for s, u in ((10, "KiB"), (20, "MiB"), (30, "GiB")) if count < 1 << (s + 14) or s == 30)
    return f"{-(-count >> shift)}{unit}"


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, bar: Progress) -> None:
    """Run the super-stages that are not done."""
    run = Run(client, [fact.address for fact in request.facts], writer, bar)
    run.attempts(SuperStages, request, estimate.plan.windows)


OUT_OF_CORE = Method("out-of-core", "Floyd-Warshall out of core", "out of core", estimate, execute)
