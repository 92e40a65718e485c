"""How arrays travel between workers: by mapping the owner's ring, or else as futures of Dask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from distributed import Future

from pipelines.workers.attempts import Attempt
from pipelines.workers.device_arrays import to_host
from pipelines.workers.resident_state import state_of
from pipelines.workers.rings import RingAddress, Token
from pipelines.workers.stage_graph import Array

MEET_SECONDS = 120.0  # time limit of mapping the memory of other workers


class Exchange:
    """The rings of an attempt's workers. The state that a worker keeps has its ring as `ring`.

    Every worker maps the rings of all other workers, until the attempt is cancelled.

    Parameters
    ----------
    addresses : addresses of the rings, by worker
    what : name of the arrays in messages

    Raises
    ------
    TimeoutError
        The workers do not answer.
    """

    def __init__(self, attempt: Attempt, addresses: Sequence[RingAddress], what: str):
        self.attempt, self.addresses = attempt, addresses
        self._by_host = len({address.gpu for address in addresses}) > 1
        self._obstacles: list[list[str | None]] = []  # by reader and owner: why an array has to go through Dask
        attempt.exchange = self
        if len(addresses) > 1 and any(address.count for address in addresses):
            self._obstacles = self._meet()
            attempt.bar.note(_how_they_travel(what, addresses, self._obstacles))

    @property
    def mapped(self) -> bool:
        """Whether every worker maps the rings of all other workers."""
        return not any(map(any, self._obstacles))

    def sent(self, readers: Collection[int], array: Array, after: Future | None = None) -> dict[int, Token | Future]:
        """Return what each reader is sent for an array: its token, or a future of the array.

        A reader that cannot map the owner's ring gets the future. `after` is the task that publishes the array, if that
        task may not be done yet.
        """
        owner, token = array.owner, token_of(self.addresses, array)
        far = {reader for reader in readers if self._obstacles and self._obstacles[reader][owner]}
        future = self.attempt.submit(_array, owner, token, self._by_host, after, priority=10) if far else None
        return {reader: future if future and reader in far else token for reader in readers}

    def meet_signals(self) -> str | None:
        """Have every worker map the counters of all other workers, too; returns why that is not possible, or None."""
        if not self.mapped:
            return "workers do not map each other's memory"
        reasons = set(self._each(_meet_signals)) - {None}
        return "; ".join(sorted(reasons)) or None

    def end(self, workers: list[str]) -> None:
        """Have `workers` unmap the rings of other workers: memory is not freed while another worker maps it."""
        if len(self.addresses) > 1:
            self.attempt.client.run(_unmap, self.attempt.name, workers=workers, on_error="ignore")

    def _meet(self) -> list[list[str | None]]:
        try:
            return self._each(_meet)
        except TimeoutError:
            raise TimeoutError(
                f"workers did not map each other's memory within {MEET_SECONDS:.0f} s; look at their logs"
            ) from None

    def _each(self, task: Any) -> list[Any]:
        tasks = [self.attempt.submit(task, w, self.addresses) for w in range(len(self.addresses))]
        return self.attempt.results(tasks, MEET_SECONDS)


def token_of(addresses: Sequence[RingAddress], array: Array) -> Token:
    """Return the token for taking an array from the ring of its owner."""
    return Token(addresses[array.owner], array.stage, array.slot, array.shape, array.dtype, array.start)


def _how_they_travel(what: str, addresses: Sequence[RingAddress], obstacles: list[list[str | None]]) -> str:
    reasons = {reason for row in obstacles for reason in row if reason}
    if reasons:
        some = "some " if any(not all(row) for row in obstacles) else ""
        return f"{some}{what} travel through Dask and host memory ({'; '.join(sorted(reasons))})"
    return f"{what} go straight {'from GPU to GPU' if addresses[0].gpu else 'from worker to worker, in shared memory'}"


# The tasks.


def _meet(attempt: str, addresses: Sequence[RingAddress]) -> list[str | None]:
    """Map the rings of all workers; returns by owner why that failed, or None."""
    return state_of(attempt).ring.meet(addresses)


def _meet_signals(attempt: str, addresses: Sequence[RingAddress]) -> str | None:
    """Map the counters of all workers, and keep the addresses of their rings; returns why that failed, or None."""
    return state_of(attempt).tasks.meet(addresses)


def _array(attempt: str, token: Token, on_host: bool, _after: Any) -> Any:
    """Return an array for workers that cannot map its slot; the slot is not written again before they have it."""
    ring = state_of(attempt).ring
    # Where rings gather, the memory plan has no room on a device for a second copy: the array travels on the host.
    return to_host(ring.take(token)) if on_host or ring.gathers else ring.take(token)


def _unmap(attempt: str, dask_worker: Any) -> None:
    """Unmap the rings of other workers (for `Client.run`)."""
    state = dask_worker.tilepath_state.get(attempt)
    if state is not None:
        state.ring.close()
