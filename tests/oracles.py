"""Random graphs as lists of arcs, and shortest distances by algorithms that are not those under test."""

import heapq

import numpy as np
from scipy.sparse import csr_array

from gpuops.numbers import outside_infinity
from pipelines.stores.graph_writer import write_graph


def random_arcs(n, m, *, low=0, high=50, seed=0, undirected=False):
    """Random arcs as (tails, heads, weights), parallel arcs and loops among them."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, m), rng.integers(0, n, m)
    weights = rng.integers(low, high, m)
    if undirected:
        tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])
        weights = np.concatenate([weights, weights])
    return tails, heads, weights


def shifted(n, tails, heads, weights, seed=1):
    """Make some weights negative without a negative cycle: add a difference of potentials."""
    potential = np.random.default_rng(seed).integers(0, 30, n)
    return weights + potential[tails] - potential[heads]


def store_arcs(path, n, tails, heads, weights, dtype, **facts):
    """The arcs as a graph store, weights of `dtype`; opened."""
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return write_graph(path, indptr, heads[order], weights[order].astype(dtype), **facts)


def scipy_graph(n, tails, heads, weights):
    """The arcs for SciPy, without loops or parallel arcs: it would add those up, and drops dense zeros."""
    matrix = np.full((n, n), np.inf)
    np.minimum.at(matrix, (tails, heads), weights)
    np.fill_diagonal(matrix, np.inf)
    tails, heads = np.nonzero(np.isfinite(matrix))
    return csr_array((matrix[tails, heads], (tails, heads)), shape=(n, n))


def dijkstra(n, tails, heads, weights, through, source):
    """Distances from `source` that pass through open vertices only, +inf where there is none: by a heap."""
    arcs = [[] for _ in range(n)]
    for tail, head, weight in zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True):
        arcs[tail].append((head, weight))
    distances, heap = {source: 0}, [(0, source)]
    while heap:
        distance, u = heapq.heappop(heap)
        if distance > distances[u] or (u != source and not through[u]):
            continue
        for v, weight in arcs[u]:
            if distance + weight < distances.get(v, np.inf):
                distances[v] = distance + weight
                heapq.heappush(heap, (distances[v], v))
    return np.array([distances.get(v, np.inf) for v in range(n)])


def as_stored(found, dtype):
    """Distances, +inf where there is none, as a store of `dtype` holds them."""
    result = np.full(found.shape, outside_infinity(dtype))
    finite = np.isfinite(found)
    result[finite] = found[finite].astype(dtype)
    return result
