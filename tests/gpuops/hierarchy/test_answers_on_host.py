"""The kernels of answers from a hierarchy on the host (host_shim/): bit for bit what the CPU answers."""

import numpy as np
import pytest
from families import SLOW
from road_graphs import hierarchy_of, random_graph

from gpuops import distance_block, distance_rows
from gpuops.numbers import DISTANCE_DTYPES

BRICKS = 1, 12, 1024


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start()
    return host_shim


def check(hierarchy, rng, most=40):
    n = len(hierarchy.structure.order)
    there = hierarchy.on_gpu()
    origins, ends = (rng.integers(0, n, rng.integers(1, most)) for _ in range(2))
    for found, expected in (
        (distance_block(there, origins, ends), distance_block(hierarchy, origins, ends)),
        (distance_rows(there, origins[:1]), distance_rows(hierarchy, origins[:1])),
        (distance_rows(there, np.arange(n)[::-1]), distance_rows(hierarchy, np.arange(n)[::-1])),
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.get().view(f"i{found.itemsize}"), expected.view(f"i{found.itemsize}"))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "dtype", [d if d == "int32" else pytest.param(d, marks=SLOW) for d in map(str, DISTANCE_DTYPES)]
)
def test_random_graphs(dtype, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, closed=seed % 3 == 1, negative=seed % 4 == 2, undirected=seed % 2 == 0)
    if not graph.n:
        return
    if np.dtype(dtype).kind == "f" and not (graph.weights < 0).any():
        graph = graph._replace(weights=rng.random(len(graph.weights)))
    order = rng.permutation(graph.n) if rng.random() < 0.3 else None
    check(hierarchy_of(graph, dtype, brick=BRICKS[seed // 2 % 3], order=order), rng)
