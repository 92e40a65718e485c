"""What is near, against all rows of distances and the brute force over them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_rows import all_distances

from gpuops import dijkstra_rows, distances_within, k_nearest, search_graph, shortest_distances

DTYPES = ("int32", "float32", "float64")


@st.composite
def graphs(draw):
    """A multigraph with loops, zero weights, ties and closed vertices; float weights add up without rounding."""
    n, m = draw(st.integers(1, 12)), draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tails, heads = np.sort(rng.integers(0, n, m)), rng.integers(0, n, m).astype(np.int32)
    weights = rng.integers(0, draw(st.sampled_from([1, 4, 50])), m).astype(draw(st.sampled_from(DTYPES)))
    indptr = np.searchsorted(tails, np.arange(n + 1))
    return indptr, heads, weights / weights.dtype.type(4) if weights.dtype.kind == "f" else weights, rng.random(n) < 0.7


@settings(max_examples=30, deadline=None)
@given(graphs(), st.data())
def test_near_vertices_are_those_of_all_distances(graph, data):
    *arcs, through = graph
    n = len(through)
    limit = data.draw(st.sampled_from([0, 0.5, 3, 20, np.inf]))
    sources = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    expected = all_distances(*graph)
    starts, vertices, distances = distances_within(*arcs, sources, limit, through=through)
    assert distances.dtype == arcs[2].dtype
    assert len(starts) == len(sources) + 1
    for i, source in enumerate(sources):
        near = np.flatnonzero(expected[source] <= min(limit, 1e9))
        np.testing.assert_array_equal(vertices[starts[i] : starts[i + 1]], near)
        np.testing.assert_array_equal(distances[starts[i] : starts[i + 1]], expected[source, near])


@settings(max_examples=30, deadline=None)
@given(graphs(), st.data())
def test_the_k_nearest_are_those_of_all_distances(graph, data):
    *arcs, through = graph
    n = len(through)
    places = data.draw(st.lists(st.integers(0, n - 1), max_size=8))
    k, limit = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([0, 2.5, 20, np.inf]))
    found, distances = k_nearest(*arcs, places, k, limit=limit, through=through)
    expected = all_distances(*graph)[:, places]
    order = np.argsort(expected, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(expected, order, axis=1)
    missing = ~(values <= min(limit, 1e9))
    np.testing.assert_array_equal(found, np.where(missing, -1, order))
    np.testing.assert_array_equal(distances[~missing], values[~missing])
    assert (distances[missing] >= np.iinfo(np.int64).max).all()
    assert distances.dtype == ("int64" if arcs[2].dtype.kind == "i" else "float64")


def test_a_path_begins_at_a_closed_place_that_has_k_nearer_ones():
    """Vertex 1 is closed and at once 0 away from the first place, which vertex 0 cannot reach through it."""
    indptr, heads, weights = np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), np.array([1, 0], np.int32)
    found, distances = k_nearest(indptr, heads, weights, [2, 1], 1, through=np.array([True, False, True]))
    assert found.ravel().tolist() == [1, 0, 0]
    assert distances.ravel().tolist() == [1, 0, 0]


def rounded_graph(n=400, m=2000, seed=3):
    rng = np.random.default_rng(seed)
    tails, heads = np.sort(rng.integers(0, n, m)), rng.integers(0, n, m).astype(np.int32)
    return np.searchsorted(tails, np.arange(n + 1)), heads, rng.random(m).astype(np.float32)


def test_floats_have_the_bits_of_shortest_distances():
    graph = rounded_graph()
    expected = shortest_distances(search_graph(*graph), [7], cutoff=1.5)
    starts, vertices, distances = distances_within(*graph, np.tile([3, 7], 1000), 1.5)  # many sources for each thread
    for last in 1, 999, 1999:
        row, near = np.full(400, np.inf, np.float32), slice(starts[last], starts[last + 1])
        row[vertices[near]] = distances[near]
        np.testing.assert_array_equal(row.view("i4"), expected.view("i4"))


def test_rounded_lengths_of_the_nearest_are_added_up_from_the_place():
    indptr, indices, weights = rounded_graph()
    tails = np.repeat(np.arange(400), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    backwards = np.searchsorted(indices[order], np.arange(401)), tails[order].astype(np.int32), weights[order]
    places = np.random.default_rng(0).integers(0, 400, 30)
    expected, _ = dijkstra_rows(*backwards[:2], backwards[2].astype(float), places)
    found, distances = k_nearest(indptr, indices, weights, places, 4)
    np.testing.assert_array_equal(distances, np.sort(expected.T, axis=1)[:, :4])
    np.testing.assert_array_equal(np.take_along_axis(expected.T, found, axis=1), distances)


def test_what_cannot_be_is_refused():
    graph = rounded_graph(10, 30)
    for wrong, fault in (({"limit": -1}, "limit is -1"), ({"limit": np.nan}, "limit is nan")):
        with pytest.raises(ValueError, match=fault):
            distances_within(*graph, [0], **wrong)
    with pytest.raises(ValueError, match="k is 0; give a whole number from 1"):
        k_nearest(*graph, [0], 0)
    with pytest.raises(ValueError, match="place 10 is not a vertex"):
        k_nearest(*graph, [10], 1)
    with pytest.raises(ValueError, match="through is int64 of length 10; give a bool"):
        k_nearest(*graph, [1], 1, through=np.arange(10))
    with pytest.raises(ValueError, match="a weight is negative"):
        distances_within(*graph[:2], -graph[2], [0], 1)
    far = np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), np.array([2**30, 2**30], np.int32)
    with pytest.raises(OverflowError, match="exceed int32"):
        distances_within(*far, [0], np.inf)
    assert distances_within(*far, [0], 2**30)[1].tolist() == [0, 1]
    assert k_nearest(*far, [2], 1)[1].tolist() == [[2**31], [2**30], [0]]
