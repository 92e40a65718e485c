"""Distances that come too near to infinity are refused, and no others."""

import numpy as np
import pytest

from gpuops.errors import WeightRangeError
from pipelines.stores.graph_writer import write_graph
from pipelines.validation.bounds import distances_fit, refuse_overflow

LIMITS = {"int16": 2**13, "int32": 2**29}  # the first that is no distance; infinity is 2 * this - 1
limits = pytest.mark.parametrize(("dtype", "limit"), LIMITS.items())


@limits
def test_every_sum_from_the_limit_to_infinity_is_refused(xp, dtype, limit):
    fits = [0, 1, limit - 2, limit - 1, 2 * limit - 1]
    refuse_overflow(xp.asarray(np.array([fits], dtype)), np.dtype(dtype))
    for too_much in (limit, limit + 1, 2 * limit - 3, 2 * limit - 2):
        with pytest.raises(WeightRangeError, match=f"exceeds {limit - 1:,}, the most that {dtype} holds"):
            refuse_overflow(xp.asarray(np.array([*fits, too_much], dtype)), np.dtype(dtype))


@limits
def test_what_is_proven_to_fit_ends_at_the_limit(tmp_path, dtype, limit):
    """A path of two arcs, in all as long as there can be one. Negative weights take room for potentials."""

    def fits(*weights):
        path = tmp_path / str(weights)
        graph = write_graph(path, np.array([0, 1, 2, 2]), np.array([1, 2]), np.array(weights, "int64"))
        return distances_fit(graph, np.dtype(dtype))

    assert fits(1, limit - 2)
    assert not fits(1, limit - 1)  # the run will tell
    assert fits(-1, limit // 4 - 2)
    for weights in (0, limit), (-1, limit // 4 - 1):
        with pytest.raises(WeightRangeError, match="distances may reach"):
            fits(*weights)
