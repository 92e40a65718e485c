"""Measures of a map on samples, besides the quantization and the topographic error.

explained variance   1 - sum |x - w(x)|^2 / sum |x - mean x|^2: of the samples, by their units. Euclidean maps only.
trustworthiness      1 - 2 / (n k (2n - 3k - 1)) times the sum, over samples and those of their k nearest on the grid
                     that are not among the k nearest of the data, of (rank in the data - k)
neighbourhood        the same with data and grid exchanged: are neighbours in the data kept together? Also called
preservation         continuity.

On the grid many samples are equally far, all those of a unit for a start. They are ranked as in the data there, so ties
count for the map; with units for samples, nothing is tied.

J. Venna, S. Kaski, "Neighborhood preservation in nonlinear projection methods: an experimental study", ICANN 2001.
"""

from __future__ import annotations

import numpy as np

from gpuops.som.grid import Grid
from gpuops.som.metrics import distances_to_all

RANKED = 2000  # samples whose distances to one another are ranked
NEIGHBOURS = 10


def map_quality(
    samples: np.ndarray,
    units: np.ndarray,
    codebook: np.ndarray,
    grid: Grid,
    metric: str = "euclidean",
    neighbours: int = NEIGHBOURS,
) -> dict[str, float]:
    """The measures that go with the metric and the number of samples, by name.

    Parameters
    ----------
    samples : (N, d) float array without missing values
    units : (N,) int array
        Their best matching units.
    codebook : (M, d) float array
    grid : Grid of M units
    metric : {"euclidean", "taxicab", "cosine"}
    neighbours : int
        k; fewer where there are not more than 3 k + 1 of the ranked samples.

    Returns
    -------
    dict
        Numbers without a unit; 1 is perfect.

    Raises
    ------
    ValueError
        Values are missing.
    """
    refuse_missing(samples)
    found: dict[str, float] = {}
    if metric == "euclidean":
        found["explained_variance"] = explained_variance(samples, units, codebook)
    rows = ranked_rows(len(samples))
    return found | kept_neighbours(samples[rows], units[rows], grid, metric, neighbours)


def refuse_missing(samples: np.ndarray) -> None:
    """Raise ValueError if a value is missing."""
    if np.isnan(samples).any():
        raise ValueError("samples have missing values, which these measures are not defined for; leave such rows out")


def ranked_rows(n: int) -> np.ndarray:
    """The rows of n samples whose distances are ranked, evenly spread, int64 (up to `RANKED`)."""
    return np.unique(np.linspace(0, n - 1, RANKED).astype(np.int64))


def kept_neighbours(
    samples: np.ndarray, units: np.ndarray, grid: Grid, metric: str, neighbours: int = NEIGHBOURS
) -> dict[str, float]:
    """Trustworthiness and neighbourhood preservation of samples (n, d) with these units (n), of all pairs of them."""
    k = min(neighbours, (len(samples) - 2) // 3)
    if k <= 0:
        return {}
    in_data = distances_to_all(samples, samples, metric)
    on_grid = grid.distances(units[:, None].astype(np.int64), units[None, :].astype(np.int64))
    return {
        "trustworthiness": _kept(in_data, on_grid, k),
        "neighbourhood_preservation": _kept(on_grid, in_data, k, ties=in_data),
    }


def explained_variance(samples: np.ndarray, units: np.ndarray, codebook: np.ndarray) -> float:
    """The share of the variance of the samples that their units explain; NaN where all samples are the same.

    Parameters
    ----------
    samples : (N, d) float array without missing values
    units : (N,) int array
    codebook : (M, d) float array
    """
    values = samples.astype(np.float64)
    left = ((values - codebook[units].astype(np.float64)) ** 2).sum()
    whole = ((values - values.mean(axis=0)) ** 2).sum()
    return float(1 - left / whole) if whole else float("nan")


def _kept(truth: np.ndarray, shown: np.ndarray, k: int, ties: np.ndarray | None = None) -> float:
    """How many of the k nearest of `shown` are such of `truth`, both (n, n) distances, by the formula above."""
    n = len(truth)
    rank = _ranks(truth, ties)
    nearest = _ranks(shown, truth) <= k
    np.fill_diagonal(nearest, False)
    return float(1 - 2 / (n * k * (2 * n - 3 * k - 1)) * np.maximum(rank - k, 0)[nearest].sum())


def _ranks(distances: np.ndarray, ties: np.ndarray | None = None) -> np.ndarray:
    """The rank of every other sample from each, 1 for the nearest, 0 for itself; `ties` tells the equal apart."""
    own = distances.copy()
    np.fill_diagonal(own, -1)
    order = np.lexsort((own if ties is None else ties, own), axis=1)
    ranks = np.empty(order.shape, np.int64)
    np.put_along_axis(ranks, order, np.arange(len(order))[None], axis=1)
    return ranks
