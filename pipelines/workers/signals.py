"""Counters that the workers of a host show each other, in memory that all of them map.

A message through Dask takes some 5 ms, as it passes through the scheduler; a counter is seen within 0.2 ms. Each worker
alone writes its own, which only grow, so there is nothing to lock. Nobody depends on being answered: a wait has a
limit, after which the worker is free for other tasks, and it ends when its attempt is over.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.workers.attempts import StateLost
from pipelines.workers.mapped_memory import CannotMap, HostMapping, HostMemory, host

PATIENCE, LATE = 10.0, 20.0  # a worker waits for so many seconds, or steps if these are longer, and then gives up
LEAST_SLEEP, MOST_SLEEP = 2e-5, 2e-3  # seconds between two looks: within these bounds,
PATIENCE_SHARE = 1 / 64  # this share of the time waited so far


@dataclass(frozen=True)
class SignalsCard:
    """Where the counters of a worker lie. `name` is unique."""

    name: bytes
    host: str
    handle: bytes | None
    reason: str | None  # why there is no handle


class Signals:
    """The counters of one worker in one attempt, and what it maps of the others' (made in a task).

    Parameters
    ----------
    values : what its counters begin with
    """

    def __init__(self, values: Sequence[int]):
        self._count, name = 16 + 8 * len(values), uuid.uuid4().bytes  # the name first
        handle, reason = None, None
        self._own, self._others = np.array(values, np.int64), list[Any]()
        try:
            self._memory = HostMemory(self._count)
        except CannotMap as error:
            reason = str(error)
        else:
            handle = self._memory.handle
            self._memory.bytes[:16] = np.frombuffer(name, np.uint8)
            self._own = self._memory.bytes[16:].view(np.int64)
            self._own[:] = values
        self.card = SignalsCard(name, host(), handle, reason)

    def meet(self, cards: Sequence[SignalsCard]) -> str | None:
        """Map the counters of `cards`, by worker; returns why that failed, or None."""
        found = []
        for card in cards:
            if card.reason:
                return card.reason
            if card.host != self.card.host:
                return "workers on several hosts"
            try:
                mapped = HostMapping(card.handle or b"", self._count).bytes
            except CannotMap as error:
                return str(error)
            if mapped[:16].tobytes() != card.name:  # a process of another container
                return "what was mapped is not the memory of the other worker"
            found.append(mapped[16:].view(np.int64))
        self._others = found
        return None

    def show(self, counter: int, value: int) -> None:
        """Set a counter of this worker: what it stands for is done."""
        self._own[counter] = value

    def seen(self, worker: int, counter: int) -> int:
        """A counter of any worker."""
        return int(self._others[worker][counter])


def patience(step: float) -> float:
    """How long a worker waits for others, a step of which takes so many seconds."""
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
