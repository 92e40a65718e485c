"""The k shortest paths of a graph store: weights and lengths of each path, labels, and errors."""

import numpy as np
import pytest
from oracles import store_arcs

from gpuops.errors import WeightRangeError
from pipelines import NoPathError, k_shortest_paths, shortest_path
from pipelines.stores.errors import StoreError


def test_paths_have_the_weights_of_their_arcs(tmp_path):
    tails, heads, weights = np.array([[0, 0, 1, 0, 2, 3], [1, 1, 2, 2, 3, 3], [5, 1, 1, 2.5, 1, 9]])
    store = store_arcs(
        tmp_path / "g", 5, tails.astype(int), heads.astype(int), weights, np.float32, directed=True,
        labels=np.array(list("abcde")),
    )  # fmt: skip
    found = k_shortest_paths(store, "a", "d", 9)
    assert [path.vertices for path in found] == [(0, 1, 2, 3), (0, 2, 3)]
    assert [path.weights for path in found] == [(1, 1, 1), (2.5, 1)]
    assert [(path.distance, path.total) for path in found] == [(3, 3), (3.5, 3.5)]
    assert found[:1] == k_shortest_paths(store.path, "#0", "d", 1) == [shortest_path(store, "a", "d")]
    assert k_shortest_paths(store, "b", "b", 3)[0].vertices == (1,)
    with pytest.raises(NoPathError, match="no path leads from vertex a to vertex e"):
        k_shortest_paths(store, "a", "e", 2)
    with pytest.raises(StoreError, match="there is no vertex 'z'"):
        k_shortest_paths(store, "z", "e", 2)
    with pytest.raises(ValueError, match="k is 0; give a whole number from 1"):
        k_shortest_paths(store, "a", "d", 0)


@pytest.mark.parametrize(
    ("weight", "error", "says"), [(-1, ValueError, "has a weight of -1; the k"), (2**53, WeightRangeError, "smaller")]
)
def test_weights_that_are_refused(tmp_path, weight, error, says):
    store = store_arcs(tmp_path / "g", 2, np.array([0]), np.array([1]), np.array([weight]), np.int64, directed=True)
    with pytest.raises(error, match=says):
        k_shortest_paths(store, 0, 1, 2)
