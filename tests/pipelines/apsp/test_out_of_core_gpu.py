"""Out of core on a GPU: the bits of a run in its memory, within the budget."""

import functools

import numpy as np
import pytest
from oracles import random_arcs, shifted, store_arcs

from clusters import start
from pipelines import all_pairs_shortest_paths

N, BLOCK = 1100, 64
in_core = functools.partial(all_pairs_shortest_paths, method="floyd-warshall", block=BLOCK)
out_of_core = functools.partial(all_pairs_shortest_paths, method="out-of-core", block=BLOCK)


KINDS = ["plain", "closed", "negative", "rows of sources"]
CASES = [(kind, dtype) for kind in KINDS for dtype in ("float32", "float64", "int32", "int16")]
CASES.remove(("negative", "int16"))  # holds signed distances below 2,048 only


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_the_bits_are_those_of_a_run_in_memory(gpu_client, tmp_path, kind, dtype):
    n = N
    tails, heads, weights = random_arcs(n, 5 * n, high=30)
    weights = weights.astype("float64") * (0.37 if dtype.startswith("f") else 1)
    if kind == "negative":
        weights = shifted(n, tails, heads, weights)
    through = np.random.default_rng(2).random(n) < (0.7 if kind == "closed" else 2)
    exact = "float64" if dtype.startswith("f") else "int32"
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, exact, through=through)
    sources = [n - 1, 3, 7, 70, 4] if kind == "rows of sources" else None
    want = in_core(gpu_client, graph, tmp_path / "core", dtype=dtype, sources=sources)[:]
    for share in 2, 3:
        budget = n * n * np.dtype(dtype).itemsize // share
        got = out_of_core(gpu_client, graph, tmp_path / f"{share}", dtype=dtype, sources=sources, device_memory=budget)[
            :
        ]
        np.testing.assert_array_equal(got.view(f"i{got.itemsize}"), want.view(f"i{want.itemsize}"))
        assert max(gpu_client.run(pool_bytes).values()) <= budget


def pool_bytes():
    import cupy

    return cupy.get_default_memory_pool().total_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("registered", [False, True])
def test_from_the_store_and_from_memory_that_is_registered(gpu_client, tmp_path, monkeypatch, registered):
    monkeypatch.setattr("pipelines.apsp.out_of_core.REGISTERED", registered)
    tails, heads, _ = random_arcs(N, 5 * N)
    weights = np.random.default_rng(8).random(5 * N)
    graph = store_arcs(tmp_path / "g", N, tails, heads, weights, "float64")
    want = in_core(gpu_client, graph, tmp_path / "core")[:]
    budget = {"device_memory": N * N * 2} | ({} if registered else {"host_memory": 20 * N * 4 * 64})
    got = out_of_core(gpu_client, graph, tmp_path / "out", verify=True, **budget)[:]
    np.testing.assert_array_equal(got, want)


@pytest.mark.multigpu
def test_two_gpus_give_the_bits_of_one(tmp_path):
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available() or cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("fewer than two GPUs")
    n = 3000
    tails, heads, _ = random_arcs(n, 5 * n)
    graph = store_arcs(tmp_path / "g", n, tails, heads, np.random.default_rng(8).random(5 * n), "float64")
    with start(device="gpu", workers=2) as client:
        want = in_core(client, graph, tmp_path / "core")[:]
        got = out_of_core(client, graph, tmp_path / "out", device_memory=n * n * 2, verify=True)[:]
    np.testing.assert_array_equal(got, want)
