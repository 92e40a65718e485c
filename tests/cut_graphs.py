"""Small random graphs in memory, and random cuts of them."""

import numpy as np

from pipelines.stores.boundary import Cut


class GraphInMemory:
    """As much of a graph as the stages ask for."""

    def __init__(self, n, tails, heads, weights, through):
        order = np.argsort(tails, kind="stable")
        self.n, self._through = n, through
        self._rows = np.searchsorted(tails[order], np.arange(n + 1)), heads[order], weights[order]

    def rows(self):
        return self._rows

    def through(self):
        return self._through


def random_graph(seed, dtype, *, negative=False, closed=False):
    """Up to 40 vertices, disconnected or not, with loops and parallel arcs; weights exact in every dtype."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 40)), int(rng.integers(0, 160))
    tails, heads = rng.integers(0, n, (2, m))
    weights = rng.integers(0, rng.choice([2, 50]), m)  # many cycles of weight zero, or few
    if negative:
        potential = rng.integers(0, 30, n)
        weights = np.where(tails == heads, weights, weights + potential[tails] - potential[heads])
    through = rng.random(n) < 0.7 if closed else np.ones(n, bool)
    return GraphInMemory(n, tails, heads, weights.astype(dtype), through), rng


def random_cut(graph, rng):
    part = np.unique(rng.integers(0, rng.integers(1, 8), graph.n), return_inverse=True)[1].astype(np.int32)
    indptr, indices, _ = graph.rows()
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    across = part[tails] != part[indices]
    boundary = np.zeros(graph.n, bool)
    boundary[tails[across]] = boundary[indices[across]] = True
    return Cut(part, boundary)
