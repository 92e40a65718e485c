"""The k shortest paths beside all paths, and beside NetworkX's generator of simple paths."""

from itertools import islice, pairwise

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparse_rows import rows_of

from gpuops import k_shortest_paths


def lightest_arcs(arcs):
    found = {}
    for tail, head, weight in arcs:
        found[tail, head] = min(weight, found.get((tail, head), weight))
    return found


def all_paths(lightest, source, target, passes):
    """Every path without a repeated vertex, by its definition."""
    heads = {}
    for tail, head in lightest:
        heads.setdefault(tail, []).append(head)

    def extended(path):
        if path[-1] == target:
            yield path
        elif len(path) == 1 or passes[path[-1]]:
            for head in heads.get(path[-1], ()):
                if head not in path:
                    yield from extended((*path, head))

    return list(extended((source,)))


@given(st.data())
def test_any_graph(data):
    n = data.draw(st.integers(1, 7))
    vertex = st.integers(0, n - 1)
    arcs = data.draw(st.lists(st.tuples(vertex, vertex, st.integers(0, 3)), max_size=22))
    source, target, k = data.draw(vertex), data.draw(vertex), data.draw(st.integers(1, 40))
    passes = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    indptr, indices, weights = rows_of(arcs, n)
    lightest = lightest_arcs(arcs)
    every = {
        path: sum(lightest[step] for step in pairwise(path)) for path in all_paths(lightest, source, target, passes)
    }
    for kind in np.int32, np.float32:
        lengths, starts, vertices = k_shortest_paths(
            indptr, indices, weights.astype(kind), source, target, k, through=passes
        )
        assert lengths.dtype == (np.int64 if kind == np.int32 else np.float64)
        paths = [tuple(vertices[a:b].tolist()) for a, b in pairwise(starts)]
        assert [every[path] for path in paths] == lengths.tolist() == sorted(every.values())[:k]
        assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("directed", [True, False])
def test_lengths_are_those_of_networkx(directed):
    rng = np.random.default_rng(directed)
    graph = nx.gnm_random_graph(60, 240, seed=1, directed=directed)
    for edge in graph.edges:
        graph.edges[edge]["weight"] = rng.random()
    rows = nx.to_scipy_sparse_array(graph, nodelist=range(60), format="csr")
    expected = islice(nx.shortest_simple_paths(graph, 3, 50, weight="weight"), 60)
    lengths, starts, vertices = k_shortest_paths(rows.indptr, rows.indices, rows.data, 3, 50, 60)
    np.testing.assert_allclose(lengths, [nx.path_weight(graph, path, "weight") for path in expected], rtol=1e-13)
    for length, (a, b) in zip(lengths, pairwise(starts), strict=True):
        path = vertices[a:b].tolist()
        assert nx.is_simple_path(graph, path)
        assert (path[0], path[-1]) == (3, 50)
        assert nx.path_weight(graph, path, "weight") == pytest.approx(length, rel=1e-13)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("gpuops._threads._SERIAL_RELAXATIONS", 1)
    rng = np.random.default_rng(0)
    arrays = rows_of(np.column_stack([rng.integers(0, 80, (400, 2)), rng.integers(1, 4, 400)]), 80)
    found = []
    for threads in 1, 3:
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found.append([array.tobytes() for array in k_shortest_paths(*arrays, 0, 79, 200)])
    assert found[0] == found[1]


def test_one_source_that_is_the_target_and_no_path():
    arrays = rows_of([(0, 1, 2), (1, 0, 2), (1, 2, np.inf)], 3)
    assert [array.tolist() for array in k_shortest_paths(*arrays, 1, 1, 5)] == [[0], [0, 1], [1]]
    assert [array.tolist() for array in k_shortest_paths(*arrays, 0, 2, 5)] == [[], [0], []]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"k": 0}, ValueError, "k is 0; give a whole number from 1"),
        ({"target": 3}, ValueError, "target 3 is not a vertex; vertices are 0 to 2"),
        ({"source": -1}, ValueError, "source -1 is not a vertex"),
        ({"weights": np.array([1.0, -1.0])}, ValueError, "a weight is negative or NaN; the k shortest paths need"),
        ({"weights": np.array([1, 2**52])}, OverflowError, r"a path could be 2\^53 or longer; pass weights of float64"),
        ({"through": np.array([True])}, ValueError, "through is bool of length 1; give a bool for each of"),
        ({"through": [True]}, TypeError, "through is a list; pass a NumPy or a CuPy array"),
        ({"indices": np.array([1, 3])}, ValueError, "they must be vertices, 0 to 2"),
    ],
)
def test_what_is_refused(arguments, error, says):
    whole = {"indptr": np.array([0, 1, 2, 2]), "indices": np.array([1, 2]), "weights": np.array([1, 1]), **arguments}
    with pytest.raises(error, match=says):
        k_shortest_paths(**({"source": 0, "target": 2, "k": 2} | whole))
