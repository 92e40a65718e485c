"""Samples in memory, as the estimators take them: checked, scaled as the map is, and in pieces on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from gpuops import best_matching_units
from gpuops.arrays import unmasked
from gpuops.devices import array_library
from gpuops.som.grid import Grid
from gpuops.som.metrics import distances_to_all
from pipelines.som.epoch import MapJob, accumulate, learn, survey
from pipelines.som.shard import Piece
from pipelines.som.start import given_codebook, pick, principal_plane, products_of, random_rows, steps_for
from pipelines.stores.scaling import LARGEST, Moments, refuse_beyond
from pipelines.workers.device_arrays import to_host
from tilepath.sklearn.annotated import as_table

if TYPE_CHECKING:
    from tilepath.sklearn.trained import TrainedMap


class CheckedSamples(NamedTuple):
    """Samples on a device, and the operations on them."""

    values: np.ndarray  # all samples, on the host
    weights: np.ndarray | None
    pieces: list[Piece]
    job: MapJob
    xp: Any

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return values and weights of the rows from `start` to `stop` (excluded), on the host."""
        return self.values[start:stop], None if self.weights is None else self.weights[start:stop]

    def first_codebook(self, initial: Any, seed: Callable[[], int]) -> np.ndarray:
        """Return the initial codebook, (M, d); `seed` is called if samples are drawn."""
        job, dtype = self.job, self.values.dtype
        moments = Moments(job.d)
        moments.add(self.values)
        moments.finish()
        if not moments.counts.all():
            raise ValueError(f"column {moments.counts.argmin()} of X has no value at all; leave it out")
        if not isinstance(initial, str):
            return given_codebook(initial, job.grid, job.d, dtype)
        if initial == "pca":
            steps = steps_for(job.n, moments.means, moments.minima, moments.maxima, job.largest_weight)
            return principal_plane(products_of(self.pieces, steps), steps, job.grid, dtype)
        if initial == "random":
            codebook = np.empty((job.grid.units, job.d), dtype)
            at, values = pick(self.pieces, random_rows(job.n, job.grid.units, seed()), moments.means)
            codebook[at] = values
            return codebook
        raise ValueError(f"initial is {initial!r}; pass 'pca', 'random' or an array")

    def epoch(self, codebook: np.ndarray, sigma: float) -> tuple[np.ndarray, float]:
        """Return the codebook after an epoch of batch learning, and the quantization error of `codebook`."""
        on_device, unit = self.xp.asarray(codebook), self.job.distance_unit(codebook)
        total = accumulate(self.pieces, on_device, self.job)
        return to_host(learn(total, on_device, self.job, sigma)), total.judged.quantization_error(self.job, unit)

    def errors(self, codebook: np.ndarray) -> tuple[float, float | None]:
        """Return the quantization error of `codebook`, and its topographic error, None for a map of one unit."""
        judged = survey(self.pieces, self.xp.asarray(codebook), self.job).judged
        return judged.quantization_error(self.job, self.job.distance_unit(codebook)), judged.topographic_error(self.job)

    def units(self, codebook: np.ndarray) -> np.ndarray:
        """Return the best matching units of all samples, (N,)."""
        return self.nearest(codebook, 1)[0][:, 0]

    def nearest(self, codebook: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the `top` nearest units of all samples, (N, top), and the distances to the nearest, (N,)."""
        on_device, job = self.xp.asarray(codebook), self.job
        parts = []
        for piece in self.pieces:
            units, distances = best_matching_units(piece.values, on_device, job.metric, top, job.missing)
            parts.append([to_host(found).reshape(len(piece.values), top) for found in (units, distances)])
        units, distances = map(np.concatenate, zip(*parts, strict=True))
        return units, distances[:, 0]

    def distances(self, codebook: np.ndarray, block: int) -> np.ndarray:
        """Return the distances of all samples to all units, (N, M); the device evaluates about `block` at a time."""
        distances = np.empty((self.job.n, len(codebook)), codebook.dtype)
        on_device, step = self.xp.asarray(codebook), max(1, block // len(codebook))
        for piece in self.pieces:
            for start in range(0, len(piece.values), step):
                found = distances_to_all(piece.values[start : start + step], on_device, self.job.metric)
                first = piece.first + start
                distances[first : first + len(found)] = to_host(found.astype(distances.dtype))
        return distances


def checked(som: TrainedMap, X: Any, sample_weight: Any, grid: Grid, reset: bool = False) -> CheckedSamples:
    """Check samples and weights and put them on the device; with `reset`, their dtype becomes the map's."""
    xp, metric = array_library(som.device), som._metric()
    values = _checked_values(som, X, reset)
    greatest, least = (extreme.reduce(values, axis=0, initial=0) for extreme in (np.fmax, np.fmin))
    largest = tuple(np.maximum(greatest, -least).tolist())
    if max(largest) > LARGEST:
        raise ValueError(f"X has a value of magnitude {max(largest):.3g}; a map takes values up to {LARGEST:.3g}")
    if som.missing and (empty := np.isnan(values).all(axis=1)).any():
        raise ValueError(f"row {empty.argmax()} of X has no value at all; leave it out")
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, values, dtype=values.dtype, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("all weights are zero; give at least one sample a positive weight")
    heaviest = None if weights is None else float(weights.max())
    n, d = values.shape
    job = MapJob(grid, metric, som.kernel, n, d, largest, heaviest, bool(som.missing))
    step = max(1, som.piece_bytes // (d * values.itemsize))
    pieces = [
        Piece(i, xp.asarray(values[i : i + step]), None if weights is None else xp.asarray(weights[i : i + step]))
        for i in range(0, n, step)
    ]
    return CheckedSamples(values, weights, pieces, job, xp)


def _checked_values(som: TrainedMap, X: Any, reset: bool) -> np.ndarray:
    """Return the matrix of `X`, scaled as the samples of a loaded map were, after checks by scikit-learn."""
    X = as_table(X)
    _refuse_dates(X)
    values = validate_data(
        som,
        unmasked(X),
        reset=reset,
        dtype=[np.float64, np.float32] if reset else som.codebook_.dtype,
        order="C",
        ensure_all_finite="allow-nan",
    )
    if not som.missing and (absent := np.isnan(values)).any():
        row, column = np.unravel_index(absent.argmax(), absent.shape)
        raise ValueError(
            f"X is NaN in row {row} (from 0), column {som._columns()[column]!r}; if NaN stands for missing values, "
            "pass missing=True"
        )
    if reset or som.scaling_ is None:
        return values
    scaled = som.scaling_.apply(values)
    refuse_beyond(scaled, values.dtype, "X", som._columns())
    return scaled.astype(values.dtype)


def _refuse_dates(X: Any) -> None:
    """Raise TypeError if a column of `X` holds dates or times, which NumPy would silently convert to numbers."""
    framed = hasattr(X, "columns") and hasattr(X, "dtypes")
    for name, dtype in zip(X.columns, X.dtypes, strict=True) if framed else [(0, getattr(X, "dtype", None))]:
        if getattr(dtype, "kind", "") in ("m", "M"):
            raise TypeError(f"column {name!r} of X holds dates or times; turn them into numbers, or leave them out")
