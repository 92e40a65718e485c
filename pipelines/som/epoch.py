"""The steps of an epoch of a self-organizing map, on one device and for any part of the samples.

1. `accumulate`: find the best matching units of the samples of a part, and sum up the samples of each unit.
2. `learn`: smooth the sums of all parts into the next codebook. Online, `learn_online` does both steps, for one sample
   after another.
3. `survey`: after the last epoch, count hits and neighbours of a part, to judge the last codebook.

All sums are sums of integers: each value is multiplied by a power of two and rounded. Such sums are exact, so the same
bits result however samples are cut into parts and in whatever order parts are added. Distances are summed in the same
manner, so the bits of the quantization errors do not change either.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpuops import best_matching_units, fixed_point, from_fixed_point, smooth, train_online, unit_sums
from gpuops.arrays import like
from gpuops.som.grid import Grid, check_neighbourhood
from gpuops.som.metrics import greatest_distance
from gpuops.som.update import FixedPoint
from pipelines.som.schedule import OnlineSteps
from pipelines.som.shard import Piece
from pipelines.som.start import random_rows
from pipelines.workers.device_arrays import later, to_host


def check_kernel(kernel: str, online: bool = False) -> None:
    """Raise ValueError if `kernel` is unknown, and warn of a kernel that does not suit batch training."""
    check_neighbourhood(kernel, 1.0)
    if kernel == "mexican_hat" and not online:
        warnings.warn(
            "in batches, the mexican hat divides by sums that may be close to 0, and units may leave the samples; "
            "train online (online=True, --online), or with another kernel",
            stacklevel=4,
        )


@dataclass(frozen=True)
class MapJob:
    """The map to train, and the figures of all samples that every part needs.

    Attributes
    ----------
    n, d : number of samples, and of their dimensions
    largest : for each column, a bound on the magnitude of its values
    largest_weight : bound on the weights; None if samples have no weights
    missing : whether values may be missing
    """

    grid: Grid
    metric: str
    kernel: str
    n: int
    d: int
    largest: tuple[float, ...]
    largest_weight: float | None
    missing: bool

    @cached_property
    def scale(self) -> FixedPoint:
        """The units of the integer sums of samples and of weights."""
        return fixed_point(self.n, self.largest, self.largest_weight)

    @property
    def length(self) -> int:
        """The length of an array of all integer sums of an epoch."""
        return self.grid.units * (self.d + (self.d if self.missing else 1)) + len(Judgement._fields)

    def distance_unit(self, codebook: Any) -> Callable[[], float]:
        """Return a function that returns the unit of the integer sum of distances to units of `codebook`.

        The function waits for a GPU, so call it after the GPU has been given other work.
        """
        greatest = later(abs(codebook).max().reshape(1))

        def unit() -> float:
            bound = greatest_distance(self.metric, self.d, max(self.largest) + float(greatest()[0]))
            return float(fixed_point(self.n, 1.001 * bound, self.largest_weight).sums)  # 1.001: distances are rounded

        return unit


class Judgement(NamedTuple):
    """Integer sums over samples: weight times distance, weight, and weight of samples with two best units apart."""

    distance: Any
    weight: Any
    apart: Any = 0

    def plus(self, other: Judgement) -> Judgement:
        return Judgement(*(a + b for a, b in zip(self, other, strict=True)))

    def on_host(self) -> Judgement:
        """Return the sums as Python's int."""
        return Judgement(*map(int, self))

    def quantization_error(self, job: MapJob, unit: Callable[[], float]) -> float:
        """Return the weighted mean distance; `unit` is the `MapJob.distance_unit` of the codebook."""
        return int(self.distance) / unit() / (int(self.weight) / job.scale.counts)

    def topographic_error(self, job: MapJob) -> float | None:
        """Return the share of the weight with two best units apart; None for a map of one unit."""
        return int(self.apart) / int(self.weight) if job.grid.units > 1 else None


class Sums(NamedTuple):
    """Sums over the samples of every unit, on the device of the samples, in the units of `MapJob.scale`."""

    sums: Any  # int64 (M, d)
    counts: Any  # int64 (M), or (M, d) where values are missing
    judged: Judgement

    @classmethod
    def of(cls, flat: Any, job: MapJob) -> Sums:
        """Return views of the sums that `flatten` wrote to `flat`."""
        shape = (job.grid.units, job.d)
        judged = len(flat) - len(Judgement._fields)
        counts = flat[job.grid.units * job.d : judged]
        return cls(
            flat[: job.grid.units * job.d].reshape(shape),
            counts.reshape(shape if job.missing else shape[:1]),
            Judgement(*flat[judged:]),
        )

    def plus(self, other: Sums) -> Sums:
        return Sums(self.sums + other.sums, self.counts + other.counts, self.judged.plus(other.judged))

    def flatten(self, out: Any) -> None:
        """Write all sums to an int64 array of length `MapJob.length`; such arrays may be added."""
        counts, judged = self.sums.size, len(out) - len(self.judged)
        out[:counts], out[counts:judged] = self.sums.ravel(), self.counts.ravel()
        for at, value in enumerate(self.judged, judged):
            out[at] = value


class Survey(NamedTuple):
    """Hits of every unit, and the sums that judge the codebook."""

    hits: np.ndarray  # int64 (M): number of samples whose best matching unit is the unit, weights not counted
    judged: Judgement


def accumulate(pieces: Iterable[Piece], codebook: Any, job: MapJob) -> Sums:
    """Find the best matching units of the samples, and sum up the samples of each unit.

    Parameters
    ----------
    pieces : the samples of a worker
    codebook : (M, d) array
        In the dtype of the samples, and on their device.
    job : MapJob

    Notes
    -----
    The values are not validated here, as that would wait for the device: the store or the estimator validated them.
    """
    total: Sums | None = None
    unit = job.distance_unit(codebook)
    for piece in pieces:
        units, distances = best_matching_units(piece.values, codebook, job.metric, missing=job.missing, validate=False)
        found = unit_sums(piece.values, units, job.grid.units, piece.weights, job.missing, job.scale, validate=False)
        part = Sums(*found, _judge(distances, None, piece.weights, unit(), job))
        total = part if total is None else total.plus(part)
    return Sums.of(like(codebook, np.zeros(job.length, np.int64)), job) if total is None else total


def learn(total: Sums, codebook: Any, job: MapJob, sigma: float) -> Any:
    """Return the next codebook from the sums of all samples, without waiting for the device.

    Parameters
    ----------
    total : Sums
    codebook : (M, d) array
        On the device of the sums.
    job : MapJob
    sigma : float
        Radius of the neighbourhood, in units of the grid.

    Returns
    -------
    (M, d) array like `codebook`
    """
    sums, counts = from_fixed_point(total.sums, total.counts, job.scale)
    return smooth(sums, counts, codebook, job.grid, sigma, job.kernel)


def learn_online(
    samples: Piece, codebook: np.ndarray, job: MapJob, steps: OnlineSteps, number: int
) -> tuple[np.ndarray, float]:
    """Take a step for each of all `samples`, on the host, in an order drawn for epoch `number`.

    Returns the codebook after the epoch, and the quantization error of `codebook`.
    """
    error = survey([samples], codebook, job).judged.quantization_error(job, job.distance_unit(codebook))
    order = random_rows(job.n, job.n, (steps.seed + number) % 2**64)
    sigmas, rates = steps.of_epoch(number)
    options = job.kernel, job.metric, job.missing
    return train_online(codebook, samples.values, order, job.grid, sigmas, rates, *options), error


def survey(pieces: Iterable[Piece], codebook: Any, job: MapJob) -> Survey:
    """Return hits, and the sums for the quantization and the topographic error, of a part of the samples."""
    hits = np.zeros(job.grid.units, np.int64)
    judged = Judgement(0, 0)
    unit = job.distance_unit(codebook)
    top = min(2, job.grid.units)
    for piece in pieces:
        units, distances = best_matching_units(piece.values, codebook, job.metric, top, job.missing)
        apart = None if top == 1 else ~job.grid.adjacent(units[:, 0], units[:, 1])
        nearest, distances = (units, distances) if top == 1 else (units[:, 0], distances[:, 0])
        hits += np.bincount(to_host(nearest), minlength=job.grid.units)
        judged = judged.plus(_judge(distances, apart, piece.weights, unit(), job))
    return Survey(hits, judged.on_host())


def _judge(distances: Any, apart: Any, weights: Any, unit: float, job: MapJob) -> Judgement:
    """Return the sums of a piece: scalars, or 0-d arrays on the device of the piece."""
    distances = distances.astype(np.float64)
    if weights is None:
        return Judgement(_whole_sum(distances * unit), len(distances), 0 if apart is None else apart.sum())
    weights = weights.astype(np.float64)
    counts = weights * job.scale.counts
    return Judgement(
        _whole_sum(distances * weights * unit), _whole_sum(counts), 0 if apart is None else _whole_sum(counts * apart)
    )


def _whole_sum(values: Any) -> Any:
    """Return the sum of the rounded values, as int64; it must be below 2^63."""
    return values.round().astype(np.int64).sum()
