"""Tables of a cut graph that no graph needs to have: random lengths, for the kernels of the boundary method."""

import numpy as np

from gpuops.boundary import ClosedParts
from gpuops.numbers import infinity


def random_parts(seed, sizes, boundaries, dtype, lowest=0):
    """Tables with lengths that round when they are added, a third of them infinite; no graph needs to have them."""
    rng = np.random.default_rng(seed)
    sizes, boundaries = np.array(sizes), np.array(boundaries)
    p, b, total = max(1, sizes.max()), max(1, boundaries.max()), boundaries.sum()

    def table(*shape):
        values = rng.integers(lowest, 1000, shape).astype(dtype)
        values = values * values.dtype.type(0.37) if values.dtype.kind == "f" else values
        values[rng.random(shape) < 0.3] = infinity(dtype)
        return values

    tables = [table(len(sizes), p, b), table(len(sizes), b, p), table(len(sizes), p, p), table(total, total)]
    for k, boundary in enumerate(boundaries):
        tables[0][k, :, boundary:] = infinity(dtype)
        tables[1][k, boundary:] = infinity(dtype)
    part = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.int32)
    place = np.empty(len(part), np.int32)
    for k in range(len(sizes)):
        place[part == k] = rng.permutation(sizes[k])
    return ClosedParts(part, place, boundaries, *tables)
