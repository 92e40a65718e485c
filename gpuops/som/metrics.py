"""The metrics of self-organizing maps: the distance of a sample x from a unit w, both of d dimensions.

euclidean   square root of the sum of (x_k - w_k)^2
taxicab     sum of |x_k - w_k|
cosine      max(0, 1 - sum of x_k w_k / (|x| |w|)), each |.| the square root of a sum of squares; 1 where |x| |w| is 0

Sums are in float64, one dimension after the other. NaN in x is a missing value: its dimension is left out of the sum,
for cosine also out of both lengths. This module has the formulas on arrays; `bmu_numba`, `update_numba` and `decide.cu`
repeat them in loops. `tests/gpuops/som` compares every copy with a plain definition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops.arrays import library_of
from gpuops.options import one_of

EUCLIDEAN, TAXICAB, COSINE = range(3)
METRICS = {"euclidean": EUCLIDEAN, "taxicab": TAXICAB, "cosine": COSINE}
ALIASES = {"manhattan": "taxicab"}  # scikit-learn's names
TITLES = {"euclidean": "Euclidean", "taxicab": "taxicab", "cosine": "cosine"}  # the names on pictures


def check_metric(metric: str) -> None:
    """Raise ValueError if there is no such metric."""
    one_of("metric", metric, METRICS)


def distances_to_all(samples: Any, codebook: Any, metric: str) -> Any:
    """Return the distance of each sample to each unit.

    Parameters
    ----------
    samples : (k, d) float array
        NaN stands for a missing value.
    codebook : (M, d) float array
        Of the same library, NumPy or CuPy.
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    (k, M) float64 array
    """
    xp = library_of(samples)
    samples, codebook = samples.astype(np.float64), codebook.astype(np.float64)
    absent = xp.isnan(samples)
    some_absent = bool(absent.any())
    samples[absent] = 0
    total, of_units = (xp.zeros((len(samples), len(codebook))) for _ in range(2))
    of_samples = xp.zeros((len(samples), 1))
    for x, w, there in zip(samples.T[..., None], codebook.T, ~absent.T[..., None], strict=True):
        if metric == "cosine":
            total += x * w
            of_samples += x * x
            of_units += there * (w * w)
            continue
        apart = x - w
        if some_absent:
            apart *= there
        total += apart * apart if metric == "euclidean" else abs(apart)
    if metric == "cosine":
        lengths = xp.sqrt(of_samples) * xp.sqrt(of_units)
        whole = lengths > 0
        return xp.where(whole, xp.maximum(1 - total / xp.where(whole, lengths, 1), 0), 1.0)
    return xp.sqrt(total) if metric == "euclidean" else total


def distances_of_rows(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """Return the distance of each row of a (k, d) to the same row of b (k, d), float64 (k,); no value is missing."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    if metric == "euclidean":
        return np.sqrt(((a - b) ** 2).sum(axis=1))
    if metric == "taxicab":
        return abs(a - b).sum(axis=1)
    return np.maximum(1 - (normalized(a) * normalized(b)).sum(axis=1), 0)


def normalized(values: np.ndarray) -> np.ndarray:
    """Return the rows (k, d) scaled to length 1, float64; rows of length 0 stay 0."""
    values = values.astype(np.float64)
    lengths = np.sqrt((values * values).sum(axis=1, keepdims=True))
    return np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)


def greatest_distance(metric: str, d: int, reach: float) -> float:
    """Return an upper bound of the distance between points of d dimensions whose values differ by at most `reach`."""
    return {"euclidean": math.sqrt(d) * reach, "taxicab": d * reach, "cosine": 2.0}[metric]
