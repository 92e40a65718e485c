"""The formulas of metrics on arrays, against plain definitions and what the searches report."""

import math
from functools import reduce
from operator import add

import numpy as np
import pytest

from gpuops import best_matching_units
from gpuops.som.metrics import (
    METRICS,
    TITLES,
    check_metric,
    distances_of_rows,
    distances_to_all,
    greatest_distance,
    normalized,
)


def total(terms):
    return reduce(add, terms, 0.0)  # one after the other: `sum` of Python 3.12 compensates


def plain(x, w, metric):
    pairs = [(a, b) for a, b in zip(x.tolist(), w.tolist(), strict=True) if a == a]
    if metric == "euclidean":
        return math.sqrt(total((a - b) * (a - b) for a, b in pairs))
    if metric == "taxicab":
        return total(abs(a - b) for a, b in pairs)
    lengths = math.sqrt(total(a * a for a, _ in pairs)) * math.sqrt(total(b * b for _, b in pairs))
    return max(0.0, 1 - total(a * b for a, b in pairs) / lengths) if lengths else 1.0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("missing", [False, True])
def test_distances_are_their_definition_and_those_of_a_search(metric, missing):
    rng = np.random.default_rng(0)
    samples, codebook = rng.normal(size=(40, 7)).astype("f4"), rng.normal(size=(23, 7)).astype("f4")
    samples[3] = 0
    if missing:
        samples[rng.random(samples.shape) < 0.2] = np.nan
        samples[:, 0] = 1
    before = samples.copy()
    found = distances_to_all(samples, codebook, metric)
    expected = [[plain(x, w, metric) for w in codebook] for x in samples]
    np.testing.assert_array_equal(found, expected)  # to the last bit
    np.testing.assert_array_equal(samples, before)
    units, distances = best_matching_units(samples, codebook, metric, missing=missing)
    np.testing.assert_array_equal(units, found.argmin(axis=1))
    np.testing.assert_array_equal(distances, found.min(axis=1).astype("f4"))
    if not missing:
        rows = distances_of_rows(samples[:23], codebook, metric)
        np.testing.assert_allclose(rows, np.diag(found[:23]), atol=1e-14)


@pytest.mark.parametrize("metric", METRICS)
def test_no_distance_is_greater_than_the_greatest(metric):
    corners = np.array([[1.0, 1, 1, 1], [-1, -1, -1, -1]])
    assert distances_to_all(corners, corners, metric).max() <= greatest_distance(metric, 4, 2.0)
    assert distances_to_all(corners, corners, metric).max() == pytest.approx(greatest_distance(metric, 4, 2.0))


def test_names():
    assert [*TITLES] == [*METRICS]
    check_metric("cosine")
    with pytest.raises(ValueError, match="metric is 'chebyshev'; pass one of 'euclidean', 'taxicab', 'cosine'"):
        check_metric("chebyshev")
    assert normalized(np.array([[3, 4], [0, 0]])).tolist() == [[0.6, 0.8], [0, 0]]
