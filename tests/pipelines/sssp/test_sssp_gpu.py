"""Searches on GPUs give the CPU's answers."""

import numpy as np
import pytest

from pipelines import all_pairs_shortest_paths, single_source_shortest_paths
from pipelines.stores.graph_writer import write_graph


def random_graph(path, n, dtype, *, signed=False, **facts):
    rng = np.random.default_rng(0)
    degrees = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(0, n, indptr[-1])
    weights = rng.integers(0, 60, indptr[-1])
    if signed:
        potential = rng.integers(0, 30, n)
        weights = weights + potential[np.repeat(np.arange(n), degrees)] - potential[indices]
    return write_graph(path, indptr, indices, weights.astype(dtype), **facts)


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"spread": "vertices"}, {"spread": "vertices", "piece_arcs": 3000}])
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "signed", "closed"])
def test_equals_the_cpu(gpu_client, client, tmp_path, kind, options):
    dtype = kind if kind.startswith(("f", "i")) else "int32"
    facts = {"through": np.arange(2000) % 5 != 3} if kind == "closed" else {}
    graph = random_graph(tmp_path / "g", 2000, dtype, signed=kind == "signed", **facts)
    sources = [3, 77, 1999]
    want = single_source_shortest_paths(client, graph, tmp_path / "cpu", sources)
    got = single_source_shortest_paths(gpu_client, graph, tmp_path / "gpu", sources, verify=True, **options)
    np.testing.assert_array_equal(got.distances(), want.distances())


@pytest.mark.gpu
def test_together_cutoff_targets_and_all_pairs(gpu_client, client, tmp_path):
    graph = random_graph(tmp_path / "g", 1500, "int32")
    for name, options in {
        "together": {"together": True},
        "cutoff": {"cutoff": 90},
        "targets": {"targets": [4, 900]},
        "many": {"sources": list(range(70))},
    }.items():
        options = {"sources": [0, 9, 1400], "verify": True} | options
        want = single_source_shortest_paths(client, graph, tmp_path / f"{name}-cpu", **options)
        got = single_source_shortest_paths(gpu_client, graph, tmp_path / f"{name}-gpu", **options)
        np.testing.assert_array_equal(got.distances(), want.distances())
    want = all_pairs_shortest_paths(gpu_client, graph, tmp_path / "fw", method="floyd-warshall")
    got = all_pairs_shortest_paths(gpu_client, graph, tmp_path / "batched", method="batched", verify=True)
    np.testing.assert_array_equal(got[:], want[:])


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("weight", "dtype"), [(1, "int32"), (0.1, "float64")])
def test_equal_weights_equal_the_cpu(gpu_client, client, tmp_path, directed, weight, dtype):
    rng = np.random.default_rng(1)
    tails, heads = rng.integers(0, 900, (2, 3000))
    facts = {"directed": directed, "through": np.arange(900) % 9 != 4}
    if not directed:
        tails, heads = np.concatenate((tails, heads)), np.concatenate((heads, tails))
    order = np.argsort(tails, kind="stable")
    indptr = np.searchsorted(tails[order], np.arange(901))
    graph = write_graph(tmp_path / "g", indptr, heads[order], np.full(len(tails), weight, dtype), **facts)
    options = {"sources": list(range(0, 900, 7)), "dtype": dtype}
    want = single_source_shortest_paths(client, graph, tmp_path / "cpu", **options)
    got = single_source_shortest_paths(gpu_client, graph, tmp_path / "gpu", verify=True, **options)
    np.testing.assert_array_equal(got.distances(), want.distances())
    every = [
        all_pairs_shortest_paths(users, graph, tmp_path / name, method="batched", dtype=dtype, verify=True)
        for name, users in (("all-cpu", client), ("all-gpu", gpu_client))
    ]
    np.testing.assert_array_equal(every[0][:], every[1][:])


@pytest.mark.multigpu
@pytest.mark.parametrize("spread", ["sources", "vertices"])
def test_two_gpus_give_the_bits_of_one(gpu_client, two_gpus, tmp_path, spread):
    graph = random_graph(tmp_path / "g", 20_000, "float32")
    one, two = (
        single_source_shortest_paths(
            client, graph, tmp_path / f"{len(client.nthreads())}", [5, 19_999], spread=spread, verify=True
        ).distances()
        for client in (gpu_client, two_gpus)
    )
    np.testing.assert_array_equal(one, two)
