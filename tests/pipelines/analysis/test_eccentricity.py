"""Eccentricities by bounds beside a search from every vertex."""

import itertools
import math

import numpy as np
import pytest
from oracles import dijkstra, scipy_graph, store_arcs
from scipy.sparse.csgraph import dijkstra as scipy_dijkstra

from gpuops import csr
from pipelines import eccentricities
from pipelines.analysis.eccentricity import _next, bounded, searches_of


def strong(n, m, rng):
    """A ring, so that each vertex reaches all, and chords."""
    ring = np.arange(n)
    tails, heads = (np.concatenate([part, rng.integers(0, n, m)]) for part in (ring, (ring + 1) % n))
    return n, tails, heads


def grid(rows, columns):
    place = np.arange(rows * columns).reshape(rows, columns)
    pairs = (place[:, :-1], place[:, 1:]), (place[:-1], place[1:])
    tails, heads = (np.concatenate([each.ravel() for each in side]) for side in zip(*pairs, strict=True))
    return rows * columns, tails, heads


def lollipop(n):
    """A clique with a long tail."""
    first, second = np.triu_indices(n, 1)
    return 3 * n, np.append(first, np.arange(n - 1, 3 * n - 1)), np.append(second, np.arange(n, 3 * n))


GRAPHS = {
    "grid": grid(5, 8),
    "ring": strong(24, 0, np.random.default_rng(0)),
    "chords": strong(40, 60, np.random.default_rng(1)),
    "lollipop": lollipop(12),
    "parts": (9, np.array([0, 1, 3, 3, 8]), np.array([1, 2, 4, 3, 8])),
    "one vertex": (1, np.array([0]), np.array([0])),
    "no arc": (3, np.array([], int), np.array([], int)),
}


@pytest.mark.parametrize(
    ("name", "weights", "directed"),
    [
        *itertools.product(["chords"], ["integers", "floats", "closed"], [False, True]),
        ("parts", "integers", False),
        ("parts", "integers", True),
        ("ring", "integers", True),
        ("lollipop", "integers", False),
        ("grid", "floats", False),
        ("one vertex", "integers", False),
        ("no arc", "floats", False),
    ],
)
def test_results_are_those_of_all_pairs(tmp_path, name, weights, directed):
    n, tails, heads = GRAPHS[name]
    rng = np.random.default_rng(n)
    lengths = rng.random(len(tails)) if weights == "floats" else rng.integers(0, 9, len(tails))
    if not directed:
        tails, heads, lengths = np.append(tails, heads), np.append(heads, tails), np.append(lengths, lengths)
    through = rng.random(n) < 0.8 if weights == "closed" else np.ones(n, bool)
    dtype = np.float64 if weights == "floats" else np.int32
    store = store_arcs(tmp_path / "g", n, tails, heads, lengths, dtype, directed=directed, through=through)
    integers = weights == "integers"
    for hops, every in {(False, False), (False, integers), (integers, integers)}:
        matrix = all_pairs(n, tails, heads, np.ones(len(tails)) if hops else lengths.astype(float), through)
        finite = np.isfinite(matrix)
        expected, whole = np.where(finite, matrix, 0).max(axis=1), finite.all(axis=1)
        found = eccentricities(store, hops=hops, every=every)
        if every:
            assert found.eccentricity.tobytes() == expected.tobytes()
        assert found.diameter == expected.max()
        assert found.periphery.tolist() == np.flatnonzero(expected == expected.max()).tolist()
        assert found.diameter_pair[0] == found.periphery[0]
        assert matrix[found.diameter_pair] == found.diameter
        if whole.any():
            assert found.radius == expected[whole].min()
            assert found.center.tolist() == np.flatnonzero(whole & (expected == found.radius)).tolist()
        else:
            assert math.isnan(found.radius)
            assert not len(found.center)
        assert found.searches <= n


def all_pairs(n, tails, heads, lengths, through):
    if through.all():
        return scipy_dijkstra(scipy_graph(n, tails, heads, lengths))
    return np.array([dijkstra(n, tails, heads, lengths, through, source) for source in range(n)])


@pytest.mark.parametrize("directed", [False, True])
def test_random_graphs(directed):
    rng = np.random.default_rng(directed)
    proved = 0
    for _ in range(40):
        n = int(rng.integers(10, 45))
        _, tails, heads = strong(n, int(rng.integers(3 * n)), rng)
        lengths = rng.integers(0, 5, len(tails)).astype(float)
        if not directed:
            tails, heads, lengths = np.append(tails, heads), np.append(heads, tails), np.append(lengths, lengths)
        order, through = tails.argsort(kind="stable"), np.ones(n, bool)
        rows = csr.row_starts(tails, n), heads[order], lengths[order]
        starts, back, arcs = csr.transpose(*rows[:2])
        backward = searches_of(starts, back, rows[2][arcs], through=through) if directed else None
        forward = searches_of(*rows, through=through)
        found = bounded(forward, backward, np.diff(rows[0]), exact=True, every=False, hops=False)
        expected = all_pairs(n, tails, heads, lengths, through).max(axis=1)
        assert (found.diameter, found.radius) == (expected.max(), expected.min())
        assert found.periphery.tolist() == np.flatnonzero(expected == found.diameter).tolist()
        assert found.center.tolist() == np.flatnonzero(expected == found.radius).tolist()
        proved += n - found.searches
    assert proved > 100  # eccentricities without a search


def test_few_searches_are_enough(tmp_path):
    rng = np.random.default_rng(5)
    n, tails, heads = strong(300, 600, rng)
    for directed in False, True:
        lengths = rng.random(len(tails))
        both = (np.append(tails, heads), np.append(heads, tails), np.append(lengths, lengths))
        arcs = (tails, heads, lengths) if directed else both
        store = store_arcs(tmp_path / f"{directed}", n, *arcs, np.float32, directed=directed)
        assert eccentricities(store).searches < n / 4
        assert eccentricities(store, every=True).searches == n


def test_vertices_that_may_equal_the_diameter_or_the_radius_are_searched():
    lower, upper = np.array([5, 4, 1, 3]), np.array([5, 5, 2, 4])
    assert _next(lower, upper, np.ones(4), every=False, size=1).tolist() == [1, 2]
    assert _next(lower, upper, np.ones(4), every=True, size=2).tolist() == [1, 2, 3]


def test_graphs_that_are_refused(tmp_path):
    one = np.array([0]), np.array([1])
    store = store_arcs(tmp_path / "g", 2, *one, np.array([-1]), np.int32, directed=True)
    with pytest.raises(ValueError, match=r"a weight of -1; .* \(tilepath apsp\).*, or count arcs with hops=True"):
        eccentricities(store)
    assert eccentricities(store, hops=True).diameter == 1
    empty = np.array([], int)
    with pytest.raises(ValueError, match="has no vertices"):
        eccentricities(store_arcs(tmp_path / "e", 0, empty, empty, empty, np.int32, directed=True))
