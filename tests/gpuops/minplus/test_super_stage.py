"""Super-stages give the bits of stages on the whole matrix."""

import importlib
from itertools import product

import numpy as np
import pytest
from families import usual

from gpuops import floyd_warshall, minplus_update
from gpuops.minplus import packed_place
from gpuops.minplus.super_stage import Part, column_parts, panel_bytes, pass_rows, pass_slab, pivot_count
from gpuops.numbers import DISTANCE_DTYPES, infinity


def lengths(n, dtype, seed=0):
    """Not negative; floats that round when they are added; most arcs are missing."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 60, (n, n)).astype(dtype)
    if values.dtype.kind == "f":
        values *= values.dtype.type(0.37)
    values[rng.random((n, n)) < 0.9] = infinity(dtype)
    np.fill_diagonal(values, 0)
    return values


def in_core(d, stages):
    """Stage after stage on the whole matrix, as the workers do."""
    for pivots in stages:
        panel = d[pivots].copy()
        closed = floyd_warshall(panel[:, pivots].copy(), nonnegative=True)
        panel = minplus_update(panel, closed, panel, nonnegative=True)
        d[pivots] = panel
        whole = isinstance(pivots, slice)
        for others in (d[: pivots.start], d[pivots.stop :]) if whole else (d,):
            minplus_update(others, others[:, pivots].copy(), panel, out=others, nonnegative=True)
    return d


def out_of_core(d, stages, width, band, workers=1):
    """The same with windows of so many rows, whose slabs several workers may take through their stages by columns."""
    n, gpu = len(d), type(d).__module__.startswith("cupy")
    library = importlib.import_module("cupy" if gpu else "numpy")
    size = max(panel_bytes(stages, n, d.dtype, gpu))
    memories = [[page_aligned(library, size) for _ in stages] for _ in range(workers)]
    columns = column_parts(n, workers, d.dtype, gpu)
    for start in range(0, n, width):
        stop = min(start + width, n)
        inside = [p for p in stages if start <= (p.start if isinstance(p, slice) else p[0]) < stop]
        if workers == 1:
            panels = pass_slab(d[start:stop], start, inside, memories[0])
        else:
            panels = by_columns(d[start:stop], start, inside, memories, columns)
        for first in range(0, n, band):
            if not start <= first < stop:
                pass_rows(d[first : first + band], panels)
    return d


def page_aligned(library, size):
    """As memory that is shared: on a CPU panels begin at a cache line of it."""
    memory = library.empty((size + 4096,), np.uint8)
    return memory[-memory.ctypes.data % 4096 :][:size] if library is np else memory[:size]


def by_columns(slab, first, stages, memories, columns):
    """As `pass_slab`, by workers that have some columns each; returns the panels of the last, which got all parts."""
    n, gpu = slab.shape[1], type(slab).__module__.startswith("cupy")
    square = slab[:, first : first + len(slab)].copy()
    for memory, own in zip(memories, columns, strict=True):
        mine = slab[:, own].copy()
        panels = pass_slab(mine, first, stages, memory, Part(own, n, square.copy()))
        slab[:, own] = mine
    for memory, own in zip(memories[:-1], columns[:-1], strict=True):
        for number, pivots in enumerate(stages):
            at = packed_place(pivot_count(pivots), own, slab.dtype, gpu)
            memories[-1][number][at] = memory[number][at]
    return panels


def blocks(n, block, through=None):
    ranges = [slice(i, min(i + block, n)) for i in range(0, n, block)]
    if through is None:
        return ranges
    return [np.flatnonzero(through[r]) + r.start for r in ranges if through[r].any()]


CUTS = [(48, 16), (64, 32), (16, 16), (192, 64), (400, 16)]


@pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)
@pytest.mark.parametrize("closed", [False, True])
def test_windows_of_any_width_give_the_bits_of_one_stage_at_a_time(xp, dtype, closed):
    n = 300
    through = np.random.default_rng(1).random(n) < 0.7 if closed else None
    d, stages = lengths(n, dtype), blocks(n, 16, through)
    want = in_core(xp.asarray(d.copy()), stages)
    for (width, band), workers in product(CUTS, (1, 2, 7)):  # of seven, some have no columns
        got = out_of_core(xp.asarray(d.copy()), stages, width, band, workers)
        assert bool((got.view(f"i{d.itemsize}") == want.view(f"i{d.itemsize}")).all()), (width, band, workers)


def test_the_final_rows_of_a_slab_would_not_do(xp):
    """What makes the difference: panels as they were at their own stages."""
    n = 300
    d, stages = lengths(n, "float32"), blocks(n, 16)
    want = in_core(xp.asarray(d.copy()), stages)
    got = xp.asarray(d)
    for start in range(0, n, 48):
        inside = [p for p in stages if start <= p.start < start + 48]
        pass_slab(got[start : start + 48], start, inside)
        for others in got[:start], got[start + 48 :]:
            for pivots in inside:
                minplus_update(others, others[:, pivots].copy(), got[pivots].copy(), out=others)
    assert not bool((got == want).all())
    np.testing.assert_allclose(np.asarray(got.get() if hasattr(got, "get") else got), _host(want), rtol=1e-5)


def _host(array):
    return array.get() if hasattr(array, "get") else array


@pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)
def test_kernels_on_the_host(host_shim, dtype):
    host_shim.start()
    n = 300 if dtype == "int16" else 150  # two packed panels at least
    d, stages = lengths(n, dtype), blocks(n, 16)
    want = in_core(d.copy(), stages)
    for workers in (2,) if dtype == "int16" else (1, 2):
        got = out_of_core(host_shim.asarray(d), stages, 48, 16, workers)
        assert (got.get().view(f"i{d.itemsize}") == want.view(f"i{d.itemsize}")).all()


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_every_part_of_a_panel_begins_on_a_cache_line(monkeypatch, vector_bytes):
    """Where vectors have 16 bytes, a panel of an odd number of rows is half a line too long."""
    monkeypatch.setattr("gpuops.minplus.product_numba.VECTOR_BYTES", vector_bytes)
    for dtype, workers, p in product(DISTANCE_DTYPES, (2, 5), (33, 64)):
        for columns in column_parts(300, workers, dtype, False):
            assert packed_place(p, columns, dtype, False).start % 64 == 0
