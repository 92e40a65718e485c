"""Resources of workers, measured before a run. A run that cannot fit is refused; the message says what would fit."""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numba
import numpy as np
from distributed import Client, get_worker
from distributed.comm import get_address_host
from distributed.utils import get_ip

from gpuops import minplus_update
from gpuops.memory import available_memory, size
from gpuops.options import number
from pipelines.stores.errors import StoreError
from pipelines.stores.place import unfinished_bytes
from pipelines.stores.schema import counted
from pipelines.workers.attempts import Attempt, Run, retried
from pipelines.workers.device_arrays import array_library
from pipelines.workers.resident_state import has_gpu

if TYPE_CHECKING:
    from pipelines.workers.plans import Plan

MEMORY_SHARE = 0.9  # share of the free memory that a run may use; the allocator and the system need some, too
WRITE_RATE = 0.4e9  # bytes/s of compressed chunks that one process writes, from the low end of measurements
MEASURE_SECONDS = 300.0  # time limit of measuring: a GPU compiles, and a busy worker first finishes its tasks


class DoesNotFitError(ValueError):
    """The run needs more memory or disk than is free; the message says how much, and which run would fit.

    Attributes
    ----------
    plan : tilepath.Plan or None
        The plan of the refused run; None if the run was refused before it had a plan.
    """

    plan: Plan | None = None


@dataclass(frozen=True)
class WorkerFacts:
    """The resources of one worker, measured on it by `worker_facts`."""

    address: str
    host: str
    device: str  # "CPU" or the name of the GPU
    gpu: bool
    free_memory: int  # free bytes of the GPU, or of the host if the worker has no GPU
    rate: float  # relaxations/s of `minplus_update`
    threads: int = 1  # CPU threads that operations use; 1 for a GPU
    host_memory: int = 0  # free bytes of the host
    # Bytes of `free_memory` and of the host's memory that a run may use, if options ask for less than is free.
    device_limit: int | None = None
    host_limit: int | None = None


def measure_workers(client: Client, dtype: str | None, seconds: float = MEASURE_SECONDS) -> list[WorkerFacts]:
    """Return the resources of all workers, measured by `worker_facts` on each; repeated if a worker is lost meanwhile.

    Raises
    ------
    TimeoutError
        A worker does not answer within that many `seconds`.
    ConnectionError
        Workers are lost repeatedly.
    """
    return retried(client, "measure", lambda attempt: _measured(attempt, dtype, seconds))


def measure_members(client: Client, members: list[str]) -> list[WorkerFacts]:
    """Return the resources of `members`; raises WorkersChanged, for `workers.attempts`, after the loss of a worker."""
    attempt = Attempt(Run(client, members))
    attempt.kind = "measure"
    try:
        return _measured(attempt, None, MEASURE_SECONDS)
    finally:
        attempt.cancel()


def _measured(attempt: Attempt, dtype: str | None, seconds: float) -> list[WorkerFacts]:
    facts = [attempt.submit(worker_facts, worker, dtype, stateless=True) for worker in range(len(attempt.members))]
    try:
        return attempt.results(facts, seconds)
    except TimeoutError:
        silent = [address for address, fact in zip(attempt.members, facts, strict=True) if not fact.done()]
        if not silent:  # the last answer came after the limit
            return attempt.results(facts)
        raise TimeoutError(
            f"no answer from {', '.join(silent)} within {seconds:.0f} s; look at the worker's log, or restart it"
        ) from None


def worker_facts(dtype: str | None) -> WorkerFacts:
    """Measure this worker (a task): its free memory, and the rate of its min-plus product in `dtype`.

    Measuring also compiles the product. With `dtype` None the product is not measured, and its rate is 0.
    """
    address, gpu, on_host = get_worker().address, has_gpu(), available_memory()
    host = get_address_host(address)
    device, free, threads = "CPU", on_host, numba.config.NUMBA_NUM_THREADS
    if gpu:
        import cupy

        threads = 1
        free = cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes()
        device = str(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode())
    rate = 0.0 if dtype is None else _rate(address, dtype, gpu)
    return WorkerFacts(address, host, device, gpu, int(free), rate, threads, on_host)


@cache
def _rate(_address: str, dtype: str, gpu: bool) -> float:
    """Measure the product on a worker, which also compiles it: relaxations/s.

    A worker measures once for each dtype, as that takes about as long as a small run.
    """
    xp, edge = array_library(), 2048 if gpu else 512
    c = xp.ones((edge, edge), dtype=dtype)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        minplus_update(c, c, c, nonnegative=True)
        if gpu:
            xp.cuda.get_current_stream().synchronize()
        best = min(best, time.perf_counter() - begin)
    return float(edge**3 / best)


def within_budget(facts: list[WorkerFacts], device: int | None, host: int | None) -> list[WorkerFacts]:
    """Return `facts` with free memory reduced to a budget: `device` bytes of each GPU, and `host` bytes of each host.

    A budget of None leaves all that is free.
    """
    for name, budget in ("device_memory", device), ("host_memory", host):
        if budget is not None:
            number(name, budget, 0)
    if device is not None and not any(fact.gpu for fact in facts):
        raise ValueError(
            "device_memory (--device-memory) limits the memory of GPUs, and the workers compute on CPUs; limit "
            "host_memory (--host-memory)"
        )

    def limited(budget: int | None, free: int) -> bool:
        return budget is not None and budget < MEMORY_SHARE * free

    def free(bytes_free: int, budget: int | None) -> int:  # MEMORY_SHARE of the result is the budget
        return bytes_free if budget is None else min(bytes_free, math.ceil(budget / MEMORY_SHARE) + 1)

    return [
        replace(
            fact,
            free_memory=free(fact.free_memory, device if fact.gpu else host),
            host_memory=free(fact.host_memory, host),
            device_limit=device if fact.gpu and limited(device, fact.free_memory) else None,
            host_limit=host if limited(host, fact.host_memory) else None,
        )
        for fact in facts
    ]


def on_devices(facts: Sequence[WorkerFacts]) -> str:
    """Return the workers and their devices as text for the user, such as "2 workers on NVIDIA H100 80GB HBM3"."""
    return f"{counted(len(facts), 'worker')} on {', '.join(sorted({fact.device for fact in facts}))}"


def place_name(place: str) -> str:
    """Return the name of a place of `Needs.by_place` for messages: "this machine" instead of its network address."""
    gpu = "://" in place
    here = re.split("[:/]", place.split("://")[-1])[0] in ("127.0.0.1", get_ip())
    if gpu:
        return "a GPU of this machine" if here else f"the GPU of {place}"
    return "this machine" if here else place


@dataclass(frozen=True)
class Needs:
    """The bytes that a run takes.

    Attributes
    ----------
    device : for each worker, bytes of its GPU, or of its host if it has no GPU; () for none
    host : for each worker, further bytes of its host; () for none
    disk : bytes of the disk of the output
    """

    device: tuple[int, ...] = ()
    host: tuple[int, ...] = ()
    disk: int = 0

    def __str__(self) -> str:
        return f"memory {size(sum(self.device) + sum(self.host))}, disk {size(self.disk)}"

    def by_place(self, facts: Sequence[WorkerFacts]) -> dict[str, tuple[int, int]]:
        """Return bytes needed and bytes free by place; a place is a GPU, or a host with all its workers."""
        places: dict[str, tuple[int, int]] = {}
        on_device = ((f.address if f.gpu else f.host, f.free_memory) for f in facts)
        on_host = ((f.host, f.host_memory or f.free_memory) for f in facts)
        for where, counts in (on_device, self.device), (on_host, self.host):
            for (place, most), count in zip(where, counts, strict=bool(counts)):
                needed, free = places.get(place, (0, 0))
                places[place] = needed + count, max(free, most)
        return places

    def most(self, facts: Sequence[WorkerFacts]) -> int:
        """Return the bytes needed in the place where most are."""
        return max((needed for needed, _ in self.by_place(facts).values()), default=0)

    def fits(self, facts: Sequence[WorkerFacts]) -> bool:
        """Return whether every place has the memory for its workers."""
        return all(needed <= MEMORY_SHARE * free for needed, free in self.by_place(facts).values())

    def refuse_memory(self, what: str, facts: Sequence[WorkerFacts], cure: str | Callable[[int], str]) -> None:
        """Raise DoesNotFitError if the workers need more memory than a place has free.

        Parameters
        ----------
        what : subject of the message, such as "3,353 vertices"
        cure : the advice that ends the message, or a function that returns it, given the free bytes of the place
        """
        for place, (needed, free) in self.by_place(facts).items():
            if needed > MEMORY_SHARE * free:
                advice = cure if isinstance(cure, str) else cure(free)
                raise DoesNotFitError(
                    f"{what} need {size(needed)} on {place_name(place)}, {_available(place, facts, free)}. {advice}"
                )


def _available(place: str, facts: Sequence[WorkerFacts], free: int) -> str:
    """Return a clause on the memory of a place for messages: what is free, or the option that allows less."""
    for fact in facts:
        if fact.gpu and fact.address == place and fact.device_limit is not None:
            return f"where the limit of device_memory (--device-memory) is {size(fact.device_limit)}"
        if fact.host == place and fact.host_limit is not None:
            return f"where the limit of host_memory (--host-memory) is {size(fact.host_limit)}"
    return f"which has {size(free)} free"


def this_process() -> list[WorkerFacts]:
    """Return the memory of this process in the form of the resources of a worker, for work without a cluster."""
    free = available_memory()
    return [WorkerFacts("", "127.0.0.1", "CPU", False, free, 0.0, host_memory=free)]


def refuse_disk(count: int, out: str | os.PathLike[str], cure: str, unfinished: int = 0) -> None:
    """Raise DoesNotFitError if the disk of `out` has less than `count` bytes free; `cure` ends the message.

    The bytes of an unfinished store at `out` count as free (`pipelines.stores.place.growing_place`), and so do
    `unfinished` bytes of a file. A StoreError is raised if `out` is not on a disk, such as in /proc.
    """
    folder = Path(out).absolute().parent
    while not folder.exists():
        folder = folder.parent
    available = shutil.disk_usage(folder).free + unfinished_bytes(out) + unfinished
    if count > available:
        if os.statvfs(folder).f_blocks == 0:
            raise StoreError(f"{out}: cannot be written ({folder} is not on a disk); choose another place")
        raise DoesNotFitError(
            f"{out} may take {size(count)}, but the disk has {size(available)} free. "
            f"Free some, choose another disk, or {cure}"
        )
