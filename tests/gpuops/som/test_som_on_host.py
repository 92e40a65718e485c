"""The kernels of self-organizing maps on a machine without a GPU: threads as fibers (host_shim/).

Results are compared bit for bit with the CPU half, which test_som.py compares with NumPy. The tensor cores of the shim
add exactly; so what tests here is where operands and results lie, not how far real ones are off.
"""

import re

import numpy as np
import pytest
from families import SLOW, diagonals, usual
from screening import choose, inside, off, trap

from gpuops._cuda import Program, declared
from gpuops.som import best_matching_units, bmu_cuda
from gpuops.som.grid import NEIGHBOURHOODS, Grid
from gpuops.som.update import fixed_point, smooth, unit_sums

dtypes = pytest.mark.parametrize("dtype", usual(["float32", "float64"]))


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    """The host shim; samples are sorted by tiles, however few there are."""
    host_shim.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bmu_cuda, "_SORTED_SAMPLES", 1)
        yield host_shim


@pytest.fixture(autouse=True)
def new_device(cupy):
    """A device without the kernels that the test before broke."""
    cupy.start()


METRICS = ["euclidean", "euclidean, tensor cores", "taxicab", "cosine, tensor cores"]


@pytest.fixture(params=METRICS)
def metric(request, monkeypatch):
    """A metric, and the way of screening its dot products."""
    metric, _, tensor_cores = request.param.partition(", ")
    monkeypatch.setattr(bmu_cuda, "_TENSOR_DEPTH", 1 if tensor_cores else 10**9)
    monkeypatch.setattr(bmu_cuda, "_SORTED_SAMPLES", 1 if tensor_cores else 10**9)
    bmu_cuda._plan.cache_clear()
    yield metric
    bmu_cuda._plan.cache_clear()


def check(cupy, samples, codebook, metric, top=1, missing=False):
    expected = best_matching_units(samples, codebook, metric, top, missing)
    result = best_matching_units(cupy.asarray(samples), cupy.asarray(codebook), metric, top, missing)
    for found, known in zip(result, expected, strict=True):
        assert found.dtype == known.dtype
        np.testing.assert_array_equal(found.get(), known)


def on_a_grid(rng, shape, dtype, offset=0):
    """Values with few bits, so that ties are frequent."""
    return (rng.integers(-6, 7, shape) / 4 + offset).astype(dtype)


@pytest.mark.parametrize(("metric", "dtype"), diagonals(METRICS, ["float32", "float64"]), indirect=["metric"])
def test_bits_of_the_cpu_half(cupy, metric, dtype):
    cupy.start(1, multiprocessors=3)
    rng = np.random.default_rng(0)
    for n, m, d in (1, 1, 1), (130, 70, 3), (5, 65, 12), (9, 130, 20):
        samples, codebook = on_a_grid(rng, (n, d), dtype), on_a_grid(rng, (m, d), dtype)
        check(cupy, samples, codebook, metric, top=min(m, 2))
        check(cupy, samples + samples.dtype.type(0.37), codebook * codebook.dtype.type(1.1), metric)


def test_missing_values(cupy, metric):
    rng = np.random.default_rng(3)
    for n, m, d in (20, 70, 3), (40, 70, 11):
        samples, codebook = on_a_grid(rng, (n, d), "float32"), on_a_grid(rng, (m, d), "float32")
        samples[rng.random((n, d)) < 0.3] = np.nan
        samples[:, 1] = 1
        check(cupy, samples, codebook, metric, top=2, missing=True)


def test_what_cannot_be_screened_is_decided(cupy, metric):
    rng = np.random.default_rng(4)
    samples, codebook = rng.normal(size=(30, 5)), rng.normal(size=(70, 5))
    samples[7], samples[9, 2] = 1e90, -1e6
    # Units far from those of which centre and scale are made: of a large codebook but 64 of them.
    check(cupy, samples, codebook, metric, top=2)
    far = np.repeat(codebook, 12, axis=0)  # neither of the two is among the 64
    far[-3], far[5] = 1e12, 3e4
    check(cupy, samples, far, metric, top=2)
    check(cupy, samples * 1e-170, codebook * 1e-170, metric, top=2)
    check(cupy, samples[:3], np.ones((300, 5)), metric, top=2)
    # More equal tiles than a list holds, and the nearest unit in the last one.
    alike = np.ones((2200, 5))
    alike[-1, 0] += 1e-9
    check(cupy, np.concatenate([samples[7:8], np.full((2, 5), 3)]), alike, metric, top=2)


def test_chunks_and_views(cupy, monkeypatch):
    monkeypatch.setattr(bmu_cuda, "_CHUNK_BYTES", 1)
    rng = np.random.default_rng(5)
    samples, codebook = on_a_grid(rng, (300, 6), "float32"), on_a_grid(rng, (90, 6), "float32")
    expected = best_matching_units(samples[::-1], codebook)
    wide = cupy.asarray(np.repeat(samples, 2, axis=1))
    found = best_matching_units(wide[::-1, ::2], cupy.asarray(np.asfortranarray(codebook).T.copy()).T)
    for result, known in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result.get(), known)


PRODUCTS = "1, warpgroups", "1", "3"


@pytest.fixture
def products(request, cupy):
    """Half products for a score. A device of compute capability 9.0 takes one with warpgroups."""
    products, _, warpgroups = request.param.partition(", ")
    cupy.start(capability="90" if warpgroups else "80")
    return int(products)


# Tensor cores take 16 dimensions a step, two of which are not of the samples; more than five steps go by slabs.
BY_DEFAULT = {"1, warpgroups": (62, 79), "1": (63, 145), "3": (40, 79)}


@pytest.mark.parametrize(
    ("products", "d"),
    [
        pytest.param(products, d, marks=[] if d in BY_DEFAULT[products] else SLOW)
        for products in PRODUCTS
        for d in (14, 40, 62, 63, 79, 145)
    ],
    indirect=["products"],
)
def test_tensor_cores_by_slabs(cupy, products, d):
    rng = np.random.default_rng(d)
    samples, codebook = (rng.normal(size=shape).astype("float32") for shape in ((270, d), (200, d)))
    seen = inside(cupy, samples, codebook, products=products)
    assert seen.products == products
    np.testing.assert_array_equal(seen.units, best_matching_units(samples, codebook)[0])
    # The screen by itself: were it wrong, the bound would still let the right unit through most of the time.
    assert off(seen, samples, codebook).max() <= 1
    w = (codebook - seen.centre) * seen.scale
    x, bias = -2 * (samples - seen.centre) * seen.scale, (w * w).sum(axis=1)
    if products == 1:
        x, w = (v.astype("float32").astype("float16").astype("float64") for v in (x, w))
    scores = bias + x @ w.T
    for tile in range(4):
        known = scores[:, tile * 64 : (tile + 1) * 64].min(axis=1)
        # The shim adds nearly without rounding: some units of float32, and 2^-22 of the bias.
        np.testing.assert_allclose(seen.least[:, tile], known, rtol=0, atol=2.0**-20 * abs(bias).max())


@pytest.mark.slow
def test_deep_samples_that_go_through_the_map_one_block_after_another(cupy, monkeypatch):
    source, together = Program.source, "NEIGHBOURS = 16"
    assert any(together in source(program) for program in declared())
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(together, "NEIGHBOURS = 2"))
    cupy.start(1, multiprocessors=3)
    rng = np.random.default_rng(2)
    samples, codebook = (rng.normal(size=shape).astype("float32") for shape in ((1200, 79), (500, 79)))
    seen = inside(cupy, samples, codebook)
    assert off(seen, samples, codebook).max() <= 1
    np.testing.assert_array_equal(seen.units, best_matching_units(samples, codebook)[0])


ADVERSE = {
    "offset": lambda rng, x, w: (x + 1e4, w + 1e4),
    "far samples": lambda rng, x, w: (x * 300, w),
    "equal units": lambda rng, x, w: (x, w[rng.integers(0, 3, len(w))]),
    "last places": lambda rng, x, w: (w[: len(x)], np.nextafter(w[:1], rng.choice([0, 9], w.shape))),
    "subnormal": lambda rng, x, w: (x * 2.0**-130, w * 2.0**-130),
    "one far unit": lambda rng, x, w: (x, np.where(np.arange(len(w))[:, None] == 77, 60 * w, w)),
    "one large dimension": lambda rng, x, w: (x, w * np.where(np.arange(w.shape[1]) == 1, 1e4, 1e-3)),
}


@pytest.mark.parametrize(
    ("products", "case", "d"), diagonals(PRODUCTS, list(ADVERSE), [4, 30], count=2), indirect=["products"]
)
def test_no_score_is_off_by_more_than_the_bound(cupy, products, case, d):
    rng = np.random.default_rng(d)
    samples, codebook = (rng.normal(size=(n, d)) for n in (20, 130))
    samples, codebook = (v.astype("float32") for v in ADVERSE[case](rng, samples, codebook))
    for metric in "euclidean", "cosine":
        seen = inside(cupy, samples, codebook, metric, products)
        assert off(seen, samples, codebook, metric).max() <= 1
        np.testing.assert_array_equal(seen.units, best_matching_units(samples, codebook, metric)[0])
    samples[rng.random(samples.shape) < 0.3] = np.nan
    samples[:, 1] = codebook[0, 1]
    seen = inside(cupy, samples, codebook, products=products, missing=True)
    assert off(seen, samples, codebook).max() <= 1
    np.testing.assert_array_equal(seen.units, best_matching_units(samples, codebook, missing=True)[0])


@pytest.mark.slow
@pytest.mark.parametrize("rounded", ["units", "sample"])
def test_a_smaller_bound_would_take_the_wrong_unit(cupy, monkeypatch, rounded):
    samples, codebook = trap(rounded)
    seen = inside(cupy, samples, codebook)
    assert seen.products == 1
    assert seen.units == [65]
    assert off(seen, samples, codebook).min() > 0.5
    term = {"units": "reach * tile.residual", "sample": "residual * tile.norm"}[rounded]
    source = Program.source
    assert any(term in source(program) for program in declared())
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(term, f"0.5f * {term}"))
    cupy.start()
    assert inside(cupy, samples, codebook).units == [1]


@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("metric", ["euclidean", "taxicab"])
def test_units_that_float32_cannot_tell_apart(cupy, monkeypatch, metric, top):
    rng = np.random.default_rng(9)
    codebook = (1 + rng.normal(size=(7, 20)) + np.zeros((20, 1, 1))).reshape(140, 20)
    codebook = (codebook + 3e-7 * rng.normal(size=codebook.shape)).astype("float32")
    samples = (codebook[:40] + rng.normal(size=(40, 20))).astype("float32")
    check(cupy, samples, codebook, metric, top)
    source = Program.source
    whole, none = "epsilon = bounds.epsilon(value, tile_bound)", "epsilon = 0"
    assert any(whole in source(program) for program in declared())
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(whole, none))
    cupy.start()
    with pytest.raises(AssertionError):
        check(cupy, samples, codebook, metric, top)


def test_three_products_where_one_keeps_many_tiles(cupy):
    rng = np.random.default_rng(6)
    codebook = rng.normal(size=(640, 12)).astype("float32")
    codebook[:, 0] *= 1e-5
    near = codebook[:272] + np.float32(0.01)
    far = near + 3000 * np.eye(12, dtype="float32")[0]  # far, where the units are alike
    first = inside(cupy, near, codebook, products=3)
    assert first.kept[1] == 32  # two blocks of sixteen samples
    assert first.kept[0] <= 2 * first.kept[1]
    again = inside(cupy, near, codebook, products=1)
    assert again.kept.tolist() == first.kept.tolist() or again.kept[0] <= 2 * again.kept[1]
    assert inside(cupy, far, codebook, products=1).kept[0] > 5 * 32
    plan = choose(3, *map(cupy.asarray, (near, codebook)))
    for samples, taken in (near, 3), (near, 1), (far, 1), (far, 3), (near, 3), (near, 1):
        kept = plan.kept.get()
        best_matching_units(*map(cupy.asarray, (samples, codebook)), validate=False)
        assert (kept[1] > 0 and kept[0] <= 2.4 * kept[1]) == (taken == 1)


def test_faults_are_named(cupy):
    samples, codebook = np.zeros((140, 3), "float32"), np.ones((70, 3), "float32")
    samples[133, 1] = samples[137, 0] = np.nan
    on_device = map(cupy.asarray, (samples, codebook))
    with pytest.raises(ValueError, match="row 133 of samples"):
        best_matching_units(*on_device)
    samples[135] = np.nan
    with pytest.raises(ValueError, match="row 135 of samples has no value at all"):
        best_matching_units(*map(cupy.asarray, (samples, codebook)), missing=True)
    codebook[69, 2] = np.inf
    with pytest.raises(ValueError, match="row 69 of codebook"):
        best_matching_units(*map(cupy.asarray, (samples, codebook)), missing=True)


# --- Learning -----------------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums(cupy, monkeypatch, dtype, missing, weighted):
    rng = np.random.default_rng(6)
    magnitudes = np.array([1, 1e-17, 3e12, 0, 2])
    samples = (rng.normal(size=(300, 5)) * magnitudes).astype(dtype)
    units = np.sort(rng.integers(0, 9, 300, dtype=np.int32))
    units[::7] = 3
    weights = rng.random(300).astype(dtype) if weighted else None
    if missing:
        samples[rng.random((300, 5)) < 0.3] = np.nan
    scale = fixed_point(300, 8 * magnitudes, 1)
    expected = unit_sums(samples, units, 9, weights, missing, scale)
    for enough_threads in 1 << 18, 1500, 40:
        monkeypatch.setattr("gpuops.som.update_cuda._ENOUGH_THREADS", enough_threads)
        given = [None if x is None else cupy.asarray(x) for x in (samples, units, weights)]
        result = unit_sums(*given[:2], 9, given[2], missing, scale)
        for sums, known in zip(result, expected, strict=True):
            np.testing.assert_array_equal(sums.get(), known)


@dtypes
@pytest.mark.parametrize("columns", [5, 2])
def test_sums_in_shared_memory(cupy, monkeypatch, dtype, columns):
    cupy.start(1, multiprocessors=6)
    monkeypatch.setattr("gpuops.som.update_cuda._FEWEST", 0)
    monkeypatch.setattr("gpuops.som.update_cuda.shared_of_block", lambda device: 4 * 9 * (2 * columns + 1))
    rng = np.random.default_rng(7)
    samples = (rng.normal(size=(300, 5)) * [1, 1e-17, 3e12, 0, 2]).astype(dtype)
    units = rng.integers(0, 9, 300, dtype=np.int32)
    scale = fixed_point(300, abs(samples).max(axis=0).astype(float))  # sums of more than 32 bits
    expected = unit_sums(samples, units, 9, scale=scale)
    given = cupy.asarray(np.repeat(samples, 2, axis=1))[:, ::2], cupy.asarray(units)
    for sums, known in zip(unit_sums(*given, 9, scale=scale), expected, strict=True):
        np.testing.assert_array_equal(sums.get(), known)
    assert any(entry == "accumulate_in_blocks" for *_, entry in cupy.launched)
    samples[170, 3], units[200] = np.nan, 9
    for fault, row in ((samples, units), 170), ((np.nan_to_num(samples), units), 200):
        with pytest.raises(ValueError, match=f"row {row}"):
            unit_sums(*map(cupy.asarray, fault), 9, scale=scale)


def test_faulty_sums_are_named(cupy):
    samples, units = np.ones((5, 2), "float32"), np.arange(5, dtype=np.int32)
    samples[3, 1] = np.inf
    with pytest.raises(ValueError, match="row 3"):
        unit_sums(cupy.asarray(samples), cupy.asarray(units), 5, scale=fixed_point(5, 1))
    with pytest.raises(ValueError, match="row 2"):
        unit_sums(cupy.asarray(samples), cupy.asarray(units), 2, scale=fixed_point(5, 1))


@pytest.mark.parametrize("kernel", NEIGHBOURHOODS)
@pytest.mark.parametrize("grid", [Grid(5, 7, toroidal=True), Grid(6, 5, hexagonal=True)], ids=str)
def test_smoothing(cupy, grid, kernel):
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 5, grid.units).astype("float64")
    sums, codebook = rng.normal(size=(grid.units, 3)) * counts[:, None], rng.normal(size=(grid.units, 3))
    result = smooth(*map(cupy.asarray, (sums, counts, codebook)), grid, 1.9, kernel)
    np.testing.assert_array_equal(result.get(), smooth(sums, counts, codebook, grid, 1.9, kernel))


# --- Broken on purpose --------------------------------------------------------------------------------------------

BARRIERS = [
    r"__syncthreads\(\);",
    r"wait_for_copies<0>\(\);",
    r"wait_for_phase\((full|empty).*\);",
    r"wait_for_products<.>\(\);",
]
LINES = {
    (program.file, number): line
    for program in declared()
    if program.file.startswith("som")
    for number, line in enumerate(program.source().splitlines())
}
# Without this barrier, too, all threads of the shim copy units before one of them goes beyond a barrier of its warp.
UNSEEN = "som/small_map.cu", "    __syncthreads();"
MUTANTS = [
    pytest.param(*key, id=f"{key[0]}:{key[1]}")
    for key, line in LINES.items()
    if any(re.search(barrier, line) for barrier in BARRIERS) and (key[0], line) != UNSEEN
]


def assert_same_inside(cupy, expected, seeds, file=""):
    for seed in seeds:
        cupy.start(seed)
        if file in KERNELS_OF_SMALL_MAPS:
            KERNELS_OF_SMALL_MAPS[file](cupy)
            continue
        for (d, metric, products), known in expected.items():
            found = inside(cupy, *OPERANDS[d], metric, products)
            for field in FIELDS:
                np.testing.assert_array_equal(getattr(found, field), getattr(known, field))


def assert_same_small_map(cupy):
    samples, codebook = OPERANDS[20]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpuops.som.small_map_cuda._SAMPLES", 0)
        samples = np.where(np.isfinite(samples), samples, 1)
        codebook = np.where(np.isfinite(codebook), codebook, 1)
        seen = inside(cupy, samples, codebook)
    np.testing.assert_array_equal(seen.units, best_matching_units(samples, codebook)[0])
    assert seen.left == 0


def assert_same_sums(cupy):
    samples = np.nan_to_num(OPERANDS[20][0], posinf=1)
    units, scale = np.arange(len(samples), dtype=np.int32) % 7, fixed_point(len(samples), 1e3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpuops.som.update_cuda._FEWEST", 0)
        found = unit_sums(cupy.asarray(samples), cupy.asarray(units), 7, scale=scale)
    for sums, known in zip(found, unit_sums(samples, units, 7, scale=scale), strict=True):
        np.testing.assert_array_equal(sums.get(), known)


KERNELS_OF_SMALL_MAPS = {"som/small_map.cu": assert_same_small_map, "som/update.cu": assert_same_sums}
FIELDS = "centre", "scale", "least", "tile_norms", "tile_residuals", "offsets", "norms", "order", "fault"
rng = np.random.default_rng(8)
# More units than the stages of `screen_wgmma.cu` hold; several slabs.
SIZES = {9: (100, 1100), 20: (100, 130), 170: (80, 130), 330: (80, 130)}
OPERANDS = {d: [rng.normal(size=(n, d)).astype("float32") for n in sizes] for d, sizes in SIZES.items()}
for samples, codebook in OPERANDS.values():
    codebook[:, -1] *= 100  # one warp alone sees how far units reach
    samples[77, 3] = codebook[66, 2] = np.inf


@pytest.fixture(scope="module")
def expected(cupy):
    return {
        (d, metric, products): inside(cupy, *OPERANDS[d], metric, products)
        for d in OPERANDS
        for metric, products in (("euclidean", 1), ("euclidean", 3), ("taxicab", 1))
        if products == 1 or d in (20, 170)  # three products take longer
    }


def test_no_scores_are_read_where_no_screen_wrote_them(cupy, monkeypatch):
    loads = r"const float\* (const )?least = .*;"
    fails = 'struct { float operator[](int) const { host::fail("reads a score"); return 0; } } least;'
    source = Program.source
    monkeypatch.setattr(Program, "source", lambda program: re.sub(loads, fails, source(program)))
    samples, codebook = np.ones((3, 2)), np.ones((70, 2))
    cupy.start()
    with pytest.raises(cupy.KernelError, match="reads a score"):
        check(cupy, samples, codebook, "cosine")
    samples[1, 0] = np.nan
    check(cupy, samples, codebook, "cosine", missing=True)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "number"), MUTANTS)
def test_a_missing_barrier_is_caught(cupy, expected, monkeypatch, file, number):
    source = Program.source

    def edited(program):
        lines = source(program).splitlines()
        if program.file == file:
            for barrier in BARRIERS:
                lines[number] = re.sub(barrier, "", lines[number])
        return "\n".join(lines) + "\n"

    monkeypatch.setattr(Program, "source", edited)
    with pytest.raises((AssertionError, cupy.KernelError)):
        assert_same_inside(cupy, expected, (1, 2, 3), file)


def test_without_a_mutation_nothing_is_caught(cupy, expected):
    for file in "", *KERNELS_OF_SMALL_MAPS:
        assert_same_inside(cupy, expected, (1,), file)
