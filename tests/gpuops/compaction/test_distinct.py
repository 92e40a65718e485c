"""Distinct values, compaction and prefix sums against NumPy's, and against sets and dictionaries."""

import numpy as np
import pytest
from families import usual

from gpuops import compact, distinct, exclusive_scan, inclusive_scan
from gpuops.arrays import on_host
from gpuops.compaction import compaction_numba

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
dtypes = pytest.mark.parametrize("dtype", usual(["bool", *INTEGERS, *FLOATS]))


def numbers(seed, n, dtype, kind):
    """Of a small range, of all there are, and of a small range with a few far away."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(n) < 0.5
    if dtype in FLOATS:
        x = (rng.standard_normal(n) * {"near": 2, "all": 1000, "mixed": 1}[kind]).astype(dtype)
        if kind != "all":
            x = np.round(x)
            x[rng.random(n) < 0.1] = np.nan
            x[rng.random(n) < 0.1] = -0.0
            x[rng.random(n) < 0.02] = -np.inf
        return x
    limits = np.iinfo(dtype)
    low, high = (limits.min, limits.max) if kind == "all" else (max(limits.min, -60), 60)
    x = rng.integers(low, high, n, dtype, endpoint=True)
    if kind == "mixed":
        x[n // 2], x[n // 3] = limits.max, limits.min
    return x


def expected(x, order):
    values, places, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    if order == "value":
        return values, counts, inverse
    by_place = np.argsort(places)
    return values[by_place], counts[by_place], np.argsort(by_place)[inverse]


def check(x, host, order, counts=True, inverse=True):
    found = distinct(x, return_counts=counts, return_inverse=inverse, order=order)
    values, expected_counts, expected_inverse = expected(host, order)
    assert found.values.dtype == host.dtype
    np.testing.assert_array_equal(on_host(found.values), values)
    for result, wanted, right in (found.counts, counts, expected_counts), (found.inverse, inverse, expected_inverse):
        assert (result is not None) == wanted
        if wanted:
            assert result.dtype == np.int64
            np.testing.assert_array_equal(on_host(result), right)


@dtypes
@pytest.mark.parametrize("kind", ["near", "all", "mixed"])
def test_against_numpy(xp, dtype, kind):
    for n in 1, 2, 700, 70_000:
        x = numbers(n, n, dtype, kind)
        for order in "value", "first":
            check(xp.asarray(x), x, order)
    for order in "value", "first":
        for counts, inverse in (False, False), (False, True), (True, False):
            check(xp.asarray(x), x, order, counts, inverse)


def test_the_order_of_a_set_and_of_a_dictionary(xp):
    x = numbers(5, 5000, "int32", "near")
    assert on_host(distinct(xp.asarray(x)).values).tolist() == sorted(set(x.tolist()))
    assert on_host(distinct(xp.asarray(x), order="first").values).tolist() == list(dict.fromkeys(x.tolist()))


def test_a_range_that_a_sample_does_not_show(xp):
    x = np.full(300_000, 7, "int64")
    for far in 5000, -5000, 2**62, -(2**63), 2**63 - 1:
        x[12_345] = far
        check(xp.asarray(x), x, "value")
        check(xp.asarray(x), x, "first")


def test_most_values_in_a_small_part_of_the_range(xp):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**40, 400_000)
    x[7], x[70] = 2**62, -(2**62)
    check(xp.asarray(x), x, "value")
    x[x < 2**39] = 2**39  # and half of them are one
    check(xp.asarray(x), x, "first")


@pytest.mark.parametrize("dtype", usual(FLOATS))
def test_zeros_are_one_value_and_nan_is_one(xp, dtype):
    unsigned = f"u{np.dtype(dtype).itemsize}"
    x = np.array([-0.0, np.nan, 0.0, 1, -1, np.inf, -np.inf, -0.0, np.nan], dtype)
    x.view(unsigned)[1] += 1  # another NaN
    x[8] = -x[8]  # one with a sign
    found = distinct(xp.asarray(x), return_counts=True, return_inverse=True)
    values = on_host(found.values)
    np.testing.assert_array_equal(values, [-np.inf, -1, 0, 1, np.inf, np.nan])
    assert not np.signbit(values[2])
    assert values.view(unsigned)[-1] == np.array(np.nan, dtype).view(unsigned)
    assert on_host(found.counts).tolist() == [1, 1, 3, 1, 1, 2]
    assert on_host(found.inverse).tolist() == [2, 5, 2, 3, 1, 4, 0, 2, 5]
    first = on_host(distinct(xp.asarray(x), order="first").values)
    np.testing.assert_array_equal(first, [0, np.nan, 1, -1, np.inf, -np.inf])
    assert not np.signbit(first[0])


@dtypes
def test_nothing_one_element_and_all_equal(xp, dtype):
    for order in "value", "first":
        nothing = distinct(xp.empty(0, dtype), return_counts=True, return_inverse=True, order=order)
        assert [(len(x), x.dtype) for x in nothing] == [(0, np.dtype(dtype)), (0, np.int64), (0, np.int64)]
        for n in 1, 100_000:
            found = distinct(xp.ones(n, dtype), return_counts=True, return_inverse=True, order=order)
            assert (int(found.values[0]), len(found.values), int(found.counts[0])) == (1, 1, n)
            assert not on_host(found.inverse).any()


def test_views(xp):
    x = numbers(1, 3000, "int32", "near")
    np.testing.assert_array_equal(on_host(distinct(xp.asarray(x)[::-3]).values), np.unique(x[::-3]))
    keep = x > 0
    np.testing.assert_array_equal(on_host(compact(xp.asarray(x)[::2], xp.asarray(keep)[::2])), x[::2][keep[::2]])
    np.testing.assert_array_equal(on_host(inclusive_scan(xp.asarray(x)[::-2])), np.cumsum(x[::-2]))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, "complex64", "datetime64[ns]"])
def test_compaction(xp, dtype):
    if dtype.startswith("datetime") and xp is not np:
        pytest.skip("CuPy has no dates")
    rng = np.random.default_rng(3)
    for n in 0, 1, 31, 3073, 200_000:
        x = rng.integers(0, 100, n).astype(dtype)
        for share in 0, 0.001, 0.5, 1:
            keep = rng.random(n) < share
            found = compact(xp.asarray(x), xp.asarray(keep))
            assert found.dtype == x.dtype
            np.testing.assert_array_equal(on_host(found), x[keep])


@pytest.mark.parametrize("dtype", usual(["bool", *INTEGERS]))
def test_scans_of_integers(xp, dtype):
    for n in 0, 1, 7, 65_536, 65_537, 300_000:
        x = numbers(n, n, dtype, "all")
        sums = np.cumsum(x)
        found = inclusive_scan(xp.asarray(x))
        assert found.dtype == (np.uint64 if dtype.startswith("u") else np.int64)
        np.testing.assert_array_equal(on_host(found), sums)
        np.testing.assert_array_equal(on_host(exclusive_scan(xp.asarray(x))), [0, *sums[:-1]][:n])


@pytest.mark.parametrize("few", [0, 99])
def test_scans_by_many_threads_and_by_one(monkeypatch, few):
    monkeypatch.setattr(compaction_numba, "_FEW", few)
    x = numbers(2, 200_000, "int64", "all")
    np.testing.assert_array_equal(inclusive_scan(x), np.cumsum(x))
    np.testing.assert_array_equal(exclusive_scan(x), np.cumsum(x) - x)
    assert exclusive_scan(x[:0]).tolist() == []


@pytest.mark.parametrize("dtype", usual(FLOATS[1:]))
def test_scans_of_floats(xp, dtype):
    x = np.random.default_rng(0).random(300_000).astype(dtype)
    sums = np.cumsum(x.astype("float64"))
    for found, right in (inclusive_scan(xp.asarray(x)), sums), (exclusive_scan(xp.asarray(x)), sums - x):
        assert found.dtype == dtype
        # Blocks of 2^16 are added up one after the other, each addition rounds by half an ulp at most.
        error = (2**16 + 10) * np.finfo(dtype).eps / 2 * sums[-1] if xp is np else 1e-3 * sums[-1]
        assert (abs(on_host(found) - right) <= error).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: distinct([1, 2]), TypeError, "x is a list; pass a NumPy or a CuPy array"),
        (lambda: distinct(np.ones((2, 2))), ValueError, "x has 2 dimensions"),
        (lambda: distinct(np.ones(2), order="last"), ValueError, "there is no order 'last'; choose value or first"),
        (lambda: distinct(np.ones(2, "complex64")), TypeError, "x is complex64; pass bool, integers"),
        (lambda: distinct(np.array(["a"])), TypeError, "x is <U1; pass bool, integers"),
        (lambda: distinct(np.ones(2, ">i4")), TypeError, "byte order of other machines"),
        (lambda: inclusive_scan(np.ones(2, "float16")), TypeError, "convert it to float32"),
        (lambda: compact(np.ones(2), np.ones(2)), TypeError, "keep is float64; pass a mask of bool"),
        (lambda: compact(np.ones(2), np.ones(3, bool)), ValueError, "x has 2 elements and keep has 3"),
        (lambda: compact(np.ones(2, "complex128"), np.ones(2, bool)), TypeError, "elements of 1, 2, 4 or 8 bytes"),
        (lambda: compact(np.array([None]), np.ones(1, bool)), TypeError, "x is object"),
    ],
)
def test_misuse_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.gpu
def test_more_elements_than_32_bits_count(gpu):
    n = 2**31 + 2**20
    x = gpu.zeros(n, "int8")
    x[-1], x[2**31 + 5] = 3, -3
    found = distinct(x, return_counts=True, order="first")
    assert found.values.tolist() == [0, -3, 3]
    assert found.counts.tolist() == [n - 2, 1, 1]
    assert distinct(x).values.tolist() == [-3, 0, 3]
    assert compact(x, x != 0).tolist() == [-3, 3]


@pytest.mark.gpu
def test_scans_of_more_elements_than_32_bits_count(gpu):
    n = 2**31 + 2**20 + 3
    x = gpu.ones(n, "int8")
    x[0], x[2**31 + 7] = 5, -1
    for scan, shift in (inclusive_scan, 1), (exclusive_scan, 0):
        right = gpu.arange(shift + 4, shift + 4 + n)
        right[: 1 - shift] = 0
        right[2**31 + 8 - shift :] -= 2
        assert bool((scan(x) == right).all())


@pytest.mark.gpu
def test_sorted_values_of_more_elements_than_32_bits_count(gpu):
    n = 2**31 + 2**20 + 3
    x = gpu.arange(n, dtype="uint32") * np.uint32(2654435761)  # each once
    x[-1] = x[5]
    values = distinct(x).values
    assert len(values) == n - 1
    assert bool((values[1:] > values[:-1]).all())
