"""The nearest vertices of places, against all distances."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuops.extras import install
from pipelines import write_graph
from pipelines.places.by_place import EARTH_RADIUS, nearest, vertices_by_place


def sorted_by_place(folder, coordinates, outside=0):
    """Return the graph of a ring and of some vertices outside it, and its vertices by place."""
    n = len(coordinates)
    ring = np.roll(np.arange(n - outside), -1)
    indptr = np.minimum(np.arange(n + 1), n - outside)
    graph = write_graph(folder, indptr, ring, np.ones(n - outside, "int32"), coordinates=coordinates, overwrite=True)
    return vertices_by_place(graph, graph.coordinates())


def apart(coordinates, places, on_the_globe):
    """Return all distances from places to vertices."""
    if not on_the_globe:
        return np.sqrt(((places[:, None] - coordinates) ** 2).sum(-1))
    (x, y), (u, v) = np.radians(places).T[:, :, None], np.radians(coordinates).T
    half = np.sin((v - y) / 2) ** 2 + np.cos(y) * np.cos(v) * np.sin((u - x) / 2) ** 2
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1)))


@pytest.mark.parametrize("on_the_globe", [False, True])
@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 300), seed=st.integers(0, 2**32 - 1), rounded=st.sampled_from([0, 5, 45]))
def test_the_nearest_is_found(tmp_path_factory, on_the_globe, n, seed, rounded):
    """Rounded coordinates lie on each other, at the poles, and where longitude 180 is -180."""
    rng = np.random.default_rng(seed)
    coordinates, places = (rng.uniform(-1, 1, (k, 2)) * (180, 90) for k in (n, 100))
    if rounded:
        coordinates, places = (np.round(each / rounded) * rounded for each in (coordinates, places))
    component, others = sorted_by_place(tmp_path_factory.mktemp("graph") / "g", coordinates, outside=n // 4)
    assert sorted(component) == list(range(n - n // 4))
    assert sorted(others) == list(range(n - n // 4, n))
    for order in component, others:
        found, distance = nearest(order, coordinates, places, on_the_globe=on_the_globe)
        if not len(order):
            assert (found == -1).all()
            continue
        every = apart(coordinates[np.sort(order)], places, on_the_globe)
        np.testing.assert_allclose(distance, every.min(axis=1), rtol=1e-6, atol=0.01)
        if not on_the_globe:  # without rounding errors: of equally near ones, the first
            np.testing.assert_array_equal(found, np.sort(order)[every.argmin(axis=1)])


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=re.escape(install("csgraph"))):
        vertices_by_place(None, None)


def test_the_first_of_many_vertices_in_one_spot_is_found(tmp_path):
    component, _ = sorted_by_place(tmp_path / "g", np.ones((1000, 2)))
    assert nearest(component, np.ones((1000, 2)), np.zeros((1, 2)), on_the_globe=False)[0] == [0]
