"""Clusters of the units of a map; a sample has that of its unit.

============= =============================================================================================
method        what is a cluster
============= =============================================================================================
agglomerative units merged by Ward's criterion (Euclidean maps) or average distance; with `adjacent` only
              clusters that touch on the grid are merged, so each is one piece of the map
kmeans        units around means, each counting as often as it has samples
watershed     a basin of the U-matrix, the land around a lowest point [1]_
immersion     U*C [2]_: from a unit downhill on the U-matrix, then uphill on the P-matrix; the basin of the
              U*-matrix where that ends
============= =============================================================================================

Basins are more than clusters, as a U-matrix is rough. They are merged in the order of how deep a basin lies below the
pass to a deeper one. Without a number of clusters, what is merged ends at the greatest gap between these depths.
The first two methods need scikit-learn (``pip install 'tilepath[sklearn]'``).

.. [1] L. Vincent, P. Soille, "Watersheds in digital spaces", IEEE PAMI 13(6), 1991.
.. [2] A. Ultsch, "Clustering with SOM: U*C", WSOM 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.som.heights import p_matrix, u_matrix, u_star

METHODS = ("agglomerative", "kmeans", "watershed", "immersion")


def cluster_units(
    units: np.ndarray,
    grid: Grid,
    method: str = "agglomerative",
    clusters: int | None = None,
    *,
    metric: str = "euclidean",
    adjacent: bool = False,
    hits: np.ndarray | None = None,
    samples: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The cluster of every unit, int32 (M), numbered from 0 in the order of their first units.

    Parameters
    ----------
    units : (M, d) array
    method : of `METHODS`
    clusters : how many; may be left out for watershed and immersion
    metric : {"euclidean", "taxicab", "cosine"}
    adjacent : merge what touches on the grid only (agglomerative)
    hits : (M) array, how many samples each unit has (kmeans); by default all count the same
    samples : (N, d) array, on the scale of the units and without missing values (immersion)
    seed : draws the first means (kmeans)

    Raises
    ------
    ImportError
        Scikit-learn is missing; the message says how to install it.
    ValueError
        There is no such method, an option does not go with it, or there cannot be that many clusters.
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose {', '.join(METHODS)}")
    if clusters is None and method in ("agglomerative", "kmeans"):
        raise ValueError(f"say how many clusters {method} should make (clusters, --clusters)")
    if adjacent and method != "agglomerative":
        raise ValueError(f"adjacent is an option of agglomerative; {method} does without it")
    if clusters is not None and not 1 <= clusters <= grid.units:
        raise ValueError(f"{clusters} clusters of {grid.units:,} units are not possible; choose from 1 to all of them")
    if method == "immersion":
        if samples is None:
            raise ValueError("immersion follows the density of the samples; name them (samples, --samples)")
        return _in_order(immersion(units, samples, grid, clusters, metric))
    if method == "watershed":
        return _in_order(basins(u_matrix(units, grid, metric), grid, clusters))
    if grid.units == 1:
        return np.zeros(1, np.int32)
    values = units.astype(np.float64)
    return _in_order(
        _agglomerative(values, grid, clusters, metric, adjacent)
        if method == "agglomerative"
        else _means(values, clusters, metric, hits, seed)
    )


def basins(heights: np.ndarray, grid: Grid, clusters: int | None = None) -> np.ndarray:
    """The basin of every unit of a landscape, heights (M); the number of a basin is that of its lowest unit.

    Water rises. A unit that it reaches belongs to the basin of its lowest neighbour under water, or else begins one;
    where two basins meet, the shallower one is as deep as its lowest point lies below their pass.
    """
    around = grid.neighbours()
    order = np.lexsort((np.arange(grid.units), heights))
    basin = np.full(grid.units, -1)
    deeper = np.arange(grid.units)  # where a basin has overflowed to, as a union-find over lowest units
    rank = np.empty(grid.units, np.int64)
    rank[order] = np.arange(grid.units)
    passes: list[tuple[float, int, int]] = []  # depth of what overflows there, and the two basins that touch

    def top(a: int) -> int:
        while deeper[a] != a:
            deeper[a] = deeper[deeper[a]]
            a = int(deeper[a])
        return a

    def unite(a: int, b: int) -> int:
        """The basin that overflows into the other."""
        into, out = sorted((top(a), top(b)), key=lambda lowest: rank[lowest])
        deeper[out] = into
        return out

    for unit in order.tolist():
        wet = [other for other in around[unit].tolist() if other >= 0 and basin[other] >= 0]
        if not wet:
            basin[unit] = unit
            continue
        own = basin[unit] = int(basin[min(wet, key=lambda other: rank[other])])
        for beside in basin[wet].tolist():
            if top(beside) != top(own):
                passes.append((float(heights[unit] - heights[unite(own, beside)]), own, beside))
    # The shallowest are merged first; of the equal, those that overflowed first.
    depths = sorted(range(len(passes)), key=lambda i: passes[i][0])
    if clusters is None:
        clusters = _by_gap([passes[i][0] for i in depths])
    elif clusters > len(passes) + 1:
        raise ValueError(f"the landscape of this map has {len(passes) + 1} basins; choose no more clusters")
    deeper = np.arange(grid.units)
    for i in depths[: len(passes) + 1 - clusters]:
        unite(*passes[i][1:])
    return np.array([top(int(lowest)) for lowest in basin])


def immersion(
    units: np.ndarray, samples: np.ndarray, grid: Grid, clusters: int | None = None, metric: str = "euclidean"
) -> np.ndarray:
    """The cluster of every unit by U*C: the basin of the U*-matrix in which its immersion ends."""
    walls, density = u_matrix(units, grid, metric), p_matrix(units, samples, metric)
    return basins(u_star(walls, density), grid, clusters)[_ascend(density, grid)[_ascend(-walls, grid)]]


def _ascend(heights: np.ndarray, grid: Grid) -> np.ndarray:
    """Where the steepest way up ends, from every unit (M)."""
    around = np.concatenate([np.arange(grid.units)[:, None], grid.neighbours()], axis=1)
    to = around[np.arange(grid.units), np.where(around >= 0, heights[around], -np.inf).argmax(axis=1)]
    while (to[to] != to).any():
        to = to[to]
    return to


def _by_gap(depths: list[float]) -> int:
    """How many basins are left when those below the greatest gap of their depths, in rising order, are merged."""
    gaps = np.diff([0.0, *depths])
    return len(depths) + 1 - int(gaps.argmax()) if len(depths) else 1


def _agglomerative(units: np.ndarray, grid: Grid, clusters: Any, metric: str, adjacent: bool) -> np.ndarray:
    cluster, sparse = _scikit_learn()
    connectivity = None
    if adjacent:
        around = grid.neighbours()
        first, which = np.nonzero(around >= 0)
        pairs = (np.ones(len(first)), (first, around[first, which]))
        connectivity = sparse.csr_matrix(pairs, shape=(grid.units, grid.units))
    linkage = {"linkage": "ward"} if metric == "euclidean" else {"linkage": "average", "metric": _NAMES[metric]}
    return cluster.AgglomerativeClustering(clusters, connectivity=connectivity, **linkage).fit_predict(units)


def _means(units: np.ndarray, clusters: Any, metric: str, hits: np.ndarray | None, seed: int) -> np.ndarray:
    cluster, _ = _scikit_learn()
    if metric == "cosine":
        lengths = np.sqrt((units * units).sum(axis=1, keepdims=True))
        units = np.divide(units, lengths, out=np.zeros_like(units), where=lengths > 0)
    weights = None if hits is None or np.count_nonzero(hits) < clusters else hits.astype(np.float64)
    learner = cluster.KMeans(clusters, n_init=10, random_state=seed)
    return learner.fit(units, sample_weight=weights).predict(units)


_NAMES = {"taxicab": "manhattan", "cosine": "cosine"}


def _scikit_learn() -> Any:
    try:
        from scipy import sparse
        from sklearn import cluster
    except ImportError as error:
        raise ImportError(
            "this method needs scikit-learn: pip install 'tilepath[sklearn]'; watershed does not"
        ) from error
    return cluster, sparse


def _in_order(found: np.ndarray) -> np.ndarray:
    """Numbers from 0 in the order of first units, int32."""
    _, first, numbers = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers].astype(np.int32)
