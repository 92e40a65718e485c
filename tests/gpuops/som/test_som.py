import math

import numpy as np
import pytest
import screening
from families import usual
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from gpuops.arrays import on_host
from gpuops.som import METRICS, best_matching_units, bmu_cuda, quantization_error, small_map_cuda, topographic_error
from gpuops.som.grid import NEIGHBOURHOODS, Grid, neighbourhood
from gpuops.som.update import fixed_point, from_fixed_point, smooth, spread, train_online, unit_sums

metrics = pytest.mark.parametrize("metric", METRICS)
dtypes = pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
kernels = pytest.mark.parametrize("kernel", NEIGHBOURHOODS)

GRIDS = [
    Grid(5, 7),
    Grid(5, 7, toroidal=True),
    Grid(5, 6, hexagonal=True),
    Grid(6, 7, hexagonal=True, toroidal=True),
    Grid(1, 1),
    Grid(1, 4, hexagonal=True),
    Grid(2, 2, hexagonal=True, toroidal=True),
]
grids = pytest.mark.parametrize("grid", GRIDS, ids=str)

# Below, at and above the panels and tiles of both halves, one and several passes of 64 dimensions, several blocks.
SHAPES = [
    (1, 1, 1),
    (5, 3, 2),
    (1, 300, 12),
    (130, 65, 3),
    (300, 700, 12),
    (70, 1025, 16),
    (50, 300, 64),
    (40, 260, 145),
]


def all_distances(samples, codebook, metric):
    """D of gpuops.som, N x M, in float64; NaN in samples: the dimension is left out."""
    x, w = samples.astype(np.float64), codebook.astype(np.float64)
    total, xx, ww = (np.zeros((len(x), len(w))) for _ in range(3))
    for k in range(x.shape[1]):
        a, b = x[:, k, None], w[None, :, k]
        here = ~np.isnan(a)
        a = np.where(here, a, 0)
        if metric == "euclidean":
            total += here * ((a - b) * (a - b))
        elif metric == "taxicab":
            total += here * abs(a - b)
        else:
            total += here * (a * b)
            xx += here * (a * a)
            ww += here * (b * b)
    if metric != "cosine":
        return total
    product = np.sqrt(xx) * np.sqrt(ww)
    return np.where(product > 0, np.maximum(1 - total / np.where(product > 0, product, 1), 0), 1)


def nearest(samples, codebook, metric, top):
    distances = all_distances(samples, codebook, metric)
    units = np.argsort(distances, axis=1, kind="stable")[:, :top]
    values = np.take_along_axis(distances, units, axis=1)
    values = (np.sqrt(values) if metric == "euclidean" else values).astype(samples.dtype)
    return (units[:, 0], values[:, 0]) if top == 1 else (units, values)


def check_units(xp, samples, codebook, metric="euclidean", top=1, missing=False):
    units, distances = best_matching_units(xp.asarray(samples), xp.asarray(codebook), metric, top, missing)
    expected_units, expected_distances = nearest(samples, codebook, metric, top)
    assert isinstance(units, xp.ndarray)
    assert units.dtype == np.int32
    assert distances.dtype == samples.dtype
    np.testing.assert_array_equal(on_host(units), expected_units)
    np.testing.assert_array_equal(on_host(distances), expected_distances)


def few_bits(rng, shape, dtype):
    """Multiples of a quarter: distances are often equal."""
    return (rng.integers(-4, 5, shape) / 4).astype(dtype)


# --- Best matching units --------------------------------------------------------------------------------------------


@metrics
@dtypes
@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_equals_float64_bit_for_bit(xp, metric, dtype, n, m, d):
    rng = np.random.default_rng(n + m + d)
    samples, codebook = (rng.normal(size=shape).astype(dtype) for shape in ((n, d), (m, d)))
    check_units(xp, samples, codebook, metric)
    check_units(xp, samples, codebook, metric, top=min(m, 2))
    check_units(xp, few_bits(rng, (n, d), dtype), few_bits(rng, (m, d), dtype), metric, top=min(m, 2))


@metrics
@dtypes
def test_of_equal_units_the_lowest_wins(xp, metric, dtype):
    rng = np.random.default_rng(0)
    codebook = np.repeat(rng.normal(size=(3, 20)).astype(dtype), 200, axis=0)
    samples = codebook[[250, 599, 0]]
    units, _ = best_matching_units(xp.asarray(samples), xp.asarray(codebook), metric, top=2)
    np.testing.assert_array_equal(on_host(units), [[200, 201], [400, 401], [0, 1]])
    check_units(xp, rng.normal(size=(9, 20)).astype(dtype), codebook, metric, top=2)


def a_smooth_map(rng, rows, d, spacing, dtype="float32"):
    """Units of a plane in d dimensions, `spacing` apart, and samples around it."""
    axes = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
    codebook = spacing * Grid(rows, rows).positions() @ axes
    return (rng.normal(size=(200, d))).astype(dtype), codebook.astype(dtype)


@metrics
@pytest.mark.parametrize("spacing", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("d", [12, 60])
def test_units_nearer_to_each_other_than_a_screen_can_tell(xp, metric, spacing, d):
    samples, codebook = a_smooth_map(np.random.default_rng(d), 30, d, spacing)
    check_units(xp, samples, codebook + np.float32(metric == "cosine"), metric, top=2)


@pytest.fixture
def sorting_cupy(gpu, monkeypatch):
    """CuPy; samples are sorted by their nearest tile, however few there are."""
    monkeypatch.setattr(bmu_cuda, "_SORTED_SAMPLES", 1)
    bmu_cuda._plan.cache_clear()
    yield gpu
    bmu_cuda._plan.cache_clear()


@pytest.mark.gpu
@metrics
@dtypes
@pytest.mark.parametrize("d", [3, 15, 70])
def test_samples_that_share_the_loads_of_units(sorting_cupy, metric, dtype, d):
    xp, rng = sorting_cupy, np.random.default_rng(d)
    for spacing in 1e-2, 1e-6:
        samples, codebook = a_smooth_map(rng, 30, d, spacing, dtype)
        codebook += metric == "cosine"
        check_units(xp, samples, codebook, metric)
        check_units(xp, samples[:197], codebook, metric, top=2)
        samples[rng.random(samples.shape) < 0.3] = np.nan
        samples[:, 1] = 1
        check_units(xp, samples[:50], codebook, metric, top=2, missing=True)
    samples = rng.normal(size=(30, d)).astype(dtype)
    samples[7] = 1e9  # too far away for the screen
    check_units(xp, samples, np.ones((2200, d), dtype), metric, top=2)  # more equal tiles than a list holds


@pytest.fixture
def matching_cupy(gpu, monkeypatch):
    """CuPy; `match` searches in small maps, however few the samples are."""
    monkeypatch.setattr(small_map_cuda, "_SAMPLES", 0)
    bmu_cuda._plan.cache_clear()
    yield gpu
    bmu_cuda._plan.cache_clear()


@pytest.mark.gpu
@dtypes
@pytest.mark.parametrize(("m", "d"), [(1, 2), (70, 3), (400, 15), (900, 34), (1024, 30), (130, 62), (200, 78)])
def test_samples_of_small_maps(matching_cupy, dtype, m, d):
    xp, rng = matching_cupy, np.random.default_rng(d)
    for spacing in 1e-1, 1e-3, 1e-6:
        _, codebook = a_smooth_map(rng, math.isqrt(m - 1) + 1, d, spacing, dtype)
        samples = rng.normal(size=(300, d)).astype(dtype)
        samples[:50] *= np.float32(2.0**-100)
        samples[77] = 1e9
        for x, w in (
            (samples, codebook[:m]),
            (samples + 100, codebook[:m] + 100),
            (samples, rng.permutation(codebook)[:m]),
        ):
            check_units(xp, x.astype(dtype), w.astype(dtype), "euclidean")
    codebook[m // 2] = 1e9
    check_units(xp, samples, codebook[:m], "euclidean")


@pytest.mark.gpu
@dtypes
@pytest.mark.parametrize(("n", "m", "d"), [(200_000, 30, 7), (500_000, 900, 34), (30_000, 1, 60)])
def test_sums_of_few_units(gpu, dtype, n, m, d):
    rng = np.random.default_rng(d)
    samples, units = rng.normal(size=(n, d)).astype(dtype), rng.integers(0, m, n, dtype=np.int32)
    scale = fixed_point(n, abs(samples).max(axis=0).astype(float))
    expected = unit_sums(samples, units, m, scale=scale)
    for sums, known in zip(unit_sums(*map(gpu.asarray, (samples, units)), m, scale=scale), expected, strict=True):
        np.testing.assert_array_equal(sums.get(), known)


@pytest.mark.gpu
def test_scores_that_are_rounded_to_zero(matching_cupy):
    codebook = np.zeros((61, 20), "float32")
    codebook[:, 0] = np.insert(np.resize([1.5, -1.5], 60), 37, 0)
    check_units(matching_cupy, np.eye(20, dtype="float32")[1:3], codebook, "euclidean")


@pytest.mark.gpu
def test_traps_of_small_maps(matching_cupy):
    traps = screening.trap_of_small_map("units"), screening.trap_of_small_map("sample"), screening.trap_of_keys()
    for (samples, codebook), unit in zip(traps, (65, 65, 1), strict=True):
        assert best_matching_units(*map(matching_cupy.asarray, (samples, codebook)))[0].get() == [unit]


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "m", "d"), [(20_000, 300, 100), (9_000, 2_000, 200)])
def test_many_deep_samples(gpu, n, m, d):
    rng = np.random.default_rng(d)
    samples, codebook = (rng.normal(size=(rows, d)).astype("float32") for rows in (n, m))
    expected = best_matching_units(samples, codebook)
    for _ in range(2):  # from the second search on with one half product for a score
        found = best_matching_units(*map(gpu.asarray, (samples, codebook)))
        for result, known in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result.get(), known)


@pytest.mark.parametrize("metric", ["euclidean", "taxicab"])
@dtypes
@pytest.mark.parametrize("d", [3, 12, 60])
def test_an_offset_changes_no_unit(xp, metric, dtype, d):
    rng = np.random.default_rng(1)
    samples, codebook = ((rng.integers(-(2**11), 2**11, (s, d)) / 2**10).astype(dtype) for s in (100, 900))
    offset = samples.dtype.type(1e4)  # sums stay on the grid of 2^-10, and exact
    units, distances = best_matching_units(xp.asarray(samples), xp.asarray(codebook), metric)
    moved_units, moved_distances = best_matching_units(
        xp.asarray(samples + offset), xp.asarray(codebook + offset), metric
    )
    np.testing.assert_array_equal(on_host(moved_units), on_host(units))
    np.testing.assert_array_equal(on_host(moved_distances), on_host(distances))
    check_units(xp, samples + offset, codebook + offset, metric)


@metrics
@dtypes
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (200, 300, 3), (150, 500, 12), (60, 100, 40)])
def test_missing_values(xp, metric, dtype, n, m, d):
    rng = np.random.default_rng(2)
    samples, codebook = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    samples[rng.random((n, d)) < 0.4] = np.nan
    samples[:, 0] = 0.5
    check_units(xp, samples, codebook, metric, top=min(m, 2), missing=True)
    samples[:, d // 2 :] = np.nan
    samples[:, 0] = 0.5
    check_units(xp, samples, codebook, metric, missing=True)


def test_missing_allowed_and_none_missing(xp):
    rng = np.random.default_rng(3)
    samples, codebook = rng.normal(size=(100, 9)), rng.normal(size=(100, 9))
    for metric in METRICS:
        check_units(xp, samples, codebook, metric, missing=True)


@metrics
@pytest.mark.parametrize("exponent", [-300, -160, -30, 30, 149])
def test_values_of_any_size(xp, metric, exponent):
    rng = np.random.default_rng(4)
    samples, codebook = rng.normal(size=(60, 5)), rng.normal(size=(300, 5))
    check_units(xp, samples * 10.0**exponent, codebook * 10.0**exponent, metric, top=2)
    samples[:, 2] *= 1e9  # one dimension drowns the others
    codebook[17] *= 1e12
    check_units(xp, samples, codebook, metric, top=2)
    if abs(exponent) == 30:
        check_units(xp, samples * 1e30, codebook, metric, top=2)
        check_units(xp, *((x * 10.0 ** (exponent // 2)).astype(np.float32) for x in (samples, codebook)), metric)


@metrics
def test_all_units_equal(xp, metric):
    samples = np.random.default_rng(5).normal(size=(40, 7)).astype(np.float32)
    check_units(xp, samples, np.full((400, 7), 0.3, np.float32), metric, top=2)
    check_units(xp, samples * 0, np.zeros((400, 7), np.float32), metric, top=2)


@metrics
def test_chunks_and_order_do_not_show(xp, metric):
    rng = np.random.default_rng(6)
    samples, codebook = few_bits(rng, (500, 6), "float32"), few_bits(rng, (300, 6), "float32")
    units, distances = best_matching_units(xp.asarray(samples), xp.asarray(codebook), metric)
    order = rng.permutation(500)
    for chunk in order[:1], order[1:130], order[130:]:
        again, distances_again = best_matching_units(xp.asarray(samples[chunk]), xp.asarray(codebook), metric)
        np.testing.assert_array_equal(on_host(again), on_host(units)[chunk])
        np.testing.assert_array_equal(on_host(distances_again), on_host(distances)[chunk])


def test_views_and_read_only(xp):
    rng = np.random.default_rng(7)
    samples, codebook = few_bits(rng, (90, 8), "float32"), few_bits(rng, (70, 8), "float32")
    expected = nearest(samples[::-2, ::3], codebook[5:, ::3], "euclidean", 1)
    views = xp.asarray(samples)[::-2, ::3], xp.asarray(np.asfortranarray(codebook))[5:, ::3]
    for found, known in zip(best_matching_units(*views), expected, strict=True):
        np.testing.assert_array_equal(on_host(found), known)
    samples.flags.writeable = codebook.flags.writeable = False
    best_matching_units(samples, codebook)


def test_no_samples(xp):
    units, distances = best_matching_units(xp.zeros((0, 4), "float32"), xp.ones((3, 4), "float32"))
    assert units.shape == distances.shape == (0,)
    units, distances = best_matching_units(xp.zeros((0, 4)), xp.ones((3, 4)), top=2)
    assert units.shape == distances.shape == (0, 2)


values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 1e-3, 1e4, -1e4, 10001.0, 1e20, 1e-30])


@given(st.data(), st.sampled_from(list(METRICS)), st.sampled_from(["float32", "float64"]), st.booleans())
def test_any_small_values(data, metric, dtype, missing):
    n, m, d = (data.draw(st.integers(1, 6)) for _ in range(3))
    codebook = data.draw(nps.arrays(dtype, (m, d), elements=values.map(np.dtype(dtype).type)))
    elements = st.one_of(values, st.just(np.nan)) if missing else values
    samples = data.draw(nps.arrays(dtype, (n, d), elements=elements.map(np.dtype(dtype).type)))
    samples[np.isnan(samples).all(axis=1)] = 1
    check_units(np, samples, codebook, metric, min(m, 2), missing)


# --- Scores of halves -----------------------------------------------------------------------------------------------


def as_halves(v):
    return v.astype(np.float32).astype(np.float16).astype(np.float64)


def error_of_halves(x, w):
    """The error of x.w when both are rounded to halves, and its bound, as the docstring of gpuops.som has it."""
    terms = np.concatenate([x * w, -as_halves(x) * as_halves(w)])
    norm = np.linalg.norm
    residual_of_w = norm(w - as_halves(w))
    return abs(math.fsum(terms)), norm(x) * residual_of_w + norm(x - as_halves(x)) * (norm(w) + residual_of_w)


@given(st.integers(1, 2000), st.integers(0, 2**32 - 1), st.sampled_from([0, 1e4]), st.integers(-140, 10))
def test_halves_are_off_by_their_residuals(d, seed, offset, exponent):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=d) * 2.0**exponent + rng.choice([0, 0.37])
    for w in rng.normal(size=d) + offset, x * rng.choice([-1, 1]), 1 + 2.0**-11 * rng.choice([0.999, 1.001], d):
        error, most = error_of_halves(x, w)
        assert error <= most * (1 + 1e-9) + 1e-9 * np.linalg.norm(x) * np.linalg.norm(w) * 2.0**-22


@pytest.mark.parametrize("rounded", ["units", "sample"])
@pytest.mark.parametrize("d", [2, 60, 2000])
def test_half_of_the_bound_of_halves_is_too_little(rounded, d):
    samples, codebook = (v.astype(np.float64) for v in screening.trap(rounded, d))
    for unit in codebook[[1, 65]]:
        error, most = error_of_halves(-2 * samples[0], unit)
        assert most / 2 < error <= most * (1 + 1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("products", [1, 3])
@pytest.mark.parametrize("d", [14, 30, 46, 62, 78, 300, 784])
def test_tensor_cores_lose_less_than_the_constant(gpu, products, d):
    """Sums of halves whose terms differ by up to 2^20 and cancel: all that is off is what tensor cores truncate."""
    rng = np.random.default_rng(d)

    def halves(n):
        values = rng.integers(1024, 2048, (n, d)) * 2.0 ** -rng.integers(10, 20, (n, d)) * rng.choice([-1, 1], (n, d))
        values[:, 1::4] = -values[:, ::4][:, : values[:, 1::4].shape[1]]  # cancels where the other factor is equal
        return values

    samples, codebook = halves(2000), np.repeat(halves(512), 2, axis=0)
    samples[:, 1::2] = samples[:, ::2][:, : d // 2]
    codebook[1024 // 2 :] = -codebook[: 1024 // 2]  # the centre is zero
    codebook[:, 0], codebook[1024 // 2 :, 0] = 2, -2  # and the scale is one
    seen = screening.inside(gpu, samples, codebook, products=products)
    assert seen.products == products
    assert seen.scale == 1
    assert not any(seen.centre)
    assert not seen.tile_residuals.any()
    assert not seen.residuals.any()
    error = abs(seen.least - screening.least_scores(seen, samples, codebook))
    b = seen.tile_norms
    kappa = float(seen.constants["kappa_of_one" if products == 1 else "kappa"])
    truncated = kappa * b * (seen.norms[:, None] + b)
    # A quarter, because the constant has a margin of 4; and the rest of the bound.
    assert (error <= truncated / 4 + screening.bound(seen) - truncated).all()
    print(f"lost of the constant, {products} products, {d} dimensions: {(error / truncated).max():.4f}")


@pytest.mark.gpu
@pytest.mark.parametrize("rounded", ["units", "sample"])
def test_the_bound_of_halves_holds_on_tensor_cores(gpu, rounded):
    samples, codebook = screening.trap(rounded)
    seen = screening.inside(gpu, samples, codebook)
    assert seen.products == 1
    assert seen.units.tolist() == [65]
    assert 0.5 < screening.off(seen, samples, codebook).min()
    assert screening.off(seen, samples, codebook).max() <= 1


def test_errors_name_the_argument(xp):
    samples, codebook = xp.zeros((4, 3), "float32"), xp.ones((5, 3), "float32")
    with pytest.raises(ValueError, match="samples have 3 dimensions and units 2"):
        best_matching_units(samples, codebook[:, :2])
    with pytest.raises(ValueError, match="codebook has no units"):
        best_matching_units(samples, codebook[:0])
    with pytest.raises(ValueError, match="samples has 1 dimension"):
        best_matching_units(samples[0], codebook)
    with pytest.raises(TypeError, match="samples is float32 and codebook is float64"):
        best_matching_units(samples, codebook.astype("float64"))
    with pytest.raises(TypeError, match="samples is int32"):
        best_matching_units(samples.astype("int32"), codebook)
    with pytest.raises(TypeError, match="codebook is a list"):
        best_matching_units(samples, codebook.tolist())
    with pytest.raises(ValueError, match="metric is 'chebyshev'"):
        best_matching_units(samples, codebook, "chebyshev")
    with pytest.raises(ValueError, match="top is 3"):
        best_matching_units(samples, codebook, top=3)
    with pytest.raises(ValueError, match="single unit"):
        best_matching_units(samples, codebook[:1], top=2)
    for value in np.nan, np.inf:
        broken = samples.copy()
        broken[2, 1] = value
        with pytest.raises(ValueError, match="row 2 of samples"):
            best_matching_units(broken, codebook)
        with pytest.raises(ValueError, match="row 2 of codebook"):
            best_matching_units(samples, broken, missing=True)
    with pytest.raises(ValueError, match="row 2 of samples"):
        best_matching_units(broken, codebook, missing=True)
    broken[2] = np.nan
    with pytest.raises(ValueError, match="row 2 of samples has no value at all"):
        best_matching_units(broken, codebook, missing=True)


# --- The grid -------------------------------------------------------------------------------------------------------


def grid_differences(grid):
    """(M, M) differences of x and of y by trying every image of a torus; the shortest for each axis."""
    positions = grid.positions()
    x, y = (np.subtract.outer(p, p) for p in positions.T)
    if grid.toroidal:
        across, down = grid.columns, grid.rows * grid.row_height
        x, y = (
            np.min([abs(v + shift * period) for shift in (-1, 0, 1)], axis=0) for v, period in ((x, across), (y, down))
        )
    return abs(x), abs(y)


@grids
def test_distances_on_the_grid(grid):
    unit = np.arange(grid.units)
    x, y = grid_differences(grid)
    np.testing.assert_allclose(grid.distances(unit[:, None], unit), np.hypot(x, y), atol=1e-12)
    reach = np.hypot(x, y) if grid.hexagonal else np.maximum(x, y)
    np.testing.assert_array_equal(grid.adjacent(unit[:, None], unit), reach < 1.1)
    for u, around in enumerate(grid.neighbours()):
        assert set(around[around >= 0]) == set(np.flatnonzero(reach[u] < 1.1)) - {u}


def test_hexagons_have_six_neighbours():
    around = Grid(6, 8, hexagonal=True, toroidal=True).neighbours()
    assert (around >= 0).all()
    inside = Grid(5, 5, hexagonal=True).neighbours()[12]
    np.testing.assert_array_equal(inside, [6, 7, 11, 13, 16, 17])


def test_grids_that_do_not_exist():
    for rows in (0, 2.5):
        with pytest.raises(ValueError, match=f"rows is {rows}; give a whole number from 1"):
            Grid(rows, 3)
    with pytest.raises(ValueError, match="even number of rows"):
        Grid(3, 3, hexagonal=True, toroidal=True)


def test_errors_of_a_map(xp):
    grid = Grid(3, 3)
    units = xp.asarray(np.array([[0, 4], [0, 2], [8, 7], [0, 8]], np.int32))
    assert topographic_error(units, grid) == 0.5
    assert topographic_error(units, Grid(3, 3, toroidal=True)) == 0
    assert quantization_error(xp.asarray(np.array([1, 2, 4.5], "float32"))) == 2.5
    assert quantization_error(xp.asarray(np.array([[1, 9], [2, 9]], "float32"))) == 1.5
    with pytest.raises(ValueError, match="top=2"):
        topographic_error(units[:, 0], grid)
    with pytest.raises(ValueError, match="empty"):
        quantization_error(xp.zeros(0))


# --- Sums -----------------------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize(("n", "m", "d"), [(0, 3, 2), (1, 1, 1), (1000, 7, 3), (3000, 400, 12)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_sums(xp, dtype, n, m, d, weighted, missing):
    rng = np.random.default_rng(n + m)
    samples, units = rng.normal(size=(n, d)).astype(dtype), (m * rng.random(n) ** 2).astype(np.int32)
    weights = rng.random(n).astype(dtype) if weighted else None
    if missing:
        samples[rng.random((n, d)) < 0.3] = np.nan
    on_device = None if weights is None else xp.asarray(weights)
    sums, counts = unit_sums(xp.asarray(samples), xp.asarray(units), m, on_device, missing)
    w = np.ones(n) if weights is None else weights.astype(np.float64)
    expected = np.zeros((m, d))
    np.add.at(expected, units, np.nan_to_num(samples.astype(np.float64)) * w[:, None])
    # One sample is off by half a unit, which is less than 2^-61 of total x largest.
    largest = np.nanmax(abs(samples), initial=0) * w.max(initial=0)
    np.testing.assert_allclose(on_host(sums), expected, rtol=1e-13, atol=2.0**-61 * n * n * largest + 1e-13)
    present = np.zeros((m, d))
    np.add.at(present, units, ~np.isnan(samples) * w[:, None])
    np.testing.assert_allclose(on_host(counts), present if missing else present[:, 0], rtol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_sums_have_the_same_bits_for_every_order_and_chunking(xp, missing):
    rng = np.random.default_rng(8)
    samples, units = rng.normal(size=(4000, 5)).astype("float32"), rng.integers(0, 30, 4000, dtype=np.int32)
    weights = rng.random(4000).astype("float32")
    if missing:
        samples[::3, 1] = np.nan
    scale = fixed_point(4000, 8, 1)
    whole = unit_sums(*map(xp.asarray, (samples, units)), 30, xp.asarray(weights), missing, scale)
    assert whole[0].dtype == whole[1].dtype == np.int64
    order = rng.permutation(4000)
    sums, counts = 0, 0
    for chunk in np.split(order, [1, 700, 2500]):
        part = unit_sums(
            *(xp.asarray(x[chunk]) for x in (samples, units)), 30, xp.asarray(weights[chunk]), missing, scale
        )
        sums, counts = sums + part[0], counts + part[1]
    np.testing.assert_array_equal(on_host(sums), on_host(whole[0]))
    np.testing.assert_array_equal(on_host(counts), on_host(whole[1]))
    floats = from_fixed_point(sums, counts, scale)
    np.testing.assert_allclose(on_host(floats[0]), on_host(whole[0]) / scale.sums)


@dtypes
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_a_column_is_summed_up_in_units_of_its_own(xp, dtype, weighted, missing):
    """What is small beside another column is not lost; the integers are those of NumPy."""
    rng = np.random.default_rng(10)
    magnitudes = np.array([1e-17, 360, 3e12, 1e-30, 0, 1])
    samples, units = (rng.normal(size=(5000, 6)) * magnitudes).astype(dtype), rng.integers(0, 9, 5000, dtype=np.int32)
    weights = rng.random(5000).astype(dtype) if weighted else np.ones(5000, dtype)
    if missing:
        samples[rng.random(samples.shape) < 0.3] = np.nan
    given = xp.asarray(samples), xp.asarray(units), 9, xp.asarray(weights) if weighted else None, missing
    expected = np.zeros((9, 6))
    np.add.at(expected, units, np.nan_to_num(samples).astype(np.float64) * weights[:, None].astype(np.float64))
    sums, scales = on_host(unit_sums(*given)[0]), magnitudes.clip(1e-99)
    np.testing.assert_allclose(sums / scales, expected / scales, rtol=1e-9, atol=1e-9)
    scale = fixed_point(5000, np.nanmax(abs(samples), axis=0), 1 if weighted else None)
    integers = np.zeros((9, 6), np.int64)
    products = np.nan_to_num(samples).astype(np.float64) * weights[:, None].astype(np.float64)
    np.add.at(integers, units, np.rint(products * scale.sums).astype(np.int64))
    sums, counts = unit_sums(*given, scale)
    np.testing.assert_array_equal(on_host(sums), integers)
    np.testing.assert_array_equal(on_host(from_fixed_point(sums, counts, scale)[0]), integers / scale.sums)


@pytest.mark.parametrize("weight", [None, 0.3])
def test_columns_of_like_magnitude_share_the_unit_of_the_greatest(weight):
    largest = np.array([700.0, 1000, 0, 520, 9, 1.9, 1e-6])
    scale = fixed_point(1000, largest, weight)
    shared = float(fixed_point(1000, 1000, weight).sums)
    heaviest = 1000 * largest * (weight or 1)
    assert scale.sums[:5].tolist() == [shared] * 5  # up to 2^8 below the greatest
    assert scale.sums[5:].tolist() == [shared * 2**8, shared * 2**24]
    assert (heaviest * scale.sums < 2**62).all()
    assert (heaviest * scale.sums >= 2**53)[largest > 0].all()


def test_weights_are_repetitions(xp):
    rng = np.random.default_rng(9)
    samples, units = rng.normal(size=(50, 4)).astype("float32"), rng.integers(0, 6, 50, dtype=np.int32)
    times = rng.integers(0, 4, 50)
    repeated = unit_sums(*(xp.asarray(np.repeat(x, times, axis=0)) for x in (samples, units)), 6)
    weighted = unit_sums(xp.asarray(samples), xp.asarray(units), 6, xp.asarray(times.astype("float32")))
    np.testing.assert_array_equal(on_host(weighted[1]), on_host(repeated[1]))
    np.testing.assert_allclose(on_host(weighted[0]), on_host(repeated[0]), rtol=0, atol=1e-13)


def test_no_sum_overflows():
    for total, largest, weight in (
        (1, 1, None),
        (10**9, 3.7, None),
        (5, 1e300, 7.5),
        (3, 1e-300, 1e-5),
        (2**20, 2**9, 4),
    ):
        scale = fixed_point(total, largest, weight)
        assert total * largest * (weight or 1) * scale.sums < 2**63 - total
        assert weight is None or total * weight * scale.counts < 2**63 - total
        assert np.log2(scale.sums) % 1 == 0
    samples = np.full((100, 1), -1e300)
    sums, counts = unit_sums(samples, np.zeros(100, np.int32), 1)
    assert sums[0, 0] == -1e302
    assert counts[0] == 100


def test_faulty_sums(xp):
    samples, units = np.ones((5, 2), "float32"), np.arange(5, dtype=np.int32)

    def fails_at(row, samples, units, weights=None, **options):
        weights = None if weights is None else xp.asarray(weights)
        with pytest.raises(ValueError, match=f"row {row}"):
            unit_sums(xp.asarray(samples), xp.asarray(units), 5, weights, **options)

    for value in np.nan, np.inf:
        broken = samples.copy()
        broken[3, 1] = value
        fails_at(3, broken, units)
    fails_at(3, broken, units, missing=True)
    fails_at(0, samples, units, scale=fixed_point(5, 0.5))
    fails_at(2, samples, units, np.array([1, 1, -1, 1, 1], "float32"))
    fails_at(4, samples, units + np.array([0, 0, 0, 0, 1], np.int32))
    fails_at(1, samples, units - np.array([0, 2, 0, 0, 0], np.int32))
    with pytest.raises(TypeError, match="units is int64"):
        unit_sums(xp.asarray(samples), xp.asarray(units.astype("int64")), 5)
    with pytest.raises(ValueError, match="total is nan"):
        fixed_point(np.nan, 1)
    with pytest.raises(ValueError, match="largest is"):
        fixed_point(5, [1.0, np.inf])
    with pytest.raises(ValueError, match="overflows"):
        fixed_point(5, 1e300, 1e300)
    with pytest.raises(ValueError, match="units for 3 columns, but the samples have 2"):
        unit_sums(xp.asarray(samples), xp.asarray(units), 5, scale=fixed_point(5, [1, 2, 3]))


# --- Smoothing ------------------------------------------------------------------------------------------------------


def all_neighbourhoods(grid, sigma, kernel):
    """h, M x M, written down again, kernels as MiniSom has them (square bubbles and pyramids on rectangles)."""
    x, y = grid_differences(grid)
    r2 = x * x + y * y
    if kernel == "gaussian":
        return np.exp(-r2 / (2 * sigma**2))
    if kernel == "mexican_hat":
        return np.exp(-r2 / (2 * sigma**2)) * (1 - 2 / (2 * sigma**2) * r2)
    if kernel == "bubble":
        return np.where(grid.hexagonal, np.sqrt(r2) < sigma, (x < sigma) & (y < sigma)).astype(float)
    if grid.hexagonal:
        return np.maximum(0, 1 - np.sqrt(r2) / sigma)
    return np.maximum(0, sigma - x) * np.maximum(0, sigma - y) / sigma**2


@grids
@kernels
@pytest.mark.parametrize("sigma", [0.4, 1.3, 2.6])
def test_neighbourhoods_add_up(xp, grid, kernel, sigma):
    values = np.random.default_rng(10).normal(size=(grid.units, 3))
    expected = all_neighbourhoods(grid, sigma, kernel) @ values
    result = spread(xp.asarray(values), grid, sigma, kernel)
    np.testing.assert_allclose(on_host(result), expected, rtol=1e-12, atol=1e-13)


@kernels
def test_neighbourhood_of_nothing_is_one(kernel):
    for hexagonal in False, True:
        assert neighbourhood(kernel, 0.0, 0.0, 1.7, hexagonal) == 1


def test_the_rim_of_a_bubble_is_outside():
    # In a hexagonal grid a unit, its 6 neighbours and 6 more are nearer than 2.
    for grid, inside in (Grid(9, 9, hexagonal=True), 13), (Grid(9, 9), 9):
        hit = np.zeros((81, 1))
        hit[40] = 1
        reached = spread(hit, grid, 2.0, "bubble")
        assert reached.sum() == inside
        online = train_online(np.zeros((81, 1)), np.ones((1, 1)), [0], grid, 2.0, 1.0, "bubble")
        assert online.sum() == np.count_nonzero(spread(np.eye(81)[:, :1], grid, 2.0, "bubble"))


@kernels
@pytest.mark.parametrize("hexagonal", [False, True])
def test_one_epoch_is_that_of_minisom(xp, kernel, hexagonal):
    # MiniSom.train_batch_offline with learning rate 1: for every sample add h(winner) x to the numerators and h(winner)
    # to the denominators, then divide.
    rng = np.random.default_rng(11)
    grid = Grid(6, 8, hexagonal=hexagonal)
    samples, codebook = rng.random((200, 4)), rng.random((48, 4))
    h = all_neighbourhoods(grid, 2.1, kernel)
    numerators, denominators = np.zeros((48, 4)), np.zeros(48)
    for x in samples:
        winner = np.argmin(np.linalg.norm(x - codebook, axis=1))
        numerators += h[winner][:, None] * x
        denominators += h[winner]
    units, _ = best_matching_units(xp.asarray(samples), xp.asarray(codebook))
    sums, counts = unit_sums(xp.asarray(samples), units, 48)
    result = on_host(smooth(sums, counts, xp.asarray(codebook), grid, 2.1, kernel))
    positive = denominators > 1e-9
    expected = np.where(positive[:, None], numerators / np.where(positive, denominators, 1)[:, None], codebook)
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-11)
    assert positive.all() == (kernel != "mexican_hat")


def test_what_nothing_reaches_keeps_its_weights(xp):
    grid, codebook = Grid(1, 4), np.arange(8, dtype="float32").reshape(4, 2)
    sums, counts = np.array([[3.0, 0], [0, 0], [0, 0], [0, 0]]), np.array([[2.0, 0], [0, 0], [0, 0], [0, 0]])
    result = on_host(smooth(*map(xp.asarray, (sums, counts, codebook)), grid, 1.5, "bubble"))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[1.5, 1], [1.5, 3], [4, 5], [6, 7]])
    # exp(-800) is a number so small that little of it is left.
    result = on_host(smooth(*map(xp.asarray, (sums, counts, codebook)), grid, 0.025))
    np.testing.assert_array_equal(result, [[1.5, 1], [2, 3], [4, 5], [6, 7]])


@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_nothing_reaches_the_rim_of_a_mexican_hat(xp, sigma):
    """There it is 0, and what is left by rounding is no neighbourhood."""
    grid, at = Grid(5, 6, hexagonal=True), 15
    sums, counts, codebook = np.zeros((grid.units, 1)), np.zeros(grid.units), np.zeros((grid.units, 1))
    sums[at], counts[at] = 5.3, 1
    found = on_host(smooth(*map(xp.asarray, (sums, counts, codebook)), grid, sigma, "mexican_hat"))
    inside = grid.distances(np.arange(grid.units), at) < sigma - 1e-9
    np.testing.assert_allclose(found[:, 0], np.where(inside, 5.3, 0), rtol=1e-13)


def test_smoothing_errors():
    sums, counts, codebook = np.zeros((6, 2)), np.zeros(6), np.zeros((6, 2))
    with pytest.raises(ValueError, match="the grid has 4 units"):
        smooth(sums, counts, codebook, Grid(2, 2), 1)
    with pytest.raises(ValueError, match="counts has shape"):
        smooth(sums, counts[:5], codebook, Grid(2, 3), 1)
    with pytest.raises(ValueError, match="sigma is 0"):
        smooth(sums, counts, codebook, Grid(2, 3), 0)
    with pytest.raises(ValueError, match="neighbourhood is 'cone'"):
        smooth(sums, counts, codebook, Grid(2, 3), 1, "cone")


# --- Online ---------------------------------------------------------------------------------------------------------


@grids
@kernels
def test_online_steps(grid, kernel):
    rng = np.random.default_rng(12)
    samples, codebook = rng.random((20, 3)), rng.random((grid.units, 3)).astype("float32")
    samples[4, 1] = np.nan
    order, sigmas, rates = rng.integers(0, 20, 30), np.linspace(3.07, 0.57, 30), np.linspace(0.5, 0.1, 30)
    for metric in METRICS:
        w = codebook.astype(np.float64)
        for i, sigma, rate in zip(order, sigmas, rates, strict=True):
            winner = all_distances(samples[i : i + 1], w, metric)[0].argmin()
            h = all_neighbourhoods(grid, sigma, kernel)[winner]
            w += rate * h[:, None] * np.nan_to_num(samples[i] - w)
        result = train_online(codebook, samples, order, grid, sigmas, rates, kernel, metric, missing=True)
        assert result.dtype == codebook.dtype
        np.testing.assert_allclose(result, w, rtol=1e-5, atol=1e-6)


def test_online_errors():
    codebook, samples, grid = np.zeros((4, 2)), np.ones((3, 2)), Grid(2, 2)
    with pytest.raises(ValueError, match="rows that do not exist"):
        train_online(codebook, samples, [0, 3], grid, 1.0, 0.5)
    with pytest.raises(ValueError, match="the grid has 4 units"):
        train_online(codebook[:3], samples, [0], grid, 1.0, 0.5)
    with pytest.raises(ValueError, match="sigma is -1"):
        train_online(codebook, samples, [0, 1], grid, [1.0, -1.0], 0.5)
    samples[1] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        train_online(codebook, samples, [0], grid, 1.0, 0.5)
    with pytest.raises(ValueError, match="row 1 of samples has no value"):
        train_online(codebook, samples, [0, 1], grid, 1.0, 0.5, missing=True)


def test_a_map_of_a_ring_unfolds():
    angle = np.random.default_rng(13).random(2000) * 2 * np.pi
    samples = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype("float32")
    grid, codebook = Grid(1, 24, toroidal=True), samples[:24].copy()
    for sigma in np.geomspace(8, 0.5, 12):
        units, _ = best_matching_units(samples, codebook)
        codebook = smooth(*unit_sums(samples, units, 24), codebook, grid, sigma)
    units, distances = best_matching_units(samples, codebook, top=2)
    assert quantization_error(distances) < 0.1
    assert topographic_error(units, grid) < 0.05
