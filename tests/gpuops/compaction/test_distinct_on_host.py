"""The kernels of distinct.cu and compaction.cu on a machine without a GPU: same text, fibers for threads (host_shim/).

Results are compared with the Numba half, which test_distinct.py compares with NumPy.
"""

import re

import numpy as np
import pytest
from families import every_kernel, not_launched, usual
from mutants import break_line

from gpuops import _scan_cuda, compact, distinct, exclusive_scan, inclusive_scan
from gpuops._cuda import GPUOPS, Program
from gpuops.compaction import compaction_cuda, distinct_cuda

INTEGERS = list(distinct_cuda._TYPES)
FLOATS = ["float16", "float32", "float64"]
COMPACTION = compaction_cuda._COMPACTIONS, compaction_cuda._HEADS, _scan_cuda._SCANS


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    with pytest.MonkeyPatch.context() as patch:
        for programs in (distinct_cuda._PROGRAMS, *COMPACTION):
            for key, program in programs.items():
                patch.setitem(programs, key, program.variant(threads=64))
        patch.setattr(distinct_cuda, "_THREADS", 64)
        patch.setattr(distinct_cuda, "_BLOCKS", 2)
        host_shim.start()
        yield host_shim


def numbers(seed, n, dtype, kind):
    rng = np.random.default_rng(seed)
    if dtype in FLOATS:
        x = np.round(rng.standard_normal(n) * {"near": 2, "all": 300}[kind]).astype(dtype)
        x[rng.random(n) < 0.1] = -0.0
        x[rng.random(n) < 0.1] = np.nan
        x[rng.random(n) < 0.1] = -np.inf
        return x
    limits = np.iinfo(dtype)
    low, high = (limits.min, limits.max) if kind == "all" else (max(limits.min, -60), 60)
    return rng.integers(low, high, n, dtype, endpoint=True)


def assert_same(found, expected):
    for result, right in zip(found, expected, strict=True):
        assert (result is None) == (right is None)
        if right is not None:
            assert result.dtype == right.dtype
            np.testing.assert_array_equal(np.asarray(result), right)


def check_distinct(cupy, x, order, counts, inverse):
    options = {"return_counts": counts, "return_inverse": inverse, "order": order}
    assert_same(distinct(cupy.asarray(x), **options), distinct(x, **options))


@pytest.mark.parametrize("dtype", usual(["int8", "int32", "uint64", *FLOATS]))
@pytest.mark.parametrize("kind", ["near", "all"])
def test_distinct(cupy, dtype, kind):
    for seed, n in enumerate((1, 700, 3000)):
        cupy.start(seed, 3)
        x = numbers(seed, n, dtype, kind)
        for order in "value", "first":
            check_distinct(cupy, x, order, True, True)
        check_distinct(cupy, x, "value", False, seed > 1)
        check_distinct(cupy, x, "value", True, False)


def test_tables_in_global_memory(cupy):
    cupy.start(1, 2)
    x = np.random.default_rng(0).integers(-30_000, 30_000, 5000)
    for counts in False, True:
        check_distinct(cupy, x, "value", counts, counts)


@pytest.mark.parametrize(("cached", "entry"), [(1 << 13, "flag"), (1 << 12, "heads")])
def test_a_table_that_does_not_fit_in_the_cache_is_slower_than_to_sort(cupy, monkeypatch, cached, entry):
    cupy.start(1, 2)
    monkeypatch.setattr(distinct_cuda, "_CACHED", cached)
    x = np.random.default_rng(0).integers(-25_000, 25_000, 5000)
    check_distinct(cupy, x, "value", False, False)
    assert (entry == "heads") == any(launched == "heads" for *_, launched in cupy.launched)
    cupy.launched.clear()
    check_distinct(cupy, x, "value", False, True)  # to sort places too is slower than any table
    assert not any(launched == "heads" for *_, launched in cupy.launched)


def test_a_range_that_a_sample_does_not_show(cupy):
    cupy.start(1, 2)
    x = np.full(10_000, 7, "int64")
    for far in 5000, -5000, 2**63 - 1, -(2**63):
        x[1235] = far
        check_distinct(cupy, x, "value", True, True)
        check_distinct(cupy, x, "first", False, False)


def test_nothing(cupy):
    assert_same(distinct(cupy.asarray(np.empty(0, "i4"))), distinct(np.empty(0, "i4")))
    assert len(compact(cupy.asarray(np.empty(0)), cupy.asarray(np.empty(0, bool)))) == 0


def check_compaction(cupy, seed, n, dtype):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 100, n).astype(dtype)
    for share in 0, 0.01, 0.5, 1:
        keep = rng.random(n) < share
        assert_same([compact(cupy.asarray(x), cupy.asarray(keep))], [x[keep]])


@pytest.mark.parametrize("dtype", usual(["int8", "float16", "int32", "float64"]))
def test_compaction(cupy, dtype):
    for seed, n in enumerate((1, 1023, 1024, 1025, 60 * 1024 + 5)):  # a look back is over 32 tiles
        cupy.start(seed, 3)
        check_compaction(cupy, seed, n, dtype)


def check_scans(cupy, x):
    for scan in inclusive_scan, exclusive_scan:
        assert_same([scan(cupy.asarray(x))], [scan(x)])


@pytest.mark.parametrize("dtype", usual(["bool", "int8", "uint16", "int64", "float32", "float64"]))
def test_scans(cupy, dtype):
    x = np.random.default_rng(0).integers(0, 100, 70 * 1024).astype(dtype)  # floats: sums are exact
    for seed, n in enumerate((0, 1, 1000, 1023, 1024, 1025, len(x))):
        cupy.start(seed, 3)
        check_scans(cupy, x[:n])


@pytest.mark.parametrize("dtype", usual(["int8", "int32", "float64"]))
def test_arrays_that_begin_anywhere(cupy, dtype):
    """Parts of an array, which vectors of 16 bytes do not fit."""
    cupy.start(1, 3)
    x = cupy.asarray(np.random.default_rng(0).integers(0, 100, 5000).astype(dtype))
    keep = cupy.asarray(np.random.default_rng(1).random(5000) < 0.5)
    for first in 1, 2, 3:
        for mask in keep[first:], keep[: 5000 - first]:
            assert_same([compact(x[first:], mask)], [np.asarray(x[first:])[np.asarray(mask)]])
        for scan in inclusive_scan, exclusive_scan:
            assert_same([scan(x[first:])], [scan(np.array(x[first:]))])


def test_looking_back_over_tiles_that_do_not_know_all(cupy, monkeypatch):
    """Here a block ends before the next begins; so that tiles look back further, most of them keep to themselves."""
    keep_to_themselves(monkeypatch)
    cupy.start(2, 3)
    check_compaction(cupy, 5, 100 * 1024 - 9, "int32")
    check_scans(cupy, np.random.default_rng(0).integers(-9, 9, 100 * 1024 - 9))


def keep_to_themselves(monkeypatch):
    source, alone = Program.source, "tile % 45"
    texts = {"if (lane == 0) State::store": f"if (lane == 0 && !({alone})) State::store"}
    assert all(text in source(compaction_cuda._COMPACTIONS[4]) for text in texts)

    def changed(program):
        text = source(program)
        for own, other in texts.items():
            text = text.replace(own, other)
        return text

    monkeypatch.setattr(Program, "source", changed)


def run_everything(cupy, dtypes, seeds):
    for seed in seeds:
        cupy.start(seed, 3)
        for dtype in dtypes:
            for kind in "near", "all":
                for order in "value", "first":
                    check_distinct(cupy, numbers(seed, 1500, dtype, kind), order, True, True)
                check_distinct(cupy, numbers(seed, 1500, dtype, kind), "value", False, False)
            for counts in False, True:
                once = np.random.default_rng(seed).permutation(np.arange(-128, 128)).astype(dtype)
                check_distinct(cupy, once, "value", counts, False)
            for length in 700, 640:  # of which some begin with a line of a warp
                runs = cupy.asarray(np.repeat(np.arange(4), length).astype(f"u{np.dtype(dtype).itemsize}"))
                if runs.itemsize > 1:
                    right = [np.arange(4, dtype=runs.dtype), np.arange(4) * length]
                    assert_same(compaction_cuda.heads(runs, True), right)
            far = np.full(9000, 7, dtype)
            far[1235] = np.iinfo(dtype).max
            check_distinct(cupy, far, "value", False, False)
            check_compaction(cupy, seed, 100 * 1024 - 3, dtype)
            check_scans(cupy, numbers(seed, 50 * 1024 + seed, dtype, "all"))


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start(0, 3)
    run_everything(cupy, INTEGERS if variants else ["int32"], [0])
    for dtype in FLOATS if variants else ["float32"]:
        check_distinct(cupy, numbers(0, 300, dtype, "near"), "value", True, True)
    for dtype in FLOATS[1:] if variants else ["float32"]:
        check_scans(cupy, np.arange(300, dtype=dtype))
    programs = [p for of in (distinct_cuda._PROGRAMS, *COMPACTION) for p in of.values()]
    missing = not_launched(programs, cupy.launched, variants=variants)
    # Floats are sorted as unsigned integers of their size.
    used = {None, *(distinct_cuda._PROGRAMS[np.dtype(dtype)].options for dtype in ("uint16", "uint32", "uint64"))}
    assert not [kernel for kernel in missing if kernel[1] in used or not kernel[-1].endswith("_floats")]


# Without the first two of distinct.cu a guess is bad, and a table is filled again. Without those that are left out, a
# place is poison, and to store there ends the process.
BARRIERS = {
    **{"compaction/distinct.cu": (3, 4, 5, 6), "compaction/compaction.cu": (1,)},
    **{"compaction/scan.cu": (1,), "device/runs.cuh": (), "device/tile_prefix.cuh": ()},
}
FILES = [
    *("compaction/compaction.cu", "compaction/distinct.cu", "compaction/scan.cu"),
    *("device/runs.cuh", "device/tile_prefix.cuh"),
]
REPLACED = [
    (r"__syncthreads\(\);", ""),
    (r"outside\.add\(rank\(part\[j\]\)\);", ""),
    (r"places\[place\] > \(Wide\)i", "places[place] < (Wide)i"),
    (r"atomicMin\(places \+ place", "atomicMax(places + place"),
    (r"before != mine\[l\]", "0 != mine[l]"),
    (r"lane \? of_left_lane : left", "of_left_lane"),
    (r"up_to_here - counts\)", "up_to_here)"),
    (r"line \+= of_lines", "line = of_lines"),
    (r"of_warp \+= __shfl", "of_warp = __shfl"),
    (r"sum = base \+ before_run\[l\]", "sum = before_run[l]"),
    (r"threadIdx.x % 32 \? before : 0", "before"),
    (r"whose == ALL\)", "false)"),
    (r"nearest -= 32", "nearest -= 64"),
    (r"lane <= last", "lane < last"),
    (r"bits >> 32", "(bits >> 33)"),
    (r"i \+ j < n \? x\[i \+ j\]", "i + j < n - 1 ? x[i + j]"),
    (r"if \(w < threadIdx.x / 32\) before", "before"),
    (r"up_to_here - mine", "up_to_here"),
]


def places_to_break():
    for file in FILES:
        barriers = 0
        for number, line in enumerate((GPUOPS / file).read_text().splitlines(), start=1):
            for pattern, replacement in REPLACED:
                barriers += "__syncthreads" in line and "sync" in pattern
                if re.search(pattern, line) and ("sync" not in pattern or barriers in BARRIERS[file]):
                    yield pytest.param(file, number, pattern, replacement, id=f"{file}:{number}")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "number", "pattern", "replacement"), list(places_to_break()))
def test_what_is_broken_is_caught(cupy, monkeypatch, file, number, pattern, replacement):
    break_line(monkeypatch, file, number, pattern, replacement)
    keep_to_themselves(monkeypatch)
    with pytest.raises((AssertionError, IndexError, ValueError, cupy.KernelError)):
        run_everything(cupy, ["int16"], [1, 2])
