"""How long the stages of blocked Floyd-Warshall take on several workers, and how many GPUs to use.

A stage of P workers with R relaxations per second each and pivot blocks of b rows lasts as long as the longer of two::

    share    (n^2 b / R + close) / P + pull + STEP          what every worker does for its own rows
    chain    2 b^2 n / R + close + SIGNAL + (P - 1) pull    the next panel: its rows updated, closed and multiplied,
                                                            and pulled by all

where a pull takes 4 b n bytes (of float32) at PULL bytes per second, and to close a block CLOSE for each of its rows.
Before the first stage comes its panel, which nothing hides. One worker has neither signals nor pulls. Where bands do
not come out even, the largest part counts for 1 / P.

On several hosts panels and stages go by way of Dask: PULL is DASK, SIGNAL is HOP, and a stage takes GAP at least.
docs/scaling.md has these constants beside measured runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.apsp.layout import Layout, make_layout
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.progress import duration

STEP = 0.2e-3  # s that a GPU waits for the host in a stage
SIGNAL = 0.5e-3  # s from a panel that is written to its pull by another worker
HOP = 5.5e-3  # s from the end of a task to the start of one on another worker that waits for it
GAP = 5.7e-3  # s between two tasks on a worker, the second of which waits for the first; a GPU computes meanwhile
CLOSE = 6e-7  # s for each row of a pivot block that is closed: latency, not arithmetic
PULL = 300e9  # bytes/s of a pull of a large panel from GPU to GPU of one host: 284 to 309e9 on H100s
DASK = 1.3e9  # bytes/s where panels travel through Dask and host memory
MEET = 0.15  # s in which several workers make their rings and map them, more than one worker takes to start
WORTH = 0.9  # more GPUs are taken only for less than this share of the time


def arithmetic_seconds(layout: Layout, itemsize: int, rate: float, mapped: bool = True, work: float = 1.0) -> float:
    """Seconds of all stages by the model.

    Parameters
    ----------
    mapped : whether workers map each other's memory
    work : the part of all work that they do
    """
    n, b, workers = layout.n, layout.block, layout.workers
    close, row_panel, stages = b * CLOSE, b * b * n / rate, len(layout.blocks())
    part = max(layout.rows(worker) for worker in range(workers)) / n
    share = (work * n * n * b / rate + close) * part + STEP
    if workers == 1:
        return stages * share
    pull, signal, least = b * n * itemsize / (PULL if mapped else DASK), *((SIGNAL, 0.0) if mapped else (HOP, GAP))
    chain = 2 * row_panel + close + signal + (workers - 1) * pull
    return row_panel + close + stages * max(share + pull, chain, least)


def choose_workers(
    n: int,
    itemsize: int,
    block: int | None,
    facts: Sequence[WorkerFacts],
    fits: Callable[[Layout], bool],
    work: Callable[[int], float] = lambda _workers: 1.0,
) -> tuple[int, str | None]:
    """How many workers to use, and why: all of a CPU cluster, and of GPUs as many as make the run faster.

    Parameters
    ----------
    fits : whether a run of that layout fits in memory
    work : the part of all work that so many workers do
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
    return chosen, f"{chosen} of {len(facts)} GPUs, about {_time(seconds[chosen])} ({compared}){few}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else duration(seconds)
