"""Answers from a hierarchy on a GPU: bit for bit what the CPU answers, and the distances of Floyd and Warshall."""

import numpy as np
import pytest
from answer_cases import check, compare, grid, hubs
from road_graphs import as_floats, hierarchy_of, made, random_graph

from gpuops import distance_block, distance_rows
from gpuops.numbers import DISTANCE_DTYPES

pytestmark = pytest.mark.gpu

DTYPES = [str(dtype) for dtype in DISTANCE_DTYPES]


def weighted(graph, dtype):
    if np.dtype(dtype).kind == "f":
        return graph._replace(weights=np.random.default_rng(1).random(len(graph.weights)))
    return graph


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("brick", [1, 40, 512])
def test_grids(gpu, brick, dtype, undirected):
    side = 60
    graph = made(side * side, grid(side), undirected=undirected, through=np.arange(side * side) % 9 > 0)
    hierarchy = hierarchy_of(weighted(graph, dtype), dtype, brick=brick)
    for seed in range(3):
        check(hierarchy, np.random.default_rng(seed), most=1000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(10))
def test_random_graphs(gpu, dtype, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, most=400, closed=seed % 2 == 1, negative=seed % 3 == 2, undirected=seed % 4 == 0)
    graph = graph if (graph.weights < 0).any() else weighted(graph, dtype)
    check(hierarchy_of(graph, dtype, brick=(1, 12, 1024)[seed % 3]), rng, most=300)


@pytest.mark.parametrize("seed", range(10))
def test_distances_are_those_of_floyd_and_warshall(gpu, seed):
    graph = random_graph(np.random.default_rng(seed), most=400, closed=seed % 2 == 1, undirected=seed % 3 == 0)
    found = distance_rows(hierarchy_of(graph, "int32", brick=40).on_gpu(), np.arange(graph.n))
    np.testing.assert_array_equal(as_floats(found.get()), graph.distances())


@pytest.mark.parametrize("dtype", DTYPES)
def test_closed_vertices_with_many_arcs(gpu, dtype):
    n = 500 if dtype != "int16" else 150  # longer distances do not fit
    hierarchy = hierarchy_of(weighted(hubs(n, 4), dtype), dtype, brick=40)
    compare(hierarchy, hierarchy.on_gpu(), np.arange(20), np.arange(n))


@pytest.mark.parametrize("dtype", ["int32", "int16"])
def test_distances_that_may_not_fit_are_computed_in_float64(gpu, dtype):
    hierarchy = hierarchy_of(made(64, grid(8), high=2**26 if dtype == "int32" else 2**10), dtype, brick=12)
    assert not hierarchy.fits
    check(hierarchy, np.random.default_rng(0))


def test_out_is_filled_where_it_lies(gpu):
    hierarchy = hierarchy_of(made(400, grid(20)), "int16", brick=40)
    origins, destinations = np.array([3, 7, 160]), np.arange(150)
    for first in range(9):
        around = gpu.zeros((3, 170), "int16")
        window = around[:, first : first + 150]
        assert distance_block(hierarchy.on_gpu(), origins, destinations, out=window) is window
        expected = np.zeros((3, 170), "int16")
        expected[:, first : first + 150] = distance_block(hierarchy, origins, destinations)
        np.testing.assert_array_equal(around.get(), expected)
