"""Attempts whose workers send each other arrays: straight from one to another where they can, else through Dask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributed import Client, Future

from pipelines.workers.attempts import Attempt, held
from pipelines.workers.device_arrays import to_host
from pipelines.workers.panels import Card, Token
from pipelines.workers.progress import Progress
from pipelines.workers.signals import SignalsCard

MEET_SECONDS = 120.0  # limit of mapping the memory of other workers


class Exchange(Attempt):
    """An attempt, the state of each of whose workers has `panels` (`pipelines.workers.panels.Panels`).

    For `meet_signals` it has `signals` (`pipelines.workers.signals.Signals`), too, and the `cards` of all.
    """

    def __init__(self, client: Client, members: list[str], kind: str, run: str, before: Attempt | None = None):
        super().__init__(client, members, kind, run, before)
        self.obstacles: list[list[str | None]] = []  # by worker and owner: why an array has to come through Dask
        self.by_host = False  # arrays that come through Dask are in the memory of the host on their way

    def meet(self, cards: Sequence[Card], what: str, shown: Progress) -> None:
        """Have every worker map the rings of the others, and say how arrays travel; `what` they are called."""
        if len(cards) == 1:
            return
        self.by_host |= len({card.gpu for card in cards}) > 1
        try:
            self.obstacles = self.results([self.submit(_meet, w, cards) for w in range(len(cards))], MEET_SECONDS)
        except TimeoutError:
            raise TimeoutError(
                f"workers did not map each other's memory within {MEET_SECONDS:.0f} s; look at their logs"
            ) from None
        shown.note(_how_they_travel(what, cards, self.obstacles))

    def meet_signals(self, cards: Sequence[Card], signals: Sequence[SignalsCard], what: str, shown: Progress) -> bool:
        """After `meet`, have every worker map the counters of the others, too, and keep the `cards`.

        Returns whether all could map everything. Else `what` they would do by signals is to be scheduled one by one.
        """
        if any(map(any, self.obstacles)):
            return False
        reasons = set(self.results([self.submit(_meet_signals, w, cards, signals) for w in range(len(cards))])) - {None}
        if reasons:
            shown.note(f"{what} are scheduled one by one ({'; '.join(sorted(reasons))})")
        return not reasons

    def sent(self, owner: int, token: Token | Future) -> list[Any]:
        """An array as each worker gets it: its token, or where the owner's memory cannot be mapped, the array."""
        if not any(reasons[owner] for reasons in self.obstacles):
            return [token] * len(self.members)
        array = self._through_dask(owner, token)
        return [array if reasons[owner] else token for reasons in self.obstacles]

    def sent_to(self, receiver: int, owner: int, token: Token) -> Token | Future:
        """The same for one worker, which alone gets it."""
        mapped = not self.obstacles or self.obstacles[receiver][owner] is None
        return token if mapped else self._through_dask(owner, token)

    def _through_dask(self, owner: int, token: Token | Future) -> Future:
        return self.submit(_array, owner, token, self.by_host, priority=10)

    def cancel(self) -> None:
        """Drop all unfinished tasks and the state; nobody's memory is freed while another maps it."""
        alive = [address for address in self.members if address in self.client.nthreads()]
        if alive and len(self.members) > 1:
            self.client.run(_unmap, self.name, workers=alive, on_error="ignore")
        super().cancel()


def arrived(attempt: str, sent: Any) -> Any:
    """The array that a task was sent, as `Panels.take` has it, where the worker computes."""
    panels = held(attempt).panels
    return panels.take(sent) if isinstance(sent, Token) else panels.xp.asarray(sent)


def _how_they_travel(what: str, cards: Sequence[Card], obstacles: list[list[str | None]]) -> str:
    reasons = {reason for row in obstacles for reason in row if reason}
    if reasons:
        some = "some " if any(not all(row) for row in obstacles) else ""
        return f"{some}{what} travel through Dask and host memory ({'; '.join(sorted(reasons))})"
    return f"{what} go straight {'from GPU to GPU' if cards[0].gpu else 'from worker to worker, in shared memory'}"


# The tasks.


def _meet(attempt: str, cards: Sequence[Card]) -> list[str | None]:
    """Map the rings of all: why not, where that fails."""
    return held(attempt).panels.meet(cards)


def _meet_signals(attempt: str, cards: Sequence[Card], signals: Sequence[SignalsCard]) -> str | None:
    """Map the counters of all: why not, where that fails."""
    state = held(attempt)
    state.cards = cards
    return state.signals.meet(signals)


def _array(attempt: str, token: Token, on_host: bool) -> Any:
    """An array for workers that cannot map it; its slot stays as it is until they have it."""
    array = held(attempt).panels.take(token)
    return to_host(array) if on_host else array


def _unmap(attempt: str, dask_worker: Any) -> None:
    """Unmap the rings of others (for `Client.run`)."""
    state = dask_worker.tilepath_state.get(attempt)
    if state is not None:
        state.panels.close()
