"""Measures of maps against scikit-learn's, and against what they are by definition."""

import json
import re

import numpy as np
import pytest
from commands import invoke, run_command
from sklearn.manifold import trustworthiness

from gpuops.som.grid import Grid
from pipelines import map_samples, mapping_quality, train_som, write_samples
from pipelines.som.mapping_quality import mapping_errors
from pipelines.som.quality import map_quality
from pipelines.stores.errors import StoreError


def test_trustworthiness_is_that_of_scikit_learn():
    """Each sample has a unit of its own, on a strip, so that no distances are tied but those to either side."""
    rng = np.random.default_rng(0)
    samples, grid = rng.normal(size=(60, 3)), Grid(1, 4000)
    units = rng.choice(4000, 60, replace=False)
    found = map_quality([(samples, units)], 60, rng.normal(size=(4000, 3)), grid)
    where = grid.positions()[units]
    assert found["trustworthiness"] == pytest.approx(trustworthiness(samples, where, n_neighbors=10), abs=2e-3)
    assert found["neighbourhood_preservation"] == pytest.approx(
        trustworthiness(where, samples, n_neighbors=10), abs=2e-3
    )


def test_a_map_that_keeps_all_distances_is_perfect():
    grid = Grid(6, 7)
    units = np.arange(42)
    found = map_quality([(grid.positions(), units)], 42, grid.positions(), grid)
    assert found == pytest.approx({name: 1.0 for name in found})
    assert len(found) == 3


def test_units_at_the_mean_explain_nothing():
    samples = np.random.default_rng(1).normal(size=(50, 4))
    found = map_quality([(samples, np.zeros(50, int))], 50, samples.mean(axis=0)[None], Grid(1, 1))
    assert found["explained_variance"] == pytest.approx(0)
    assert map_quality([(np.full((3, 2), 0.1), np.zeros(3, int))], 3, np.ones((1, 2)), Grid(1, 1)) == {}


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="leave such rows out"):
        map_quality([(np.array([[np.nan]]), np.zeros(1, int))], 1, np.zeros((1, 1)), Grid(1, 1))


@pytest.mark.parametrize("metric", ["euclidean", "taxicab"])
def test_a_mapping_has_the_measures_of_its_samples(client, tmp_path, monkeypatch, metric):
    """As of arrays, from samples on another scale than the map's, in pieces."""
    monkeypatch.setattr("pipelines.stores.mapping.LEAST_ROWS", 200)
    rng = np.random.default_rng(2)
    first, values = rng.normal(size=(300, 3)) * [1, 5, 9] + [100, 0, 0], rng.normal(size=(450, 3)) * [1, 5, 9]
    learnt = write_samples(tmp_path / "l", first, scaling="zscore", dtype="float64")
    codebook = train_som(client, learnt, tmp_path / "m", 5, 6, metric=metric, epochs=4)
    samples = write_samples(tmp_path / "s", values, dtype="float64")
    mapping = map_samples(client, codebook, samples, tmp_path / "p")
    assert len([*mapping.ranges()]) > 1
    scaled = samples.in_scaling(codebook.scaling).values()
    units = mapping.units()[:, 0]
    expected = map_quality([(scaled, units)], 450, codebook.units(), codebook.grid, metric)
    if metric == "euclidean":
        left = ((scaled - codebook.units()[units]) ** 2).sum()
        assert expected["explained_variance"] == pytest.approx(1 - left / (450 * scaled.var(axis=0).sum()))
    found = mapping_quality(tmp_path / "p")
    assert found == pytest.approx(mapping_errors(mapping) | expected)
    assert ("explained_variance" in found) == (metric == "euclidean")
    for arguments in ([], ["--json"]):
        done = run_command("som", "quality", tmp_path / "p", *arguments)
        if not arguments:
            assert ("left out: the metric is" in done.output) == (metric != "euclidean")
    assert json.loads(done.output) == found
    (tmp_path / "s").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="no longer at"):
        mapping_quality(tmp_path / "p")
    assert mapping_quality(tmp_path / "p", samples=tmp_path / "moved", codebook=codebook) == found


def test_measures_of_what_has_missing_values_are_the_errors_alone(client, tmp_path):
    values = np.random.default_rng(3).normal(size=(60, 2))
    values[5, 1] = np.nan
    samples = write_samples(tmp_path / "s", values, missing=True)
    codebook = train_som(client, samples, tmp_path / "m", 3, 3, epochs=2)
    map_samples(client, codebook, samples, tmp_path / "p")
    assert [*mapping_quality(tmp_path / "p")] == ["quantization_error", "topographic_error"]
    said = invoke("som", "quality", tmp_path / "p").output
    left_out = re.findall("(.*?) +left out: values of the samples are missing", said)
    assert left_out == ["explained variance", "trustworthiness", "neighbourhood preservation"]
