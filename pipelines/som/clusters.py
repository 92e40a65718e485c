"""Cluster the units of a map. A sample is in the cluster of its best matching unit.

============= =============================================================================================
method        a cluster is
============= =============================================================================================
agglomerative units merged by Ward's criterion, for clusters of similar size, or by average distance as in
              FlowSOM, if some populations are rare. With `adjacent`, only clusters that touch on the grid are
              merged, so each cluster is one piece of the map.
kmeans        units around a mean. Every unit counts the same, however many samples it has.
watershed     a basin of the U-matrix: the land around a lowest point [1]_
immersion     units whose immersion ends in the same basin of the U*-matrix (U*C [2]_). The immersion of a unit
              goes downhill on the U-matrix, then uphill on the P-matrix.
============= =============================================================================================

A U-matrix is rough, so it has more basins than clusters. Basins are merged, the shallowest first. The depth of a basin
is measured from its lowest point up to its pass into a deeper basin. Without a number of clusters, merging stops at the
greatest gap between these depths. For immersion, only basins where an immersion ends are counted.

The methods agglomerative and kmeans need scikit-learn (the extra `sklearn`).

.. [1] L. Vincent, P. Soille, "Watersheds in digital spaces", IEEE PAMI 13(6), 1991.
.. [2] A. Ultsch, "Clustering with SOM: U*C", WSOM 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.extras import install
from gpuops.som.grid import Grid
from gpuops.som.metrics import ALIASES, normalized
from pipelines.som.heights import p_matrix, pareto_radius, u_matrix, u_star
from pipelines.stores.schema import counted

METHODS = ("agglomerative", "kmeans", "watershed", "immersion")
LINKAGES = ("ward", "average")
EXPECTED = 6  # clusters assumed for the radius of densities if their number is unknown, as Ultsch does


def cluster_units(
    units: np.ndarray,
    grid: Grid,
    method: str = "agglomerative",
    clusters: int | None = None,
    *,
    metric: str = "euclidean",
    linkage: str | None = None,
    adjacent: bool = False,
    samples: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Return the cluster of every unit, int32 (M), numbered from 0 in the order of their first units.

    Parameters
    ----------
    units : (M, d) float array
    grid : Grid of M units
    metric : {"euclidean", "taxicab", "cosine"}
    samples : (N, d) array, optional
        Samples on the scale of the units, without missing values (immersion).
    method, clusters, linkage, adjacent, seed : as for `tilepath.cluster_map`, which also lists the errors
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose {', '.join(METHODS)}")
    if clusters is None and method in ("agglomerative", "kmeans"):
        raise ValueError(f"say how many clusters {method} should make (clusters, --clusters)")
    if adjacent and method != "agglomerative":
        raise ValueError(f"adjacent is an option of agglomerative; {method} does without it")
    _check_linkage(linkage, method, metric)
    if clusters is not None and not 1 <= clusters <= grid.units:
        raise ValueError(
            f"{clusters} clusters of {counted(grid.units, 'unit')} are not possible; choose from 1 to all of them"
        )
    if method == "immersion":
        if samples is None:
            raise ValueError("immersion follows the density of the samples; name them (samples, --samples)")
        return _in_order(immersion(units, samples, grid, clusters, metric))
    if method == "watershed":
        return _in_order(basins(u_matrix(units, grid, metric), grid, clusters))
    if grid.units == 1:
        return np.zeros(1, np.int32)
    values = units.astype(np.float64)
    different = len(np.unique(normalized(values) if metric == "cosine" else values, axis=0))
    if clusters is not None and clusters > different:
        raise ValueError(f"only {different:,} units of the map differ; choose no more clusters (clusters, --clusters)")
    return _in_order(
        _agglomerative(values, grid, clusters, metric, linkage, adjacent)
        if method == "agglomerative"
        else _means(values, clusters, metric, seed)
    )


def _check_linkage(linkage: str | None, method: str, metric: str) -> None:
    if linkage is None:
        return
    if linkage not in LINKAGES:
        raise ValueError(f"there is no linkage {linkage!r}; choose {', '.join(LINKAGES)}")
    if method != "agglomerative":
        raise ValueError(f"linkage is an option of agglomerative; {method} does without it")
    if linkage == "ward" and metric != "euclidean":
        raise ValueError(f"Ward's criterion is for Euclidean maps, and this one is {metric}; choose average")


def basins(
    heights: np.ndarray, grid: Grid, clusters: int | None = None, within: np.ndarray | None = None
) -> np.ndarray:
    """Return the basin of every unit of a landscape, int64 (M). A basin is named by its lowest unit.

    Water rises. A unit that the water reaches joins the basin of its lowest neighbour under water; without such a
    neighbour, the unit begins a basin. Where two basins meet, the depth of the shallower basin is the height of their
    pass above its lowest point.

    Parameters
    ----------
    heights : (M,) float array
    grid : Grid of M units
    clusters : int, optional
        Merge basins until this number is left; by default, merge up to the greatest gap between their depths.
    within : (k,) int array of units, optional
        Count only basins that hold a unit of `within`; by default all basins are counted.

    Raises
    ------
    ValueError
        There are fewer basins than `clusters`.
    """
    around = grid.neighbours()
    order = np.lexsort((np.arange(grid.units), heights))
    rank = np.empty(grid.units, np.int64)
    rank[order] = np.arange(grid.units)
    basin = np.full(grid.units, -1)
    flood = _Overflows(rank, np.ones(grid.units, bool))
    passes: list[tuple[float, int, int]] = []  # depth of the basin that overflows at a pass, and the basins that meet
    for unit in order.tolist():
        wet = [other for other in around[unit].tolist() if other >= 0 and basin[other] >= 0]
        if not wet:
            basin[unit] = unit
            continue
        own = basin[unit] = int(basin[min(wet, key=lambda other: rank[other])])
        for other in basin[wet].tolist():
            if flood.top(other) != flood.top(own):
                out, _ = flood.unite(own, other)
                passes.append((float(heights[unit] - heights[out]), own, other))
    # The shallowest basins are merged first; of basins with equal depth, the basin that overflowed first.
    passes.sort(key=lambda met: met[0])
    counting = np.zeros(grid.units, bool)
    counting[basin if within is None else basin[within]] = True
    left = np.count_nonzero(counting)
    if clusters is None:
        merged = _Overflows(rank, counting)
        clusters = _by_gap([depth for depth, a, b in passes if merged.unite(a, b)[1]])
    elif clusters > left:
        raise ValueError(f"the landscape of this map has {left} basins for clusters; choose no more clusters")
    merged = _Overflows(rank, counting)
    for _, a, b in passes:
        if left == clusters:
            break
        left -= merged.unite(a, b)[1]
    return np.array([merged.top(int(lowest)) for lowest in basin])


class _Overflows:
    """Basins that overflow into deeper basins: a union-find over lowest units, and whether each set is counted."""

    def __init__(self, rank: np.ndarray, counting: np.ndarray):
        self._rank, self._counting = rank, counting.copy()
        self._deeper = np.arange(len(rank))

    def top(self, a: int) -> int:
        deeper = self._deeper
        while deeper[a] != a:
            deeper[a] = deeper[deeper[a]]
            a = int(deeper[a])
        return a

    def unite(self, a: int, b: int) -> tuple[int, bool]:
        """Merge two basins; returns the basin that overflowed into the other, and whether both were counted."""
        into, out = sorted((self.top(a), self.top(b)), key=lambda lowest: self._rank[lowest])
        both = bool(self._counting[into] and self._counting[out])
        self._counting[into] |= self._counting[out]
        self._deeper[out] = into
        return out, both


def immersion(
    units: np.ndarray, samples: np.ndarray, grid: Grid, clusters: int | None = None, metric: str = "euclidean"
) -> np.ndarray:
    """Return the cluster of every unit by U*C, int64 (M): the basin of the U*-matrix where its immersion ends.

    The density of a unit is the number of samples in a sphere. The sphere would hold about a fifth of a cluster, if
    there were `clusters` clusters of the same size (`EXPECTED` if `clusters` is None).
    """
    radius = pareto_radius(samples, metric, EXPECTED if clusters is None else clusters)
    walls, density = u_matrix(units, grid, metric), p_matrix(units, samples, metric, radius)
    ends = _ascend(density, grid)[_ascend(-walls, grid)]
    return basins(u_star(walls, density), grid, clusters, within=ends)[ends]


def _ascend(heights: np.ndarray, grid: Grid) -> np.ndarray:
    """Return the unit where the steepest ascent from every unit ends, (M)."""
    around = np.concatenate([np.arange(grid.units)[:, None], grid.neighbours()], axis=1)
    to = around[np.arange(grid.units), np.where(around >= 0, heights[around], -np.inf).argmax(axis=1)]
    while (to[to] != to).any():
        to = to[to]
    return to


def _by_gap(depths: list[float]) -> int:
    """Return how many basins are left once all basins below the greatest gap of the ascending `depths` are merged."""
    gaps = np.diff([0.0, *depths])
    return len(depths) + 1 - int(gaps.argmax()) if len(depths) else 1


def _agglomerative(
    units: np.ndarray, grid: Grid, clusters: Any, metric: str, linkage: str | None, adjacent: bool
) -> np.ndarray:
    cluster, sparse = _scikit_learn()
    connectivity = None
    if adjacent:
        around = grid.neighbours()
        first, which = np.nonzero(around >= 0)
        pairs = (np.ones(len(first)), (first, around[first, which]))
        connectivity = sparse.csr_matrix(pairs, shape=(grid.units, grid.units))
    learner = cluster.AgglomerativeClustering(
        clusters,
        metric=_NAMES.get(metric, metric),
        connectivity=connectivity,
        linkage=linkage or ("ward" if metric == "euclidean" else "average"),
    )
    return learner.fit_predict(units)


def _means(units: np.ndarray, clusters: Any, metric: str, seed: int) -> np.ndarray:
    cluster, _ = _scikit_learn()
    if metric == "cosine":
        units = normalized(units)
    return cluster.KMeans(clusters, n_init=10, random_state=seed).fit_predict(units)


_NAMES = {ours: theirs for theirs, ours in ALIASES.items()}  # scikit-learn's names of metrics


def _scikit_learn() -> Any:
    try:
        from scipy import sparse
        from sklearn import cluster
    except ImportError as error:
        raise ImportError(f"this method needs scikit-learn: {install('sklearn')}; watershed does not") from error
    return cluster, sparse


def _in_order(found: np.ndarray) -> np.ndarray:
    """Return the clusters renumbered from 0 in the order of their first units, int32."""
    _, first, numbers = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers].astype(np.int32)
