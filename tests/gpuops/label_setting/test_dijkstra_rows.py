"""Dijkstra's algorithm from many vertices, beside SciPy and one search at a time."""

import numpy as np
import pytest
import scipy.sparse as sp
from families import usual
from scipy.sparse import csgraph

from gpuops import csr, dijkstra, dijkstra_rows


def random_graph(seed, n=60, m=240):
    rng = np.random.default_rng(seed)
    heads, weights = rng.integers(0, n, m).astype(np.int32), rng.integers(0, 9, m).astype(float)
    indptr = csr.row_starts(rng.integers(0, n, m), n)
    return indptr, heads, weights


@pytest.mark.parametrize("dtype", usual(["float64", "float32", "int32"], {"float64"}))
def test_every_row_is_that_of_a_single_search(dtype):
    indptr, indices, weights = random_graph(0)
    weights = weights.astype(dtype)
    sources = [3, 1, 3, 59, 0]
    distances, predecessors = dijkstra_rows(indptr, indices, weights, sources, predecessors=True)
    for row, tree, source in zip(distances, predecessors, sources, strict=True):
        expected, expected_tree = dijkstra(indptr, indices, weights, source)
        np.testing.assert_array_equal(row, expected)
        np.testing.assert_array_equal(tree, expected_tree)
    alone, none = dijkstra_rows(indptr, indices, weights, sources)
    np.testing.assert_array_equal(alone, distances)
    assert none is None
    assert dijkstra_rows(indptr, indices, weights, [])[0].shape == (0, 60)


def test_many_rows_take_several_threads():
    indptr, indices, weights = random_graph(1, 400, 4000)
    matrix = sp.csr_array((weights, indices, indptr), shape=(400, 400))
    found, _ = dijkstra_rows(indptr, indices, weights, np.arange(400))
    np.testing.assert_array_equal(found, csgraph.dijkstra(matrix))


@pytest.mark.parametrize("dtype", usual(["float64", "int32"]))
@pytest.mark.parametrize("limit", [-1, 0, 7, 7.5, float("inf"), float("nan")])
def test_what_is_beyond_the_limit_is_unreachable(dtype, limit):
    indptr, indices, weights = random_graph(2)
    full, _ = dijkstra_rows(indptr, indices, weights.astype(dtype), [5, 6])
    found, trees = dijkstra_rows(indptr, indices, weights.astype(dtype), [5, 6], limit=limit, predecessors=True)
    unreachable = np.inf if dtype == "float64" else 2**31 - 1
    expected = np.where(full <= limit, full, unreachable)
    expected[[0, 1], [5, 6]] = 0
    np.testing.assert_array_equal(found, expected)
    assert ((trees < 0) == ((found == unreachable) | (np.arange(60) == [[5], [6]]))).all()


def test_together_is_from_the_nearest():
    indptr, indices, weights = random_graph(3)
    each, _ = dijkstra_rows(indptr, indices, weights, [7, 8, 7])
    nearest, trees = dijkstra_rows(indptr, indices, weights, [7, 8, 7], together=True, predecessors=True)
    np.testing.assert_array_equal(nearest, each.min(axis=0)[None])
    assert trees[0, [7, 8]].tolist() == [-1, -1]
    nowhere, _ = dijkstra_rows(indptr, indices, weights, [], together=True)
    assert np.isinf(nowhere).all()
    assert nowhere.shape == (1, 60)


def test_what_does_not_fit_int32_is_refused_unless_there_is_a_limit():
    arrays = np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([2**30, 2**30], np.int32)
    with pytest.raises(OverflowError, match="exceed int32"):
        dijkstra_rows(*arrays, [1, 0])
    found, _ = dijkstra_rows(*arrays, [0], limit=2**30)
    assert found.tolist() == [[0, 2**30, 2**31 - 1]]


@pytest.mark.parametrize(
    ("sources", "says"),
    [([60], "source 60 is not a vertex"), ([-1], "source -1"), ([0.5], "sources are float64"), ([[0]], "of shape")],
)
def test_sources_that_are_refused(sources, says):
    with pytest.raises(ValueError, match=says):
        dijkstra_rows(*random_graph(4), sources)


def test_both_directions():
    indptr, indices, weights = random_graph(5)
    starts, heads, lengths = csr.both_directions(indptr, indices, weights)
    tails = csr.tails(indptr, len(indices), np.int32)
    expected = sorted([*zip(tails, indices, weights, strict=True), *zip(indices, tails, weights, strict=True)])
    assert sorted(zip(csr.tails(starts, len(heads), np.int32), heads, lengths, strict=True)) == expected
