"""Landscapes over a map: a height for each unit, float64 (M).

========= ===================================================================================================
u_matrix  mean distance of the unit to its neighbours: walls between clusters [1]_
p_matrix  how many samples lie within the Pareto radius of the unit: density [2]_
u_star    U (1 - (P - mean P) / (max P - mean P)): no walls within what is dense, full ones where it is thin [3]_
========= ===================================================================================================

.. [1] A. Ultsch, H. P. Siemon, "Kohonen's self organizing feature maps for exploratory data analysis", INNC 1990.
.. [2] A. Ultsch, "Maps for the visualization of high-dimensional data spaces", WSOM 2003.
.. [3] A. Ultsch, "U*-matrix: a tool to visualize clusters in high dimensional data", report 36, University of Marburg,
   2003.
"""

from __future__ import annotations

import numpy as np

from gpuops.som.grid import Grid

PARETO_QUANTILE = 0.18  # of the distances between samples
PAIRED = 1000  # samples whose distances are taken for the Pareto radius
BLOCK = 1 << 22  # values at a time


def u_matrix(units: np.ndarray, grid: Grid, metric: str = "euclidean") -> np.ndarray:
    """Mean distance of each unit to its neighbours on the grid, float64 (M); 0 where it has none."""
    units = units.astype(np.float64)
    if metric == "cosine":
        units = _of_length_1(units)
    sums, counts = np.zeros(grid.units), np.zeros(grid.units, np.int64)
    for beside in grid.neighbours().T:
        there = beside >= 0
        a, b = units[there], units[beside[there]]
        if metric == "euclidean":
            distances = np.sqrt(((a - b) ** 2).sum(axis=1))
        elif metric == "taxicab":
            distances = abs(a - b).sum(axis=1)
        else:
            distances = np.maximum(1 - (a * b).sum(axis=1), 0)
        sums[there] += distances
        counts[there] += 1
    return sums / np.maximum(counts, 1)


def p_matrix(
    units: np.ndarray, samples: np.ndarray, metric: str = "euclidean", radius: float | None = None
) -> np.ndarray:
    """How many of the samples (N, d), which have no missing values, lie within `radius` of each unit, float64 (M).

    By default the Pareto radius.
    """
    radius = pareto_radius(samples, metric) if radius is None else radius
    counts = np.zeros(len(units))
    step = max(1, BLOCK // max(units.size, 1))
    for start in range(0, len(samples), step):
        counts += (pair_distances(samples[start : start + step], units, metric) <= radius).sum(axis=0)
    return counts


def pareto_radius(samples: np.ndarray, metric: str = "euclidean", clusters: int = 1) -> float:
    """The radius of spheres that hold about a fifth of the samples (N, d) of a cluster, out of `clusters` alike.

    It is the 18th percentile of the distances between samples for one cluster, of so many that part of the 18. Taken
    from a thousand samples, evenly spread over the rows. A. Ultsch, "Pareto density estimation: a density estimation
    for knowledge discovery", GfKl 2003.
    """
    rows = np.unique(np.linspace(0, len(samples) - 1, PAIRED).astype(np.int64))
    distances = pair_distances(samples[rows], samples[rows], metric)
    between = distances[np.triu_indices(len(rows), 1)]
    return float(np.quantile(between, PARETO_QUANTILE / clusters)) if len(between) else 0.0


def u_star(walls: np.ndarray, density: np.ndarray) -> np.ndarray:
    """The U*-matrix of a U-matrix and a P-matrix, each (M)."""
    mean, greatest = density.mean(), density.max()
    return walls * (1 - (density - mean) / (greatest - mean)) if greatest > mean else walls.copy()


def pair_distances(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """(k, m) float64: distances of a (k, d) to b (m, d)."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    if metric == "cosine":
        return np.maximum(1 - _of_length_1(a) @ _of_length_1(b).T, 0)
    total = np.zeros((len(a), len(b)))
    for x, w in zip(a.T[..., None], b.T, strict=True):
        apart = x - w
        total += apart * apart if metric == "euclidean" else abs(apart)
    return np.sqrt(total) if metric == "euclidean" else total


def _of_length_1(values: np.ndarray) -> np.ndarray:
    lengths = np.sqrt((values * values).sum(axis=1, keepdims=True))
    return np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
