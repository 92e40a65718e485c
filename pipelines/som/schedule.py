"""How the radius of the neighbourhood and the learning rate fall during training, and when a map has settled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuops.options import one_of, whole
from gpuops.som.grid import Grid

SCHEDULES = ("linear", "exponential")


class OnlineSteps(NamedTuple):
    """Radius and rate of every step of online training, which takes each of n samples once an epoch.

    Radius and rate fall as `schedule` says, from the first step to the last. `seed` draws the order of the samples.
    """

    n: int
    epochs: int
    sigma: tuple[float, float]
    rate: tuple[float, float]
    schedule: str
    seed: int

    def of_epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Return radii and rates of the n steps of an epoch; the first epoch is 0."""
        parts = np.arange(epoch * self.n, (epoch + 1) * self.n) / max(self.epochs * self.n - 1, 1)
        parts = np.minimum(parts, 1)  # 1 in the epochs that a tolerance adds
        return fall(parts, *self.sigma, self.schedule), fall(parts, *self.rate, self.schedule)


def check_rates(rate: float, rate_end: float) -> None:
    """Raise ValueError unless both learning rates of online training are above 0 and up to 1."""
    for name, value in (("rate", rate), ("rate_end", rate_end)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} is {value}; give a part of the way to a sample, above 0 and up to 1")


class Recipe(NamedTuple):
    """The inputs and options of a training.

    Attributes
    ----------
    sigmas : the radius of the neighbourhood in every epoch of batch training
    beginning : the record of where the first codebook comes from
    given : the first codebook if the caller gave it, else None
    tolerance : as for `settled`
    online : the steps of online training, None for batch training
    """

    sigmas: list[float]
    beginning: dict[str, Any]
    given: np.ndarray | None
    tolerance: float | None
    online: OnlineSteps | None

    def is_over(self, epochs: int, errors: Sequence[float]) -> bool:
        """Return whether training ends after `epochs` epochs; `errors` has an error for every codebook but the last."""
        return epochs == len(self.sigmas) or settled(errors, self.sigmas, self.tolerance)


def sigma_schedule(
    epochs: int, first: float, last: float, schedule: str = "linear", tolerance: float | None = None
) -> list[float]:
    """Return the radius of the neighbourhood in every epoch, in units of the grid.

    "linear" takes equal steps from `first` to `last`, "exponential" equal ratios. A single epoch has `first`.
    With a tolerance, `epochs` further epochs follow with the radius `last`, in which the map may settle (`settled`).

    Raises
    ------
    ValueError
        There is no such schedule, there are no epochs, or a radius or the tolerance is out of range.
    """
    one_of("schedule", schedule, SCHEDULES)
    whole("epochs", epochs, 1)
    for name, value in (("sigma", first), ("sigma_end", last)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}; give a positive number of grid units")
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}; give a fraction of the quantization error, such as 0.001")
    falling = [float(fall(e / max(epochs - 1, 1), first, last, schedule)) for e in range(epochs)]
    return falling if tolerance is None else falling + [float(last)] * epochs


def settled(errors: Sequence[float], sigmas: Sequence[float], tolerance: float | None) -> bool:
    """Return whether the quantization error has ceased to fall.

    `errors` are the errors of all codebooks known so far, the first codebook included. Epoch e made codebook e + 1 with
    the radius `sigmas[e]`. The last two errors are compared only if both codebooks were made with the last radius, as
    the error falls with the radius. The first codebook is never compared, as the first smoothing raises the error.
    """
    epoch = len(errors) - 3  # the epoch that made the last codebook but one
    if tolerance is None or epoch < 0 or not math.isclose(sigmas[epoch], sigmas[-1]):
        return False
    before, now = errors[-2:]
    return before - now < tolerance * before


def fall(part: Any, first: float, last: float, schedule: str) -> Any:
    """Return the value at `part` (0 to 1) of the schedule from `first` to `last`."""
    return first + (last - first) * part if schedule == "linear" else first * (last / first) ** part


def first_and_last(grid: Grid, sigma: float | None, sigma_end: float) -> tuple[float, float]:
    """Return the radius of the first and of the last epoch, in units of the grid.

    By default the first is half of the longer side of the grid, but at least the last.
    """
    last = float(sigma_end)
    return max(max(grid.rows, grid.columns) / 2, last) if sigma is None else float(sigma), last
