"""The kernels that lay a graph out, on a machine without a GPU (host_shim/): every array as the CPU makes it."""

import numpy as np
import pytest
from families import diagonals, every_kernel, not_launched, usual

from gpuops import NegativeCycleError, search_graph
from gpuops.sssp import graph_layout, graph_layout_cuda

DTYPES = ["float32", "float64", "int32"]
FIELDS = (
    *("indptr", "indices", "weights", "in_indptr", "in_indices", "in_weights", "through", "order", "rank"),
    "negative",
)


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start(0, 2)
    return host_shim


@pytest.fixture(autouse=True)
def vertices_are_numbered_by_degree(monkeypatch):
    """Also where rows are short, for which the layout of a CPU has an order of its own."""
    monkeypatch.setattr(graph_layout, "_INNER", 2**31)


def assert_same_layout(cupy, arrays, **options):
    expected = search_graph(*arrays, **options)
    through = options.pop("through", None)
    if through is not None:
        options["through"] = cupy.asarray(through)
    found = search_graph(*map(cupy.asarray, arrays), **options)
    for name in FIELDS:
        mine, theirs = getattr(found, name), getattr(expected, name)
        if isinstance(theirs, np.ndarray):
            assert mine.dtype == theirs.dtype, name
            assert mine.tobytes() == theirs.tobytes(), name
        else:
            assert mine == theirs, name
    assert found.symmetric == expected.symmetric
    return found


def rows(seed, n, m, weights, kinds=("int64", "int64")):
    rng = np.random.default_rng(seed)
    tails, heads = np.sort((n * rng.random(m) ** 2).astype(kinds[0])), (n * rng.random(m) ** 2).astype(kinds[1])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=n)))).astype(kinds[0])
    return indptr, heads, weights(rng, m)


@pytest.mark.parametrize("dtype", usual(DTYPES))
@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (1, 3), (3, 0), (2, 5), (40, 300), (30, 5000), (700, 2000)])
def test_layouts_of_both_devices_are_equal(cupy, dtype, n, m):
    """With loops, parallel arcs, ties, arcs that are none, weights below 0 and -0.0."""

    def weights(rng, m):
        values = rng.integers(0, 9, m).astype(dtype)
        tails, heads = np.repeat(np.arange(n), np.diff(graph[0])) if m else graph[1], graph[1]
        if values.dtype.kind == "f":
            values[rng.random(m) < 0.1] = np.inf
            values[rng.random(m) < 0.1] = -0.0
        values[(rng.random(m) < 0.1) & (tails != heads)] = -3
        return values

    graph = rows(n + m, n, m, lambda rng, m: np.zeros(m))
    arrays = *graph[:2], weights(np.random.default_rng(1), m)
    assert_same_layout(cupy, arrays, through=np.arange(n) % 3 > 0)
    assert_same_layout(cupy, arrays, reverse=False)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        *(("uint8", None), ("int64", None), ("int64", "float32"), ("int64", "float64"), ("float64", "float32")),
        *(("float32", "int32"), ("float64", "int32"), ("bool", "int32"), ("int16", "float64")),
    ],
)
@pytest.mark.parametrize("kinds", [("int32", "int32"), ("int64", "int32"), ("int32", "int64")])
def test_arrays_of_any_integers_and_weights(cupy, given, dtype, kinds):
    arrays = rows(3, 50, 400, lambda rng, m: rng.integers(0, 100, m).astype(given), kinds)
    assert_same_layout(cupy, arrays, dtype=dtype)


def test_a_symmetric_graph(cupy):
    indptr, heads, _ = rows(4, 40, 300, lambda rng, m: None)
    tails = np.repeat(np.arange(40), np.diff(indptr))
    tails, heads = np.concatenate((tails, heads)), np.concatenate((heads, tails))
    weights = (np.abs(tails - heads) % 7).astype("float32")
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=40))))
    arrays = indptr, heads[order], weights[order]
    assert assert_same_layout(cupy, arrays, symmetric=True, through=np.ones(40, bool)).through is None
    lopsided = rows(5, 40, 300, lambda rng, m: np.ones(m, "float32"))
    with pytest.raises(ValueError, match="not symmetric"):
        search_graph(*map(cupy.asarray, lopsided), symmetric=True)


@pytest.mark.parametrize(
    ("weights", "options"),
    [
        (np.array([1, np.nan, 2]), {}),
        (np.array([1, -np.inf, 2]), {"dtype": "float32"}),
        (np.array([1, 2.5, 2]), {"dtype": "int32"}),
        (np.array([1, np.inf, 2]), {"dtype": "int32"}),
        (np.array([1, 2**31, 2]), {}),
        (np.array([1, -(2**31) - 1, 2]), {}),
        (np.array([3, -4, -5]), {}),
        (np.array([3, -4, -5.0]), {}),
        (np.array([1, 2, 3], "float16"), {}),
    ],
)
def test_what_is_refused_is_refused_alike(cupy, weights, options):
    arrays = np.array([0, 1, 2, 3]), np.array([1, 1, 2]), weights
    with pytest.raises((ValueError, OverflowError, NegativeCycleError, TypeError)) as on_cpu:
        search_graph(*arrays, **options)
    with pytest.raises(type(on_cpu.value)) as on_gpu:
        search_graph(*map(cupy.asarray, arrays), **options)
    assert str(on_gpu.value) == str(on_cpu.value)
    assert vars(on_gpu.value) == vars(on_cpu.value)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint16"])
@pytest.mark.parametrize(
    ("indptr", "indices"),
    [([0, 2, 1, 3], [1, 2, 0]), ([1, 1, 2, 3], [1, 2, 0]), ([0, 1, 2, 4], [1, 2, 0]), ([0, 1, 2, 3], [0, 1, 3])],
)
def test_rows_that_are_none_are_refused_alike(cupy, kind, indptr, indices):
    arrays = np.array(indptr, kind), np.array(indices, kind), np.ones(3)
    with pytest.raises(ValueError, match="rise|0 to 2") as on_cpu:
        search_graph(*arrays)
    with pytest.raises(ValueError, match="rise|0 to 2") as on_gpu:
        search_graph(*map(cupy.asarray, arrays))
    assert str(on_gpu.value) == str(on_cpu.value)


def test_what_is_measured(cupy):
    arrays = rows(7, 60, 90, lambda rng, m: rng.integers(1, 50, m).astype("float64"))
    graph = assert_same_layout(cupy, arrays)
    active, magnitudes = graph_layout_cuda.measure(graph)
    assert active == np.count_nonzero(np.diff(np.asarray(graph.indptr)))
    assert magnitudes == np.abs(np.asarray(graph.weights)).sum()


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start(0, 2)
    for dtype in DTYPES if variants else ["int32"]:
        test_layouts_of_both_devices_are_equal(cupy, dtype, 30, 5000)
        graph = search_graph(*map(cupy.asarray, (np.array([0, 1, 1]), np.array([1]), np.ones(1, dtype))))
        assert graph_layout_cuda.measure(graph) == (1, 1)
        assert not graph_layout_cuda.any_negative(graph.weights)
    missing = not_launched(graph_layout_cuda.PROGRAMS.values(), cupy.launched, variants=variants)
    assert {entry for *_, entry in missing} <= {"take_keys"}  # of 32 bits, whose keys have all in them


@pytest.mark.parametrize(("dtype", "symmetric"), diagonals(DTYPES, [False, True]))
def test_a_graph_too_large_to_be_sorted_at_once(cupy, monkeypatch, dtype, symmetric):
    """Sorted by ranges of rows: a row longer than a range, empty rows, loops and parallel arcs among them."""
    monkeypatch.setattr(graph_layout_cuda, "WHOLE", 37)
    monkeypatch.setattr(graph_layout_cuda, "_SORTING", 1 << 40)
    rng = np.random.default_rng(8)
    tails, heads = (60 * rng.random((2, 400)) ** 3).astype(int)
    values = rng.integers(0, 30, 400)
    if symmetric:
        tails, heads, values = np.r_[tails, heads], np.r_[heads, tails], np.r_[values, values]
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=70))))
    arrays = indptr, heads[order], values[order].astype(dtype)
    found = graph_layout_cuda._ranges(cupy.asarray(indptr), len(heads), np.dtype(dtype))
    assert len(found) > 3
    assert max(indptr[b] - indptr[a] for a, b in found) > 37
    assert_same_layout(cupy, arrays, symmetric=symmetric, reverse=False, through=np.arange(70) % 4 > 0)


def test_a_negative_loop_in_a_later_range_is_named(cupy, monkeypatch):
    monkeypatch.setattr(graph_layout_cuda, "WHOLE", 4)
    monkeypatch.setattr(graph_layout_cuda, "_SORTING", 1 << 40)
    indptr, heads = np.arange(0, 21, 2), np.arange(20) % 10
    heads[15], weights = 7, np.ones(20)
    weights[15] = -2
    with pytest.raises(NegativeCycleError, match="a loop of weight -2 at vertex 7"):
        search_graph(*map(cupy.asarray, (indptr, heads, weights)), reverse=False)
