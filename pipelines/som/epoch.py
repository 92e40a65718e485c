"""What an epoch of a self-organizing map does on one device, with any part of the samples.

1. Every part finds the best matching units of its samples and sums up the samples of each unit      `accumulate`
2. The sums of all parts are added, and smoothing them gives the next codebook                       `learn`
3. When training is over, every part counts hits and neighbours, to judge the last codebook          `survey`

All sums are of integers: a value times a power of two, rounded. They are exact, so parts may be cut and added in any
way and the same bits come out; so do the quantization errors, whose distances are summed like that too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpuops import best_matching_units, fixed_point, from_fixed_point, smooth, unit_sums
from gpuops.arrays import like
from gpuops.som.grid import Grid, check_neighbourhood
from gpuops.som.metrics import greatest_distance
from gpuops.som.update import FixedPoint
from pipelines.som.shard import Piece
from pipelines.workers.device_arrays import later, to_host


def check_kernel(kernel: str, online: bool = False) -> None:
    """Refuse a kernel that there is not, and warn of one that batches are not made for."""
    check_neighbourhood(kernel, 1.0)
    if kernel == "mexican_hat" and not online:
        warnings.warn(
            "in batches, the mexican hat divides by sums that may be close to 0, and units may leave the samples; "
            "train online (online=True, --online), or with another kernel",
            stacklevel=4,
        )


@dataclass(frozen=True)
class MapJob:
    """What the work on a map needs to know, of all samples together.

    Attributes
    ----------
    n, d : how many samples, and their dimensions
    largest : of each column; no magnitude of a value exceeds it
    largest_weight : no weight exceeds it; None where samples have no weights
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
        """Units of the integer sums of samples and of weights."""
        return fixed_point(self.n, self.largest, self.largest_weight)

    @property
    def length(self) -> int:
        """Of all integer sums of an epoch, as one array."""
        return self.grid.units * (self.d + (self.d if self.missing else 1)) + len(Judgement._fields)

    def distance_unit(self, codebook: Any) -> Callable[[], float]:
        """The same for distances to units of `codebook`, to be called once a GPU has been given other work."""
        greatest = later(abs(codebook).max().reshape(1))

        def unit() -> float:
            bound = greatest_distance(self.metric, self.d, max(self.largest) + float(greatest()[0]))
            return float(fixed_point(self.n, 1.001 * bound, self.largest_weight).sums)  # 1.001: distances are rounded

        return unit


class Judgement(NamedTuple):
    """Integer sums over samples: of weight times distance, of weight, and of weight where best units are apart."""

    distance: Any
    weight: Any
    apart: Any = 0

    def plus(self, other: Judgement) -> Judgement:
        return Judgement(*(a + b for a, b in zip(self, other, strict=True)))

    def on_host(self) -> Judgement:
        """As whole numbers of Python."""
        return Judgement(*map(int, self))

    def quantization_error(self, job: MapJob, unit: Callable[[], float]) -> float:
        """`unit` is the `MapJob.distance_unit` of the codebook."""
        return int(self.distance) / unit() / (int(self.weight) / job.scale.counts)

    def topographic_error(self) -> float:
        return int(self.apart) / int(self.weight)


class Sums(NamedTuple):
    """Of the samples of every unit, where these lie, in the units of `MapJob.scale`."""

    sums: Any  # int64 (M, d)
    counts: Any  # int64 (M), or (M, d) where values are missing
    judged: Judgement

    @classmethod
    def of(cls, flat: Any, job: MapJob) -> Sums:
        """What `flatten` wrote, views."""
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
        """Write all to an int64 array of `MapJob.length`; such arrays may be added."""
        counts, judged = self.sums.size, len(out) - len(self.judged)
        out[:counts], out[counts:judged] = self.sums.ravel(), self.counts.ravel()
        for at, value in enumerate(self.judged, judged):
            out[at] = value


class Survey(NamedTuple):
    hits: np.ndarray  # int64 (M): samples whose best matching unit it is, whatever their weights
    judged: Judgement


def accumulate(pieces: Iterable[Piece], codebook: Any, job: MapJob) -> Sums:
    """Search and sum up.

    Parameters
    ----------
    pieces : of a worker's samples
    codebook : (M, d) array
        In the dtype of the samples, where the pieces lie.
    job : MapJob

    Notes
    -----
    The store or the estimator has looked at the values, so that nothing waits for the device.
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
    """The next codebook from the sums of all samples.

    Parameters
    ----------
    total : Sums
    codebook : (M, d) array
        Where the sums lie.
    job : MapJob
    sigma : float
        Reach of the neighbourhood, in units of the grid.

    Returns
    -------
    (M, d) array like `codebook`
        Nothing waits for the device.
    """
    sums, counts = from_fixed_point(total.sums, total.counts, job.scale)
    return smooth(sums, counts, codebook, job.grid, sigma, job.kernel)


def survey(pieces: Iterable[Piece], codebook: Any, job: MapJob) -> Survey:
    """Hits, quantization and topographic error of a part."""
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
    """The sums of a piece, numbers or arrays of none dimensions where the piece lies."""
    distances = distances.astype(np.float64)
    if weights is None:
        return Judgement(_whole_sum(distances * unit), len(distances), 0 if apart is None else apart.sum())
    weights = weights.astype(np.float64)
    counts = weights * job.scale.counts
    return Judgement(
        _whole_sum(distances * weights * unit), _whole_sum(counts), 0 if apart is None else _whole_sum(counts * apart)
    )


def _whole_sum(values: Any) -> Any:
    """The sum of rounded values, below 2^63."""
    return values.round().astype(np.int64).sum()
