"""Measures of how well a map shows samples, in addition to quantization error and topographic error.

explained variance   1 - sum |x - w(x)|^2 / sum |x - mean x|^2 over samples x with best matching units w(x). For
                     Euclidean maps only.
trustworthiness      1 - 2 / (n k (2n - 3k - 1)) times a sum over pairs of a sample and one of its k nearest samples on
                     the grid. A pair adds (rank in the data - k), if that is positive: neighbours on the grid should be
                     neighbours in the data.
neighbourhood        the formula of trustworthiness with data and grid exchanged: neighbours in the data should be
preservation         neighbours on the grid. Also called continuity.

error and path       the mean over samples x of |x - w(x)| plus the length of the shortest path on the grid, from the
                     best matching unit of x to its second best. A link between neighbouring units is as long as their
                     distance in the data. Unlike the quantization error, this error does not fall with every additional
                     unit: a map that is torn or folded has long paths (S. Kaski, K. Lagus, 1996).

On the grid, many samples are equally far from a sample: for example, all samples of a unit. Samples that are equally
far on the grid are ranked by their distances in the data, which favours the map.

S. Kaski, K. Lagus, "Comparing self-organizing maps", ICANN 1996.
J. Venna, S. Kaski, "Neighborhood preservation in nonlinear projection methods: an experimental study", ICANN 2001.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpuops import batched_shortest_distances, search_graph
from gpuops.som.grid import Grid
from gpuops.som.metrics import distances_of_rows, distances_to_all

RANKED = 2000  # most samples whose distances to one another are ranked
TOGETHER = 1024  # units from which paths are searched at a time
NEIGHBOURS = 10  # nearest samples, k in the formulas; fewer if 3 k + 2 exceeds the number of ranked samples


def map_quality(
    pieces: Iterable[tuple[np.ndarray, np.ndarray]],
    n: int,
    codebook: np.ndarray,
    grid: Grid,
    metric: str = "euclidean",
) -> dict[str, float]:
    """Return the measures that are defined for the metric and the samples, by name.

    Parameters
    ----------
    pieces : pairs of a (k, d) float array of samples without missing values, and a (k,) int array of their best
        matching units
    n : number of all samples
    codebook : (M, d) float array
    grid : Grid of M units
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    dict
        Numbers without a unit; 1 is perfect. The explained variance is left out if all samples are equal.

    Raises
    ------
    ValueError
        Values are missing.
    """
    codebook, rows = codebook.astype(np.float64), np.unique(np.linspace(0, n - 1, RANKED).astype(np.int64))
    left = squares = done = 0
    sums = centre = np.zeros(codebook.shape[1])
    ranked = []
    for samples, units in pieces:
        if np.isnan(samples).any():
            raise ValueError(
                "samples have missing values, which these measures are not defined for; leave such rows out"
            )
        within = rows[(rows >= done) & (rows < done + len(samples))] - done
        ranked.append((samples[within], units[within]))
        if metric == "euclidean":
            centre = centre if done else samples[0].astype(np.float64)  # keeps the sums small
            apart = samples - centre
            left += ((samples - codebook[units]) ** 2).sum()
            squares += (apart * apart).sum()
            sums = sums + apart.sum(axis=0)
        done += len(samples)
    whole = squares - (sums * sums).sum() / n
    found = {"explained_variance": float(1 - left / whole)} if whole > 0 else {}
    values, units = (np.concatenate(parts) for parts in zip(*ranked, strict=True))
    return found | _kept_neighbours(values, units, grid, metric)


def _kept_neighbours(samples: np.ndarray, units: np.ndarray, grid: Grid, metric: str) -> dict[str, float]:
    """Return trustworthiness and neighbourhood preservation of `samples` (n, d) with best matching `units` (n).

    All pairs of the samples are ranked. The result is empty if there are too few samples for one neighbour.
    """
    k = min(NEIGHBOURS, (len(samples) - 2) // 3)
    if k <= 0:
        return {}
    in_data = distances_to_all(samples, samples, metric)
    on_grid = grid.distances(units[:, None].astype(np.int64), units[None, :].astype(np.int64))
    return {
        "trustworthiness": _kept(in_data, on_grid, k),
        "neighbourhood_preservation": _kept(on_grid, in_data, k, ties=in_data),
    }


def error_with_paths(
    units: np.ndarray,
    distances: np.ndarray,
    codebook: np.ndarray,
    grid: Grid,
    metric: str = "euclidean",
    weights: np.ndarray | None = None,
) -> float:
    """Return the mean distance of samples to their units, each plus the path to the second best unit.

    Parameters
    ----------
    units : (N, 2) int array
        The two best matching units of each sample; (N, 1) on a map of one unit, where paths have no length.
    distances : (N,) float array
        Distance of each sample to its best matching unit.
    codebook : (M, d) float array
    grid : Grid of M units
    metric : {"euclidean", "taxicab", "cosine"}
    weights : (N,) array, optional

    Returns
    -------
    float
        In the units of the values; 0 is perfect.
    """
    errors = distances.astype(np.float64)
    if units.shape[1] > 1:
        errors = errors + _paths_between(
            units[:, 0].astype(np.int64), units[:, 1].astype(np.int64), codebook, grid, metric
        )
    return float(np.average(errors, weights=weights))


def _paths_between(first: np.ndarray, second: np.ndarray, codebook: np.ndarray, grid: Grid, metric: str) -> np.ndarray:
    """Return the length of the shortest path on the grid between two units, float64 (N)."""
    around = grid.neighbours()
    there = around >= 0
    tails, heads = np.nonzero(there)[0], around[there]
    lengths = distances_of_rows(codebook[tails], codebook[heads], metric)
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    links = search_graph(indptr, heads, lengths, dtype=np.float64, symmetric=True)
    starts, places = np.unique(first, return_inverse=True)
    paths = np.empty(len(first))
    for begin in range(0, len(starts), TOGETHER):
        rows = batched_shortest_distances(links, starts[begin : begin + TOGETHER])
        asked = (places >= begin) & (places < begin + TOGETHER)
        paths[asked] = rows[places[asked] - begin, second[asked]]
    return paths


def _kept(truth: np.ndarray, shown: np.ndarray, k: int, ties: np.ndarray | None = None) -> float:
    """Return how well the k nearest samples by `shown` are also near by `truth`, both (n, n) distances.

    The formula is the one of trustworthiness in the module's docstring. Samples equally far by `truth` are ranked by
    the distances `ties`.
    """
    n = len(truth)
    rank = _ranks(truth, ties)
    nearest = _ranks(shown, truth) <= k
    np.fill_diagonal(nearest, False)
    return float(1 - 2 / (n * k * (2 * n - 3 * k - 1)) * np.maximum(rank - k, 0)[nearest].sum())


def _ranks(distances: np.ndarray, ties: np.ndarray | None = None) -> np.ndarray:
    """Return the rank of every sample by its distance from each: 0 for itself, 1 for the nearest other sample.

    Equal distances are ranked by the distances `ties`.
    """
    own = distances.copy()
    np.fill_diagonal(own, -1)
    order = np.lexsort((own if ties is None else ties, own), axis=1)
    ranks = np.empty(order.shape, np.int64)
    np.put_along_axis(ranks, order, np.arange(len(order))[None], axis=1)
    return ranks
