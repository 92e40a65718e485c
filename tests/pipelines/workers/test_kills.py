"""`kill -9` of a worker process or of the driver at random moments: the bits of an undisturbed run come out.

One kill by default, beside those of the tests of each pipeline; a hundred with ``pytest -m slow -s`` and this file,
which prints what was hit.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

from pipelines import (
    all_pairs_shortest_paths,
    build_hierarchy,
    generate,
    open_hierarchy,
    single_source_shortest_paths,
    synthetic_graph,
    train_som,
)
from pipelines.stores.codebook import open_codebook
from pipelines.stores.distances import open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.paths import open_paths
from pipelines.stores.samples import write_samples

# Commits at every boundary, and many boundaries; all workers have samples of the map.
OFTEN = """
import pipelines.apsp.hierarchy, pipelines.apsp.commits, pipelines.som.plan, pipelines.sssp.plan
import pipelines.workers.row_chunks
pipelines.apsp.hierarchy.TASK_BYTES = 1
pipelines.apsp.hierarchy.EDGE = pipelines.apsp.hierarchy.LEAST_EDGE = 64
pipelines.apsp.commits.COMMIT_SHARE = float("inf")
pipelines.workers.row_chunks.RECORD_SECONDS = 0.0
pipelines.sssp.plan.CHUNK_BYTES = pipelines.sssp.plan.BATCH = 1
pipelines.som.plan.FEW = 0
"""

DRIVER = f"""
import sys
from clusters import start
from pipelines import all_pairs_shortest_paths, build_hierarchy, single_source_shortest_paths, train_som
{OFTEN}
if __name__ == "__main__":
    with start(device="cpu") as client:
        print("begins", flush=True)
        eval(sys.argv[1])
"""

BY_STAGES = "method='floyd-warshall', block=16, commit_seconds=0"
CALLS = {  # the same for the driver that is killed, the run that goes on, and the one that is left in peace
    "hierarchy": "build_hierarchy(client, {roads!r}, {out!r}, resume=True)",
    "rows": "all_pairs_shortest_paths(client, {roads!r}, {out!r}, method='hierarchy', resume=True)",
    "apsp": f"all_pairs_shortest_paths(client, {{graph!r}}, {{out!r}}, {BY_STAGES}, resume=True)",
    "sssp": "single_source_shortest_paths(client, {graph!r}, {out!r}, range(120), resume=True)",
    "som": "train_som(client, {samples!r}, {out!r}, 12, 12, epochs=40, resume=True)",
}
RESULTS = {
    "hierarchy": lambda out: open_hierarchy(out).hierarchy.out,
    "rows": lambda out: open_distances(out)[:],
    "apsp": lambda out: open_distances(out)[:],
    "sssp": lambda out: open_paths(out).distances(),
    "som": lambda out: open_codebook(out).units(),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(11)
    n, m = 1000, 5000
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rng.integers(0, n, m), minlength=n))])
    graph = write_graph(folder / "g", indptr, rng.integers(0, n, m), rng.random(m))
    samples = write_samples(folder / "s", rng.normal(size=(5000, 6)))
    roads = generate(synthetic_graph("road", rows=40, columns=40), folder / "r")
    return {"graph": graph.path, "samples": samples.path, "roads": roads.path}


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
    monkeypatch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)
    monkeypatch.setattr("pipelines.sssp.plan.CHUNK_BYTES", 1)
    monkeypatch.setattr("pipelines.apsp.hierarchy.TASK_BYTES", 1)
    monkeypatch.setattr("pipelines.apsp.hierarchy.EDGE", 64)
    monkeypatch.setattr("pipelines.apsp.hierarchy.LEAST_EDGE", 64)
    monkeypatch.setattr("pipelines.sssp.plan.BATCH", 1)
    monkeypatch.setattr("pipelines.som.plan.FEW", 0)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_runs_give_the_bits_of_undisturbed_ones(client, two_processes, inputs, often, tmp_path, kills):
    rng = np.random.default_rng(kills)
    calm, seconds, hits = {}, {}, Counter()
    for number in range(kills):
        pipeline = list(CALLS)[number % len(CALLS)]
        out = str(tmp_path / f"{number}")
        call = CALLS[pipeline].format(out=out, **inputs)
        if pipeline not in calm:
            undisturbed = str(tmp_path / pipeline)
            for _ in range(2):  # the first compiles
                began = time.monotonic()
                run(client, CALLS[pipeline].format(out=undisturbed, **inputs).replace("resume", "overwrite"))
                seconds[pipeline] = time.monotonic() - began
            calm[pipeline] = RESULTS[pipeline](undisturbed)
        delay = rng.uniform(0, seconds[pipeline])
        victim = ("worker", "driver")[number % 2]
        if victim == "worker":
            two_processes.wait_for_workers(2, timeout=120)
            pid = int(rng.choice([nanny.pid for nanny in two_processes.cluster.workers.values() if nanny.pid]))
            murder = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
            murder.start()
            run(two_processes, call)
            murder.join()
            two_processes.wait_for_workers(2, timeout=120)
            hit = "worker"
        else:
            driver = subprocess.Popen([sys.executable, "-c", DRIVER, call], stdout=subprocess.PIPE)
            assert driver.stdout.readline() == b"begins\n"
            time.sleep(delay)
            driver.kill()
            driver.communicate()
            hit = f"driver, {state(RESULTS[pipeline], out)}"
            run(two_processes if number % 4 == 1 else client, call)
        hits[f"{pipeline}: {hit}"] += 1
        np.testing.assert_array_equal(RESULTS[pipeline](out), calm[pipeline], err_msg=f"kill {number}: {call}")
    print(f"\n{kills} kills, all with the bits of an undisturbed run: {dict(sorted(hits.items()))}")


def run(client, call):
    functions = (all_pairs_shortest_paths, build_hierarchy, single_source_shortest_paths, train_som)
    eval(call, {"client": client, **{function.__name__: function for function in functions}})


def state(result, out):
    """What the killed driver left."""
    if not os.path.lexists(out):
        return "before the store"
    try:
        result(out)
    except StoreError:
        return "unfinished"
    return "finished"
