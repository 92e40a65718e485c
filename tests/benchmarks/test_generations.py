"""Generations of Floyd-Warshall and their variants with the host shim, against Floyd-Warshall on a CPU."""

import numpy as np
import pytest

from benchmarks.kernels import generations
from gpuops import floyd_warshall
from gpuops._cuda import Program

ON_SHIM = ("katz_kider", "optimized_blocked", "registers", "staged_load", "staged_without_skew")
BY_NAME = {g.name: g for g in (*generations.GENERATIONS, *generations.VARIANTS)}


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start(1)
    return host_shim


def check(cupy, name, n=96):
    weights = np.random.default_rng(n).integers(1, 1000, (n, n)).astype("float32")
    np.fill_diagonal(weights, 0)
    matrix = cupy.asarray(weights)
    BY_NAME[name].close(matrix)
    np.testing.assert_array_equal(np.asarray(matrix), floyd_warshall(weights))


@pytest.mark.parametrize("name", ON_SHIM)
def test_a_generation_closes_a_matrix(cupy, name):
    check(cupy, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "broken"),
    [
        ("registers", "own[r] = place[(long long)(r * ROWS) * n];", "own[r] = place[0];"),
        ("staged_load", "SKEW * (i + j) + step", "SKEW * (i + j)"),
        ("staged_without_skew", "columns[r * 16 + i * 4 + k]", "columns[r * 16 + i * 4]"),
    ],
)
def test_what_is_broken_is_caught(cupy, monkeypatch, name, text, broken):
    source = Program.source
    assert text in source(generations.PROGRAMS[name])
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(text, broken))
    cupy.start(2)
    with pytest.raises(AssertionError):
        check(cupy, name)


def test_a_lone_block_leaves_no_room_for_another(cupy, monkeypatch):
    """The H100 has 233,472 bytes of shared memory on a multiprocessor, of which a block may have 232,448."""
    cupy.start(3)
    program = generations.PROGRAMS["optimized_blocked"]
    kernel = program.function("doubly_dependent")
    monkeypatch.setattr(kernel, "shared_size_bytes", 12_288, raising=False)
    attributes = {"MultiProcessorCount": 1, "MaxSharedMemoryPerBlockOptin": 232_448}
    monkeypatch.setattr(cupy.Device, "attributes", attributes)
    spare = generations.spare_shared_bytes(program)
    assert kernel.max_dynamic_shared_size_bytes == spare
    assert 12_288 + spare <= 232_448
    assert 2 * (12_288 + spare) > 233_472
    check(cupy, "alone", 64)
