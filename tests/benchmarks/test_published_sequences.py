"""The published variants of distinct, look-and-say and cyclic spectra with the host shim; the suites on tiny sizes."""

import argparse

import numpy as np
import pytest

from benchmarks.harness import Bench
from benchmarks.kernels import sequences as published
from benchmarks.suites import distinct, sequences
from gpuops import cyclic_spectrum, look_and_say

SEED = np.array([1, 1, 1, 3, 1, 2, 2, 1, 1, 3], "int32")
MASSES = np.array([57, 71, 113, 113, 128, 99, 97, 186, 3, 57, 71, 71, 101, 115, 156, 163, 87, 1], "int32")


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start(1)
    return host_shim


def test_distinct(cupy):
    x = np.random.default_rng(0).integers(0, 50, 3000).astype("int32")
    assert published.distinct_by_sorting(cupy, cupy.asarray(x)).tolist() == np.unique(x).tolist()


def test_look_and_say(cupy):
    for steps in 0, 1, 9:
        expected = look_and_say(SEED.astype("uint8"), steps)
        longest = max(len(expected), 200)
        for term in (
            published.say_one_by_one(SEED.astype("uint8"), steps),
            published.say_with_host_filter(cupy, SEED.astype("int8"), steps),
            published.say_by_scans(cupy, SEED, steps, longest),
        ):
            np.testing.assert_array_equal(np.asarray(term), expected)


def test_spectra(cupy):
    expected = cyclic_spectrum(MASSES, ordered=False)
    for spectrum in (
        published.spectrum_brute(MASSES),
        published.spectrum_memo(MASSES),
        published.spectrum_by_grid(cupy, cupy.asarray(MASSES)),
        published.spectrum_by_stream(cupy, cupy.asarray(MASSES)),
    ):
        np.testing.assert_array_equal(np.asarray(spectrum), expected)


def test_the_suites_on_a_cpu(capsys):
    bench = Bench("distinct", np, 1)
    distinct.run(bench, argparse.Namespace(sizes=[5000], others=4000))
    assert {"distinct of 0..999, 5,000 int32", "inclusive scan 4,000 int64"} <= {r["case"] for r in bench.records}
    assert all(record["sizes"]["n"] in (4000, 5000) for record in bench.records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "PUBLISHED", {n: (n / 1e6, 1.0) for n in (1000, 2000, 3000, 5000)})
        bench = Bench("distinct", np, 1)
        distinct.run(bench, argparse.Namespace(sizes=None, others=4000))
    published = {r["sizes"]["n"]: r["published_seconds"] for r in bench.records if "published_seconds" in r}
    assert published == {1000: 0.001, 2000: 0.002, 3000: 0.003, 5000: 0.005}
    bench = Bench("sequences", np, 1)
    sequences.run(bench, argparse.Namespace(only=None, steps=[8], masses=[12], elements=5))
    assert len(bench.records) == 3 + 5 + 3
    assert "look-and-say, steps = 8: look-and-say" in {record["case"] for record in bench.records}
