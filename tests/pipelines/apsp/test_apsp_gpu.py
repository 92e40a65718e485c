"""Floyd-Warshall on GPUs gives the CPU's answers."""

import functools

import numpy as np
import pytest

from pipelines import all_pairs_shortest_paths as by_any_method
from pipelines.stores.graph_writer import write_graph

all_pairs_shortest_paths = functools.partial(by_any_method, method="floyd-warshall")


def random_graph(path, n, dtype, seed=0, **facts):
    rng = np.random.default_rng(seed)
    degrees = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(0, n, indptr[-1])
    return write_graph(path, indptr, indices, rng.integers(0, 60, indptr[-1]).astype(dtype), **facts)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16"])
@pytest.mark.parametrize("closed", [0, 100])
def test_equals_the_cpu(gpu_client, client, tmp_path, dtype, closed):
    through = np.arange(900) >= closed
    graph = random_graph(tmp_path / "g.zarr", 900, "float32" if dtype.startswith("f") else "int32", through=through)
    want = all_pairs_shortest_paths(client, graph, tmp_path / "cpu.zarr", dtype=dtype)[:]
    for block in (None, 100):
        got = all_pairs_shortest_paths(
            gpu_client, graph, tmp_path / "gpu.zarr", dtype=dtype, block=block, verify=True, overwrite=True
        )
        np.testing.assert_array_equal(got[:], want)


@pytest.mark.gpu
def test_signed_weights_sources_and_commits(gpu_client, client, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
    graph = random_graph(tmp_path / "base.zarr", 700, "int32")
    indptr, indices, weights = graph.rows()
    potential = np.random.default_rng(2).integers(0, 30, 700)
    tails = np.repeat(np.arange(700), np.diff(indptr))
    signed = weights + potential[tails] - potential[indices]
    graph = write_graph(tmp_path / "g.zarr", indptr, indices, signed.astype("float32"))
    want = all_pairs_shortest_paths(client, graph, tmp_path / "cpu.zarr")
    got = all_pairs_shortest_paths(gpu_client, graph, tmp_path / "gpu.zarr", block=64, commit_seconds=0, verify=True)
    np.testing.assert_array_equal(got[:], want[:])
    few = all_pairs_shortest_paths(gpu_client, graph, tmp_path / "few.zarr", sources=[5, 3, 699])
    np.testing.assert_array_equal(few[:], want[:][[5, 3, 699]])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_pivot_rows_go_from_process_to_process_on_a_gpu(two_on_one_gpu, client, tmp_path, capsys, dtype):
    graph = random_graph(tmp_path / "g.zarr", 900, dtype)
    want = all_pairs_shortest_paths(client, graph, tmp_path / "cpu.zarr", block=100)[:]
    capsys.readouterr()
    got = all_pairs_shortest_paths(two_on_one_gpu, graph, tmp_path / "d", block=100, workers=2, progress=True)[:]
    np.testing.assert_array_equal(got, want)
    assert "pivot rows go straight from GPU to GPU" in capsys.readouterr().err
