"""Small graphs in CSR for hierarchies, and their distances by ten lines of NumPy."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from families import SLOW
from sparse_rows import all_distances

from gpuops import close_hierarchy, csr, hierarchy_order, hierarchy_structure
from gpuops.certificates import find_potentials
from gpuops.numbers import outside_infinity

# Compiling takes eight seconds for each. Integers that do not fit are answered in float64.
DTYPES = ["int32", *(pytest.param(dtype, marks=SLOW) for dtype in ("float64", "float32", "int16"))]
ROME = Path(__file__).parents[1] / "scripts" / "data" / "rome99.gr"


class SmallGraph(NamedTuple):
    n: int
    tails: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    through: np.ndarray

    def rows(self, dtype):
        order = np.argsort(self.tails, kind="stable")
        indptr = csr.row_starts(self.tails, self.n)
        return indptr, self.heads[order].astype(np.int32), self.weights[order].astype(dtype)

    def distances(self):
        """(n, n) float64 by Floyd and Warshall, over open vertices."""
        return all_distances(*self.rows(np.float64), self.through)


def made(n, arcs, *, through=None, undirected=True, seed=0, high=50):
    """A graph of pairs (tail, head), with random weights from 0 on."""
    tails, heads = np.array(arcs, np.int64).reshape(-1, 2).T
    weights = np.random.default_rng(seed).integers(0, high, len(tails))
    if undirected:
        tails, heads, weights = np.r_[tails, heads], np.r_[heads, tails], np.r_[weights, weights]
    through = np.ones(n, bool) if through is None else np.asarray(through)
    return SmallGraph(n, tails, heads, weights, through)


def random_graph(rng, *, most=60, closed=False, negative=False, undirected=False):
    """With loops, parallel arcs and several components; sometimes a strip, as roads are."""
    n = int(rng.integers(1, most))
    m = int(n * rng.uniform(0.5, 3))
    tails = rng.integers(0, n, m)
    heads = rng.integers(0, n, m) if rng.random() < 0.5 else np.clip(tails + rng.integers(-5, 6, m), 0, n - 1)
    through = rng.random(n) < (0.75 if closed else 1)
    graph = made(n, np.stack([tails, heads], 1), through=through, undirected=undirected, seed=rng.integers(2**32))
    if not negative:
        return graph
    potential = rng.integers(0, 30, n)
    return graph._replace(weights=graph.weights + potential[graph.tails] - potential[graph.heads])


def hierarchy_of(graph, dtype, *, brick=1024, order=None):
    indptr, indices, weights = graph.rows(dtype)
    if order is None:
        order = hierarchy_order(indptr, indices, graph.through)
    structure, _ = hierarchy_structure(indptr, indices, order, graph.through, brick=brick)
    potentials = find_potentials(indptr, indices, weights, graph.through) if (weights < 0).any() else None
    return close_hierarchy(structure, indptr, indices, weights, potentials=potentials)


def as_floats(found):
    """Distances in float64, and +inf where there is none."""
    return np.where(found == outside_infinity(found.dtype), np.inf, found)
