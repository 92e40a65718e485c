"""Clusters, and small graphs and their distances, written as the pipeline writes them."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
import zarr
from commands import printed

from clusters import start
from gpuops.numbers import outside_infinity
from pipelines.stores.distances import create_distances, open_distances
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.progress import Progress


@pytest.fixture(scope="module")
def client():
    """One worker with all cores, in this process."""
    with start(device="cpu") as client:
        yield client


@pytest.fixture(scope="module")
def two():
    with start(device="cpu", workers=2, processes=False) as client:
        yield client


@pytest.fixture(scope="module")
def three():
    with start(device="cpu", workers=3, processes=False) as client:
        yield client


class SharedProcesses:
    """Two worker processes for all modules, begun at their first use: this takes longer than most of the tests."""

    def __init__(self):
        self.client = None

    def begun(self):
        if self.client is None:
            self.client = start(device="cpu", workers=2, processes=True)
        return self.client

    def close(self):
        if self.client is not None:
            self.client.close()
            self.client = None


SHARED = SharedProcesses()


@pytest.fixture(scope="session")
def shared_processes():
    yield SHARED
    SHARED.close()


@pytest.fixture(scope="module")
def two_processes(shared_processes):
    """Workers that a test may kill: they come back, also for the next module."""
    yield (client := shared_processes.begun())
    two_pids(client)


def two_pids(client):
    """The process numbers of its two workers, once both answer: the scheduler may not know yet that one is dead."""
    deadline = time.monotonic() + 120
    while True:
        with suppress(OSError):  # one died under the question
            if len(found := client.run(os.getpid)) == 2:
                return sorted(found.values())
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="session")
def two_gpus(gpu):
    """A cluster of two GPUs that all tests share: processes that begin anew take longer than most of the tests."""
    if gpu.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("fewer than two GPUs")
    with start(device="gpu", workers=2) as client:
        yield client


@pytest.fixture(scope="module")
def gpu_client(gpu):
    with start(device="gpu", workers=1) as client:
        yield client


@pytest.fixture(scope="module")
def two_on_one_gpu(gpu):
    """Two processes that share a GPU: they map each other's memory as those of two GPUs do."""
    with start(device="cpu", workers=2, processes=True, resources={"GPU": 1}) as client:
        yield client


@pytest.fixture
def solve(tmp_path_factory):
    """``solve(n, arcs, dtype)``: the distances and graph stores of arcs (tails, heads, weights), solved in `dtype`.

    `through` and `sources` as in the stores; `spoil` changes the matrix before it is written; `facts` go to the graph.
    """

    def write(n, arcs, dtype, *, through=None, sources=None, spoil=None, chunk=16, **facts):
        tails, heads, weights = map(np.asarray, arcs)
        order = np.argsort(tails, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
        folder = tmp_path_factory.mktemp("solved")
        graph = write_graph(folder / "graph", indptr, heads[order], weights[order], through=through, **facts)
        matrix = floyd_warshall(n, (tails, heads, weights), dtype, through)
        if spoil is not None:
            spoil(matrix)
        result = matrix if sources is None else matrix[sources]
        run = create_distances(
            folder / "distances", graph, dtype=dtype, chunk=chunk, stages=1, options={}, sources=sources
        )
        run.make_result()
        for first in range(0, len(result), chunk):
            run.write_rows(first, result[first : first + chunk])
        run.commit(1)
        return open_distances(folder / "distances"), graph

    return write


def floyd_warshall(n, arcs, dtype, through=None):
    """The matrix as a store holds it, float sums rounded in `dtype` as the pipeline rounds them."""
    exact = np.dtype(dtype).kind != "f"
    infinity = 2**40 if exact else np.inf
    matrix = np.full((n, n), infinity, np.int64 if exact else dtype)
    tails, heads, weights = arcs
    np.minimum.at(matrix, (tails, heads), weights.astype(matrix.dtype))
    np.fill_diagonal(matrix, 0)
    for k in range(n) if through is None else np.flatnonzero(through):
        np.minimum(matrix, matrix[:, k, None] + matrix[k], out=matrix)
    if exact:
        matrix[matrix > infinity // 2] = outside_infinity(dtype)
    return matrix.astype(dtype)


@pytest.fixture
def graphs():
    """Named hard cases: name -> (n, arcs with integer weights, facts)."""
    rng = np.random.default_rng(5)

    def arcs(n, m, low, high):
        return rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(low, high, m)

    tails, heads, weights = arcs(40, 160, 0, 20)
    potential = rng.integers(0, 20, 40)
    both = np.concatenate([tails, heads]), np.concatenate([heads, tails]), np.concatenate([weights, weights])
    closed = rng.random(40) < 0.6
    grid = np.arange(36).reshape(6, 6)
    a = np.concatenate([grid[:, :-1].ravel(), grid[:-1].ravel()])
    b = np.concatenate([grid[:, 1:].ravel(), grid[1:].ravel()])
    zero = np.concatenate([a, b]), np.concatenate([b, a]), np.zeros(2 * len(a), np.int64)
    plateaus = (*zero[:2], np.tile(rng.integers(0, 4, len(a)) // 3 * 5, 2))
    nothing = np.empty(0, np.int64)
    return {
        "random": (40, (tails, heads, weights), {}),
        "sparse": (40, arcs(40, 45, 1, 9), {}),
        "signed": (40, (tails, heads, np.where(tails == heads, 1, weights + potential[tails] - potential[heads])), {}),
        "undirected": (40, both, {"directed": False}),
        "closed": (40, (tails, heads, weights), {"through": ~closed}),
        "closed undirected": (40, both, {"through": ~closed, "directed": False}),
        "all closed": (40, (tails, heads, weights), {"through": np.zeros(40, bool)}),
        "parallel": (5, arcs(5, 60, 0, 9), {}),
        "zero cycles": (36, zero, {}),
        "plateaus": (36, plateaus, {"directed": False}),
        "closed plateaus": (36, plateaus, {"through": rng.random(36) < 0.7}),
        "no arcs": (4, (nothing, nothing, nothing), {}),
        "one vertex": (1, (nothing, nothing, nothing), {}),
        "a loop": (1, (np.zeros(1, int), np.zeros(1, int), np.ones(1, int)), {}),
    }


CASES = (
    "random",
    "sparse",
    "signed",
    "undirected",
    "closed",
    "closed undirected",
    "all closed",
    "parallel",
    "zero cycles",
    "plateaus",
    "closed plateaus",
    "no arcs",
    "one vertex",
    "a loop",
)


def pytest_generate_tests(metafunc):
    """A test that asks for `case` runs on every graph of `graphs`."""
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES)


@pytest.fixture
def answers_ctrl_c():
    """This process does, also where a shell runs the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def tilepath(tmp_path, monkeypatch):
    """Run a command in `tmp_path`, and return what it prints; with `fault`, it fails and says this."""
    monkeypatch.chdir(tmp_path)
    return printed


STANDS_STILL = """
import pathlib, pickle, time
from pipelines.workers.progress import Progress
advance, begun = Progress.advance, pickle.loads({begun!r})
def stand_still(shown, units):
    advance(shown, units)
    if begun({out!r}).progress()[0] >= {least}:
        pathlib.Path({note!r}).touch()
        time.sleep(600)
Progress.advance = stand_still
"""


def kill_at(least, begun, code, source, out, *arguments):
    """Run the program `code`, which stands still once the store `out` has `least` units, and kill it then.

    Returns units done, and all.
    """
    note = out.with_name(f"{out.name}.note")
    program = STANDS_STILL.format(begun=pickle.dumps(begun), out=str(out), note=str(note), least=least) + code
    run = subprocess.Popen([sys.executable, "-c", program, source, out, *map(str, arguments)])
    while not note.exists():
        assert run.poll() is None
        time.sleep(0.01)
    run.kill()
    run.wait()
    done, total = begun(out).progress()
    assert least <= done < total
    return done, total


@pytest.fixture
def kill_when(monkeypatch):
    """``kill_when(begun, out, pids)``: kill -9 while a run of this process goes on; ``pids[least]`` at `least` units.

    The run itself kills where it counts its progress: a thread that looks at the store may come when the run is over.
    Returns the list of units at the kills.
    """

    def plan(begun, out, pids):
        killed, left, advance = [], dict(pids), Progress.advance

        def advanced(shown, units):
            advance(shown, units)
            if left and (done := begun(out).progress()[0]) >= min(left):
                os.kill(left.pop(min(left)), signal.SIGKILL)
                killed.append(done)

        monkeypatch.setattr(Progress, "advance", advanced)
        return killed

    return plan


def let_tasks_end(client):
    """Tasks go on after the client has forgotten them, as other chunks do after Zarr's first error."""

    async def others():
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    scheduler, workers = client.cluster.scheduler, client.cluster.workers.values()
    while (
        any(worker.state.executing or worker.state.ready for worker in workers)
        or any(task.state in ("waiting", "processing") for task in [*scheduler.tasks.values()])
        or any(key not in scheduler.tasks for worker in workers for key in [*worker.state.tasks])
    ):
        time.sleep(0.001)
    zarr.core.sync.sync(others())


PEAK = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # each thread takes memory of its own
from clusters import start
from pipelines import all_pairs_shortest_paths

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) << 10

if __name__ == "__main__":
    with start(device="cpu") as client:
        options = eval(sys.argv[5])
        all_pairs_shortest_paths(client, sys.argv[1], sys.argv[3], **options)  # compiles, and starts what stays
        open("/proc/self/clear_refs", "w").write("5")  # the high-water mark begins anew
        idle = status("VmRSS")
        all_pairs_shortest_paths(client, sys.argv[2], sys.argv[4], **options)
        print(status("VmHWM") - idle)
"""


def peak_memory(small, graph, folder, **options):
    """Solve all pairs of `small`, then of `graph`; returns the most bytes that this takes, and what it says."""
    stores = [small.path, graph.path, str(folder / "small-out"), str(folder / "out")]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *stores, repr(options)], capture_output=True, text=True, check=True
    )
    return int(done.stdout), done.stderr


def cloud(n, d=4, seed=0, missing=0.0):
    """Samples in some clusters; a part of the values is missing."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(5, d))[rng.integers(0, 5, n)] * 3 + rng.normal(size=(n, d))
    absent = rng.random((n, d)) < missing
    absent[:, 0] = False
    return np.where(absent, np.nan, values)
