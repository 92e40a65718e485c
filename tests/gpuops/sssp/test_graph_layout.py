import pickle
from functools import partial

import numpy as np
import pytest
import sparse_rows
from families import usual
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuops import NegativeCycleError, SearchGraph, search_graph, shortest_distances
from gpuops.arrays import on_host
from gpuops.sssp import wheel_numba

dtypes = pytest.mark.parametrize("dtype", usual(["float32", "float64", "int32"]))


rows = partial(sparse_rows.rows, vertex="int64")


def laid_out(xp, n, arcs, **options):
    through = options.pop("through", None)
    if through is not None:
        options["through"] = xp.asarray(through)
    graph = search_graph(*map(xp.asarray, rows(n, *arcs)), **options)
    assert isinstance(graph, SearchGraph)
    return graph


def lightest(arcs):
    """(tail, head) -> weight, without loops, the lightest of parallel arcs."""
    found = {}
    for tail, head, weight in zip(*(np.asarray(part).tolist() for part in arcs), strict=True):
        if tail != head and weight < np.inf:
            found[tail, head] = min(weight, found.get((tail, head), weight))
    return found


def arcs_of(graph, *names):
    """(tail, head) -> weight in the original numbering, checking the order of each row on the way."""
    indptr, indices, weights = (on_host(getattr(graph, name)) for name in names)
    assert indptr.dtype == np.int64
    assert indices.dtype == np.int32
    order, found = on_host(graph.order), {}
    for tail in range(graph.n):
        row = slice(indptr[tail], indptr[tail + 1])
        pairs = list(zip(weights[row].tolist(), indices[row].tolist(), strict=True))
        assert pairs == sorted(pairs)
        for weight, head in pairs:
            found[int(order[tail]), int(order[head])] = weight
    assert len(found) == indptr[-1] == len(indices) == len(weights)
    return found


OUT, IN = ("indptr", "indices", "weights"), ("in_indptr", "in_indices", "in_weights")


def check(graph, n, arcs, dtype):
    expected = lightest(arcs)
    assert graph.n == n
    assert graph.m == len(expected)
    assert graph.dtype == graph.weights.dtype == dtype
    assert arcs_of(graph, *OUT) == expected
    order, rank = on_host(graph.order), on_host(graph.rank)
    assert order.dtype == rank.dtype == np.int32
    np.testing.assert_array_equal(order[rank], np.arange(n))
    degrees = np.diff(on_host(graph.indptr))
    if isinstance(graph.indptr, np.ndarray) and wheel_numba.suits(graph):
        degrees = np.minimum(degrees, 2)  # on a CPU, all inner vertices of a road network keep their order
    assert (degrees[1:] <= degrees[:-1]).all(), "vertices with many arcs come first"
    assert (np.diff(order)[degrees[1:] == degrees[:-1]] > 0).all(), "ties keep their order"
    assert graph.negative == any(weight < 0 for weight in expected.values())
    if graph.in_indptr is not None:
        assert arcs_of(graph, *IN) == {(head, tail): weight for (tail, head), weight in expected.items()}


def random_arcs(seed, n, m, dtype, low=0, high=9):
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random((2, m)) ** 2).astype(int)  # some rows are long
    return tails, heads, rng.integers(low, high, m).astype(dtype)


@dtypes
@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (1, 3), (3, 0), (2, 5), (40, 300), (300, 3000), (30, 5000)])
def test_layout(xp, n, m, dtype):
    arcs = random_arcs(n + m, n, m, dtype)
    check(laid_out(xp, n, arcs), n, arcs, dtype)
    assert not laid_out(xp, n, arcs).symmetric
    assert laid_out(xp, n, arcs, reverse=False).in_indices is None


@dtypes
def test_long_rows_are_sorted(xp, dtype):
    """Rows longer than a run of the merge sort, rising, falling, and full of ties."""
    rng = np.random.default_rng(3)
    heads = np.tile(rng.permutation(700), 4)
    tails = 700 + np.repeat(np.arange(4), 700)
    weights = np.concatenate((np.arange(700), np.arange(700)[::-1], rng.integers(0, 3, 700), np.full(700, 7)))
    arcs = tails, heads, weights.astype(dtype)
    check(laid_out(xp, 704, arcs), 704, arcs, dtype)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arcs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0, 1, 2, 5, np.inf]))),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_any_small_graph(xp, arcs, dtype):
    columns = [np.array([arc[i] for arc in arcs], kind) for i, kind in enumerate((np.int64, np.int64, dtype))]
    check(laid_out(xp, 7, columns), 7, columns, dtype)


def test_a_symmetric_graph_is_its_own_transpose(xp):
    tails, heads, weights = random_arcs(1, 50, 300, "float32")
    both = np.concatenate((tails, heads)), np.concatenate((heads, tails)), np.concatenate((weights, weights))
    graph = laid_out(xp, 50, both, symmetric=True)
    assert graph.symmetric
    assert graph.in_indptr is graph.indptr
    assert graph.in_weights is graph.weights
    check(graph, 50, both, "float32")
    with pytest.raises(ValueError, match="not symmetric"):
        laid_out(xp, 50, (tails, heads, weights), symmetric=True)


def test_what_is_given_stays_as_it_is(xp):
    arrays = [xp.asarray(x) for x in rows(30, *random_arcs(2, 30, 200, "float32"))]
    copies = [x.copy() for x in arrays]
    search_graph(*arrays)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(on_host(array), on_host(copy))


def test_through_travels_with_the_vertices(xp):
    arcs = random_arcs(1, 30, 100, "int32")
    through = np.arange(30) % 3 > 0
    graph = laid_out(xp, 30, arcs, through=through)
    np.testing.assert_array_equal(on_host(graph.through)[on_host(graph.rank)], through)
    assert laid_out(xp, 30, arcs, through=np.ones(30, bool)).through is None


def test_dtypes(xp):
    def dtype_of(weights, **options):
        return laid_out(xp, 2, ([0], [1], np.array([weights])), **options).dtype

    assert dtype_of(np.int64(5)) == np.int32
    assert dtype_of(np.uint8(5)) == np.int32
    assert dtype_of(np.float64(5)) == np.float64
    assert dtype_of(np.float32(5), dtype="int32") == np.int32
    assert dtype_of(np.int16(5), dtype=np.float32) == np.float32
    with pytest.raises(OverflowError, match="float64"):
        dtype_of(np.int64(2**31))
    with pytest.raises(ValueError, match="fractions"):
        dtype_of(np.float64(0.5), dtype="int32")
    with pytest.raises(TypeError, match="float32, float64 or int32"):
        dtype_of(np.float32(5), dtype="int16")
    with pytest.raises(TypeError, match="float16"):
        dtype_of(np.float16(5))


def test_weights_that_are_none(xp):
    for weight in np.nan, -np.inf:
        with pytest.raises(ValueError, match="NaN or -inf"):
            laid_out(xp, 2, ([0], [1], np.array([weight])))
    assert laid_out(xp, 2, ([0], [1], np.array([np.inf]))).m == 0
    assert laid_out(xp, 2, ([0], [1], np.array([1e300])), dtype="float32").m == 0
    graph = laid_out(xp, 2, ([0], [1], np.array([-0.0])))
    assert not np.signbit(on_host(graph.weights)).any()
    assert not graph.negative


def test_negative_loops(xp):
    with pytest.raises(NegativeCycleError) as caught:
        laid_out(xp, 3, ([0, 1, 2], [1, 1, 2], np.array([1, -4, 5])))
    assert (caught.value.vertices, caught.value.weight) == ((1,), -4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": [0, 2, 1, 3]}, "rise"),
        ({"indptr": [1, 1, 2, 3]}, "rise"),
        ({"indptr": [0, 1, 2, 4]}, "rise"),
        ({"indices": [0, 1, 3]}, "0 to 2"),
        ({"indices": [0, -1, 2]}, "0 to 2"),
        ({"indices": [0, 1, 2, 2]}, "rise"),
        ({"weights": [1.0, 2.0]}, "one weight"),
        ({"weights": [[1.0, 2.0, 3.0]]}, "2 dimensions"),
        ({"through": [True, False]}, "3 vertices"),
        ({"through": [1, 0, 1]}, "bool"),
        ({"indices": [0.0, 1.0, 2.0]}, "integers"),
    ],
)
def test_arrays_that_are_no_graph(xp, change, message):
    arrays = {"indptr": [0, 1, 2, 3], "indices": [1, 2, 0], "weights": [1.0, 2.0, 3.0]} | change
    arrays = {name: xp.asarray(values) for name, values in arrays.items()}
    with pytest.raises((TypeError, ValueError), match=message):
        search_graph(**arrays)


def test_lists_are_refused():
    with pytest.raises(TypeError, match="weights is a list"):
        search_graph(np.array([0, 0]), np.array([], int), [])


@dtypes
def test_rows_by_threads_are_those_of_one(monkeypatch, dtype):
    """Sorted and unsorted rows, weights that crowd into one bucket, parallel arcs."""
    import numba

    monkeypatch.setattr("gpuops._threads._SERIAL_RELAXATIONS", 1)  # few arcs are enough for threads
    rng = np.random.default_rng(4)
    n, m = 600, 20_000
    tails, heads = (n * rng.random((2, m)) ** 3).astype(int)
    weights = np.where(rng.random(m) < 0.5, rng.integers(0, 5, m), rng.integers(0, 10**6, m)).astype(dtype)
    weights[:3] = [np.iinfo(np.int32).max, 0, np.iinfo(np.int32).max // 2]  # one heavy arc: most others share a bucket
    order = np.lexsort((heads, tails))
    for arcs in ((tails, heads, weights), (tails[order], heads[order], weights[order])):
        graphs = []
        for threads in (1, 4):
            monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
            graphs.append(laid_out(np, n, arcs))
        check(graphs[1], n, arcs, dtype)
        for name in (*OUT, *IN, "order", "rank"):
            np.testing.assert_array_equal(getattr(graphs[0], name), getattr(graphs[1], name))


def test_weights_whose_range_is_no_float64(xp):
    """A row from -1e308 to 1e308 cannot be dealt out by weight."""
    heads = np.arange(1, 101)
    weights = np.random.default_rng(5).permutation(np.linspace(-1, 1, 100)) * 1.7e308
    arcs = np.zeros(100, int), heads, weights
    check(laid_out(xp, 101, arcs), 101, arcs, "float64")


def test_a_pickle_has_nothing_that_searches_computed(xp):
    graph = laid_out(xp, 3, ([0, 1], [1, 2], np.array([1.0, 2.0])))
    size = len(pickle.dumps(graph))
    expected = on_host(shortest_distances(graph, [0]))
    assert graph.kept
    text = pickle.dumps(graph)
    assert len(text) < size + 100
    np.testing.assert_array_equal(on_host(shortest_distances(pickle.loads(text), [0])), expected)
