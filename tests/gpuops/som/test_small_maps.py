"""Searches in small maps, which one kernel screens and decides, on a machine without a GPU (host_shim/)."""

import numpy as np
import pytest
from screening import inside, trap_of_keys, trap_of_small_map

from gpuops._cuda import Program, declared
from gpuops.som import best_matching_units, small_map_cuda


@pytest.fixture
def cupy(host_shim, monkeypatch):
    """The host shim; `match` takes any number of samples."""
    host_shim.start(1, multiprocessors=2)
    monkeypatch.setattr(small_map_cuda, "_SAMPLES", 0)
    return host_shim


def check(cupy, samples, codebook):
    """Compare with the CPU half, and return how many samples were left to `match_left`."""
    expected = best_matching_units(samples, codebook)
    result = best_matching_units(cupy.asarray(samples), cupy.asarray(codebook))
    for found, known in zip(result, expected, strict=True):
        np.testing.assert_array_equal(found.get(), known)
    return inside(cupy, samples, codebook).left


SLOW = [
    (300, 70, 3, "float32"),
    (40, 1024, 20, "float32"),
    (65, 900, 34, "float32"),
    (33, 65, 62, "float32"),
    (50, 130, 78, "float64"),
]


@pytest.mark.parametrize(
    ("n", "m", "d", "dtype"),
    [
        (1, 1, 17, "float32"),
        (200, 70, 20, "float32"),
        (100, 400, 28, "float32"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW),
    ],
)
def test_units_and_distances_of_the_cpu(cupy, n, m, d, dtype):
    rng = np.random.default_rng(n)
    samples, codebook = rng.random((n, d)).astype(dtype), rng.random((m, d)).astype(dtype)
    assert check(cupy, samples, codebook) <= max(n // 8, 1)  # most are found at once
    few_bits = (np.round(4 * values) / 4 for values in (samples, codebook))  # ties
    check(cupy, *few_bits)
    samples[n // 2] = 1e7  # not screened
    assert check(cupy, samples, codebook) >= 1
    codebook[m // 2] = 1e6
    check(cupy, samples, codebook)
    samples[n // 2, d // 2] = np.nan
    with pytest.raises(ValueError, match=f"row {n // 2} of samples"):
        best_matching_units(cupy.asarray(samples), cupy.asarray(codebook))
    codebook[m - 1, 0] = np.inf
    with pytest.raises(ValueError, match=f"row {m - 1} of codebook"):
        best_matching_units(cupy.asarray(samples), cupy.asarray(codebook))


def test_several_chunks_and_views(cupy, monkeypatch):
    monkeypatch.setattr(small_map_cuda, "CHUNK", 64)
    rng = np.random.default_rng(1)
    samples, codebook = (rng.integers(-6, 7, shape).astype("float32") / 4 for shape in ((150, 19), (90, 19)))
    expected = best_matching_units(samples[::-1], codebook)
    wide = cupy.asarray(np.repeat(samples, 2, axis=1))
    found = best_matching_units(wide[::-1, ::2], cupy.asarray(codebook))
    for result, known in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result.get(), known)
    samples[20] = samples[140] = np.inf  # the first chunk's fault is not forgotten
    with pytest.raises(ValueError, match="row 20 of samples"):
        best_matching_units(cupy.asarray(samples), cupy.asarray(codebook))


def test_scores_that_a_device_rounds_to_zero(cupy, monkeypatch):
    """The key of the nearest quad is then zero, without the number of the quad."""
    codebook = np.zeros((61, 20), "float32")
    codebook[:, 0] = np.insert(np.resize([1.5, -1.5], 60), 37, 0)
    source, least = Program.source, "fminf(least[q], key)"
    assert any(least in source(program) for program in declared())
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(least, f"host::flushed({least})"))
    cupy.start()
    check(cupy, np.eye(20, dtype="float32")[1:2], codebook)


TRAPS = {
    "units": (lambda: trap_of_small_map("units"), 65, 1, "reach * tile.residual"),
    "sample": (lambda: trap_of_small_map("sample"), 65, 1, "residual * tile.norm"),
    "keys": (trap_of_keys, 1, 1023, "1.0001f / (1 << (23 - BITS))"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TRAPS)
def test_a_smaller_bound_would_take_the_wrong_unit(cupy, monkeypatch, case):
    make, right, wrong, term = TRAPS[case]
    samples, codebook = make()
    assert check(cupy, samples, codebook) <= 1
    assert inside(cupy, samples, codebook).units == [right]
    source = Program.source
    assert any(term in source(program) for program in declared())
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(term, f"0.5f * {term}"))
    cupy.start()
    assert inside(cupy, samples, codebook).units == [wrong]
