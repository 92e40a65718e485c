import numpy as np
import pytest
from families import usual
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuops import minplus_product, minplus_update
from gpuops.arrays import on_host
from gpuops.minplus import pack, relax_each
from gpuops.numbers import DISTANCE_DTYPES, infinity

dtypes = pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)

# Below, at and above the tiles of both halves, several slabs deep, and more than one task of the CPU half.
SHAPES = [
    (1, 1, 1),
    (2, 1, 3),
    (31, 33, 2),
    (63, 65, 127),
    (129, 127, 65),
    (64, 256, 32),
    (257, 33, 16),
    (5, 1000, 257),
    (1000, 31, 33),
    (300, 1300, 150),
]


def reference(c, a, b):
    result = c + c.dtype.type(0)
    for p in range(a.shape[1]):
        np.minimum(result, a[:, p, None] + b[p], out=result)
    return result


def random_matrix(rng, shape, dtype, lowest=0):
    """Lengths that round when they are added in floating point, a third of them infinite."""
    values = rng.integers(lowest, 1000, shape).astype(dtype)
    if values.dtype.kind == "f":
        values = values * values.dtype.type(0.37)
    return np.where(rng.random(shape) < 0.3, infinity(dtype), values)


def random_operands(seed, m, n, p, dtype, lowest=0):
    rng = np.random.default_rng(seed)
    return [random_matrix(rng, shape, dtype, lowest) for shape in ((m, n), (m, p), (p, n))]


@dtypes
@pytest.mark.parametrize("lowest", [0, -50], ids=["nonnegative", "signed"])
@pytest.mark.parametrize(("m", "n", "p"), SHAPES)
def test_equals_rank_one_updates_in_numpy(xp, dtype, lowest, m, n, p):
    operands = random_operands(m + n + p, m, n, p, dtype, lowest)
    c, a, b = map(xp.asarray, operands)
    result = minplus_update(c, a, b)
    assert type(result) is type(c)
    # Bit for bit: a candidate is one addition, and a minimum does not round.
    np.testing.assert_array_equal(on_host(result), reference(*operands))
    for argument, operand in zip((c, a, b), operands, strict=True):
        np.testing.assert_array_equal(on_host(argument), operand)


@dtypes
@pytest.mark.parametrize(("m", "n", "p"), [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0)])
def test_empty(xp, dtype, m, n, p):
    operands = random_operands(0, m, n, p, dtype)
    c, a, b = map(xp.asarray, operands)
    np.testing.assert_array_equal(on_host(minplus_update(c, a, b)), operands[0])
    np.testing.assert_array_equal(on_host(minplus_update(c, a, b, out=c)), operands[0])


@dtypes
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_works_in_place_on_a_window_and_leaves_its_surroundings(xp, dtype, offset):
    m, n, p = 70, 141, 40
    c, a, b = random_operands(offset, m, n, p, dtype)
    # An odd row length: in int16 every second row starts in the middle of a 32-bit word.
    around = xp.asarray(random_matrix(np.random.default_rng(9), (m + 2, 151), dtype))
    window = around[1 : m + 1, offset : offset + n]
    window[...] = xp.asarray(c)
    expected = on_host(around).copy()
    expected[1 : m + 1, offset : offset + n] = reference(c, a, b)
    result = minplus_update(window, xp.asarray(a), xp.asarray(b), out=window)
    assert result is window
    np.testing.assert_array_equal(on_host(around), expected)


def strided(xp, x, layout):
    """`x` again, lying differently in memory."""
    m, n = x.shape
    if layout == "transposed":
        return xp.asarray(np.ascontiguousarray(x.T)).T
    if layout == "backwards":
        return xp.asarray(np.ascontiguousarray(x[::-1]))[::-1]
    spread = xp.asarray(np.zeros((2 * m, 3 * n), x.dtype))
    spread[::2, ::3] = xp.asarray(x)
    return spread[::2, ::3]


@dtypes
@pytest.mark.parametrize("layout", ["transposed", "backwards", "spread"])
def test_any_strides(xp, dtype, layout):
    operands = random_operands(3, 66, 35, 19, dtype)
    c, a, b = (strided(xp, x, layout) for x in operands)
    np.testing.assert_array_equal(on_host(minplus_update(c, a, b)), reference(*operands))
    minplus_update(c, a, b, out=c)
    np.testing.assert_array_equal(on_host(c), reference(*operands))


def test_read_only_operands():
    operands = random_operands(3, 20, 30, 10, "float32")
    for x in operands:
        x.flags.writeable = False
    np.testing.assert_array_equal(minplus_update(*operands), reference(*operands))


@dtypes
def test_operands_may_overlap_the_result(xp, dtype):
    n = 150
    (d,) = random_operands(4, n, n, n, dtype)[:1]
    expected = reference(d, d, d)
    x = xp.asarray(d)
    minplus_update(x, x, x, out=x)
    np.testing.assert_array_equal(on_host(x), expected)

    x = xp.asarray(d)
    expected = d.copy()
    expected[1:, 2:] = reference(d[1:, 2:], d[:-1, :70], d[30:100, :-2])
    minplus_update(x[1:, 2:], x[:-1, :70], x[30:100, :-2], out=x[1:, 2:])
    np.testing.assert_array_equal(on_host(x), expected)

    x = xp.asarray(d)  # out and c overlap without being the same
    expected = d.copy()
    expected[1:, 1:] = reference(d[:-1, :-1], d[:-1, :9], d[:9, 1:])
    minplus_update(x[:-1, :-1], x[:-1, :9], x[:9, 1:], out=x[1:, 1:])
    np.testing.assert_array_equal(on_host(x), expected)


@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
@pytest.mark.parametrize("nonnegative", [None, True, False])
def test_negative_zero_counts_as_zero(xp, dtype, nonnegative):
    zero, one = (np.full((17, 17), value, dtype) for value in (-0.0, 1.0))
    for operands in (zero, zero, zero), (zero, one, one), (one, zero, zero):
        result = on_host(minplus_update(*map(xp.asarray, operands), nonnegative=nonnegative))
        assert not result.any()
        assert not np.signbit(result).any()


@pytest.mark.parametrize("negative", [0, 1, 2], ids="cab")
def test_one_negative_value_is_seen_wherever_it_is(xp, negative):
    operands = random_operands(5, 40, 50, 60, "float32")
    operands[negative][20, 30] = -7
    result = minplus_update(*map(xp.asarray, operands))
    np.testing.assert_array_equal(on_host(result), reference(*operands))
    result = minplus_update(*map(xp.asarray, operands), nonnegative=False)
    np.testing.assert_array_equal(on_host(result), reference(*operands))


@pytest.mark.parametrize("dtype", ["int32", "int16"])
def test_integer_sums_do_not_wrap(xp, dtype):
    inf = infinity(dtype)
    c, a, b = (np.full((33, 33), inf, dtype) for _ in range(3))
    a[::2], b[:, ::2] = -(inf // 4) + 1, inf // 4 - 1
    result = on_host(minplus_update(*map(xp.asarray, (c, a, b))))
    np.testing.assert_array_equal(result, reference(c, a, b))
    assert (result[1::2, 1::2] == inf).all()
    assert result.max() <= inf


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(*[st.integers(0, 40)] * 3),
    st.sampled_from(DISTANCE_DTYPES),
    st.integers(-9, 0),
    st.integers(0, 2**32 - 1),
)
def test_small_shapes(shape, dtype, lowest, seed):
    operands = random_operands(seed, *shape, dtype, lowest)
    np.testing.assert_array_equal(minplus_update(*operands), reference(*operands))


def test_on_another_stream(xp):
    if xp is np:
        pytest.skip("NumPy has no streams")
    operands = random_operands(6, 200, 300, 100, "float32")
    with xp.cuda.Stream(non_blocking=True) as stream:
        result = minplus_update(*map(xp.asarray, operands))
        stream.synchronize()
    np.testing.assert_array_equal(on_host(result), reference(*operands))


def test_errors_name_the_argument():
    c, a, b = random_operands(0, 4, 5, 3, "float32")
    with pytest.raises(ValueError, match=r"b has shape \(5, 3\).*must be \(3, 5\)"):
        minplus_update(c, a, b.T)
    with pytest.raises(ValueError, match=r"out has shape"):
        minplus_update(c, a, b, out=a)
    with pytest.raises(ValueError, match="a has 1 dimension"):
        minplus_update(c, a[0], b)
    with pytest.raises(TypeError, match="c is float32 and b is float64"):
        minplus_update(c, a, b.astype("float64"))
    with pytest.raises(TypeError, match="not int64"):
        minplus_update(*(x.astype("int64") for x in (np.zeros_like(c), np.zeros_like(a), np.zeros_like(b))))
    with pytest.raises(TypeError, match="c is a list"):
        minplus_update(c.tolist(), a, b)


def test_numpy_and_cupy_do_not_mix(xp):
    if xp is np:
        pytest.skip("needs CuPy")
    c, a, b = random_operands(0, 4, 5, 3, "float32")
    with pytest.raises(TypeError, match=r"NumPy and of CuPy.*asarray"):
        minplus_update(c, xp.asarray(a), b)


@pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)
@pytest.mark.parametrize("shape", [(3, 0, 5), (0, 2, 4), (65, 31, 129), (1, 200, 1)])
def test_a_product_of_its_own_is_at_most_infinity(xp, dtype, shape):
    (m, p, n), rng = shape, np.random.default_rng(1)
    a, b = (rng.integers(0, 50, size).astype(dtype) for size in ((m, p), (p, n)))
    for matrix in a, b:
        matrix[rng.random(matrix.shape) < 0.3] = infinity(dtype)
    expected = np.full((m, n), float(infinity(dtype)))
    for k in range(p):
        np.minimum(expected, a[:, k, None].astype(float) + b[k].astype(float), out=expected)
    found = minplus_product(xp.asarray(a), xp.asarray(b))
    np.testing.assert_array_equal(on_host(found), expected)
    out = xp.zeros((m, n), dtype)
    assert minplus_product(xp.asarray(a), xp.asarray(b), out=out) is out
    np.testing.assert_array_equal(on_host(out), expected)


def test_a_product_may_overwrite_its_operands(xp):
    d = np.random.default_rng(2).integers(0, 99, (40, 40)).astype("int32")
    expected, there = minplus_product(d, d), xp.asarray(d)
    np.testing.assert_array_equal(on_host(minplus_product(there, there, out=there)), expected)


def test_shapes_of_products_that_do_not_fit_are_refused():
    a = np.zeros((2, 3), "float32")
    with pytest.raises(ValueError, match="it must have 3 rows"):
        minplus_product(a, a)
    with pytest.raises(ValueError, match=r"it must be \(2, 2\)"):
        minplus_product(a, a.T, out=a)


@pytest.mark.parametrize("rows", [0, 700])
def test_what_is_done_beside_a_product_is_done_once(rows):
    """Also where there is no product, as in the last stages of Floyd-Warshall."""
    rng = np.random.default_rng(rows)
    c, a, b = (rng.random(shape, np.float32) for shape in ((rows, 900), (rows, 64), (64, 900)))
    expected, calls = minplus_update(c, a, b), []
    relax_each([(c[:300], a[:300]), (c[300:], a[300:])], pack(b, True), lambda: calls.append(1))
    np.testing.assert_array_equal(c, expected)
    assert calls == [1]
