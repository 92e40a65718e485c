"""Rows of distances from closed parts on a GPU: bit for bit those of the CPU."""

import numpy as np
import pytest
from closed_parts import random_parts

from gpuops.boundary import boundary_distances
from gpuops.numbers import DISTANCE_DTYPES, distance_limit, infinity

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy():
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    return cupy


@pytest.mark.parametrize("dtype", DISTANCE_DTYPES, ids=str)
@pytest.mark.parametrize("lowest", [0, -50], ids=["nonnegative", "signed"])
@pytest.mark.parametrize("most", [40, 90], ids=["strips", "tiles"])
def test_equals_the_cpu(cupy, dtype, lowest, most):
    rng = np.random.default_rng(3)
    sizes = rng.integers(100, 400, 30)
    parts = random_parts(1, sizes, rng.integers(0, most, 30), dtype, lowest)
    n = len(parts.part)
    on_gpu = parts.on_gpu()
    for sources, targets in (
        (np.arange(n), np.arange(n)),
        (rng.integers(0, n, 700), rng.integers(0, n, 1999)),
        (rng.integers(0, n, 3), np.arange(n)),
    ):
        around = cupy.full((len(sources) + 1, len(targets) + 5), 7, dtype)  # rows of any alignment
        boundary_distances(on_gpu, sources, targets, out=around[1:, 2:-3])
        expected = np.full(around.shape, 7, dtype)
        expected[1:, 2:-3] = boundary_distances(parts, sources, targets)
        np.testing.assert_array_equal(finite(around.get()), finite(expected))


def finite(distances):
    """How far below infinity an unreachable integer ends is not said."""
    if distances.dtype.kind == "f":
        return distances
    return np.where(distances >= distance_limit(distances.dtype), infinity(distances.dtype), distances)
