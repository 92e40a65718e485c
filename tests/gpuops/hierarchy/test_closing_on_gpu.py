"""Closing on a GPU: the tables have the bits of the CPU's, and give the distances of Floyd and Warshall."""

import numpy as np
import pytest
from closing_cases import DTYPES, FAMILIES, arrays_of, check, grid, structure_of
from road_graphs import as_floats, made, random_graph

from gpuops import close_hierarchy, distance_rows

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_has_the_bits_of_the_cpu(gpu, family, dtype, undirected):
    structure, _ = structure_of(family)
    for seed in range(2):
        check(gpu, structure, *arrays_of(made(*FAMILIES[family], undirected=undirected), dtype, seed))


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_blocks_share_wide_nodes(gpu, dtype):
    graph = made(60 * 60, grid(60, 2), undirected=False)
    structure, _ = structure_of(graph)
    for seed in range(5):
        check(gpu, structure, *arrays_of(graph, dtype, seed))


@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_floyd_and_warshall(gpu, seed):
    graph = random_graph(np.random.default_rng(seed), most=400, closed=seed % 2 == 1, undirected=seed % 3 == 0)
    structure, _ = structure_of(graph)
    indptr, indices, weights = graph.rows("int32")
    hierarchy = check(gpu, structure, indptr, indices, weights)
    np.testing.assert_array_equal(as_floats(distance_rows(hierarchy, np.arange(graph.n))), graph.distances())
    on_gpu = close_hierarchy(structure, gpu.asarray(indptr), gpu.asarray(indices), gpu.asarray(weights))
    np.testing.assert_array_equal(as_floats(distance_rows(on_gpu, np.arange(graph.n)).get()), graph.distances())
