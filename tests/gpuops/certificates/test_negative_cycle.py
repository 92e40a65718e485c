"""Negative cycles against a dense Floyd-Warshall on Python integers, and against SciPy."""

import time

import numpy as np
import pytest
from families import usual
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, bellman_ford

from gpuops.certificates import find_negative_cycle


def csr(n, arcs, dtype=np.int64):
    tails, heads, weights = np.array(sorted(arcs), dtype=np.float64).reshape(-1, 3).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails.astype(int), minlength=n))])
    return indptr, heads.astype(np.int32), weights.astype(dtype)


def has_negative_cycle(n, arcs, through):
    """Is the distance of some vertex to itself negative, if only `through` vertices lie inside paths?"""
    matrix = np.full((n, n), 10**9, dtype=object)
    for u, v, w in arcs:
        matrix[u, v] = min(matrix[u, v], w)
    for k in np.flatnonzero(through):
        matrix = np.minimum(matrix, matrix[:, k, None] + matrix[k])
    return any(matrix[v, v] < 0 for v in range(n))


def check(found, arcs, through):
    """The cycle is one: its arcs exist, its weight is theirs, and only its start may be closed."""
    vertices, weight = found
    assert len(set(vertices)) == len(vertices)
    assert all(through[v] for v in vertices[1:])
    lightest = {}
    for u, v, w in arcs:
        lightest.setdefault((u, v), set()).add(w)
    sums = {0}
    for arc in zip(vertices, (*vertices[1:], vertices[0]), strict=True):
        sums = {s + w for s in sums for w in lightest[arc]}
    assert weight in sums
    assert weight < 0


@given(data=st.data(), dtype=st.sampled_from([np.int16, np.int64, np.float32, np.float64]))
@settings(max_examples=50, deadline=None)
def test_random_graphs(data, dtype):
    n = data.draw(st.integers(1, 7))
    weight = st.integers(-3, 8)
    arcs = data.draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2, weight), max_size=20))
    through = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    found = find_negative_cycle(*csr(n, arcs, dtype), through)
    assert (found is not None) == has_negative_cycle(n, arcs, through)
    if found is not None:
        check(found, arcs, through)


@pytest.mark.parametrize("seed", range(20))
def test_scipy_agrees(seed):
    """Sizes at which the queue goes round, weights near the point where cycles turn negative."""
    rng = np.random.default_rng(seed)
    n, m = 60, 240
    tails, heads = np.divmod(np.unique(rng.integers(0, n * n, m)), n)
    weights = rng.integers(1, 60, len(tails)) - seed % 5 * 2
    potential = rng.integers(0, 50, n)
    arcs = list(zip(tails, heads, weights + potential[tails] - potential[heads], strict=True))
    graph = csr(n, arcs)
    found = find_negative_cycle(*graph)
    matrix = csr_array((graph[2].astype(float), graph[1], graph[0]), shape=(n, n))
    try:
        bellman_ford(matrix)
        assert found is None
    except NegativeCycleError:
        assert found is not None
        check(found, arcs, np.ones(n, bool))


def test_without_negative_weights_there_is_none():
    assert find_negative_cycle(np.array([0, 1, 2]), np.array([1, 0]), np.array([0, 0])) is None
    assert find_negative_cycle(np.array([0]), np.array([], int), np.array([], np.float32)) is None
    assert find_negative_cycle(np.array([0, 1, 2]), np.array([1, 0]), np.array([3, 4], np.uint16)) is None


def test_loops_count_even_at_closed_vertices():
    graph = csr(2, [(0, 1, 4), (1, 1, -2), (1, 1, -3)])
    assert find_negative_cycle(*graph, np.array([True, False])) == ((1,), -3)


def test_a_cycle_through_two_closed_vertices_is_no_way_to_go():
    arcs = [(0, 1, -5), (1, 2, 1), (2, 3, 1), (3, 0, 1)]
    through = np.ones(4, bool)
    assert find_negative_cycle(*csr(4, arcs), through)[1] == -2
    through[2] = False
    vertices, weight = find_negative_cycle(*csr(4, arcs), through)
    assert (vertices, weight) == ((2, 3, 0, 1), -2)
    through[0] = False
    assert find_negative_cycle(*csr(4, arcs), through) is None


def test_a_search_in_vain_leaves_nothing_behind():
    """0 has cheap arcs out and in, but no way from one to the other; 3 turns round where 0 had been before."""
    arcs = [(0, 1, -10), (2, 0, -10), (3, 1, -1), (1, 3, 0)]
    through = np.array([False, True, True, False])
    assert find_negative_cycle(*csr(4, arcs), through) == ((3, 1), -1)


def test_a_negative_undirected_edge_is_a_cycle():
    arcs = [(0, 1, -1), (1, 0, -1)]
    assert find_negative_cycle(*csr(2, arcs))[1] == -2
    assert find_negative_cycle(*csr(2, arcs), np.array([True, False])) == ((1, 0), -2)
    assert find_negative_cycle(*csr(2, arcs), np.array([False, False])) is None


@pytest.mark.parametrize("dtype", usual([np.float32, np.float64], {"float64"}))
@pytest.mark.parametrize("seed", range(10))
def test_zero_cycles_of_floats_are_not_reported(seed, dtype):
    """Differences of potentials sum to zero around every cycle."""
    rng = np.random.default_rng(seed)
    n, m = 200, 2000
    tails, heads = rng.integers(0, n, (2, m))
    # Multiples of 2^-20 below 1: exact in both dtypes.
    potential = rng.integers(0, 2**20, n) / 2**20
    arcs = list(zip(tails, heads, potential[tails] - potential[heads], strict=True))
    assert find_negative_cycle(*csr(n, arcs, dtype)) is None
    a, b = tails[0], heads[0]
    arcs.append((b, a, potential[b] - potential[a] - 2.0**-20))
    vertices, weight = find_negative_cycle(*csr(n, arcs, dtype))
    assert weight == -(2.0**-20)
    assert set(vertices) >= {a, b}


def test_rounding_makes_no_cycle():
    """0.1 + 0.2 - 0.3 is above zero by rounding one way round, and 0.3 - 0.1 - 0.2 below it the other way."""
    for weights in ([0.1, 0.2, -0.3], [-0.1, -0.2, 0.3], [0.3, -0.2, -0.1]):
        arcs = [(0, 1, weights[0]), (1, 2, weights[1]), (2, 0, weights[2])]
        assert find_negative_cycle(*csr(3, arcs, np.float64)) is None


def test_large_weights():
    big = 2**55
    arcs = [(0, 1, big), (1, 2, -big), (2, 0, 0)]
    assert find_negative_cycle(*csr(3, arcs)) is None
    graph = csr(3, arcs)
    graph[2][-1] = -1
    assert find_negative_cycle(*graph)[1] == -1
    with pytest.raises(ValueError, match="int64"):
        find_negative_cycle(*csr(3, [(0, 1, 2**62), (1, 2, -(2**62)), (2, 0, 0)]))
    with pytest.raises(ValueError, match="may exceed float64"):
        find_negative_cycle(*csr(3, [(0, 1, -1e308), (1, 2, -1e308), (2, 0, -1)], np.float64))


def test_a_negative_cycle_in_a_large_graph_is_found_soon():
    """After about as many relaxations as there are vertices, not n sweeps of all arcs, which would take minutes."""
    side = 250
    grid = np.arange(side * side).reshape(side, side)
    a = np.concatenate([grid[:, :-1].ravel(), grid[:-1].ravel()])
    b = np.concatenate([grid[:, 1:].ravel(), grid[1:].ravel()])
    tails, heads = np.concatenate([a, b]), np.concatenate([b, a])
    potential = np.random.default_rng(0).integers(0, 1000, side * side)
    weights = 3 + potential[tails] - potential[heads]
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails))])
    heads, weights = heads[order], weights[order]
    find_negative_cycle(indptr[:3], np.array([1, 0]), np.array([1, -1]))  # compiles
    begin = time.perf_counter()
    assert find_negative_cycle(indptr, heads, weights) is None
    weights[len(weights) // 2] -= 10
    vertices, weight = find_negative_cycle(indptr, heads, weights)
    assert weight == -4  # there and back: 3 + 3 - 10
    assert len(vertices) == 2
    assert time.perf_counter() - begin < 20
