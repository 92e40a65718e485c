"""Landscapes over a map: a height for each unit, float64 (M).

========= ===================================================================================================
u_matrix  mean distance of the unit to its neighbours: walls between clusters [1]_
p_matrix  how many samples lie within the Pareto radius of the unit: density [2]_
u_star    U (1 - (P - mean P) / (max P - mean P)): no walls in dense regions, full walls in thin regions [3]_
========= ===================================================================================================

.. [1] A. Ultsch, H. P. Siemon, "Kohonen's self organizing feature maps for exploratory data analysis", INNC 1990.
.. [2] A. Ultsch, "Maps for the visualization of high-dimensional data spaces", WSOM 2003.
.. [3] A. Ultsch, "U*-matrix: a tool to visualize clusters in high dimensional data", report 36, University of Marburg,
   2003.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from gpuops.som.grid import Grid
from gpuops.som.metrics import distances_of_rows, distances_to_all

if TYPE_CHECKING:  # the estimator draws without stores
    from pipelines.stores.codebook import Codebook
    from pipelines.stores.samples import Samples

PARETO_QUANTILE = 0.18  # quantile of the distances between samples that is the Pareto radius of one cluster
PAIRED = 1000  # samples whose distances give the Pareto radius
MOST_SAMPLES, SAMPLE_BLOCKS = (
    20_000,
    100,
)  # most samples in a density, and the blocks of rows they are in if there are more
BLOCK = 1 << 22  # values in a block of the computation, samples x units x dimensions


def u_matrix(units: np.ndarray, grid: Grid, metric: str = "euclidean") -> np.ndarray:
    """Return the mean distance of each unit to its neighbours on the grid.

    Parameters
    ----------
    units : (M, d) float array
    grid : Grid of M units
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    (M,) float64 array, in the units of the values; 0 where a unit has no neighbours
    """
    sums, counts = np.zeros(grid.units), np.zeros(grid.units, np.int64)
    for neighbours in grid.neighbours().T:
        there = neighbours >= 0
        sums[there] += distances_of_rows(units[there], units[neighbours[there]], metric)
        counts[there] += 1
    return sums / np.maximum(counts, 1)


def p_matrix(
    units: np.ndarray, samples: np.ndarray, metric: str = "euclidean", radius: float | None = None
) -> np.ndarray:
    """Return how many of the samples lie within `radius` of each unit.

    Parameters
    ----------
    units : (M, d) float array
    samples : (N, d) float array without missing values
    metric : {"euclidean", "taxicab", "cosine"}
    radius : float, optional
        In the units of the values; by default the Pareto radius for one cluster.

    Returns
    -------
    (M,) float64 array of whole numbers
    """
    radius = pareto_radius(samples, metric) if radius is None else radius
    counts = np.zeros(len(units))
    step = max(1, BLOCK // max(units.size, 1))
    for start in range(0, len(samples), step):
        counts += (distances_to_all(samples[start : start + step], units, metric) <= radius).sum(axis=0)
    return counts


def pareto_radius(samples: np.ndarray, metric: str = "euclidean", clusters: int = 1) -> float:
    """Return the radius of spheres that hold about a fifth of the samples of a cluster, in the units of the values.

    Parameters
    ----------
    samples : (N, d) float array without missing values
    metric : {"euclidean", "taxicab", "cosine"}
    clusters : int
        Number of clusters, assumed to be of the same size.

    Notes
    -----
    The radius is the 18th percentile of the distances between samples for one cluster, and the (18 / `clusters`)th for
    more. The distances are taken between up to a thousand samples, evenly spread over the rows. A. Ultsch, "Pareto
    density estimation: a density estimation for knowledge discovery", GfKl 2003.
    """
    rows = np.unique(np.linspace(0, len(samples) - 1, PAIRED).astype(np.int64))
    distances = distances_to_all(samples[rows], samples[rows], metric)
    between = distances[np.triu_indices(len(rows), 1)]
    return float(np.quantile(between, PARETO_QUANTILE / clusters)) if len(between) else 0.0


def samples_of_density(codebook: Codebook, samples: Samples | str | os.PathLike[str] | None) -> np.ndarray:
    """Return up to `MOST_SAMPLES` samples, evenly spread over the rows, on the scale of the map.

    Raises
    ------
    ValueError
        Values are missing.
    """
    from pipelines.stores.samples import open_samples

    samples = codebook.samples() if samples is None else open_samples(samples)
    samples = samples.in_scaling(codebook.scaling)
    blocks, rows = (1, samples.n) if samples.n <= MOST_SAMPLES else (SAMPLE_BLOCKS, MOST_SAMPLES // SAMPLE_BLOCKS)
    starts = np.linspace(0, samples.n - rows, blocks).astype(np.int64).tolist()
    values = np.concatenate([samples.values(start, start + rows) for start in starts])
    if np.isnan(values).any():
        raise ValueError(f"{samples.path} has missing values; a density needs samples without missing values")
    return values


def u_star(walls: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Return the U*-matrix, float64 (M,), of a U-matrix `walls` and a P-matrix `density`, both float64 (M,)."""
    mean, greatest = density.mean(), density.max()
    return walls * (1 - (density - mean) / (greatest - mean)) if greatest > mean else walls.copy()
