"""Out of core on a GPU: the bits of a run in its memory, within the budget."""

import functools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles import random_arcs, shifted, store_arcs

from gpuops.minplus import packed_bytes
from pipelines import all_pairs_shortest_paths
from pipelines.apsp.layout import Windows
from pipelines.apsp.methods import Request
from pipelines.apsp.out_of_core.plan import estimate, needs_of
from pipelines.apsp.solve import _job
from pipelines.validation.bounds import distance_dtype
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts, within_budget
from pipelines.workers.device_arrays import mark
from pipelines.workers.host_matrix import HostMatrix
from pipelines.workers.transfers import GpuTransfers

N, BLOCK = 3000, 64
SHARES = 2, 3  # of the matrix that the GPU may hold: 1 / 2, 1 / 3
in_core = functools.partial(all_pairs_shortest_paths, method="floyd-warshall", block=BLOCK)
out_of_core = functools.partial(all_pairs_shortest_paths, method="out-of-core", block=BLOCK)


KINDS = ["plain", "closed", "negative", "rows of sources"]
CASES = [(kind, dtype) for kind in KINDS for dtype in ("float32", "float64", "int32", "int16")]
CASES.remove(("negative", "int16"))  # holds signed distances below 2,048 only


def problem(folder, kind, dtype):
    """A graph of a kind, and the sources."""
    tails, heads, weights = random_arcs(N, 5 * N, high=30)
    weights = weights.astype("float64") * (0.37 if dtype.startswith("f") else 1)
    if kind == "negative":
        weights = shifted(N, tails, heads, weights)
    through = np.random.default_rng(2).random(N) < (0.7 if kind == "closed" else 2)
    exact = "float64" if dtype.startswith("f") else "int32"
    graph = store_arcs(folder / "g", N, tails, heads, weights, exact, through=through)
    return graph, [N - 1, 3, 7, 70, 4] if kind == "rows of sources" else None


def budget_of(dtype, share):
    return N * N * np.dtype(dtype).itemsize // share


def from_the_store(dtype):
    """Budgets of which that of the host does not hold the matrix."""
    return {"device_memory": budget_of(dtype, 2), "host_memory": budget_of(dtype, 1)}


def plan(graph, dtype, sources=None, device_memory=None, host_memory=None, block=BLOCK, workers=1):
    """The estimate of a run with these budgets on GPUs of one host."""
    gpus = [
        WorkerFacts(f"tcp://w{w}", "host", "GPU", True, 80 << 30, 1e12, host_memory=200 << 30) for w in range(workers)
    ]
    facts = within_budget(gpus, device_memory, host_memory)
    job = _job(graph, distance_dtype(graph, dtype))
    return estimate(Request(job, sources and tuple(sources), block, math.inf, facts, None))


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_the_budgets_below_suffice_and_the_matrix_passes_by_more_than_once(tmp_path, kind, dtype):
    graph, sources = problem(tmp_path, kind, dtype)
    for share in SHARES:
        found = plan(graph, dtype, sources, budget_of(dtype, share))
        found.refuse(tmp_path / "out")
        assert found.too_large is None
        found = found.plan
        assert found.windows.resident
        assert found.windows.width < N / 4
    found = plan(graph, dtype, sources, **from_the_store(dtype))
    assert (found.too_large, found.plan.windows.resident) == (None, False)


def test_gpus_of_one_host_share_slabs(tmp_path):
    n, width = 16384, 2048
    tails, heads, weights = random_arcs(n, n, high=30)
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, "int32")
    budgets = {"device_memory": 1 << 30, "host_memory": 6 << 30}
    found = {count: plan(graph, "int32", **budgets, workers=count, block=1024).plan for count in (1, 2, 8)}
    assert [plan.windows.sharers for plan in found.values()] == [1, 2, 8]
    windows = Windows(n, 1024, 1024, width, True)
    request = Request(_job(graph, np.dtype("int32")), None, 1024, math.inf, [None] * 2, None)
    alone, sharing = (needs_of(request, replace(windows, sharers=count), True).device[0] for count in (1, 2))
    saved = width * n // 2 * 4 - width * width * 4  # half of the slab; each has its square
    assert saved - 2 * width * 1024 * 4 - (3 << 20) < alone - sharing < saved  # and packs that, which a pool keeps


def test_gpus_of_one_host_that_is_short_of_memory_for_sharing_do_not(tmp_path):
    graph, _ = problem(tmp_path, "plain", "float32")
    device = budget_of("float32", 2)
    ways = []
    for host in 500 << 20, 700 << 20, 1000 << 20:
        windows = plan(graph, "float32", device_memory=device, host_memory=host, workers=2).plan.windows
        ways.append((windows.resident, windows.sharers))
    assert ways == [(False, 1), (True, 1), (True, 2)]


def test_a_budget_of_the_gpu_below_one_band_is_refused_with_the_least_that_works(tmp_path):
    graph, _ = problem(tmp_path, "plain", "float32")

    def shortage(**budgets):
        with pytest.raises(DoesNotFitError) as refused:
            plan(graph, "float32", **budgets).refuse(tmp_path / "out")
        return str(refused.value)

    said = shortage(device_memory=100_000)
    assert re.search(
        r"3,000 vertices need .* on the GPU of tcp://w0, where the limit of device_memory .* is 97.7 KiB", said
    )
    least = 1024 * int(re.search(r"Set device_memory \(--device-memory\) to (\d+)KiB or more", said)[1])
    assert plan(graph, "float32", device_memory=least).too_large is None
    assert "--device-memory" in shortage(device_memory=least - 1024)
    both = shortage(device_memory=100_000, host_memory=100_000)
    assert re.search(r"--device-memory\) to \d+KiB or more and host_memory \(--host-memory\) to \d+\w+ or more", both)


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_the_bits_are_those_of_a_run_in_memory(gpu_client, tmp_path, kind, dtype):
    graph, sources = problem(tmp_path, kind, dtype)
    options = {"dtype": dtype, "sources": sources}
    want = in_core(gpu_client, graph, tmp_path / "core", **options)[:]
    for share in SHARES:
        budget = budget_of(dtype, share)
        got = out_of_core(gpu_client, graph, tmp_path / f"{share}", **options, device_memory=budget)[:]
        np.testing.assert_array_equal(got.view(f"i{got.itemsize}"), want.view(f"i{want.itemsize}"))
        assert max(gpu_client.run(pool_bytes).values()) <= budget


@pytest.mark.gpu
def test_budgets_of_a_quarter_to_a_sixteenth_keep_the_bits_and_what_the_plan_states(gpu_client, tmp_path):
    graph, _ = problem(tmp_path, "closed", "float32")
    want = in_core(gpu_client, graph, tmp_path / "core", block=16)[:]
    out_of_core(gpu_client, graph, tmp_path / "first", block=16, device_memory=budget_of("float32", 4))  # compiles
    for share in 4, 8, 16:
        budget, out = budget_of("float32", share), tmp_path / f"{share}"
        stated = plan(graph, "float32", device_memory=budget, block=16).plan
        assert stated.windows.width <= N // share
        (idle,) = gpu_client.run(host_bytes, "VmRSS").values()
        got = out_of_core(gpu_client, graph, out, block=16, device_memory=budget, commit_seconds=None)[:]
        np.testing.assert_array_equal(got, want)
        assert max(gpu_client.run(pool_bytes).values()) <= stated.needs.device[0] <= budget
        assert max(gpu_client.run(host_bytes, "VmHWM").values()) - idle <= sum(stated.needs.host)


def host_bytes(name):
    """What the process has of the host's memory, or had at most since this was last called for the former."""
    lines = Path("/proc/self/status").read_text().splitlines()
    if name == "VmRSS":
        Path("/proc/self/clear_refs").write_text("5")
    return int(next(line for line in lines if line.startswith(name)).split()[1]) << 10


def pool_bytes():
    import cupy

    return cupy.get_default_memory_pool().total_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("place", ["the store", "memory that is registered", "memory that threads copy"])
def test_wherever_the_matrix_lies(gpu_client, tmp_path, monkeypatch, place):
    locking = 0 if place == "memory that is registered" else 10**9
    monkeypatch.setattr("pipelines.apsp.out_of_core.plan.LOCKING_PASSES", locking)
    graph, _ = problem(tmp_path, "plain", "float32")
    want = in_core(gpu_client, graph, tmp_path / "core")[:]
    budgets = from_the_store("float32")
    if place != "the store":
        del budgets["host_memory"]
    got = out_of_core(gpu_client, graph, tmp_path / "out", verify=True, **budgets)[:]
    np.testing.assert_array_equal(got, want)


@pytest.mark.gpu
def test_threads_copy_where_pages_cannot_be_locked(gpu):
    host = HostMatrix(300, np.dtype("float32"))
    host.matrix[...] = np.random.default_rng(0).random((300, 300))
    first, second = (
        GpuTransfers(host.matrix),
        GpuTransfers(host.matrix),
    )  # they are locked already: the second is refused
    assert [transfers._is_direct(host) for transfers in (first, second)] == [True, False]
    for transfers in first, second:
        band = transfers.empty((100, 300), host.matrix.dtype)
        transfers.load(host, slice(50, 150), band)
        np.testing.assert_array_equal(band.get(), host.matrix[50:150])
        transfers.store(host, 200, band, mark(band))
        np.testing.assert_array_equal(host.matrix[200:], host.matrix[50:150])


@pytest.mark.multigpu
@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("plain", "float32"), ("closed", "int16"), ("negative", "float64"), ("rows of sources", "float32")],
)
def test_two_gpus_give_the_bits_of_one(two_gpus, tmp_path, monkeypatch, capsys, kind, dtype, registered):
    monkeypatch.setattr("pipelines.apsp.out_of_core.plan.LOCKING_PASSES", 0 if registered else 10**9)
    graph, sources = problem(tmp_path, kind, dtype)
    options = {"dtype": dtype, "sources": sources}
    want = in_core(two_gpus, graph, tmp_path / "core", **options)[:]
    budget = budget_of(dtype, 2)
    capsys.readouterr()
    got = out_of_core(two_gpus, graph, tmp_path / "out", **options, device_memory=budget, verify=True, progress=True)[:]
    np.testing.assert_array_equal(got.view(f"i{got.itemsize}"), want.view(f"i{want.itemsize}"))
    assert "parts of row panels go straight from GPU to GPU" in capsys.readouterr().err
    stated = plan(graph, dtype, sources, device_memory=budget, workers=2).plan
    ring = -(-stated.windows.width // BLOCK) * packed_bytes(BLOCK, N, dtype, True)
    assert max(two_gpus.run(pool_bytes).values()) + ring <= stated.needs.device[0] <= budget


@pytest.mark.multigpu
def test_a_slab_of_which_one_gpu_has_no_columns(two_gpus, tmp_path):
    n = 100
    tails, heads, weights = random_arcs(n, 5 * n, high=30)
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, "int32")
    want = in_core(two_gpus, graph, tmp_path / "core")[:]
    got = out_of_core(two_gpus, graph, tmp_path / "out", verify=True)[:]
    np.testing.assert_array_equal(got, want)
