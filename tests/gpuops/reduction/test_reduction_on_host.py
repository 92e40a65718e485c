"""The kernels of reduction.cu and dijkstra.cu on a machine without a GPU: same text, fibers for threads (host_shim/).

Results are compared bit for bit with the Numba half, and with a tree of sums written down here.
"""

import numpy as np
import pytest
from families import every_kernel, not_launched, usual
from mutants import break_line, lines_with

from gpuops import butterfly_reduction, dijkstra
from gpuops.label_setting import dijkstra_cuda, dijkstra_numba
from gpuops.reduction import OPERATORS, REDUCTION_DTYPES, reduction_cuda

SEEDS = [0, 1]  # threads and blocks in order, and shuffled
LENGTHS = [1, 2, 31, 33, 255, 256, 257, 4096, 4097, 9000]
DTYPES = ["float32", "float64", "int32"]

# A grid of small blocks, and some rows that are long.
SMALL = {"threads": 64, "LONG": 40}


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    with pytest.MonkeyPatch.context() as patch:
        for key, program in dijkstra_cuda._PROGRAMS.items():
            patch.setitem(dijkstra_cuda._PROGRAMS, key, program.variant(**SMALL))
        patch.setattr(reduction_cuda, "_ROUNDS_OF_BLOCKS", 1)
        host_shim.start()
        yield host_shim


def assert_same_bits(result, expected):
    result, expected = np.asarray(result.get()), np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    word = f"i{expected.itemsize}"
    nan = expected != expected
    np.testing.assert_array_equal(result != result, nan)
    np.testing.assert_array_equal(result[~nan].view(word), expected[~nan].view(word))


# --- Reductions -----------------------------------------------------------------------------------------------------


def random_numbers(seed, shape, dtype):
    """With ties, zeros of both signs, subnormal and infinite numbers; integers whose int32 sums would wrap around."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-(2**31), 2**31, shape).astype(dtype)
    x = (rng.integers(-300, 300, shape) * 0.37).astype(dtype)
    x[rng.random(shape) < 0.1] = -0.0
    x[rng.random(shape) < 0.05] = np.finfo(dtype).smallest_subnormal
    return x


def operators(dtype):
    return [name for name in OPERATORS if np.dtype(dtype).kind == "i" or not name.startswith("bitwise")]


@pytest.mark.parametrize("dtype", usual(REDUCTION_DTYPES), ids=str)
def test_every_operator_and_length(cupy, dtype):
    for length in LENGTHS:
        cupy.start(length % 2, 3)
        x = random_numbers(length, (2, length), dtype)
        for operator in operators(dtype) if length < 4097 else operators(dtype)[:4:3]:
            assert_same_bits(butterfly_reduction(cupy.asarray(x), operator), butterfly_reduction(x, operator))


@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
def test_nan_and_infinities(cupy, dtype):
    cupy.start(1, 2)
    for nan in np.nan, -np.nan:
        for length in 40, 700:
            x = random_numbers(3, (4, length), dtype)
            x[0, [5, 9]] = nan, -nan
            x[1] = np.inf
            x[2] = -np.inf
            x[3, ::2] = np.inf
            for operator in operators(dtype)[1:]:
                assert_same_bits(butterfly_reduction(cupy.asarray(x), operator), butterfly_reduction(x, operator))


def test_the_result_in_every_element(cupy):
    x = random_numbers(1, (2, 50), "int32")
    assert_same_bits(
        butterfly_reduction(cupy.asarray(x), "minimum", everywhere=True),
        butterfly_reduction(x, "minimum", everywhere=True),
    )


def test_blocks_do_not_change_a_sum(cupy):
    x = random_numbers(8, (30_000,), "float32")
    for multiprocessors in 1, 2, 5:
        cupy.start(multiprocessors, multiprocessors)
        assert_same_bits(butterfly_reduction(cupy.asarray(x), "sum"), butterfly_reduction(x, "sum"))


def test_views(cupy):
    cupy.start(1, 2)
    x = random_numbers(2, (6, 700), "float64")
    for view in np.s_[::2, 3:600:2], np.s_[1:1], np.s_[4], np.s_[:, 5]:
        assert_same_bits(butterfly_reduction(cupy.asarray(x)[view], "sum"), butterfly_reduction(x[view], "sum"))


# --- Dijkstra -------------------------------------------------------------------------------------------------------


def random_graph(seed, dtype, n=150, m=1500):
    """Few vertices with many arcs; loops, parallel arcs, weights of zero, vertices that nothing leads to."""
    rng = np.random.default_rng(seed)
    tails, heads = np.sort((n * rng.random(m) ** 3).astype(np.int64)), (n * rng.random(m) ** 2).astype(np.int32)
    weights = rng.integers(0, 60, m).astype(dtype)
    if weights.dtype.kind == "f":
        weights *= weights.dtype.type(0.37)
        weights[rng.random(m) < 0.1] = -0.0
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=n))))
    return indptr, heads, weights


def check_dijkstra(cupy, graph, source):
    on_device = [cupy.asarray(x) for x in graph]
    found = dijkstra_cuda.rounds(*on_device, source)
    expected = dijkstra_numba.rounds(*graph, source)
    for result, reference in zip(found[:2], expected[:2], strict=True):
        assert_same_bits(result, reference)
    assert found[2] == expected[2]


@pytest.mark.parametrize("dtype", usual(DTYPES))
def test_dijkstra(cupy, dtype):
    for seed in 0, 1, 2, 3:
        cupy.start(seed, 3)
        graph = random_graph(seed, dtype)
        source = int(np.argmax(np.diff(graph[0]))) if seed else 149
        check_dijkstra(cupy, graph, source)


def test_dijkstra_on_one_vertex_and_without_arcs(cupy):
    cupy.start(1, 2)
    for n in 1, 40:
        check_dijkstra(cupy, (np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)), n - 1)


def test_a_distance_that_does_not_fit_is_an_error(cupy):
    cupy.start(1, 2)
    indptr, indices = np.array([0, 1, 2, 2]), np.array([1, 2], np.int32)
    for last, far in (2**30 - 2, 2**31 - 2), (2**30 - 1, None):
        graph = indptr, indices, np.array([2**30, last], np.int32)
        for arrays in graph, [cupy.asarray(x) for x in graph]:
            if far is None:
                with pytest.raises(OverflowError, match="use float64"):
                    dijkstra(*arrays, 0)
            else:
                assert dijkstra(*arrays, 0)[0].tolist() == [0, 2**30, far]


def test_a_heap_is_for_a_cpu(cupy):
    with pytest.raises(ValueError, match="a heap runs on one thread"):
        dijkstra(*[cupy.asarray(x) for x in random_graph(0, "int32")], 0, method="heap")


# --- All of them, and broken on purpose -----------------------------------------------------------------------------


def run_everything(cupy, dtypes, seeds):
    for seed in seeds:
        cupy.start(seed, 3)
        for dtype in dtypes:
            x = random_numbers(seed, (2, 9000), dtype)
            for length in 70, 9000:
                for operator in "sum", "argmax":
                    result = butterfly_reduction(cupy.asarray(x[:, :length].copy()), operator)
                    assert_same_bits(result, butterfly_reduction(x[:, :length], operator))
            if dtype in DTYPES:
                check_dijkstra(cupy, random_graph(seed, dtype, 400, 1600), 1)


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    run_everything(cupy, [*DTYPES, "int64"] if variants else ["int32"], [0])
    programs = [*reduction_cuda._PROGRAMS.values(), *dijkstra_cuda._PROGRAMS.values()]
    assert not not_launched(programs, cupy.launched, variants=variants)


MUTANTS = [
    *lines_with("device/butterfly.cuh", r"__syncthreads\(\);", ""),
    *lines_with("device/butterfly.cuh", r"values\[j \^ b\]\);", "values[j]);"),
    *lines_with("device/butterfly.cuh", r"of_partner\(mine, b\)", "of_partner(mine, b / 2)"),
    *lines_with("device/butterfly.cuh", r"(?<=b = 16; )b > 0", "b > 1"),
    *lines_with("label_setting/dijkstra.cu", r"(?<=  )barrier\(\);", "__syncthreads();"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "number", "pattern", "replacement"), MUTANTS)
def test_what_is_broken_is_caught(cupy, monkeypatch, file, number, pattern, replacement):
    break_line(monkeypatch, file, number, pattern, replacement)
    with pytest.raises((AssertionError, OverflowError, cupy.KernelError)):
        run_everything(cupy, ["int32"], [1, 2, 3])


def test_without_a_mutation_nothing_is_caught(cupy):
    run_everything(cupy, ["int32"], [1, 2, 3])
