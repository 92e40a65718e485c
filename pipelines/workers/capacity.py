"""What workers have, measured before a run starts; a run that cannot fit is refused, naming one that would."""

from __future__ import annotations

import math
import os
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
from distributed import Client, get_worker
from distributed.comm import get_address_host

from gpuops import minplus_update
from pipelines.stores import store_bytes
from pipelines.workers.attempts import Attempt, attempts, has_gpu
from pipelines.workers.memory import available_memory
from pipelines.workers.progress import size

MEMORY_SHARE = 0.9  # of the free memory; the rest is for the allocator and the system
WRITE_RATE = 0.4e9  # bytes/s of compressed chunks one process was seen to write, low rather than high
MEASURE_SECONDS = 300.0  # limit of measuring: a GPU compiles, and a busy worker first finishes its tasks


class DoesNotFitError(ValueError):
    """The run needs more memory or disk than is free; the message says how much, and what would fit."""


@dataclass(frozen=True)
class WorkerFacts:
    """The resources of one worker, measured on it by `worker_facts`."""

    address: str
    host: str
    device: str  # "cpu" or the name of the GPU
    gpu: bool
    free_memory: int  # bytes, of the GPU where there is one
    rate: float  # relaxations/s of `minplus_update`
    threads: int = 1  # of the CPU that operations use; 1 for a GPU
    host_memory: int = 0  # bytes free on the host


def measure_workers(client: Client, dtype: str | None, seconds: float = MEASURE_SECONDS) -> list[WorkerFacts]:
    """The resources of all workers, by `worker_facts` on each; repeated if a worker is lost meanwhile.

    Raises
    ------
    TimeoutError
        A worker does not answer within so many `seconds`.
    ConnectionError
        Workers are lost repeatedly.
    """
    return attempts(client, lambda members: measure_members(client, members, dtype, seconds))


def measure_members(
    client: Client, members: list[str], dtype: str | None, seconds: float = MEASURE_SECONDS
) -> list[WorkerFacts]:
    """The resources of these workers, for an attempt of `workers.attempts`: raises WorkersChanged if one is lost."""
    attempt = Attempt(client, members, "measure", uuid.uuid4().hex[:8])
    facts = [attempt.submit(worker_facts, worker, dtype, stateless=True) for worker in range(len(members))]
    try:
        return attempt.results(facts, seconds)
    except TimeoutError:
        silent = ", ".join(address for address, fact in zip(members, facts, strict=True) if not fact.done())
        raise TimeoutError(
            f"no answer from {silent} within {seconds:.0f} s; look at the worker's log, or restart it"
        ) from None
    finally:
        attempt.cancel()


def worker_facts(dtype: str | None) -> WorkerFacts:
    """Measure this worker (a task): its free memory, and the rate of its product in `dtype`, which also compiles it.

    With `dtype` None the product is not measured, and its rate is 0.
    """
    address, gpu, on_host = get_worker().address, has_gpu(), available_memory()
    host = get_address_host(address)
    xp: Any = np
    edge, device, free, threads = 512, "CPU", on_host, numba.config.NUMBA_NUM_THREADS
    if gpu:
        import cupy

        xp, edge, threads = cupy, 2048, 1
        free = xp.cuda.Device().mem_info[0] + xp.get_default_memory_pool().free_bytes()
        name = xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)["name"].decode()
        device = str(name)
    if dtype is None:
        return WorkerFacts(address, host, device, gpu, int(free), 0.0, threads, on_host)
    c = xp.ones((edge, edge), dtype=dtype)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        minplus_update(c, c, c, nonnegative=True)
        if gpu:
            xp.cuda.get_current_stream().synchronize()
        best = min(best, time.perf_counter() - begin)
    return WorkerFacts(address, host, device, gpu, int(free), edge**3 / best, threads, on_host)


def within_budget(facts: list[WorkerFacts], device: int | None, host: int | None) -> list[WorkerFacts]:
    """Facts of workers that may use so many bytes only: of each GPU, and of each host; None: all that is free."""

    def free(bytes_free: int, budget: int | None) -> int:  # of which MEMORY_SHARE is the budget
        return bytes_free if budget is None else min(bytes_free, math.ceil(budget / MEMORY_SHARE) + 1)

    return [
        replace(
            fact,
            free_memory=free(fact.free_memory, device if fact.gpu else host),
            host_memory=free(fact.host_memory, host),
        )
        for fact in facts
    ]


def memory_by_place(worker_bytes: Sequence[int], facts: list[WorkerFacts]) -> dict[str, tuple[int, int]]:
    """Bytes needed and bytes free by place: each GPU is one, and so are all CPU workers of a host together."""
    places: dict[str, tuple[int, int]] = {}
    for fact, count in zip(facts, worker_bytes, strict=True):
        place = fact.address if fact.gpu else fact.host
        needed, free = places.get(place, (0, 0))
        places[place] = needed + count, max(free, fact.free_memory)
    return places


def refuse_memory(what: str, worker_bytes: Sequence[int], facts: list[WorkerFacts], cure: Callable[[int], str]) -> None:
    """Raise DoesNotFitError if the workers need more memory than a place has; `cure` gets the bytes it has."""
    for place, (needed, free) in memory_by_place(worker_bytes, facts).items():
        if needed > MEMORY_SHARE * free:
            raise DoesNotFitError(f"{what} need {size(needed)} on {place}, which has {size(free)} free. {cure(free)}")


def refuse_disk(count: int, out: str | os.PathLike[str], cure: str) -> None:
    """Raise DoesNotFitError if the disk of `out` has less than `count` bytes."""
    folder = Path(out).absolute().parent
    while not folder.exists():
        folder = folder.parent
    available = shutil.disk_usage(folder).free
    if Path(out).is_dir():  # begun before, or to be overwritten
        available += store_bytes(out)
    if count > available:
        raise DoesNotFitError(
            f"{out} may take {size(count)}, but the disk has {size(available)} free. "
            f"Free some, choose another disk, or {cure}"
        )
