from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from families import usual
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import csgraph_from_dense
from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

from gpuops import NegativeCycleError, floyd_warshall
from gpuops.numbers import DISTANCE_DTYPES, distance_limit, infinity

dtypes = pytest.mark.parametrize("dtype", usual(DISTANCE_DTYPES), ids=str)

SIZES = [0, 1, 2, 31, 32, 33, 63, 65, 127, 129, 257]


def random_lengths(seed, n, negative=False):
    """Small integers, exact in every dtype; +inf where there is no arc. Mostly unreachable below 20 vertices."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 100, (n, n)).astype(float)
    if negative:
        potential = rng.integers(0, 60, n)  # d(i, j) + h(i) - h(j): no cycle changes its length
        lengths += potential[:, None] - potential
    lengths[rng.random((n, n)) < 1 - 4 / max(n, 5)] = np.inf
    return lengths


def as_dtype(xp, lengths, dtype):
    return xp.asarray(np.where(np.isinf(lengths), infinity(dtype), lengths).astype(dtype))


def as_lengths(distances):
    """Back to float64 and +inf; integers from the limit on are unreachable."""
    distances = distances if isinstance(distances, np.ndarray) else distances.get()
    if distances.dtype.kind == "f":
        return distances.astype(float)
    return np.where(distances >= distance_limit(distances.dtype), np.inf, distances)


def reference(lengths):
    lengths = lengths.copy()
    np.fill_diagonal(lengths, np.minimum(lengths.diagonal(), 0))
    if len(lengths) == 0:
        return lengths
    return scipy_floyd_warshall(csgraph_from_dense(lengths, null_value=np.inf))  # a plain 0 would mean no arc


@dtypes
@pytest.mark.parametrize("negative", [False, True], ids=["nonnegative", "signed"])
@pytest.mark.parametrize("n", SIZES)
def test_equals_scipy(xp, dtype, negative, n):
    lengths = random_lengths(n, n, negative)
    d = as_dtype(xp, lengths, dtype)
    result = floyd_warshall(d)
    assert type(result) is type(d)
    np.testing.assert_array_equal(as_lengths(result), reference(lengths))
    np.testing.assert_array_equal(as_lengths(d), lengths)


@pytest.mark.parametrize("n", [1000, 1153])
def test_several_blocks_of_every_size(xp, n):
    lengths = random_lengths(n, n, negative=True)
    np.testing.assert_array_equal(as_lengths(floyd_warshall(as_dtype(xp, lengths, "float32"))), reference(lengths))


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1025, 1408, 1500, 1920, 2048])
@pytest.mark.parametrize(("dtype", "nonnegative"), [("float32", True), ("float32", False), ("int32", False)])
def test_one_launch_and_many_give_the_same_bits(gpu, monkeypatch, n, dtype, nonnegative):
    """Closures of middle sizes, on a device as it is, and as if it had one multiprocessor."""
    rng = np.random.default_rng(n)
    d = gpu.asarray((rng.integers(1, 9999, (n, n)) * 0.37).astype(dtype))
    d[rng.random((n, n)) < 1 - 8 / n] = infinity(dtype)
    at_once = floyd_warshall(d, nonnegative=nonnegative)
    monkeypatch.setattr("gpuops.minplus.middle_closure.multiprocessors", lambda device: 1)
    assert (floyd_warshall(d, nonnegative=nonnegative) == at_once).all()


def test_rounding_stays_within_its_bound(xp):
    n = 300
    lengths = np.random.default_rng(1).random((n, n))
    result = as_lengths(floyd_warshall(xp.asarray(lengths.astype("float32"))))
    # A distance is a sum of fewer than n terms; each addition, and each term on input, rounds by half a unit.
    np.testing.assert_allclose(result, reference(lengths), rtol=n * np.finfo("float32").eps / 2)


@dtypes
def test_in_place(xp, dtype):
    n, lengths = 100, random_lengths(2, 100)
    around = xp.zeros((n + 2, n + 3), dtype)
    window = around[1:-1, 2:-1]
    window[...] = as_dtype(xp, lengths, dtype)
    assert floyd_warshall(window, out=window) is window
    np.testing.assert_array_equal(as_lengths(window), reference(lengths))
    window[...] = 0
    assert not around.any()


@pytest.mark.parametrize("order", ["transposed in place", "elsewhere", "shifted"])
def test_out_of_any_kind(xp, order):
    n, lengths = 70, random_lengths(3, 70)
    buffer = xp.zeros((n + 1, n + 1), "float32")
    d = buffer[:n, :n]
    out = {"transposed in place": d.T, "elsewhere": xp.zeros((n, n), "float32"), "shifted": buffer[1:, 1:]}[order]
    if order == "transposed in place":
        d = d.T
    d[...] = as_dtype(xp, lengths, "float32")
    assert floyd_warshall(d, out=out) is out
    np.testing.assert_array_equal(as_lengths(out), reference(lengths))


def test_diagonal_counts_as_zero(xp):
    d = xp.asarray(np.array([[5.0, 2.0], [np.inf, np.inf]], "float32"))
    np.testing.assert_array_equal(as_lengths(floyd_warshall(d)), [[0, 2], [np.inf, 0]])


def test_no_negative_zero_comes_out(xp):
    d = xp.asarray(np.full((70, 70), -0.0, "float32"))
    result = as_lengths(floyd_warshall(d))
    assert not result.any()
    assert not np.signbit(result).any()


@dtypes
@pytest.mark.parametrize("n", [1, 2, 33, 65, 200])
def test_negative_cycle_is_an_error(xp, dtype, n):
    lengths = np.full((n, n), np.inf)
    lengths[np.arange(n), (np.arange(n) + 1) % n] = 1  # one cycle through all vertices
    lengths[n - 1, 0] = -n  # of length -1
    with pytest.raises(NegativeCycleError, match="negative cycle: vertex"):
        floyd_warshall(as_dtype(xp, lengths, dtype))


@dtypes
def test_negative_cycle_is_seen_though_distances_fall_to_minus_infinity(xp, dtype):
    lengths = random_lengths(4, 300)
    lengths[lengths == 1] = -100
    with pytest.raises(NegativeCycleError):
        floyd_warshall(as_dtype(xp, lengths, dtype))


@pytest.mark.parametrize("n", [3, 70, 300])
def test_tolerance_takes_a_rounded_zero_cycle_for_zero(xp, n):
    rng = np.random.default_rng(n)
    potential, order = rng.random(n).astype("float32"), rng.permutation(n)
    lengths = np.full((n, n), np.inf, "float32")  # one cycle through all vertices, of length 0 but for rounding
    lengths[order, np.roll(order, -1)] = potential[order] - np.roll(potential[order], -1)
    lengths[order[0], order[1]] -= np.float32(1e-6)
    with pytest.raises(NegativeCycleError):
        floyd_warshall(xp.asarray(lengths))
    result = as_lengths(floyd_warshall(xp.asarray(lengths), tolerance=1e-4))
    assert (result.diagonal() == 0).all()
    # n roundings of numbers below 1, and at worst a few rounds of a cycle 1e-6 too short
    np.testing.assert_allclose(result, potential[:, None] - potential, atol=n * np.finfo("float32").eps + 1e-5)
    lengths[order[0], order[1]] -= np.float32(1e-3)
    with pytest.raises(NegativeCycleError, match="tolerance of -0.0001"):
        floyd_warshall(xp.asarray(lengths), tolerance=1e-4)


def test_rounding_of_zero_cycles_does_not_pile_up(xp):
    n = 700
    rng = np.random.default_rng(0)
    order, steps = rng.permutation(n), rng.random(n - 1).astype("float32")
    lengths = np.full((n, n), np.inf, "float32")  # a path both ways, there and back one rounding below 0
    lengths[order[:-1], order[1:]] = steps
    lengths[order[1:], order[:-1]] = np.nextafter(-steps, np.float32(-2))
    place = np.empty(n)
    place[order] = np.cumsum([0.0, *steps])
    result = as_lengths(floyd_warshall(xp.asarray(lengths), tolerance=1e-3))
    # Distances reach 350, whose last place is 3e-5. Diagonals below 0 that entered the sums would make it 1e-2.
    np.testing.assert_allclose(result, place - place[:, None], atol=1e-3)


@pytest.mark.parametrize("nonnegative", [None, True, False])
def test_every_answer_about_signs_gives_the_same(xp, nonnegative):
    lengths = random_lengths(5, 150)
    result = floyd_warshall(as_dtype(xp, lengths, "float32"), nonnegative=nonnegative)
    np.testing.assert_array_equal(as_lengths(result), reference(lengths))


def test_on_another_stream(xp):
    if xp is np:
        pytest.skip("NumPy has no streams")
    lengths = random_lengths(6, 600)
    with xp.cuda.Stream(non_blocking=True) as stream:
        result = floyd_warshall(as_dtype(xp, lengths, "float32"))
        stream.synchronize()
    np.testing.assert_array_equal(as_lengths(result), reference(lengths))


def test_threads_may_call_at_once():
    lengths = [random_lengths(seed, 400) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda x: floyd_warshall(x.astype("float32")), lengths))
    for result, x in zip(results, lengths, strict=True):
        np.testing.assert_array_equal(result, reference(x))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 24), st.sampled_from(DISTANCE_DTYPES), st.booleans(), st.integers(0, 2**32 - 1))
def test_small_graphs(n, dtype, negative, seed):
    lengths = random_lengths(seed, n, negative)
    result = floyd_warshall(as_dtype(np, lengths, dtype))
    np.testing.assert_array_equal(as_lengths(result), reference(lengths))


def test_errors_name_the_cure(xp):
    d = xp.zeros((3, 3), "float32")
    with pytest.raises(ValueError, match=r"\(n, n\) matrix"):
        floyd_warshall(d[:2])
    with pytest.raises(ValueError, match="out has shape"):
        floyd_warshall(d, out=d[:2])
    with pytest.raises(TypeError, match="convert"):
        floyd_warshall(d.astype("int64"))
    with pytest.raises(ValueError, match="tolerance"):
        floyd_warshall(d, tolerance=-1.0)
    for bad, cure in (np.nan, r"write \+inf"), (-np.inf, "finite"):
        d[1, 2] = bad
        for nonnegative in None, False:
            with pytest.raises(ValueError, match=cure):
                floyd_warshall(d, nonnegative=nonnegative)


@dtypes
@pytest.mark.parametrize(("n", "pivots"), [(1, 0), (40, 7), (90, 64), (300, 130), (300, 299)])
def test_only_pivots_lie_inside_paths(xp, dtype, n, pivots):
    lengths = random_lengths(n, n)
    expected = lengths.copy()
    np.fill_diagonal(expected, 0)
    for k in range(pivots):
        np.minimum(expected, expected[:, k, None] + expected[k], out=expected)
    result = floyd_warshall(as_dtype(xp, lengths, dtype), pivots=pivots)
    np.testing.assert_array_equal(as_lengths(result), expected)


def test_pivots_out_of_range_are_refused():
    with pytest.raises(ValueError, match="pivots is 4; with 3 vertices it must be from 0 to 3"):
        floyd_warshall(np.zeros((3, 3), "float32"), pivots=4)


# --- Batches ----------------------------------------------------------------------------------------------------------


def closed_over(lengths, inside):
    closed = lengths.copy()
    np.fill_diagonal(closed, np.minimum(closed.diagonal(), 0))
    for k in range(inside):
        np.minimum(closed, closed[:, k, None] + closed[k], out=closed)
    return closed


@dtypes
@pytest.mark.parametrize("n", [1, 31, 64, 65, 150])
@pytest.mark.parametrize("negative", [False, True], ids=["nonnegative", "signed"])
def test_a_batch_is_closed_matrix_by_matrix(xp, dtype, n, negative):
    lengths = np.stack([random_lengths(seed, n, negative) for seed in range(5)])
    d = as_dtype(xp, lengths, dtype)
    result = floyd_warshall(d)
    assert type(result) is type(d)
    np.testing.assert_array_equal(as_lengths(result), [closed_over(x, n) for x in lengths])
    np.testing.assert_array_equal(as_lengths(d), lengths)


@dtypes
@pytest.mark.parametrize("n", [40, 64, 200, 300])
def test_matrices_of_a_batch_may_differ_in_size_and_pivots(xp, dtype, n):
    rng = np.random.default_rng(n)
    sizes = np.r_[0, 1, n, n, rng.integers(1, n, 4)]
    pivots = np.r_[0, 1, n, 0, [rng.integers(0, size + 1) for size in sizes[4:]]]
    lengths = np.full((len(sizes), n, n), np.inf)
    for k, size in enumerate(sizes):
        lengths[k, :size, :size] = random_lengths(k, size)
    result = as_lengths(floyd_warshall(as_dtype(xp, lengths, dtype), sizes=sizes, pivots=pivots))
    for k, (size, inside) in enumerate(zip(sizes, pivots, strict=True)):
        expected = closed_over(lengths[k, :size, :size], inside)
        np.testing.assert_array_equal(result[k, :size, :size], expected, err_msg=str((size, inside)))


def test_a_batch_in_place_of_any_strides(xp):
    lengths = np.stack([random_lengths(seed, 70) for seed in range(3)])
    around = xp.zeros((4, 72, 73), "float32")
    window = around[1:, 1:-1, 2:-1]
    window[...] = as_dtype(xp, lengths, "float32")
    assert floyd_warshall(window, out=window) is window
    np.testing.assert_array_equal(as_lengths(window), [closed_over(x, 70) for x in lengths])
    window[...] = 0
    assert not around.any()


def test_many_matrices_and_none(xp):
    lengths = np.stack([random_lengths(seed, 5) for seed in range(200)] * 400)  # more than a grid has layers
    np.testing.assert_array_equal(
        as_lengths(floyd_warshall(as_dtype(xp, lengths, "float32")))[-200:], [closed_over(x, 5) for x in lengths[:200]]
    )
    for shape in (0, 4, 4), (3, 0, 0):
        assert floyd_warshall(xp.zeros(shape, "float32"), nonnegative=False).shape == shape


def test_a_negative_cycle_of_a_batch_names_its_matrix(xp):
    lengths = np.zeros((3, 4, 4), "int32")
    lengths[1, 2, 3] = -1
    with pytest.raises(NegativeCycleError, match="vertex . of matrix 1 reaches itself"):
        floyd_warshall(xp.asarray(lengths))


def test_batches_that_do_not_fit_are_refused():
    d = np.zeros((2, 3, 3), "float32")
    with pytest.raises(ValueError, match="sizes is 4; with 3 vertices it must be from 0 to 3"):
        floyd_warshall(d, sizes=[3, 4])
    with pytest.raises(ValueError, match="pivots is 3; with 2 vertices it must be from 0 to 2"):
        floyd_warshall(d, sizes=[3, 2], pivots=3)
    with pytest.raises(ValueError, match="sizes must be an integer for each matrix"):
        floyd_warshall(d, sizes=[3, 3, 3])
    with pytest.raises(ValueError, match="sizes are for a batch of matrices"):
        floyd_warshall(d[0], sizes=[3])
    with pytest.raises(ValueError, match=r"\(n, n\) matrix for each graph of a batch"):
        floyd_warshall(d[:, :2])
    with pytest.raises(ValueError, match="4 dimensions; pass a matrix or a batch of matrices"):
        floyd_warshall(d[None])
