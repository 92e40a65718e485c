"""Cyclic spectra against sums of slices, and the published one."""

from collections import Counter

import numpy as np
import pytest
from families import usual

from gpuops import cyclic_spectrum, cyclic_spectrum_counts, peptide_masses, spectrum_score
from gpuops.arrays import on_host

PUBLISHED = [0, 57, 71, 113, 113, 128, 128, 184, 185, 226, 241, 241, 256, 297, 298, 354, 354, 369, 369, 411, 425, 482]


def pieces(masses):
    """By length and beginning."""
    n = len(masses)
    ring = masses + masses
    return [0, *(sum(ring[i : i + k]) for k in range(1, n) for i in range(n)), *([sum(masses)] if n else [])]


def test_the_published_spectrum(xp):
    assert cyclic_spectrum(xp.asarray(np.array([57, 71, 113, 113, 128]))).tolist() == PUBLISHED


@pytest.mark.parametrize("dtype", usual(["uint8", "int32", "int64", "uint64"]))
def test_against_sums_of_slices(xp, dtype):
    rng = np.random.default_rng(0)
    for n in [*range(0, 12), 40, 41]:
        for largest in 2, 200:
            masses = rng.integers(0, largest, n).astype(dtype)
            x, expected = xp.asarray(masses), pieces(masses.tolist())
            found = cyclic_spectrum(x)
            assert found.dtype == np.int64
            assert found.tolist() == sorted(expected)
            assert cyclic_spectrum(x, ordered=False).tolist() == expected
            counts = on_host(cyclic_spectrum_counts(x))
            assert {s: c for s, c in enumerate(counts.tolist()) if c} == Counter(expected)


def test_masses_that_are_large_or_negative(xp):
    for masses in [2**55, 1, 2**56, 5], [-3, 5, -9, 2]:
        assert cyclic_spectrum(xp.asarray(np.array(masses))).tolist() == sorted(pieces(masses))


def test_many_masses(xp):
    masses = np.random.default_rng(1).choice(peptide_masses("GASPVTCINDKEMHFRYW"), 1500)
    x = xp.asarray(masses)
    unordered = on_host(cyclic_spectrum(x, ordered=False))
    np.testing.assert_array_equal(on_host(cyclic_spectrum(x)), np.sort(unordered))
    np.testing.assert_array_equal(on_host(cyclic_spectrum_counts(x)), np.bincount(unordered))


def test_scores(xp):
    spectrum = cyclic_spectrum(xp.asarray(peptide_masses("NQEL")))
    measured = np.array([0, 99, 113, 114, 128, 227, 257, 299, 355, 356, 370, 371, 484])
    assert spectrum_score(spectrum, xp.asarray(measured)) == 11
    rng = np.random.default_rng(0)
    for _ in range(30):
        a, b = (rng.integers(0, 20, rng.integers(0, 40)) for _ in range(2))
        assert spectrum_score(xp.asarray(a), xp.asarray(b)) == (Counter(a.tolist()) & Counter(b.tolist())).total()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: peptide_masses("NQB"), ValueError, "letter 3 of the peptide is 'B'; amino acids are G A S"),
        (lambda: cyclic_spectrum([1, 2]), TypeError, "masses is a list"),
        (lambda: cyclic_spectrum(np.ones(2)), TypeError, "masses is float64; convert them to integers"),
        (lambda: cyclic_spectrum(np.ones((2, 2), int)), ValueError, "masses has 2 dimensions"),
        (lambda: cyclic_spectrum(np.array([2**61, 1])), ValueError, "may add up to 2"),
        (lambda: cyclic_spectrum(np.ones(10**6, int)), ValueError, "takes 7.3 TiB, .* take cyclic_spectrum_counts"),
        (lambda: cyclic_spectrum_counts(np.array([2**60])), ValueError, "takes 8.0 EiB, .* take a larger unit"),
        (lambda: cyclic_spectrum_counts(np.array([2, -1])), ValueError, "masses go down to -1"),
    ],
)
def test_misuse_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
