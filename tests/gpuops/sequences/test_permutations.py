"""Permutations against itertools."""

import itertools
import math

import numpy as np
import pytest

from gpuops import next_permutation, permutation_chunks, permutation_count, permutation_rank, permutations
from gpuops.arrays import on_host

REPEATED = [
    [],
    [7],
    [1, 1, 2],
    [3, 1, 2, 1],
    [5, 5, 5],
    [1, 2, 2, 3, 3],
    [0, 0, 0, 0, 1, 1, 1, 1],
    [9, -1, 9, 4, -1, 9],
]


def arranged(values):
    return [list(row) for row in sorted(set(itertools.permutations(values)))]


def test_published_ranks(xp):
    values = xp.asarray(np.arange(5))
    assert permutations(values, 5, 1).tolist() == [[0, 1, 4, 3, 2]]
    assert permutations(values, 10, 1).tolist() == [[0, 2, 4, 1, 3]]


@pytest.mark.parametrize("values", [*REPEATED, *(list(range(n)) for n in range(2, 8))], ids=str)
def test_against_itertools(xp, values):
    expected, x = arranged(values), xp.asarray(np.array(values, "int64"))
    assert permutation_count(x) == len(expected)
    found = permutations(x)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    first = len(expected) // 3
    assert permutations(x, first).tolist() == expected[first:]
    assert permutations(x, first, 1).tolist() == expected[first : first + 1]
    assert permutations(x, len(expected)).shape == (0, len(values))


@pytest.mark.parametrize("values", REPEATED[1:], ids=str)
def test_one_after_the_other(values):
    expected = arranged(values)
    for rank, row in enumerate(expected):
        assert permutation_rank(np.array(row)) == rank
        following = next_permutation(np.array(row))
        assert (None if following is None else following.tolist()) == (expected[rank + 1 : rank + 2] or [None])[0]


def test_many_threads(xp):
    found = permutations(9) if xp is np else permutations(xp.asarray(np.arange(9, dtype="uint8")))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(on_host(found), np.array(list(itertools.permutations(range(9))), "uint8"))


@pytest.mark.parametrize("n", [12, 13, 16, 17, 20])
def test_ranks_of_many(xp, n):
    x = xp.asarray(np.arange(n, dtype="uint8"))
    for rank in 0, math.factorial(n) // 7, math.factorial(n) - 3:
        rows = on_host(permutations(x, rank, 3))
        assert [permutation_rank(row) for row in rows] == [rank, rank + 1, rank + 2]


def test_more_than_64_bits_count():
    rows = permutations(100, 10**100, 2)
    assert [permutation_rank(row) for row in rows] == [10**100, 10**100 + 1]
    assert permutation_count(np.repeat([3, 4], 200)) == math.comb(400, 200)


def test_dtypes(xp):
    for dtype in "bool", "int8", "uint8", "float32", "float64":
        values = np.array([1, 0, 1], dtype)
        found = permutations(xp.asarray(values))
        assert found.dtype == values.dtype
        assert found.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_chunks():
    parts = list(permutation_chunks(5, first=3, count=50, rows=20))
    assert [len(part) for part in parts] == [20, 20, 10]
    np.testing.assert_array_equal(np.concatenate(parts), permutations(5, 3, 50))
    assert len(next(permutation_chunks(20))) == (1 << 20) // 20  # of 2.4e18
    sizes = [len(part) for part in permutation_chunks(10)]
    assert (max(sizes), sum(sizes)) == ((1 << 20) // 10, 3_628_800)  # the first chunk is not the whole result
    assert [part.shape for part in permutation_chunks(0)] == [(1, 0)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: permutations("abc"), TypeError, "values is a str; pass a NumPy or a CuPy array"),
        (lambda: permutations(-1), ValueError, "values is -1"),
        (lambda: permutations(300), ValueError, "values has 300 different elements"),
        (lambda: permutations(4, 25), ValueError, "first is 25; ranks go from 0 to 23"),
        (lambda: permutations(4, 20, 5), ValueError, "count is 5; from rank 20 on there are 4 permutations"),
        (
            lambda: permutations(18),
            ValueError,
            "6,402,373,705,728,000 permutations of 18 elements take 102.4 PiB, and there are .* of memory; take fewer",
        ),
        (lambda: permutations(np.repeat([1, 2], 700)), ValueError, "elements take 10\\^424 B, and there are"),
        (lambda: permutation_chunks(4, rows=0), ValueError, "rows is 0"),
    ],
)
def test_misuse_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
