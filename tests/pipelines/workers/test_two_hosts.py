"""Runs on two hosts, played by namespaces: equal bits, and what happens when the second host is cut off or stopped."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles import random_arcs, store_arcs
from two_hosts import TUN

from pipelines import all_pairs_shortest_paths

ROOT = Path(__file__).parents[3]
PLAY = ["unshare", "--user", "--map-root-user", "--net", "--mount", sys.executable, ROOT / "tests" / "two_hosts.py"]
SECONDS = 60  # until a run goes on without a host that is gone: `worker-ttl` of clusters/dask.yaml decides


@pytest.fixture(scope="module")
def folder(tmp_path_factory, client):
    """A folder with a graph and its distances."""
    folder = tmp_path_factory.mktemp("hosts")
    tails, heads, weights = random_arcs(400, 2000)
    graph = store_arcs(folder / "graph", 400, tails, heads, weights / 7, "float32")
    np.save(folder / "calm.npy", all_pairs_shortest_paths(client, graph, folder / "calm", block=20)[:])
    return folder


@pytest.fixture
def play(folder):
    def run(case):
        settings = {"DASK_CONFIG": str(ROOT / "clusters" / "dask.yaml"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*PLAY, folder, case], env={**os.environ, **settings}, timeout=240, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        shutil.rmtree(folder / "out")
        np.testing.assert_array_equal(np.load(folder / "found.npy"), np.load(folder / "calm.npy"))
        seen = json.loads((folder / "seen.json").read_text())
        assert seen["hosts"] == 2
        notes = [text for _, text in seen["notes"]]
        assert "some pivot rows travel through Dask and host memory (workers on several hosts)" in notes
        assert any("coordinated by the scheduler" in note for note in notes)
        return seen

    return run


@pytest.mark.parametrize("cut", ["cut for 1 s", pytest.param("cut for 6 s", marks=pytest.mark.slow)])
def test_two_hosts_give_the_bits_of_one_though_the_link_is_down_for_a_while(play, cut):
    seen = play(cut)
    assert seen["workers"] == 2
    assert not [text for _, text in seen["notes"] if "lost" in text]


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [1, 20])
def test_a_slow_link_changes_no_bit(play, milliseconds):
    if not os.access(TUN, os.R_OK | os.W_OK):
        pytest.skip(f"{TUN} cannot be opened, so packets cannot be delayed")
    seen = play(f"delayed by {milliseconds} ms")
    assert seen["workers"] == 2
    assert seen["answer"] > 2 * milliseconds / 1000  # there and back
    assert not [text for _, text in seen["notes"] if "lost" in text]


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["cut for ever", "stopped"])
def test_without_the_second_host_the_run_goes_on(play, gone):
    seen = play(gone)
    assert seen["workers"] == 1
    (lost,) = [text for _, text in seen["notes"] if "lost" in text]
    assert "a worker was lost; resuming" in lost
    silence = max(after - before for before, after in zip(seen["stages"], seen["stages"][1:], strict=False))
    assert silence < SECONDS + 10  # on a busy machine
