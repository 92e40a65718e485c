"""The kernels of gpuops on a machine without a GPU: same text, same launches, fibers for threads (host_shim/).

Results are compared bit for bit with NumPy. That the shim sees a barrier that is missing is tested too.
"""

import re

import numpy as np
import pytest
from families import diagonals, every_kernel, not_launched, usual

from gpuops import NegativeCycleError, _cuda, floyd_warshall, minplus_product, minplus_update
from gpuops._cuda import Program
from gpuops._strips import SHAPES as STRIPS
from gpuops.minplus import middle_closure, pack, relax_and_pack, relax_packed, small_closure
from gpuops.minplus.small_closure import TILES as SMALL_CLOSURES
from gpuops.numbers import DISTANCE_DTYPES, distance_limit, infinity

pytestmark = pytest.mark.usefixtures("cupy")

# The kernels of other folders have tests of their own, *_on_host.py.
PROGRAMS = [program for program in _cuda.declared() if program.file.startswith("minplus/")]

# Entries with instructions that only a GPU has, of tensor cores.
GPU_ONLY: set[str] = set()

SHAPES = [(1, 1, 1), (3, 5, 0), (33, 65, 17), (65, 31, 129), (130, 257, 33), (128, 300, 50)]
SIZES = [1, 2, 65, 128, 130]  # rows of 128 begin where 16 bytes do
SEEDS = [0, 1]  # threads and blocks in order, and shuffled
# Multiprocessors: few have enough to do with large tiles.
TILES = {"large tiles": 1, "middle tiles": 2, "small tiles": 10**6}

dtypes = pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)
some = pytest.mark.parametrize(
    ("dtype", "lowest", "multiprocessors"), diagonals(DISTANCE_DTYPES, [0, -50], list(TILES.values()), count=2)
)


def assert_same_bits(result, expected):
    assert result.dtype == expected.dtype
    word = f"i{expected.itemsize}"
    np.testing.assert_array_equal(result.get().view(word), expected.view(word))


# --- Min-plus products --------------------------------------------------------------------------------------------


def random_matrix(rng, shape, dtype, lowest):
    """Lengths that round when they are added in floating point; infinite ones; negative zeros."""
    values = rng.integers(lowest, 1000, shape).astype(dtype)
    if values.dtype.kind == "f":
        values *= values.dtype.type(0.37)
        values[rng.random(shape) < 0.05] = -0.0
    values[rng.random(shape) < 0.3] = infinity(dtype)
    return values


def random_operands(seed, m, n, p, dtype, lowest=0):
    rng = np.random.default_rng(seed)
    return [random_matrix(rng, shape, dtype, lowest) for shape in ((m, n), (m, p), (p, n))]


def minplus_in_numpy(c, a, b):
    c, a, b = (x + x.dtype.type(0) for x in (c, a, b))
    for p in range(a.shape[1]):
        np.minimum(c, a[:, p, None] + b[p], out=c)
    return c


def check_minplus(cupy, *shape, dtype, lowest=0):
    operands = random_operands(sum(shape), *shape, dtype, lowest)
    expected = minplus_in_numpy(*operands)
    c, a, b = map(cupy.asarray, operands)
    assert_same_bits(minplus_update(c, a, b), expected)
    relax_packed(c, a, pack(b, lowest >= 0, met_by=len(c)))
    assert_same_bits(c, expected)


@some
def test_minplus(cupy, dtype, lowest, multiprocessors):
    for seed in SEEDS:
        cupy.start(seed, multiprocessors)
        for shape in SHAPES:
            check_minplus(cupy, *shape, dtype=dtype, lowest=lowest)


def check_product(cupy, m, n, p, dtype, lowest=0):
    _, a, b = random_operands(m + n, m, n, p, dtype, lowest)
    nothing = np.full((m, n), infinity(dtype))
    product = minplus_product(cupy.asarray(a), cupy.asarray(b), nonnegative=lowest >= 0)
    assert_same_bits(product, minplus_in_numpy(nothing, a, b))


@some
def test_a_product_does_not_exceed_infinity(cupy, dtype, lowest, multiprocessors):
    cupy.start(1, multiprocessors)
    for shape in (1, 1, 1), (3, 5, 0), (35, 1100, 5), (130, 270, 20), (130, 270, 40), (40, 50, 70):
        check_product(cupy, *shape, dtype, lowest)


def test_a_product_of_many_rows_fits_into_a_grid():
    rows = 10**9
    (across, down), turns = STRIPS["Float32"].grid(1, rows, 1000)
    assert across == 1
    assert down < 2**16
    assert down * turns * STRIPS["Float32"].rows >= rows


@dtypes
@pytest.mark.parametrize("infinite", [False, True], ids=["finite", "unreachable"])
def test_a_product_fills_a_window(cupy, dtype, infinite):
    """Rows begin anywhere in 16 bytes; around them nothing changes. Sums of infinity must not wrap."""
    m, n, p = 21, 530, 9
    _, a, b = random_operands(3, m, n, p, dtype)
    if infinite:
        a, b = (np.full_like(x, infinity(dtype)) for x in (a, b))
    expected = minplus_in_numpy(np.full((m, n), infinity(dtype)), a, b)
    for offset in range(9):
        around = np.zeros((m + 2, n + 11), dtype)  # an odd stride
        on_device = cupy.asarray(around)
        a_view, b_view = cupy.asarray(a.T.copy()).T, cupy.asarray(np.repeat(b, 2, axis=1))[:, ::2]
        window = on_device[1 : m + 1, offset : offset + n]
        minplus_product(a_view, b_view, out=window)
        around[1 : m + 1, offset : offset + n] = expected
        assert_same_bits(on_device, around)


@pytest.mark.parametrize(("dtype", "multiprocessors"), diagonals(DISTANCE_DTYPES, list(TILES.values())))
def test_minplus_in_windows_and_any_strides(cupy, dtype, multiprocessors):
    m, n, p = 70, 141, 40
    c, a, b = random_operands(0, m, n, p, dtype)
    for offset in 0, 1, 3:
        cupy.start(offset, multiprocessors)
        # An odd row length: in int16 every second row starts in the middle of a 32-bit word.
        around = random_matrix(np.random.default_rng(9), (m + 2, 151), dtype, 0)
        spread, on_device = cupy.empty((2 * p, 3 * n), dtype), cupy.asarray(around)
        window = on_device[1 : m + 1, offset : offset + n]
        window[...], spread[::2, ::3] = c, b
        transposed = cupy.asarray(np.ascontiguousarray(a[::-1].T)).T[::-1]
        minplus_update(window, transposed, spread[::2, ::3], out=window)
        around[1 : m + 1, offset : offset + n] = minplus_in_numpy(c, a, b)
        assert_same_bits(on_device, around)


@dtypes
def test_minplus_of_a_matrix_with_itself(cupy, dtype):
    cupy.start(seed=2)
    d = random_operands(4, 150, 150, 0, dtype)[0]
    x = cupy.asarray(d)
    minplus_update(x, x, x, out=x)
    assert_same_bits(x, minplus_in_numpy(d, d, d))


@pytest.mark.parametrize(("dtype", "multiprocessors"), diagonals(DISTANCE_DTYPES, list(TILES.values())))
def test_a_product_keeps_columns_and_packs_them(cupy, dtype, multiprocessors):
    cupy.start(1, multiprocessors)
    c, a, rows = random_operands(5, 33, 530, 33, dtype)
    kept, expected = slice(256, 512), minplus_in_numpy(rows, a, rows)
    expected[:, kept] = rows[:, kept] + rows.dtype.type(0)
    on_device, target = cupy.asarray(rows), cupy.asarray(c)
    packed = relax_and_pack(on_device, cupy.asarray(a), True, kept)
    assert_same_bits(on_device, expected)
    relax_packed(target, cupy.asarray(a), packed)
    assert_same_bits(target, minplus_in_numpy(c, a, expected))


# --- Floyd-Warshall -----------------------------------------------------------------------------------------------


def random_lengths(seed, n, dtype, negative=False):
    """Small integers, exact in every dtype; negative ones without a negative cycle."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 100, (n, n))
    if negative:
        potential = rng.integers(0, 60, n)
        lengths += potential[:, None] - potential
    lengths = lengths.astype(dtype)
    lengths[rng.random((n, n)) < 1 - 4 / max(n, 5)] = infinity(dtype)
    return lengths


def floyd_warshall_in_numpy(d):
    d = d.copy()
    np.fill_diagonal(d, np.minimum(d.diagonal(), 0))
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d


def check_floyd_warshall(cupy, n, dtype, negative=False):
    d = random_lengths(n, n, dtype, negative)
    assert not negative or (d < 0).any() or n < 9
    result, expected = floyd_warshall(cupy.asarray(d)), floyd_warshall_in_numpy(d)
    if negative:  # how far below infinity an unreachable entry ends depends on the order of relaxations
        for x in result, expected:
            x[x >= distance_limit(dtype)] = infinity(dtype)
    assert_same_bits(result, expected)


@pytest.mark.parametrize(("dtype", "negative", "seed"), diagonals(DISTANCE_DTYPES, [False, True], SEEDS, count=2))
def test_floyd_warshall(cupy, dtype, negative, seed):
    cupy.start(seed)
    for n in SIZES:
        check_floyd_warshall(cupy, n, dtype, negative)


def rounded_by_stages(d, tile):
    """The distances of `d` in the order of sums that `gpuops.minplus.floyd_warshall` states, with blocks of `tile`."""
    d = d.copy()
    for k in range(0, len(d), tile):
        pivots, others = np.arange(k, min(k + tile, len(d))), np.r_[:k, min(k + tile, len(d)) : len(d)]
        d[np.ix_(pivots, pivots)] = floyd_warshall_in_numpy(d[np.ix_(pivots, pivots)])
        d[np.ix_(pivots, others)] = minplus_in_numpy(*(d[np.ix_(pivots, x)] for x in (others, pivots, others)))
        d[others] = minplus_in_numpy(d[others], d[np.ix_(others, pivots)], d[pivots])
    return d


def check_rounding(cupy, n, dtype, negative=False):
    """With lengths whose sums are rounded, and no cycle that is nearly zero."""
    rng = np.random.default_rng(n)
    d = rng.uniform(0.05, 0.4, (n, n)) + (np.subtract.outer(*[rng.random(n)] * 2) if negative else 0)
    d[rng.random((n, n)) < 0.8] = np.inf
    d = d.astype(dtype)
    expected = rounded_by_stages(d, SMALL_CLOSURES[np.dtype(dtype).name][1])
    np.fill_diagonal(expected, 0)
    assert_same_bits(floyd_warshall(cupy.asarray(d), tolerance=1e-3), expected)


@pytest.mark.parametrize(("dtype", "negative"), diagonals(["float32", "float64"], [False, True], count=2))
def test_sums_are_rounded_in_the_order_of_the_stages(cupy, dtype, negative):
    for multiprocessors in TILES.values():
        cupy.start(1, multiprocessors)
        check_rounding(cupy, 190, dtype, negative)


def check_batch(cupy, n, dtype):
    """Matrices of several sizes, of which not all vertices are pivots; what is beyond must not count."""
    sizes = np.array([n, max(0, n - 1), n // 2, 1])
    pivots = np.array([n, n // 3, n // 2, 0])
    batch = np.zeros((4, n, n), dtype)
    for k, size in enumerate(sizes):
        batch[k, :size, :size] = random_lengths(k, size, dtype)
    result = floyd_warshall(cupy.asarray(batch), sizes=sizes, pivots=pivots)
    for k, size in enumerate(sizes):
        d = batch[k, :size, :size].copy()
        np.fill_diagonal(d, 0)
        for p in range(pivots[k]):
            np.minimum(d, d[:, p, None] + d[p], out=d)
        assert_same_bits(result[k, :size, :size], d)


@pytest.mark.parametrize(("dtype", "seed"), diagonals(DISTANCE_DTYPES, SEEDS))
def test_batches(cupy, dtype, seed):
    cupy.start(seed)
    for n in (1, 30, 65, 128, 130):
        check_batch(cupy, n, dtype)


@pytest.mark.parametrize(("dtype", "negative", "seed"), diagonals(["float32", "int32"], [False, True], SEEDS, count=2))
def test_closures_of_middle_sizes(cupy, monkeypatch, dtype, negative, seed):
    """In one launch, with two tiles on a multiprocessor or one; in many launches on one multiprocessor."""
    monkeypatch.setattr(small_closure, "MOST", 64)
    for n, multiprocessors in (129, 3), (130, 4), (257, 7), (130, 1):
        cupy.start(seed, multiprocessors)
        before = cupy.launches
        check_floyd_warshall(cupy, n, dtype, negative)
        assert (cupy.launches - before == 2) == (multiprocessors > 1)  # one more looks at the lengths
        if n == 130 and dtype == "float32":
            check_rounding(cupy, n, dtype, negative)


def test_zero_cycles_are_cleared_alike_by_one_launch_and_by_many(cupy):
    """The sum of a zero cycle is a little less than 0, and becomes 0 at the stage of its later vertex."""
    d, i = np.full((130, 130), np.inf, "float32"), np.arange(64)
    d[i + 64, i], d[i, i + 64] = 1, -1.0001
    results = []
    for multiprocessors in 4, 1:
        cupy.start(1, multiprocessors)
        results.append(cupy.asarray(d))
        middle_closure.close(results[-1], 1e-2, False)
    assert_same_bits(results[0], results[1].get())


def check_middle_closure(cupy, n, seed):
    cupy.start(seed, multiprocessors=4)
    d = random_lengths(n, n, "int32")
    on_device = cupy.asarray(d)
    middle_closure.close(on_device, 0.0, True)
    assert_same_bits(on_device, floyd_warshall_in_numpy(d))


@dtypes
def test_no_value_stands_for_a_tile_that_is_missing(cupy, dtype):
    """Its bytes are those of a NaN, or of an integer above infinity, which only a matrix against the rules holds."""
    cupy.start(1, 10**6)
    d = random_lengths(130, 130, dtype)
    known = d.copy()
    known[0, 70], known[99, 129] = [infinity(dtype)] * 2
    for place in (0, 70), (99, 129):
        d[place] = np.frombuffer(bytes([255 if d.dtype.kind == "f" else 127] * d.itemsize), dtype)[0]
    closed = floyd_warshall(cupy.asarray(d), nonnegative=True).get()
    np.testing.assert_array_equal(closed[:, :70], floyd_warshall(known)[:, :70])


@dtypes
@pytest.mark.parametrize("negative", [False, True], ids=["nonnegative", "signed"])
def test_floyd_warshall_by_several_blocks(cupy, monkeypatch, dtype, negative):
    """Of which the last is no multiple of anything; the rows of a block leave a product packed for the next."""
    monkeypatch.setattr("gpuops.minplus.floyd_warshall._CUDA_BLOCKS", {dtype: (70,) for dtype in DISTANCE_DTYPES})
    for multiprocessors in TILES.values():
        cupy.start(1, multiprocessors)
        check_floyd_warshall(cupy, 187, dtype, negative)


@dtypes
def test_negative_cycle_is_an_error(cupy, dtype):
    cupy.start(seed=1)
    d = np.full((70, 70), infinity(dtype))
    i = np.arange(70)
    d[i, (i + 1) % 70] = 1
    d[69, 0] = -70
    with pytest.raises(NegativeCycleError):
        floyd_warshall(cupy.asarray(d))
    d[69, 0] = -69
    assert (floyd_warshall(cupy.asarray(d)).diagonal() == 0).all()


def test_tolerance_takes_a_rounded_zero_cycle_for_zero(cupy):
    cupy.start(seed=1)
    d = np.array([[np.inf, 1], [-1 - 1e-6, np.inf]], "float32")
    with pytest.raises(NegativeCycleError):
        floyd_warshall(cupy.asarray(d))
    assert (floyd_warshall(cupy.asarray(d), tolerance=1e-4).diagonal() == 0).all()


def test_lengths_are_looked_over_as_on_the_cpu(cupy):
    """In views of any strides; a closure is one launch, with one more for the lengths."""
    d = np.random.default_rng(1).integers(1, 99, (90, 90)).astype("float32")
    on_device = cupy.asarray(d)
    for part in np.s_[:, :], np.s_[::2, ::2], np.s_[70:19:-1, 19:70]:
        assert_same_bits(floyd_warshall(on_device[part]), floyd_warshall_in_numpy(d[part]))
    assert_same_bits(floyd_warshall(on_device.T), floyd_warshall_in_numpy(d.T))
    for value, message in (np.nan, "NaN"), (-np.inf, "-inf"):
        wrong = d.copy()
        wrong[89, 88] = value
        with pytest.raises(ValueError, match=message):
            floyd_warshall(cupy.asarray(wrong))
    before = cupy.launches
    floyd_warshall(cupy.asarray(d))
    assert cupy.launches - before == 2
    floyd_warshall(cupy.asarray(d), nonnegative=True)
    assert cupy.launches - before == 3


# --- All of them --------------------------------------------------------------------------------------------------


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    launched = set()
    for multiprocessors in [*TILES.values()][: None if variants else 1]:
        cupy.start(0, multiprocessors)
        for dtype in DISTANCE_DTYPES if variants else ["int32"]:
            for lowest in 0, -50:
                check_minplus(cupy, 9, 257, 9, dtype=dtype, lowest=lowest)
                for depth in 9, 40:
                    check_product(cupy, 9, 9, depth, dtype, lowest)
                check_floyd_warshall(cupy, 9, dtype, lowest < 0)
            for n in (9, 65):
                check_batch(cupy, n, dtype)
        launched |= cupy.launched
    cupy.start(0, 3)
    for dtype, nonnegative in [("int32", False), ("float32", True), ("float32", False)][: None if variants else 1]:
        middle_closure.close(cupy.asarray(random_lengths(0, 129, dtype)), 0.0, nonnegative)
    launched |= cupy.launched
    missing = [kernel for kernel in not_launched(PROGRAMS, launched, variants=variants) if kernel[-1] not in GPU_ONLY]
    assert not missing, f"run these here, or name them in GPU_ONLY: {missing}"


# --- Broken on purpose --------------------------------------------------------------------------------------------

BARRIERS = [  # and what breaks them
    (r"__sync(threads|warp)\(\);", "", "removed"),
    (r"wait_for_copies<(.*)>\(\);", "", "removed"),
    (r"wait_for_copies<(.*)>\(\);", r"wait_for_copies<\1 + 1>();", "waits for one group too few"),
]


def places(source):
    """Where every line of a program's text was written, such as minplus.cu:43, and which line of the text it is."""
    found = {}
    for index, line in enumerate(source.splitlines()):
        mark = re.fullmatch(r'#line (\d+) "(.+)"', line)
        if mark:
            number, file = int(mark[1]), mark[2]
        else:
            found[f"{file}:{number}"] = index
            number += 1
    return found


LINES = {
    place: lines[index]
    for text in dict.fromkeys(program.source() for program in PROGRAMS)
    for lines in [text.splitlines()]
    for place, index in places(text).items()
}
MUTANTS = [
    pytest.param(place, pattern, replacement, id=f"{place}-{what}")
    for place, line in LINES.items()
    for pattern, replacement, what in BARRIERS
    if re.search(pattern, line)
    if not place.startswith("grid_barrier.cuh")  # its struct with barriers serves hierarchies, whose tests remove them
    if "before arrivals" not in line  # the shim lets a block run until all its threads wait
]


def edit_line(monkeypatch, place, pattern, replacement):
    """Let gpuops launch kernels of which one line is different."""
    source = Program.source

    def edited(program):
        text = source(program)
        lines, index = text.splitlines(), places(text).get(place)
        if index is not None:
            lines[index], count = re.subn(pattern, replacement, lines[index])
            assert count == 1
        return "\n".join(lines) + "\n"

    monkeypatch.setattr(Program, "source", edited)


def run_where_barriers_matter(cupy):
    for seed in 0, 1, 2:
        for multiprocessors in TILES.values():
            cupy.start(seed, multiprocessors)
            check_minplus(cupy, 65, 70, 100, dtype="int32")
            check_product(cupy, 33, 1100, 5, "int32")
            check_floyd_warshall(cupy, 130, "int32")
            check_batch(cupy, 130, "int32")
        check_middle_closure(cupy, 190, seed)
    for multiprocessors in TILES.values():
        cupy.start(1, multiprocessors)
        check_rounding(cupy, 190, "float32")


@pytest.mark.slow
@pytest.mark.parametrize(("place", "pattern", "replacement"), MUTANTS)
def test_a_broken_barrier_is_caught(cupy, monkeypatch, place, pattern, replacement):
    edit_line(monkeypatch, place, pattern, replacement)
    with pytest.raises((AssertionError, cupy.KernelError), match="Arrays are not equal|wait for each other|divergent"):
        run_where_barriers_matter(cupy)


def test_without_a_mutation_nothing_is_caught(cupy):
    run_where_barriers_matter(cupy)


@pytest.mark.parametrize("condition", ["threadIdx.x < 64", "threadIdx.x % 2"])
def test_a_divergent_barrier_is_named(cupy, monkeypatch, condition):
    place = next(place for place, line in LINES.items() if "__syncthreads" in line and "closure_tile" in place)
    edit_line(monkeypatch, place, "__syncthreads", f"if ({condition}) __syncthreads")
    cupy.start()
    with pytest.raises(cupy.KernelError, match=f"divergent barrier: .* waits at {re.escape(place)}"):
        check_floyd_warshall(cupy, 33, "int32")


# --- The shim itself ----------------------------------------------------------------------------------------------

WARPS = """
// Sum, minimum and maximum of x, and how many are odd.
extern "C" __global__ void statistics(int* result, const int* x, int n) {
    extern __shared__ alignas(16) int sums[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int sum = i < n ? x[i] : 0, greatest = i < n ? x[i] : -1000;
    for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lanes);
    for (int lanes = 16; lanes; lanes /= 2) greatest = max(greatest, __shfl_down_sync(0xffffffff, greatest, lanes));
    const unsigned odd = __ballot_sync(0xffffffff, i < n && x[i] % 2 != 0);
    if (lane == 0) {
        sums[warp] = sum;
        atomicMax(result + 2, greatest);
        atomicAdd(result + 3, __popc(odd));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; ++w) sums[0] += sums[w];
        atomicAdd(result, sums[0]);
    }
    if (i < n) atomicMin(result + 1, x[i]);
}

extern "C" __global__ void half_a_warp() {
    if (threadIdx.x < 16) __syncwarp();
}
"""

PTX = """
extern "C" __global__ void ptx(int* result, int a, int b, int c) {
    int least;
    asm("{\\n\\t.reg .s32 sum;\\n\\t"
        "add.s32 sum, %1, %2;\\n\\t"
        "min.s32 %0, sum, %3;\\n\\t}"
        : "=r"(least) : "r"(a), "r"(min(b, (b + 1))), "r"(c));
    asm volatile("min.s32 %0, %0, 77;" : "+r"(least));
    result[threadIdx.x] = least;
}
"""


def test_warps_atomics_and_dynamic_shared_memory(cupy):
    x = np.random.default_rng(0).integers(-99, 99, 300, dtype=np.int32)
    kernel = cupy.RawModule(code=WARPS, options=()).get_function("statistics")
    for seed in SEEDS:
        cupy.start(seed)
        result = cupy.asarray(np.array([0, 1000, -1000, 0], np.int32))
        kernel((4,), (96,), (result, cupy.asarray(x), np.int32(300)), shared_mem=12)
        assert result.tolist() == [x.sum(), x.min(), x.max(), (x % 2 != 0).sum()]


def test_inline_ptx(cupy):
    kernel = cupy.RawModule(code=PTX, options=()).get_function("ptx")
    result = cupy.empty((3,), np.int32)
    for a, b, c in (1, 2, 4), (1, 2, 2), (-1, -2, 0), (50, 50, 1000):
        kernel((1,), (3,), (result, *map(np.int32, (a, b, c))))
        assert result.tolist() == [min(a + b, c, 77)] * 3


def test_misuse_is_an_error(cupy):
    one, result = np.int32(1), cupy.empty((3,), np.int32)
    ptx = cupy.RawModule(code=PTX, options=()).get_function("ptx")
    with pytest.raises(cupy.KernelError, match="ptx takes p8i4i4i4 and was given p8i4i4i8"):
        ptx((1,), (3,), (result, one, one, np.int64(1)))
    with pytest.raises(cupy.KernelError, match="49152 bytes of shared memory"):
        ptx((1,), (3,), (result, one, one, one), shared_mem=50_000)
    with pytest.raises(cupy.KernelError, match="1 to 1024 threads"):
        ptx((1,), (1025,), (result, one, one, one))
    with pytest.raises(cupy.KernelError, match="ptx stored beyond the ends of an array"):
        ptx((1,), (4,), (result, one, one, one))
    half_a_warp = cupy.RawModule(code=WARPS, options=()).get_function("half_a_warp")
    with pytest.raises(cupy.KernelError, match="thread 0 waits at __syncwarp, thread 16 has ended"):
        half_a_warp((1,), (32,), ())
    with pytest.raises(RuntimeError, match="ptx_no_such_instruction"):
        cupy.RawModule(code='extern "C" __global__ void f() { asm("no.such.instruction;"); }', options=())
