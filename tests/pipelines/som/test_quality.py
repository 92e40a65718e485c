"""Measures of maps against scikit-learn's, and against what they are by definition."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from gpuops.som.grid import Grid
from pipelines.som.quality import explained_variance, map_quality


def test_trustworthiness_is_that_of_scikit_learn():
    """Each sample has a unit of its own, on a strip, so that no distances are tied but those to either side."""
    rng = np.random.default_rng(0)
    samples, grid = rng.normal(size=(60, 3)), Grid(1, 4000)
    units = rng.choice(4000, 60, replace=False)
    found = map_quality(samples, units, rng.normal(size=(4000, 3)), grid, neighbours=7)
    where = grid.positions()[units]
    assert found["trustworthiness"] == pytest.approx(trustworthiness(samples, where, n_neighbors=7), abs=2e-3)
    assert found["neighbourhood_preservation"] == pytest.approx(
        trustworthiness(where, samples, n_neighbors=7), abs=2e-3
    )


def test_a_map_that_keeps_all_distances_is_perfect():
    grid = Grid(6, 7)
    units = np.arange(42)
    found = map_quality(grid.positions(), units, grid.positions(), grid)
    assert found == pytest.approx({name: 1.0 for name in found})
    assert len(found) == 3


def test_units_at_the_mean_explain_nothing():
    samples = np.random.default_rng(1).normal(size=(50, 4))
    assert explained_variance(samples, np.zeros(50, int), samples.mean(axis=0)[None]) == pytest.approx(0)
    assert np.isnan(explained_variance(np.ones((3, 2)), np.zeros(3, int), np.ones((1, 2))))


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="leave such rows out"):
        map_quality(np.array([[np.nan]]), np.zeros(1, int), np.zeros((1, 1)), Grid(1, 1))
