"""The published kernels and their variants on a GPU, on small sizes, against other algorithms."""

import numpy as np
import pytest

from benchmarks.kernels import edge_sweeps as sweeps
from benchmarks.kernels import generations, sequences
from benchmarks.suites import fw_table, reduction
from gpuops import dijkstra, floyd_warshall, look_and_say
from pipelines.generators import RMat

pytestmark = pytest.mark.gpu
EVERY = [g for g in (*generations.GENERATIONS, *generations.VARIANTS) if g.on_gpu]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("variant", sweeps.VARIANTS, ids=lambda variant: variant.name)
def test_sweeps(gpu, variant, dtype):
    """Blocks of 256 threads race; every launch gives the same distances."""
    edges = sweeps.rmat_edges(gpu, RMat(14, seed=5)).of_dtype(dtype)
    laid_out = sweeps.sorted_by_segments(gpu, edges, 4096) if variant.segment_sort else edges
    source = int(edges.starts[0])
    expected = dijkstra(*(x.get() for x in sweeps.csr_of(gpu, edges)), source)[0]
    for _ in range(5):
        distances, count = sweeps.shortest_by_sweeps(gpu, laid_out, source, variant)
        np.testing.assert_array_equal(distances.get(), expected)
        assert count > 2


@pytest.mark.parametrize("generation", EVERY, ids=lambda generation: generation.name)
def test_generations(gpu, generation):
    weights = fw_table.ring_of_vertices(np, 512)
    matrix = gpu.asarray(weights)
    generation.close(matrix)
    np.testing.assert_array_equal(matrix.get(), floyd_warshall(weights))


def test_one_block_has_a_multiprocessor_for_itself(gpu):
    found = {g.name: fw_table._diagnosed(g)["blocks_per_multiprocessor"] for g in EVERY if g.kernel}
    assert found["alone"] == found["registers_alone"] == 1
    assert min(found["optimized_blocked"], found["registers"], found["staged_load"]) > 1


def test_look_and_say(gpu):
    seed = np.array([1, 1, 1, 3, 1, 2, 2, 1, 1, 3], "int8")
    found = sequences.say_with_host_filter(gpu, seed, 30)
    np.testing.assert_array_equal(found, look_and_say(seed.astype("uint8"), 30))


@pytest.mark.parametrize("threads", reduction.IN_BLOCKS)
@pytest.mark.parametrize("entry", ["two_barriers", "one_barrier"])
def test_sums_of_blocks(gpu, entry, threads):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 1 << 16).astype("int32")
    found = reduction.in_blocks(gpu, gpu.asarray(x), entry, threads)
    np.testing.assert_array_equal(found.get(), reduction.sums_of_blocks(x, threads))
