"""The kernels of self-organizing maps on a machine without a GPU: threads as fibers (host_shim/).

Results are compared bit for bit with the CPU half, which test_som.py compares with NumPy. The tensor cores of the shim
add exactly; so what tests here is where operands and results lie, not how far real ones are off.
"""

import ctypes
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from families import one_in

from gpuops._cuda import Program, declared
from gpuops.som import best_matching_units, bmu_cuda
from gpuops.som.grid import NEIGHBOURHOODS, Grid
from gpuops.som.update import fixed_point, smooth, unit_sums

dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start()
    return host_shim


@pytest.fixture(params=["euclidean", "euclidean, tensor cores", "taxicab", "cosine, tensor cores"])
def metric(request, monkeypatch):
    """A metric, and the way of screening its dot products."""
    metric, _, tensor_cores = request.param.partition(", ")
    monkeypatch.setattr(bmu_cuda, "_TENSOR_DEPTH", 1 if tensor_cores else 10**9)
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


@dtypes
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


def test_chunks_and_views(cupy, monkeypatch):
    monkeypatch.setattr(bmu_cuda, "_CHUNK_BYTES", 1)
    rng = np.random.default_rng(5)
    samples, codebook = on_a_grid(rng, (300, 6), "float32"), on_a_grid(rng, (90, 6), "float32")
    expected = best_matching_units(samples[::-1], codebook)
    wide = cupy.asarray(np.repeat(samples, 2, axis=1))
    found = best_matching_units(wide[::-1, ::2], cupy.asarray(np.asfortranarray(codebook).T.copy()).T)
    for result, known in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result.get(), known)


@pytest.mark.parametrize("d", [40, 60, 65])
def test_tensor_cores_by_16_and_by_64_dimensions(cupy, d):
    rng = np.random.default_rng(d)
    samples, codebook = (rng.normal(size=shape).astype("float32") for shape in ((20, d), (80, d)))
    check(cupy, samples, codebook, "euclidean")
    # The screen by itself: were it wrong, the bound would still let the right unit through most of the time.
    seen = inside(cupy, samples, codebook, "euclidean")
    x, w = (samples.astype("float64") - seen.centre) * seen.scale, (codebook - seen.centre) * seen.scale
    exact = (w * w).sum(axis=1) - 2 * x @ w.T
    for tile in range(2):
        off = seen.least[:20, tile] - exact[:, tile * 64 : (tile + 1) * 64].min(axis=1)
        norms = np.linalg.norm(x, axis=1)
        # Operands are exact to 2^-22, and the shim adds nearly without rounding: some 10 units of float32.
        assert (abs(off) < 10 * 2.0**-23 * (2 * norms + seen.tile_norms[tile]) * seen.tile_norms[tile]).all()


def inside(cupy, samples, codebook, metric):
    """What the kernels tell each other: centre, scale, least scores, norms of tiles; and the faults."""
    seen = SimpleNamespace()
    launch = cupy.RawKernel.__call__

    def remember(kernel, grid, block, args, *rest, **options):
        launch(kernel, grid, block, args, *rest, **options)
        if kernel.entry != "decide":
            return
        search = args[0].view(bmu_cuda._SEARCH)
        tiles, d = int(search["tiles"]), int(search["d"])
        at = dict(zip(bmu_cuda._SCRATCH, search["scratch"].tolist(), strict=True))

        def read(name, kind, *shape):
            size = np.dtype(kind).itemsize * math.prod(shape)
            return np.frombuffer(ctypes.string_at(at[name], size), kind).reshape(shape)

        seen.least, seen.tile_norms = read("least", "f4", len(samples), tiles), read("tile_norms", "f4", tiles)
        *seen.centre, seen.scale = read("centre", "f8", d + 1)
        seen.fault = read("fault", "u8", 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy.RawKernel, "__call__", remember)
        best_matching_units(cupy.asarray(samples), cupy.asarray(codebook), metric, validate=False)
    return seen


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
]
LINES = {
    (program.file, number): line
    for program in declared()
    if program.file.startswith("som")
    for number, line in enumerate(program.source().splitlines())
}
MUTANTS = [
    pytest.param(*key, id=f"{key[0]}:{key[1]}") for key in LINES if any(re.search(b, LINES[key]) for b in BARRIERS)
]


def assert_same_inside(cupy, expected, seeds):
    for seed in seeds:
        cupy.start(seed)
        for (d, metric), known in expected.items():
            found = inside(cupy, *OPERANDS[d], metric)
            for field in "centre", "scale", "least", "tile_norms", "fault":
                np.testing.assert_array_equal(getattr(found, field), getattr(known, field))


rng = np.random.default_rng(8)
OPERANDS = {d: [rng.normal(size=(n, d)).astype("float32") for n in (100, 130)] for d in (9, 20)}
for samples, codebook in OPERANDS.values():
    codebook[:, -1] *= 100  # one warp alone sees how far units reach
    samples[77, 3] = codebook[66, 2] = np.inf


@pytest.fixture(scope="module")
def expected(cupy):
    return {(d, metric): inside(cupy, *OPERANDS[d], metric) for d in OPERANDS for metric in ("euclidean", "taxicab")}


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


@pytest.mark.parametrize(("file", "number"), one_in(3, MUTANTS))
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
        assert_same_inside(cupy, expected, seeds=(1, 2, 3))


def test_without_a_mutation_nothing_is_caught(cupy, expected):
    assert_same_inside(cupy, expected, seeds=(1,))
