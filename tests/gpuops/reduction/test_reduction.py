"""Reductions against NumPy's, and sums against the tree as the module's docstring describes it, step by step."""

import math

import numpy as np
import pytest
from families import usual

from gpuops import butterfly_reduction
from gpuops.arrays import on_host
from gpuops.reduction import OPERATORS, REDUCTION_DTYPES

LENGTHS = [1, 2, 3, 31, 64, 100, 255, 256, 257, 4095, 4096, 4097, 70_000]

dtypes = pytest.mark.parametrize("dtype", usual(REDUCTION_DTYPES), ids=str)
floats = pytest.mark.parametrize("dtype", usual(["float32", "float64"]))


def random_numbers(seed, shape, dtype):
    """With ties; integers whose sums in int32 would wrap around."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-(2**31), 2**31, shape).astype(dtype)
    return (rng.integers(-300, 300, shape) * 0.37).astype(dtype)


def tree_sum(x):
    """Lines of 256 one after the other, columns i and i xor b, then the tiles of 4,096 the same way."""
    while True:
        tiles = math.ceil(len(x) / 4096)
        padded = np.full(tiles * 4096, -0.0, x.dtype)
        padded[: len(x)] = x
        lines = padded.reshape(tiles, 16, 256)
        columns = lines[:, 0].copy()
        for line in range(1, 16):
            columns += lines[:, line]
        for b in 128, 64, 32, 16, 8, 4, 2, 1:
            columns = columns + columns[:, np.arange(256) ^ b]
        assert (columns == columns[:, :1]).all()  # every thread has the result
        x = columns[:, 0].copy()
        if tiles == 1:
            return x[0]


@floats
def test_a_float_sum_is_the_tree_bit_for_bit(xp, dtype):
    for length in LENGTHS:
        x = random_numbers(length, length, dtype)
        result = butterfly_reduction(xp.asarray(x), "sum")
        assert result.dtype == dtype
        assert result.shape == ()
        np.testing.assert_array_equal(on_host(result).view(f"i{x.itemsize}"), tree_sum(x).view(f"i{x.itemsize}"))


@dtypes
@pytest.mark.parametrize("operator", OPERATORS)
def test_against_numpy(xp, dtype, operator):
    if operator.startswith("bitwise") and dtype.kind == "f":
        with pytest.raises(TypeError, match=f"x is {dtype}, and {operator} is for integers"):
            butterfly_reduction(xp.ones(3, dtype), operator)
        return
    function = np.prod if operator == "product" else getattr(np, operator)
    reduce = getattr(function, "reduce", function)
    for length in LENGTHS:
        x = random_numbers(length, (3, length), dtype)
        if operator in ("product", "all"):
            x[1] = np.where(x[1] == 0, 1, x[1])
        if operator == "product" and dtype.kind == "f":
            x = 1 + x / (100 * length)
        result, expected = butterfly_reduction(xp.asarray(x), operator), reduce(x, axis=-1)
        if operator == "sum" and dtype.kind == "f":
            # Up to 31 additions, each of half an ulp, of what the absolute values add up to.
            error = 31 * np.finfo(dtype).eps / 2 * np.abs(x.astype("f8")).sum(axis=-1)
            assert (abs(on_host(result) - x.astype("f8").sum(axis=-1)) <= error).all()
        elif operator == "product" and dtype.kind == "f":
            exact = x.astype("longdouble").prod(axis=-1)
            # Every rounding counts: of n factors there are n - 1, of half an ulp each.
            assert (abs(on_host(result) - exact) <= length * np.finfo(dtype).eps * exact).all()
        else:
            np.testing.assert_array_equal(on_host(result), expected)
        assert (result.dtype, result.shape) == (expected.dtype, (3,))
        alone = butterfly_reduction(xp.asarray(x[1]), operator)
        assert bool(alone == result[1])


def test_ties_go_to_the_lowest_place(xp):
    for length in 5, 300, 10_000:
        for operator, extreme in ("argmin", -2), ("argmax", 9):
            x = np.ones(length, "float32")
            x[[length - 1, length // 2, length // 2 + 1]] = extreme
            assert int(butterfly_reduction(xp.asarray(x), operator)) == length // 2


@floats
def test_zeros_of_both_signs_are_equal(xp, dtype):
    x = np.array([0.5, -0.0, 0.0, -0.0], dtype)
    least = on_host(butterfly_reduction(xp.asarray(x), "minimum"))
    assert least == 0
    assert not np.signbit(least)
    assert not np.signbit(on_host(butterfly_reduction(xp.asarray(-x), "maximum")))
    assert int(butterfly_reduction(xp.asarray(x), "argmin")) == 1
    assert int(butterfly_reduction(xp.asarray(x[::-1].copy()), "argmin")) == 0
    assert np.signbit(on_host(butterfly_reduction(xp.asarray(x[1::2]), "sum")))


@floats
def test_nan_is_the_extreme(xp, dtype):
    for length, places in (7, [3, 5]), (9000, [5000, 8999]):
        for nan in np.nan, -np.nan:
            x = random_numbers(1, length, dtype)
            x[0], x[1] = np.inf, -np.inf
            x[places] = nan
            for operator in "minimum", "maximum", "sum":
                assert np.isnan(on_host(butterfly_reduction(xp.asarray(x), operator)))
            for operator in "argmin", "argmax":
                assert int(butterfly_reduction(xp.asarray(x), operator)) == places[0]


@floats
def test_infinities(xp, dtype):
    for sign in 1, -1:
        x = np.full(500, sign * np.inf, dtype)
        for operator in "minimum", "maximum", "sum":
            assert float(butterfly_reduction(xp.asarray(x), operator)) == sign * np.inf
        for operator in "argmin", "argmax":
            assert int(butterfly_reduction(xp.asarray(x), operator)) == 0


def test_extreme_integers(xp):
    for dtype in "int32", "int64":
        limits = np.iinfo(dtype)
        x = np.array([0, limits.max, limits.min, limits.max, limits.min], dtype)
        assert [int(butterfly_reduction(xp.asarray(x), name)) for name in ("minimum", "maximum")] == [
            limits.min,
            limits.max,
        ]
        assert [int(butterfly_reduction(xp.asarray(x), name)) for name in ("argmin", "argmax")] == [2, 1]
        for value in limits.min, limits.max:
            for name in "argmin", "argmax":
                assert int(butterfly_reduction(xp.full(3, value, dtype), name)) == 0


def test_nothing_and_few_rows(xp):
    nothing = {"sum": 0, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "product": 1, "all": 1, "any": 0}
    for operator, value in nothing.items():
        assert int(butterfly_reduction(xp.empty(0, "int32"), operator)) == value
        assert butterfly_reduction(xp.empty((0, 5), "int32"), operator).shape == (0,)
        assert (butterfly_reduction(xp.empty((4, 0), "int32"), operator) == value).all()
    with pytest.raises(ValueError, match="the argmin of an empty array is undefined"):
        butterfly_reduction(xp.empty((3, 0)), "argmin")


def test_what_is_not_zero(xp):
    x = np.zeros((4, 5000), "float32")
    x[1], x[2, 4999], x[3] = np.nan, -np.inf, 5
    x[3, 77] = -0.0
    assert butterfly_reduction(xp.asarray(x), "all").tolist() == [False, True, False, False]
    assert butterfly_reduction(xp.asarray(x), "any").tolist() == [False, True, True, True]
    assert butterfly_reduction(xp.asarray(x[:, :5]), "any").tolist() == [False, True, False, True]


def test_products_of_integers_wrap_around(xp):
    x = np.full(5000, 3, "int32")
    assert int(butterfly_reduction(xp.asarray(x), "product")) == (3**5000 + 2**63) % 2**64 - 2**63


def test_the_result_in_every_element(xp):
    x = random_numbers(0, (3, 700), "int32")
    for operator in "maximum", "sum", "any":
        alone = on_host(butterfly_reduction(xp.asarray(x), operator))
        found = butterfly_reduction(xp.asarray(x), operator, everywhere=True)
        assert found.dtype == alone.dtype
        np.testing.assert_array_equal(on_host(found), np.broadcast_to(alone[:, None], x.shape))
        found[0, 0] = 0  # an array of its own
        row = butterfly_reduction(xp.asarray(x[0]), operator, everywhere=True)
        assert row.shape == (700,)
        assert bool((row == alone[0]).all())
    assert butterfly_reduction(xp.empty((2, 0), "int32"), "sum", everywhere=True).shape == (2, 0)


def test_views_of_any_strides(xp):
    x = random_numbers(0, (40, 900), "float64")
    on_device = xp.asarray(x)
    for view in np.s_[::3, 5:800:2], np.s_[::-1, ::-1], np.s_[3], np.s_[:, 7]:
        result, expected = butterfly_reduction(on_device[view], "minimum"), x[view].min(axis=-1)
        np.testing.assert_array_equal(on_host(result), expected)
    np.testing.assert_array_equal(on_host(butterfly_reduction(on_device.T, "argmax")), x.argmax(axis=0))


@pytest.mark.parametrize(
    ("x", "operator", "error", "message"),
    [
        ([1, 2], "sum", TypeError, "x is a list; pass a NumPy or a CuPy array"),
        (np.ones(3), "mean", ValueError, "there is no operator 'mean'; choose sum, minimum"),
        (np.ones(3, "int16"), "sum", TypeError, "x is int16; reductions take float32"),
        (np.ones((2, 2, 2)), "sum", ValueError, "x has 3 dimensions"),
        (np.ones(()), "sum", ValueError, "x has 0 dimensions"),
    ],
)
def test_misuse_is_named(x, operator, error, message):
    with pytest.raises(error, match=message):
        butterfly_reduction(x, operator)
