"""Dijkstra's algorithm against SciPy, Bellman-Ford in NumPy, and the definition of a tree of shortest paths."""

import numpy as np
import pytest
import scipy.sparse.csgraph
from families import usual
from scipy.sparse import coo_array
from sparse_rows import rows

from gpuops import dijkstra, search_graph, shortest_distances
from gpuops.label_setting import dijkstra_numba

METHODS = ["heap", "rounds"]


@pytest.fixture(params=METHODS)
def solve(request, xp):
    """`dijkstra` by one method, NumPy arrays in and out; on a GPU by rounds, which is named or left to it."""
    method = request.param if xp is np or request.param == "rounds" else None

    def on_device(indptr, indices, weights, source):
        found = dijkstra(*(xp.asarray(x) for x in (indptr, indices, weights)), source, method=method)
        return tuple(x if xp is np else x.get() for x in found)

    return on_device


def random_graph(seed, dtype, n=300, m=2000, least=0):
    """Few vertices with many arcs; loops, parallel arcs, zeros, vertices that nothing leads to."""
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random(m) ** 2).astype(np.int64), (n * rng.random(m) ** 1.5).astype(np.int64)
    weights = rng.integers(least, 40, m).astype(dtype)
    if weights.dtype.kind == "f":
        weights *= weights.dtype.type(0.37)
        weights[weights == 0] = -0.0
    return rows(n, tails, heads, weights)


def unreachable(weights):
    return np.inf if weights.dtype.kind == "f" else np.iinfo(weights.dtype).max


def bellman_ford(indptr, indices, weights, source):
    """Distances whose sums are rounded arc by arc."""
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    wide = weights.dtype if weights.dtype.kind == "f" else np.int64
    distances = np.full(len(indptr) - 1, unreachable(weights), wide)
    distances[source] = 0
    while True:
        before = distances.copy()
        np.minimum.at(distances, indices, np.minimum(before[tails] + weights, unreachable(weights)).astype(wide))
        if (before == distances).all():
            return distances.astype(weights.dtype)


def check_tree(indptr, indices, weights, source, distances, predecessors):
    """Tight arcs to all that is reached but the source, and no way round in circles."""
    assert predecessors.dtype == np.int32
    reached = distances < unreachable(weights)
    needs = reached.copy()
    needs[source] = False
    assert ((predecessors >= 0) == needs).all()
    for vertex in np.flatnonzero(needs):
        tail = predecessors[vertex]
        row = slice(indptr[tail], indptr[tail + 1])
        assert (distances[tail] + weights[row][indices[row] == vertex] == distances[vertex]).any()
    ancestors = np.where(predecessors < 0, np.arange(len(distances)), predecessors)
    for _ in range(len(distances).bit_length()):
        ancestors = ancestors[ancestors]
    assert (ancestors[reached] == source).all()


@pytest.mark.parametrize("dtype", usual(["float32", "float64", "int32"]))
@pytest.mark.parametrize("seed", range(4))
def test_random_graphs(solve, dtype, seed):
    graph = random_graph(seed, dtype)
    for source in 0, 17, 299:
        distances, predecessors = solve(*graph, source)
        expected = bellman_ford(*graph, source)
        word = f"i{expected.itemsize}"
        np.testing.assert_array_equal(distances.view(word), expected.view(word))
        check_tree(*graph, source, distances, predecessors)


def test_against_scipy(solve):
    n = 500
    indptr, indices, weights = random_graph(5, "float64", n, 1500, least=1)
    tails = np.repeat(np.arange(n), np.diff(indptr))
    order = np.argsort(-weights, kind="stable")  # the lightest of parallel arcs comes last
    matrix = np.zeros((n, n))
    matrix[tails[order], indices[order]] = weights[order]
    expected = scipy.sparse.csgraph.dijkstra(coo_array(matrix).tocsr(), indices=3)
    distances, _ = solve(indptr, indices, weights, 3)
    # Paths of equal length may be added up in another order.
    np.testing.assert_allclose(distances, expected, rtol=1e-12)
    assert 0 < np.isinf(expected).sum() < n


def test_the_bits_of_shortest_distances(xp, solve):
    graph = random_graph(8, "float32", 2000, 9000)
    laid_out = search_graph(*(xp.asarray(x) for x in graph))
    expected = shortest_distances(laid_out, [1])
    expected = expected if xp is np else expected.get()
    np.testing.assert_array_equal(solve(*graph, 1)[0].view("i4"), expected.view("i4"))


def test_zero_weights_make_no_cycles(solve):
    n = 60
    rng = np.random.default_rng(0)
    tails, heads = rng.integers(0, n, (2, 400))
    graph = rows(n, tails, heads, np.zeros(400, "int32"))
    distances, predecessors = solve(*graph, 5)
    assert set(distances.tolist()) <= {0, np.iinfo("int32").max}
    check_tree(*graph, 5, distances, predecessors)


def test_a_star_whose_rows_are_long(solve):
    n = 3000
    leaves = np.arange(1, n)
    tails, heads = np.concatenate([leaves, np.zeros(n - 1, int)]), np.concatenate([np.zeros(n - 1, int), leaves])
    weights = np.concatenate([leaves, leaves]).astype("float32")
    distances, predecessors = solve(*rows(n, tails, heads, weights), 7)
    expected = 7 + np.arange(n, dtype="float32")
    expected[7] = 0
    np.testing.assert_array_equal(distances, expected)
    check_tree(*rows(n, tails, heads, weights), 7, distances, predecessors)


def test_infinite_weights_are_no_arcs(solve):
    graph = rows(4, [0, 0, 1, 2], [1, 2, 3, 3], np.array([1, np.inf, np.inf, 1], "float32"))
    distances, predecessors = solve(*graph, 0)
    assert distances.tolist() == [0, 1, np.inf, np.inf]
    assert predecessors.tolist() == [-1, 0, -1, -1]


def test_one_vertex_and_no_arcs(solve):
    for n in 1, 5:
        distances, predecessors = solve(*rows(n, np.empty(0, int), [], np.empty(0, "float64")), n - 1)
        assert distances.tolist() == [*[np.inf] * (n - 1), 0]
        assert (predecessors == -1).all()


def test_int32_to_the_last_distance_that_fits(solve):
    for last, fits in (2**30 - 2, True), (2**30 - 1, False):
        graph = rows(4, [0, 1, 0], [1, 2, 3], np.array([2**30, last, 5], "int32"))
        if fits:
            assert solve(*graph, 0)[0].tolist() == [0, 2**30, 2**31 - 2, 5]
        else:
            with pytest.raises(OverflowError, match="distances exceed int32; use float64"):
                solve(*graph, 0)
    # A sum that does not fit is no error where a shorter path leads there.
    graph = rows(3, [0, 1, 0], [1, 2, 2], np.array([2**30, 2**30, 7], "int32"))
    assert solve(*graph, 0)[0].tolist() == [0, 2**30, 7]


def test_rounds_settle_many_vertices_at_once():
    """A random graph takes few rounds, and a path as many as it has vertices."""
    graph = random_graph(1, "float64", 3000, 60_000, least=1)
    distances, _, rounds = dijkstra_numba.rounds(*graph, 0)
    _, _, settled = dijkstra_numba.heap(*graph, 0)
    assert settled == np.isfinite(distances).sum() > 1000
    assert rounds < settled / 20
    path = rows(50, np.arange(49), np.arange(1, 50), np.ones(49, "int32"))
    assert dijkstra_numba.rounds(*path, 0)[2] == 50


GRAPH = rows(3, [0, 1], [1, 2], np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"weights": np.array([1.0, -1.0])}, ValueError, "a weight is negative or NaN"),
        ({"weights": np.array([1.0, np.nan])}, ValueError, "a weight is negative or NaN"),
        ({"weights": np.array([1, 2])}, TypeError, "weights are int64; convert them to float32"),
        ({"weights": np.array([1.0])}, ValueError, "there are 2 indices and 1 weights"),
        ({"indices": np.array([1, 3])}, ValueError, "they must be vertices, 0 to 2"),
        ({"indices": np.array([1.0, 2.0])}, TypeError, "indices is float64; convert it to integers"),
        ({"indptr": np.array([0, 2, 1, 2])}, ValueError, "indptr must rise from 0"),
        ({"indptr": [0, 1, 2, 2]}, TypeError, "indptr is a list"),
        ({"source": 3}, ValueError, "source 3 is not a vertex; vertices are 0 to 2"),
        ({"source": -1}, ValueError, "source -1 is not a vertex"),
        ({"method": "bucket"}, ValueError, "there is no method 'bucket'; choose heap or rounds"),
    ],
)
def test_misuse_is_named(change, error, message):
    arguments = dict(zip(("indptr", "indices", "weights"), GRAPH, strict=True)) | {"source": 0} | change
    with pytest.raises(error, match=message):
        dijkstra(**arguments)
