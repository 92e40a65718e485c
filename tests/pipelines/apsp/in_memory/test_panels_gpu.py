"""Pivot rows from GPU to GPU: the bits of one GPU, whoever is killed on the way, and device memory back afterwards."""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from pipeline_fixtures import kill_at

from pipelines import all_pairs_shortest_paths
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.graph_writer import write_graph

pytestmark = pytest.mark.multigpu
N, BLOCK = 8000, 1000  # a row panel is 32 MB, a ring 96
KEPT = range(0, N, 16)  # rows of every band; to write and read whole matrices takes longer than to make them
SPARE = 48 << 20  # what a process may keep after its first run, less than a ring


def random_graph(path, n, dtype, signed=False, **facts):
    rng = np.random.default_rng(n)
    indptr = np.arange(0, 8 * n + 1, 8)
    indices, weights = rng.integers(0, n, 8 * n), rng.integers(0, 10_000, 8 * n)
    if signed:
        potential = rng.integers(0, 5_000, n)
        weights = weights + potential[np.repeat(np.arange(n), 8)] - potential[indices]
    return write_graph(path, indptr, indices, (weights / 7).astype(dtype) if dtype == "float32" else weights, **facts)


def solved(client, graph, out, workers, **options):
    return all_pairs_shortest_paths(
        client, graph, out, method="floyd-warshall", workers=workers, overwrite=True, **options
    )[:]


def some_rows(client, graph, out, workers):
    return solved(client, graph, out, workers, block=BLOCK, sources=KEPT)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("kind", ["plain", "closed", "signed"])
def test_two_gpus_give_the_bits_of_one_and_say_how(two_gpus, tmp_path, capsys, dtype, kind):
    n = 3000
    facts = {"through": np.random.default_rng(1).random(n) < 0.8} if kind == "closed" else {}
    graph = random_graph(tmp_path / "g", n, dtype, signed=kind == "signed", **facts)
    one = solved(two_gpus, graph, tmp_path / "d", 1)
    capsys.readouterr()
    two = solved(two_gpus, graph, tmp_path / "d", 2, progress=True, verify=True)
    np.testing.assert_array_equal(one, two)
    assert "pivot rows go straight from GPU to GPU" in capsys.readouterr().err


def free_bytes():
    """The GPU of a worker, and how much of it is free."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    return cupy.cuda.runtime.deviceGetPCIBusId(0), cupy.cuda.runtime.memGetInfo()[0]


def assert_memory_is_back(client, before):
    deadline = time.monotonic() + 60
    while True:
        now = dict(client.run(free_bytes).values())
        if now.keys() == before.keys() and all(now[gpu] > free - SPARE for gpu, free in before.items()):
            return
        assert time.monotonic() < deadline, f"free before: {before}, now: {now}"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def large(two_gpus, tmp_path_factory):
    """A graph, the seconds it takes, and some of its distances as one GPU finds them."""
    folder = tmp_path_factory.mktemp("large")
    graph = random_graph(folder / "g", N, "float32")
    want = some_rows(two_gpus, graph, folder / "d", 1)
    some_rows(two_gpus, graph, folder / "d", 2)
    began = time.monotonic()
    some_rows(two_gpus, graph, folder / "d", 2)
    return graph, time.monotonic() - began, want


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_a_killed_worker_changes_no_bit_and_keeps_no_memory(two_gpus, large, tmp_path, kills):
    graph, seconds, want = large
    rng = random.Random(kills)
    before = dict(two_gpus.run(free_bytes).values())
    for kill in range(kills):
        victim = rng.choice(sorted(two_gpus.run(os.getpid).values()))
        murder = threading.Timer(rng.uniform(0, seconds), os.kill, (victim, signal.SIGKILL))
        murder.start()
        found = some_rows(two_gpus, graph, tmp_path / "d", 2)
        murder.join()
        np.testing.assert_array_equal(found, want, err_msg=f"kill {kill}")
        two_gpus.wait_for_workers(2, timeout=120)
        some_rows(two_gpus, graph, tmp_path / "d", 2)  # so that the new process has loaded what the old one had
        assert_memory_is_back(two_gpus, before)


RUN = """
import sys
import pipelines.apsp.commits
from clusters import start
from pipelines import all_pairs_shortest_paths
pipelines.apsp.commits.COMMIT_SHARE = float("inf")  # commit at every stage
if __name__ == "__main__":
    with start(device="gpu", workers=2) as client:
        all_pairs_shortest_paths(
            client, sys.argv[1], sys.argv[2], method="floyd-warshall", workers=2, commit_seconds=0, block=BLOCK,
            sources=KEPT,
        )
""".replace("BLOCK", str(BLOCK)).replace("KEPT", str(KEPT))


@pytest.mark.timeout(600)
def test_a_killed_run_resumes_with_the_same_bits_and_keeps_no_memory(two_gpus, large, tmp_path):
    graph, _, want = large
    before, out = dict(two_gpus.run(free_bytes).values()), tmp_path / "killed"
    kill_at(3, DistancesWriter.begun, RUN, graph.path, out)
    found = all_pairs_shortest_paths(two_gpus, graph, out, workers=2, sources=KEPT, resume=True)[:]
    np.testing.assert_array_equal(found, want)
    assert_memory_is_back(two_gpus, before)
