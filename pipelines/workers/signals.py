"""Counters in memory that all workers of a host map, so that each worker sees the counters of the others.

A message through Dask takes about 5 ms, as it passes through the scheduler; a counter is seen within 0.2 ms. A worker
writes only its own counter, and counters only grow, so no lock is needed. A wait for a counter has a time limit, after
which the worker is free for other tasks. It also ends when the attempt is over.
"""

from __future__ import annotations

import platform
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.workers.mapped_memory import CannotMap, HostMapping, HostMemory
from pipelines.workers.resident_state import StateLost

PATIENCE, LATE = 10.0, 20.0  # a worker gives up after PATIENCE seconds, or after LATE steps if they take longer
LEAST_SLEEP, MOST_SLEEP = 2e-5, 2e-3  # bounds of the seconds between two looks at a counter
PATIENCE_SHARE = 1 / 64  # seconds between two looks at a counter, as a share of the time waited so far
STORES_IN_ORDER = ("x86_64", "AMD64")  # processors whose stores become visible in program order
BYTES = 24  # bytes of a name and a counter


@dataclass(frozen=True)
class SignalsAddress:
    """The address of a worker's counter; `name` is unique."""

    name: bytes
    handle: bytes | None
    reason: str | None  # why there is no handle


class Signals:
    """The counter of one worker in one attempt, and its mappings of other workers' counters (made in a task).

    The counter begins with 0. A worker that sees a counter must also see everything that the counter's worker wrote
    before. This holds on x86, whose processors keep the order of stores. On other processors `meet` fails.
    """

    def __init__(self) -> None:
        name = uuid.uuid4().bytes  # the first bytes of the memory
        handle, reason = None, None
        self._own, self._others = np.zeros(1, np.int64), list[Any]()
        try:
            if platform.machine() not in STORES_IN_ORDER:
                raise CannotMap(f"{platform.machine()} processors may reorder stores")
            self._memory = HostMemory(BYTES)
        except CannotMap as error:
            reason = str(error)
        else:
            handle = self._memory.handle
            self._memory.bytes[:16] = np.frombuffer(name, np.uint8)
            self._own = self._memory.bytes[16:].view(np.int64)
        self.address = SignalsAddress(name, handle, reason)

    def meet(self, addresses: Sequence[SignalsAddress]) -> str | None:
        """Map the counters of `addresses`, in the order of the workers; returns why that failed, or None."""
        found = []
        for address in addresses:
            if address.reason:
                return address.reason
            try:
                mapped = HostMapping(address.handle or b"", BYTES).bytes
            except CannotMap as error:
                return str(error)
            if mapped[:16].tobytes() != address.name:  # the handle names a process of another container or host
                return "what was mapped is not the memory of the other worker"
            found.append(mapped[16:].view(np.int64))
        self._others = found
        return None

    def show(self, count: int) -> None:
        """Set the counter of this worker."""
        self._own[0] = count

    def seen(self, worker: int) -> int:
        """Return the counter of any worker."""
        return int(self._others[worker][0])


def patience(step: float) -> float:
    """Return the seconds that a worker waits for other workers, if a step of the work takes `step` seconds."""
    return max(PATIENCE, LATE * step)


def wait_until(ready: Callable[[], bool], over: Callable[[], bool], limit: float) -> bool:
    """Wait until something is `ready`, for at most `limit` seconds; returns whether it is.

    Raises
    ------
    StateLost
        The attempt is `over`.
    """
    if ready():
        return True
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < limit:
        if over():
            raise StateLost("the attempt is over")
        time.sleep(min(MOST_SLEEP, max(LEAST_SLEEP, waited * PATIENCE_SHARE)))
        if ready():
            return True
    return False
