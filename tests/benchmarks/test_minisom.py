"""The suite `minisom` trains maps that are alike."""

import numpy as np

from benchmarks.harness import Bench
from benchmarks.suites import minisom


def test_both_maps_have_the_same_start_and_nearly_the_same_error(tmp_path):
    samples = minisom.standardized(np.random.default_rng(1).random((60, 3)))
    bench = Bench("minisom", np, 1)
    minisom._compare(bench, "few", samples, 4, 5)
    theirs, ours = bench.records
    assert theirs["case"] == f"few, 60 x 3, 4 x 5 units: {minisom.MINISOM}"
    assert ours["quantization_error"] < 1.1 * theirs["quantization_error"]
    som = minisom.by_tilepath(samples, 4, 5)
    assert abs(ours["quantization_error"] - som.quantization_errors_[-1]) < 1e-5
