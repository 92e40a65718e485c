"""Shortest paths against SciPy, NetworkX, a Bellman-Ford in NumPy that adds as the searches do, and a certificate."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import networkx as nx
import numba
import numpy as np
import pytest
import sparse_rows
from families import usual
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import bellman_ford as scipy_bellman_ford
from scipy.sparse.csgraph import dijkstra as scipy_dijkstra

from gpuops import (
    NegativeCycleError,
    batched_shortest_distances,
    improve_distances,
    search_graph,
    shortest_distances,
    shortest_path_tree,
)
from gpuops.arrays import on_host
from gpuops.certificates import verify_paths
from gpuops.numbers import outside_infinity
from gpuops.sssp import buckets_numba, profile_numba, pulls_numba, search_numba, sssp_numba, tree_numba, wheel_numba
from pipelines.generators import Grid, RMat, csr

DTYPES = ["float32", "float64", "int32"]
KINDS = ["undirected", "directed", "directed, no transpose"]

dtypes = pytest.mark.parametrize("dtype", usual(DTYPES))
kinds = pytest.mark.parametrize("kind", KINDS)


# --- Graphs -----------------------------------------------------------------------------------------------------------


rows = partial(sparse_rows.rows, vertex="int64")


def random_rows(seed, n, m, dtype, kind="directed", weights=None):
    """Few vertices with many arcs, many with few or none; loops, parallel arcs. Whole weights unless given."""
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random((2, m)) ** 2).astype(int)
    weights = rng.integers(0, 100, m) if weights is None else weights(rng, tails, heads)
    weights = np.asarray(weights).astype(dtype)
    if kind == "undirected":
        tails, heads, weights = (np.concatenate(x) for x in ((tails, heads), (heads, tails), (weights, weights)))
    return rows(n, tails, heads, weights)


def fractions(rng, tails, heads):
    """Sums of which are rounded."""
    return 1 - rng.random(len(tails))


def shifted(rng, tails, heads):
    """Some weights negative, no cycle: shifted by potentials."""
    potential = rng.integers(0, 200, max(tails.max(), heads.max()) + 1)
    return rng.integers(0, 100, len(tails)) + potential[tails] - potential[heads]


def laid_out(xp, arrays, kind="directed", through=None, **options):
    options = {"symmetric": kind == "undirected", "reverse": kind != "directed, no transpose"} | options
    if through is not None:
        options["through"] = xp.asarray(through)
    return search_graph(*map(xp.asarray, arrays), **options)


# --- References -------------------------------------------------------------------------------------------------------


def sparse(arrays):
    """For SciPy: parallel arcs reduced to the lightest, float64."""
    indptr, indices, weights = arrays
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((weights, indices, tails))
    tails, heads, weights = tails[order], indices[order], weights[order].astype(float)
    first = np.ones(len(tails), bool)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    n = len(indptr) - 1
    return csr_matrix((weights[first], (tails[first], heads[first])), (n, n))


def as_lengths(distances):
    """Float64 and +inf, whatever the dtype."""
    distances = on_host(distances)
    if distances.dtype.kind == "f":
        return distances.astype(float)
    return np.where(distances == outside_infinity(distances.dtype), np.inf, distances)


def plain_distances(arrays, dtype, sources, starts=0, through=None):
    """Bellman and Ford's rounds over all arcs, in NumPy; a closed vertex passes on what it started with."""
    indptr, heads, weights = arrays
    n, infinity = len(indptr) - 1, outside_infinity(dtype)
    wide = np.int64 if np.dtype(dtype).kind == "i" else np.dtype(dtype)
    tails = np.repeat(np.arange(n), np.diff(indptr))
    distances = np.full(n, infinity, wide)
    np.minimum.at(distances, sources, np.broadcast_to(starts, np.shape(sources)).astype(wide))
    begins, closed = distances.copy(), np.zeros(n, bool) if through is None else ~through
    for _ in range(n + 1):
        passed_on = np.where(closed, begins, distances)
        arcs = (passed_on < infinity)[tails]
        before = distances.copy()
        with np.errstate(over="ignore"):
            sums = (passed_on[tails] + weights).astype(wide)
        np.minimum.at(distances, heads[arcs], sums[arcs])
        if np.array_equal(before, distances):
            return distances.astype(dtype)
    raise AssertionError("a negative cycle")


def check(xp, arrays, dtype, sources, kind="directed", starts=None, through=None, cutoff=None):
    """Distances to the bit, and the certificate for the tree; returns both."""
    graph = laid_out(xp, arrays, kind, through, dtype=dtype)
    distances = shortest_distances(graph, sources, starts=starts, cutoff=cutoff)
    tree = shortest_path_tree(graph, distances, sources, starts=0 if starts is None else starts)
    assert isinstance(distances, xp.ndarray)
    assert isinstance(tree, xp.ndarray)
    distances, tree = on_host(distances), on_host(tree)
    assert distances.dtype == dtype
    assert tree.dtype == np.int32
    expected = plain_distances(arrays, dtype, sources, 0 if starts is None else starts, through)
    if cutoff is not None:
        expected[expected > cutoff] = outside_infinity(dtype)
    np.testing.assert_array_equal(distances, expected)
    assert not (np.signbit(distances) & (distances == 0)).any()
    verify_paths(*arrays, distances, tree, sources, starts=starts, through=through, cutoff=cutoff)
    return distances, tree


# --- Weights that are not negative ------------------------------------------------------------------------------------


@dtypes
@kinds
@pytest.mark.parametrize(("n", "m"), [(1, 0), (2, 1), (60, 80), (200, 300), (300, 5000)])
def test_against_scipy(xp, dtype, kind, n, m):
    arrays = random_rows(n, n, m, dtype, kind)
    for source in {0, n // 3, n - 1}:
        distances, _ = check(xp, arrays, dtype, [source], kind)
        np.testing.assert_array_equal(as_lengths(distances), scipy_dijkstra(sparse(arrays), indices=source))


@dtypes
@kinds
def test_rounded_sums_to_the_bit(xp, dtype, kind):
    if dtype == "int32":
        arrays = random_rows(7, 400, 4000, dtype, kind)
    else:
        arrays = random_rows(7, 400, 4000, dtype, kind, fractions)
    for source in 3, 399:
        check(xp, arrays, dtype, [source], kind)


@dtypes
@pytest.mark.parametrize("graph", [RMat(10, seed=3), Grid(40, seed=3), Grid(25, seed=1, weights="integers")], ids=str)
def test_generated_graphs(xp, graph, dtype):
    indptr, indices, weights = csr(graph)
    arrays = indptr, indices, (weights if dtype != "int32" else 1000 * weights).astype(dtype)
    check(xp, arrays, dtype, [int(np.argmax(np.diff(indptr)))], "undirected")
    check(xp, arrays, dtype, [5], "undirected")


def test_no_vertices(xp):
    graph = laid_out(xp, rows(0, [], [], np.empty(0, "float32")))
    assert shortest_distances(graph, []).shape == (0,)
    assert shortest_path_tree(graph, shortest_distances(graph, []), []).shape == (0,)
    assert batched_shortest_distances(graph, []).shape == (0, 0)
    assert improve_distances(graph, xp.empty(0, "float32")) == 0


def test_no_sources(xp):
    graph = laid_out(xp, random_rows(1, 20, 50, "int32"))
    distances = shortest_distances(graph, [])
    assert (on_host(distances) == 2**31 - 1).all()
    assert (on_host(shortest_path_tree(graph, distances, [])) == -1).all()


def test_sources_may_be_arrays(xp):
    graph = laid_out(xp, random_rows(1, 20, 50, "int32"))
    expected = on_host(shortest_distances(graph, [3, 5]))
    for sources in (3, 5), np.array([3, 5], np.int32), xp.asarray([3, 5]):
        np.testing.assert_array_equal(on_host(shortest_distances(graph, sources)), expected)


@dtypes
@kinds
def test_several_sources_with_starts(xp, dtype, kind):
    arrays = random_rows(5, 150, 600, dtype, kind)
    check(xp, arrays, dtype, [5, 60, 149], kind)
    check(xp, arrays, dtype, [5, 60, 149], kind, starts=[7, 0, 30])
    check(xp, arrays, dtype, [5, 60, 5], kind, starts=[7, 90, 3])
    check(xp, arrays, dtype, [5, 60], kind, starts=4)
    check(xp, arrays, dtype, [5, 60], kind, starts=[-20, 3])


@dtypes
@kinds
@pytest.mark.parametrize("cutoff", [0, 30, 71.5, 1e9])
def test_cutoff(xp, dtype, kind, cutoff):
    arrays = random_rows(6, 200, 700, dtype, kind)
    distances, _ = check(xp, arrays, dtype, [0], kind, cutoff=cutoff)
    assert (distances < outside_infinity(dtype)).any()


def test_a_start_beyond_the_cutoff(xp):
    distances, _ = check(xp, random_rows(6, 200, 700, "float32"), "float32", [0, 4], starts=[3, 50], cutoff=20)
    assert distances[0] == 3


@dtypes
@kinds
def test_ties_make_a_forest(xp, dtype, kind):
    """Zero weights; and in floats, weights too small to show in a sum."""

    def weights(rng, tails, heads):
        tiny = 0 if dtype == "int32" else 1e-30
        return np.choose(rng.integers(0, 3, len(tails)), [0, tiny, rng.integers(1, 4, len(tails))])

    for seed in range(3):
        arrays = random_rows(seed, 150, 500, dtype, kind, weights)
        check(xp, arrays, dtype, [0], kind)
        check(xp, arrays, dtype, [3, 70, 80], kind)


def test_all_weights_zero(xp):
    arrays = random_rows(3, 100, 400, "int32", "undirected", lambda rng, tails, heads: np.zeros(len(tails)))
    check(xp, arrays, "int32", [17], "undirected")


@dtypes
@kinds
def test_closed_vertices(xp, dtype, kind):
    """Paths begin at sources even if these are closed."""
    for seed in range(3):
        through = np.random.default_rng(seed).random(150) < 0.6
        arrays = random_rows(seed, 150, 900, dtype, kind)
        closed, open_ = np.flatnonzero(~through)[:20], np.flatnonzero(through)[:20]
        for sources in closed[:1], closed, open_[:1], np.concatenate((closed, open_)):
            check(xp, arrays, dtype, sources.tolist(), kind, through=through)
        sources = np.concatenate((closed, open_)).tolist()
        starts = np.random.default_rng(seed).integers(0, 150, len(sources))
        check(xp, arrays, dtype, sources, kind, starts=starts, through=through)


def test_a_closed_source_passes_on_its_start(xp):
    """0 -> 1 -> 2 with 1 closed: through 1 it would be 2, from the start of 1 it is 6."""
    arrays = rows(3, [0, 1], [1, 2], np.array([1, 1], "int32"))
    distances, tree = check(xp, arrays, "int32", [0, 1], starts=[0, 5], through=np.array([True, False, True]))
    assert distances.tolist() == [0, 1, 6]
    assert tree.tolist() == [-1, 0, 1]


def test_heads_of_a_displaced_closed_source(xp):
    """0 -> 1 -> {2, 3, 4}, 2 -> 5 and 3 -> 5 with 1 and 3 closed; the paths of 2, 3 and 4 begin at 1.

    The arc from 3 to 5 is as tight as that from 2, and lighter, but no path leads through 3.
    """
    tails, heads = [0, 1, 1, 1, 2, 3, 4], [1, 2, 3, 4, 5, 5, 3]
    arrays = rows(6, tails, heads, np.array([1, 0, 1, 0, 3, 2, 9], "float32"))
    through = np.array([True, False, True, False, True, True])
    distances, tree = check(xp, arrays, "float32", [0, 1], starts=[0, 5], through=through)
    assert distances.tolist() == [0, 1, 5, 6, 5, 8]
    assert tree.tolist() == [-1, 0, 1, 1, 1, 2]


# --- int32 ------------------------------------------------------------------------------------------------------------


def test_sums_that_do_not_fit_are_an_error(xp):
    far = 2**30
    arrays = rows(4, [0, 1, 2], [1, 2, 3], np.full(3, far, "int32"))
    for graph in laid_out(xp, arrays), laid_out(xp, arrays, reverse=False):
        with pytest.raises(OverflowError, match="distances exceed int32; use float64"):
            shortest_distances(graph, [0])
        with pytest.raises(OverflowError, match="use float64"):
            batched_shortest_distances(graph, [3, 0])
        with pytest.raises(OverflowError, match="use float64"):
            shortest_distances(graph, [3, 1], starts=[0, far])
    closed = laid_out(xp, arrays, through=np.array([True, False, False, True]))
    assert as_lengths(shortest_distances(closed, [0])).tolist() == [0, far, np.inf, np.inf]
    heavy_last = laid_out(xp, rows(3, [0, 1], [1, 2], np.array([1, 2**31 - 2], "int32")))
    with pytest.raises(OverflowError, match="use float64"):
        shortest_distances(heavy_last, [0])


def test_a_sum_from_a_closed_source_that_does_not_fit_is_an_error(xp):
    graph = laid_out(xp, rows(2, [0], [1], np.array([2**30], "int32")), through=np.array([False, True]))
    with pytest.raises(OverflowError, match="use float64"):
        shortest_distances(graph, [0], starts=2**30)


def test_the_largest_distance(xp):
    arrays = rows(3, [0, 1], [1, 2], np.array([2**31 - 3, 1], "int32"))
    graph = laid_out(xp, arrays)
    assert on_host(shortest_distances(graph, [0])).tolist() == [0, 2**31 - 3, 2**31 - 2]
    with pytest.raises(OverflowError):
        shortest_distances(graph, [0], starts=1)


def test_sums_that_do_not_matter_may_not_fit(xp):
    far = 2**30
    arrays = rows(3, [0, 1, 0, 2], [1, 2, 2, 0], np.array([far, far, 5, 2**31 - 2], "int32"))
    distances, _ = check(xp, arrays, "int32", [0])
    assert distances.tolist() == [0, far, 5]


def test_sums_below_the_range(xp):
    arrays = rows(4, [0, 1, 2], [1, 2, 3], np.full(3, -(2**30), "int32"))
    with pytest.raises(OverflowError, match="use float64"):
        shortest_distances(laid_out(xp, arrays), [0])


@kinds
@pytest.mark.parametrize("last", [1, -1])
def test_float_sums_that_overflow_reach_nothing(xp, kind, last):
    if kind == "undirected":
        arrays = rows(4, [0, 1, 1, 2], [1, 0, 2, 1], np.full(4, 3e38, "float32"))
    else:
        arrays = rows(4, [0, 1, 2], [1, 2, 3], np.array([3e38, 3e38, last], "float32"))
    distances, tree = check(xp, arrays, "float32", [0], kind)
    assert distances[1:].tolist() == [np.float32(3e38), np.inf, np.inf]
    assert tree.tolist() == [-1, 0, -1, -1]


# --- Negative weights -------------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("kind", KINDS[1:])  # an edge of negative weight is a negative cycle
@pytest.mark.parametrize(("n", "m"), [(60, 80), (300, 5000)])
def test_negative_weights_against_scipy(xp, dtype, kind, n, m):
    arrays = random_rows(n, n, m, dtype, kind, shifted)
    assert arrays[2].min() < 0
    for source in 0, n // 2:
        distances, _ = check(xp, arrays, dtype, [source], kind)
        np.testing.assert_array_equal(as_lengths(distances), scipy_bellman_ford(sparse(arrays), indices=source))
    check(xp, arrays, dtype, [0, 5, 9])
    check(xp, arrays, dtype, [0, 5, 9], starts=[30, -70, 0])


@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
def test_rounded_sums_of_negative_weights_to_the_bit(xp, dtype):
    """Distances fall by rounding on the way down a subtree, or stay the same."""
    for seed in range(5):
        arrays = random_rows(seed, 200, 3000, dtype, weights=lambda *a: shifted(*a) / 7 + 5 * fractions(*a))
        check(xp, arrays, dtype, [seed])


def test_what_descends_may_come_no_nearer_by_rounding(xp):
    """Vertex 3 comes nearer after 4 was reached from it: to 4 that makes no difference, and 5 must not be forgotten.

    0 -> 1 -> 2 -> 3 is a little shorter than 0 -> 3; then 3 -> 4 -> 5.
    """
    tails, heads = [0, 1, 0, 2, 3, 4, 5], [1, 2, 3, 3, 4, 5, 6]
    weights = np.array([0, 0, 1024 + 2.0**-13, 1024, 1e6, 1, -1], "float32")
    distances, _ = check(xp, rows(7, tails, heads, weights), "float32", [0])
    assert distances.tolist() == [0, 0, 0, 1024, 1001024, 1001025, 1001024]


@dtypes
def test_negative_weights_and_closed_vertices(xp, dtype):
    for seed in range(3):
        through = np.random.default_rng(seed).random(150) < 0.6
        arrays = random_rows(seed, 150, 900, dtype, weights=shifted)
        closed = np.flatnonzero(~through)[:9].tolist()
        for sources in closed[:1], closed, [0, 1, 2, *closed]:
            check(xp, arrays, dtype, sources, through=through)


def with_cycle(dtype, way_in):
    """A cycle 100, ..., 104 of weight -1 beside a graph that has none."""
    indptr, heads, weights = random_rows(1, 100, 900, dtype, weights=shifted)
    tails = np.repeat(np.arange(100), np.diff(indptr))
    cycle = np.arange(100, 105)
    tails, heads = np.concatenate((tails, cycle)), np.concatenate((heads, np.roll(cycle, -1)))
    weights = np.concatenate((weights, np.array([3, -7, 2, 4, -3], dtype)))
    if way_in is not None:
        tails, heads, weights = (
            np.append(tails, way_in),
            np.append(heads, 102),
            np.append(weights, weights.dtype.type(5)),
        )
    return rows(105, tails, heads, weights)


@dtypes
def test_a_negative_cycle_is_returned(xp, dtype):
    arrays = with_cycle(dtype, way_in=0)
    graph = laid_out(xp, arrays)
    for search in shortest_distances, batched_shortest_distances:
        with pytest.raises(NegativeCycleError, match="5 vertices and weight -1") as caught:
            search(graph, [0])
        vertices = caught.value.vertices
        assert vertices == tuple(np.roll(np.arange(100, 105), 100 - vertices[0]).tolist())
        assert caught.value.weight == -1
    # With a closed vertex on it, nobody goes around.
    check(xp, arrays, dtype, [0], through=np.arange(105) != 103)


@dtypes
def test_a_negative_cycle_that_no_source_reaches_does_not_count(xp, dtype):
    arrays = with_cycle(dtype, way_in=None)
    check(xp, arrays, dtype, [0])
    with pytest.raises(NegativeCycleError):
        shortest_distances(laid_out(xp, arrays), [0, 101])


def test_a_negative_cycle_through_a_closed_source(xp):
    """0 -> 1 -> 2 -> 0 weighs -1, and 0 is closed."""
    arrays = rows(3, [0, 1, 2], [1, 2, 0], np.array([4, -7, 2], "int32"))
    graph = laid_out(xp, arrays, through=np.array([False, True, True]))
    with pytest.raises(NegativeCycleError) as caught:
        shortest_distances(graph, [0])
    assert caught.value.vertices == (1, 2, 0)
    assert caught.value.weight == -1
    assert on_host(shortest_distances(graph, [1])).tolist() == [-5, 0, -7]


def test_a_negative_cycle_is_found_soon(xp):
    """Beside a path so long that n rounds over n arcs would take all day."""
    n = 200_000
    path = np.arange(n - 1)
    tails, heads = np.append(path, [5, 6]), np.append(path + 1, [6, 5])
    weights = np.append(np.ones(n - 1), [1, -2]).astype("float32")
    weights[5] = 3
    with pytest.raises(NegativeCycleError) as caught:
        shortest_distances(laid_out(xp, rows(n, tails, heads, weights)), [0])
    assert sorted(caught.value.vertices) == [5, 6]


def test_a_cycle_that_falls_by_rounding_ends_with_an_error(xp):
    """Its weights add up to 0, but beside 1023 the small ones, less than half of 2^-14, are lost."""
    small = 7 * 2.0**-18
    weights = np.array([0, 1023, small, small, -1023, -2 * small], "float32")
    graph = laid_out(xp, rows(6, [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 1], weights))
    with pytest.raises(NegativeCycleError, match="rounds to less than 0") as caught:
        shortest_distances(graph, [0])
    assert caught.value.vertices == ()


def test_negative_cycles_against_networkx(xp):
    outcomes = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        tails, heads = rng.integers(0, 40, (2, 80))
        heads = np.where(heads == tails, (heads + 1) % 40, heads)
        weights = rng.integers(-2 - seed % 4, 9, 80).astype("int32")
        arrays = rows(40, tails, heads, weights)
        reference = nx.MultiDiGraph()
        reference.add_nodes_from(range(40))
        reference.add_weighted_edges_from(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
        graph = laid_out(xp, arrays)
        try:
            expected = nx.single_source_bellman_ford_path_length(reference, 0)
        except nx.NetworkXUnbounded:
            with pytest.raises(NegativeCycleError) as caught:
                shortest_distances(graph, [0])
            cycle, weight = caught.value.vertices, caught.value.weight
            steps = zip(cycle, np.roll(cycle, -1).tolist(), strict=True)
            assert sum(min(arc["weight"] for arc in reference[u][v].values()) for u, v in steps) == weight < 0
            outcomes.append("cycle")
        else:
            found = as_lengths(shortest_distances(graph, [0]))
            assert {v: d for v, d in enumerate(found.tolist()) if d < np.inf} == expected
            outcomes.append("distances")
    assert set(outcomes) == {"cycle", "distances"}


# --- Negative weights by windows --------------------------------------------------------------------------------------


def skewed(dtype, seed=3, scale=9):
    """An R-MAT graph, weights shifted by potentials."""
    indptr, heads, weights = csr(RMat(scale, seed=seed, weights="integers"))
    tails, potentials = (
        np.repeat(np.arange(1 << scale), np.diff(indptr)),
        np.random.default_rng(seed).integers(0, 400, 1 << scale),
    )
    shifted = weights.astype(np.int64) + potentials[tails] - potentials[heads]
    return indptr, heads, shifted.astype(dtype)


@pytest.fixture
def pulled_early(monkeypatch):
    """Pulls begin as soon as there is something to pull, and go on until the end; many vertices are let go."""
    for name, value in {"_MANY": 0, "_PULL": 1 / 64, "_LET_GO": 1 / 64, "_FEW": 1 / 2000, "_NEAREST": 1}.items():
        monkeypatch.setattr(pulls_numba if name == "_FEW" else search_numba, name, value)


@dtypes
def test_negative_weights_are_hardly_read(dtype):
    """As many arcs are read as without the shift, a small part, and the potentials show that no cycle is negative."""
    arrays = skewed(dtype, scale=12)
    graph = laid_out(np, arrays)
    assert graph.negative
    tails = np.repeat(np.arange(graph.n), np.diff(graph.indptr))
    reduced = graph.weights + graph.potentials[tails] - graph.potentials[graph.indices]
    assert reduced.min() >= 0
    search, pulls = search_on_cpu(graph, int(graph.order[9]))
    assert pulls
    changed, passes = pulls_numba.pull(
        graph, pulls_numba.pull_rows, search.distances, search.floor, search.last, search.late
    )
    assert passes < 8
    search.go_on_from(changed, passes)
    assert not search.push()
    assert search.touched < 0.25 * graph.m
    np.testing.assert_array_equal(search.distances[graph.rank], shortest_distances(graph, [graph.order[9]]))


@dtypes
@pytest.mark.parametrize("kind", KINDS[1:])
def test_windows_over_negative_weights_to_the_bit(dtype, kind, pulled_early):
    for seed in range(4):
        arrays = skewed(dtype, seed)
        if dtype != "int32":
            arrays = *arrays[:2], (arrays[2] / 7 + np.random.default_rng(seed).random(len(arrays[2]))).astype(dtype)
        through = np.random.default_rng(seed).random(512) < 0.8 if seed % 2 else None
        assert laid_out(np, arrays, kind, through).potentials is not None
        check(np, arrays, dtype, [seed, 100], kind, starts=[5, -300], through=through)


def test_distances_that_rounding_brings_back_behind_the_window(pulled_early, monkeypatch):
    """Weights small beside potentials: a rounded sum may be nearer than it should, behind what counts as final."""
    late = []

    def pull(*arguments):
        changed, passes = pulls_numba.pull(*arguments)
        late.append(np.count_nonzero(changed == pulls_numba.LATE))
        return changed, passes

    monkeypatch.setattr(sssp_numba, "pull", pull)
    for seed in 96, 192, 266:  # in one in a hundred of such graphs it matters
        rng = np.random.default_rng(seed)
        n, m = 400, 6000
        tails, heads = rng.integers(0, n, (2, m))
        potentials = 1e6 * rng.random(n)
        weights = 0.01 * rng.random(m) + potentials[tails] - potentials[heads] + 0.125
        weights[tails == heads] = 1
        arrays = rows(n, tails, heads, weights.astype("float32"))
        graph = laid_out(np, arrays)
        assert graph.potentials is not None
        np.testing.assert_array_equal(shortest_distances(graph, [0]), plain_distances(arrays, "float32", [0]))
    assert sum(late) > 0


def test_sums_that_fall_by_rounding_beside_a_skewed_graph():
    """The cycle of `test_a_cycle_that_falls_by_rounding_ends_with_an_error`: potentials exist, rounded sums fall on."""
    indptr, heads, weights = skewed("float32")
    tails, n, small = np.repeat(np.arange(512), np.diff(indptr)), 512, 7 * 2.0**-18
    cycle = np.array([0, 1023, small, small, -1023, -2 * small], "float32")
    tails, heads = (
        np.concatenate((tails, [0, *range(n + 1, n + 6)])),
        np.concatenate((heads, [*range(n + 1, n + 6), n + 1])),
    )
    graph = laid_out(np, rows(n + 6, tails, heads, np.concatenate((weights, cycle))))
    assert graph.potentials is not None
    with pytest.raises(NegativeCycleError, match="rounds to less than 0"):
        shortest_distances(graph, [0])


@pytest.mark.parametrize("sign", [1, -1])
def test_windows_over_negative_weights_that_leave_the_range(sign):
    """Three arcs of half of the range behind a skewed graph: two fit, and so they do where rows are not by weight."""
    indptr, heads, weights = skewed("int32")
    tails, n = np.repeat(np.arange(512), np.diff(indptr)), 512
    for length in 1, 3:
        chain = np.arange(n, n + length)
        arrays = rows(
            n + length,
            np.concatenate((tails, [tails[0]], chain[:-1])),
            np.concatenate((heads, chain)),
            np.concatenate((weights, np.full(length, sign * 2**30, "int32"))),
        )
        graph = laid_out(np, arrays)
        assert graph.potentials is not None
        if length == 1:
            check(np, arrays, "int32", [tails[0]])
        else:
            with pytest.raises(OverflowError, match="use float64"):
                shortest_distances(graph, [tails[0]])


@dtypes
def test_what_is_not_reached_leads_nowhere(dtype, pulled_early):
    """Not even by a negative weight, to other vertices that are not reached."""
    indptr, heads, weights = skewed(dtype)
    tails, others = np.repeat(np.arange(512), np.diff(indptr)), np.arange(512, 532)
    tails = np.concatenate((tails, others[:-1], others[:-1]))
    heads = np.concatenate((heads, others[1:], np.arange(19)))
    arrays = rows(532, tails, heads, np.concatenate((weights, np.full(38, -9, dtype))))
    assert laid_out(np, arrays).potentials is not None
    distances, _ = check(np, arrays, dtype, [0])
    assert (distances[others] == outside_infinity(dtype)).all()


def test_a_cycle_that_is_negative_by_less_than_rounding():
    """It has no potentials, also where the lengths of walks, 1000 and more, cannot tell."""
    indptr, heads, weights = skewed("float64")
    tails = np.concatenate((np.repeat(np.arange(512), np.diff(indptr)), [0, 512, 513, 514, 512]))
    heads, least = np.concatenate((heads, [512, 513, 514, 512, 515])), 2.0**-51
    weights = np.concatenate((weights, [1e3, 1 / 3, 2 / 3, -1 - least, -1e3]))
    graph = laid_out(np, rows(516, tails, heads, weights))
    assert graph.potentials is None
    with pytest.raises(NegativeCycleError) as caught:
        shortest_distances(graph, [512])
    assert -4 * least < caught.value.weight < 0


def test_graphs_without_potentials():
    """A negative cycle somewhere, or chains that many passes would follow: the queue finds the same distances."""
    assert laid_out(np, with_cycle("int32", way_in=None)).potentials is None
    chain = np.arange(2000)
    tails, heads = np.append(np.zeros(20000, int), chain), np.append(np.arange(20000) % 2000, chain + 1)
    weights = np.append(np.ones(20000), np.full(2000, -1)).astype("int32")
    arrays = rows(2001, tails, heads, weights)
    graph = laid_out(np, arrays)
    assert graph.potentials is None
    np.testing.assert_array_equal(shortest_distances(graph, [0]), -np.arange(2001))


# --- Certificate ------------------------------------------------------------------------------------------------------

weights_by_dtype = {
    "int32": st.integers(0, 4),
    "float32": st.sampled_from([0, 1e-30, 0.1, 1 / 3, 1, 3e7]),
    "float64": st.sampled_from([0, 1e-30, 0.1, 1 / 3, 1, 3e7]),
}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), dtype=st.sampled_from(DTYPES), kind=st.sampled_from(KINDS), negative=st.booleans())
def test_any_small_graph(xp, data, dtype, kind, negative):
    n = data.draw(st.integers(1, 8), "n")
    vertex = st.integers(0, n - 1)
    arcs = data.draw(st.lists(st.tuples(vertex, vertex, weights_by_dtype[dtype]), max_size=24), "arcs")
    tails, heads = (np.array([arc[i] for arc in arcs], int) for i in (0, 1))
    weights = np.array([arc[2] for arc in arcs], dtype)
    if negative and kind != "undirected":  # in a dag there are no cycles
        forward = tails < heads
        weights = np.where(forward, -weights, weights)[forward]
        tails, heads = tails[forward], heads[forward]
    elif kind == "undirected":
        tails, heads, weights = (np.concatenate(x) for x in ((tails, heads), (heads, tails), (weights, weights)))
    through = data.draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n), "through")
    sources = data.draw(st.lists(vertex, min_size=1, max_size=3, unique=True), "sources")
    starts = data.draw(st.none() | st.lists(st.integers(-3, 3), min_size=len(sources), max_size=len(sources)), "starts")
    mask = None if through is None else np.array(through)
    arrays = rows(n, tails, heads, weights)
    check(xp, arrays, dtype, sources, kind, starts=starts, through=mask)


# --- In place ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, shifted], ids=["nonnegative", "negative"])
def test_a_graph_in_two_pieces(xp, weights):
    """Each piece has the arcs that leave its own vertices; the others are ghosts. News travels until there is none."""
    n, through = 200, np.random.default_rng(2).random(200) < 0.9
    indptr, heads, lengths = random_rows(2, n, 1500, "float32", weights=weights)
    through[3] = True
    pieces = []
    for own in np.arange(n) < 90, np.arange(n) >= 90:
        kept = np.repeat(own, np.diff(indptr))
        counts = np.where(own, np.diff(indptr), 0)
        arrays = np.concatenate([[0], np.cumsum(counts)]), heads[kept], lengths[kept]
        pieces.append((laid_out(xp, arrays, through=through), own))
    known = [np.full(n, np.inf, "float32") for _ in pieces]
    for row in known:
        row[3] = 0
    pending = [own & (row < np.inf) for row, (_, own) in zip(known, pieces, strict=True)]
    rounds = 0
    while any(mask.any() for mask in pending):
        rounds += 1
        for i, (graph, _) in enumerate(pieces):
            distances, mask = (xp.asarray(x)[graph.order] for x in (known[i], pending[i]))
            improve_distances(graph, distances, mask)
            known[i] = on_host(distances[graph.rank])
            pending[i] = np.zeros(n, bool)
            other = pieces[1 - i][1]
            news = other & (known[i] < known[1 - i])
            pending[1 - i] |= news
            known[1 - i][news] = known[i][news]
    assert rounds > 2
    expected = plain_distances((indptr, heads, lengths), "float32", [3], through=through)
    np.testing.assert_array_equal(np.where(pieces[0][1], *known), expected)


def test_only_pending_vertices_that_are_open_push(xp):
    graph = laid_out(
        xp, rows(4, [0, 1, 2], [1, 2, 3], np.ones(3, "float32")), through=np.array([True, False, True, True])
    )

    def improved(distances, pending=None):
        row = xp.asarray(np.array(distances, "float32"))[graph.order]
        mask = None if pending is None else xp.asarray(np.array(pending, bool))[graph.order]
        improve_distances(graph, row, mask)
        return on_host(row[graph.rank]).tolist()

    inf = np.inf
    assert improved([0, inf, inf, inf]) == [0, 1, inf, inf]
    assert improved([0, 5, inf, inf]) == [0, 1, inf, inf]
    assert improved([0, inf, 7, inf], [0, 0, 1, 0]) == [0, inf, 7, 8]
    assert improved([0, 4, 7, inf], [0, 1, 0, 0]) == [0, 4, 7, inf]
    assert improved([-0.0, inf, -3, inf]) == [0, 1, -3, -2]


def test_rows_that_do_not_fit(xp):
    graph = laid_out(xp, random_rows(1, 20, 50, "float32"))
    for row in xp.zeros(19, "float32"), xp.zeros(20, "float64"):
        with pytest.raises(ValueError, match=r"needs float32 of \(20,\)"):
            improve_distances(graph, row)
        with pytest.raises(ValueError, match="distances are"):
            shortest_path_tree(graph, row, [0])
    with pytest.raises(ValueError, match="contiguous"):
        improve_distances(graph, xp.zeros(40, "float32")[::2])
    with pytest.raises(ValueError, match="pending are"):
        improve_distances(graph, xp.zeros(20, "float32"), xp.zeros(20, "int8"))
    with pytest.raises(TypeError, match="distances are a list"):
        improve_distances(graph, [0.0] * 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sources": [20]}, "source 20 is not a vertex; vertices are 0 to 19"),
        ({"sources": [-1]}, "source -1"),
        ({"sources": [0.5]}, "float64"),
        ({"sources": [[1]]}, "sequence of vertices"),
        ({"sources": [1], "starts": [1, 2]}, "1 sources, but starts of shape"),
        ({"sources": [1], "starts": np.nan}, "finite"),
        ({"sources": [1], "starts": 2**31 - 1}, "finite int32"),
        ({"sources": [1], "starts": 0.5}, "fractions"),
        ({"sources": [1], "cutoff": np.nan}, "NaN"),
    ],
)
def test_arguments_that_make_no_sense(xp, arguments, message):
    graph = laid_out(xp, random_rows(1, 20, 50, "int32"))
    with pytest.raises(ValueError, match=message):
        shortest_distances(graph, **arguments)


def test_a_cutoff_does_not_go_with_negative_weights(xp):
    graph = laid_out(xp, random_rows(1, 20, 50, "int32", weights=shifted))
    with pytest.raises(ValueError, match="cutoff and come back"):
        shortest_distances(graph, [0], cutoff=5)


# --- Many searches at once --------------------------------------------------------------------------------------------


@dtypes
@kinds
@pytest.mark.parametrize("count", [1, 5, 37])
def test_many_searches_at_once(xp, dtype, kind, count):
    arrays = random_rows(count, 250, 4000, dtype, kind, None if dtype == "int32" else fractions)
    through = np.random.default_rng(1).random(250) < 0.8 if count == 5 else None
    graph = laid_out(xp, arrays, kind, through)
    sources = np.random.default_rng(count).integers(0, 250, count)
    distances = batched_shortest_distances(graph, sources)
    assert distances.shape == (count, 250)
    for row, source in zip(on_host(distances), sources.tolist(), strict=True):
        np.testing.assert_array_equal(row, plain_distances(arrays, dtype, [source], through=through))


def test_many_searches_with_negative_weights(xp):
    arrays = random_rows(2, 60, 200, "float64", weights=shifted)
    distances = on_host(batched_shortest_distances(laid_out(xp, arrays), range(5)))
    for source in range(5):
        np.testing.assert_array_equal(distances[source], plain_distances(arrays, "float64", [source]))


def test_many_searches_of_a_skewed_graph(xp):
    """Where searches end by pulls."""
    arrays = csr(RMat(11, seed=5))
    graph = laid_out(xp, arrays, "undirected")
    sources = np.random.default_rng(1).choice(np.flatnonzero(np.diff(arrays[0])), 20)
    distances = batched_shortest_distances(graph, sources)
    for row, source in zip(distances, sources.tolist(), strict=True):
        tree = shortest_path_tree(graph, row, [source])
        verify_paths(*arrays, on_host(row), on_host(tree), [source])


# --- How much is done -------------------------------------------------------------------------------------------------


def search_on_cpu(graph, source, **options):
    distances = np.full(graph.n, outside_infinity(graph.dtype))
    distances[graph.rank[source]] = 0
    search = search_numba.Search(graph, distances, **options)
    return search, search.push()


def test_skewed_graphs_are_pulled_and_hardly_read():
    arrays = csr(RMat(12, seed=1))
    graph = laid_out(np, arrays, "undirected")
    search, pulls = search_on_cpu(graph, int(graph.order[9]))
    assert pulls
    assert search.touched < 0.1 * graph.m
    changed, passes = pulls_numba.pull(graph, pulls_numba.pull_rows, search.distances, search.floor, search.last)
    assert passes < 6
    search.go_on_from(changed, passes)
    assert not search.push()
    assert search.touched < 0.2 * graph.m


def test_pulls_are_dealt_by_rows_not_by_arcs_that_nobody_reads():
    """Long rows come first, and little of them is read: ranges of as many arcs would leave the short ones to a few."""
    graph = laid_out(np, csr(RMat(15, seed=1)), "undirected")
    vertices = np.diff(profile_numba.profile(graph).cuts)
    assert len(vertices) > 8
    assert vertices.max() < 2.5 * vertices.mean()


def test_memory_of_a_search_serves_the_next():
    """Searches of different sources on one piece of memory, which the first leaves as it pleases."""
    arrays = csr(RMat(11, seed=5))
    graph = laid_out(np, arrays, "undirected")
    scratch = search_numba.Scratch.of(graph)
    for part in scratch:
        part.fill(7)
    for source in np.flatnonzero(np.diff(arrays[0]))[:6].tolist():
        search, pulls = search_on_cpu(graph, source, scratch=scratch)
        assert pulls
        distances = search.distances
        search.go_on_from(*pulls_numba.pull(graph, pulls_numba.pull_rows, distances, search.floor, search.last))
        search.push()
        np.testing.assert_array_equal(distances[graph.rank], shortest_distances(graph, [source]))


def test_grids_are_not_pulled_and_each_arc_is_read_once_or_little_more():
    graph = laid_out(np, csr(Grid(120, seed=1)), "undirected")
    search, pulls = search_on_cpu(graph, 7)
    assert not pulls
    assert graph.m <= search.touched < 1.2 * graph.m
    assert search.rounds < 400


def test_a_long_path_behind_a_skewed_graph(xp):
    """Pulls stop although something changes in each pass, one more vertex of the path; what is left is pushed."""
    indptr, indices, weights = csr(RMat(11, seed=2))
    hub, n, length = int(np.argmax(np.diff(indptr))), len(indptr) - 1, 300
    tails, heads = np.repeat(np.arange(n), np.diff(indptr)), indices.astype(np.int64)
    # Against the order of vertices, in which passes go.
    path = np.append(hub, n + np.arange(length)[::-1])
    tails, heads = np.concatenate((tails, path[:-1], path[1:])), np.concatenate((heads, path[1:], path[:-1]))
    arrays = rows(n + length, tails, heads, np.concatenate((weights, np.full(2 * length, 0.5, "float32"))))
    distances, _ = check(xp, arrays, "float32", [hub], "undirected")
    assert distances[path[-1]] == length / 2
    graph = laid_out(xp, arrays, "undirected")
    np.testing.assert_array_equal(on_host(batched_shortest_distances(graph, [hub, 5]))[0], distances)


def test_closed_vertices_at_which_pulls_stop(xp):
    """Paths of all lengths up to 12 leave a hub; each ends with a closed vertex, beyond which nothing is reached."""
    indptr, indices, weights = csr(RMat(11, seed=2))
    hub, n = int(np.argmax(np.diff(indptr))), len(indptr) - 1
    tails, heads, closed = [np.repeat(np.arange(n), np.diff(indptr))], [indices.astype(np.int64)], []
    for length in range(1, 13):
        path = np.append(hub, n + np.arange(length + 1)[::-1])
        tails += [path[:-1], path[1:]]
        heads += [path[1:], path[:-1]]
        closed.append(path[-2])
        n += length + 1
    tails, heads = np.concatenate(tails), np.concatenate(heads)
    weights = np.append(weights, np.full(len(tails) - len(weights), 0.5, "float32"))
    through = ~np.isin(np.arange(n), closed)
    arrays = rows(n, tails, heads, weights)
    distances, _ = check(xp, arrays, "float32", [hub], "undirected", through=through)
    assert (distances[np.array(closed) - 1] == np.inf).all()
    graph = laid_out(xp, arrays, "undirected", through)
    for source, row in zip((hub, 5), on_host(batched_shortest_distances(graph, [hub, 5])), strict=True):
        np.testing.assert_array_equal(row, plain_distances(arrays, "float32", [source], through=through))


def test_searches_from_several_threads():
    arrays = csr(RMat(11, seed=5))
    graph = laid_out(np, arrays, "undirected")
    sources = np.flatnonzero(np.diff(arrays[0]))[:24].tolist()
    expected = [shortest_distances(graph, [source]) for source in sources]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda source: shortest_distances(graph, [source]), sources))
    np.testing.assert_array_equal(found, expected)


# --- The wheel of buckets ---------------------------------------------------------------------------------------------


def by_windows(graph, sources, limit=None):
    """What windows and pulls find, in the original numbering."""
    distances = np.full(graph.n, outside_infinity(graph.dtype), graph.dtype)
    distances[graph.rank[sources]] = 0
    search = search_numba.Search(graph, distances, None, limit)
    if search.push():
        search.go_on_from(*pulls_numba.pull(graph, pulls_numba.pull_rows, distances, search.floor, search.last))
        search.push()
    return distances[graph.rank]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), spread=st.sampled_from([1, 7, 10**6]))
def test_the_wheel_finds_what_windows_find(data, dtype, spread):
    """Weights of zero, of many magnitudes, closed vertices, several sources: to the bit."""
    n = data.draw(st.integers(1, 30))
    ends = st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 12)), max_size=4 * n)
    tails, heads, weights = np.array(data.draw(ends), np.int64).reshape(-1, 3).T
    weights = weights * np.where(weights % 3, 1, spread) * (1.1 if dtype != "int32" else 1)
    through = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    graph = laid_out(np, rows(n, tails, heads, weights.astype(dtype)), through=through)
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    distances = np.full(n, outside_infinity(graph.dtype), graph.dtype)
    distances[graph.rank[sources]] = 0
    wheel_numba.turn_wheel(graph, distances)
    np.testing.assert_array_equal(distances[graph.rank], by_windows(graph, sources))


@dtypes
def test_the_wheel_finds_a_width_that_suits(dtype):
    """A third of a grid has far lighter weights than the rest: buckets shrink and grow, and no row is read often."""
    grid = Grid(150, weights="integers", seed=2)
    indptr, indices, weights = csr(grid)
    weights = weights.astype(np.int64)
    tails = np.repeat(np.arange(grid.n), np.diff(indptr))
    weights[np.maximum(tails, indices) > grid.n // 3] *= 2000
    graph = laid_out(np, (indptr, indices, weights.astype(dtype)), "undirected")
    assert wheel_numba.suits(graph)
    for source in (0, grid.n - 1):
        distances = np.full(grid.n, outside_infinity(graph.dtype), graph.dtype)
        distances[graph.rank[source]] = 0
        taken = wheel_numba.turn_wheel(graph, distances)
        assert taken < 4 * grid.n
        np.testing.assert_array_equal(distances[graph.rank], by_windows(graph, [source]))


def test_far_distances_on_the_wheel():
    """Weights farther apart than the wheel has buckets, and than buckets can be counted."""
    n = 3000
    weights = np.where(np.arange(n - 1) % 50 == 0, 1e300, 1e-3)
    tails, heads = np.arange(n - 1), np.arange(1, n)
    graph = laid_out(np, rows(n, tails, heads, weights))
    assert wheel_numba.suits(graph)
    np.testing.assert_array_equal(shortest_distances(graph, [0]), np.concatenate([[0], np.cumsum(weights)]))


@pytest.mark.parametrize("dtype", usual(DTYPES))
@pytest.mark.parametrize("source", [0, 30, 40, 49])
def test_a_one_way_street_leads_on(dtype, source):
    """A vertex with one arc is a leaf of undirected graphs only. Here: a ring of 40 one-way arcs, and a way out."""
    tails = np.concatenate([np.arange(40), [7], np.arange(40, 49)])
    heads = np.concatenate([np.arange(1, 40), [0, 40], np.arange(41, 50)])
    graph = laid_out(np, rows(50, tails, heads, np.full(50, 3, dtype)))
    assert wheel_numba.suits(graph)
    expected = np.full(50, outside_infinity(graph.dtype), graph.dtype)
    if source < 40:
        expected[:40] = 3 * ((np.arange(40) - source) % 40)
        expected[40:] = expected[7] + 3 * np.arange(1, 11)
    else:
        expected[source:] = 3 * np.arange(50 - source)
    np.testing.assert_array_equal(shortest_distances(graph, [source]), expected)


@pytest.fixture
def four_threads(monkeypatch):
    """Four threads share every step, however short."""
    monkeypatch.setattr("gpuops._threads._SERIAL_RELAXATIONS", 1)
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 4)
    with ThreadPoolExecutor(4) as pool:
        monkeypatch.setattr("gpuops._threads._pool", lambda: pool)
        yield


@dtypes
def test_threads_find_what_one_thread_finds(dtype, request):
    """Threads that take vertices from each other, on grids with weights of zero and leaves: to the bit."""
    grid = Grid(90, weights="integers", missing=0.8, seed=4)
    indptr, indices, weights = csr(grid)
    graph = laid_out(np, (indptr, indices, (weights * (weights > 100)).astype(dtype)), "undirected")
    sources = range(0, graph.n, 400)
    alone = [shortest_distances(graph, [source]) for source in sources]
    request.getfixturevalue("four_threads")
    for source, distances in zip(sources, alone, strict=True):
        np.testing.assert_array_equal(shortest_distances(graph, [source]), distances)
        np.testing.assert_array_equal(distances, by_windows(graph, [source]))


@dtypes
@pytest.mark.parametrize("few", [0, 0.9])
@pytest.mark.parametrize("share", [1, 0.9])
def test_threads_that_pull_and_push_find_what_windows_find(dtype, few, share, four_threads, monkeypatch):
    """All is left to the pulls, or most to the pushes after one pass of pulls. A share of the vertices is open."""
    indptr, heads, weights = csr(RMat(11, seed=2, weights="integers"))
    weights = (weights / (1 if dtype == "int32" else 7)).astype(dtype)
    through = np.random.default_rng(1).random(len(indptr) - 1) < share
    graph = laid_out(np, (indptr, heads, weights), "directed", through)
    sources = np.flatnonzero(np.diff(indptr) > 9)[::150]
    expected = [by_windows(graph, [source]) for source in sources]
    monkeypatch.setattr(pulls_numba, "_FEW", few)
    monkeypatch.setattr(search_numba.Search, "go_on_from", None)  # no windows after the pulls
    for source, distances in zip(sources, expected, strict=True):
        np.testing.assert_array_equal(shortest_distances(graph, [source]), distances)


def test_a_wheel_grows_and_changes_its_width():
    """Entries that are up to date stay, in the order of their buckets; entries of emptied buckets are dropped."""
    indptr, distances = np.zeros(20_001, np.int64), np.random.default_rng(5).random(20_000) * 1e4
    put, open_next, take = (
        numba.njit(f.py_func) for f in (buckets_numba.put, buckets_numba.open_next, buckets_numba.take)
    )
    held = np.arange(20_000, dtype=np.int32)
    wheel = buckets_numba.with_room(buckets_numba.empty_wheel(8), buckets_numba.chunks_of(20_000))
    put(*wheel, held, distances, len(held), 0.01, indptr)
    for before, after in ((0.01, 1.0), (1.0, 0.1)):
        held = buckets_numba.waiting_vertices(wheel, distances, before)
        np.testing.assert_array_equal(np.sort(held), np.arange(20_000))
        wheel = buckets_numba.empty_wheel(buckets_numba.chunks_of(20_000))
        put(*wheel, held, distances[held], len(held), after, indptr)
        assert wheel.numbers[buckets_numba.WAITING] == len(held)
    distances[:500] = 0  # these came nearer
    wheel.numbers[buckets_numba.BASE] = 1  # as if the first bucket had been emptied
    held = buckets_numba.waiting_vertices(wheel, distances, after)
    np.testing.assert_array_equal(np.sort(held), np.flatnonzero(distances * after >= 1))
    wheel.numbers[buckets_numba.BASE] = 0
    due, later, kept = np.empty(64, np.int32), np.empty(64, np.int32), np.empty(64)
    found = []
    while wheel.numbers[buckets_numba.WAITING]:
        open_next(*wheel[2:])
        dues, laters = take(*wheel, distances, after, due, later, kept, 64)
        found.extend(due[:dues].tolist())
        if wheel.numbers[buckets_numba.SPARE] < 64:
            wheel = buckets_numba.with_room(wheel, 64)
        put(*wheel, later, kept, laters, after, indptr)
    assert len(found) == len(set(found))
    assert set(range(500, 20_000)) <= set(found)
    assert len(found) < 19_600
    assert (np.diff(np.floor(distances[found] * after)) >= 0).all()


def test_roads_go_by_the_wheel_and_skewed_graphs_by_windows():
    assert wheel_numba.suits(laid_out(np, csr(Grid(40, seed=1)), "undirected"))
    assert not wheel_numba.suits(laid_out(np, csr(RMat(12, seed=1)), "undirected"))
    star = rows(4000, np.zeros(3999, int), np.arange(1, 4000), np.ones(3999))
    assert not wheel_numba.suits(laid_out(np, star))


@pytest.mark.parametrize("cutoff", [0, 300, 10**6])
def test_a_cutoff_on_the_wheel(cutoff):
    graph = laid_out(np, csr(Grid(60, weights="integers", seed=3)), "undirected")
    whole, cut = shortest_distances(graph, [70]), shortest_distances(graph, [70], cutoff=cutoff)
    np.testing.assert_array_equal(cut, np.where(whole <= cutoff, whole, outside_infinity(np.int32)))


def test_a_step_of_many_threads_has_one_thread_itself():
    """Sources over cores come before arcs over cores: nothing waits for a pool that waits for it."""
    graph = laid_out(np, csr(Grid(130, seed=1)), "undirected")
    sources = np.arange(0, graph.n, 700)
    found = batched_shortest_distances(graph, sources)
    for row, source in zip(found, sources, strict=True):
        np.testing.assert_array_equal(row, shortest_distances(graph, [source]))


@dtypes
@pytest.mark.parametrize("closed", [False, True])
def test_predecessors_by_fours_are_those_one_by_one(dtype, closed):
    """Rows of 0 to 40 arcs with many ties: the first tight arc from a nearer tail, whichever way it is looked for."""
    rng = np.random.default_rng(6)
    n, m = 2000, 9000
    tails, heads = rng.integers(0, n, (2, m))
    heads[:40], heads[40:200] = 7, rng.integers(0, 20, 160)
    through = rng.random(n) < 0.8 if closed else None
    graph = laid_out(np, rows(n, tails, heads, rng.integers(0, 6, m).astype(dtype)), through=through)
    assert wheel_numba.suits(graph)
    distances = shortest_distances(graph, [3])[graph.order]
    roots = np.zeros(n, bool)
    roots[graph.rank[3]] = True
    passes_on = (distances != outside_infinity(graph.dtype)) & (True if through is None else graph.through | roots)
    found = np.full((2, n), -1, np.int32)
    arrays = graph.in_indptr, graph.in_indices, graph.in_weights, distances, roots, passes_on
    for look_back, row in zip((tree_numba._look_back, tree_numba._look_back_by_fours), found, strict=True):
        look_back(*arrays, row, outside_infinity(graph.dtype), 0, n)
    assert (found[0] >= 0).sum() > n // 2
    np.testing.assert_array_equal(*found)
