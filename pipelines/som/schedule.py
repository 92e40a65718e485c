"""How a map is trained: how reach and rate fall from the first epoch to the last, and when it has settled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

SCHEDULES = ("linear", "exponential")


class OnlineSteps(NamedTuple):
    """Reach and rate of every step of online training, which takes each of n samples once an epoch.

    `seed` draws the order of the samples; both fall as `schedule` says from the first step to the last.
    """

    n: int
    epochs: int
    sigma: tuple[float, float]
    rate: tuple[float, float]
    schedule: str
    seed: int

    def of_epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Reaches and rates of its n steps; the first epoch is 0."""
        parts = np.arange(epoch * self.n, (epoch + 1) * self.n) / max(self.epochs * self.n - 1, 1)
        parts = np.minimum(parts, 1)  # the epochs that a tolerance adds
        return fall(parts, *self.sigma, self.schedule), fall(parts, *self.rate, self.schedule)


class Recipe(NamedTuple):
    """How a map is trained.

    `beginning` says what the first codebook is, `given` is that codebook where it was given. `online` are the steps of
    online training, None for epochs of batch learning with the reaches `sigmas`.
    """

    sigmas: list[float]
    beginning: dict[str, Any]
    given: np.ndarray | None
    tolerance: float | None
    online: OnlineSteps | None

    def is_over(self, epochs: int, errors: Sequence[float]) -> bool:
        """Whether training ends after so many epochs; `errors` are those of the codebooks before the last."""
        return epochs == len(self.sigmas) or settled(errors, self.sigmas, self.tolerance)


def sigma_schedule(
    epochs: int, first: float, last: float, schedule: str = "linear", tolerance: float | None = None
) -> list[float]:
    """The reach of the neighbourhood in every epoch, in units of the grid.

    "linear" takes equal steps from `first` to `last`, "exponential" equal ratios. A single epoch has the first. With a
    tolerance as many epochs again follow with the last, in which the map may settle (`settled`).

    Raises
    ------
    ValueError
        There is no such schedule, there are no epochs, or a reach is not positive.
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule is {schedule!r}; pass one of {', '.join(map(repr, SCHEDULES))}")
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}; a map is trained for one at least")
    for name, value in (("sigma", first), ("sigma_end", last)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}; give a positive number of grid units")
    falling = [float(fall(e / max(epochs - 1, 1), first, last, schedule)) for e in range(epochs)]
    return falling if tolerance is None else falling + [float(last)] * epochs


def settled(errors: Sequence[float], sigmas: Sequence[float], tolerance: float | None) -> bool:
    """Has the quantization error ceased to fall?

    `errors` are those of the codebooks known so far, the first one included; epoch e made codebook e + 1 with
    `sigmas[e]`. The last two are compared once both were made with the last reach: as long as the reach falls, the
    error falls with it, and the first smoothing raises it above that of the first codebook.
    """
    epoch = len(errors) - 3  # which made the last codebook but one
    if tolerance is None or epoch < 0 or not math.isclose(sigmas[epoch], sigmas[-1]):
        return False
    before, now = errors[-2:]
    return before - now < tolerance * before


def fall(part: Any, first: float, last: float, schedule: str) -> Any:
    """The value after a part, 0 to 1, of the way from `first` to `last`."""
    return first + (last - first) * part if schedule == "linear" else first * (last / first) ** part


def first_sigma(rows: int, columns: int, last: float) -> float:
    """The reach to begin with where none is given: half of the longer side, or the last where that is more."""
    return max(max(rows, columns) / 2, last)
