"""Fits of the order of growth, from times that are known."""

import pytest

from benchmarks import growth


def test_a_fit_finds_its_coefficients():
    sizes = (100, 300, 1000, 3000, 10_000)
    coefficients, error = growth.fit([(n, 2e-4 + 5e-8 * n + 3e-13 * n**3) for n in sizes], (0, 1, 3))
    assert coefficients == pytest.approx([2e-4, 5e-8, 3e-13])
    assert error < 1e-6
    _, error = growth.fit([(n, 1e-9 * n**2) for n in sizes], (0, 1))
    assert error > 0.5


def test_ways_with_few_sizes_are_left_out():
    def record(way, n, seconds):
        case = f"cyclic spectrum, n = {n}: {way}"
        return {"case": case, "way": way, "sizes": {"n": n}, "seconds": {"median": seconds}}

    few = [record("published, streamed", n, 1e-5 * n) for n in (10, 20)]
    assert growth.spectra(few) == {}
    found = growth.spectra([*few, record("published, streamed", 40, 4e-4)])
    assert found["published, streamed"][0] == pytest.approx([1e-5, 0], abs=1e-12)
