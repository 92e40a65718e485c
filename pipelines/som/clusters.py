"""Clusters of the units of a map; a sample has that of its unit.

============= =============================================================================================
method        what is a cluster
============= =============================================================================================
agglomerative units merged by Ward's criterion, for clusters alike in size, or by average distance, as FlowSOM
              merges them, for populations of which some are rare; with `adjacent` only clusters that touch on the
              grid are merged, so each is one piece of the map
kmeans        units around means; every unit counts the same, however many samples it has
watershed     a basin of the U-matrix, the land around a lowest point [1]_
immersion     U*C [2]_: from a unit downhill on the U-matrix, then uphill on the P-matrix; the basin of the
              U*-matrix where that ends
============= =============================================================================================

Basins are more than clusters, as a U-matrix is rough. They are merged in the order of how deep a basin lies below the
pass to a deeper one. Without a number of clusters, what is merged ends at the greatest gap between these depths.
Immersion ends in some of the basins only: these alone are counted.
The first two methods need scikit-learn (``pip install 'tilepath[sklearn]'``).

.. [1] L. Vincent, P. Soille, "Watersheds in digital spaces", IEEE PAMI 13(6), 1991.
.. [2] A. Ultsch, "Clustering with SOM: U*C", WSOM 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from gpuops.som.metrics import ALIASES, normalized
from pipelines.som.heights import p_matrix, pareto_radius, u_matrix, u_star

METHODS = ("agglomerative", "kmeans", "watershed", "immersion")
LINKAGES = ("ward", "average")
EXPECTED = 6  # clusters, where their number is unknown; as Ultsch takes for the radius of densities


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
    """The cluster of every unit, int32 (M), numbered from 0 in the order of their first units.

    Parameters
    ----------
    units : (M, d) float array
    grid : Grid of M units
    method : of `METHODS`
    clusters : int, optional
        How many; may be left out for watershed and immersion.
    metric : {"euclidean", "taxicab", "cosine"}
    linkage : {"ward", "average"}, optional
        Of agglomerative; by default "ward" on Euclidean maps, which it is for, else "average".
    adjacent : bool
        Merge what touches on the grid only (agglomerative).
    samples : (N, d) array, optional
        On the scale of the units and without missing values (immersion).
    seed : int
        Draws the first means (kmeans).

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
    _check_linkage(linkage, method, metric)
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
    """The basin of every unit of a landscape, int64 (M); the number of a basin is that of its lowest unit.

    Water rises. A unit that it reaches belongs to the basin of its lowest neighbour under water, or else begins one;
    where two basins meet, the shallower one is as deep as its lowest point lies below their pass.

    Parameters
    ----------
    heights : (M,) float array
    grid : Grid of M units
    clusters : int, optional
        Merge until so many basins are left; by default up to the greatest gap of their depths.
    within : (k,) int array of units, optional
        Only basins that hold one of these are counted; by default all are.

    Raises
    ------
    ValueError
        There are fewer basins than clusters.
    """
    around = grid.neighbours()
    order = np.lexsort((np.arange(grid.units), heights))
    rank = np.empty(grid.units, np.int64)
    rank[order] = np.arange(grid.units)
    basin = np.full(grid.units, -1)
    flood = _Overflows(rank, np.ones(grid.units, bool))
    passes: list[tuple[float, int, int]] = []  # depth of what overflows there, and the two basins that touch
    for unit in order.tolist():
        wet = [other for other in around[unit].tolist() if other >= 0 and basin[other] >= 0]
        if not wet:
            basin[unit] = unit
            continue
        own = basin[unit] = int(basin[min(wet, key=lambda other: rank[other])])
        for beside in basin[wet].tolist():
            if flood.top(beside) != flood.top(own):
                out, _ = flood.unite(own, beside)
                passes.append((float(heights[unit] - heights[out]), own, beside))
    # The shallowest are merged first; of the equal, those that overflowed first.
    passes.sort(key=lambda met: met[0])
    counted = np.zeros(grid.units, bool)
    counted[basin if within is None else basin[within]] = True
    left = np.count_nonzero(counted)
    if clusters is None:
        merged = _Overflows(rank, counted)
        clusters = _by_gap([depth for depth, a, b in passes if merged.unite(a, b)[1]])
    elif clusters > left:
        raise ValueError(f"the landscape of this map has {left} basins for clusters; choose no more clusters")
    merged = _Overflows(rank, counted)
    for _, a, b in passes:
        if left == clusters:
            break
        left -= merged.unite(a, b)[1]
    return np.array([merged.top(int(lowest)) for lowest in basin])


class _Overflows:
    """Basins that overflow into deeper ones: a union-find over lowest units, and which of the sets are counted."""

    def __init__(self, rank: np.ndarray, counted: np.ndarray):
        self._rank, self._counted = rank, counted.copy()
        self._deeper = np.arange(len(rank))

    def top(self, a: int) -> int:
        deeper = self._deeper
        while deeper[a] != a:
            deeper[a] = deeper[deeper[a]]
            a = int(deeper[a])
        return a

    def unite(self, a: int, b: int) -> tuple[int, bool]:
        """The basin that overflows into the other, and whether both were counted."""
        into, out = sorted((self.top(a), self.top(b)), key=lambda lowest: self._rank[lowest])
        both = bool(self._counted[into] and self._counted[out])
        self._counted[into] |= self._counted[out]
        self._deeper[out] = into
        return out, both


def immersion(
    units: np.ndarray, samples: np.ndarray, grid: Grid, clusters: int | None = None, metric: str = "euclidean"
) -> np.ndarray:
    """The cluster of every unit by U*C, int64 (M): the basin of the U*-matrix in which its immersion ends.

    Density is that within spheres that hold a fifth of one cluster, out of `clusters` alike, or out of `EXPECTED`.
    """
    radius = pareto_radius(samples, metric, EXPECTED if clusters is None else clusters)
    walls, density = u_matrix(units, grid, metric), p_matrix(units, samples, metric, radius)
    ends = _ascend(density, grid)[_ascend(-walls, grid)]
    return basins(u_star(walls, density), grid, clusters, within=ends)[ends]


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


_NAMES = {ours: theirs for theirs, ours in ALIASES.items()}  # of metrics, in scikit-learn


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
