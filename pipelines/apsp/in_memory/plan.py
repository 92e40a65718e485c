"""How long the stages of blocked Floyd-Warshall take on several workers, and how many GPUs to use.

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

from pipelines.apsp.layout import Layout, make_layout
from pipelines.stores.schema import counted
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.progress import duration

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

    Parameters
    ----------
    fits : returns whether a run of a layout fits in memory
    work : returns the part of all relaxations that a run does with that number of workers
    """
    if len(facts) == 1 or not all(fact.gpu for fact in facts):
        return len(facts), None
    mapped = len({fact.host for fact in facts}) == 1
    rate = max(1.0, min(fact.rate for fact in facts))
    seconds: dict[int, float] = {}
    for count in range(1, len(facts) + 1):
        layout = make_layout(n, count, itemsize, block)
        if fits(layout):
            seconds[count] = arithmetic_seconds(layout, itemsize, rate, mapped, work(count)) + MEET * (count > 1)
    if not seconds:
        return len(facts), None
    chosen = min(seconds)
    for count in seconds:
        if seconds[count] < WORTH * seconds[chosen]:
            chosen = count
    others = sorted({min(seconds), len(facts)} & seconds.keys() - {chosen})
    compared = ", ".join(f"{count} would take {_time(seconds[count])}" for count in others)
    few = "" if min(seconds) == 1 else f"; fewer than {min(seconds)} have too little memory"
    return chosen, f"{chosen} of {counted(len(facts), 'GPU')}, about {_time(seconds[chosen])} ({compared}){few}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else duration(seconds)
