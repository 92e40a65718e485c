"""tilepath.csgraph beside scipy.sparse.csgraph: its own tests, and a table of what they leave out."""

import importlib.metadata
import inspect
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph as theirs

import gpuops
from tilepath import csgraph as ours
from tilepath import devices
from tilepath.csgraph import arcs as arcs_module
from tilepath.csgraph import engines

FUNCTIONS = ("shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson")
SEARCHES = ("dijkstra", "bellman_ford", "johnson")
METHODS = ("auto", "FW", "D", "BF", "J")
HERE = Path(__file__).parent

# What SciPy's tests of a version do: how many pass, and how often they call each function.
_CALLS = {"shortest_path": 113, "floyd_warshall": 0, "dijkstra": 59, "bellman_ford": 3, "johnson": 3}
KNOWN = {"1.17": (90, _CALLS), "1.18": (90, _CALLS)}


def test_scipys_own_tests_pass(tmp_path):
    """All that are collected pass, none is skipped or expected to fail, and they reached us.

    Counts are exact for the versions we have seen. Another one must call each function that these do.
    """
    counts = tmp_path / "counts.json"
    path = os.pathsep.join([str(HERE), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    module = "scipy.sparse.csgraph.tests.test_shortest_path"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "scipy_suite", "-p", "no:cacheprovider", "--pyargs", module]
    environment = {**os.environ, "PYTHONPATH": path, "COUNTS": str(counts)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    found = json.loads(counts.read_text())
    assert set(found["outcomes"]) == {"passed"}
    version = ".".join(importlib.metadata.version("scipy").split(".")[:2])
    if version in KNOWN:
        assert (found["outcomes"]["passed"], found["calls"]) == KNOWN[version]
    else:
        assert found["outcomes"]["passed"] >= 60
        assert all(found["calls"][name] >= 3 for name in FUNCTIONS if name != "floyd_warshall")


def graph(arcs, n=3):
    tails, heads, weights = zip(*arcs, strict=True)
    return sp.csr_array((np.array(weights, float), (tails, heads)), shape=(n, n))


ASYMMETRIC = graph([(0, 1, 1), (1, 0, 5), (1, 2, 2)])
SIGNED = graph([(0, 1, 1), (1, 2, -2)])
CYCLE = graph([(0, 1, 1), (1, 0, -2)], 2)
DENSE_NULLS = np.array([[0, np.inf, 1], [0, 0, np.nan], [2, 0, 0]])
GRAPHS = {
    "explicit zero": graph([(0, 1, 0), (1, 2, 1)]),
    "zero, inf and nan in an array": DENSE_NULLS,
    "inf stored": graph([(0, 1, np.inf), (1, 2, 1)]),
    "nan stored": graph([(0, 1, np.nan), (1, 2, 1)]),
    "lil": sp.lil_array(ASYMMETRIC),
    "csc": sp.csc_array(ASYMMETRIC),
    "rows not summed": sp.csr_array((np.array([4.0, 3.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2)),
    "asymmetric": ASYMMETRIC,
    "loop": graph([(0, 0, 7), (0, 1, 1)], 2),
    "int": ASYMMETRIC.astype(int),
    "bool": ASYMMETRIC.astype(bool),
    "float32": ASYMMETRIC.astype(np.float32),
    "int64 indices": sp.csr_array(
        (ASYMMETRIC.data, ASYMMETRIC.indices.astype(np.int64), ASYMMETRIC.indptr.astype(np.int64)), shape=(3, 3)
    ),
    "no vertices": np.zeros((0, 0)),
    "one vertex": np.zeros((1, 1)),
    "no arcs": sp.csr_array((4, 4)),
    "array": ASYMMETRIC.toarray(),
}


def check_trees(matrix, directed, unweighted, distances, predecessors, sources):
    """Predecessors lead back to the source, by arcs that add up to the distance. Ties may be broken either way."""
    dense = sp.coo_array(matrix)
    weights = {}
    for tail, head, weight in zip(*dense.coords, dense.data, strict=True):
        for pair in [(tail, head)] if directed else [(tail, head), (head, tail)]:
            weights[pair] = min(weights.get(pair, np.inf), 1 if unweighted else weight)
    for row, tree, source in zip(distances, predecessors, sources, strict=True):
        for vertex in range(len(row)):
            if vertex == source or np.isinf(row[vertex]):
                assert tree[vertex] == -9999
                continue
            length, at, steps = 0.0, vertex, 0
            while at != source:
                length += weights[tree[at], at]
                at, steps = tree[at], steps + 1
                assert steps <= len(row)
            assert length == pytest.approx(row[vertex], abs=1e-12)


@pytest.mark.parametrize("unweighted", [False, True])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", GRAPHS)
def test_graphs(form, name, directed, unweighted):
    matrix = GRAPHS[form]
    if unweighted and form in ("inf stored", "nan stored"):
        name = "floyd_warshall"  # SciPy's searches make arcs of them: see the quirks
    expected = getattr(theirs, name)(matrix, directed=directed, unweighted=unweighted)
    found = getattr(ours, name)(matrix, directed=directed, unweighted=unweighted)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert (found.dtype, found.shape) == (np.float64, expected.shape)
    again, trees = getattr(ours, name)(matrix, directed=directed, unweighted=unweighted, return_predecessors=True)
    np.testing.assert_allclose(again, expected, rtol=1e-13)
    assert (trees.dtype, trees.shape) == (np.int32, expected.shape)
    check_trees(matrix, directed, unweighted, again, trees, range(len(expected)))


INDICES = [0, 1.0, -1, [1], [0, 0], [[0, 1], [2, 0]], [], [[]], np.array(1), (2, 0), [-3, -1], True]
INDICES += [
    np.array([True, False, True]),
    [0.0, 2.0],
    np.array([], int),
    np.zeros((2, 0), int),
    np.array([2], np.uint8),
]


@pytest.mark.parametrize("name", ["shortest_path", *SEARCHES])
@pytest.mark.parametrize("indices", INDICES, ids=repr)
@pytest.mark.parametrize("matrix", [ASYMMETRIC, SIGNED], ids=["positive", "signed"])
@pytest.mark.filterwarnings("ignore:[Tt]?h?e? ?[Gg]raph has negative weights")
def test_indices(matrix, name, indices):
    expected, their_trees = getattr(theirs, name)(matrix, indices=indices, return_predecessors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found, trees = getattr(ours, name)(matrix, indices=indices, return_predecessors=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(trees, their_trees)  # no two paths are of one length
    assert (found.shape, trees.shape, trees.dtype) == (expected.shape, expected.shape, np.int32)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("indices", [3, [-4], [0, 7], "a"])
def test_indices_that_are_refused(name, indices):
    for module in theirs, ours:
        with pytest.raises(ValueError, match=r"indices out of range|invalid literal"):
            getattr(module, name)(ASYMMETRIC, indices=indices)


@pytest.mark.parametrize("indices", [np.nan, [0, np.inf], 0.5])
def test_fractions_of_vertices_are_refused_without_a_warning(indices):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="indices have fractions"):
            ours.dijkstra(ASYMMETRIC, indices=indices)


@pytest.mark.parametrize("limit", [0, 1, 2.9, 3, np.inf, np.nan])
@pytest.mark.parametrize("indices", [None, 0, [0, 2], [2, 0, 0], [[0, 1]], []])
@pytest.mark.parametrize("matrix", [ASYMMETRIC, GRAPHS["explicit zero"]], ids=["positive", "zero"])
def test_limit_and_min_only(matrix, indices, limit):
    options = {"indices": indices, "limit": limit, "return_predecessors": True}
    for mine, expected in zip(ours.dijkstra(matrix, **options), theirs.dijkstra(matrix, **options), strict=True):
        np.testing.assert_array_equal(mine, expected)
    options["min_only"] = True
    found, expected = ours.dijkstra(matrix, **options), theirs.dijkstra(matrix, **options)
    for mine, array in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, array)
        assert (mine.shape, mine.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(ours.dijkstra(matrix, **{**options, "return_predecessors": False}), expected[0])


@pytest.mark.parametrize("limit", [np.inf, 3.5])
@pytest.mark.parametrize("weight", [None, 0.1, 3])
def test_arcs_of_one_length_are_searched_breadth_first(monkeypatch, weight, limit):
    """By hops, with the bits of SciPy's sums."""
    n = 300
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n, (2, 3 * n))
    graph = sp.csr_array((rng.random(3 * n) if weight is None else np.full(3 * n, weight), ends), shape=(n, n))
    graph.sum_duplicates()
    if weight is not None:
        graph.data[:] = weight
    options = {"indices": rng.integers(0, n, 70), "unweighted": weight is None, "limit": limit}
    expected, dense = theirs.dijkstra(graph, **options), graph.toarray()

    def unwanted(*_, **__):
        raise AssertionError("searched otherwise")

    monkeypatch.setattr(gpuops, "dijkstra_rows", unwanted)
    np.testing.assert_array_equal(ours.dijkstra(graph, **options), expected)
    found, predecessors = ours.dijkstra(graph, return_predecessors=True, **options)
    np.testing.assert_array_equal(found, expected)
    for source, row, tree in zip(options["indices"], found, predecessors, strict=True):
        reached = np.flatnonzero(tree >= 0)
        np.testing.assert_array_equal((tree >= 0), np.isfinite(row) & (np.arange(n) != source))
        assert (dense[tree[reached], reached] != 0).all()
        np.testing.assert_array_equal(row[tree[reached]] + (weight or 1), row[reached])


def test_a_negative_limit_is_refused():
    for module in theirs, ours:
        with pytest.raises(ValueError, match="limit must be >= 0"):
            module.dijkstra(ASYMMETRIC, limit=-1)


@pytest.mark.parametrize("method", METHODS)
def test_negative_weights(method):
    expected = theirs.shortest_path(SIGNED, method="J")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, trees = ours.shortest_path(SIGNED, method, return_predecessors=True)
    assert [w.category for w in caught] == [UserWarning] * (method == "D")
    assert all(w.filename == __file__ for w in caught)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(trees, [[-9999, 0, 1], [-9999, -9999, 1], [-9999] * 3])


@pytest.mark.parametrize("method", ["auto", "FW", "BF", "J"])
@pytest.mark.parametrize(("matrix", "directed"), [(CYCLE, True), (SIGNED, False)], ids=["cycle", "undirected"])
def test_negative_cycles(matrix, directed, method):
    for module in theirs, ours:
        with pytest.raises(theirs.NegativeCycleError, match="Negative cycle"):
            module.shortest_path(matrix, method, directed=directed)
    with pytest.raises(gpuops.NegativeCycleError) as caught:
        ours.shortest_path(matrix, method, directed=directed)
    assert isinstance(caught.value, ours.NegativeCycleError)
    assert len(caught.value.vertices) == 2
    assert caught.value.weight < 0


def test_a_negative_cycle_that_no_source_reaches_counts_for_johnson_only():
    apart = graph([(0, 0, 1), (2, 1, -2), (1, 2, 1)])
    for module in theirs, ours:
        np.testing.assert_array_equal(module.bellman_ford(apart, indices=0), [0, np.inf, np.inf])
        with pytest.raises(theirs.NegativeCycleError):
            module.bellman_ford(apart, indices=[0, 1])
        with pytest.raises(theirs.NegativeCycleError):
            module.johnson(apart, indices=0)


@pytest.mark.parametrize(("dtype", "weight"), [("float64", -1e308), ("float64", -9e307), ("float32", -3e38)])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:the graph has negative weights")
def test_sums_below_the_range_are_minus_infinity_and_what_fits_is_exact(name, dtype, weight):
    chain = np.array(
        [[0, weight, 0, 0], [0, 0, weight, 0], [0, 0, 0, -weight], [0, 0, 0, 0.5]]
    )  # not only whole numbers
    least = chain[0, 1].astype(dtype)
    expected = [[0, least, -np.inf, least], [np.inf, 0, least, 0], [np.inf, np.inf, 0, -least], [np.inf] * 3 + [0]]
    found, trees = getattr(ours, name)(chain, dtype=dtype, return_predecessors=True)
    np.testing.assert_array_equal(found, np.array(expected, dtype))
    assert trees[0].tolist() == [-9999, 0, 1, 2]
    np.testing.assert_array_equal(getattr(ours, name)(chain, dtype=dtype), found)


def test_negative_cycles_below_the_range_are_found():
    with pytest.raises(ours.NegativeCycleError, match="0 -> 1 -> 2 -> 0 weighs -inf"):
        ours.johnson(np.array([[0, -1e308, 0], [0, 0, -1e308], [1, 0, 0]]))


def test_a_zero_cycle_that_rounds_to_less_is_no_negative_cycle():
    zero = graph([(0, 1, 0.1), (1, 2, 0.2), (2, 0, -0.3 - 5e-17)])
    expected = theirs.johnson(zero)
    for method in "auto", "FW", "BF", "J":  # SciPy's Floyd-Warshall refuses it
        np.testing.assert_allclose(ours.shortest_path(zero, method), expected, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("limit", [2.5, np.inf])
def test_near_vertices_as_a_sparse_array(limit, directed, dtype):
    matrix = sp.random_array((40, 40), density=0.06, format="csr", rng=np.random.default_rng(3))
    matrix.data = np.ceil(matrix.data * 3)
    matrix.data[::7] = 0  # stored zeros are arcs
    for indices in None, [3, -1, 3], []:
        found = ours.dijkstra(matrix, directed, indices, limit=limit, sparse=True, dtype=dtype)
        expected = theirs.dijkstra(matrix, directed, indices, limit=limit)
        assert isinstance(found, sp.csr_array)
        assert (found.shape, found.dtype) == (expected.shape, dtype)
        rows, columns = np.nonzero(np.isfinite(expected))
        np.testing.assert_array_equal(found.indices, columns)
        np.testing.assert_array_equal(np.repeat(np.arange(len(expected)), np.diff(found.indptr)), rows)
        np.testing.assert_array_equal(found.data, expected[rows, columns])


def test_what_does_not_go_with_a_sparse_result():
    matrix = graph([(0, 1, 1), (1, 2, 2)])
    for options, fault in (
        ({"min_only": True}, "leave out min_only"),
        ({"return_predecessors": True}, "leave out min_only, return_predecessors"),
        ({"indices": [[0]]}, "pass a list of vertices"),
        ({"device": "gpu"}, "run on the CPU"),
        ({"limit": -1}, "limit must be >= 0"),
    ):
        with pytest.raises(ValueError, match=fault):
            ours.dijkstra(matrix, sparse=True, **options)
    with pytest.raises(ValueError, match="leave out sparse"):
        ours.dijkstra(-matrix, sparse=True)
    with pytest.raises(OverflowError, match="may exceed"):
        ours.dijkstra(graph([(0, 1, 2.0**24), (1, 2, 1)]), sparse=True, dtype="float32")


def test_min_only_with_negative_weights_is_right():
    matrix = graph([(0, 1, 4), (2, 1, 5), (1, 3, -3), (3, 4, 1), (2, 4, -1)], 6)
    rows = theirs.johnson(matrix, indices=[0, 2])
    with pytest.warns(UserWarning, match="negative weights"):
        found, trees, nearest = ours.dijkstra(matrix, indices=[0, 2], min_only=True, return_predecessors=True)
    np.testing.assert_array_equal(found, rows.min(axis=0))
    np.testing.assert_array_equal(trees, [-9999, 0, -9999, 1, 2, -9999])
    np.testing.assert_array_equal(nearest, [0, 0, 2, 0, 2, -9999])


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_overwrite(dtype, overwrite):
    for module in theirs, ours:
        for call in module.floyd_warshall, module.shortest_path:
            matrix = np.array([[0, 1, 5], [0, 0, 1], [1, 0, 0]], dtype)
            result = call(matrix, overwrite=overwrite)
            assert np.shares_memory(matrix, result) == (overwrite and dtype == np.float64)
            np.testing.assert_array_equal(result, [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
            if not overwrite:
                np.testing.assert_array_equal(matrix, [[0, 1, 5], [0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(2, 3), (2,), (2, 2, 2)])
def test_shapes_that_are_refused(name, shape):
    for module in theirs, ours:
        with pytest.raises(ValueError, match="square|two dimensions"):
            getattr(module, name)(np.zeros(shape))


def test_methods_that_are_refused():
    for module in theirs, ours:
        with pytest.raises(ValueError, match="unrecognized method"):
            module.shortest_path(ASYMMETRIC, "X")
        with pytest.raises(ValueError, match="Cannot specify indices with method == 'FW'"):
            module.shortest_path(ASYMMETRIC, "FW", indices=[0])


def test_duplicates_of_coo_are_summed_and_masked_zeros_are_arcs():
    twice = sp.coo_array(([3.0, 4.0], ([0, 0], [1, 1])), shape=(2, 2))
    kept = np.ma.masked_invalid([[0, 0.0, np.nan], [np.nan, 0, 1], [np.nan, np.nan, 0]])
    for module in theirs, ours:
        np.testing.assert_array_equal(module.dijkstra(twice, indices=0), [0, 7])
        np.testing.assert_array_equal(module.dijkstra(kept, indices=0), [0, 0, 1])


def test_imaginary_parts_are_lost_with_a_warning():
    for module in theirs, ours:
        with pytest.warns(np.exceptions.ComplexWarning):
            np.testing.assert_array_equal(module.dijkstra(ASYMMETRIC.astype(complex), indices=0), [0, 1, 3])


class TestQuirksThatAreNotCopied:
    def test_a_negative_loop_is_a_negative_cycle_for_every_method(self):
        loop = graph([(0, 0, -7), (0, 1, 1)], 2)
        np.testing.assert_array_equal(theirs.floyd_warshall(loop), [[0, 1], [np.inf, 0]])
        for method in "auto", "FW", "BF", "J":
            with pytest.raises(ours.NegativeCycleError, match="0 -> 0 weighs -7"):
                ours.shortest_path(loop, method)

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_lists_and_every_sparse_format_are_taken(self, name):
        for given in [[0, 1], [0, 0]], sp.coo_array([[0, 1], [0, 0]]), sp.dok_array(np.array([[0, 1], [0, 0]])):
            np.testing.assert_array_equal(getattr(ours, name)(given), [[0, 1], [np.inf, 0]])

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_inf_and_nan_are_no_arcs_if_unweighted(self, name):
        matrix = graph([(0, 1, np.inf), (1, 2, np.nan), (0, 2, 9)])
        expected = [[0, np.inf, 1], [np.inf, 0, np.inf], [np.inf, np.inf, 0]]
        np.testing.assert_array_equal(getattr(ours, name)(matrix, unweighted=True), expected)

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_minus_infinity_is_refused(self, name):
        matrix = graph([(0, 1, -np.inf), (1, 2, 1)])
        for stored in matrix, np.ma.masked_equal(matrix.toarray(), 0):
            with pytest.raises(ValueError, match="-inf, which is not a length"):
                getattr(ours, name)(stored)
        masked = np.ma.masked_values(np.array([[0, 1], [-np.inf, 0]]), -np.inf)
        np.testing.assert_array_equal(getattr(ours, name)(masked), [[0, 1], [np.inf, 0]])

    def test_every_entry_of_a_bare_array_but_zero_is_an_arc(self):
        small = np.array([[0, 1e-9], [1e-7, 0]])
        np.testing.assert_array_equal(theirs.johnson(small), [[0, np.inf], [1e-7, 0]])
        np.testing.assert_array_equal(ours.johnson(small), [[0, 1e-9], [1e-7, 0]])

    def test_a_matrix_in_fortran_order_is_read_and_not_overwritten(self):
        """SciPy's Floyd-Warshall prints an error, and returns the arcs."""
        matrix = np.asfortranarray(ASYMMETRIC.toarray())
        before = matrix.copy()
        np.testing.assert_array_equal(ours.floyd_warshall(matrix, overwrite=True), theirs.floyd_warshall(ASYMMETRIC))
        np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("method", METHODS)
def test_other_dtypes(dtype, method):
    matrix = graph([(0, 1, 3), (1, 2, 4), (2, 0, 1)], 4)
    found, trees = ours.shortest_path(matrix, method, dtype=dtype, return_predecessors=True)
    for distances in found, ours.shortest_path(matrix, method, dtype=dtype):
        assert distances.dtype == dtype
        expected = theirs.shortest_path(matrix)
        unreachable = np.inf if dtype == "float32" else 2**31 - 1
        np.testing.assert_array_equal(distances, np.where(np.isinf(expected), unreachable, expected))
    assert trees[0].tolist() == [-9999, 0, 1, -9999]
    signed = graph([(0, 1, 3), (1, 2, -2)])
    if method != "D":
        expected = [[0, 3, 1], [np.inf, 0, -2], [np.inf, np.inf, 0]]
        found = ours.shortest_path(signed, method, dtype=dtype)
        np.testing.assert_array_equal(found, np.where(np.isinf(expected), unreachable, expected))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("weight", "dtype", "says"),
    [
        (2**53 - 1, "float64", "may exceed 9007199254740992"),
        (2**24 - 1, "float32", "may exceed 16777216"),
        (2**30, "int32", "distances exceed int32"),
        (2**40, "int32", "weights exceed int32"),
    ],
)
def test_whole_numbers_are_not_rounded(method, weight, dtype, says):
    matrix = sp.csr_array((np.array([weight, weight, 1]), ([0, 1, 3], [1, 2, 2])), shape=(4, 4))
    with pytest.raises(OverflowError, match=says):
        ours.shortest_path(matrix, method, dtype=dtype)
    matrix.data[1] = 1  # now the sums fit
    if weight == 2**30:
        assert ours.shortest_path(matrix, method, dtype=dtype)[0, 2] == weight + 1


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("exact", "dtype"), [(2**53, "float64"), (2**24, "float32")])
def test_whole_numbers_that_stay_at_the_limit_are_refused(name, exact, dtype):
    for diagonal in [exact, 1, 1, 1], [exact + 1, 0, 0, 0]:
        chain = sp.diags_array([diagonal], offsets=[1], shape=(5, 5), dtype=np.int64).tocsr()
        with pytest.raises(OverflowError, match=f"may exceed {exact}"):
            getattr(ours, name)(chain, dtype=dtype)
    below = sp.diags_array([[exact - 4, 1, 1, 1]], offsets=[1], shape=(5, 5), dtype=np.int64).tocsr()
    assert getattr(ours, name)(below, dtype=dtype)[0, 4] == exact - 1


def test_fractions_and_other_dtypes_are_refused():
    with pytest.raises(ValueError, match="weights have fractions"):
        ours.dijkstra(ASYMMETRIC / 2, dtype="int32")
    with pytest.raises(OverflowError, match="weights exceed float32"):
        ours.dijkstra(ASYMMETRIC * 1e300, dtype="float32")
    with pytest.raises(TypeError, match="dtype is int64"):
        ours.dijkstra(ASYMMETRIC, dtype="int64")
    with pytest.raises(ValueError, match="device is 'tpu'"):
        ours.dijkstra(ASYMMETRIC, device="tpu")


def random_graph(rng, n, signed):
    matrix = sp.random_array((n, n), density=rng.choice([0.02, 0.2, 0.9]), rng=rng, format="csr")
    if rng.random() < 0.5:
        matrix.data = np.ceil(matrix.data * 4) - 1  # ties and zeros
    if signed:
        # Shifted by potentials, so that no cycle is negative, and in exact sums: SciPy's Johnson does not end where
        # rounding makes a zero cycle negative.
        matrix.data = np.round(matrix.data * 1024) / 1024
        heights = rng.integers(0, 64, n) / 64
        matrix.data += np.repeat(heights, np.diff(matrix.indptr)) - heights[matrix.indices]
    return matrix


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("limit", [np.inf, 0.3, np.nan])
def test_searches_of_a_gpu_agree_with_heaps(together, limit):
    """Run on NumPy here, and on CuPy by `test_on_a_gpu`."""
    matrix = random_graph(np.random.default_rng(1), 50, False)
    arcs = arcs_module.read_arcs(matrix, True, False, np.dtype(float))
    question = engines.Question(np.array([3, 1, 3]), together=together, limit=limit, predecessors=True)
    found, trees = engines.searches(arcs, question, np)
    expected, _ = engines.solve(arcs, question, "cpu")
    np.testing.assert_array_equal(found, expected)
    assert ((trees < 0) == (np.isinf(found) | (found == 0))).all()


@pytest.mark.parametrize("method", ["FW", "D"])
def test_nobody_looks_for_a_gpu_where_there_is_little_to_do(monkeypatch, method):
    """An import that fails takes longer than a search of a few hundred vertices."""
    asked = []

    def library(device):
        asked.append(device)
        return np

    monkeypatch.setattr(devices, "array_library", library)
    ours.shortest_path(ASYMMETRIC, method)
    assert asked == []
    monkeypatch.setattr(devices, "_GPU_WORK", 20)
    ours.shortest_path(ASYMMETRIC, method)
    ours.shortest_path(ASYMMETRIC, method, device="cpu")
    assert asked == ["auto", "cpu"]


@pytest.mark.gpu
@pytest.mark.parametrize("signed", [False, True])
def test_on_a_gpu(gpu, signed):
    matrix = random_graph(np.random.default_rng(2), 60, signed)
    for method in "auto", "FW", "J":
        expected = ours.shortest_path(matrix, method, device="cpu")
        found, trees = ours.shortest_path(matrix, method, device="gpu", return_predecessors=True)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        check_trees(matrix, True, False, found, trees, range(60))
        np.testing.assert_allclose(ours.shortest_path(matrix, method, device="gpu"), expected, atol=1e-12)
    if not signed:
        hops = {"unweighted": True, "indices": range(0, 60, 2), "return_predecessors": True}
        for gpus, cpus in zip(*(ours.dijkstra(matrix, **hops, device=name) for name in ("gpu", "cpu")), strict=True):
            assert gpus.tobytes() == cpus.tobytes()
        nearest = ours.dijkstra(matrix, indices=[1, 2], min_only=True, limit=0.5, device="gpu")
        np.testing.assert_array_equal(nearest, theirs.dijkstra(matrix, indices=[1, 2], min_only=True, limit=0.5))


def test_every_other_name_is_scipys():
    assert set(theirs.__all__) <= set(dir(ours))
    for name in set(theirs.__all__) - {*FUNCTIONS, "NegativeCycleError"}:
        assert getattr(ours, name) is getattr(theirs, name)
    with pytest.raises(AttributeError, match="'tilepath.csgraph' has no attribute 'unknown'"):
        ours.unknown  # noqa: B018


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_scipys_and_two_keywords(name):
    mine, expected = (inspect.signature(getattr(module, name)).parameters for module in (ours, theirs))
    *common, dtype, device = [(p.name, p.default) for p in mine.values() if p.name != "sparse"]
    assert ("sparse" in mine) == (name == "dijkstra")
    assert common == [(p.name, p.default) for p in expected.values()]
    assert (dtype, device) == (("dtype", "float64"), ("device", "auto"))


def test_no_store_and_no_cluster_is_loaded():
    code = (
        "import sys, tilepath.csgraph; print(*({'zarr', 'dask', 'distributed', 'pyarrow', 'cupy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
