"""The bound on integer distances, at every value beside it."""

import numpy as np
import pytest

from gpuops import floyd_warshall, minplus_update
from gpuops.arrays import on_host
from gpuops.numbers import distance_limit, infinity, outside_infinity, to_outside

LIMITS = {"int16": 2**13, "int32": 2**29}  # the first that is no distance; infinity is 2 * this - 1
limits = pytest.mark.parametrize(("dtype", "limit"), LIMITS.items())


@limits
def test_the_limit_is_half_of_infinity_rounded_up(dtype, limit):
    assert distance_limit(dtype) == limit
    assert infinity(dtype) == 2 * limit - 1


@limits
def test_every_value_below_the_limit_is_a_distance_and_no_other(xp, dtype, limit):
    distances = [-limit // 4, 0, 1, limit - 2, limit - 1]
    unreachable = [limit, limit + 1, 3 * limit // 2, 2 * limit - 2, 2 * limit - 1]
    found = on_host(to_outside(xp.asarray(np.array(distances + unreachable, dtype))))
    assert found.tolist() == distances + [outside_infinity(dtype)] * len(unreachable)


@limits
@pytest.mark.parametrize("below", [1, 2, 3])
def test_sums_just_below_the_limit_are_distances(xp, dtype, limit, below):
    """0 -> 1 -> 2, by a closure and by a product."""
    total, inside, unreachable = limit - below, infinity(dtype), outside_infinity(dtype)
    for first in (0, 1, total // 2, total):
        lengths = np.full((3, 3), inside, dtype)
        lengths[0, 1], lengths[1, 2] = first, total - first
        closed = on_host(to_outside(floyd_warshall(xp.asarray(lengths))))
        assert closed[0].tolist() == [0, first, total]
        assert (closed[[1, 2, 2], [0, 0, 1]] == unreachable).all()
        column, row = xp.asarray(lengths[:1, 1:2]), xp.asarray(lengths[1:2])
        product = on_host(to_outside(minplus_update(xp.full((1, 3), inside, dtype), column, row)))
        assert product.tolist() == [[unreachable, unreachable, total]]
