"""The plan of Floyd-Warshall in memory: its memory, disk and time, and how many GPUs to use.

A stage of P workers, with R relaxations per second each and pivot blocks of b rows, takes the longer of two times::

    share    (n^2 b / R + close) / P + pull + STEP          what every worker does for its own rows
    chain    2 b^2 n / R + close + SIGNAL + (P - 1) pull    the next panel: its rows updated, closed and multiplied,
                                                            and pulled by all

A pull moves 4 b n bytes (of float32) at PULL bytes per second. Closing a block takes CLOSE seconds for each of its
rows. The panel of the first stage is computed before that stage, so its time is not hidden by other work. A worker has
neither signals nor pulls if it is alone. If workers own different numbers of rows, 1 / P is replaced by the largest
share of the rows.

If the scheduler coordinates the workers, SIGNAL is HOP, and each task of the chain starts GAP after the task before it;
meanwhile a CPU is idle, and a GPU does the rest of the stage before. On several hosts, PULL is also replaced by DASK.
docs/scaling.md compares these constants with measured runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import FEWER_ROWS, WITHOUT_COMMITS, Estimate, Job, Request
from pipelines.stores.schema import counted
from pipelines.workers.capacity import MEMORY_SHARE, WRITE_RATE, Needs, WorkerFacts, on_devices
from pipelines.workers.progress import estimated, rounded, with_prefix
from pipelines.workers.rings import deal_slots
from pipelines.workers.saving import written_bytes

STEP = 0.2e-3  # s that a GPU waits for the host in a stage
SIGNAL = 0.5e-3  # s between the writing of a panel and its pull by another worker
HOP = 5.5e-3  # s from the end of a task to the start of a task on another worker that waits for it
GAP = 5.7e-3  # s between two tasks on one worker if the second waits for the first; a GPU computes meanwhile
CLOSE = 6e-7  # s for each row of a pivot block that is closed: latency, not arithmetic
PULL = 300e9  # bytes/s of a pull of a large panel from GPU to GPU of one host: 284 to 309e9 on H100s
DASK = 1.3e9  # bytes/s of panels that travel through Dask and host memory
MEET = 0.15  # s that several workers need, in addition to the start of one worker, to make rings and map them
CHAIN_TASKS = 5  # tasks of the chain in a stage: next pivots, independent, singly dependent, publish, other rows
SCHEDULED = HOP + (CHAIN_TASKS - 1) * GAP  # s that the chain waits for the scheduler in a stage
EXPOSED = 0.05  # share of a stage that workers may wait for the scheduler, unless signals are asked for
WORTH = 0.9  # more GPUs are used only if the run then takes less than this share of the time
WINDOW = 3  # segments under way: enough to hide the driver and the scheduler, few enough to bound the memory
REACH = WINDOW + 2  # stages after which a slot is written again: WINDOW under way, one ahead, one spare
PANELS = 4  # row panels that a worker may hold apart from its ring: one packed, two pulled or from Dask, and the last


@dataclass(frozen=True)
class StagesPlan:
    """The size of a run: its memory and disk, and its estimated time in seconds."""

    layout: Layout
    needs: Needs
    checkpoint_bytes: int  # part of the disk, for commits before the result
    seconds: float
    relaxations: int


def make_plan(request: Request, layout: Layout) -> StagesPlan:
    """Return the memory, disk and time of the stages that are not done, with the matrix cut by `layout`."""
    job, n, itemsize = request.job, layout.n, request.job.dtype.itemsize
    facts, rings = request.facts[: layout.workers], deal_panels(layout, job)[1]
    panel, chunk = layout.block * n * itemsize, min(layout.band, n)
    worker_bytes = tuple(
        # A single worker pulls no panels: the one slot of its ring is among the PANELS.
        layout.rows(w) * (n + layout.block) * itemsize
        + (PANELS + (rings[w] if layout.workers > 1 else 0)) * panel
        + layout.band * n * itemsize
        + (0 if facts[w].gpu else written_bytes(len(layout.bands(w)) * -(-n // chunk), chunk * chunk * itemsize))
        for w in range(layout.workers)
    )
    relaxations = n * n * int(job.through.sum())
    slowest = max((layout.rows(w) / max(f.rate, 1.0) for w, f in enumerate(facts)), default=0.0)
    left = share_of_work(job, layout.workers) * (relaxations - request.relaxations_done(layout))
    compute = left / max(n, 1) * slowest
    result = request.rows * n * itemsize
    # Two checkpoints if the run is long enough to commit before its end. Their chunks are whole squares, also at the
    # edges. The result is assumed not to compress; it takes the place of one of the checkpoints.
    edge = -(-n // chunk) * chunk if n else 0
    checkpoints = 2 * edge**2 * itemsize if compute > request.commit_seconds else 0
    seconds = compute + result / WRITE_RATE / len({f.address for f in facts} or {""})
    return StagesPlan(layout, Needs(worker_bytes, disk=max(result, checkpoints)), checkpoints, seconds, relaxations)


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
        smaller, where = {8: ("float32", ""), 4: ("int16", " for integer weights and short distances")}.get(
            itemsize, ("", "")
        )
        narrower = f", use dtype={smaller!r} (--dtype {smaller}){where}" if smaller else ""
        return f"Run on about {max(workers, 2)} such machines or GPUs{narrower}, or free memory"

    return Estimate(
        seconds=plan.seconds,
        too_large=None if plan.needs.fits(facts) else "the matrix does not fit in memory",
        chunk=layout.band,
        stages=len(job.stages(layout)) + 1,
        block=layout.block,
        work=(plan.relaxations, "relaxations"),
        needs=plan.needs,
        summary=(
            f"n = {n:,} {job.dtype}, {on_devices(facts)} ({with_prefix(sum(f.rate for f in facts))} relaxations/s): "
            f"{plan.needs}, time {estimated(plan.seconds)}" + (f"; {why}" if why else "")
        ),
        plan=plan,
        facts=facts,
        what=f"{n:,} vertices",
        cure=cure,
        disk_cure=FEWER_ROWS + (WITHOUT_COMMITS if plan.checkpoint_bytes else ""),
    )


def deal_panels(layout: Layout, job: Job) -> tuple[list[int], list[int]]:
    """Return the slot of each stage's row panel in the ring of its owner, and the number of slots of each ring."""
    owners = [layout.owner(start) for start, _ in job.stages(layout)]
    return deal_slots(owners, layout.workers, REACH if layout.workers > 1 else 1)


def share_of_work(job: Job, workers: int) -> float:
    """Return the part of all relaxations that a run will do: 0.5 if symmetry halves them, else 1."""
    return 0.5 if workers == 1 and not job.graph.directed and job.dtype.kind == "i" else 1.0


def arithmetic_seconds(layout: Layout, itemsize: int, rate: float, mapped: bool = True, work: float = 1.0) -> float:
    """Return the seconds of all stages by the model.

    Parameters
    ----------
    mapped : whether workers map each other's memory
    work : the part of all relaxations that the run does
    """
    first, share, chain = _stage_seconds(layout, itemsize, rate, SIGNAL if mapped else SCHEDULED, mapped, work)
    return first + len(layout.blocks()) * max(share, chain)


def scheduler_hides(layout: Layout, itemsize: int, rate: float, gpu: bool, mapped: bool) -> bool:
    """Return whether workers of a `rate` each are expected to wait for the scheduler for at most EXPOSED of a stage."""
    _, share, chain = _stage_seconds(layout, itemsize, rate, SCHEDULED, mapped)
    exposed = max(0.0, chain - share) if gpu else SCHEDULED
    return exposed <= EXPOSED * share


def _stage_seconds(
    layout: Layout, itemsize: int, rate: float, signal: float, mapped: bool, work: float = 1.0
) -> tuple[float, float, float]:
    """Return the seconds of the first panel, and of the share and the chain of a stage."""
    n, b, workers = layout.n, layout.block, layout.workers
    close, row_panel = b * CLOSE, b * b * n / rate
    part = max(layout.rows(worker) for worker in range(workers)) / n
    share = (work * n * n * b / rate + close) * part + STEP
    if workers == 1:
        return 0.0, share, 0.0
    pull = b * n * itemsize / (PULL if mapped else DASK)
    return row_panel + close, share + pull, 2 * row_panel + close + signal + (workers - 1) * pull


def choose_workers(
    n: int,
    itemsize: int,
    block: int | None,
    facts: Sequence[WorkerFacts],
    fits: Callable[[Layout], bool],
    work: Callable[[int], float] = lambda _workers: 1.0,
) -> tuple[int, str | None]:
    """Return how many workers to use, and why: all workers of a CPU cluster, or as many GPUs as make the run faster.

    The seconds compared are those of the stages, without writing the result.

    Parameters
    ----------
    facts : of all workers; a run on fewer takes the first of them
    fits : returns whether a run of a layout fits in memory
    work : returns the part of all relaxations that a run does with that number of workers
    """
    if len(facts) == 1 or not all(fact.gpu for fact in facts):
        return len(facts), None
    rate = max(1.0, min(fact.rate for fact in facts))
    seconds: dict[int, float] = {}
    for count in range(1, len(facts) + 1):
        layout = make_layout(n, count, itemsize, block)
        if fits(layout):
            mapped = len({fact.host for fact in facts[:count]}) == 1  # the facts are sorted by address, so by host
            seconds[count] = arithmetic_seconds(layout, itemsize, rate, mapped, work(count)) + MEET * (count > 1)
    if not seconds:
        return len(facts), None
    chosen = min(seconds)
    for count in seconds:
        if seconds[count] < WORTH * seconds[chosen]:
            chosen = count
    others = sorted({min(seconds), len(facts)} & seconds.keys() - {chosen})
    compared = ", ".join(f"{count} would take {rounded(seconds[count])}" for count in others)
    few = "" if min(seconds) == 1 else f"; fewer than {min(seconds)} have too little memory"
    time = f"about {rounded(seconds[chosen])} of arithmetic ({compared})"
    return chosen, f"{chosen} of {counted(len(facts), 'GPU')}, {time}{few}"
