"""Rows of distances added up by a kernel, on the host (host_shim/), against NumPy."""

import numpy as np
import pytest
from families import every_kernel, not_launched, usual
from mutants import break_line, lines_with

from gpuops import _cuda
from gpuops.hierarchy.totals import row_minima, row_totals
from gpuops.numbers import DISTANCE_DTYPES, outside_infinity

pytestmark = pytest.mark.usefixtures("cupy")

FILE = "hierarchy/totals.cu"


def check(cupy, dtype, rows, width):
    rng = np.random.default_rng(width)
    found, values = rng.integers(0, 90, (rows, width)).astype(dtype), rng.uniform(0, 9, width)
    found[rng.random(found.shape) < 0.3] = outside_infinity(dtype)
    for limit in (
        45.0,
        float(np.nextafter(dtype.type(outside_infinity(dtype)), dtype.type(0)) if dtype.kind == "f" else 999),
    ):
        there = found <= limit
        on_gpu, of_gpu = cupy.asarray(found), cupy.asarray(values)
        np.testing.assert_allclose(row_totals(on_gpu, of_gpu, limit).get(), there @ values, rtol=1e-13)
        decayed = np.where(there, np.exp(-found / np.float64(20)), 0) @ values
        np.testing.assert_allclose(row_totals(on_gpu, of_gpu, limit, 20.0).get(), decayed, rtol=1e-13)
        least = np.where(there, found, np.inf).min(axis=1, initial=np.inf)
        np.testing.assert_array_equal(row_minima(on_gpu, limit).get(), least)


@pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)
@pytest.mark.parametrize(("rows", "width"), [(5, 1), (3, 700), (2, 255), (4, 0), (0, 9)])
def test_rows_add_up(cupy, dtype, rows, width):
    cupy.start(seed=rows)
    check(cupy, dtype, rows, width)


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start()
    for dtype in DISTANCE_DTYPES if variants else [np.dtype("int32")]:
        check(cupy, dtype, 2, 9)
    programs = [program for program in _cuda.declared() if program.file == FILE]
    assert len(programs) == len(DISTANCE_DTYPES)
    assert not not_launched(programs, cupy.launched, variants=variants)


def test_a_row_has_the_same_bits_among_others_and_alone(cupy):
    rng = np.random.default_rng(0)
    found, values = cupy.asarray(rng.random((4, 999))), cupy.asarray(rng.random(999))
    together = row_totals(found, values, 0.5).get()
    assert [row_totals(found[i : i + 1], values, 0.5).get()[0] for i in range(4)] == together.tolist()


@pytest.mark.parametrize("mutant", lines_with(FILE, r"__sync\w+\(\);", ""), ids=str)
def test_a_missing_barrier_is_caught(cupy, monkeypatch, mutant):
    break_line(monkeypatch, *mutant)

    def check_with_any_order():
        for seed in range(4):
            cupy.start(seed)
            check(cupy, np.dtype("float64"), 3, 700)

    with pytest.raises(AssertionError):
        check_with_any_order()
